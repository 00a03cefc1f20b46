//! A job's use of the host's memory.

use super::{InputOption, PerUnit, SEARCHED, pool_settings::assigned, processes};
use crate::prose;
use crate::text::{tail, word};

/// The use of the host's memory, as far as a text shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Host {
    /// The option that limits the host's memory for the job or its container, and its value.
    pub limit: Option<(String, String)>,
    /// Elements of the buffer that a `tf.data` pipeline shuffles in the host's memory.
    pub shuffle_buffer: Option<u64>,
    /// Processes that each load samples for a process, if the text sets a number.
    pub workers: Option<u64>,
    /// Whether a worker of PyTorch's loader died.
    pub lost_worker: bool,
    /// Processes that each run the same function, by the call that starts them: `nprocs=8`.
    pub processes: Option<u64>,
    /// Whether a traceback or a line shows such a call.
    pub starts_processes: bool,
    /// Whether the text tells that memory, or the process, ends as something is compiled.
    pub is_compiling: bool,
    /// Options of its input pipeline that hold data.
    pub inputs: Vec<InputOption>,
    /// The growth with each of a number of parts.
    pub per_unit: Option<PerUnit>,
    /// Whether the text names a conversion of checkpoints.
    pub converts: bool,
    /// Whether the job is a script that converts weights, by the name of its file.
    pub is_converter: bool,
    /// The process that takes the most, by a table: its command, and its figure in GB.
    pub largest: Option<(String, String)>,
    /// Whether a sentence tells that nothing of it is to stay there.
    pub is_left: bool,
    /// Whether the text tells that higher limits of its memory ended the same.
    pub is_limit_in_vain: bool,
    /// Bytes of a program's buffers, by the compiler's report of them.
    pub program_bytes: Option<u64>,
}

/// Calls that start a process for each device, and the functions below them in tracebacks.
const STARTS: [&str; 4] = ["xmp.spawn(", "mp.spawn(", "in start_processes", "notebook_launcher("];

/// Signs of a conversion of checkpoints: of scripts, and of sentences.
const CONVERSIONS: [&str; 16] = [
    "onverting a checkpoint",
    "checkpoint_conversion",
    "convert_hf",
    "convert_ckpt",
    "convert_checkpoint",
    "convert_weights",
    "convert_model",
    "to_maxtext",
    "mistral_ckpt",
    "onverting checkpoint",
    "onverting weights",
    "onverting model",
    "onvert a checkpoint",
    "onvert the checkpoint",
    "heckpoint conversion",
    "converter",
];

impl Host {
    pub(crate) fn of(log: &str) -> Self {
        let (limit, shuffle_buffer, workers) = (limit(log), shuffle_buffer(log), highest(log, "num_workers"));
        Self {
            limit,
            shuffle_buffer,
            workers,
            lost_worker: log.contains("DataLoader worker")
                && !["workers to 0", "workers=0", "workers 0", "workers: 0", "workers = 0"]
                    .iter()
                    .any(|none| log.contains(none)),
            processes: highest(log, "nprocs"),
            starts_processes: STARTS.iter().any(|call| log.contains(call)),
            is_compiling: is_compiling(log),
            inputs: InputOption::all(log),
            per_unit: PerUnit::of(log),
            converts: CONVERSIONS.iter().any(|sign| log.contains(sign)),
            is_converter: is_converter(log),
            largest: processes::largest_of_table(tail(log, SEARCHED)),
            is_left: is_left(log),
            is_limit_in_vain: is_limit_in_vain(log),
            program_bytes: log.lines().filter_map(program_bytes).max(),
        }
    }
}

/// Whether a text runs a script with the name of a conversion: `python ./to_hf_weights.py`, `File "convert_checkpoint.py"`.
fn is_converter(log: &str) -> bool {
    let is_quote = |c: char| "\"'`,:()".contains(c);
    tail(log, SEARCHED).split_whitespace().map(|word| word.trim_matches(is_quote)).any(|path| {
        let name = path.rsplit('/').next().unwrap_or(path).strip_suffix(".py");
        let is_own = !["site-packages", "dist-packages"].iter().any(|folder| path.contains(folder));
        is_own && name.is_some_and(|name| ["convert", "to_hf", "_to_"].iter().any(|sign| name.contains(sign)))
    })
}

/// Whether a sentence tells of an end at a limit, and again at higher ones: `killed at 850 GiB and again at 909 and 940`.
fn is_limit_in_vain(log: &str) -> bool {
    const LIMITS: [&str; 5] = ["limit", "request", "memory", "gib", " gb"];
    const AGAIN: [&str; 5] = ["again at", "also at", "also with", "again with", "whatever the limit"];
    let lower = tail(log, SEARCHED).to_ascii_lowercase();
    prose::tells(&lower, &[&LIMITS, &AGAIN, &["kill", "oom"]], &[])
}

/// Whether a sentence denies that values stay on the host, or tells that they come back: `nothing should remain on the host`.
fn is_left(log: &str) -> bool {
    const STAY: [&str; 6] = ["stay", "remain", "end up", "be kept", "belong", "be left"];
    const BACK: [&str; 4] = ["back to the device", "back on the device", "back to the tpu", "back to hbm"];
    let lower = tail(log, SEARCHED).to_ascii_lowercase();
    let denies = ["nothing", "none", "not ", "n't ", "no "];
    prose::tells(&lower, &[&denies, &STAY, &["host"]], &[]) || prose::tells(&lower, &[&BACK], &[])
}

/// The bytes in a line of XLA's report of a program's buffers: `Total bytes used: 240526557204 (224.01GiB)`.
fn program_bytes(line: &str) -> Option<u64> {
    let (_, behind) = line.split_once("Total bytes used: ")?;
    behind[..behind.bytes().take_while(u8::is_ascii_digit).count()].parse().ok()
}

/// The option that limits a job's or a container's memory, and its value: `--mem`, `200G`; `None` for several values.
fn limit(text: &str) -> Option<(String, String)> {
    /// Options of Slurm and of Docker; `-m` is one in a command of the latter alone.
    const OPTIONS: [&str; 3] = ["--mem", "--memory", "-m"];
    let of_line = |line: &str| {
        let is_of_docker = line.contains("docker ") || line.contains("podman ");
        let mut words = line.split_whitespace().flat_map(|word| word.splitn(2, '=')).peekable();
        std::iter::from_fn(move || {
            let name = words.next()?;
            let is_option = OPTIONS.contains(&name) && (name != "-m" || is_of_docker);
            Some(
                words
                    .peek()
                    .filter(|value| is_option && is_amount(value))
                    .map(|value| (name.to_owned(), (*value).to_owned())),
            )
        })
        .flatten()
        .collect::<Vec<_>>()
    };
    let mut found = tail(text, SEARCHED).lines().flat_map(of_line);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// Whether a value is of memory: `200G`, `16gb`, `512Gi`.
fn is_amount(value: &str) -> bool {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let unit = value[digits..].to_ascii_lowercase();
    digits > 0 && ["m", "mb", "mi", "g", "gb", "gi", "t", "tb", "ti"].contains(&unit.as_str())
}

/// The size in a line of `tf.data`'s shuffle: `Filling up shuffle buffer (this may take a while): 61877343 of 100000000`.
fn shuffle_buffer(log: &str) -> Option<u64> {
    let (_, behind) = log.rsplit_once("Filling up shuffle buffer")?;
    let (_, all) = behind.lines().next()?.split_once(" of ")?;
    all[..all.bytes().take_while(u8::is_ascii_digit).count()].parse().ok()
}

/// Whether a sentence tells of memory, or of an end, as something is compiled, or a line calls the compiler: `.compile()`.
fn is_compiling(text: &str) -> bool {
    const ENDS: [&str; 10] = [" kill", "memory", " ram", " gb", "gib", "oom", " dies", "crash", "hours", "minutes"];
    let lower = tail(text, SEARCHED).to_ascii_lowercase();
    let names = |sentence: &str| {
        let mut words = word::all(sentence).map(|(start, end)| &sentence[start..end]);
        words.any(|word| ["compile", "compiles", "compiling", "compilation", "compiler"].contains(&word))
    };
    // The compiler's own message is of the device.
    let is_other = |sentence: &str| ["torch.compile", "permanent error"].iter().any(|other| sentence.contains(other));
    let is_told =
        |sentence: &str| names(sentence) && !is_other(sentence) && ENDS.iter().any(|end| sentence.contains(end));
    // A program whose sizes are printed has been compiled.
    let is_compiled =
        ["total bytes used", "memory_analysis", "memory-usage-report"].iter().any(|sign| lower.contains(sign));
    lower.contains(".compile()") && !is_compiled || prose::sentences(&lower).any(is_told)
}

/// The highest number above one that a name is set to: `num_workers=8`.
fn highest(log: &str, name: &str) -> Option<u64> {
    let all = log.match_indices(name).filter_map(|(at, name)| assigned(&log[at + name.len()..])?.parse().ok());
    let most = all.max()?;
    (most > 1).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_jobs_and_containers() {
        let of = |text: &str| limit(text).map(|(name, value)| format!("{name} {value}"));
        assert_eq!(of("#SBATCH --gres=gpu:8 --mem=200G --cpus-per-task=64").as_deref(), Some("--mem 200G"));
        assert_eq!(of("docker run -m 16g --gpus all x").as_deref(), Some("-m 16g"));
        assert_eq!((of("python -m 16g"), of("--mem=2G\n--mem=4G"), of("--mem 0"), of("")), (None, None, None, None));
    }

    #[test]
    fn limits_and_reports() {
        assert!(is_limit_in_vain("It is OOM-killed at an 850 GiB request and again at 909 and 940."));
        assert!(is_converter("python ./to_hf_weights.py --x") && is_converter("File \"a/convert_ckpt.py\", line 3"));
        assert!(!is_converter("File \"site-packages/convert.py\"") && !is_converter("a converter in train.py"));
        assert!(is_left("None of it should remain on the host.") && is_left("It goes back to the device."));
        assert!(!is_left("It stays on the host.") && !is_left("no error on the host"));
        assert!(!is_limit_in_vain("it is killed at the limit of 4 GB") && !is_limit_in_vain("again at step 4"));
        assert_eq!(program_bytes("Total bytes used: 240526557204 (224.01GiB)"), Some(240_526_557_204));
        assert_eq!((program_bytes("Total bytes used: é"), program_bytes("")), (None, None));
    }

    #[test]
    fn compilations() {
        assert!(is_compiling("It is killed while compiling the step.") && is_compiling("jit(f).lower(x).compile()"));
        assert!(!is_compiling("The compilation cache is on. It is killed.") && !is_compiling("torch.compile: memory"));
    }

    #[test]
    fn shuffles() {
        let line = "Filling up shuffle buffer (this may take a while): 61877343 of 100000000\nKilled";
        assert_eq!((shuffle_buffer(line), shuffle_buffer("of 7")), (Some(100_000_000), None));
    }

    #[test]
    fn workers_of_loaders() {
        let workers = |text: &str| highest(text, "num_workers");
        assert_eq!((workers("num_workers=8, num_workers: 4"), workers("num_workers=0")), (Some(8), None));
    }
}
