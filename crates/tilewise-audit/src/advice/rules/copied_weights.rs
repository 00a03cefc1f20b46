//! Weights that a program copies into another layout before it uses them: it holds them twice.

use crate::{
    advice::{
        message::{MessageModel, share_of_all, total},
        recommendation::{Change, Recommendation, Saving, Target},
        rule::MessageRule,
        snippet::LAYOUT,
    },
    message::Allocation,
};

pub(crate) struct CopiedWeights;

impl MessageRule for CopiedWeights {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        of_message(message).into_iter().collect()
    }
}

fn of_message(message: &MessageModel<'_>) -> Option<Recommendation> {
    let copies = || message.temporaries.iter().copied().filter(|row| is_copied_argument(row));
    let largest = copies().max_by_key(|row| row.taken_bytes())?;
    let shape = largest.shape.as_ref()?.to_string();
    let name = Some(largest.op_name()).filter(|name| !name.is_empty()).map(|name| format!(" of `{name}`"));
    let sentence = format!(
        "Put the weights in the layout that the program wants, once, before it runs: it copies them into another one, \
         {shape}{}, and holds them twice",
        name.unwrap_or_default()
    );
    let listed = total(message.temporaries.iter().copied(), Allocation::taken_bytes);
    let held = share_of_all(total(copies(), Allocation::taken_bytes), listed, message.budget.temporary_bytes);
    let found =
        Recommendation::new(Change::Order, Target::Argument, sentence).about(shape).saving(Saving::AtMost(held));
    Some(message.with_jax(
        found,
        LAYOUT,
        "step = jax.jit(step, in_shardings=Format(Layout.AUTO))
compiled = step.lower(params, batch).compile()
params = jax.device_put(params, compiled.input_formats[0][0])",
    ))
}

/// `copy.7 = copy(param.3)` of an argument: the framework's name of it is an expression, or the copied value is a
/// parameter.
pub(super) fn is_copied_argument(row: &Allocation) -> bool {
    let is_copy =
        row.entry.instruction().is_some_and(|(_, opcode)| matches!(opcode, "copy" | "copy-start" | "transpose"));
    let name = row.op_name();
    let is_expression = !name.is_empty() && !name.contains(['/', '(', ' ']);
    let operand =
        row.entry.label.as_deref().and_then(|label| label.split_once('(')).map_or("", |(_, operands)| operands);
    let operand = operand.trim_start_matches('%');
    is_copy && (is_expression || operand.starts_with("param") || operand.starts_with("Arg_"))
}
