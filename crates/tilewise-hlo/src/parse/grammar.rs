//! Instructions token by token: the whole grammar of XLA's parser (xla/hlo/parser/hlo_parser.cc).
//!
//! An operand may be an instruction without a name, and a computation may stand in braces where its name could. So
//! instructions and computations lie in each other, at any depth: they are kept on two stacks, and nothing recurses.

use super::Parser;
use crate::calls::CallRole;
use crate::error::WarningKind;
use crate::opcode::Opcode;
use crate::operands::{self, has_operands};
use crate::record::InstructionRecord;
use crate::scan::{balanced_end, identifier_end, is_identifier, is_shape, peek, shape_end, string_end};
use crate::span::Span;

/// An instruction whose end has not come yet.
pub(super) struct Pending {
    /// `None` for an operand.
    name: Option<Span>,
    is_root: bool,
    /// The start of its statement.
    pub(super) start: usize,
    shape: Span,
    opcode: Opcode,
    opcode_text: Span,
    operands: Span,
    /// Its operands as names, if one of them is an instruction, and the end of the text rewritten so far.
    names: Option<(String, usize)>,
    pub(super) attributes: Span,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// At an operand, or the closing parenthesis.
    Operand,
    /// Behind an operand.
    OperandEnd,
    /// Behind the operands, or an attribute.
    Attribute,
    /// In a list of computations, one or more of them in braces.
    Computation,
}

impl Parser<'_> {
    /// Whether an instruction is open within the innermost computation.
    pub(super) fn is_within_instruction(&self) -> bool {
        let outside = self.open.last().and_then(|open| open.within).map_or(0, |(_, pending)| pending);
        self.pending.len() > outside
    }

    /// Reads `shape opcode(` at `at`, and the rest up to the parenthesis if that can't hold instructions. The shape may
    /// be left out.
    pub(super) fn begin_instruction(&mut self, name: Option<Span>, is_root: bool, at: usize) -> Result<usize, usize> {
        let bytes = self.bytes;
        let shape = self.skip(at);
        let shape_end = if is_shape(bytes, shape) { shape_end(bytes, shape)? } else { shape };
        let opcode = self.skip(shape_end);
        let opcode_end = identifier_end(bytes, opcode);
        let parenthesis = self.skip(opcode_end);
        if opcode_end == opcode || peek(bytes, parenthesis) != b'(' {
            return Err(if opcode_end == opcode { shape_end } else { opcode_end });
        }
        let mut pending = Pending {
            start: if name.is_some() { self.began } else { shape },
            name,
            is_root,
            shape: Span::new(shape, shape_end),
            opcode: Opcode::of(self.source.get(opcode..opcode_end).unwrap_or_default()),
            opcode_text: Span::new(opcode, opcode_end),
            operands: Span::new(parenthesis + 1, parenthesis + 1),
            names: None,
            attributes: Span::default(),
            stage: Stage::Operand,
        };
        if has_operands(pending.opcode) {
            self.pending.push(pending);
            return Ok(parenthesis + 1);
        }
        let end = balanced_end(bytes, parenthesis, true)?;
        pending.operands = Span::new(parenthesis + 1, end - 1);
        Ok(self.end_operands(pending, end))
    }

    /// Opens an instruction again that has ended, for more attributes.
    pub(super) fn reopen(&mut self, instruction: InstructionRecord) -> usize {
        let InstructionRecord { name, shape, opcode, opcode_text, operands, attributes, is_root } = instruction;
        let end = attributes.end as usize;
        self.pending.push(Pending {
            name: Some(name),
            is_root,
            start: name.start as usize,
            shape,
            opcode,
            opcode_text,
            operands,
            names: None,
            attributes,
            stage: Stage::Attribute,
        });
        end
    }

    /// Goes on with the innermost instruction, and returns the end of the part that was read.
    pub(super) fn go_on(&mut self, at: usize) -> Result<usize, usize> {
        let Some(pending) = self.pending.last() else { return Err(at) };
        let (stage, number) = (pending.stage, self.pending.len() - 1);
        let token = self.skip(at);
        let byte = peek(self.bytes, token);
        match (stage, byte) {
            (Stage::Operand | Stage::OperandEnd, b')') => {
                let Some(mut pending) = self.pending.pop() else { return Err(token) };
                pending.operands.end = Span::new(token, token).end;
                Ok(self.end_operands(pending, token + 1))
            }
            (Stage::Operand, _) => self.operand(token),
            (Stage::OperandEnd, b',') => {
                self.pending[number].stage = Stage::Operand;
                // After a comma an operand must follow, not the parenthesis.
                let next = self.skip(token + 1);
                if peek(self.bytes, next) == b')' { Err(token) } else { Ok(next) }
            }
            (Stage::Attribute, b',') => self.attribute(token + 1),
            (Stage::Attribute, _) => {
                let Some(pending) = self.pending.pop() else { return Err(token) };
                let end = pending.attributes.end as usize;
                self.end_instruction(pending);
                Ok(end)
            }
            (Stage::Computation, b'{') => Ok(self.open_within(token)),
            (Stage::Computation, b',') => Ok(token + 1),
            (Stage::Computation, b'}') => {
                let pending = &mut self.pending[number];
                pending.stage = Stage::Attribute;
                pending.attributes.end = Span::new(token, token + 1).end;
                Ok(token + 1)
            }
            (Stage::Computation, _) => match self.word(token) {
                (start, end) if end > start => Ok(end),
                _ => Err(at),
            },
            (Stage::OperandEnd, _) => {
                // At the end of the text, there is no character to name.
                if let Some(unknown) = self.source.get(token..).and_then(|rest| rest.chars().next()) {
                    self.warn(WarningKind::OperandSyntax, token, token + unknown.len_utf8());
                }
                Err(at)
            }
        }
    }

    /// Reads the operand at `at`: `name`, `shape name`, or an instruction, which is begun.
    fn operand(&mut self, at: usize) -> Result<usize, usize> {
        let bytes = self.bytes;
        let has_shape = is_shape(bytes, at);
        let shape_end = if has_shape { shape_end(bytes, at)? } else { at };
        let word = self.skip(shape_end);
        let (start, end) = self.word(word);
        let mut next = self.skip(end);
        let mut named = end;
        while let Some((_, number)) = operands::number(self.source, next) {
            named = number;
            next = self.skip(number);
        }
        let Some(pending) = self.pending.last_mut() else { return Err(at) };
        pending.stage = Stage::OperandEnd;
        if end > start && peek(bytes, next) != b'(' {
            return Ok(named);
        }
        if end > start && start == word {
            let copied = pending.names.as_ref().map_or(pending.operands.start as usize, |(_, copied)| *copied);
            let (names, up_to) = pending.names.get_or_insert_default();
            names.push_str(self.source.get(copied..at).unwrap_or_default());
            *up_to = at;
            return self.begin_instruction(None, false, at);
        }
        // `add(f32[10], f32[10])`: XLA accepts that in a line on its own.
        let is_alone = self.open.last().is_none_or(|open| open.within.is_none() && open.record.is_implicit());
        if has_shape && is_alone && end == start { Ok(shape_end) } else { Err(end) }
    }

    /// Ends the operands of an instruction behind their parenthesis, and the instruction with them if it is an operand.
    fn end_operands(&mut self, mut pending: Pending, end: usize) -> usize {
        if let Some((mut names, copied)) = pending.names.take() {
            names.push_str(self.source.get(copied..pending.operands.end as usize).unwrap_or_default());
            pending.operands = self.append(&names);
        }
        pending.attributes = Span::new(end, end);
        pending.stage = Stage::Attribute;
        if pending.name.is_some() {
            self.pending.push(pending)
        } else {
            self.end_instruction(pending)
        }
        end
    }

    /// Reads the attribute at `at`, up to the brace if it is a computation in braces.
    fn attribute(&mut self, at: usize) -> Result<usize, usize> {
        let (name, value) = self.attribute_name(at)?;
        let holds_computations = CallRole::of(self.source.get(name.range()).unwrap_or_default()).is_some();
        if holds_computations && peek(self.bytes, value) == b'{' {
            let inside = self.skip(value + 1);
            let stage = match peek(self.bytes, inside) {
                b'{' => Some(Stage::Computation),
                b'}' => None,
                _ => {
                    let (mut start, mut end) = self.word(inside);
                    let next = self.skip(end);
                    if &self.bytes[start..end] == b"ROOT" && is_name(self.bytes, next) {
                        (start, end) = self.word(next);
                    }
                    let next = self.skip(end);
                    if end > start && peek(self.bytes, next) == b'=' {
                        Some(Stage::Attribute)
                    } else {
                        // Names; or names and computations.
                        Some(Stage::Computation)
                    }
                }
            };
            if let (Some(stage), Some(pending)) = (stage, self.pending.last_mut()) {
                pending.stage = stage;
                return Ok(if stage == Stage::Attribute { self.open_within(value) } else { value + 1 });
            }
        }
        let end = self.value(value, true)?;
        if let Some(pending) = self.pending.last_mut() {
            pending.attributes.end = Span::new(value, end).end;
        }
        Ok(end)
    }

    /// Reads `, name=value, …` at `at`, where no value holds a computation, and returns its end. If `guarded`, no value
    /// reaches over a line that looks like an instruction.
    pub(super) fn attributes(&mut self, mut at: usize, guarded: bool) -> Result<usize, usize> {
        loop {
            let comma = self.skip(at);
            if peek(self.bytes, comma) != b',' {
                return Ok(at);
            }
            let (_, value) = self.attribute_name(comma + 1)?;
            at = self.value(value, guarded)?;
        }
    }

    /// Reads `name=` at `at`, and returns the name and the start of the value.
    fn attribute_name(&mut self, at: usize) -> Result<(Span, usize), usize> {
        let start = self.skip(at);
        let end = identifier_end(self.bytes, start);
        let equals = self.skip(end);
        if end == start || peek(self.bytes, equals) != b'=' {
            return Err(if end == start { at } else { end });
        }
        Ok((Span::new(start, end), self.skip(equals + 1)))
    }

    /// The end of the value at `start`: a comma, a closing bracket, or white space behind which it doesn't go on.
    fn value(&mut self, start: usize, guarded: bool) -> Result<usize, usize> {
        let bytes = self.bytes;
        let mut at = start;
        loop {
            match peek(bytes, at) {
                b'(' | b'[' | b'{' => at = balanced_end(bytes, at, guarded)?,
                b'"' => at = string_end(bytes, at, guarded)?,
                b',' | b')' | b']' | b'}' => break,
                0 if at >= bytes.len() => break,
                b' ' | b'\t' | b'\r' | b'\n' | b'/' => {
                    let next = self.skip(at);
                    if next > at && !matches!(peek(bytes, next), b'<' | b'[' | b'(' | b'{') {
                        break;
                    }
                    at = next.max(at + 1);
                }
                _ => at += 1,
            }
        }
        if at == start { Err(at) } else { Ok(at) }
    }

    fn end_instruction(&mut self, pending: Pending) {
        let Pending { name, is_root, shape, opcode, opcode_text, operands, attributes, .. } = pending;
        let name = name.unwrap_or_else(|| {
            self.anonymous += 1;
            let opcode = self.source.get(opcode_text.range()).unwrap_or_default();
            let name = self.append(&format!("{opcode}.anon.{}", self.anonymous));
            if let Some((names, copied)) = self.pending.last_mut().and_then(|around| around.names.as_mut()) {
                let text = self.parsed.appendix.get(name.start as usize - self.source.len()..).unwrap_or_default();
                names.push_str(text);
                *copied = attributes.end as usize;
            }
            name
        });
        self.push(InstructionRecord { name, shape, opcode, opcode_text, operands, attributes, is_root });
    }
}

fn is_name(bytes: &[u8], at: usize) -> bool {
    peek(bytes, at) == b'%' || is_identifier(peek(bytes, at))
}
