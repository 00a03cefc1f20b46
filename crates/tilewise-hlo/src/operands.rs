//! The operands of an instruction.

use std::slice;

use memchr::memchr;

use crate::instruction::Instruction;
use crate::opcode::Opcode;
use crate::record::{Data, NONE};
use crate::scan::{bare, identifier_end, is_identifier, is_shape, peek, shape_end, skip_trivia, trim, value_end};

impl<'m> Instruction<'m> {
    /// The instructions whose results it reads. A `constant`'s literal and a `parameter`'s number are no operands.
    #[must_use]
    pub fn operands(&self) -> Operands<'m> {
        let texts = OperandTexts::new(if has_operands(self.opcode()) { self.operands_text() } else { "" });
        Operands { texts, instructions: self.data.operands_of(self.index).iter(), data: self.data }
    }

    /// The [indices](Self::index) of the operands that the text defines above.
    pub fn operand_indices(&self) -> impl Iterator<Item = Option<usize>> + use<'m> {
        self.data.operands_of(self.index).iter().map(|index| Some(*index as usize).filter(|_| *index != NONE))
    }

    /// The names of the [`operands`](Self::operands), without `%`.
    pub fn operand_names(&self) -> impl Iterator<Item = &'m str> + use<'m> {
        self.operands().map(|operand| operand.name())
    }
}

/// Whether the text between the parentheses of such an instruction is operands.
pub(crate) fn has_operands(opcode: Opcode) -> bool {
    !matches!(opcode, Opcode::Constant | Opcode::Parameter)
}

/// The texts between commas.
#[derive(Clone, Debug)]
pub(crate) struct OperandTexts<'m> {
    rest: &'m str,
}

impl<'m> OperandTexts<'m> {
    pub(crate) fn new(text: &'m str) -> Self {
        Self { rest: text }
    }

    /// The next name, if only a space and a sigil are in front of it, as in most texts.
    fn next_name(&mut self) -> Option<&'m str> {
        let bytes = self.rest.as_bytes();
        let text = usize::from(peek(bytes, 0) == b' ');
        let name = text + usize::from(peek(bytes, text) == b'%');
        let end = identifier_end(bytes, name);
        let is_name = end > name && (end == bytes.len() || bytes[end] == b',');
        let found = self.rest.get(name..end).filter(|_| is_name)?;
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        Some(found)
    }

    /// The next operand's name; `Err` with its text if that isn't an operand.
    pub(crate) fn next_operand(&mut self) -> Option<Result<&'m str, &'m str>> {
        if let Some(name) = self.next_name() {
            return Some(Ok(name));
        }
        let text = self.next()?;
        if memchr(b'#', text.as_bytes()).is_some() {
            return Some(element(text).map(|element| &text[element.name]).ok_or(text));
        }
        let start = name_start(text);
        let follows_shape = start == 0 || text[..start].trim_ascii_end().ends_with([']', '}', ')']);
        Some(if follows_shape { Ok(bare(&text[start..])) } else { Err(text) })
    }
}

impl<'m> Iterator for OperandTexts<'m> {
    type Item = &'m str;

    fn next(&mut self) -> Option<&'m str> {
        while !self.rest.is_empty() {
            let end = value_end(self.rest.as_bytes(), 0, false);
            let text = trim(&self.rest[..end]);
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !text.is_empty() {
                return Some(text);
            }
        }
        None
    }
}

/// Iterates over an instruction's [`Operand`]s.
#[derive(Clone, Debug)]
pub struct Operands<'m> {
    texts: OperandTexts<'m>,
    instructions: slice::Iter<'m, u32>,
    data: &'m Data,
}

impl<'m> Iterator for Operands<'m> {
    type Item = Operand<'m>;

    fn next(&mut self) -> Option<Operand<'m>> {
        let text = self.texts.next()?;
        let index = self.instructions.next().map(|index| *index as usize);
        let instruction = index.filter(|index| *index < self.data.instructions.len());
        Some(Operand { text, instruction: instruction.map(|index| Instruction { data: self.data, index }) })
    }
}

/// An operand: `name` or `shape name`, with or without `%`.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'m> {
    text: &'m str,
    instruction: Option<Instruction<'m>>,
}

impl<'m> Operand<'m> {
    /// The text.
    #[must_use]
    pub fn text(&self) -> &'m str {
        self.text
    }

    /// The name of the instruction, without `%`.
    #[must_use]
    pub fn name(&self) -> &'m str {
        match element(self.text) {
            Some(element) if !element.path.is_empty() => &self.text[element.name],
            _ => bare(&self.text[name_start(self.text)..]),
        }
    }

    /// The shape in front of the name, if there is one.
    #[must_use]
    pub fn shape_text(&self) -> Option<&'m str> {
        Some(self.text[..name_start(self.text)].trim_ascii_end()).filter(|shape| !shape.is_empty())
    }

    /// The instruction, if the text defines it above.
    #[must_use]
    pub fn instruction(&self) -> Option<Instruction<'m>> {
        self.instruction
    }
}

/// The start of an operand's name, with its sigil.
pub(crate) fn name_start(operand: &str) -> usize {
    let name = operand.bytes().rev().take_while(|byte| is_identifier(*byte)).count();
    let start = operand.len() - name;
    start - usize::from(operand[..start].ends_with('%'))
}

/// An operand: the range of its name in its text, and the numbers behind it if it is an element.
pub(crate) struct Element {
    pub(crate) name: std::ops::Range<usize>,
    pub(crate) path: Vec<usize>,
}

/// Reads `[shape] name` or `[shape] name#1#0`, with blanks and comments as XLA takes them; `None` where the text is
/// anything else.
pub(crate) fn element(operand: &str) -> Option<Element> {
    let bytes = operand.as_bytes();
    let shape = if is_shape(bytes, 0) { shape_end(bytes, 0).ok()? } else { 0 };
    let sigil = skip_trivia(bytes, shape);
    let start = sigil + usize::from(peek(bytes, sigil) == b'%');
    let end = identifier_end(bytes, start);
    let mut path = Vec::new();
    let mut at = skip_trivia(bytes, end);
    while let Some((number, next)) = number(operand, at) {
        path.push(number);
        at = skip_trivia(bytes, next);
    }
    (start < end && at >= bytes.len()).then_some(Element { name: start..end, path })
}

/// Reads `#1` at `at`; returns the number and its end.
pub(crate) fn number(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    if peek(bytes, at) != b'#' {
        return None;
    }
    let start = skip_trivia(bytes, at + 1);
    let end = identifier_end(bytes, start);
    Some((text.get(start..end)?.parse().ok()?, end))
}
