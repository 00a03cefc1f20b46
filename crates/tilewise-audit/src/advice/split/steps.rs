//! Dimensions whose rows are steps of a loop.

use super::Split;
use crate::{advice::program::ProgramModel, program::any_fused};
use tilewise_hlo::{CallRole, Instruction, Opcode};

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
        let body = around.calls().find(|call| call.role == CallRole::Body)?.computation()?;
        let root = body.root().filter(|root| root.opcode() == Opcode::Tuple)?;
        let carried = body.instructions().find(|at| at.opcode() == Opcode::Parameter)?;
        let element = |at: &Instruction<'_>| {
            let of = at.operands().next()?.instruction()?;
            at.tuple_index().filter(|_| at.opcode() == Opcode::GetTupleElement && of.index() == carried.index())
        };
        let (mut written, mut changed) = (Vec::new(), Vec::new());
        for (number, next) in root.operands().enumerate() {
            let next = next.instruction()?;
            // A fusion may have several results.
            let of = next.operands().next().filter(|_| next.opcode() == Opcode::GetTupleElement);
            let made = of.and_then(|of| of.instruction()).unwrap_or(next);
            let mut given = made.operands().filter_map(|of| element(&of.instruction()?));
            if any_fused(&made, |at| at.opcode() == Opcode::DynamicUpdateSlice) && given.any(|of| of == number) {
                written.extend(self.places(around, number).any(|at| at == 0).then_some(made.index()));
            } else if element(&next) != Some(number) && !next.shape().ok()?.dimensions().is_empty() {
                changed.push(number);
            }
        }
        let read = body.instructions().filter(|at| element(at).is_some_and(|number| changed.contains(&number)));
        let reached = self.axes.reach(read.map(|at| (at.index(), 0)), &|_| false);
        Some(written.into_iter().any(|made| reached.has_any(made)))
    }
}
