//! Weights that a program copies into another layout before it uses them: it holds them twice.

use crate::{
    advice::{
        change::Target,
        evidence::{Evidence, Listed},
        finding::Finding,
        message::total,
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
    },
    message::Allocation,
};

pub(crate) struct CopiedArguments;

impl Rule for CopiedArguments {
    fn is_of_programs(&self) -> bool {
        false
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let rows = evidence.message().map(|message| &message.temporaries[..]).unwrap_or_default();
        let copies = || rows.iter().copied().filter(|row| is_copied_argument(row));
        let largest = copies().filter(|row| row.shape.is_some()).max_by_key(|row| row.taken_bytes());
        let held = total(copies(), Allocation::taken_bytes);
        let proposal = largest.map(|largest| {
            let about = AdvisedArray::of_row(largest);
            let proposal = Proposal::new(Finding::CopiedWeights, Target::Argument, about).bound();
            proposal.extrapolated(evidence, held, Listed::Bytes)
        });
        proposal.into_iter().collect()
    }
}

/// Whether a row is a copy of an argument, such as `copy.7 = copy(param.3)`: the framework's name is an expression, or
/// the operand is a parameter.
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
