//! The instructions that run, and the computations they call.

use std::ops::{Index, Range};

use crate::{CallRole, Computation, Instruction, Opcode};

use super::{
    BodyId, Dataflow, NodeId, OpId, Position, Table,
    positions::{Shapes, Slot},
};

/// An instruction that runs, or that is in the body of a fusion whose result may lie in an operand.
#[derive(Clone, Debug)]
pub struct Op {
    /// The opcode; for an instruction that the text leaves out, the abbreviated one.
    pub opcode: Opcode,
    /// The computation it is in.
    pub body: BodyId,
    /// Whether its result is the computation's.
    pub is_root: bool,
    /// Whether the text leaves it out, as it does the computation of a `slice-start`.
    pub is_hidden: bool,
    /// A parameter's number, or the element that a `get-tuple-element` takes; [`usize::MAX`] for others.
    pub number: usize,
    /// The position of its whole result, which those within it follow.
    pub position: Position,
    pub(super) instruction: u32,
    pub(super) operands: Range<u32>,
    pub(super) calls: Range<u32>,
}

/// The instructions of a computation.
#[derive(Clone, Debug)]
pub struct Body {
    pub(super) ops: Range<u32>,
    /// The instruction whose result is the computation's.
    pub root: OpId,
    /// The parameters, by number.
    pub parameters: Vec<OpId>,
    /// Whether it runs in memory of its own: the entry and the callees of loops, conditionals, calls and asynchronous
    /// pairs, but no fusion's body.
    pub runs: bool,
    /// The index of its first instruction in the text.
    pub(super) first_instruction: usize,
}

impl Body {
    /// Its instructions, in the order of the text.
    pub fn ops(&self) -> impl DoubleEndedIterator<Item = OpId> + ExactSizeIterator + use<> {
        (self.ops.start as usize..self.ops.end as usize).map(OpId::new)
    }

    /// Its `k`th instruction.
    #[must_use]
    pub fn op(&self, k: usize) -> Option<OpId> {
        let at = self.ops.start as usize + k;
        (at < self.ops.end as usize).then(|| OpId::new(at))
    }
}

/// A gap in a text, so that a value may come from elsewhere. Programs that a compiler printed whole have no gap.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gap {
    /// The module has no entry computation, or one without instructions.
    NoEntry,
    /// The shape of this instruction can't be read.
    Shape {
        /// Its name.
        instruction: String,
    },
    /// An operand of this instruction isn't defined before it.
    Operand {
        /// Its name.
        instruction: String,
        /// The operand's name.
        operand: String,
    },
    /// Tuples have more elements than there is text for: no compiler prints that.
    TooLarge,
}

/// The part of a module that values flow through: computations that run, then the bodies of fusions that may work in
/// place.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) ops: Table<Op, Op>,
    /// The instruction of each position, and the position's node in the instruction's shape.
    pub(super) positions: Table<Slot, (OpId, NodeId)>,
    pub(super) shapes: Shapes,
    pub(super) bodies: Table<Body, Body>,
    pub(super) entry: Option<BodyId>,
    pub(super) operands: Vec<OpId>,
    pub(super) calls: Vec<(CallRole, BodyId)>,
    /// The body of each of the module's computations.
    pub(super) of_computation: Vec<Option<BodyId>>,
    pub(super) gap: Option<Gap>,
}

impl Index<OpId> for Dataflow {
    type Output = Op;

    fn index(&self, op: OpId) -> &Op {
        &self.graph().ops[op]
    }
}

impl Index<BodyId> for Dataflow {
    type Output = Body;

    fn index(&self, body: BodyId) -> &Body {
        &self.graph().bodies[body]
    }
}

/// Instructions and computations.
impl Dataflow {
    /// The computation that a program begins with, if the text has it.
    #[must_use]
    pub fn entry(&self) -> Option<BodyId> {
        self.graph().entry
    }

    /// The first gap in the text, if there is one. Values then flow from a missing instruction, for which
    /// [`instruction`](Self::instruction) is `None`.
    #[must_use]
    pub fn gap(&self) -> Option<&Gap> {
        self.graph().gap.as_ref()
    }

    /// All computations that run; those of fusions after them.
    #[must_use]
    pub fn bodies(&self) -> &Table<Body, Body> {
        &self.graph().bodies
    }

    /// All instructions.
    #[must_use]
    pub fn ops(&self) -> &Table<Op, Op> {
        &self.graph().ops
    }

    /// The instruction in the text; of one that the text leaves out, the start it belongs to.
    #[must_use]
    pub fn instruction(&self, op: OpId) -> Option<Instruction<'_>> {
        self.module().instruction(self[op].instruction as usize)
    }

    /// The [index](Instruction::index) of that instruction.
    #[must_use]
    pub fn instruction_index(&self, op: OpId) -> usize {
        self[op].instruction as usize
    }

    /// The body of a computation of the text, if it runs.
    #[must_use]
    pub fn body(&self, computation: &Computation<'_>) -> Option<BodyId> {
        *self.graph().of_computation.get(computation.index())?
    }

    /// The op of an instruction of the text, if it runs.
    #[must_use]
    pub fn op(&self, instruction: &Instruction<'_>) -> Option<OpId> {
        let body = &self[self.body(&instruction.computation())?];
        body.op(instruction.index().checked_sub(body.first_instruction)?)
    }

    /// The text after its operands, from the comma on.
    #[must_use]
    pub fn attributes(&self, op: OpId) -> &str {
        self.instruction(op).map_or("", |instruction| instruction.attributes_text())
    }

    /// The instructions whose results it reads.
    #[must_use]
    pub fn operands(&self, op: OpId) -> &[OpId] {
        let range = &self[op].operands;
        &self.graph().operands[range.start as usize..range.end as usize]
    }

    /// The position of one operand's whole result.
    #[must_use]
    pub fn operand(&self, op: OpId, number: usize) -> Option<Position> {
        self.operands(op).get(number).map(|operand| self[*operand].position)
    }

    /// The computations that it calls, each with its role, in the order in which they run: those that run at all, and
    /// the body of a fusion whose result may lie in an operand.
    #[must_use]
    pub fn calls(&self, op: OpId) -> &[(CallRole, BodyId)] {
        let range = &self[op].calls;
        &self.graph().calls[range.start as usize..range.end as usize]
    }

    /// The first computation that an instruction calls in this role.
    #[must_use]
    pub fn callee(&self, op: OpId, role: CallRole) -> Option<BodyId> {
        self.calls(op).iter().find(|call| call.0 == role).map(|call| call.1)
    }

    /// The position of a computation's result.
    #[must_use]
    pub fn result(&self, body: BodyId) -> Position {
        self[self[body].root].position
    }
}
