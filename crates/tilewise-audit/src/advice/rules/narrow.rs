//! Values in a wider or a second type: arguments converted inside are held twice, and old compilers kept a predicate in
//! a word of 32 bits.

use crate::{
    advice::{
        message::{MessageModel, share_of_all, total},
        recommendation::{Change, Recommendation, Saving, Target},
        rule::MessageRule,
        snippet::JAX_AND_NUMPY,
    },
    message::Allocation,
};
use tilewise::ElementType;
use tilewise_oom::Framework;

pub(crate) struct ConvertedArguments;

impl MessageRule for ConvertedArguments {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        converted(message).into_iter().collect()
    }
}

fn converted(message: &MessageModel<'_>) -> Option<Recommendation> {
    let copies = || message.temporaries.iter().copied().filter(|row| is_converted(row));
    let first = copies().next()?;
    let element = first.shape.as_ref()?.as_array()?.element_type();
    let sentence = format!(
        "Convert arguments, such as weights, to {element} once, before the program: it holds copies in {element} of \
         arrays in another type{}, if those are arguments",
        first.at_line()
    );
    let listed = total(message.temporaries.iter().copied(), Allocation::taken_bytes);
    let held = share_of_all(total(copies(), Allocation::taken_bytes), listed, message.budget.temporary_bytes);
    let found = Recommendation::new(Change::Narrow, Target::Argument, sentence).saving(Saving::AtMost(held));
    Some(match message.framework {
        Framework::Jax if element == ElementType::Bf16 => found.snippet(
            JAX_AND_NUMPY,
            "params = jax.jit(lambda p: jax.tree.map(lambda w: w.astype(jnp.bfloat16), p), donate_argnums=0)(params)",
        ),
        Framework::TorchXla if element == ElementType::Bf16 => {
            found.snippet("import torch", "model = model.to(torch.bfloat16)")
        }
        _ => found,
    })
}

/// Whether it is a copy of another array in another type, such as of weights.
pub(super) fn is_converted(row: &Allocation) -> bool {
    let opcode = row.entry.instruction().map(|(_, opcode)| opcode);
    opcode == Some("convert")
        || row.op_name().rsplit('/').next().is_some_and(|last| last.starts_with("convert_element_type"))
}

pub(crate) struct WidePredicates;

impl MessageRule for WidePredicates {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        wide_predicates(message).into_iter().collect()
    }
}

fn wide_predicates(message: &MessageModel<'_>) -> Option<Recommendation> {
    let is_wide = |row: &&Allocation| row.entry.shape.as_ref().is_some_and(|shape| shape.text.contains("E(32)"));
    let wide: Vec<&Allocation> = message.temporaries.iter().copied().filter(is_wide).collect();
    let shape = wide.first()?.entry.shape.as_ref()?;
    let sentence = "Update libtpu, or keep masks as 8-bit integers: this compiler is an old one, and keeps each predicate in \
                    32 bits; masks of dropout need not be kept if their layer is checkpointed";
    let saving = Saving::AtMost(total(wide.iter().copied(), Allocation::told_padding));
    Some(Recommendation::new(Change::Narrow, Target::Compiler, sentence).about(&*shape.text).saving(saving))
}
