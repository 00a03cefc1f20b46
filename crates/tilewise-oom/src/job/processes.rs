//! Other processes on a device, as PyTorch lists them.

use crate::text::size::PrintedSize;
use std::cmp::Reverse;

/// A process that holds memory of the device, too.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherProcess {
    /// Its number, that of the host even where the job runs in a container.
    pub number: u64,
    /// The memory that it holds.
    pub size: PrintedSize,
}

impl OtherProcess {
    /// The processes of a line, `Process 17653 has 19.03 GiB memory in use`.
    pub(super) fn all(line: &str) -> impl Iterator<Item = Self> {
        line.match_indices("rocess ").filter_map(|(at, word)| {
            let (number, behind) = line[at + word.len()..].split_once(" has ")?;
            let (size, end) = PrintedSize::figure(behind)?;
            let is_held = behind[end..].starts_with(" memory in use");
            Some(Self { number: number.parse().ok()?, size }).filter(|_| is_held)
        })
    }

    /// The process that holds most, the first of equal ones.
    pub(super) fn largest(log: &str) -> Option<Self> {
        log.lines().flat_map(Self::all).min_by_key(|other| Reverse(other.size.bytes()))
    }
}

/// Whether a line tells that `nvidia-smi` lists no process: `nvidia-smi inside the container lists no process`. `lower` is in
/// lower case.
pub(super) fn lists_none(lower: &str) -> bool {
    const NONE: [&str; 5] =
        ["no process", "no other process", "no running process", "shows nothing", "no python process"];
    lower.lines().any(|line| line.contains("nvidia-smi") && NONE.iter().any(|none| line.contains(none)))
}

#[cfg(test)]
mod tests {
    use super::OtherProcess;

    #[test]
    fn the_process_that_holds_most() {
        let largest = |text| OtherProcess::largest(text).map(|it| (it.number, it.size.text().to_owned()));
        let text = "GPU 0 has 1 MiB free. Process 7 has 1.00 GiB memory in use. Process 17653 has 19.03 GiB memory in use. Including \
                    non-PyTorch memory, this process has 4.32 GiB memory in use.";
        assert_eq!(largest(text).map(|(number, _)| number), Some(17_653));
        for none in [
            "this process has 4.32 GiB memory in use",
            "Process x has 1.00 GiB memory in use",
            "process 7 has 2 files",
            "",
        ] {
            assert_eq!(largest(none), None, "{none}");
        }
    }
}
