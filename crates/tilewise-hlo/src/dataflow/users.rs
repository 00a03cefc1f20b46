//! The users of instructions' results.

use super::{Dataflow, Op, OpId, Table};

/// An instruction that reads another's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct User {
    /// The instruction.
    pub op: OpId,
    /// The number of the operand.
    pub operand: usize,
}

/// The users of all instructions, instruction by instruction.
#[derive(Debug)]
pub(super) struct Users {
    users: Vec<User>,
    /// The start of each instruction's users.
    first: Table<Op, usize>,
}

impl Users {
    pub(super) fn new(flow: &Dataflow) -> Self {
        // First the number of each instruction's users, then their end, then, filled from the last, their start.
        let mut first: Table<Op, usize> = Table::filled(flow.ops().len(), 0);
        for op in flow.ops().ids() {
            for operand in flow.operands(op) {
                first[*operand] += 1;
            }
        }
        let mut count = 0;
        for op in flow.ops().ids() {
            count += first[op];
            first[op] = count;
        }
        let mut users = vec![User { op: OpId::new(0), operand: 0 }; count];
        for op in flow.ops().ids().rev() {
            for (number, operand) in flow.operands(op).iter().enumerate().rev() {
                first[*operand] -= 1;
                users[first[*operand]] = User { op, operand: number };
            }
        }
        Self { users, first }
    }
}

impl Dataflow {
    /// The instructions of its computation that read an instruction's result, in the order of the text; one that reads
    /// it twice is there twice.
    #[must_use]
    pub fn users(&self, op: OpId) -> &[User] {
        let Users { users, first } = self.all_users();
        let end = first.get(op.plus(1)).copied().unwrap_or(users.len());
        &users[first[op]..end]
    }
}
