//! The loop nest of a plan: which loops, in which order, around which kernel.
//!
//! Loops run in the order of the destination wherever a kernel allows it: then writes are one linear stream, and padding is
//! written as it is passed. Innermost is a [`Leaf`], which covers the digits that are contiguous on either side.
//!
//! A number such as a dimension of bound 4001 cut into (x div 128, x mod 128) does not fill its digits. The walk carries a *limit* for
//! each such number, its bound less what the outer loops have taken; a digit then takes min(count, ⌈limit / divisor⌉) values. So ragged
//! edges cost a test per loop, never one per element, in whatever order the digits are visited.

use crate::{
    axes::{Axes, Axis},
    digits::{Digits, NEAR_BYTES},
    kernels::Tuning,
    leaf::{Chain, Convert, Leaf, Loop, Transpose},
    pack::Elements,
};

/// Loops from the outermost, around a leaf.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    pub(crate) loops: Vec<Loop>,
    pub(crate) leaf: Leaf,
    /// What the strides count per element: its bytes, or 1 where the leaf is [`Leaf::Elements`].
    pub(crate) scale: u64,
    /// The bounds of the numbers that [`Loop::number`] speaks of.
    pub(crate) limits: Vec<u64>,
    /// Whether loops and leaf write the padding that they pass.
    pub(crate) fills: bool,
    /// The loop whose iterations read one dense panel of the source after the other.
    pub(crate) panel: Option<usize>,
    /// Source bytes from a run to its continuation in the same row, 0 if there is none.
    pub(crate) near: u64,
    /// Whether that is where rows are known to go on.
    pub(crate) rows_go_on: bool,
    /// Whether the source is read from its start to its end, so that nobody need be told what comes next.
    pub(crate) reads_linearly: bool,
}

impl Nest {
    pub(crate) fn nothing() -> Self {
        Self {
            loops: Vec::new(),
            leaf: Leaf::Nothing,
            scale: 1,
            limits: Vec::new(),
            fills: false,
            panel: None,
            near: 0,
            rows_go_on: false,
            reads_linearly: false,
        }
    }

    /// A number whose last few values would keep a whole nest from the kernel that suits the others, and how many values that
    /// kernel takes: the elements of a byte, or the units of a short run.
    pub(crate) fn ragged_grain(axes: &Axes, elements: Elements) -> Option<(usize, u64)> {
        let Elements { source, destination, .. } = elements;
        let narrow = source.min(destination);
        let packs = source != destination && narrow < 8;
        let low = |axis: &&Axis| match (packs, source < destination) {
            (true, false) => axis.destination == 1,
            (true, true) => axis.source == 1,
            (false, _) => axis.source == 1 && axis.destination == 1,
        };
        let low = axes.axes.iter().find(low)?;
        let reach = low.divisor * low.count;
        let outermost = reach >= axes.bounds[low.number];
        let grain = match narrow {
            1 | 2 | 4 if outermost || low.count % (8 / narrow) == 0 => low.divisor * (8 / narrow),
            _ if source == destination && narrow % 8 == 0 && !outermost && low.count * narrow <= 128 => reach,
            _ => return None,
        };
        let bound = axes.bounds[low.number];
        (grain < bound && !bound.is_multiple_of(grain)).then_some((low.number, grain))
    }

    /// Chooses leaf and order. `fill` asks for the destination's padding to be written, if the order allows it.
    pub(crate) fn of(axes: &Axes, elements: Elements, fill: bool) -> Self {
        let mut digits = Digits::of(axes, elements);
        let scale = if digits.by_element { 1 } else { digits.unit };
        let leaf = digits.take_leaf();
        let linear = match leaf {
            Leaf::Run { convert: Convert::Unpack { pitch, .. }, .. } => pitch == 1,
            Leaf::Transpose { kind, .. } => matches!(kind, Transpose::Interleave { .. }),
            _ => true,
        };
        let mut loops = digits.loops;
        loops.sort_by_key(|inner| core::cmp::Reverse(inner.destination));
        let fills = fill && linear && !matches!(leaf, Leaf::Elements(_));
        let mut nest = Self {
            loops,
            leaf,
            scale,
            limits: axes.bounds.clone(),
            fills,
            panel: None,
            near: digits.near,
            rows_go_on: digits.rows_go_on,
            reads_linearly: false,
        };
        if linear && !matches!(nest.leaf, Leaf::Elements(_)) {
            nest.gather_reads();
        }
        nest.choose_panel();
        nest
    }

    /// Whether the loops from a depth on, and a leaf of one run, fill all of `room`.
    pub(crate) fn is_gapless(&self, depth: usize, mut room: u64, limits: &[u64]) -> bool {
        // A digit below an outer one of its number is whole in all of its values only if the outer one is, too.
        let whole = |digit: &Loop| digit.number.is_none_or(|number| limits[number] >= digit.divisor * digit.count);
        for inner in &self.loops[depth..] {
            if !whole(inner) || inner.count * inner.destination != room {
                return false;
            }
            room = inner.destination;
        }
        match &self.leaf {
            Leaf::Run { unit, run: None, .. } => *unit == room,
            Leaf::Run { unit, run: Some(run), .. } => whole(run) && run.count * unit == room,
            _ => false,
        }
    }

    /// The source bytes that one run of the leaf reaches over.
    fn leaf_reach(&self) -> u64 {
        let reach = |chain: &Chain| {
            let outer = chain.outer.map_or(0, |outer| (outer.count - 1) * outer.source);
            (chain.inner.count - 1) * chain.inner.source + outer
        };
        match &self.leaf {
            Leaf::Run { source_unit, run, convert, .. } => {
                let rows = match convert {
                    Convert::Pack { bits, pitch } if *pitch > 1 => u64::from(8 / bits - 1) * pitch,
                    _ => 0,
                };
                rows + source_unit * run.map_or(1, |run| run.count)
            }
            Leaf::Transpose { unit, rows, columns, convert, .. } => {
                let merged =
                    if let Convert::Pack { bits, pitch } = convert { u64::from(8 / bits - 1) * pitch } else { 0 };
                unit + merged + reach(rows) + reach(columns)
            }
            Leaf::Elements(_) | Leaf::Nothing => 1,
        }
    }

    /// Where the order of the destination would read a short piece of each of many far places, and come back for the next piece
    /// when no cache remembers the first, reads the pieces of a few places together: `heads { positions { … } }` becomes
    /// `blocks of positions { heads { a block of positions { … } } }`.
    fn gather_reads(&mut self) {
        /// Shorter pieces than this are worth it.
        const SHORT: u64 = 1024;
        /// What a block should at least read in one go.
        const READ: u64 = 32 << 10;
        let mut reach = self.leaf_reach();
        for depth in (0..self.loops.len()).rev() {
            let outer = self.loops[depth];
            let pieces = outer.source < SHORT && outer.source < reach && reach > LARGEST_PANEL;
            if let (true, Some(&far)) = (pieces, self.loops.get(depth + 1)) {
                let written = Tuning::detect().gathered;
                let wanted = written.div_ceil(far.destination).max(READ.div_ceil(far.source));
                // Only the outermost digit of a number may have a last block that is not whole.
                let outermost = |number: usize| far.divisor * far.count >= self.limits[number];
                let may_end_early = far.number.is_some_and(outermost);
                let block = (wanted..2 * wanted).find(|block| may_end_early || far.count % block == 0);
                if let (true, Some(block)) =
                    (far.source >= outer.source * outer.count, block.filter(|&b| b < far.count))
                {
                    let blocks = Loop {
                        divisor: far.divisor * block,
                        count: far.count.div_ceil(block),
                        source: far.source * block,
                        destination: far.destination * block,
                        ..far
                    };
                    self.loops[depth + 1].count = block;
                    self.loops.insert(depth, blocks);
                    self.fills = false;
                    return;
                }
            }
            reach += (outer.count - 1) * outer.source;
        }
    }

    /// Whether runs are read from places where the CPU does not see the next one coming.
    pub(crate) fn runs_jump(&self) -> bool {
        matches!(self.leaf, Leaf::Run { .. }) && self.panel.is_none() && !self.reads_linearly
    }

    /// Finds the outermost loop that steps through the source panel by panel, each dense and small enough for a cache.
    fn choose_panel(&mut self) {
        let mut reach = self.leaf_reach();
        self.reads_linearly = matches!(self.leaf, Leaf::Run { convert, .. } if !convert.is_across_rows());
        for (level, outer) in self.loops.iter().enumerate().rev() {
            // A ragged digit's reach goes a little beyond the panel's end.
            let follows = outer.source + outer.source / 16 >= reach;
            if follows && outer.source <= (reach + reach / 4).min(LARGEST_PANEL) {
                self.panel = Some(level);
            }
            self.reads_linearly &= follows;
            reach += (outer.count - 1) * outer.source;
        }
        if self.reads_linearly {
            self.panel = None;
        }
        if self.panel.is_none() {
            // Short ones some CPUs read well enough, several at a time.
            let jumps = self.runs_jump();
            let length = self.leaf_reach();
            let long = (Tuning::detect().shortest_jump..=16 * NEAR_BYTES).contains(&length);
            let runs = (2 * NEAR_BYTES / length.max(1)).max(1);
            self.near = self.loops.last().filter(|_| jumps && long).map_or(0, |inner| runs * inner.source);
        }
    }
}

/// Source bytes that are read over and over, or prefetched, while they share the second-level cache with what is written.
const LARGEST_PANEL: u64 = 384 << 10;
