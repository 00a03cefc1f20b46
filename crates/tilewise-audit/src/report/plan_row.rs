//! The plan's values as rows.

use super::sections::Report;
use crate::program::{SourceLine, traced};
use foldhash::HashMap;
use std::rc::Rc;
use tilewise::Shape;
use tilewise_hlo::{Instruction, dataflow::Dataflow};
use tilewise_memory::{AssignedValue, Role};

/// The framework's name of an operation and the line of the user's program, if known.
pub type Origin = (Option<String>, Option<SourceLine>);

/// A value in memory: its place and its live range.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PlanRow<'a> {
    /// The instruction that makes it; for one that the text leaves out, the start that it belongs to.
    pub instruction: Instruction<'a>,
    /// The value in the plan.
    pub value: &'a AssignedValue,
    /// The memory space's number.
    pub memory_space: u8,
    pub(crate) flow: &'a Dataflow,
}

/// A place in memory for a stretch of time, with all values in it: values that take over from one another are one
/// piece.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PlanPiece<'a> {
    /// The largest value in it, whose bytes it takes.
    pub row: PlanRow<'a>,
    /// Bytes from the start of the temporaries' memory; `None` for tuples' tables, and if unknown.
    pub offset: Option<u64>,
    /// The first moment at which it is in use.
    pub first: usize,
    /// The last moment at which it is in use.
    pub last: usize,
}

impl PlanRow<'_> {
    /// Bytes of data in it; all its bytes if it isn't an array. The sum with [`padding_bytes`](Self::padding_bytes) is
    /// the value's size.
    #[must_use]
    pub fn logical_bytes(&self) -> u64 {
        let sizes = self.shape().and_then(|leaf| leaf.as_array()?.sizes().ok());
        sizes.map_or(self.value.bytes, |sizes| sizes.logical_bytes)
    }

    /// Bytes of padding: those that the compiler sets aside, minus [`logical_bytes`](Self::logical_bytes).
    #[must_use]
    pub fn padding_bytes(&self) -> u64 {
        self.value.bytes.saturating_sub(self.logical_bytes())
    }

    /// The shape of the value: an array, or another one.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        self.value.shape()
    }

    /// The framework's name of the operation and the line of the user's program; for a copy that the compiler added,
    /// those of the copied value.
    #[must_use]
    pub fn origin(&self) -> Origin {
        traced(self.flow, &self.instruction)
    }
}

/// The [origins](PlanRow::origin) of rows, cached by instruction: a call with many results has a row for each of them,
/// and attributes as long.
#[derive(Clone, Debug, Default)]
pub struct Origins(HashMap<usize, Rc<Origin>>);

impl Origins {
    /// As [`PlanRow::origin`]. All rows must be of one report.
    pub fn of(&mut self, row: &PlanRow<'_>) -> Rc<Origin> {
        self.0.entry(row.instruction.index()).or_insert_with(|| row.origin().into()).clone()
    }
}

impl Report {
    /// Every value that the plan places, by memory space and moment; empty without a plan.
    pub fn plan_rows(&self) -> impl Iterator<Item = PlanRow<'_>> {
        self.plan().ok().into_iter().flat_map(|plan| &plan.spaces).flat_map(|space| {
            space.values.iter().filter_map(|value| {
                let instruction = self.planned.module.instruction(value.instruction)?;
                Some(PlanRow { instruction, value, memory_space: space.memory_space, flow: &self.planned.flow })
            })
        })
    }

    /// The [`plan_rows`](Self::plan_rows) that take memory: not those in the memory of a donated argument or of a
    /// result, nor temporaries in registers, where the compiler reports no bytes of temporaries.
    pub fn memory_rows(&self) -> impl Iterator<Item = PlanRow<'_>> {
        self.plan_rows().filter(|row| !row.value.is_in_resident).filter(|row| {
            let space = self.plan().ok().and_then(|plan| plan.space(row.memory_space));
            row.value.role.is_resident() || space.is_some_and(|space| space.temporary_bytes > 0)
        })
    }

    /// The [`plan_rows`](Self::plan_rows) of temporaries, with tuples' tables.
    pub fn temporary_rows(&self) -> impl Iterator<Item = PlanRow<'_>> {
        self.plan_rows().filter(|row| matches!(row.value.role, Role::Temporary | Role::Table))
    }

    /// The pieces of temporaries' memory: no byte is in two of them at one moment. Empty without a plan, or if
    /// temporaries take no memory.
    ///
    /// A value that takes over another's place at the moment that it ends is part of the same piece. A table is live
    /// for the whole run, since its place is never reused.
    #[must_use]
    pub fn pieces(&self, memory_space: u8) -> Vec<PlanPiece<'_>> {
        let moments = self.plan().map_or(0, |plan| plan.order().len());
        // Each with its place: its offset, or if that is unknown its buffer.
        let mut pieces: Vec<((Option<u64>, usize), PlanPiece<'_>)> = Vec::new();
        let temporaries = self.memory_rows().filter(|row| !row.value.role.is_resident());
        for row in temporaries.filter(|row| row.memory_space == memory_space) {
            let AssignedValue { offset, first, last, buffer, .. } = *row.value;
            let piece = match row.value.role {
                Role::Table => PlanPiece { row, offset: None, first: 0, last: moments.saturating_sub(1) },
                _ => PlanPiece { row, offset, first, last },
            };
            pieces.push(((piece.offset, if piece.offset.is_some() { 0 } else { buffer }), piece));
        }
        pieces.sort_by_key(|(place, piece)| (*place, piece.first, piece.last));
        let mut joined: Vec<PlanPiece<'_>> = Vec::with_capacity(pieces.len());
        let mut place = None;
        for (here, piece) in pieces {
            match joined.last_mut().filter(|before| place == Some(here) && piece.first <= before.last) {
                Some(before) => {
                    let last = before.last.max(piece.last);
                    let is_larger = piece.row.value.bytes > before.row.value.bytes;
                    let largest = if is_larger { piece } else { *before };
                    *before = PlanPiece { first: before.first, last, ..largest };
                }
                None => joined.push(piece),
            }
            place = Some(here);
        }
        joined
    }

    /// The names of the instructions that run, by moment; empty without a plan.
    pub fn order(&self) -> impl Iterator<Item = &str> {
        let order = self.plan().ok().into_iter().flat_map(|plan| plan.order());
        order.map(|at| self.planned.module.instruction(at).map_or("", |instruction| instruction.name()))
    }
}
