//! The GPU, or the old TPU, that a text names, and its memory.

use super::SEARCHED;
use crate::text::{tail, word};
use memchr::memmem;

/// A model of GPU that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gpu {
    /// Its name, as the text has it: `T4`, `RTX 3090`.
    pub name: String,
    /// Bytes of its memory by its maker's specification; programs get a little less.
    pub bytes: u64,
}

/// A core of an old TPU that a text names, whose memory is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Core {
    /// The TPU's name: `v3`.
    pub name: &'static str,
    /// Bytes of its memory: 8 GiB of a v2's, 16 GiB of a v3's (Cloud TPU's system architecture).
    pub bytes: u64,
}

impl Core {
    /// The core of a slice that a text names: `v3-8` has eight.
    pub(crate) fn of(text: &str) -> Option<Self> {
        const CORES: [(&str, u64); 2] = [("v2", 8), ("v3", 16)];
        let text = tail(text, SEARCHED);
        let named = |name: &str| {
            word::all(text).any(|(start, end)| {
                let cores =
                    text[end..].strip_prefix('-').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
                &text[start..end] == name && (1..=4).contains(&cores) && !text[..start].ends_with('-')
            })
        };
        let mut found = CORES.into_iter().filter(|(name, _)| named(name));
        let (name, size) = found.next()?;
        found.next().is_none().then_some(Self { name, bytes: size << 30 })
    }
}

/// Names of GPUs of one size of memory, in lower case, and this size in GiB, by their makers' data sheets.
const ALONE: [(&str, u64); 21] = [
    ("t4", 16),
    ("p4", 8),
    ("p40", 24),
    ("p100", 16),
    ("k80", 12),
    ("l4", 24),
    ("l40", 48),
    ("l40s", 48),
    ("a2", 16),
    ("a10", 24),
    ("a10g", 24),
    ("a30", 24),
    ("a40", 48),
    ("a4000", 16),
    ("a4500", 20),
    ("a5000", 24),
    ("a6000", 48),
    ("h100", 80),
    ("h200", 141),
    ("b200", 180),
    ("mi300x", 192),
];

/// Names that come with several sizes of memory, so that a text has to tell it: `A100 40GB`.
const SEVERAL: [&str; 3] = ["a100", "v100", "gh200"];

/// Numbers of GeForce cards, with `ti` or `super` behind them, and their memory in GiB. A number alone may be anything.
const GEFORCE: [(&str, u64); 27] = [
    ("1060", 6),
    ("1070", 8),
    ("1070ti", 8),
    ("1080", 8),
    ("1080ti", 11),
    ("2060", 6),
    ("2070", 8),
    ("2070super", 8),
    ("2080", 8),
    ("2080super", 8),
    ("2080ti", 11),
    ("3060ti", 8),
    ("3070", 8),
    ("3070ti", 8),
    ("3080ti", 12),
    ("3090", 24),
    ("3090ti", 24),
    ("4060", 8),
    ("4070", 12),
    ("4070super", 12),
    ("4070ti", 12),
    ("4080", 16),
    ("4080super", 16),
    ("4090", 24),
    ("5070", 12),
    ("5080", 16),
    ("5090", 32),
];

/// Whether a text names a data centre's GPU, by one of the longer names, such as `H100`: `P4` or `L4` may stand for others.
pub(crate) fn is_named(text: &str) -> bool {
    /// The shortest of these names.
    const SHORTEST: usize = 4;
    let names = ALONE.iter().map(|(name, _)| *name).chain(SEVERAL);
    let mut long = names.filter(|name| name.len() >= SHORTEST);
    long.any(|name| {
        let capitals = name.to_ascii_uppercase();
        memmem::find_iter(text.as_bytes(), capitals.as_bytes()).any(|at| {
            let before = text[..at].ends_with(|letter: char| letter.is_ascii_alphanumeric() && letter != 'x');
            !before && !text[at + capitals.len()..].starts_with(|letter: char| letter.is_ascii_alphanumeric())
        })
    })
}

impl Gpu {
    /// Whether it computes in bfloat16: NVIDIA's GPUs from Ampere on, and AMD's Instinct.
    ///
    /// ```
    /// let text = "CUDA out of memory. Tried to allocate 20.00 MiB. On a Tesla T4.";
    /// let gpu = tilewise_oom::Message::parse(text)?.job.gpu.expect("a model");
    /// assert!(!gpu.has_bfloat16());
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn has_bfloat16(&self) -> bool {
        const OLD: [&str; 8] = ["T4", "P4", "P40", "P100", "K80", "V100", "GTX", "RTX 20"];
        let is_old_card = ["10", "20"].iter().any(|series| self.name.starts_with(series));
        !OLD.iter().any(|old| self.name == *old || old.len() > 2 && self.name.starts_with(old)) && !is_old_card
    }

    /// The GPU of a text that names one model: `a free Colab GPU (T4)`, `2 x RTX 3090`, `A100-SXM4-40GB`.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = tail(text, SEARCHED);
        let mut found: Option<Self> = None;
        for gpu in word::all(text).filter_map(|(start, end)| named(text, start, end)) {
            match &found {
                Some(other) if other.bytes != gpu.bytes => return None,
                Some(_) => {}
                None => found = Some(gpu),
            }
        }
        found
    }
}

/// The GPU whose name begins at `start`.
fn named(text: &str, start: usize, end: usize) -> Option<Gpu> {
    /// Longest name.
    const LONGEST: usize = 9;
    if end - start > LONGEST || text[..start].ends_with(['.', '-', '/']) {
        return None;
    }
    // Others of the name have other sizes.
    let next = text[end..].trim_start_matches(' ');
    if ["Laptop", "Mobile", "Max-Q", "NVL"].iter().any(|other| next.starts_with(other)) {
        return None;
    }
    // `8xH100`
    let word = &text[start..end];
    let word = word.split_once('x').filter(|(count, _)| count.parse::<u8>().is_ok()).map_or(word, |(_, name)| name);
    let start = end - word.len();
    let of = |table: &[(&str, u64)], name: &str| table.iter().find(|(own, _)| *own == name).map(|(_, size)| *size);
    // `two T4s`
    let is_whole = |name: &str| of(&ALONE, name).or_else(|| of(&GEFORCE, name)).is_some() || SEVERAL.contains(&name);
    let lower = word.to_ascii_lowercase();
    let lower = lower.strip_suffix('s').filter(|name| !is_whole(&lower) && is_whole(name)).unwrap_or(&lower).to_owned();
    let word = &word[..lower.len()];
    // Names are capitals: `a2` in lower case is a variable.
    let is_capital = word.starts_with(|letter: char| letter.is_ascii_uppercase());
    if is_capital {
        let size = match printed_size(&text[end..]) {
            Some(size) if SEVERAL.contains(&lower.as_str()) || of(&ALONE, &lower).is_some() => Some(size),
            _ => of(&ALONE, &lower),
        };
        return size.map(|size| Gpu { name: word.to_owned(), bytes: size << 30 });
    }
    if !word.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let (mut name, mut end) = (lower, end);
    for more in ["ti", "super"] {
        let behind = text[end..].trim_start_matches(' ');
        let length = word::length(behind);
        if behind[..length].eq_ignore_ascii_case(more) {
            name.push_str(more);
            end = text.len() - behind.len() + length;
        }
    }
    let before = text[..start].trim_end_matches([' ', '-']);
    let family = ["RTX", "GTX", "GeForce"].into_iter().find(|family| before.ends_with(family));
    let is_of_family = family.is_some() || name.ends_with("ti");
    let size = printed_size(&text[end..]).or_else(|| of(&GEFORCE, &name));
    let size = size.filter(|_| is_of_family && name.len() >= 4)?;
    let family = family.map(|family| [family, " "].concat()).unwrap_or_default();
    Some(Gpu { name: [&family, text[start..end].trim_end_matches('s')].concat(), bytes: size << 30 })
}

/// The memory that follows a name, in GiB: ` 40GB`, `-SXM4-80GB`, ` (24 GB)`.
fn printed_size(behind: &str) -> Option<u64> {
    const LARGEST: u64 = 512;
    let form = ["-SXM2", "-SXM3", "-SXM4", "-SXM5", "-SXM", "-PCIE", "-PCIe", " SXM4", " SXM", " PCIe", " PCIE"];
    let behind = form.into_iter().find_map(|form| behind.strip_prefix(form)).unwrap_or(behind);
    let behind = behind.strip_prefix([' ', '-', '_']).unwrap_or(behind);
    let behind = behind.strip_prefix('(').unwrap_or(behind);
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    let unit = behind[digits..].trim_start_matches(' ');
    // `T4 (12 GB RAM)` is the host's.
    let is_of_host = ["RAM", "ram", "free"].iter().any(|word| unit.get(..8).unwrap_or(unit).contains(word));
    let is_unit = ["GB", "GiB", "gb", "Gb", "G)"].iter().any(|name| unit.starts_with(name));
    behind[..digits].parse().ok().filter(|size| is_unit && !is_of_host && (4..=LARGEST).contains(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_slices() {
        let of = |text: &str| Core::of(text).map(|core| (core.name, core.bytes >> 30));
        assert_eq!((of("on a v3-8, for 128 GB"), of("TPU v2-8")), (Some(("v3", 16)), Some(("v2", 8))));
        assert_eq!((of("v3 of the file"), of("llama-v2-7b"), of("v2-8 or v3-8")), (None, None, None));
    }

    #[test]
    fn gpus_by_name() {
        let of = |text: &str| Gpu::of(text).map(|gpu| (gpu.name, gpu.bytes >> 30));
        let is = |text: &str, name: &str, size: u64| assert_eq!(of(text), Some((name.to_owned(), size)), "{text}");
        is("on the free Colab GPU (T4), TensorFlow", "T4", 16);
        is("The GPU is a 3080 Ti.", "3080 Ti", 12);
        is("2x RTX 3090, each RTX 3090 with 24 GB", "RTX 3090", 24);
        is("NVIDIA GeForce RTX 4070 Ti", "RTX 4070 Ti", 12);
        is("NVIDIA A100-SXM4-40GB", "A100", 40);
        is("8xH100 80GB, an H100", "H100", 80);
        is("two T4s", "T4", 16);
        is("L40S", "L40S", 48);
        is("two RTX 3090s", "RTX 3090", 24);
        is("V100 (32 GB)", "V100", 32);
        is("RTX A6000", "A6000", 48);
        for none in [
            "an A100",
            "RTX 4090 Laptop GPU",
            "T4 or L4",
            "3090 points",
            "a2 = b",
            "model-T4",
            "RTX",
            "jit_a10(x)",
            "é",
            "",
            "T4x",
            "12 GB",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
