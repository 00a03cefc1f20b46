//! Follows arrays to their uses and origins.

use super::program::{LiveArray, ProgramModel};
use crate::program::{fused_updates, is_elementwise, keeps_indices, passes_on};
use foldhash::HashSet;
use std::collections::VecDeque;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{OpId, Position, REACH, Use},
};

impl<'m> ProgramModel<'m> {
    /// The instructions that read a value, looking through those that only pass it on.
    pub(crate) fn readers(&self, position: Position) -> impl Iterator<Item = OpId> {
        self.flow.readers(position).filter_map(|found| if let Use::Read(op) = found { Some(op) } else { None })
    }

    /// Whether an array is read, and only elementwise operations lie between it and the program's results.
    pub(crate) fn is_elementwise_to_the_end(&self, array: &LiveArray<'m>) -> bool {
        let (mut waiting, mut seen) = (vec![array.position], HashSet::default());
        let mut is_read = false;
        while let Some(at) = waiting.pop() {
            for found in self.flow.readers(at) {
                is_read = true;
                match found {
                    Use::Result(_) => {}
                    Use::Read(op) if seen.len() < REACH && self.is_op(op, is_elementwise) => {
                        if seen.insert(op) {
                            waiting.extend(self.flow.positions(op));
                        }
                    }
                    _ => return false,
                }
            }
        }
        is_read
    }

    /// The first instruction that `is` accepts, going from an array through operations on arrays of the same bounds.
    pub(crate) fn led_to(
        &self,
        array: &LiveArray<'m>,
        is: impl Fn(&Instruction<'m>) -> bool,
    ) -> Option<Instruction<'m>> {
        let rows = self.rows(array.op);
        let next = |op: OpId| {
            let positions = self.flow.positions(op).filter(|_| self.rows(op) == rows);
            positions.flat_map(|position| self.readers(position)).collect::<Vec<_>>()
        };
        let reached = self.flow.reached(self.readers(array.position), next);
        reached.filter_map(|op| self.flow.instruction(op)).find(is)
    }

    /// The first instruction that `is` accepts, going back from `op` through operations on arrays of the same bounds.
    pub(crate) fn made_by(&self, op: OpId, is: impl Fn(&Instruction<'m>) -> bool) -> Option<Instruction<'m>> {
        let rows = self.rows(op);
        let next = |op: OpId| if self.rows(op) == rows { self.flow.operands(op).to_vec() } else { Vec::new() };
        self.flow.reached([op], next).filter_map(|op| self.flow.instruction(op)).find(is)
    }

    /// The arrays that this one is, with their elements replaced: computed elementwise, partly overwritten, or carried by a
    /// loop.
    pub(crate) fn replaced(&self, this: &LiveArray<'m>) -> HashSet<Position> {
        let (mut waiting, mut seen) = (VecDeque::from([this.position]), HashSet::default());
        while let Some(at) = waiting.pop_front() {
            let at = self.flow.origin(at);
            if seen.len() <= REACH && seen.insert(at) {
                waiting.extend(self.updated(at));
            }
        }
        seen
    }

    /// The arrays that this one updates: each element derives from theirs at the same index.
    fn updated(&self, position: Position) -> Vec<Position> {
        let op = self.flow.op_at(position);
        let Some(instruction) = self.flow.instruction(op) else { return Vec::new() };
        let operands = || self.flow.operands(op).iter();
        let operand = |number: usize| operands().nth(number).map(|operand| self.flow[*operand].position);
        match instruction.opcode() {
            Opcode::While => {
                let offset = position.since(self.flow[op].position);
                operand(0)
                    .filter(|carry| offset < self.flow.extent(*carry))
                    .map(|carry| carry.plus(offset))
                    .into_iter()
                    .collect()
            }
            Opcode::Fusion => {
                let element = self.flow.shape_index(position).first().copied();
                fused_updates(&instruction, element, &mut { REACH }).into_iter().filter_map(operand).collect()
            }
            Opcode::DynamicUpdateSlice | Opcode::Scatter => operand(0).into_iter().collect(),
            _ if passes_on(&instruction) || keeps_indices(instruction.opcode()) => {
                operands().map(|operand| self.flow[*operand].position).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn is_op(&self, op: OpId, is: impl Fn(&Instruction<'m>) -> bool) -> bool {
        self.flow.instruction(op).is_some_and(|instruction| is(&instruction))
    }

    /// The bounds of the first array of a result.
    fn rows(&self, op: OpId) -> Option<Vec<u64>> {
        let first = self.flow.positions(op).find(|position| !self.flow.is_tuple(*position))?;
        self.flow.shape(first)?.bounds()
    }
}
