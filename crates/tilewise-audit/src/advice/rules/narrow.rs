//! Values in a wider or a second type: arguments converted inside are held twice, and old compilers kept a predicate in
//! a word of 32 bits.

use crate::{
    advice::{
        change::Target,
        evidence::{Evidence, Listed},
        finding::{ConvertedArguments, Finding},
        message::{MessageModel, first_line, total},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
    },
    message::Allocation,
};
use tilewise::ElementKind;

pub(crate) struct SecondType;

impl Rule for SecondType {
    fn is_of_programs(&self) -> bool {
        false
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.message().and_then(|message| converted(evidence, message)).into_iter().collect()
    }
}

fn converted(evidence: &dyn Evidence, message: &MessageModel<'_>) -> Option<Proposal> {
    let copies = || message.temporaries.iter().copied().filter(|row| is_converted(row));
    let first = copies().next()?;
    let finding = ConvertedArguments { source: first_line(copies()), ..conversion(first)? };
    let proposal =
        Proposal::new(Finding::ConvertedArguments(finding), Target::Argument, AdvisedArray::of_row(first)).bound();
    let held = total(copies(), Allocation::taken_bytes);
    Some(Proposal { about: None, ..proposal.extrapolated(evidence, held, Listed::Bytes) })
}

/// The finding for a copy of a weight in another type, a float; `None` for other rows.
pub(crate) fn conversion(row: &Allocation) -> Option<ConvertedArguments> {
    let element_type = row.shape.as_ref()?.as_array()?.element_type();
    // Whole numbers that are converted are indices or masks, made inside.
    let is_of_weight = element_type.kind() == ElementKind::Float && is_converted(row);
    is_of_weight.then(|| ConvertedArguments {
        element_type,
        source: row.source.clone().filter(|source| !source.is_installed()),
    })
}

/// Whether a row is a copy of another array, such as a weight, in another type.
pub(super) fn is_converted(row: &Allocation) -> bool {
    let opcode = row.entry.instruction().map(|(_, opcode)| opcode);
    opcode == Some("convert")
        || row.op_name().rsplit('/').next().is_some_and(|last| last.starts_with("convert_element_type"))
}

pub(crate) struct PredicatesInWords;

impl Rule for PredicatesInWords {
    fn is_of_programs(&self) -> bool {
        false
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let rows = evidence.message().map(|message| &message.temporaries[..]).unwrap_or_default();
        let is_wide = |row: &&Allocation| row.entry.shape.as_ref().is_some_and(|shape| shape.text.contains("E(32)"));
        let wide = || rows.iter().copied().filter(is_wide);
        let proposal = wide().next().map(|first| Proposal {
            estimate: Some(total(wide(), Allocation::told_padding)),
            ..Proposal::new(Finding::WidePredicates, Target::Compiler, AdvisedArray::of_row(first)).bound()
        });
        proposal.into_iter().collect()
    }
}
