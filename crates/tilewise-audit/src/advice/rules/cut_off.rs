//! Padding that a message counts, though no shape in it is padded: the shapes are cut off.

use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{CutOffShapes, Finding},
        message::{MessageModel, first_line, total},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
    },
    message::Allocation,
};

pub(crate) struct UnseenPadding;

impl Rule for UnseenPadding {
    fn is_of_programs(&self) -> bool {
        false
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.message().and_then(of_message).into_iter().collect()
    }
}

fn of_message(message: &MessageModel<'_>) -> Option<Proposal> {
    let listed = total(message.temporaries.iter().copied(), Allocation::told_padding);
    let unseen = message.temporary_padding()?;
    // Padding is listed, or is less than a quarter of the used memory.
    if listed > unseen / 100 || u128::from(unseen) * 4 < u128::from(message.budget.used_bytes.unwrap_or_default()) {
        return None;
    }
    let first = message.temporaries.first();
    let name = first.map(|row| row.op_name().split(['[', ' ']).next().unwrap_or_default()).unwrap_or_default();
    let name = name.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty());
    let finding =
        CutOffShapes { operation: name.map(str::to_owned), source: first_line(message.temporaries.iter().copied()) };
    let about = AdvisedArray::of_shape("");
    let proposal = Proposal::new(Finding::CutOffShapes(finding), Target::Value, about).bound();
    Some(Proposal { about: None, estimate: Some(unseen), ..proposal })
}
