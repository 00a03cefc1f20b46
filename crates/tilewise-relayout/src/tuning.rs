//! Measured differences between CPUs with the same instructions: one row per maker. TUNING.md has the measurements.

/// How one maker's CPUs reach memory best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Whether page addresses are brought into the TLB many at a time, before a linear pass comes to the pages.
    pub(crate) warms_tlb: bool,
    /// Where the source is read linearly: bytes from a read to the line prefetched with it, 0 for none.
    pub(crate) linear_distance: usize,
    /// Where rows are read in panels: whether to prefetch both the next panel and each row's continuation. Otherwise
    /// only one of them: the continuation if it is known, else the panel.
    pub(crate) panel_and_rows: bool,
    /// Whether a row's continuation is prefetched into the first-level cache, and not only into the second.
    pub(crate) rows_into_l1: bool,
    /// Bytes of the shortest jumping runs for which the next ones are prefetched.
    pub(crate) shortest_jump: u64,
    /// Where the source is read in short pieces at many distant places: destination bytes to write at each in one go.
    pub(crate) gathered_bytes: u64,
    /// In a transpose: units of one row that are read before the next row, but at least 1 KiB.
    pub(crate) strip_units: usize,
    /// In a transpose that writes whole columns one after the other: source bytes of one row that are prefetched before the next row, or 0
    /// to prefetch a line of every row in turn.
    pub(crate) column_strip_bytes: usize,
    /// Least bytes of both buffers together for non-temporal stores.
    pub(crate) non_temporal_bytes: u64,
    /// The like where reads or stores alternate between many places: transposes, and runs that jump.
    pub(crate) scattered_non_temporal_bytes: u64,
    /// The mechanism that a benchmark leaves out, to measure its gain.
    without: Option<Mechanism>,
}

/// Optional mechanisms of the engine, beyond loops around kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "unstable-testing"), allow(unreachable_pub, dead_code, reason = "public for benchmarks"))]
pub enum Mechanism {
    /// Page addresses are brought into the TLB before a linear pass comes to the pages.
    TlbWarming,
    /// A transpose writes cache lines that hold the end of one column and the start of the next in one piece.
    StraddlingColumns,
    /// Short pieces at many distant places are read in blocks.
    GatheredReads,
    /// Arrays of a few elements are a list of moves.
    SmallArrays,
    /// The next panel of the source is prefetched.
    PanelPrefetch,
    /// A row's continuation is prefetched.
    RowPrefetch,
    /// The next runs are prefetched where runs jump.
    JumpPrefetch,
    /// A line further on is prefetched where the source is read linearly.
    LinearPrefetch,
    /// The next strip of a transpose is prefetched.
    StripPrefetch,
}

impl Mechanism {
    /// All of them.
    #[cfg(feature = "unstable-testing")]
    pub const ALL: &'static [Self] = &[
        Self::TlbWarming,
        Self::StraddlingColumns,
        Self::GatheredReads,
        Self::SmallArrays,
        Self::PanelPrefetch,
        Self::RowPrefetch,
        Self::JumpPrefetch,
        Self::LinearPrefetch,
        Self::StripPrefetch,
    ];
}

impl Tuning {
    /// For CPUs without measurements: values that cost neither maker's CPUs much.
    const NEUTRAL: Self = Self {
        warms_tlb: false,
        linear_distance: 0,
        panel_and_rows: false,
        rows_into_l1: false,
        shortest_jump: 1024,
        gathered_bytes: 8 << 10,
        strip_units: 0,
        column_strip_bytes: 0,
        non_temporal_bytes: 24 << 20,
        scattered_non_temporal_bytes: 8 << 20,
        without: None,
    };
    /// Measured on a Zen 4.
    const AMD: Self = Self {
        warms_tlb: true,
        panel_and_rows: true,
        rows_into_l1: true,
        gathered_bytes: 4 << 10,
        non_temporal_bytes: 12 << 20,
        ..Self::NEUTRAL
    };
    /// Measured on a Xeon with 2 MiB of second-level cache a core.
    const INTEL: Self = Self {
        linear_distance: 8 << 10,
        shortest_jump: 64,
        gathered_bytes: 16 << 10,
        strip_units: 512,
        column_strip_bytes: 512,
        non_temporal_bytes: 40 << 20,
        ..Self::NEUTRAL
    };

    #[cfg(feature = "unstable-testing")]
    pub(crate) const ALL: [Self; 3] = [Self::AMD, Self::INTEL, Self::NEUTRAL];

    /// The row of this machine's CPU.
    pub(crate) fn detect() -> Self {
        match vendor().as_ref() {
            b"AuthenticAMD" => Self::AMD,
            b"GenuineIntel" => Self::INTEL,
            _ => Self::NEUTRAL,
        }
    }

    /// Whether the row has a mechanism, and it is not left out.
    pub(crate) fn has(&self, mechanism: Mechanism) -> bool {
        let in_row = match mechanism {
            Mechanism::TlbWarming => self.warms_tlb,
            Mechanism::LinearPrefetch => self.linear_distance != 0,
            _ => true,
        };
        in_row && self.without != Some(mechanism)
    }

    #[cfg(feature = "unstable-testing")]
    pub(crate) const fn without(self, mechanism: Mechanism) -> Self {
        Self { without: Some(mechanism), ..self }
    }
}

/// The vendor's name from `cpuid`, asked once; zeros on other architectures.
fn vendor() -> [u8; 12] {
    #[cfg(target_arch = "x86_64")]
    {
        use std::{arch::x86_64::__cpuid, sync::LazyLock};
        static VENDOR: LazyLock<[u8; 12]> = LazyLock::new(|| {
            let leaf = __cpuid(0);
            let mut name = [0; 12];
            for (part, register) in name.as_chunks_mut().0.iter_mut().zip([leaf.ebx, leaf.edx, leaf.ecx]) {
                *part = register.to_le_bytes();
            }
            name
        });
        *VENDOR
    }
    #[cfg(not(target_arch = "x86_64"))]
    [0; 12]
}
