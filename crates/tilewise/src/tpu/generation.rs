//! The generations of TPUs that layouts are known for.

use crate::{Error, ErrorKind};
use alloc::{format, string::String};
use core::{fmt, str::FromStr};

/// A TPU generation.
///
/// Reads the names in circulation, in any case: `v5e`, jax's device kinds (`TPU v5 lite`, `TPU v5`, `TPU7x`), accelerator types
/// (`v5litepod-4`, `v5p-8`), topologies (`v5e:2x2`) and the product names Trillium and Ironwood. `Display` prints the short one.
///
/// ```
/// use tilewise::tpu::Generation;
///
/// assert_eq!("TPU v5 lite".parse(), Ok(Generation::V5e));
/// assert_eq!("TPU v5".parse(), Ok(Generation::V5p)); // what jax calls it
/// assert_eq!(Generation::V5e.to_string(), "v5e");
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Generation {
    /// TPU v2.
    V2,
    /// TPU v3.
    V3,
    /// TPU v4.
    V4,
    /// TPU v5e, "v5 lite".
    V5e,
    /// TPU v5p; jax calls it "TPU v5".
    V5p,
    /// TPU v6e, "v6 lite", Trillium.
    V6e,
    /// TPU7x, Ironwood.
    V7x,
}

impl Generation {
    /// Every generation, oldest first.
    pub const ALL: &'static [Self] = &[Self::V2, Self::V3, Self::V4, Self::V5e, Self::V5p, Self::V6e, Self::V7x];

    /// The short name: `v2`, `v3`, `v4`, `v5e`, `v5p`, `v6e`, `v7x`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V3 => "v3",
            Self::V4 => "v4",
            Self::V5e => "v5e",
            Self::V5p => "v5p",
            Self::V6e => "v6e",
            Self::V7x => "v7x",
        }
    }

    /// Whether this is v2 or v3: layouts depend on nothing else of the generation.
    pub(crate) const fn is_old(self) -> bool {
        matches!(self, Self::V2 | Self::V3)
    }

    /// The granule of arrays in HBM, in bytes: 1024 on v2 and v3, 512 since. A scalar takes one.
    ///
    /// Observed: `f32[]` is `{:T(256)}` on v2 and v3, `{:T(128)}` elsewhere, and programs are charged these bytes.
    #[must_use]
    pub const fn granule_bytes(self) -> u64 {
        if self.is_old() { 1024 } else { 512 }
    }

    /// The granule of a tuple's table of pointers, 4 bytes an element, in bytes: 1024 on v2 and v3, 512 on v4 and v5e,
    /// 32 on v5p, v6e and v7x.
    ///
    /// Observed: the sizes that libtpu 0.0.51 reports for arguments and results that are tuples.
    ///
    /// ```
    /// use tilewise::tpu::Generation;
    ///
    /// assert_eq!(Generation::V6e.tuple_table_granule_bytes(), 32);
    /// ```
    #[must_use]
    pub const fn tuple_table_granule_bytes(self) -> u64 {
        match self {
            Self::V2 | Self::V3 => 1024,
            Self::V4 | Self::V5e => 512,
            Self::V5p | Self::V6e | Self::V7x => 32,
        }
    }

    /// HBM one device offers to programs, in bytes.
    ///
    /// The figure is the compiler's own (libtpu 0.0.51), from its out-of-memory messages ("exceeds available HBM
    /// (15.75G)"), which truncate it to two decimals: its precision is 0.01 GiB.
    ///
    /// On v4 a device is a chip, whose two cores JAX drives as one ("megacore"), as in public messages ("of 30.75G
    /// hbm"); for single cores see [`core_hbm_bytes`](Self::core_hbm_bytes).
    ///
    /// ```
    /// use tilewise::tpu::Generation;
    ///
    /// assert_eq!(Generation::V5e.hbm_bytes(), 63 << 28); // 15.75 GiB
    /// ```
    #[must_use]
    pub const fn hbm_bytes(self) -> u64 {
        let hundredths_of_gib = match self {
            Self::V2 => 7_48,
            Self::V3 => 15_48,
            Self::V4 => 30_75,
            Self::V5e => 15_75,
            Self::V5p => 95_73,
            Self::V6e => 31_24,
            Self::V7x => 94_74,
        };
        (hundredths_of_gib << 30) / 100
    }

    /// HBM for a program compiled for one core of a chip whose cores are otherwise one device, in bytes: on v4, where
    /// `get_topology_desc("v4:2x2x1")` without `chip_config_name="megacore"` has eight devices with 15.25 GiB, not
    /// four. `None` elsewhere.
    ///
    /// ```
    /// use tilewise::tpu::Generation;
    ///
    /// assert_eq!(Generation::V4.core_hbm_bytes(), Some(61 << 28)); // 15.25 GiB
    /// assert_eq!(Generation::V5e.core_hbm_bytes(), None);
    /// ```
    #[must_use]
    pub const fn core_hbm_bytes(self) -> Option<u64> {
        match self {
            Self::V4 => Some(61 << 28),
            _ => None,
        }
    }

    /// SMEM, scalar memory, offered to programs, in bytes; `None` if no message of the compiler with it was seen.
    ///
    /// From "would exceed memory (size=1048576) … space=smem" on v5e and v6e.
    #[must_use]
    pub const fn smem_bytes(self) -> Option<u64> {
        match self {
            Self::V5e | Self::V6e => Some(1 << 20),
            _ => None,
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        match bare(&name) {
            "trillium" => return Some(Self::V6e),
            "ironwood" => return Some(Self::V7x),
            _ => {}
        }
        Some(match version(&name)? {
            "2" => Self::V2,
            "3" => Self::V3,
            "4" => Self::V4,
            "5e" | "5 lite" | "5lite" | "5litepod" => Self::V5e,
            "5p" | "5" => Self::V5p,
            "6e" | "6 lite" | "6lite" => Self::V6e,
            "7x" | "7" => Self::V7x,
            _ => return None,
        })
    }
}

/// The name without `tpu`, in lower case.
fn bare(name: &str) -> &str {
    name.strip_prefix("tpu").map_or(name, |rest| rest.trim_start_matches([' ', '-', '_']))
}

/// The part of a lower-case name that gives the generation: `5e` of `v5e:2x2`.
fn version(name: &str) -> Option<&str> {
    let bare = bare(name);
    // `tpu7x` has no `v`, and a bare `7x` is no name.
    let version = bare.strip_prefix('v').or((bare.len() < name.len()).then_some(bare))?;
    match version.split_once([':', '-']) {
        Some((version, chips)) if is_chips(chips) => Some(version),
        Some(_) => None,
        None => Some(version),
    }
}

/// A description of a generation that JAX names (`ChipVersion` and `TpuInfo`, `jax/_src/tpu_info.py` of JAX 0.12) but
/// no libtpu up to 0.0.52 compiles for, so that its layouts are unknown.
fn without_compiler(name: &str) -> Option<&'static str> {
    match version(&name.trim().to_ascii_lowercase())? {
        "8t" => Some("TPU8t (16 sublanes, 128 MiB of VMEM)"),
        "8i" => Some("TPU8i (192 MiB of VMEM)"),
        "4i" | "4 lite" => Some("TPU v4i (one core, 128 MB of CMEM)"),
        _ => None,
    }
}

/// A number of chips or cores, `8`, or a topology, `2x2x1`.
fn is_chips(text: &str) -> bool {
    text.split('x').all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Generation {
    type Err = Error;

    /// Reads a generation's name in any of its spellings.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownGeneration`], with the known names.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::from_name(name).ok_or_else(|| {
            let message = match without_compiler(name) {
                Some(known) => format!("layouts of {known} are unknown: no compiler for it can be had here"),
                None => {
                    let shown: String = name.chars().take(40).collect();
                    format!("`{shown}` is not a TPU generation that layouts are known for")
                }
            };
            Error::new(ErrorKind::UnknownGeneration, message)
                .at(0..name.len())
                .with_help("the generations are v2, v3, v4, v5e (TPU v5 lite), v5p, v6e and v7x (TPU7x)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_spelling_in_circulation() {
        for &generation in Generation::ALL {
            assert_eq!(generation.name().parse(), Ok(generation));
            assert_eq!(format!("TPU {generation}").parse(), Ok(generation));
        }
        for (generation, names) in [
            (Generation::V2, &["v2-8", "tpu-v2", "TPU_v2"][..]),
            (Generation::V4, &["v4:2x2x1", "V4-16"]),
            (Generation::V5e, &["v5litepod", "v5litepod-4", "TPU v5 lite", "v5lite", "v5e:2x2", " v5e\n"]),
            (Generation::V5p, &["TPU v5", "TPU v5p", "v5p-8"]),
            (Generation::V6e, &["TPU v6 lite", "v6e-8", "Trillium"]),
            (Generation::V7x, &["tpu7x", "TPU7x", "TPU v7", "tpu7x:2x2x1", "tpu7x-8", "ironwood"]),
        ] {
            for name in names {
                assert_eq!(name.parse(), Ok(generation), "{name}");
            }
        }
    }

    #[test]
    fn says_of_what_jax_names_that_no_compiler_is_known() {
        for name in ["TPU8t", "v8t", "TPU8i", "v8i:2x2", "TPU v4 lite", "v4i"] {
            let error = name.parse::<Generation>().unwrap_err();
            assert!(format!("{error}").contains("no compiler for it can be had here"), "{name}: {error}");
        }
    }

    #[test]
    fn refuses_other_names_and_lists_its_own() {
        for name in
            ["", "v", "tpu", "5e", "4", "v1", "v4i", "TPU v4 lite", "v5e-", "v5e-x", "v5e:2xx2", "v5e:big", "h100", "é"]
        {
            let error = name.parse::<Generation>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownGeneration, "{name}");
            assert_eq!(error.span(), Some(0..name.len()));
            assert!(Generation::ALL.iter().all(|g| error.help().is_some_and(|help| help.contains(g.name()))));
        }
    }
}
