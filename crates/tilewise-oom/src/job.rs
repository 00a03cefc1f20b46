//! The job beside a message: whether steps ran before the failure, its model's size, and how its process takes a GPU's memory.

use crate::text::{tail, word};

/// Bytes that are searched: a log ends near its error.
const SEARCHED: usize = 256 << 10;

/// Words that count what a job repeats.
const TURNS: [&str; 10] =
    ["step", "iteration", "iter", "epoch", "round", "episode", "generation", "trial", "batch", "time"];

/// Words that count how long a job ran.
const HOURS: [&str; 3] = ["hour", "day", "week"];

/// Words between a verb and a number of turns that are past.
const PAST: [&str; 6] = ["after", "completed", "finished", "succeeded", "worked", "ran"];

/// Numbers in words.
const SEVERAL: [&str; 16] = [
    "few", "several", "many", "hundreds", "two", "three", "four", "five", "six", "ten", "twenty", "thirty", "forty",
    "fifty", "sixty", "hundred",
];

/// The settings of the memory that a process takes of a GPU, where the text shows them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PoolSettings {
    /// The variable that limits the pool, and its value, a part of the GPU's memory: `XLA_PYTHON_CLIENT_MEM_FRACTION`, `.10`.
    pub fraction: Option<(String, String)>,
    /// The variable that takes the pool away, and its value: `XLA_PYTHON_CLIENT_ALLOCATOR`, `platform`.
    pub unpooled: Option<(String, String)>,
    /// Bytes of one GPU that TensorFlow set aside in this process, by its own word.
    pub tensorflow_bytes: Option<u64>,
}

impl PoolSettings {
    pub(crate) fn of(text: &str) -> Self {
        let set = |is: fn(&str) -> bool| {
            word::all(text).find_map(|(start, end)| {
                let name = &text[start..end];
                let value = is(name).then(|| assigned(&text[end..])).flatten()?;
                Some((name.to_owned(), value.to_owned()))
            })
        };
        let is_fraction = |value: &(String, String)| value.1.parse::<f64>().is_ok_and(|part| 0.0 < part && part <= 1.0);
        Self {
            fraction: set(|name| name.ends_with("CLIENT_MEM_FRACTION") || name == "PJRT_ALLOCATOR_FRACTION")
                .filter(is_fraction),
            unpooled: set(|name| name.ends_with("CLIENT_ALLOCATOR")).filter(|(_, value)| value == "platform"),
            tensorflow_bytes: text.lines().filter_map(bytes_of_tensorflow).max(),
        }
    }

    /// The part of the memory that the pool may have, if that is less than most of it.
    #[must_use]
    pub fn small_fraction(&self) -> Option<(&str, &str)> {
        /// A part that JAX takes without a setting.
        const DEFAULT: f64 = 0.75;
        let (name, value) = self.fraction.as_ref().filter(|_| self.unpooled.is_none())?;
        value.parse::<f64>().is_ok_and(|part| part < DEFAULT).then_some((name, value))
    }
}

/// The bytes of a line in which TensorFlow's runtime opens a GPU: `Created device /job:localhost/replica:0/task:0/device:GPU:0
/// with 21736 MB memory` (`BaseGPUDeviceFactory::CreateGPUDevice`).
fn bytes_of_tensorflow(line: &str) -> Option<u64> {
    let (_, device) = line.split_once("Created device /job:")?;
    let (name, behind) = device.split_once(" with ")?;
    let megabytes = behind.split_once(" MB memory")?.0.parse::<u64>().ok()?;
    name.contains("GPU:").then(|| megabytes.saturating_mul(1 << 20))
}

/// The value behind a variable's name: `=.10`, `'] = "0.3"`, `", "platform"`.
pub(crate) fn assigned(behind: &str) -> Option<&str> {
    let rest = behind.trim_start_matches(['"', '\'', ']', ' ']);
    let rest = rest.strip_prefix(['=', ':', ','])?.trim_start_matches([' ', '"', '\'']);
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_')).unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches('.')).filter(|value| !value.is_empty())
}

/// The option that limits a job's or a container's memory, and its value: `--mem`, `200G`; `None` for several values.
pub(crate) fn host_limit(text: &str) -> Option<(String, String)> {
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

/// The model that a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Model {
    /// Number of its parameters.
    pub parameters: u64,
    /// Whether the text speaks of training.
    pub is_trained: bool,
}

impl Model {
    /// The model of a text that names one size: `gemma-2b`, `1.1 Billion Parameters`, `7B parameters`.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = tail(text, SEARCHED);
        let mut sizes = text.match_indices(['b', 'B']).filter_map(|(at, _)| parameters(text, at));
        let parameters = sizes.next()?;
        let is_trained = ["train", "Train"].iter().any(|word| text.contains(word));
        sizes.all(|other| other == parameters).then_some(Self { parameters, is_trained })
    }

    /// Bytes of its weights in bfloat16; in training, with gradients and Adam's moments, all in f32.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.parameters.saturating_mul(if self.is_trained { 16 } else { 2 })
    }
}

/// The number of parameters before the letter at `at`; `None` for a size in bytes, `8B`.
fn parameters(text: &str, at: usize) -> Option<u64> {
    /// Digits of a size.
    const MOST: usize = 12;
    /// Letters before it that are looked at for the name of a family.
    const FAMILY: usize = 16;

    let (before, behind) = (&text[..at], &text[at + 1..]);
    let is_word = behind.get(..6).is_some_and(|rest| rest.eq_ignore_ascii_case("illion"));
    let before = if is_word { before.trim_end_matches(' ') } else { before };
    let digits = before.bytes().rev().take(MOST).take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (name, number) = before.split_at(before.len() - digits);
    let behind = if is_word { behind[6..].trim_start_matches('s') } else { behind };
    if behind.starts_with(|letter: char| letter.is_alphanumeric()) {
        return None;
    }
    let next = behind.trim_start_matches([' ', '-']).get(..5).unwrap_or_default();
    // Parts of hexadecimal identifiers end so, too.
    let is_family = |letter: char| letter.is_ascii_alphabetic() && letter.to_ascii_lowercase() > 'f';
    let is_named = name.ends_with(['-', '_']) && name.chars().rev().take(FAMILY).any(is_family);
    if !is_named && !next.eq_ignore_ascii_case("param") && !next.eq_ignore_ascii_case("model") {
        return None;
    }
    let billions = number.parse::<f64>().ok().filter(|billions| (0.05..5000.0).contains(billions))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0.05 to 5000 billions")]
    Some((billions * 1e9) as u64)
}

/// The use of a model, where the text shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Run {
    /// A gradient is taken.
    Training,
    /// No gradient is taken.
    Inference,
}

impl Run {
    pub(crate) fn of(text: &str) -> Option<Self> {
        /// Signs, the surest first.
        const SIGNS: [(&[&str], Run); 3] = [
            (&["no_grad(", "inference_mode("], Run::Inference),
            (
                &[
                    ".backward(",
                    "training_step",
                    "optimizer.step",
                    "value_and_grad",
                    "GradientTape",
                    "Trainer",
                    "train.py",
                    "train_",
                    "fine-tun",
                    "finetun",
                    "autograd",
                ],
                Run::Training,
            ),
            (&["inference", "predict", ".generate("], Run::Inference),
        ];
        let text = tail(text, SEARCHED).as_bytes();
        let has = |sign: &&str| memchr::memmem::find(text, sign.as_bytes()).is_some();
        SIGNS.iter().find(|(signs, _)| signs.iter().any(has)).map(|(_, run)| *run)
    }
}

/// The rank whose own line tells that it asked the first GPU, where several other processes are: each rank should have its
/// own.
pub(crate) fn rank_on_first(log: &str) -> Option<u64> {
    log.lines().filter(|line| line.contains(" GPU 0 has a total ")).find_map(|line| {
        let (rank, message) = line.split_once("[rank")?.1.split_once(']')?;
        let others = message.matches(" Process ").count() + message.matches(" process ").count();
        rank.parse().ok().filter(|rank| *rank > 0 && others > 1)
    })
}

/// Whether a text tells of steps that ran before the failure: `step 1200`, `Epoch 3/10`, `after a few iterations`.
pub(crate) fn has_run(text: &str) -> bool {
    let text = tail(text, SEARCHED);
    if text.lines().any(is_bar_of_steps) {
        return true;
    }
    let words: Vec<(usize, usize)> = word::all(text).collect();
    let lower =
        |at: usize| words.get(at).map(|(start, end)| text[*start..*end].to_ascii_lowercase()).unwrap_or_default();
    (0..words.len()).any(|at| {
        let name = lower(at);
        let singular = name.strip_suffix('s').unwrap_or(&name);
        let is_turn = TURNS.contains(&singular);
        if !is_turn && !HOURS.contains(&singular) {
            return false;
        }
        if singular == name && is_turn {
            // `step 12` and `step: 12`, in a line of a log; `batch 32` and `epoch=10` are settings, `time: 12` is a clock's.
            return !["batch", "time"].contains(&singular) && is_number(text, &words, at + 1);
        }
        let before: Vec<String> = (at.saturating_sub(4)..at).map(lower).collect();
        let is_past = before.iter().any(|word| PAST.contains(&word.as_str()));
        let is_counted = before.last().is_some_and(|count| {
            SEVERAL.contains(&count.as_str()) || count.parse::<u64>().is_ok_and(|count| count > 0)
        });
        is_past && is_counted
    })
}

/// Whether a line of a log counts what a job repeats: `step=1100`, `Evaluation  [  10/2500]`.
pub(crate) fn counts_turns(line: &str) -> bool {
    let is_bar = |at: usize| {
        let before = line[..at].trim_end().ends_with(|c: char| c.is_ascii_digit());
        before && line[at + 1..].trim_start().starts_with(|c: char| c.is_ascii_digit())
    };
    let is_turn = |(start, end): (usize, usize)| {
        let lower = line[start..end].to_ascii_lowercase();
        let behind = line[end..].trim_start_matches([' ', '=', ':', '#', '[']);
        (lower == "it" || TURNS.contains(&&*lower)) && behind.starts_with(|c: char| c.is_ascii_digit())
    };
    line.match_indices('/').any(|(at, _)| is_bar(at)) || word::all(line).any(is_turn)
}

/// Whether a line is a bar of steps of which some are done, `1/300 [12:22<61:42:17, 742.93s/it]`, and not of what is loaded
/// first.
fn is_bar_of_steps(line: &str) -> bool {
    /// Words for what comes before steps, without their first letters, which may be capitals.
    const LOADED: [&str; 7] = ["oad", "etch", "Map", "okeniz", "shard", "Generating", "ompil"];

    let Some((before, behind)) = line.split_once(" [").filter(|(_, behind)| behind.contains('<')) else { return false };
    let is_timed = ["s/it]", "it/s]", "s/it,", "it/s,"].iter().any(|unit| behind.contains(unit));
    let count = before.rsplit(' ').next().and_then(|count| count.split_once('/'));
    let count = count.and_then(|(done, all)| Some((done.parse::<u64>().ok()?, all.parse::<u64>().ok()?)));
    is_timed
        && count.is_some_and(|(done, all)| (1..all).contains(&done))
        && !LOADED.iter().any(|word| line.contains(word))
}

/// Whether the next word is a number above one, with no more than a space, a colon, ` #` or ` = ` before it.
fn is_number(text: &str, words: &[(usize, usize)], at: usize) -> bool {
    let (Some((_, before)), Some((start, end))) = (words.get(at - 1), words.get(at)) else { return false };
    let between = &text[*before..*start];
    matches!(between, " " | ": " | ":" | " #" | " = ") && text[*start..*end].parse::<u64>().is_ok_and(|count| count > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_before_a_failure() {
        for text in [
            "it failed at round 26 with",
            "Epoch 3/10 loss=2.1",
            "I0301 train.py:10] step: 1200, loss: 1.2",
            "OOM after a few iterations",
            "after 500 steps it dies",
            "it ran about 7 hours",
            "the same allocation having succeeded sixty times",
            "  0%|          | 1/300 [12:22<61:42:17, 742.93s/it]",
        ] {
            assert!(has_run(text), "{text}");
        }
        // Settings, first steps, layers.
        let loading = "Loading checkpoint shards:  50%|███  | 1/2 [00:10<00:10, 10.0s/it]";
        for text in [
            loading,
            "  0%| | 0/300 [00:00<?, ?it/s]",
            "steps=1000",
            "num_epochs 10",
            "epoch=10",
            "batch 32",
            "Epoch 1/10",
            "step_12",
            "step 0",
            "",
        ] {
            assert!(!has_run(text), "{text}");
        }
    }

    #[test]
    fn a_rank_on_the_first_gpu() {
        let of = |rank: u64, gpu: u64, others: &str| {
            rank_on_first(&format!(
                "[rank{rank}]: Tried to allocate 64.00 MiB. GPU {gpu} has a total capacity of 79.15 GiB.{others}"
            ))
        };
        let others = " Process 70410 has 10.12 GiB memory in use. Process 70411 has 9.87 GiB memory in use.";
        assert_eq!(of(5, 0, others), Some(5));
        assert_eq!((of(0, 0, others), of(5, 5, others), of(5, 0, "")), (None, None, None));
    }

    #[test]
    fn limits_of_jobs_and_containers() {
        let of = |text: &str| host_limit(text).map(|(name, value)| format!("{name} {value}"));
        assert_eq!(of("#SBATCH --gres=gpu:8 --mem=200G --cpus-per-task=64").as_deref(), Some("--mem 200G"));
        assert_eq!(of("docker run -m 16g --gpus all x").as_deref(), Some("-m 16g"));
        assert_eq!((of("python -m 16g"), of("--mem=2G\n--mem=4G"), of("--mem 0"), of("")), (None, None, None, None));
    }

    #[test]
    fn sizes_of_models() {
        let of = |text: &str| Model::of(text).map(|model| (model.parameters / 1_000_000, model.is_trained));
        assert_eq!(of("Model Contain  1.1 Billion Parameters, train.py"), Some((1100, true)));
        assert_eq!(of("1.100048384  Billion Parameters"), Some((1100, false)));
        assert_eq!(of("--model google/gemma-2b"), Some((2000, false)));
        assert_eq!(of("a 7B parameter model"), Some((7000, false)));
        // Bytes, several models, other words.
        for none in [
            "Size: 8B",
            "0B reserved",
            "gemma-2b or llama-7b",
            "2bit",
            "x-4bfloat",
            "-2b",
            "é-b",
            "b",
            "4f89-412b-9a0c",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn settings_of_the_pool() {
        let of = |text: &str| PoolSettings::of(text);
        let small = |text: &str| of(text).small_fraction().map(|(name, value)| format!("{name} {value}"));
        let name = "XLA_PYTHON_CLIENT_MEM_FRACTION";
        assert_eq!(small(&format!("export {name}=.10\n")), Some(format!("{name} .10")));
        assert_eq!(small(&format!("os.environ[\"{name}\"] = \"0.3\"")), Some(format!("{name} 0.3")));
        assert_eq!(small("`XLA_CLIENT_MEM_FRACTION=0.9`"), None);
        assert_eq!(small(&format!("{name} is not set")), None);
        let opened = "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 21736 MB memory:  -> device: 0";
        assert_eq!(of(opened).tensorflow_bytes, Some(21_736 << 20));
        let unpooled = of(&format!("{name}=.3 XLA_PYTHON_CLIENT_ALLOCATOR=platform"));
        assert!(unpooled.unpooled.is_some() && unpooled.small_fraction().is_none());
    }
}
