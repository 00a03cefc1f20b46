//! Rates of TPUs.

use tilewise::tpu::Generation;
use tilewise_hlo::Module;

/// The number of cores of a chip that form the device of a program.
///
/// A v4 or v5p has two, which JAX drives as one device. `get_topology_desc("v4:2x2x1")` without
/// `chip_config_name="megacore"` compiles for one of them, and its cycles are those of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cores {
    /// One.
    One,
    /// Both, as one device.
    Both,
}

impl Cores {
    /// The cores that a text shows: the compiler notes how it splits an operation between both (`megacore_config`).
    #[must_use]
    pub fn of(module: &Module) -> Self {
        let noted = memchr::memmem::find(module.source().as_bytes(), b"\"megacore_config\"");
        if noted.is_some() { Self::Both } else { Self::One }
    }
}

/// Peaks of a device per second, as published, and the clock of the compiler's cycles.
///
/// The clocks of v2, v3, v5e, v6e and v7x are confirmed by measurements that others published, v4's only by attention, v5p's
/// by none: see `docs/time.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rates {
    /// Cycles of a core.
    pub cycles: f64,
    /// Operations of a matrix multiplication in bfloat16.
    pub flops: f64,
    /// Bytes from or to HBM.
    pub hbm_bytes: f64,
    /// Bytes over one link to another chip, one way.
    pub link_bytes: f64,
    /// Bytes from or to the host.
    pub host_bytes: f64,
}

impl Cores {
    /// The number of cores, for a generation whose chips have two in one device; `None` for others.
    #[must_use]
    pub fn of_chip(self, generation: Generation) -> Option<u8> {
        let count = match self {
            Self::One => 1,
            Self::Both => 2,
        };
        Rates::has_two_cores(generation).then_some(count)
    }
}

impl Rates {
    /// The rates of a device.
    #[must_use]
    pub fn of(generation: Generation, cores: Cores) -> Self {
        let giga = 1e9;
        let (cycles, tera_flops, hbm, link, host) = match generation {
            Generation::V2 => (0.70, 22.5, 350.0, 62.5, 8.0),
            Generation::V3 => (0.94, 61.5, 450.0, 81.0, 8.0),
            Generation::V4 => (1.05, 275.0, 1228.0, 45.0, 16.0),
            Generation::V5e => (1.5, 197.0, 819.0, 45.0, 16.0),
            Generation::V5p => (1.75, 459.0, 2765.0, 90.0, 16.0),
            Generation::V6e => (1.75, 918.0, 1640.0, 90.0, 32.0),
            // The newest rates, until those of later generations are known.
            _ => (2.2, 1153.0, 3690.0, 90.0, 32.0),
        };
        let share = if Self::has_two_cores(generation) && cores == Cores::One { 0.5 } else { 1.0 };
        Self {
            cycles: cycles * giga,
            flops: tera_flops * 1e12 * share,
            hbm_bytes: hbm * giga * share,
            link_bytes: link * giga,
            host_bytes: host * giga,
        }
    }

    /// Whether two cores of a chip may be one device.
    #[must_use]
    pub fn has_two_cores(generation: Generation) -> bool {
        matches!(generation, Generation::V4 | Generation::V5p)
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate of two digits")]
impl Rates {
    /// Seconds of a number of cycles.
    #[must_use]
    pub fn seconds_of_cycles(&self, cycles: u64) -> f64 {
        cycles as f64 / self.cycles
    }

    /// Seconds of a number of operations at the peak.
    #[must_use]
    pub fn seconds_of_flops(&self, flops: u64) -> f64 {
        flops as f64 / self.flops
    }

    /// Seconds of a number of bytes of HBM at its full rate.
    #[must_use]
    pub fn seconds_of_bytes(&self, bytes: u64) -> f64 {
        bytes as f64 / self.hbm_bytes
    }

    /// Seconds of a number of bytes to the host or from it.
    pub(crate) fn seconds_to_host(&self, bytes: u64) -> f64 {
        bytes as f64 / self.host_bytes
    }
}
