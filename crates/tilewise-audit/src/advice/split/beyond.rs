//! Continuations of a dimension under other axes: after padding, beyond kernels, and in looked-up rows.

use super::{Split, walk::Walk};
use foldhash::HashSet;
use std::collections::BTreeSet;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{AxisId, EventKind, FactorKind},
};

impl<'p> Split<'p> {
    /// Adds the axes under which the dimension continues at another size, or beyond unknown operations.
    pub(super) fn continued(&mut self, walk: &Walk<'p, '_>) {
        // A kernel is visited once for each size: its answer is all results of that size, whatever the operand.
        let mut kernels: HashSet<(usize, u64)> = HashSet::default();
        let mut known = 0;
        while let Some(own) = self.along.get(known).cloned() {
            known += 1;
            let ends = own.iter().flat_map(|axis| self.axes.events(*axis));
            let ends: BTreeSet<usize> = ends
                .filter(|event| event.kind == EventKind::Ends(FactorKind::Mix))
                .map(|event| event.instruction)
                .collect();
            for at in ends.into_iter().filter_map(|at| walk.program.module.instruction(at)) {
                let is_kernel = matches!(at.opcode(), Opcode::CustomCall | Opcode::Unknown);
                if !is_kernel || kernels.insert((at.index(), self.size_of(&own))) {
                    let beyond = self.beyond(walk, &at, &own);
                    self.add(beyond);
                }
            }
            for at in walk.lookups(&own) {
                let of_tables = self.of_table(&at, &own);
                self.add(of_tables);
            }
        }
    }

    pub(super) fn add(&mut self, found: Vec<Vec<AxisId>>) {
        for found in found.into_iter().filter(|found| !found.is_empty()) {
            if self.known.insert(found.clone()) {
                self.begins[found[0].index()] = true;
                self.along.push(found);
            }
        }
    }

    /// The dimension of a lookup table in which each position has its own rows: one of several indexed ones, of equal
    /// size.
    fn of_table(&self, at: &Instruction<'_>, own: &[AxisId]) -> Vec<Vec<AxisId>> {
        let mut operands = at.operands().map(|operand| operand.instruction());
        let Some(Some(table)) = operands.next() else { return Vec::new() };
        let dimensions = if at.opcode() == Opcode::Gather { at.gather_dimensions() } else { at.scatter_dimensions() };
        let indexed = dimensions.map(|dimensions| dimensions.indexed).filter(|indexed| indexed.len() > 1);
        let rows = indexed.into_iter().flatten().map(|dimension| self.axes.of_dimension(&table, 0, dimension));
        rows.filter(|of| !of.is_empty() && self.size_of(of) == self.size_of(own))
            .take(1)
            .map(<[AxisId]>::to_vec)
            .collect()
    }

    pub(super) fn size_of(&self, of: &[AxisId]) -> u64 {
        of.iter().map(|axis| self.axes.all()[*axis].size).fold(1, u64::saturating_mul)
    }

    /// The leading axes of a dimension whose product has this size; `None` if no product has.
    fn leading<'o>(&self, of: &'o [AxisId], size: u64) -> Option<&'o [AxisId]> {
        (1..=of.len()).map(|count| &of[..count]).find(|leading| self.size_of(leading) == size)
    }

    /// The axes of a dimension beyond an instruction that pads, concatenates or slices it, gathers its rows, or is a
    /// kernel.
    fn beyond(&self, walk: &Walk<'_, '_>, at: &Instruction<'_>, own: &[AxisId]) -> Vec<Vec<AxisId>> {
        let all: Vec<&[AxisId]> = self.axes.of_array(at, 0).collect();
        // Operands' dimensions that begin with it: number, size, and the axes of the result's dimension of that number.
        let mut along: Vec<(usize, u64, &[AxisId])> = Vec::new();
        for operand in at.operands().filter_map(|operand| operand.instruction()) {
            let begin = self.axes.of_array(&operand, 0).enumerate().filter(|(_, of)| of.starts_with(own));
            along.extend(begin.filter_map(|(at, of)| Some((at, self.size_of(of), *all.get(at)?))));
        }
        let result = |of: &[AxisId]| self.leading(of, self.size).unwrap_or(of).to_vec();
        match at.opcode() {
            Opcode::Pad => {
                let padding = at.padding().unwrap_or_default();
                // Padded at the end, or by multiples of its whole size.
                let goes_on = |(dimension, size, _): &(usize, u64, _)| {
                    padding.get(*dimension).is_some_and(|ends| {
                        let size = i64::try_from(*size).unwrap_or(i64::MAX);
                        let is_whole = ends.low % size == 0 && ends.high % size == 0;
                        ends.interior == 0 && (ends.low == 0 || is_whole) && ends.high >= 0
                    })
                };
                along.into_iter().filter(goes_on).map(|(.., of)| of.to_vec()).collect()
            }
            Opcode::Concatenate => along.into_iter().map(|(.., of)| of.to_vec()).collect(),
            Opcode::Slice => {
                let limits = at.slice_limits().unwrap_or_default();
                let starts = |dimension: usize| limits.get(dimension).map_or(1, |limits| limits.start);
                let goes_on = |(dimension, _, of): &(usize, u64, &[AxisId])| {
                    self.leading(of, self.size).is_some() && starts(*dimension).is_multiple_of(self.size_of(of))
                };
                along.into_iter().filter(goes_on).map(|(.., of)| result(of)).collect()
            }
            // A loop that the compiler added, which gathers one row for each position.
            Opcode::DynamicSlice if walk.is_of_compiler(at) && !along.is_empty() => {
                let parts = at.computation().instructions().collect::<Vec<_>>().into_iter();
                let parts = parts.filter(|part| {
                    matches!(part.opcode(), Opcode::DynamicSlice | Opcode::DynamicUpdateSlice)
                        && walk.is_of_compiler(part)
                });
                let wholes = parts.filter_map(|part| part.operands().next()?.instruction());
                let first = wholes.filter_map(|whole| self.axes.of_array(&whole, 0).next());
                first.filter_map(|of| Some(self.leading(of, self.size_of(own))?.to_vec())).collect()
            }
            Opcode::CustomCall | Opcode::Unknown => {
                let results = (0..self.axes.leaves(at.index())).flat_map(|leaf| self.axes.of_array(at, leaf));
                results
                    .filter(|of| self.size_of(of) == self.size_of(own) && *of != own)
                    .map(<[AxisId]>::to_vec)
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether an instruction makes the dimension of a window from anywhere in a longer one, such as a roll by a variable
    /// offset from two copies.
    pub(super) fn takes_window(&self, at: &Instruction<'_>) -> bool {
        let Some(whole) = at.operands().next().and_then(|operand| operand.instruction()) else { return false };
        let (longer, taken) = (self.axes.of_array(&whole, 0), self.axes.of_array(at, 0));
        at.opcode() == Opcode::DynamicSlice
            && longer.zip(taken).any(|(longer, taken)| {
                let size = self.size_of(longer);
                self.known.contains(taken) && size > self.size && self.size_of(taken) == self.size
            })
    }

    /// Whether the dimension continues beyond an instruction that does more than pass it on.
    pub(super) fn goes_on(&self, walk: &Walk<'_, '_>, at: &Instruction<'_>) -> bool {
        at.operands().filter_map(|operand| operand.instruction()).any(|operand| {
            let own = self.axes.of_array(&operand, 0).flat_map(|of| (1..=of.len()).map(move |count| &of[..count]));
            let own = own.filter(|own| self.known.contains(*own));
            own.into_iter().any(|own| self.beyond(walk, at, own).iter().any(|beyond| !beyond.is_empty()))
        })
    }
}
