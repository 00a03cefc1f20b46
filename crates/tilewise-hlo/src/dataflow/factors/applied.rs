//! The effect on a dimension of the computation that an instruction applies.

use super::FactorKind;
use crate::{CallRole, Instruction, Opcode};

impl FactorKind {
    /// The reduction of a dimension by a computation that is applied to two elements, or to two of each array: `Sum`,
    /// `Reduce`, or `Mix` where which element stays is a matter of order.
    #[must_use]
    pub fn of_reduction(at: &Instruction<'_>) -> Self {
        let applied = at.calls().find(|call| matches!(call.role, CallRole::ToApply | CallRole::Calls));
        let root = applied.and_then(|call| call.computation()).and_then(|computation| computation.root());
        let Some(root) = root else { return Self::Mix };
        let are_all = |opcode: Opcode| match root.opcode() {
            Opcode::Tuple => root.operands().all(|of| of.instruction().is_some_and(|of| of.opcode() == opcode)),
            of_root => of_root == opcode,
        };
        match () {
            () if are_all(Opcode::Add) => Self::Sum,
            // The last element written stays.
            () if are_all(Opcode::Parameter) => Self::Mix,
            () => Self::Reduce,
        }
    }
}
