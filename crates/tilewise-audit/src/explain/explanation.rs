//! Explains why a TPU ran out of memory: a message's entries, with the sizes of their arrays and the causes of padding.

use super::{
    advice::{
        advice, with_closed_over, with_history, with_kept, with_less_at_once, with_long_input, with_pool, with_size,
        with_told, with_worked, within_reach,
    },
    answers::{answers, is_small},
    kernel::declared_and_body_bytes,
    mismatch::{Mismatch, mismatch},
    settings::{with_recomputing, with_settings, with_switches},
    software::with_software,
};
use crate::{
    advice::Recommendation,
    message::{Allocation, Listing, Tiles},
};
use tilewise::tpu::Generation;
use tilewise_oom::{Form, Message, OomVerdict};

/// A message read and judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The message as it was read.
    pub message: Message,
    /// One row for each of the message's entries, in its order.
    pub allocations: Vec<Allocation>,
    /// How an argument differs from the one that the program was compiled for; `None` for other messages.
    pub mismatch: Option<Mismatch>,
    /// Whether donated arrays that are held twice are too small to matter.
    pub is_harmless: bool,
    /// Recommendations, best first.
    ///
    /// Layouts and shapes are recommended only for arguments and results: a compiler undoes such requests for values
    /// inside the program.
    pub advice: Vec<Recommendation>,
    /// For a kernel that does not fit into VMEM: bytes of the windows and scratch that the message lists, and bytes of
    /// its body and whatever the message leaves out. `None` for other messages, and if none are listed.
    pub declared_and_body_bytes: Option<(u64, u64)>,
}

/// Judges the entries of a TPU's out-of-memory message.
///
/// Arguments and outputs are printed without padding, and computed like the rest. The generation prices the
/// [recommendations](field@Explanation::advice); without one it is inferred from tiles where possible.
///
/// ```
/// use tilewise_oom::{Message, OomVerdict};
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
    // Donated arrays are listed without their device.
    let is_untiled = message.machine().is_some() || message.form == Form::Donation && generation.is_none();
    let tiles = if is_untiled { Tiles::None } else { Tiles::Of(generation) };
    let allocations: Vec<Allocation> =
        message.entries.iter().map(|entry| Allocation::of(entry, memory_space, tiles)).collect();
    let listing = Listing { message: &message, allocations: &allocations, generation };
    let mismatch = (message.verdict() == OomVerdict::InputMismatch).then(|| mismatch(&message));
    let mut advice = answers(listing, mismatch.as_ref()).unwrap_or_else(|| advice(listing));
    advice.iter_mut().for_each(|piece| piece.is_batch_ruled_out = message.job.is_batch_ruled_out);
    let advice = with_switches(with_recomputing(with_settings(advice, listing), listing), listing);
    let advice = with_software(advice, &message);
    let advice = with_told(
        with_closed_over(with_kept(with_pool(with_size(advice, &message), &message), &message), &message),
        &message,
    );
    let advice = with_worked(with_history(with_long_input(advice, &message), &message), &message);
    let advice = with_less_at_once(within_reach(advice, &message), &message);
    let declared_and_body_bytes = declared_and_body_bytes(listing);
    let is_harmless = message.verdict() == OomVerdict::Donation && is_small(listing);
    Explanation { message, allocations, mismatch, is_harmless, advice, declared_and_body_bytes }
}

impl Explanation {
    /// The owner of the largest listed array: the line of the user's program, else the framework's name of the
    /// operation, else the compiler's name of the instruction, else the entry's label.
    #[must_use]
    pub fn owner(&self) -> Option<String> {
        let largest = self.allocations.iter().rev().max_by_key(|row| row.taken_bytes())?;
        let line = largest.source.as_ref().map(|source| [&*source.file, &source.line.to_string()].join(":"));
        let name = || Some(largest.op_name()).filter(|name| !name.is_empty()).map(str::to_owned);
        let label = || {
            let (name, _) = largest.entry.instruction()?;
            Some(name.to_owned())
        };
        line.or_else(name).or_else(label).or_else(|| largest.entry.label.clone())
    }

    /// Padding of all listed arrays, in bytes.
    #[must_use]
    pub fn padding_bytes(&self) -> u64 {
        self.allocations.iter().map(Allocation::padding_bytes).fold(0, u64::saturating_add)
    }

    /// Bytes by which the memory is exceeded: as printed, or the needed minus the available bytes.
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
