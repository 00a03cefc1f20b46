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
    pack::Elements,
    plan::loop_of,
};

/// One loop: a digit, and how far apart its values lie on both sides, in bytes (in elements where the leaf is [`Leaf::Elements`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// Whose limit the digit is cut from; `None` where it always takes all its values.
    pub(crate) number: Option<usize>,
    pub(crate) divisor: u64,
    pub(crate) count: u64,
    pub(crate) source: u64,
    pub(crate) destination: u64,
}

impl Loop {
    /// The destination bytes that belong to one value of the loop, when `room` belong to all of them.
    pub(crate) fn room(&self, room: u64, value: u64) -> u64 {
        self.destination.min(room.saturating_sub(value * self.destination))
    }

    /// How many values the digit takes under these limits.
    pub(crate) fn extent(&self, limits: &[u64]) -> u64 {
        match self.number {
            None => self.count,
            Some(number) => upper(self.count, limits[number], self.divisor),
        }
    }
}

/// min(count, ⌈limit / divisor⌉), with a division only where it matters.
fn upper(count: u64, limit: u64, divisor: u64) -> u64 {
    if limit >= count * divisor { count } else { limit.div_ceil(divisor) }
}

/// One digit, or two neighbours of one number, as a side of a [`Leaf::Transpose`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) inner: Loop,
    /// Its divisor is the inner one's times its count.
    pub(crate) outer: Option<Loop>,
}

impl Chain {
    pub(crate) fn extent(&self, limits: &[u64]) -> u64 {
        let all = self.inner.count * self.outer.map_or(1, |outer| outer.count);
        let ragged = self.inner.number.or(self.outer.and_then(|outer| outer.number));
        ragged.map_or(all, |number| upper(all, limits[number], self.inner.divisor))
    }

    pub(crate) fn count(&self) -> u64 {
        self.inner.count * self.outer.map_or(1, |outer| outer.count)
    }
}

/// What turns a unit of one side into one of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Convert {
    /// Bytes stay bytes.
    Copy,
    /// `8 / bits` source bytes, `pitch` apart, become one.
    Pack { bits: u32, pitch: u64 },
    /// One byte becomes `8 / bits` destination bytes, `pitch` apart.
    Unpack { bits: u32, signed: bool, pitch: u64 },
}

impl Convert {
    /// Whether the elements of a packed byte are of different rows on the other side.
    pub(crate) fn is_across_rows(self) -> bool {
        matches!(self, Self::Pack { pitch, .. } | Self::Unpack { pitch, .. } if pitch > 1)
    }
}

/// The innermost digits, done by one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaf {
    /// A run that is contiguous on both sides: `run` units, or one.
    Run { source_unit: u64, unit: u64, run: Option<Loop>, convert: Convert },
    /// Units of 1, 2, 4, 8 or 16 bytes: `rows` is contiguous in the destination, `columns` in the source.
    Transpose { unit: u64, rows: Chain, columns: Chain, kind: Transpose, convert: Convert },
    /// Single elements of any width at any bit.
    Elements(Elements),
    /// No element exists.
    Nothing,
}

/// How a transpose fits into registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transpose {
    /// Columns follow each other in the destination, `ways` rows deep.
    Interleave { ways: usize },
    /// Rows follow each other in the source, `ways` columns wide.
    Deinterleave { ways: usize },
    /// Squares.
    Blocks,
}

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
        /// What a block should at least write in one go, and read.
        const WRITTEN: u64 = 4096;
        const READ: u64 = 32 << 10;
        let mut reach = self.leaf_reach();
        for depth in (0..self.loops.len()).rev() {
            let outer = self.loops[depth];
            let pieces = outer.source < SHORT && outer.source < reach && reach > LARGEST_PANEL;
            if let (true, Some(&far)) = (pieces, self.loops.get(depth + 1)) {
                let wanted = WRITTEN.div_ceil(far.destination).max(READ.div_ceil(far.source));
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
            // The CPU does not see where runs that jump go on. Short ones it reads well enough, several at a time.
            let jumps = matches!(self.leaf, Leaf::Run { .. }) && !self.reads_linearly;
            let length = self.leaf_reach();
            let long = (NEAR_BYTES..=16 * NEAR_BYTES).contains(&length);
            let runs = (2 * NEAR_BYTES / length.max(1)).max(1);
            self.near = self.loops.last().filter(|_| jumps && long).map_or(0, |inner| runs * inner.source);
        }
    }
}

/// Source bytes that are read over and over, or prefetched, while they share the second-level cache with what is written.
const LARGEST_PANEL: u64 = 384 << 10;

/// Destination bytes of a run of rows that need no more to follow them.
const LONG_ROW: u64 = 512;

/// How many runs of the same row to prefetch ahead, and how many bytes where a run is longer than that.
const NEAR: u64 = 4;
const NEAR_BYTES: u64 = 1024;

/// Joint digits on their way to becoming loops.
struct Digits<'a> {
    bounds: &'a [u64],
    loops: Vec<Loop>,
    /// Number of each loop, ragged or not: neighbours in a chain are of one number.
    numbers: Vec<usize>,
    source_unit: u64,
    unit: u64,
    convert: Convert,
    elements: Elements,
    by_element: bool,
    near: u64,
}

impl<'a> Digits<'a> {
    fn of(axes: &'a Axes, elements: Elements) -> Self {
        let whole = elements.source == elements.destination && elements.source.is_multiple_of(8);
        let numbers = axes.axes.iter().map(|axis| axis.number).collect();
        let scaled = |scale: (u64, u64)| axes.axes.iter().map(|axis| loop_of(axes, axis, scale)).collect();
        let bytes = elements.source / 8;
        let mut digits = Self {
            bounds: &axes.bounds,
            loops: Vec::new(),
            numbers,
            source_unit: bytes,
            unit: bytes,
            convert: Convert::Copy,
            elements,
            by_element: false,
            near: 0,
        };
        if whole {
            digits.loops = scaled((bytes, bytes));
        } else if axes.irregular.is_empty() {
            digits.loops = scaled((1, 1));
            digits.by_element = !digits.fold_bytes();
        } else {
            digits.loops = scaled((1, 1));
            digits.by_element = true;
        }
        digits
    }

    /// Where whole bytes of narrow elements stay together, on one side or both, makes them the unit; false where they don't.
    fn fold_bytes(&mut self) -> bool {
        let Elements { bits, source, destination, signed } = self.elements;
        let narrow = source.min(destination);
        let width = source.max(destination);
        if source != destination && (width != 8 || narrow != bits || 8 % narrow != 0) {
            return false;
        }
        let per_unit = if narrow % 8 == 0 { 1 } else { (1..=8).find(|n| n * narrow % 8 == 0).unwrap_or(8) };
        let unit = per_unit * narrow / 8;
        let narrow_stride = |l: &Loop| if destination <= source { l.destination } else { l.source };
        // The digit whose lowest part fills the narrow side's units.
        let Some(at) = self.loops.iter().position(|l| narrow_stride(l) == 1) else { return false };
        let low = self.loops[at];
        let fits = |stride: u64| stride.is_multiple_of(per_unit);
        let others = self
            .loops
            .iter()
            .enumerate()
            .all(|(i, l)| i == at || (fits(narrow_stride(l)) && (source != destination || fits(l.source))));
        // The digit may end early, but not inside a unit.
        let whole_units = self.bounds[self.numbers[at]].is_multiple_of(low.divisor * per_unit);
        if !others || !low.count.is_multiple_of(per_unit) || !whole_units {
            return false;
        }
        let adjacent = low.source == 1 && low.destination == 1;
        if source == destination && !adjacent {
            return false;
        }
        let narrow_bits = u32::try_from(narrow).unwrap_or(8);
        (self.convert, self.source_unit, self.unit) = if source == destination {
            (Convert::Copy, unit, unit)
        } else if source > destination {
            let source_unit = if adjacent { per_unit } else { 1 };
            (Convert::Pack { bits: narrow_bits, pitch: low.source }, source_unit, 1)
        } else {
            let unit = if adjacent { per_unit } else { 1 };
            (Convert::Unpack { bits: narrow_bits, signed, pitch: low.destination }, 1, unit)
        };
        for (i, l) in self.loops.iter_mut().enumerate() {
            if i == at {
                l.count /= per_unit;
                l.divisor *= per_unit;
                l.source *= per_unit;
                l.destination *= per_unit;
            }
            let narrow_bytes = |stride: u64| stride / per_unit * unit;
            match self.convert {
                Convert::Copy => (l.source, l.destination) = (narrow_bytes(l.source), narrow_bytes(l.destination)),
                Convert::Pack { .. } => l.destination = narrow_bytes(l.destination),
                Convert::Unpack { .. } => l.source = narrow_bytes(l.source),
            }
        }
        if self.loops[at].count == 1 {
            self.remove(at);
        }
        true
    }

    fn remove(&mut self, at: usize) -> Loop {
        self.numbers.remove(at);
        self.loops.remove(at)
    }

    fn position(&self, wanted: impl Fn(&Loop) -> bool) -> Option<usize> {
        self.loops.iter().position(wanted)
    }

    fn take_leaf(&mut self) -> Leaf {
        if self.by_element {
            return Leaf::Elements(self.elements);
        }
        if let Some(leaf) = self.take_transpose() {
            return leaf;
        }
        // Digits that continue the run on both sides make it longer, and the last may be ragged.
        let mut number = None;
        let mut run = None;
        while let Some(at) = self.position(|l| l.source == self.source_unit && l.destination == self.unit) {
            number = Some(self.numbers[at]);
            let digit = self.remove(at);
            if digit.number.is_some() {
                run = Some(digit);
                break;
            }
            self.source_unit *= digit.count;
            self.unit *= digit.count;
        }
        self.set_near(number);
        Leaf::Run { source_unit: self.source_unit, unit: self.unit, run, convert: self.convert }
    }

    /// Where a row goes on after a run: with the next digit of the same number, or, where runs are long, right behind.
    fn set_near(&mut self, number: Option<usize>) {
        let continues = self.loops.iter().zip(&self.numbers).filter(|(_, n)| Some(**n) == number);
        let next = continues.map(|(l, _)| l).min_by_key(|l| l.divisor);
        self.near = next.filter(|_| self.unit < NEAR_BYTES).map_or(NEAR_BYTES, |l| NEAR * l.source);
    }

    /// A transpose, if short runs are all that both sides have in common.
    fn take_transpose(&mut self) -> Option<Leaf> {
        let across_rows = self.convert.is_across_rows();
        if self.convert != Convert::Copy && !across_rows {
            return None;
        }
        let merges_rows = across_rows && matches!(self.convert, Convert::Pack { .. });
        let splits_rows = across_rows && !merges_rows;
        // Try with the longest unit first made of whole digits.
        let (mut unit, mut absorbed) = (self.unit, Vec::new());
        let rest = |absorbed: &[usize]| (0..self.loops.len()).filter(|i| !absorbed.contains(i)).collect::<Vec<_>>();
        while let Some(at) = self.position(|l| l.source == unit && l.destination == unit) {
            let digit = self.loops[at];
            if digit.number.is_some() || unit * digit.count > 16 {
                return None; // a run long enough, or of any length
            }
            unit *= digit.count;
            absorbed.push(at);
        }
        if ![1, 2, 4, 8, 16].contains(&unit) {
            return None;
        }
        let rest = rest(&absorbed);
        let row = rest.iter().copied().find(|&i| self.loops[i].destination == unit)?;
        let column = rest.iter().copied().find(|&i| self.loops[i].source == unit)?;
        let (rows, columns) = (self.loops[row], self.loops[column]);
        let tangled = self.numbers[row] == self.numbers[column] && (rows.number.is_some() || columns.number.is_some());
        if tangled {
            return None;
        }
        // A group of units is a kernel's own only if no other digit lies inside it.
        let ways = |stride: u64, count: u64, side: &dyn Fn(&Loop) -> u64| {
            let ways = usize::try_from(stride / unit).ok()?;
            let fits = stride.is_multiple_of(unit)
                && ways.is_power_of_two()
                && (ways == 2 || stride <= 16)
                && count <= ways as u64;
            let alone =
                !rest.iter().any(|&i| i != row && i != column && (unit..stride).contains(&side(&self.loops[i])));
            (fits && alone).then_some(ways)
        };
        let interleave = ways(columns.destination, rows.count, &|l| l.destination).filter(|_| !splits_rows);
        let deinterleave = ways(rows.source, columns.count, &|l| l.source).filter(|_| !merges_rows);
        let kind = match (interleave, deinterleave) {
            (Some(ways), _) => Transpose::Interleave { ways },
            (None, Some(ways)) if !splits_rows || unit == 1 => Transpose::Deinterleave { ways },
            _ if across_rows => return None,
            _ => Transpose::Blocks,
        };
        let number = self.numbers[match kind {
            Transpose::Deinterleave { .. } => row,
            _ => column,
        }];
        // The next digit of the same number, or of any if neither ever ends early.
        let next = |of: usize, continues: &dyn Fn(&Loop, &Loop) -> bool| {
            let inner = &self.loops[of];
            rest.iter().copied().find(|&i| {
                let l = &self.loops[i];
                let follows = self.numbers[i] == self.numbers[of] && l.divisor == inner.divisor * inner.count;
                let whole = inner.number.is_none() && l.number.is_none();
                i != row && i != column && (follows || whole) && continues(inner, l)
            })
        };
        let on_in_source = |inner: &Loop, l: &Loop| l.source == inner.source * inner.count;
        let on_in_destination = |inner: &Loop, l: &Loop| l.destination == inner.destination * inner.count;
        let (row_after, column_after) = match kind {
            Transpose::Interleave { .. } => (None, None),
            Transpose::Deinterleave { .. } => (next(row, &on_in_destination), None),
            Transpose::Blocks => {
                // A digit that goes on on both sides helps the one that has less.
                let column_after = next(column, &on_in_source);
                let wanted = |at: &usize| Some(*at) != column_after || rows.count < columns.count;
                let longer = next(row, &on_in_destination).filter(|at| rows.count * unit < LONG_ROW && wanted(at));
                let row_after = longer.or_else(|| next(row, &on_in_source).filter(wanted));
                (row_after, column_after.filter(|&at| Some(at) != row_after))
            }
        };
        let chain = |inner: usize, outer: Option<usize>| Chain {
            inner: self.loops[inner],
            outer: outer.map(|outer| self.loops[outer]),
        };
        let leaf = Leaf::Transpose {
            unit,
            rows: chain(row, row_after),
            columns: chain(column, column_after),
            kind,
            convert: self.convert,
        };
        absorbed.extend([row, column].into_iter().chain(row_after).chain(column_after));
        absorbed.sort_unstable();
        for &at in absorbed.iter().rev() {
            self.remove(at);
        }
        (self.unit, self.source_unit) = (unit, unit);
        self.set_near(Some(number));
        if let (Transpose::Deinterleave { .. }, Leaf::Transpose { rows: Chain { outer: Some(outer), .. }, .. }) =
            (kind, &leaf)
        {
            self.near = NEAR * outer.source;
        }
        Some(leaf)
    }
}
