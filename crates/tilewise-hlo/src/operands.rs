//! The operands of an instruction.

use crate::computation::Computation;
use crate::instruction::Instruction;
use crate::opcode::Opcode;
use crate::scan::{bare, is_identifier, trim, value_end};

impl<'m> Instruction<'m> {
    /// The instructions whose results it reads. A `constant`'s literal and a `parameter`'s number are no operands.
    #[must_use]
    pub fn operands(&self) -> Operands<'m> {
        let rest = match self.opcode() {
            Opcode::Constant | Opcode::Parameter => "",
            _ => self.operands_text(),
        };
        Operands { rest, computation: self.computation() }
    }

    /// The names of the [`operands`](Self::operands), without `%`.
    pub fn operand_names(&self) -> impl Iterator<Item = &'m str> + use<'m> {
        self.operands().map(|operand| operand.name())
    }
}

/// Iterates over an instruction's [`Operand`]s.
#[derive(Clone, Debug)]
pub struct Operands<'m> {
    rest: &'m str,
    computation: Computation<'m>,
}

impl<'m> Iterator for Operands<'m> {
    type Item = Operand<'m>;

    fn next(&mut self) -> Option<Operand<'m>> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let end = value_end(self.rest.as_bytes(), 0, false);
            let text = trim(&self.rest[..end]);
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !text.is_empty() {
                return Some(Operand { text, computation: self.computation });
            }
        }
    }
}

/// An operand: `name` or `shape name`, with or without `%`.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'m> {
    text: &'m str,
    computation: Computation<'m>,
}

impl<'m> Operand<'m> {
    fn name_start(&self) -> usize {
        let name = self.text.bytes().rev().take_while(|byte| is_identifier(*byte)).count();
        let start = self.text.len() - name;
        start - usize::from(self.text[..start].ends_with('%'))
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &'m str {
        self.text
    }

    /// The name of the instruction, without `%`.
    #[must_use]
    pub fn name(&self) -> &'m str {
        bare(&self.text[self.name_start()..])
    }

    /// The shape in front of the name, if there is one.
    #[must_use]
    pub fn shape_text(&self) -> Option<&'m str> {
        Some(self.text[..self.name_start()].trim_ascii_end()).filter(|shape| !shape.is_empty())
    }

    /// The instruction, if the text has it.
    #[must_use]
    pub fn instruction(&self) -> Option<Instruction<'m>> {
        self.computation.instruction(self.name())
    }
}
