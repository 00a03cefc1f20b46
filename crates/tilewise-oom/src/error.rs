//! The error for a text without a message.

use crate::job::Gpu;
use std::fmt;

/// The text holds no message about memory.
///
/// `Display` names the kind of text found instead, if known.
///
/// ```
/// use tilewise_oom::Message;
///
/// let error = Message::parse("Segmentation fault").unwrap_err();
/// assert_eq!(error.as_str(), "not_an_oom_message");
/// assert_eq!(error.to_string(), "no message about memory found; the last error of the text is `Segmentation fault`");
/// let error = Message::parse("The TPU is already in use by process with pid 37").unwrap_err();
/// assert!(error.to_string().starts_with("not about memory: another process holds the TPU"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    found: Found,
}

/// The kind of a text without a message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Empty,
    Program,
    /// An error about something else, with its cause and the first step.
    Other(&'static str),
    /// The share of a GPU that JAX sets aside, and no error.
    SetAside,
    /// A compiled step that donates nothing, and no error.
    Undonated,
    /// An error of this line.
    Error(String),
    Unknown,
}

/// Signs of errors that come where memory is looked for, with their cause and the first step.
const OTHERS: [(&[&str], &str); 10] = [
    (
        &["libdevice not found", "libdevice is required"],
        "XLA's compiler for GPUs doesn't find `libdevice.10.bc` of CUDA: name CUDA's folder (`XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda`), \
         or install it (`pip install nvidia-cuda-nvcc-cu12`)",
    ),
    (
        &["MemoryStats is only supported for addressable"],
        "only a process's own devices tell what they hold: ask `jax.local_devices()`, not `jax.devices()`",
    ),
    (
        &["TPU is already in use", "libtpu.so already in use", "libtpu_lockfile"],
        "another process holds the TPU: end it (`ps aux | grep python`), and remove `/tmp/libtpu_lockfile` if none is left",
    ),
    (
        &["No valid engine configs"],
        "cuDNN has no algorithm for this operation, its types and its shapes: update JAX and cuDNN, or take another \
         implementation (`implementation='xla'` of `jax.nn.dot_product_attention`)",
    ),
    (
        &["Loaded runtime CuDNN library"],
        "another cuDNN is loaded than the one JAX was built with: install at least the version that the line names (`pip install -U \
         'jax[cuda12]'`, with conda `cudnn`), and keep older ones out of `LD_LIBRARY_PATH`",
    ),
    (
        // Of backends that it only tries, a log has the line without the error.
        &["RuntimeError: Unable to initialize backend", "(set JAX_PLATFORMS"],
        "JAX finds no such device: `JAX_PLATFORMS` and the installed plugin decide (`pip install 'jax[tpu]'`, `'jax[cuda]'`)",
    ),
    (
        &["device-side assert triggered"],
        "an index is out of bounds in a CUDA kernel, and the error is reported late: compare the largest token or label with the \
         vocabulary or the classes of the model (`CUDA_LAUNCH_BLOCKING=1` shows the operation)",
    ),
    (
        &["illegal memory access was encountered", "CUDA_ERROR_ILLEGAL_ADDRESS"],
        "a CUDA kernel reached outside of its arrays, a defect of the kernel: take another version of the library, the last that worked \
         or the newest (`CUDA_LAUNCH_BLOCKING=1` shows the operation)",
    ),
    (
        &["There is no more capacity in the zone", "ZONE_RESOURCE_POOL_EXHAUSTED"],
        "the zone has no such machine free, and no job ran: try another zone or type, or queue the request",
    ),
    (
        &["DEADLINE_EXCEEDED"],
        "a process didn't answer in time: start all that the job counts, and look for the first error in their logs",
    ),
];

impl Error {
    /// A stable name in snake case, for machines.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        "not_an_oom_message"
    }

    /// Whether the text is an error about something else, of which the error's own text has the first step.
    #[must_use]
    pub fn is_about_another(&self) -> bool {
        matches!(self.found, Found::Other(_) | Found::SetAside | Found::Undonated)
    }

    /// The text's error about something else, with its cause and the first step if these are known.
    pub(crate) fn other(text: &str) -> Option<String> {
        match Self::of(text).found {
            Found::Other(cause) => Some(cause.to_owned()),
            Found::Error(line) => Some(format!("`{line}`")),
            _ => None,
        }
    }

    /// The error for a text, with its kind if known.
    pub(crate) fn of(text: &str) -> Self {
        let other = || {
            let is_there = |(signs, _): &&(&[&str], &str)| signs.iter().any(|sign| text.contains(sign));
            OTHERS.iter().find(is_there).map(|(_, cause)| Found::Other(cause))
        };
        let found = match () {
            () if text.trim().is_empty() => Found::Empty,
            () if other().is_none() && text.contains("HloModule ") => Found::Program,
            () => other()
                .or_else(|| is_set_aside(text).then_some(Found::SetAside))
                .or_else(|| is_undonated(text).then_some(Found::Undonated))
                .or_else(|| last_error(text).map(Found::Error))
                .unwrap_or(Found::Unknown),
        };
        Self { found }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Found::Other(cause) = &self.found {
            return write!(f, "not about memory: {cause}");
        }
        if self.found == Found::SetAside {
            return f.write_str(
                "no memory ran out: JAX sets three quarters of a GPU aside as it first uses it, older versions nine tenths, whatever is \
                 needed (`XLA_PYTHON_CLIENT_PREALLOCATE=false` lets it grow with what is needed)",
            );
        }
        if self.found == Found::Undonated {
            return f.write_str(
                "the text has no error; its compiled step donates nothing, so that the state before it and the one after it are held at once: \
                 weights and an optimizer's moments twice (`donate_argnums` of `jax.jit` and `nnx.jit`, of the state's arguments)",
            );
        }
        f.write_str("no message about memory found")?;
        match &self.found {
            Found::Empty => f.write_str(" (the text is empty)"),
            Found::Program => f.write_str(" (this looks like HLO text; audit it instead)"),
            Found::Error(line) => write!(f, "; the last error of the text is `{line}`"),
            _ => Ok(()),
        }
    }
}

/// The last line of an error: Python's, with the name of its class, one with a status of XLA's, or a word of a process that ended.
pub(crate) fn last_error(text: &str) -> Option<String> {
    /// Characters of a line that are repeated.
    const MOST: usize = 160;
    const ENDED: [&str; 4] = ["Segmentation fault", "Fatal Python error", "Bus error", "Illegal instruction"];
    let is_class = |line: &str| {
        let name = line.split([':', '(']).next().unwrap_or_default();
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '.' || c == '_') && !name.is_empty();
        is_name && (name.ends_with("Error") || name.ends_with("Exception")) && name.len() < line.len()
    };
    let error = |line: &'_ str| match status(line) {
        Some(at) => Some(at),
        None => (is_class(line) || ENDED.iter().any(|it| line.contains(it))).then_some(0),
    };
    let line = text.lines().rev().map(str::trim).find_map(|line| line.get(error(line)?..))?;
    Some(line.chars().take(MOST).map(|c| if c == '`' || c.is_control() { '\'' } else { c }).collect())
}

/// The place of a status of `absl::Status` in a line, of those that end a job.
fn status(line: &str) -> Option<usize> {
    const STATUSES: [&str; 7] = [
        "INVALID_ARGUMENT: ",
        "FAILED_PRECONDITION: ",
        "INTERNAL: ",
        "UNIMPLEMENTED: ",
        "UNAVAILABLE: ",
        "DEADLINE_EXCEEDED: ",
        "ABORTED: ",
    ];
    STATUSES.iter().filter_map(|status| line.find(status)).min()
}

/// Whether a text on memory has the code of a step of JAX's that updates a state, and donates none.
fn is_undonated(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_step = ["@jax.jit", "@nnx.jit", "@jit", "@partial(jax.jit"].iter().any(|sign| text.contains(sign));
    let has_update = ["optimizer.update(", "apply_gradients(", "apply_updates("].iter().any(|sign| text.contains(sign));
    let is_of_memory = ["memory", " gb", "vram", "hbm"].iter().any(|word| lower.contains(word));
    let has_error = ["error", "exception", "traceback"].iter().any(|word| lower.contains(word));
    is_step && has_update && is_of_memory && !has_error && !lower.contains("donate")
}

/// Whether `nvidia-smi` shows the share of a GPU in use that JAX sets aside, and the context beside it: `61690MiB / 81559MiB`.
fn is_set_aside(text: &str) -> bool {
    if is_share_told(text) || is_share_of_all(text) {
        return true;
    }
    let number = |digits: &str| digits.parse::<u64>().ok().filter(|number| *number > 0);
    // Nine tenths may be another job's.
    let shares = if text.contains("jax") { [740..790, 890..930] } else { [740..790, 0..0] };
    text.to_ascii_lowercase().contains("nvidia-smi")
        && text.match_indices("MiB /").any(|(at, sign)| {
            let used = text[..at].rsplit(|c: char| !c.is_ascii_digit()).next().and_then(number);
            let behind = text[at + sign.len()..].trim_start();
            let all = behind.split_once("MiB").and_then(|(digits, _)| number(digits));
            used.zip(all).is_some_and(|(used, all)| {
                let share = used.saturating_mul(1000) / all;
                shares.iter().any(|part| part.contains(&share))
            })
        })
}

/// Whether a text on JAX tells that three quarters of a GPU that it names are in use: `more than 30GB on my A100-40GB`.
fn is_share_told(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_of_jax = ["jax", "flax"].iter().any(|name| lower.contains(name));
    let Some(gpu) = Gpu::of(text).filter(|_| is_of_jax) else { return false };
    let is_of_use = |line: &&str| ["nvidia-smi", "vram", "gpu memory"].iter().any(|word| line.contains(word));
    let figures =
        lower.lines().filter(is_of_use).flat_map(|line| line.match_indices("gb").map(move |(at, _)| &line[..at]));
    let used = figures.filter_map(|before| {
        let before = before.trim_end();
        let start = before.rfind(|c: char| !(c.is_ascii_digit() || c == '.')).map_or(0, |at| at + 1);
        before.get(start..)?.parse::<f64>().ok()
    });
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let all = (gpu.bytes >> 30) as f64;
    used.into_iter().any(|used| (0.74..0.79).contains(&(used / all)))
}

/// Whether a text on JAX has three quarters in use of each of several cards: `8G/11G`, `18G/24G`.
fn is_share_of_all(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    if !lower.contains("jax") || !lower.contains("gpu") {
        return false;
    }
    let figure = |token: &str| {
        let digits = token.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(token.len());
        let number = token[..digits].parse::<f64>().ok()?;
        ["g", "gb", "gib"].contains(&&token[digits..]).then_some(number)
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let pairs = lower.match_indices('/').filter_map(|(at, _)| {
        let (before, behind) = (lower[..at].trim_end(), lower[at + 1..].trim_start());
        let used = before.rsplit(|c| !is_part(c)).next()?;
        let all = behind.split(|c| !is_part(c)).next()?;
        Some([figure(used)?, figure(all)?])
    });
    // The figures are rounded to whole ones.
    let shares: Vec<f64> = pairs.filter(|[used, all]| (used - all * 0.75).abs() <= 0.5).map(|[_, all]| all).collect();
    shares.iter().any(|all| (all - shares[0]).abs() > 1.0)
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_is_quoted() {
        let of = |text: &str| last_error(text);
        let log = "Unable to initialize backend 'tpu': NOT_FOUND: none\nNot Enough GPU memory? INVALID_ARGUMENT: stream is in an error state\n";
        assert_eq!(of(log).as_deref(), Some("INVALID_ARGUMENT: stream is in an error state"));
        assert!(!Error::of(log).is_about_another() && Error::of("(set JAX_PLATFORMS='')").is_about_another());
        assert_eq!(
            (of("ValueError: no"), of("é: INTERNAL: é")),
            (Some("ValueError: no".to_owned()), Some("INTERNAL: é".to_owned()))
        );
        assert_eq!((of("step 3"), of("")), (None, None));
    }

    #[test]
    fn a_share_that_is_set_aside_is_no_failure() {
        let of = |used: u64| Error::of(&format!("| NVIDIA-SMI 550.54 |\n|   {used}MiB /  81559MiB |"));
        assert!(of(61_690).to_string().starts_with("no memory ran out: JAX sets three quarters"));
        let old = Error::of("import jax\n!nvidia-smi\n| 10307MiB / 11441MiB |");
        assert!(old.is_about_another());
        let cards = "jax uses 70% of any GPU's memory:\nRTX 2080 Ti: 8G/11G\nRTX 4090: 18G/24G\nA800: 60G/80G";
        assert!(Error::of(cards).is_about_another());
        assert!(!Error::of("jax on a GPU: 8G/11G and 8.2G/11G, 4G/24G, é/é").is_about_another());
        let told = "In Flax nvidia-smi shows 31.1GB in use on my A100-40GB. Is it normal?";
        assert!(Error::of(told).is_about_another());
        assert!(!Error::of(&told.replace("31.1", "12.5")).is_about_another());
        assert!(!of(80_000).is_about_another() && !of(1000).is_about_another());
    }
}
