//! The loop nest of a plan: which loops, in which order, around which kernel.
//!
//! Loops run in the order of the destination wherever a kernel allows it: then writes are one linear stream, and padding is
//! written as it is passed. Innermost is a [`Leaf`], which covers the digits that are contiguous on either side.
//!
//! A number such as a dimension of bound 4001 cut into (x div 128, x mod 128) does not fill its digits. The walk carries a *limit* for
//! each such number, its bound less what the outer loops have taken; a digit then takes min(count, ⌈limit / divisor⌉) values. So ragged
//! edges cost a test per loop, never one per element, in whatever order the digits are visited.

mod innermost;

use crate::{
    joint_digits::{JointDigit, JointDigits},
    leaf::{Chain, Convert, Leaf, Loop, Transpose},
    prefetch::{LARGEST_PANEL, Reads},
    scalar::Elements,
    tuning::{Mechanism, Tuning},
};
use innermost::Innermost;

/// Loops from the outermost, around a leaf.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    pub(crate) loops: Vec<Loop>,
    pub(crate) leaf: Leaf,
    /// Units of stride per element: its bytes, or 1 if the leaf is [`Leaf::Elements`].
    pub(crate) scale: u64,
    /// The bounds of the numbers in [`Loop::number`].
    pub(crate) limits: Vec<u64>,
    /// Whether loops and leaf write the padding that they pass.
    pub(crate) fills: bool,
    pub(crate) reads: Reads,
}

impl Nest {
    pub(crate) fn nothing() -> Self {
        Self {
            loops: Vec::new(),
            leaf: Leaf::Nothing,
            scale: 1,
            limits: Vec::new(),
            fills: false,
            reads: Reads::default(),
        }
    }

    /// A number whose last values do not fit the kernel that suits the others, and the number of values that this
    /// kernel takes: the elements of a byte, or the units of a short run.
    pub(crate) fn ragged_grain(joint: &JointDigits, elements: Elements) -> Option<(usize, u64)> {
        let Elements { source_bits: source, destination_bits: destination, .. } = elements;
        let narrow = source.min(destination);
        let packs = source != destination && narrow < 8;
        let low = |digit: &&JointDigit| match (packs, source < destination) {
            (true, false) => digit.destination_stride == 1,
            (true, true) => digit.source_stride == 1,
            (false, _) => digit.source_stride == 1 && digit.destination_stride == 1,
        };
        let low = joint.digits.iter().find(low)?;
        let span = low.divisor * low.count;
        let outermost = span >= joint.bounds[low.number];
        let grain = match narrow {
            1 | 2 | 4 if outermost || low.count % (8 / narrow) == 0 => low.divisor * (8 / narrow),
            _ if source == destination && narrow % 8 == 0 && !outermost && low.count * narrow <= 128 => span,
            _ => return None,
        };
        let bound = joint.bounds[low.number];
        (grain < bound && !bound.is_multiple_of(grain)).then_some((low.number, grain))
    }

    /// Chooses leaf and order. `fill` asks for the destination's padding to be written, if the order allows it.
    pub(crate) fn of(joint: &JointDigits, elements: Elements, fill: bool, tuning: &Tuning) -> Self {
        let mut innermost = Innermost::of(joint, elements);
        let scale = if innermost.by_element { 1 } else { innermost.unit };
        let leaf = innermost.take_leaf();
        let row = innermost.row;
        let is_linear = match leaf {
            Leaf::Run { convert: Convert::Unpack { pitch, .. }, .. } => pitch == 1,
            Leaf::Transpose { kind, .. } => matches!(kind, Transpose::Interleave { .. }),
            Leaf::Elements(_) => false,
            _ => true,
        };
        let mut loops = innermost.loops;
        loops.sort_by_key(|inner| core::cmp::Reverse(inner.destination_stride));
        let limits = joint.bounds.clone();
        let mut nest = Self { loops, leaf, scale, limits, fills: fill && is_linear, reads: Reads::default() };
        if is_linear && tuning.has(Mechanism::GatheredReads) {
            nest.gather_reads(tuning);
        }
        nest.reads = Reads::of(&nest.loops, &nest.leaf, nest.leaf_span(), row, tuning);
        nest
    }

    /// Whether the loops from a depth on, and a leaf of one run, fill all of `room`.
    pub(crate) fn is_gapless(&self, depth: usize, mut room: u64, limits: &[u64]) -> bool {
        // A digit below an outer one of its number is whole in all of its values only if the outer one is, too.
        let whole = |digit: &Loop| digit.number.is_none_or(|number| limits[number] >= digit.divisor * digit.count);
        for inner in &self.loops[depth..] {
            if !whole(inner) || inner.count * inner.destination_stride != room {
                return false;
            }
            room = inner.destination_stride;
        }
        match &self.leaf {
            Leaf::Run { unit, run: None, .. } => *unit == room,
            Leaf::Run { unit, run: Some(run), .. } => whole(run) && run.count * unit == room,
            _ => false,
        }
    }

    /// The span in source bytes of one run of the leaf.
    fn leaf_span(&self) -> u64 {
        let span = |chain: &Chain| {
            let outer = chain.outer.map_or(0, |outer| (outer.count - 1) * outer.source_stride);
            (chain.inner.count - 1) * chain.inner.source_stride + outer
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
                unit + merged + span(rows) + span(columns)
            }
            Leaf::Elements(_) | Leaf::Nothing => 1,
        }
    }

    /// Reads pieces of a few places together if the order of the destination would read a short piece at each of many
    /// distant places, and return for the next piece when no cache holds it any more: `heads { positions { … } }`
    /// becomes `transpose of positions { heads { a block of positions { … } } }`.
    fn gather_reads(&mut self, tuning: &Tuning) {
        /// Source bytes below which a piece is short enough to gain.
        const SHORT: u64 = 1024;
        /// Least source bytes for a block to read in one go.
        const READ: u64 = 32 << 10;
        let mut span = self.leaf_span();
        for depth in (0..self.loops.len()).rev() {
            let outer = self.loops[depth];
            let pieces = outer.source_stride < SHORT && outer.source_stride < span && span > LARGEST_PANEL;
            if let (true, Some(&far)) = (pieces, self.loops.get(depth + 1)) {
                let wanted =
                    tuning.gathered_bytes.div_ceil(far.destination_stride).max(READ.div_ceil(far.source_stride));
                // Only the outermost digit of a number may have a last block that is not whole.
                let outermost = |number: usize| far.divisor * far.count >= self.limits[number];
                let may_end_early = far.number.is_some_and(outermost);
                let block = (wanted..2 * wanted).find(|block| may_end_early || far.count % block == 0);
                if let (true, Some(block)) =
                    (far.source_stride >= outer.source_stride * outer.count, block.filter(|&b| b < far.count))
                {
                    let transpose = Loop {
                        divisor: far.divisor * block,
                        count: far.count.div_ceil(block),
                        source_stride: far.source_stride * block,
                        destination_stride: far.destination_stride * block,
                        ..far
                    };
                    self.loops[depth + 1].count = block;
                    self.loops.insert(depth, transpose);
                    self.fills = false;
                    return;
                }
            }
            span += (outer.count - 1) * outer.source_stride;
        }
    }
}
