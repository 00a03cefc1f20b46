//! The devices of a job, and the parts between which they divide its batch.

use super::SEARCHED;
use crate::text::{tail, word};

/// The devices of a job, as far as a text shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Devices {
    /// Their number, as the framework counts: chips, and cores of a v2 or v3.
    pub count: Option<u64>,
    /// The parts of a batch of all devices, by the mesh that the text sets.
    pub parts: Option<u64>,
}

/// Slices: the name of a generation, its devices by the number behind it, and by how much that is divided.
const SLICES: [(&str, u64); 8] = [
    // Cores, which are devices.
    ("v2", 1),
    ("v3", 1),
    // Two cores of a chip are one device.
    ("v4", 2),
    ("v5p", 2),
    // Chips
    ("v5e", 1),
    ("v5litepod", 1),
    ("v6e", 1),
    ("v5lite", 1),
];

/// Options of EasyLM, LWM and EasyDeL that set a mesh, whose first two axes (`dp`, `fsdp`) divide a batch.
const MESHES: [&str; 4] = ["mesh_dim", "sharding_axis_dims", "sharding_array", "axis_dims"];

/// More devices are none of a job.
const MOST: u64 = 1 << 20;

impl Devices {
    pub(crate) fn of(log: &str) -> Self {
        let text = tail(log, SEARCHED);
        let count =
            counted(text).or_else(|| slice(text)).or_else(|| chips(text)).filter(|count| (1..MOST).contains(count));
        Self { count, parts: parts(text, count) }
    }
}

/// The number that a text gives for JAX's function: `jax.device_count() prints 128`.
fn counted(text: &str) -> Option<u64> {
    /// Words, and bytes, up to the number.
    const WORDS: usize = 3;
    const NEAR: usize = 64;
    let sign = "device_count()";
    let numbers = text.match_indices(sign).filter(|(at, _)| !text[..*at].ends_with("local_")).filter_map(|(at, _)| {
        let behind = &text[at + sign.len()..];
        let end = (0..=NEAR.min(behind.len())).rev().find(|end| behind.is_char_boundary(*end))?;
        let line = behind[..end].lines().next()?;
        word::all(line).take(WORDS).find_map(|(start, end)| line[start..end].parse().ok())
    });
    only(numbers)
}

/// The chips that a sentence gives one host: `One v5e host with 8 chips`. Of several hosts each may have as many.
fn chips(text: &str) -> Option<u64> {
    const BEFORE: [&str; 4] = ["with", "has", "have", "all"];
    let words: Vec<&str> = word::all(text).map(|(start, end)| &text[start..end]).collect();
    let is_of_several = words.windows(2).any(|pair| pair[1] == "hosts" && pair[0] != "no");
    let counts = words.windows(4).filter_map(|near| {
        let at = if matches!(near[2], "TPU" | "tpu") { 3 } else { 2 };
        (BEFORE.contains(&near[0]) && near[at] == "chips").then(|| near[1].parse().ok())?
    });
    only(counts).filter(|_| !is_of_several)
}

/// The devices of the slice that a text names: `v5litepod-16` has 16, `v4-256` has 128.
fn slice(text: &str) -> Option<u64> {
    let named = word::all(text).filter_map(|(start, end)| {
        let name = text[start..end].trim_start_matches("TPU").trim_start_matches("tpu");
        let (_, cores) = SLICES.iter().find(|(known, _)| *known == name)?;
        let rest = text[end..].strip_prefix('-')?;
        let digits = rest.bytes().take(6).take_while(u8::is_ascii_digit).count();
        let is_ended = !rest[digits..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let count: u64 = rest[..digits].parse().ok()?;
        (is_ended && !text[..start].ends_with(['-', '_']) && count.is_multiple_of(*cores)).then(|| count / cores)
    });
    only(named)
}

/// The parts of a batch by the only mesh of a text: `--mesh_dim='1,-1,1'`, `sharding_axis_dims=(1, 1, 1, -1)`.
fn parts(text: &str, count: Option<u64>) -> Option<u64> {
    let meshes = word::all(text).filter(|(start, end)| MESHES.contains(&&text[*start..*end]));
    only(meshes.filter_map(|(_, end)| {
        let (axes, is_open) = axes(&text[end..])?;
        let known =
            axes.iter().flatten().try_fold(1_u64, |all, axis| all.checked_mul(*axis)).filter(|known| *known > 0)?;
        let unknown = axes.iter().filter(|axis| axis.is_none()).count();
        // One axis has all devices that the others leave.
        let left = count.filter(|count| is_open && count.is_multiple_of(known)).map(|count| count / known);
        let of = |axis: &Option<u64>| axis.or(left);
        (unknown < 2 && axes.len() > 2).then_some(())?;
        of(&axes[0])?.checked_mul(of(&axes[1])?)
    }))
}

/// The sizes of a mesh's axes, `None` for `-1`, and whether one of them is that.
fn axes(behind: &str) -> Option<(Vec<Option<u64>>, bool)> {
    /// Bytes of the longest list.
    const LONGEST: usize = 64;
    let rest = behind.trim_start_matches([' ', '"', '\'']).strip_prefix(['=', ':', ' '])?;
    let rest = rest.trim_start_matches([' ', '"', '\'', '(', '[', '!']);
    let length = rest.bytes().take(LONGEST).take_while(|byte| byte.is_ascii_digit() || b", -".contains(byte)).count();
    let sizes: Option<Vec<Option<u64>>> = rest[..length]
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty())
        .map(|size| if size == "-1" { Some(None) } else { size.parse().ok().map(Some) })
        .collect();
    let sizes = sizes?;
    let is_open = sizes.contains(&None);
    Some((sizes, is_open))
}

/// The value of all, if it is one.
fn only(mut values: impl Iterator<Item = u64>) -> Option<u64> {
    let first = values.next()?;
    values.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_slices() {
        let of = |text: &str| Devices::of(text).count;
        assert_eq!(
            (of("on a v4-256"), of("a v5litepod-16."), of("TPUv3-8"), of("v5p-8 slices")),
            (Some(128), Some(16), Some(8), Some(4))
        );
        assert_eq!(of("v4-256: jax.device_count() prints 128, shouldn't it be 256?"), Some(128));
        assert_eq!(of("print(jax.device_count())  # 4"), Some(4));
        assert_eq!(
            (of("One v5e host with 8 chips (16 GB each)"), of("16 hosts, each with 4 chips, x")),
            (Some(8), None)
        );
        assert_eq!(
            (of("v3-8 or v3-32"), of("llama-v2-7b"), of("local_device_count() is 4"), of("v4-")),
            (None, None, None, None)
        );
    }

    #[test]
    fn parts_of_batches() {
        let of = |text: &str| Devices::of(text).parts;
        assert_eq!(of("v4-256 --mesh_dim='1,-1,1'"), Some(128));
        assert_eq!(of("TPU VM v3-8, sharding_axis_dims=(1, 1, 1, -1), sharding_array=(1, 1, 1, -1)"), Some(1));
        assert_eq!(of("--mesh_dim='!1,1,8,1'"), Some(1));
        assert_eq!(
            (of("mesh_dim='1,-1,1'"), of("mesh_dim="), of("mesh_dim='-1,-1,1' v3-8"), of("mesh_dim: é")),
            (None, None, None, None)
        );
        assert_eq!(of("mesh_dim='1,1,8' mesh_dim='1,8,1'"), None);
    }
}
