//! A line as compilers print it, recognised by its two ends.

use super::Parser;
use crate::opcode::Opcode;
use crate::record::InstructionRecord;
use crate::scan::{balanced_end, identifier_end, is_identifier, line_end, peek, shape_end, skip_blank};
use crate::span::Span;

impl Parser<'_> {
    /// Reads `[ROOT] name = shape opcode(operands), attributes` if the line at `at` is that and no more, and returns
    /// its end. Attributes, mostly a `backend_config`, are only checked to be whole.
    pub(super) fn line(&mut self, at: usize) -> Option<usize> {
        let bytes = self.bytes;
        let (mut start, mut end) = self.word(at);
        let is_root = &bytes[start..end] == b"ROOT";
        if is_root {
            (start, end) = self.word(skip_blank(bytes, end));
        }
        let equals = skip_blank(bytes, end);
        if end == start || peek(bytes, equals) != b'=' {
            return None;
        }
        let shape = skip_blank(bytes, equals + 1);
        let shape_end = shape_end(bytes, shape).ok()?;
        let opcode = skip_blank(bytes, shape_end);
        let opcode_end = identifier_end(bytes, opcode);
        if opcode_end == opcode || peek(bytes, opcode_end) != b'(' {
            return None;
        }
        let operands_end = balanced_end(bytes, opcode_end, true).ok()?;
        let operands = opcode_end + 1..operands_end - 1;
        let kind = Opcode::of(self.source.get(opcode..opcode_end).unwrap_or_default());
        if kind != Opcode::Constant && may_hold_instruction(&bytes[operands.clone()]) {
            return None;
        }
        let name_end = end;
        let end = line_end(bytes, operands_end);
        if !are_whole(&bytes[operands_end..end]) {
            return None;
        }
        self.push(InstructionRecord {
            name: Span::new(start, name_end),
            shape: Span::new(shape, shape_end),
            opcode: kind,
            opcode_text: Span::new(opcode, opcode_end),
            operands: Span::new(operands.start, operands.end),
            attributes: Span::new(operands_end, end),
            is_root,
        });
        Some(end)
    }
}

/// Whether an operand may be an instruction itself: `negate(f32[2] parameter(0))`. In a shape, words of several letters
/// hardly stand before a parenthesis.
fn may_hold_instruction(operands: &[u8]) -> bool {
    memchr::memchr_iter(b'(', operands).any(|at| {
        let word = operands[..at].iter().rev().take(2);
        word.filter(|byte| is_identifier(**byte)).count() == 2
    })
}

/// Whether the attributes on a line go on in the next. Pretty-printed values break lines only after these; a complete
/// line never ends with one.
pub(super) fn leaves_open(line: &[u8]) -> bool {
    let last = line.iter().rev().find(|byte| !byte.is_ascii_whitespace());
    matches!(last, Some(b'{' | b'[' | b'(' | b',' | b'='))
}

/// Whether the rest of a line is attributes alone, and all of them.
///
/// Braces and quotes are counted, so braces in strings may make up for others.
fn are_whole(line: &[u8]) -> bool {
    let Some((&first, rest)) = line.split_first() else { return true };
    if first != b',' {
        return line.iter().all(u8::is_ascii_whitespace);
    }
    let (mut depth, mut quotes, mut odd) = (0_i64, 0_u8, 0_u8);
    // Pairs of neighbours, in pieces whose counts fit a byte, so that the compiler vectorises the loop.
    for (ones, nexts) in line.chunks(64).zip(rest.chunks(64)) {
        let mut depth_here = 0_i8;
        for (&one, &next) in ones.iter().zip(nexts) {
            depth_here += i8::from(next == b'{') - i8::from(next == b'}');
            quotes ^= u8::from(next == b'"');
            // ` =` of a further instruction, `)=` behind anything but a name; a comment.
            let ends_name = one > b' ' && !matches!(one, b'"' | b')' | b',' | b']' | b'}');
            odd |= u8::from(next == b'=') & u8::from(!ends_name);
            odd |= u8::from(one == b'/') & (u8::from(next == b'/') | u8::from(next == b'*'));
        }
        depth += i64::from(depth_here);
    }
    depth == 0 && quotes == 0 && odd == 0 && !leaves_open(line) && !has_marked_name(line)
}

/// Whether a `%name=` begins a further instruction.
fn has_marked_name(line: &[u8]) -> bool {
    memchr::memchr_iter(b'%', line).any(|at| peek(line, identifier_end(line, at + 1)) == b'=')
}
