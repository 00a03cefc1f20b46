//! The settings of the memory that a process takes of a GPU.

use super::trials;
use crate::{prose, text::word};

/// The part of a GPU's memory that JAX takes without a setting.
const DEFAULT: &str = ".75";

/// The settings of the memory that a process takes of a GPU, where the text shows them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PoolSettings {
    /// The variable that limits the pool, and its value, a part of the GPU's memory: `XLA_PYTHON_CLIENT_MEM_FRACTION`, `.10`.
    pub fraction: Option<(String, String)>,
    /// Whether other limits were tried in vain.
    pub is_fraction_in_vain: bool,
    /// Whether it sets its pool aside as it starts, if the text sets so.
    pub preallocates: Option<bool>,
    /// The variable that takes the pool away, and its value: `XLA_PYTHON_CLIENT_ALLOCATOR`, `platform`.
    pub unpooled: Option<(String, String)>,
    /// Bytes of one GPU that TensorFlow set aside in this process, by its own word.
    pub tensorflow_bytes: Option<u64>,
    /// Whether code lets TensorFlow take GPUs: it has their memory grow, and hides none.
    pub lets_tensorflow: bool,
    /// Whether code imports TensorFlow, and hides no GPU from it.
    pub imports_tensorflow: bool,
    /// Whether a sentence asks why a process takes most of a GPU's memory as it starts.
    pub is_asked: bool,
    /// Whether a sentence asks for memory back that a process has freed.
    pub keeps_freed: bool,
    /// Whether sentences tell of several processes on one GPU.
    pub is_shared: bool,
}

impl PoolSettings {
    pub(crate) fn of(text: &str, lower: &str) -> Self {
        let set = |is: fn(&str) -> bool| {
            word::all(text).find_map(|(start, end)| {
                let name = &text[start..end];
                let value = is(name).then(|| assigned(&text[end..])).flatten()?;
                Some((name.to_owned(), value.to_owned()))
            })
        };
        let hides = text.contains("set_visible_devices([]");
        let is_fraction = |value: &(String, String)| value.1.parse::<f64>().is_ok_and(|part| 0.0 < part && part <= 1.0);
        Self {
            fraction: set(|name| name.ends_with("CLIENT_MEM_FRACTION") || name == "PJRT_ALLOCATOR_FRACTION")
                .filter(is_fraction),
            is_fraction_in_vain: trials::is_tried(lower, "client_mem_fraction"),
            preallocates: set(|name| name.ends_with("CLIENT_PREALLOCATE"))
                .map(|(_, value)| !value.eq_ignore_ascii_case("false") && value != "0"),
            unpooled: set(|name| name.ends_with("CLIENT_ALLOCATOR")).filter(|(_, value)| value == "platform"),
            tensorflow_bytes: text.lines().filter_map(bytes_of_tensorflow).max(),
            lets_tensorflow: text.contains("set_memory_growth(") && !hides,
            imports_tensorflow: text.contains("import tensorflow as") && !hides,
            is_asked: is_asked(lower),
            keeps_freed: keeps_freed(lower),
            is_shared: is_shared(lower),
        }
    }

    /// The variable that limits the pool, and the part of the memory that it has, by default what JAX takes without a setting;
    /// `None` where there is no pool, or where another part was tried in vain.
    fn part(&self) -> Option<(&str, &str)> {
        let default = ("XLA_CLIENT_MEM_FRACTION", DEFAULT);
        let set = self.fraction.as_ref().map_or(default, |(name, value)| (name, value));
        Some(set).filter(|_| self.unpooled.is_none() && !self.is_fraction_in_vain)
    }

    /// The part of the memory that the pool may have, if that is less than most of it.
    #[must_use]
    pub fn small_fraction(&self) -> Option<(&str, &str)> {
        let is_small = |part: &str| part.parse::<f64>().is_ok_and(|part| part < 0.75);
        self.part().filter(|(_, value)| is_small(value) && self.fraction.is_some())
    }

    /// Bytes of the pool on a device with this much memory.
    pub(crate) fn bytes_of(&self, memory: u64) -> Option<u64> {
        Some(memory / 100 * hundredths(self.part()?.1)?)
    }

    /// The variable that limits the pool, its value, and hundredths of the memory that hold `needed` bytes where that value gives
    /// `limit`; `None` where they would leave libraries and programs no room.
    #[must_use]
    pub fn raised(&self, needed: u64, limit: u64) -> Option<(&str, &str, u64)> {
        /// Hundredths, of which the rest is for what lies beside a pool.
        const MOST: u64 = 95;
        /// For what was rounded up, and the gaps of a pool.
        const MARGIN: u64 = 2;
        let (name, value) = self.part()?;
        let now = hundredths(value)?;
        let to = u64::try_from((u128::from(needed) * u128::from(now)).div_ceil(u128::from(limit.max(1)))).ok()?;
        let to = to.saturating_add(MARGIN);
        (to > now && to <= MOST).then_some((name, value, to))
    }
}

/// Hundredths of a fraction, `.75`.
fn hundredths(fraction: &str) -> Option<u64> {
    let hundredths = (fraction.parse::<f64>().ok()? * 100.0).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 100")]
    (1.0..=100.0).contains(&hundredths).then_some(hundredths as u64)
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
pub(super) fn assigned(behind: &str) -> Option<&str> {
    let rest = behind.trim_start_matches(['"', '\'', ']', ' ']);
    let rest = rest.strip_prefix(['=', ':', ','])?.trim_start_matches([' ', '"', '\'']);
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_')).unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches('.')).filter(|value| !value.is_empty())
}

/// Whether sentences tell that much less is needed than a process takes: `It uses all GPU memory, even for a tiny array.` `lower` is
/// in lower case.
fn is_asked(lower: &str) -> bool {
    const MEMORY: [&str; 3] = ["memory", "vram", "gpu ram"];
    const TAKES: [&str; 10] =
        ["use ", "uses ", "using", "take", "taking", "allocat", "occup", "consum", "reserv", "grab"];
    const ALL: [&str; 10] =
        [" all ", "entire", "whole", "most of", "75%", "75 %", "90%", "90 %", "full gpu", "preallocat"];
    const LITTLE: [&str; 11] = [
        "tiny",
        "small",
        "simple",
        "single",
        "only need",
        "few mb",
        "as soon as",
        "import",
        "first ",
        " idle",
        "even ",
    ];
    // An error tells more.
    const FAILS: [&str; 4] = ["out of memory", "oom", "exhaust", "without preallocat"];
    let asks = prose::tells(lower, &[&MEMORY, &TAKES, &ALL], &FAILS);
    asks && (LITTLE.iter().any(|sign| lower.contains(sign)) || lower.contains("why "))
}

/// Whether a sentence tells that memory stays taken after arrays are deleted: `GPU memory is not released after del`. `lower` is in
/// lower case.
fn keeps_freed(lower: &str) -> bool {
    const RELEASES: [&str; 9] = [
        "not released",
        "n't released",
        "not freed",
        "n't freed",
        "free the gpu memory",
        "free gpu memory",
        "release the memory",
        "release memory",
        "release gpu memory",
    ];
    const DELETED: [&str; 5] = ["del ", "delet", "gc.collect", "nvidia-smi", "without ending"];
    prose::tells(lower, &[&["memory", "vram"], &RELEASES], &["error", "exception", "raise"])
        && DELETED.iter().any(|sign| lower.contains(sign))
}

/// Whether a sentence tells of several processes on one GPU: `Two processes are to share it.` `lower` is in lower case.
fn is_shared(lower: &str) -> bool {
    const SEVERAL: [&str; 8] =
        [" two ", "both ", "several ", "multiple ", "second ", "another ", "other users", "parallel "];
    const PROCESSES: [&str; 5] = ["process", " jobs", " scripts", "notebooks", " runs"];
    const GPU: [&str; 6] = ["one gpu", "same gpu", "share ", "sharing", "single gpu", "a gpu"];
    prose::tells(lower, &[&SEVERAL, &PROCESSES, &GPU], &["shared memory", "multi-gpu"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_pool() {
        let of = |text: &str| PoolSettings::of(text, &text.to_ascii_lowercase());
        let small = |text: &str| of(text).small_fraction().map(|(name, value)| format!("{name} {value}"));
        let name = "XLA_PYTHON_CLIENT_MEM_FRACTION";
        assert_eq!(small(&format!("export {name}=.10\n")), Some(format!("{name} .10")));
        assert_eq!(small(&format!("os.environ[\"{name}\"] = \"0.3\"")), Some(format!("{name} 0.3")));
        assert_eq!(small(&format!("I also tried {name}=0.5, but it crashes.")), None);
        assert_eq!(small("`XLA_CLIENT_MEM_FRACTION=0.9`"), None);
        assert_eq!(small(&format!("{name} is not set")), None);
        assert_eq!(of("").raised(141 << 30, 138 << 30), Some(("XLA_CLIENT_MEM_FRACTION", ".75", 79)));
        assert_eq!(of(&format!("{name}=0.9")).raised(9 << 30, 8 << 30), None);
        let opened = "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 21736 MB memory:  -> device: 0";
        assert_eq!(of(opened).tensorflow_bytes, Some(21_736 << 20));
        let unpooled = of(&format!("{name}=.3 XLA_PYTHON_CLIENT_ALLOCATOR=platform"));
        assert!(unpooled.unpooled.is_some() && unpooled.small_fraction().is_none());
    }
}
