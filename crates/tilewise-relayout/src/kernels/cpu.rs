//! What is known of the CPU: which instructions it has, and how it reaches memory best.

/// How kernels are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Cpu {
    pub(crate) level: Level,
    pub(crate) tuning: &'static Tuning,
}

impl Cpu {
    /// The best for this CPU. The standard library asks the CPU once.
    pub(crate) fn detect() -> Self {
        Self { level: Level::detect(), tuning: Tuning::detect() }
    }

    /// Every way that this CPU can run kernels, the best last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let best = Self::detect();
        let levels = Level::ALL.iter().filter(|level| level.is_available());
        let others = Tuning::ALL.iter().filter(|&&tuning| tuning != best.tuning);
        let mut available: Vec<Self> = others.map(|tuning| Self { tuning, ..best }).collect();
        available.extend(levels.map(|&level| Self { level, ..best }));
        available
    }
}

/// An instruction set that kernels exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    #[cfg(any(feature = "portable", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    Portable,
    #[cfg(target_arch = "x86_64")]
    Sse2,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Level {
    /// All there are, the best last.
    const ALL: &[Self] = &[
        #[cfg(any(feature = "portable", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
        Self::Portable,
        #[cfg(target_arch = "x86_64")]
        Self::Sse2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
    ];

    /// The best level this CPU has. The standard library asks the CPU once.
    fn detect() -> Self {
        // SSE2 is part of x86-64, and NEON of aarch64 with a standard library.
        Self::ALL.iter().rev().copied().find(|level| level.is_available()).unwrap_or(Self::ALL[0])
    }

    pub(crate) fn is_available(self) -> bool {
        match self {
            #[cfg(any(feature = "portable", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => std::is_x86_feature_detected!("sse2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512vl")
                    && std::is_x86_feature_detected!("avx512vbmi")
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
        }
    }
}

/// What CPUs with the same instructions do differently, as measured; DESIGN.md has more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Whether the addresses of pages to come are to be asked for, many at a time.
    pub(crate) looks_up_pages: bool,
    /// Where the source is read in plain order: bytes from a read to the line that is asked for with it, 0 for none.
    pub(crate) linear: usize,
    /// Where rows are read piece by piece: whether to ask both for the next panel and for what each row goes on with. Otherwise it is one of
    /// them: the panel where it is not known how rows go on.
    pub(crate) far_and_near: bool,
    /// Whether what a row goes on with is asked for into the nearest cache.
    pub(crate) nearest: bool,
    /// Of runs that jump: bytes of the shortest of which the next ones are asked for.
    pub(crate) shortest_jump: u64,
    /// Where the source is read in short pieces of many far places: destination bytes to write at each in one go.
    pub(crate) gathered: u64,
    /// In a transpose: units of one row that are read together, unless they are less than a KiB.
    pub(crate) strip: usize,
    /// In a transpose that writes whole columns one after the other: source bytes of one row that are asked for together, or 0 to ask for
    /// a line of every row in turn.
    pub(crate) columns_strip: usize,
    /// Bytes of both buffers together from which on stores had better pass the caches.
    pub(crate) large: u64,
    /// The same where reads or stores go to many places by turns: transposes, and runs that jump.
    pub(crate) large_scattered: u64,
}

impl Tuning {
    /// Measured on a Zen 4, and taken for what nobody has measured.
    const AMD: &Self = &Self {
        looks_up_pages: true,
        linear: 0,
        far_and_near: true,
        nearest: true,
        shortest_jump: 1024,
        gathered: 4 << 10,
        strip: 0,
        columns_strip: 0,
        large: 12 << 20,
        large_scattered: 8 << 20,
    };
    /// Measured on a Xeon with 2 MiB of second-level cache a core.
    #[cfg(target_arch = "x86_64")]
    const INTEL: &Self = &Self {
        looks_up_pages: false,
        linear: 8 << 10,
        far_and_near: false,
        nearest: false,
        shortest_jump: 64,
        gathered: 16 << 10,
        strip: 512,
        columns_strip: 512,
        large: 40 << 20,
        large_scattered: 8 << 20,
    };

    const ALL: &[&Self] = &[
        Self::AMD,
        #[cfg(target_arch = "x86_64")]
        Self::INTEL,
    ];

    #[inline]
    pub(crate) fn detect() -> &'static Self {
        // SSE4a is AMD's alone, and all of its CPUs have it.
        #[cfg(target_arch = "x86_64")]
        if !std::is_x86_feature_detected!("sse4a") {
            return Self::INTEL;
        }
        Self::AMD
    }
}
