//! The innermost digits of a nest: which of them become its leaf.

use crate::{
    joint_digits::JointDigits,
    leaf::{Chain, Convert, Leaf, Loop, Transpose},
    prefetch::{LONG_ROW, RowContinuation},
    scalar::Elements,
};

/// Joint digits on their way to becoming loops.
pub(crate) struct Innermost<'a> {
    bounds: &'a [u64],
    pub(crate) loops: Vec<Loop>,
    /// The number of each loop, ragged or not; neighbours in a chain have the same number.
    numbers: Vec<usize>,
    source_unit: u64,
    pub(crate) unit: u64,
    convert: Convert,
    elements: Elements,
    pub(crate) by_element: bool,
    pub(crate) row: RowContinuation,
}

impl<'a> Innermost<'a> {
    pub(crate) fn of(joint: &'a JointDigits, elements: Elements) -> Self {
        let whole = elements.source_bits == elements.destination_bits && elements.source_bits.is_multiple_of(8);
        let numbers = joint.digits.iter().map(|digit| digit.number).collect();
        let scaled = |scale: (u64, u64)| joint.digits.iter().map(|digit| Loop::of(joint, digit, scale)).collect();
        let bytes = elements.source_bits / 8;
        let mut digits = Self {
            bounds: &joint.bounds,
            loops: Vec::new(),
            numbers,
            source_unit: bytes,
            unit: bytes,
            convert: Convert::Copy,
            elements,
            by_element: false,
            row: RowContinuation::default(),
        };
        if whole {
            digits.loops = scaled((bytes, bytes));
        } else if joint.irregular.is_empty() {
            digits.loops = scaled((1, 1));
            digits.by_element = !digits.fold_bytes();
        } else {
            digits.loops = scaled((1, 1));
            digits.by_element = true;
        }
        digits
    }

    /// Makes whole bytes of narrow elements the unit if they stay together, on one side or both; false if they don't.
    fn fold_bytes(&mut self) -> bool {
        let Elements { bits, source_bits: source, destination_bits: destination, signed } = self.elements;
        let narrow = source.min(destination);
        let width = source.max(destination);
        if source != destination && (width != 8 || narrow != bits || 8 % narrow != 0) {
            return false;
        }
        let per_unit = if narrow % 8 == 0 { 1 } else { (1..=8).find(|n| n * narrow % 8 == 0).unwrap_or(8) };
        let unit = per_unit * narrow / 8;
        let narrow_stride = |l: &Loop| if destination <= source { l.destination_stride } else { l.source_stride };
        // The digit whose lowest part fills the narrow side's units.
        let Some(at) = self.loops.iter().position(|l| narrow_stride(l) == 1) else { return false };
        let low = self.loops[at];
        let fits = |stride: u64| stride.is_multiple_of(per_unit);
        let others = self
            .loops
            .iter()
            .enumerate()
            .all(|(i, l)| i == at || (fits(narrow_stride(l)) && (source != destination || fits(l.source_stride))));
        // The digit may end early, but not inside a unit.
        let whole_units = self.bounds[self.numbers[at]].is_multiple_of(low.divisor * per_unit);
        if !others || !low.count.is_multiple_of(per_unit) || !whole_units {
            return false;
        }
        let adjacent = low.source_stride == 1 && low.destination_stride == 1;
        if source == destination && !adjacent {
            return false;
        }
        let narrow_bits = u32::try_from(narrow).unwrap_or(8);
        (self.convert, self.source_unit, self.unit) = if source == destination {
            (Convert::Copy, unit, unit)
        } else if source > destination {
            let source_unit = if adjacent { per_unit } else { 1 };
            (Convert::Pack { bits: narrow_bits, pitch: low.source_stride }, source_unit, 1)
        } else {
            let unit = if adjacent { per_unit } else { 1 };
            (Convert::Unpack { bits: narrow_bits, signed, pitch: low.destination_stride }, 1, unit)
        };
        for (i, l) in self.loops.iter_mut().enumerate() {
            if i == at {
                l.count /= per_unit;
                l.divisor *= per_unit;
                l.source_stride *= per_unit;
                l.destination_stride *= per_unit;
            }
            let narrow_bytes = |stride: u64| stride / per_unit * unit;
            match self.convert {
                Convert::Copy => {
                    (l.source_stride, l.destination_stride) =
                        (narrow_bytes(l.source_stride), narrow_bytes(l.destination_stride))
                }
                Convert::Pack { .. } => l.destination_stride = narrow_bytes(l.destination_stride),
                Convert::Unpack { .. } => l.source_stride = narrow_bytes(l.source_stride),
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

    pub(crate) fn take_leaf(&mut self) -> Leaf {
        if self.by_element {
            return Leaf::Elements(self.elements);
        }
        if let Some(leaf) = self.take_transpose() {
            return leaf;
        }
        // Digits that continue the run on both sides make it longer, and the last may be ragged.
        let mut number = None;
        let mut run = None;
        while let Some(at) = self.position(|l| l.source_stride == self.source_unit && l.destination_stride == self.unit)
        {
            number = Some(self.numbers[at]);
            let digit = self.remove(at);
            if digit.number.is_some() {
                run = Some(digit);
                break;
            }
            self.source_unit *= digit.count;
            self.unit *= digit.count;
        }
        self.row = self.row_after(number, self.source_unit * run.map_or(1, |run| run.count));
        Leaf::Run { source_unit: self.source_unit, unit: self.unit, run, convert: self.convert }
    }

    /// Where rows continue after a piece of `piece` source bytes of a number.
    fn row_after(&self, number: Option<usize>, piece: u64) -> RowContinuation {
        let continues = self.loops.iter().zip(&self.numbers).filter(|(_, n)| Some(**n) == number);
        let next = continues.map(|(next, _)| next).min_by_key(|next| next.divisor);
        RowContinuation::after(piece, self.unit, next)
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
        while let Some(at) = self.position(|l| l.source_stride == unit && l.destination_stride == unit) {
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
        let row = rest.iter().copied().find(|&i| self.loops[i].destination_stride == unit)?;
        let column = rest.iter().copied().find(|&i| self.loops[i].source_stride == unit)?;
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
        let interleave =
            ways(columns.destination_stride, rows.count, &|l| l.destination_stride).filter(|_| !splits_rows);
        let deinterleave = ways(rows.source_stride, columns.count, &|l| l.source_stride).filter(|_| !merges_rows);
        let kind = match (interleave, deinterleave) {
            (Some(ways), _) => Transpose::Interleave { ways },
            (None, Some(ways)) if !splits_rows || (unit, ways) == (1, 4) => Transpose::Deinterleave { ways },
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
        let on_in_source = |inner: &Loop, l: &Loop| l.source_stride == inner.source_stride * inner.count;
        let on_in_destination = |inner: &Loop, l: &Loop| l.destination_stride == inner.destination_stride * inner.count;
        let (row_after, column_after) = match kind {
            Transpose::Interleave { .. } => (None, None),
            Transpose::Deinterleave { .. } => (next(row, &on_in_destination), None),
            Transpose::Blocks => {
                // A digit that continues both sides goes to the shorter one.
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
        let row_chain = chain(row, row_after);
        let leaf = Leaf::Transpose {
            unit,
            rows: row_chain,
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
        self.row = self.row_after(Some(number), columns.count * unit).in_transpose(kind, &row_chain);
        Some(leaf)
    }
}
