//! A loop's carry: the tuple that each turn takes and gives to the next one.

use super::any_fused;
use tilewise::Shape;
use tilewise_hlo::{CallRole, Computation, Instruction, Opcode};

/// The computation of a loop's turn.
pub(crate) fn body<'m>(around: &Instruction<'m>) -> Option<Computation<'m>> {
    around.calls().find(|call| call.role == CallRole::Body)?.computation()
}

/// The carry of a loop whose turns give a tuple.
pub(crate) struct Carry<'m> {
    around: Instruction<'m>,
    /// The body's parameter.
    taken: Instruction<'m>,
    /// The body's tuple.
    given: Instruction<'m>,
    /// The initial value of each element; empty if the loop's operand isn't a tuple.
    starts: Vec<Option<Instruction<'m>>>,
    /// The next value of each element.
    nexts: Vec<Instruction<'m>>,
    /// The shape of each element.
    shapes: Vec<Shape>,
}

impl<'m> Carry<'m> {
    pub(crate) fn of(around: &Instruction<'m>) -> Option<Self> {
        let body = body(around)?;
        let given = body.root().filter(|root| root.opcode() == Opcode::Tuple)?;
        let taken = body.instructions().find(|at| at.opcode() == Opcode::Parameter)?;
        let start = around.operands().next()?.instruction().filter(|start| start.opcode() == Opcode::Tuple);
        let starts = start.iter().flat_map(|start| start.operands().map(|of| of.instruction()).collect::<Vec<_>>());
        let nexts = given.operands().map_while(|next| next.instruction());
        Some(Self {
            around: *around,
            taken,
            given,
            starts: starts.collect(),
            nexts: nexts.collect(),
            shapes: taken.shape().iter().flat_map(Shape::elements).collect(),
        })
    }

    /// The instructions of a turn, without the tuple that it gives.
    pub(crate) fn turn(&self) -> impl Iterator<Item = Instruction<'m>> {
        let given = self.given.index();
        self.taken.computation().instructions().filter(move |at| at.index() != given)
    }

    /// The element that an instruction takes out of the carry.
    pub(crate) fn element(&self, at: &Instruction<'_>) -> Option<usize> {
        let of = at.operands().next()?.instruction()?;
        at.tuple_index().filter(|_| at.opcode() == Opcode::GetTupleElement && of.index() == self.taken.index())
    }

    /// The elements that an instruction reads.
    pub(crate) fn read_by(&self, at: &Instruction<'m>) -> impl Iterator<Item = usize> {
        at.operands().filter_map(|of| self.element(&of.instruction()?))
    }

    /// The next value of each element.
    pub(crate) fn next(&self) -> &[Instruction<'m>] {
        &self.nexts
    }

    /// The instruction that writes a slice of an element into the one before; `None` where the next value is made otherwise.
    pub(crate) fn writer(&self, number: usize, next: &Instruction<'m>) -> Option<Instruction<'m>> {
        // A fusion may have several results.
        let of = next.operands().next().filter(|_| next.opcode() == Opcode::GetTupleElement);
        let made = of.and_then(|of| of.instruction()).unwrap_or(*next);
        let is_written = any_fused(&made, |at| at.opcode() == Opcode::DynamicUpdateSlice)
            && self.read_by(&made).any(|read| read == number);
        is_written.then_some(made)
    }

    pub(crate) fn bounds(&self, number: usize) -> Option<Vec<u64>> {
        self.shapes.get(number)?.bounds()
    }

    /// The initial value of an element; `None` if the loop's operand isn't a tuple.
    pub(crate) fn start(&self, number: usize) -> Option<Instruction<'m>> {
        *self.starts.get(number)?
    }

    /// Whether an instruction has the whole carry: before, in or behind a turn.
    pub(crate) fn is_whole(&self, instruction: usize) -> bool {
        let start = self.around.operands().next().and_then(|start| start.instruction());
        [self.around.index(), self.taken.index()].contains(&instruction)
            || start.is_some_and(|start| start.index() == instruction)
    }
}
