//! What is the matter, in a word.

use crate::entry::Entry;
use crate::message::{Form, Message};
use crate::size::PrintedSize;

/// What is the matter, and so what can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// Padding is at least what is missing, or most of what is used.
    Padding,
    /// The arguments alone do not fit.
    Arguments,
    /// There is little padding, or none that the message tells of: it is too large.
    Size,
    /// Enough is free, but not in one piece.
    Fragmentation,
    /// At run time others hold the memory.
    Reservation,
    /// One kernel, or one instruction's stack, needs more VMEM, SMEM or memory of a SparseCore than there is.
    KernelMemory,
    /// Values that did not fit into registers fill VMEM.
    Spills,
    /// A GPU, or the host, ran out of memory.
    NotTpu,
    /// The message does not tell.
    Unknown,
}

/// Where nothing says how much is missing, padding is the matter from this part of what is used on: 1 in 4.
const MUCH_PADDING: u128 = 4;

impl Verdict {
    /// A stable name in snake case, for machines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Padding => "padding",
            Self::Arguments => "arguments",
            Self::Size => "size",
            Self::Fragmentation => "fragmentation",
            Self::Reservation => "reservation",
            Self::KernelMemory => "kernel_memory",
            Self::Spills => "spills",
            Self::NotTpu => "not_tpu",
            Self::Unknown => "unknown",
        }
    }
}

impl Message {
    /// What is the matter.
    ///
    /// ```
    /// use tilewise_oom::{Message, Verdict};
    ///
    /// let text = "Attempting to reserve 6.48G at the bottom of memory. That was not possible. \
    ///             There are 6.78G free, 0B reserved, and 3.33G reservable.";
    /// assert_eq!(Message::parse(text)?.verdict(), Verdict::Fragmentation);
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.form {
            Form::NotTpu => Verdict::NotTpu,
            Form::RunTime => self.verdict_at_run_time(),
            _ if self.is_spilled() => Verdict::Spills,
            Form::SparseCore | Form::Scoped => Verdict::KernelMemory,
            _ => match self.memory_space.as_deref() {
                Some("hbm" | "host") => self.verdict_on_hbm(),
                Some(_) => Verdict::KernelMemory,
                None if self.entries.iter().any(|entry| entry.window().is_some()) => Verdict::KernelMemory,
                None => self.verdict_on_hbm(),
            },
        }
    }

    fn verdict_at_run_time(&self) -> Verdict {
        match (&self.used, &self.limit) {
            (Some(asked), Some(free)) if free.bytes() >= asked.bytes() => Verdict::Fragmentation,
            _ => Verdict::Reservation,
        }
    }

    /// Whether spilled registers are what is missing, or the largest part.
    fn is_spilled(&self) -> bool {
        let size = |entry: &Entry| entry.size.as_ref().map_or(0, PrintedSize::bytes);
        let (spilled, others) = self.entries.iter().fold((0_u64, 0_u64), |(spilled, others), entry| {
            let size = size(entry);
            if entry.is_spill() { (spilled.saturating_add(size), others) } else { (spilled, others.max(size)) }
        });
        spilled > 0 && (spilled >= others || self.budget().missing_bytes.is_some_and(|missing| spilled >= missing))
    }

    fn verdict_on_hbm(&self) -> Verdict {
        let budget = self.budget();
        let padding = budget.padding_bytes.unwrap_or(0);
        // Without their padding, too.
        let arguments =
            budget.argument_bytes.map(|bytes| bytes.saturating_sub(budget.argument_padding_bytes.unwrap_or(0)));
        if arguments.zip(budget.capacity_bytes).is_some_and(|(arguments, capacity)| arguments > capacity) {
            return Verdict::Arguments;
        }
        let listed = || self.entries.iter().filter_map(|entry| entry.size.as_ref()).map(PrintedSize::bytes);
        let used = budget.used_bytes.unwrap_or_else(|| listed().fold(0, u64::saturating_add));
        let is_most = u128::from(padding) * 2 > u128::from(used);
        let is_padding = match budget.missing_bytes {
            Some(missing) => padding > 0 && padding >= missing || is_most,
            None => padding > 0 && u128::from(padding) * MUCH_PADDING >= u128::from(used),
        };
        if is_padding {
            return Verdict::Padding;
        }
        let fragmentation = budget.fragmentation_bytes.unwrap_or(0);
        if budget.missing_bytes.is_some_and(|missing| fragmentation > 0 && fragmentation >= missing) {
            return Verdict::Fragmentation;
        }
        if used == 0 && budget.missing_bytes.is_none() { Verdict::Unknown } else { Verdict::Size }
    }
}
