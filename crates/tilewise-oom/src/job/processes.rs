//! Processes on a device, as PyTorch lists them.

use crate::prose;
use crate::text::size::PrintedSize;

/// A process that holds memory of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedProcess {
    /// Its number, that of the host even where the job runs in a container.
    pub number: u64,
    /// The memory that it holds.
    pub size: PrintedSize,
}

/// Maximum number of processes that are kept.
const MOST: usize = 64;

impl ListedProcess {
    /// The processes of a line, `Process 17653 has 19.03 GiB memory in use`.
    pub(super) fn all(line: &str) -> impl Iterator<Item = Self> {
        line.match_indices("rocess ").filter_map(|(at, word)| {
            let rest = &line[at + word.len()..];
            let (number, behind) = rest.split_at(rest.bytes().take(20).take_while(u8::is_ascii_digit).count());
            let (size, end) = PrintedSize::figure(behind.strip_prefix(" has ")?)?;
            let is_held = behind[" has ".len() + end..].starts_with(" memory in use");
            Some(Self { number: number.parse().ok()?, size }).filter(|_| is_held)
        })
    }

    /// The processes of a log, each once.
    pub(super) fn of(log: &str) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for listed in log.lines().flat_map(Self::all) {
            if found.len() < MOST && !found.iter().any(|known| known.number == listed.number) {
                found.push(listed);
            }
        }
        found
    }
}

/// The first process of a table of the host's, its command and its figure in GB: `MEM(GB) COMMAND`, `71277 398.12 ray::Train`.
pub(super) fn largest_of_table(log: &str) -> Option<(String, String)> {
    let mut lines = log.lines().skip_while(|line| !line.contains("MEM(GB)"));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    lines.nth(1).and_then(|line| {
        let mut words = line.split_whitespace().skip_while(|word| !word.contains('.'));
        let figure = words.next().filter(|figure| figure.parse::<f64>().is_ok())?;
        Some((words.next().filter(|command| command.chars().all(is_plain))?.to_owned(), figure.to_owned()))
    })
}

/// Whether a line tells that `nvidia-smi` lists no process: `nvidia-smi inside the container lists no process`. `lower` is in
/// lower case.
pub(super) fn lists_none(lower: &str) -> bool {
    const NONE: [&str; 5] =
        ["no process", "no other process", "no running process", "shows nothing", "no python process"];
    lower.lines().any(|line| line.contains("nvidia-smi") && NONE.iter().any(|none| line.contains(none)))
}

/// Whether a sentence tells that the job has its device for itself: `Nothing else runs on the card.`
pub(super) fn is_alone(lower: &str) -> bool {
    const ALONE: [&str; 13] = [
        "nothing else runs",
        "nothing else is running",
        "nothing else on the gpu",
        "nothing else uses",
        "no other process",
        "no other job",
        "card is empty",
        "gpu is empty",
        "is otherwise empty",
        "an empty card",
        "an empty gpu",
        "otherwise idle",
        "idle otherwise",
    ];
    const CONDITIONS: [&str; 4] = ["only if", "only when", "if nothing", "unless"];
    prose::tells(lower, &[&ALONE], &CONDITIONS)
}

#[cfg(test)]
mod tests {
    use super::{ListedProcess, is_alone, largest_of_table, lists_none};

    #[test]
    fn processes_that_an_error_lists() {
        let numbers = |text| ListedProcess::of(text).into_iter().map(|it| it.number).collect::<Vec<_>>();
        let text = "GPU 0 has 1 MiB free. Process 7 has 1.00 GiB memory in use. Process 17653 has 19.03 GiB memory in use. Including \
                    non-PyTorch memory, this process has 4.32 GiB memory in use.";
        assert_eq!(numbers(text), [7, 17_653]);
        let none = [
            "this process has 4.32 GiB memory in use",
            "Process x has 1.00 GiB memory in use",
            "process 7 has 2 files",
            "",
        ];
        assert!(none.iter().all(|text| numbers(text).is_empty()));
    }

    #[test]
    fn the_first_of_a_table() {
        let table = "Top 10 memory users:\nPID\tMEM(GB)\tCOMMAND\n717\t91.25\tray::Learner.run --x\n718\t1.00\tpython";
        assert_eq!(largest_of_table(table), Some(("ray::Learner.run".to_owned(), "91.25".to_owned())));
        assert_eq!((largest_of_table("PID MEM(GB) COMMAND\n"), largest_of_table("")), (None, None));
    }

    #[test]
    fn devices_of_one_job() {
        assert!(is_alone("nothing else runs on the card. why?") && is_alone("the gpu is idle otherwise, 3 gb"));
        assert!(!is_alone("nothing helps. another process is there"));
    }

    #[test]
    fn no_process_is_listed() {
        assert!(lists_none("nvidia-smi inside the container lists no process"));
        assert!(!lists_none("nvidia-smi shows four processes") && !lists_none("no process is left"));
    }
}
