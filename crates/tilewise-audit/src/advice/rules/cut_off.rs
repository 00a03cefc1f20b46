//! Padding that a message counts, though no shape in it is padded: the shapes are cut off.

use crate::{
    advice::{
        message::{MessageModel, total},
        recommendation::{Change, Recommendation, Saving, Target},
        rule::MessageRule,
    },
    message::Allocation,
};

pub(crate) struct CutOffShapes;

impl MessageRule for CutOffShapes {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        of_message(message).into_iter().collect()
    }
}

fn of_message(message: &MessageModel<'_>) -> Option<Recommendation> {
    let listed = total(message.temporaries.iter().copied(), Allocation::told_padding);
    let unseen = message.temporary_padding()?;
    // Otherwise there is padding, but not much in any one array.
    if listed > unseen / 100 || u128::from(unseen) * 4 < u128::from(message.budget.used_bytes.unwrap_or_default()) {
        return None;
    }
    let first = message.temporaries.first();
    let name = first.map(|row| row.op_name().split(['[', ' ']).next().unwrap_or_default()).unwrap_or_default();
    let name = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let by = match first {
        Some(row) if !name.is_empty() => format!(", first of all those of `{name}`{}", row.at_line()),
        _ => String::new(),
    };
    let change = if name.contains("conv") {
        "Fold neighbouring positions into the channels before a convolution over few of them, or work through the \
         batch in parts"
    } else {
        "Keep few columns or channels as separate arrays, or fold neighbours into them, from the arguments on"
    };
    let sentence = format!(
        "{change}: arrays whose shapes are cut off here are mostly padding{by}, for a short dimension lies on the 128 \
         lanes. The list `Largest program allocations` of the whole message says which arrays"
    );
    Some(Recommendation::new(Change::Split, Target::Value, sentence).saving(Saving::AtMost(unseen)))
}
