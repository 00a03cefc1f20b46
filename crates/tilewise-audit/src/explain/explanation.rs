//! Why a TPU ran out of memory: a message's entries, with what their arrays take and why.

use super::{
    advice::advice,
    answers::{Answer, answer},
    kernel::declared_and_body_bytes,
};
use crate::{
    advice::Recommendation,
    message::{Allocation, Listing, Tiles},
};
use tilewise::tpu::Generation;
use tilewise_oom::Message;

/// A message read and judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The message as it was read.
    pub message: Message,
    /// One row for each of the message's entries, in its order.
    pub allocations: Vec<Allocation>,
    /// The answer to a message that isn't judged by what fills a TPU's memory; `None` for others.
    pub answer: Option<Answer>,
    /// What to do, best first.
    ///
    /// Layouts and shapes are advised on for what crosses the program's interface alone: a compiler undoes what is asked for
    /// of values inside.
    pub advice: Vec<Recommendation>,
    /// Of a kernel that does not fit into VMEM: bytes of the windows and scratch that the message lists, and of all else
    /// that it needs, which its body takes or the message leaves out. `None` for other messages, and where it lists none.
    pub declared_and_body_bytes: Option<(u64, u64)>,
}

/// Judges what a TPU's out-of-memory message lists.
///
/// Arguments and outputs print no padding, and are computed like the rest. The generation prices what is
/// [recommended](field@Explanation::advice); without one it is inferred from tiles where it can be.
///
/// ```
/// use tilewise_oom::Message;
///
/// let text = "Ran out of memory in memory space hbm. Used 294.50M of 250.00M hbm. Exceeded hbm capacity by 44.50M.
///   Largest program arguments and outputs in hbm:
///   1. Size: 195.31M
///      Shape: f32[400000,12]{1,0:T(8,128)}
///      XLA label: Argument 0 index {}
///      ==========================";
/// let explained = tilewise_audit::explain(Message::parse(text)?, None);
/// assert_eq!(explained.allocations[0].sizes.map(|sizes| sizes.physical_bytes), Some(204_800_000));
/// assert_eq!((explained.padding_bytes(), explained.advice[0].change.as_str()), (185_600_000, "order"));
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[must_use]
pub fn explain(message: Message, generation: Option<Generation>) -> Explanation {
    let memory_space = message.memory_space_number();
    let tiles = if message.machine().is_some() { Tiles::None } else { Tiles::Of(generation) };
    let allocations: Vec<Allocation> =
        message.entries.iter().map(|entry| Allocation::of(entry, memory_space, tiles)).collect();
    let listing = Listing { message: &message, allocations: &allocations, generation };
    let answer = answer(listing);
    let advice = answer.as_ref().map_or_else(|| advice(listing), |answer| answer.advice.clone());
    let declared_and_body_bytes = declared_and_body_bytes(listing);
    Explanation { message, allocations, answer, advice, declared_and_body_bytes }
}

impl Explanation {
    /// Whose the largest array is that the message lists: the line of the user's program, or the framework's name of the
    /// operation, or the compiler's of the instruction.
    #[must_use]
    pub fn owner(&self) -> Option<String> {
        let largest = self.allocations.iter().rev().max_by_key(|row| row.taken_bytes())?;
        let line = largest.source.as_ref().map(|source| format!("{}:{}", source.file, source.line));
        let name = || Some(largest.op_name()).filter(|name| !name.is_empty()).map(str::to_owned);
        let label = || {
            let (name, _) = largest.entry.instruction()?;
            Some(name.to_owned())
        };
        line.or_else(name).or_else(label).or_else(|| largest.entry.label.clone())
    }

    /// What to run or to write next: the code of the first piece of advice, else the command that tells more.
    ///
    /// ```
    /// let text = "cannot statically prove that index in dimension 1 is a multiple of 128";
    /// let explained = tilewise_audit::explain(tilewise_oom::Message::parse(text)?, None);
    /// assert_eq!(explained.next_step(), "i = pl.multiple_of(i, 128)");
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn next_step(&self) -> String {
        let code = self.advice.first().and_then(|first| first.snippet.as_ref()).map(|snippet| snippet.code.clone());
        code.unwrap_or_else(|| format!("tilewise explain {}", self.message.page()))
    }

    /// Padding of all the arrays that the message lists, in bytes.
    #[must_use]
    pub fn padding_bytes(&self) -> u64 {
        self.allocations.iter().map(Allocation::padding_bytes).fold(0, u64::saturating_add)
    }

    /// By how much the memory is exceeded, in bytes: as printed, or the difference of what is needed and what there is.
    #[must_use]
    pub fn shortfall_bytes(&self) -> Option<u64> {
        let message = &self.message;
        let difference = || message.used.as_ref()?.bytes().checked_sub(message.limit.as_ref()?.bytes());
        message.exceeded.as_ref().map(|exceeded| exceeded.bytes()).or_else(difference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_that_are_not_printed_follow_from_the_size() {
        let text =
            "Ran out of memory in memory space vmem. Used 29.95M of 16.00M vmem. Exceeded vmem capacity by 13.95M.
  Largest program allocations in vmem:
  1. Size: 64.0K
     Shape: f32[128,3]{1,0}
     Unpadded size: 1.5K
     ==========================";
        let explained = explain(Message::parse(text).expect("a message"), None);
        let [row] = &explained.allocations[..] else { panic!("one row") };
        assert_eq!(row.shape.as_ref().map(ToString::to_string).as_deref(), Some("f32[128,3]{1,0:T(8,128)}"));
        assert_eq!(row.sizes.map(|sizes| (sizes.logical_bytes, sizes.physical_bytes)), Some((1536, 65_536)));
    }
}
