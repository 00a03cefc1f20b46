//! A GPU's pool, as XLA's and TensorFlow's allocator logs it beside a message: `BFCAllocator::DumpMemoryLog` and
//! `RenderOccupancy` in xla/tsl/framework/bfc_allocator.cc.

/// Equal chunks in use of a GPU's pool: `7 Chunks of size 1644167168 totalling 10.72GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunks {
    /// Their number.
    pub count: u64,
    /// Bytes of each.
    pub bytes: u64,
}

impl Chunks {
    /// Bytes of all.
    #[must_use]
    pub fn total_bytes(self) -> u64 {
        self.count.saturating_mul(self.bytes)
    }

    fn read(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" Chunks of size ")?;
        let count = before.rsplit(' ').next()?.parse().ok()?;
        let bytes = after.split(' ').next()?.parse().ok()?;
        Some(Self { count, bytes })
    }
}

/// The chunks of the last list in a log, those with the most bytes first.
pub(crate) fn chunks(log: &str) -> Vec<Chunks> {
    let read = log.lines().rev().map(Chunks::read).skip_while(Option::is_none);
    let mut found: Vec<Chunks> = read.map_while(|chunks| chunks).collect();
    found.sort_by_key(|chunks| std::cmp::Reverse(chunks.total_bytes()));
    found
}

/// The percentage of a pool in use, by the bar of 100 signs in a log: `*` and `x` of memory in use, `_` of free memory.
pub(crate) fn filled_percent(log: &str) -> Option<u64> {
    let bars = log.lines().rev().filter_map(|line| line.split_whitespace().next_back());
    // Who copies a log may lose some.
    let is_bar = |word: &&str| (90..=100).contains(&word.len()) && word.bytes().all(|sign| b"*x_".contains(&sign));
    let bar = bars.into_iter().find(is_bar)?;
    let used = bar.bytes().filter(|sign| *sign != b'_').count();
    u64::try_from(used * 100 / bar.len()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_list_of_a_log_counts() {
        let log = "I bfc_allocator.cc:641] 9 Chunks of size 512 totalling 4.5KiB\n\
                   OOM\n\
                   I bfc_allocator.cc:641] 2 Chunks of size 8388608 totalling 16.00MiB\n\
                   I bfc_allocator.cc:641] 7 Chunks of size 1644167168 totalling 10.72GiB\n\
                   I bfc_allocator.cc:645] Sum Total of in-use chunks: 13.89GiB\n";
        let found: Vec<(u64, u64)> = chunks(log).iter().map(|chunks| (chunks.count, chunks.bytes)).collect();
        assert_eq!(found, [(7, 1_644_167_168), (2, 8_388_608)]);
        assert_eq!(chunks("a Chunks of size b"), []);
    }
}
