//! The machines whose compilers' plans are known.

use std::{fmt, str::FromStr};

use tilewise::tpu::Generation;

use crate::Packing;

/// A machine that a program is compiled for.
///
/// ```
/// use tilewise::tpu::Generation;
/// use tilewise_memory::Machine;
///
/// assert_eq!("tpu:v5e".parse(), Ok(Machine::Tpu(Generation::V5e)));
/// assert_eq!(Machine::H100.to_string(), "gpu:h100");
/// assert!("gpu:tpu".parse::<Machine>().unwrap_err().to_string().contains("gpu:h100"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Machine {
    /// A TPU of a generation, `tpu:v5e`.
    Tpu(Generation),
    /// Any NVIDIA GPU, `gpu`: all have the same rules.
    Gpu,
    /// An NVIDIA A100 with 80 GB, `gpu:a100`.
    A100,
    /// An NVIDIA H100 with 80 GB, `gpu:h100`.
    H100,
    /// An NVIDIA B200, `gpu:b200`.
    B200,
    /// A CPU, `cpu`.
    Cpu,
}

impl Machine {
    /// Those that are no TPU.
    const OTHERS: [Self; 5] = [Self::Gpu, Self::A100, Self::H100, Self::B200, Self::Cpu];

    /// All of them: the TPU generations, the oldest first, then the others.
    ///
    /// ```
    /// use tilewise_memory::Machine;
    ///
    /// assert!(Machine::all().all(|machine| machine.to_string().parse() == Ok(machine)));
    /// ```
    pub fn all() -> impl Iterator<Item = Self> {
        Generation::ALL.iter().copied().map(Self::Tpu).chain(Self::OTHERS)
    }

    /// The name of one that is no TPU.
    fn name(self) -> &'static str {
        match self {
            Self::Tpu(_) => "tpu",
            Self::Gpu => "gpu",
            Self::A100 => "gpu:a100",
            Self::H100 => "gpu:h100",
            Self::B200 => "gpu:b200",
            Self::Cpu => "cpu",
        }
    }

    /// The TPU generation, if it is a TPU.
    #[must_use]
    pub fn generation(self) -> Option<Generation> {
        match self {
            Self::Tpu(generation) => Some(generation),
            _ => None,
        }
    }

    /// Bytes of its memory, where the machine's name tells: what a TPU offers to programs, and all that a GPU has
    /// (`device_memory_size` of the target that XLA compiles for without one).
    #[must_use]
    pub fn memory_bytes(self) -> Option<u64> {
        match self {
            Self::Tpu(generation) => Some(generation.hbm_bytes()),
            Self::A100 => Some(85_100_068_864),
            Self::H100 => Some(84_929_347_584),
            Self::B200 => Some(191_514_411_008),
            Self::Gpu | Self::Cpu => None,
        }
    }

    /// Bytes that a program and its arguments have by default: of a GPU, the three quarters that JAX's pool takes
    /// (`XLA_PYTHON_CLIENT_MEM_FRACTION`).
    ///
    /// ```
    /// use tilewise_memory::Machine;
    ///
    /// assert_eq!(Machine::H100.program_bytes(), Some(63_697_010_688));
    /// assert_eq!(Machine::Gpu.program_bytes(), None);
    /// ```
    #[must_use]
    pub fn program_bytes(self) -> Option<u64> {
        let bytes = self.memory_bytes()?;
        Some(if self.generation().is_some() { bytes } else { bytes / 4 * 3 })
    }

    /// The compiler whose plans these are, as checked.
    #[must_use]
    pub fn compiler(self) -> &'static str {
        match self {
            Self::Tpu(_) => "libtpu 0.0.51",
            Self::Gpu | Self::A100 | Self::H100 | Self::B200 => "XLA for GPUs in jax 0.6.2 to 0.10.2",
            Self::Cpu => "XLA for CPUs in jax 0.4.35 to 0.10.2",
        }
    }

    /// How its compiler packs a heap where memory isn't short.
    #[must_use]
    pub fn packing(self) -> Packing {
        if self.generation().is_some() { Packing::FastMerge } else { Packing::BestFit }
    }
}

impl From<Generation> for Machine {
    fn from(generation: Generation) -> Self {
        Self::Tpu(generation)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tpu(generation) => write!(f, "tpu:{generation}"),
            other => f.write_str(other.name()),
        }
    }
}

/// A text that names no machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMachine(String);

impl fmt::Display for UnknownMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = Machine::OTHERS.map(Machine::name).join(", ");
        write!(f, "`{}` isn't a machine: tpu:v5e and other TPU generations, {others}", tilewise::visible(&self.0))
    }
}

impl std::error::Error for UnknownMachine {}

impl FromStr for Machine {
    type Err = UnknownMachine;

    fn from_str(text: &str) -> Result<Self, UnknownMachine> {
        let name = text.trim().to_ascii_lowercase();
        let tpu = || Some(Self::Tpu(name.strip_prefix("tpu:")?.parse().ok()?));
        let other = Self::OTHERS.into_iter().find(|machine| machine.name() == name);
        other.or_else(tpu).ok_or_else(|| UnknownMachine(text.to_owned()))
    }
}
