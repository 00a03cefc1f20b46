//! Properties of the CPU: its instructions, and its best access to memory.

#[cfg(feature = "unstable-testing")]
use crate::Mechanism;
use crate::tuning::Tuning;

/// A CPU to run kernels for: its instructions, and its tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "unstable-testing"), allow(unreachable_pub, reason = "public for tests and benchmarks"))]
pub struct Cpu {
    pub(crate) level: Level,
    pub(crate) tuning: Tuning,
}

impl Cpu {
    /// This CPU, with its best instructions. The standard library asks the CPU once.
    pub(crate) fn detect() -> Self {
        Self { level: Level::detect(), tuning: Tuning::detect() }
    }
}

#[cfg(feature = "unstable-testing")]
impl Cpu {
    /// Every way to run kernels that this CPU has the instructions for: every maker's tuning, then every instruction set, the best
    /// last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let best = Self::detect();
        let levels = Level::ALL.iter().filter(|level| level.is_available());
        let others = Tuning::ALL.iter().filter(|&&tuning| tuning != best.tuning);
        let mut available: Vec<Self> = others.map(|&tuning| Self { tuning, ..best }).collect();
        available.extend(levels.map(|&level| Self { level, ..best }));
        available
    }

    /// Whether this CPU's tuning has a mechanism.
    #[must_use]
    pub fn detects(mechanism: Mechanism) -> bool {
        Tuning::detect().has(mechanism)
    }

    /// This CPU, with a mechanism left out.
    #[must_use]
    pub fn without(mechanism: Mechanism) -> Self {
        let best = Self::detect();
        Self { tuning: best.tuning.without(mechanism), ..best }
    }
}

/// An instruction set that kernels exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// All there are, the best last.
    const ALL: &[Self] = &[
        Self::Portable,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
    ];

    /// The best level this CPU has. The standard library asks the CPU once.
    fn detect() -> Self {
        Self::ALL.iter().rev().copied().find(|level| level.is_available()).unwrap_or(Self::ALL[0])
    }

    pub(crate) fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512vl")
                    && std::is_x86_feature_detected!("avx512vbmi")
            }
        }
    }
}
