//! Dimensions whose rows are steps of a loop.

use super::Split;
use crate::{advice::program::ProgramModel, program::Carry};
use tilewise_hlo::{Instruction, Opcode};

impl Split<'_> {
    /// Whether a loop stacks up the dimension's rows in steps of which each needs the one before: a part of them can't be
    /// computed apart.
    pub(super) fn is_of_steps(&self, program: &ProgramModel<'_>) -> bool {
        let loops = program.module.instructions().filter(|at| at.opcode() == Opcode::While);
        loops
            .filter(|around| self.is_stacked_by(program, around))
            .any(|around| self.are_in_sequence(&around).unwrap_or(true))
    }

    /// Whether a loop has as many turns as the dimension rows, and a result that has it first.
    fn is_stacked_by(&self, program: &ProgramModel<'_>, around: &Instruction<'_>) -> bool {
        let trips = program.flow.op(around).and_then(|op| program.flow.trip_count(op));
        trips == Some(self.size)
            && (0..self.axes.leaves(around.index())).any(|leaf| self.places(around, leaf).any(|at| at == 0))
    }

    /// Whether rows that a loop writes follow from values that its turns change; `None` if that isn't known.
    fn are_in_sequence(&self, around: &Instruction<'_>) -> Option<bool> {
        let carry = Carry::of(around)?;
        let (mut written, mut changed) = (Vec::new(), Vec::new());
        for (number, next) in carry.next().iter().enumerate() {
            if let Some(writer) = carry.writer(number, next) {
                written.extend(self.places(around, number).any(|at| at == 0).then_some(writer.index()));
            } else if carry.element(next) != Some(number) && !next.shape().ok()?.dimensions().is_empty() {
                changed.push(number);
            }
        }
        let read = carry.turn().filter(|at| carry.element(at).is_some_and(|number| changed.contains(&number)));
        let reached = self.axes.reach(read.map(|at| (at.index(), 0)), &|_| false);
        Some(written.into_iter().any(|made| reached.has_any(made)))
    }
}
