//! The machines whose compilers' plans are known.

use std::{fmt, str::FromStr};

use tilewise::tpu::Generation;

use crate::Packing;

/// Alignment in bytes of everything in HBM; temporaries take a multiple of it.
pub(crate) const HBM_ALIGNMENT: u64 = 16384;

/// A machine that a program is compiled for.
///
/// ```
/// use tilewise::tpu::Generation;
/// use tilewise_memory::{GpuModel, Machine};
///
/// assert_eq!("tpu:v5e".parse(), Ok(Machine::Tpu(Generation::V5e)));
/// assert_eq!("v5e".parse(), Ok(Machine::Tpu(Generation::V5e)));
/// assert_eq!(Machine::Gpu(Some(GpuModel::H100)).to_string(), "gpu:h100");
/// assert!("gpu:tpu".parse::<Machine>().unwrap_err().to_string().contains("gpu:h100"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Machine {
    /// A TPU of a generation, `tpu:v5e`.
    Tpu(Generation),
    /// An NVIDIA GPU, `gpu:h100`, or any, `gpu`: all have the same rules.
    Gpu(Option<GpuModel>),
    /// A CPU, `cpu`.
    Cpu,
}

/// A model of NVIDIA GPU whose memory is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GpuModel {
    /// An A100 with 40 GB, `a100-40gb`.
    A100With40Gb,
    /// An A100 with 80 GB, `a100`.
    A100,
    /// An H100 with 80 GB, `h100`.
    H100,
    /// An H200, `h200`.
    H200,
    /// A B200, `b200`.
    B200,
    /// A B300, `b300`.
    B300,
}

impl GpuModel {
    /// All of them, the oldest first.
    pub const ALL: [Self; 6] = [Self::A100With40Gb, Self::A100, Self::H100, Self::H200, Self::B200, Self::B300];

    /// The part of the machine's name after `gpu:`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A100With40Gb => "a100-40gb",
            Self::A100 => "a100",
            Self::H100 => "h100",
            Self::H200 => "h200",
            Self::B200 => "b200",
            Self::B300 => "b300",
        }
    }

    /// Bytes of its memory: `device_memory_size` of its description in XLA (`xla/backends/gpu/target_config/specs`),
    /// which compiles programs without the GPU.
    #[must_use]
    pub const fn memory_bytes(self) -> u64 {
        match self {
            Self::A100With40Gb => 42_331_013_120,
            Self::A100 => 85_100_068_864,
            Self::H100 => 84_929_347_584,
            Self::H200 => 151_397_597_184,
            Self::B200 => 191_514_411_008,
            Self::B300 => 297_021_865_984,
        }
    }
}

/// The share of a GPU's memory that JAX's pool takes by default (`XLA_PYTHON_CLIENT_MEM_FRACTION`).
const POOL_FRACTION: f64 = 0.75;

impl Machine {
    /// All of them: the TPU generations, then the GPUs, each the oldest first, and a CPU.
    ///
    /// ```
    /// use tilewise_memory::Machine;
    ///
    /// assert!(Machine::all().all(|machine| machine.to_string().parse() == Ok(machine)));
    /// ```
    pub fn all() -> impl Iterator<Item = Self> {
        Generation::ALL.iter().copied().map(Self::Tpu).chain(Self::others())
    }

    /// Machines other than TPUs.
    fn others() -> impl Iterator<Item = Self> {
        let models = GpuModel::ALL.into_iter().map(|model| Self::Gpu(Some(model)));
        [Self::Gpu(None)].into_iter().chain(models).chain([Self::Cpu])
    }

    /// The TPU generation, if it is a TPU.
    #[must_use]
    pub fn generation(self) -> Option<Generation> {
        match self {
            Self::Tpu(generation) => Some(generation),
            _ => None,
        }
    }

    /// Bytes of its memory, if its name implies them: those that a TPU offers to programs, or all of a GPU's.
    #[must_use]
    pub fn memory_bytes(self) -> Option<u64> {
        match self {
            Self::Tpu(generation) => Some(generation.hbm_bytes()),
            Self::Gpu(model) => Some(model?.memory_bytes()),
            Self::Cpu => None,
        }
    }

    /// Bytes available to a program and its arguments by default: on a GPU, the three quarters that JAX's pool takes
    /// (`XLA_PYTHON_CLIENT_MEM_FRACTION`).
    ///
    /// ```
    /// use tilewise_memory::{GpuModel, Machine};
    ///
    /// assert_eq!(Machine::Gpu(Some(GpuModel::H100)).program_bytes(), Some(63_697_010_688));
    /// assert_eq!(Machine::Gpu(None).program_bytes(), None);
    /// ```
    #[must_use]
    pub fn program_bytes(self) -> Option<u64> {
        if self.generation().is_some() { self.memory_bytes() } else { self.pool_bytes(POOL_FRACTION) }
    }

    /// Bytes of a GPU's memory in a pool that takes this share of it; `None` if the machine isn't a GPU of a known
    /// model or the share isn't between 0 and 1.
    ///
    /// ```
    /// use tilewise_memory::{GpuModel, Machine};
    ///
    /// assert_eq!(Machine::Gpu(Some(GpuModel::H100)).pool_bytes(0.9), Some(76_436_412_825));
    /// ```
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a GPU's memory, which a float counts exactly: XLA computes it so"
    )]
    pub fn pool_bytes(self, fraction: f64) -> Option<u64> {
        let Self::Gpu(Some(model)) = self else { return None };
        let is_share = 0.0 < fraction && fraction <= 1.0;
        is_share.then(|| (model.memory_bytes() as f64 * fraction) as u64)
    }

    /// The compiler versions that plans were checked against.
    #[must_use]
    pub fn compiler(self) -> &'static str {
        match self {
            Self::Tpu(_) => "libtpu 0.0.51",
            Self::Gpu(_) => "XLA for GPUs in jax 0.6.2 to 0.12.0",
            Self::Cpu => "XLA for CPUs in jax 0.4.35 to 0.10.2",
        }
    }

    /// The unit in bytes to which its compiler rounds up the memory of temporaries.
    #[must_use]
    pub fn temporary_alignment(self) -> u64 {
        if self.generation().is_some() { HBM_ALIGNMENT } else { 1 }
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
            Self::Gpu(None) => f.write_str("gpu"),
            Self::Gpu(Some(model)) => write!(f, "gpu:{}", model.name()),
            Self::Cpu => f.write_str("cpu"),
        }
    }
}

/// An unknown machine name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMachine(String);

impl fmt::Display for UnknownMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others: Vec<_> = Machine::others().map(|machine| machine.to_string()).collect();
        let others = others.join(", ");
        write!(f, "`{}` isn't a machine: tpu:v5e and other TPU generations, {others}", tilewise::visible(&self.0))
    }
}

impl std::error::Error for UnknownMachine {}

impl FromStr for Machine {
    type Err = UnknownMachine;

    fn from_str(text: &str) -> Result<Self, UnknownMachine> {
        let name = text.trim().to_ascii_lowercase();
        let tpu = || Some(Self::Tpu(name.strip_prefix("tpu:").unwrap_or(&name).parse().ok()?));
        let is_it = |machine: &Self| {
            let full = machine.to_string();
            full == name || full.strip_prefix("gpu:") == Some(&name)
        };
        let other = Self::others().find(is_it);
        other.or_else(tpu).ok_or_else(|| UnknownMachine(text.to_owned()))
    }
}
