//! The need of a program or a request, held against what there is.

use crate::form::Form;
use crate::judge::LARGEST_GPU;
use crate::message::Message;
use crate::text::size::PrintedSize;
use crate::verdict::{OomVerdict, UntiledMachine};

/// Bytes of the HBM of today's largest TPU.
const LARGEST_TPU: u64 = 192 << 30;

/// Every device has more bytes.
const LEAST: u64 = 1 << 30;

/// From this many times what there is on, no setting, type or number of devices makes up for the need.
const FAR: u64 = 100;

impl Message {
    /// How many times as much a device's memory would have to have, if that is a hundred times or more: only other sizes of
    /// the arrays help then.
    ///
    /// ```
    /// use tilewise_oom::Message;
    ///
    /// let text = "Aborting compilation early because it's unlikely to have enough memory. Requires 1.75T, has 14.50G available.";
    /// assert_eq!(Message::parse(text)?.times_too_large(), Some(123));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn times_too_large(&self) -> Option<u64> {
        let largest = match self.machine() {
            Some(UntiledMachine::Gpu | UntiledMachine::Unnamed) => LARGEST_GPU,
            None if self.memory_space.as_deref() == Some("hbm") => LARGEST_TPU,
            _ => return None,
        };
        // Free memory at run time is a part of all.
        let is_of_compiler = matches!(self.verdict(), OomVerdict::Size | OomVerdict::Padding | OomVerdict::Arguments)
            && self.form != Form::RunTime;
        let limit = self.limit.as_ref().filter(|_| is_of_compiler).map(PrintedSize::bytes);
        // Every device's limit is larger.
        let room = limit.or_else(|| self.device_bytes()).map_or(largest, |room| room.max(LEAST));
        let total = self.usage.as_ref().map(|usage| usage.total.bytes());
        let needed = total.max(self.used.as_ref().map(PrintedSize::bytes))?;
        Some(needed / room).filter(|times| *times >= FAR)
    }

    /// The bytes of a pool that are in use and those asked for together, and the pool's limit, where the message prints all
    /// three and the sum exceeds the limit; without them, all that a program needs, and the pool's part of a GPU that the text names.
    ///
    /// ```
    /// use tilewise_oom::Message;
    ///
    /// let text = "cuMemAllocAsync failed to allocate 3221225472 bytes: RESOURCE_EXHAUSTED: CUDA_ERROR_OUT_OF_MEMORY\nStats: Limit: 8589934592   InUse: 6442450944 bytes";
    /// assert_eq!(Message::parse(text)?.pool_and_need(), Some([9 << 30, 8 << 30]));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn pool_and_need(&self) -> Option<[u64; 2]> {
        let fact = |name| self.facts.size(name).map(PrintedSize::bytes).filter(|bytes| *bytes > 0);
        let Some((limit, in_use)) = fact("pool").zip(fact("pool_used")) else { return self.pool_of_card_and_need() };
        let needed = in_use.checked_add(self.used.as_ref()?.bytes())?;
        (in_use <= limit && needed > limit).then_some([needed, limit])
    }

    /// Where the text names the GPU, and the message has all that its program needs.
    fn pool_of_card_and_need(&self) -> Option<[u64; 2]> {
        let needed = self.usage.as_ref()?.total.bytes();
        let card = self.job.gpu.as_ref()?.bytes;
        // Of an `11 GB` card's programs get 10.76 GiB.
        let limit = self.job.pool.bytes_of(card - card / 40)?;
        (needed > limit).then_some([needed, limit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_of_a_named_card() {
        let of = |card: &str, fraction: &str| {
            let text = format!(
                "On two {card} this fails.\nOut of memory while trying to allocate 7247809568 bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n\
                 \u{20}            parameter allocation:    1.81GiB\n  preallocated temp allocation:    6.75GiB\n              total allocation:    8.58GiB\n\
                 jax: XLA_PYTHON_CLIENT_MEM_FRACTION={fraction}"
            );
            Message::parse(&text).expect("a message").pool_and_need().map(|[needed, limit]| [needed >> 20, limit >> 20])
        };
        assert_eq!(of("2080 Ti", ".75"), Some([8785, 8236]));
        assert_eq!((of("2080 Ti", ".9"), of("RTX 3090", ".75")), (None, None));
    }
}
