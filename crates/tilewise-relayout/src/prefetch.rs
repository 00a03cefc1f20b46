//! Prefetching: the one place that decides how a nest's reads reach memory in time.
//!
//! If everything fits into the caches, nothing is prefetched. Otherwise it depends on how the nest reads its source,
//! which is known when the nest is made ([`Reads`]), and on the CPU's own prefetching ([`Tuning`]).

use crate::{
    kernels::Prefetch,
    leaf::{Chain, Leaf, Loop, Transpose},
    size::size,
    tuning::{Mechanism, Tuning},
};

/// Maximum source bytes that are read again or prefetched while they share the second-level cache with the bytes written.
pub(crate) const LARGEST_PANEL: u64 = 384 << 10;

/// Bytes of a piece of a row after which the row may go on elsewhere.
pub(crate) const LONG_ROW: u64 = 512;

/// How many pieces of the same row to prefetch ahead, and how many bytes where a piece is longer than that.
const PIECES_AHEAD: u64 = 4;
const BYTES_AHEAD: u64 = 1024;

/// Where a row continues after the piece that a leaf reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowContinuation {
    /// Source bytes from a read to the address prefetched with it, 0 for none.
    distance: u64,
    /// Whether the row is known to continue there.
    is_known: bool,
}

impl RowContinuation {
    /// After a piece of `piece` source bytes: at the `next` digit of the same number, or, if runs of `unit` bytes are
    /// long, right behind.
    pub(crate) fn after(piece: u64, unit: u64, next: Option<&Loop>) -> Self {
        let is_long = unit >= BYTES_AHEAD;
        Self {
            distance: next.filter(|_| !is_long).map_or(BYTES_AHEAD, |next| PIECES_AHEAD * next.source_stride),
            is_known: is_long || next.is_some_and(|next| next.source_stride == piece || piece >= LONG_ROW),
        }
    }

    /// The continuation in a transpose.
    pub(crate) fn in_transpose(self, kind: Transpose, rows: &Chain) -> Self {
        match (kind, rows.outer) {
            // Measured: for 4 rows or more at once it costs more than it gains.
            (Transpose::Interleave { ways: 4.. }, _) => Self { distance: 0, ..self },
            // Measured: prefetching the next panel gains more.
            (Transpose::Deinterleave { .. }, outer) => {
                let distance = outer.map_or(self.distance, |outer| PIECES_AHEAD * outer.source_stride);
                Self { distance, is_known: false }
            }
            _ => self,
        }
    }
}

/// How a nest reads its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// The loop whose iterations read one dense panel of the source after the other.
    pub(crate) panel: Option<usize>,
    /// Where rows continue; for runs that jump, the distance to the next runs.
    row: RowContinuation,
    /// Whether it reads from the source's start to its end.
    is_linear: bool,
}

impl Reads {
    /// Finds the outermost loop that steps through the source panel by panel, each dense and small enough for a cache.
    /// `leaf_span` is the leaf's span in source bytes.
    pub(crate) fn of(loops: &[Loop], leaf: &Leaf, leaf_span: u64, row: RowContinuation, tuning: &Tuning) -> Self {
        let mut span = leaf_span;
        let mut is_linear = matches!(leaf, Leaf::Run { convert, .. } if !convert.is_across_rows());
        let mut panel = None;
        for (depth, outer) in loops.iter().enumerate().rev() {
            // A ragged digit's span goes a little beyond the panel's end.
            let follows = outer.source_stride + outer.source_stride / 16 >= span;
            if follows && outer.source_stride <= (span + span / 4).min(LARGEST_PANEL) {
                panel = Some(depth);
            }
            is_linear &= follows;
            span += (outer.count - 1) * outer.source_stride;
        }
        let mut reads = Self { panel: panel.filter(|_| !is_linear), row, is_linear };
        if reads.panel.is_none() {
            // Some CPUs read short runs well enough by themselves, several at a time.
            let is_worth_it = (tuning.shortest_jump..=16 * BYTES_AHEAD).contains(&leaf_span);
            let runs_ahead = (2 * BYTES_AHEAD / leaf_span.max(1)).max(1);
            let jump = loops.last().filter(|_| reads.jumps(leaf) && is_worth_it);
            reads.row.distance = jump.map_or(0, |inner| runs_ahead * inner.source_stride);
        }
        reads
    }

    /// Whether runs are read from places that the CPU does not foresee.
    pub(crate) fn jumps(&self, leaf: &Leaf) -> bool {
        matches!(leaf, Leaf::Run { .. }) && self.panel.is_none() && !self.is_linear
    }

    /// The prefetches at the start of a walk.
    pub(crate) fn at_start(&self, tuning: &Tuning) -> Prefetch {
        if self.panel.is_some() || !tuning.has(Mechanism::JumpPrefetch) {
            return Prefetch::nothing();
        }
        Prefetch { row_distance: size(self.row.distance), row_into_l1: tuning.rows_into_l1, ..Prefetch::nothing() }
    }

    /// The prefetches for a job that reads linearly from `source`; `None` if jobs have none.
    pub(crate) fn in_linear_job(&self, source: *const u8, tuning: &Tuning) -> Option<Prefetch> {
        let distance = if tuning.has(Mechanism::LinearPrefetch) { tuning.linear_distance } else { 0 };
        self.is_linear.then(|| Prefetch {
            linear: source.wrapping_add(distance),
            linear_lines: distance != 0,
            linear_tlb: tuning.has(Mechanism::TlbWarming),
            ..Prefetch::nothing()
        })
    }

    /// The prefetches from here on, if the next panel of the source starts at an address.
    pub(crate) fn in_panel(&self, next_panel: *const u8, tuning: &Tuning) -> Prefetch {
        let prefetches_panel = tuning.panel_and_rows || !self.row.is_known;
        let prefetches_rows = tuning.panel_and_rows || self.row.is_known;
        let mut prefetch = Prefetch::nothing();
        if prefetches_panel && tuning.has(Mechanism::PanelPrefetch) {
            prefetch.linear = next_panel;
            prefetch.linear_lines = true;
            prefetch.linear_tlb = tuning.has(Mechanism::TlbWarming);
        }
        if prefetches_rows && tuning.has(Mechanism::RowPrefetch) {
            prefetch.row_distance = size(self.row.distance);
            prefetch.row_into_l1 = tuning.rows_into_l1;
        }
        prefetch
    }
}
