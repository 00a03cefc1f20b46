//! The result of parsing: ranges of the text, for the views of modules, computations and instructions.

use crate::error::Warning;
use crate::name_index::NameIndex;
use crate::opcode::Opcode;
use crate::source_table::SourceTable;
use crate::span::Span;
use std::sync::OnceLock;

#[derive(Debug)]
pub(crate) struct InstructionRecord {
    pub(crate) name: Span,
    pub(crate) shape: Span,
    pub(crate) opcode: Opcode,
    pub(crate) opcode_text: Span,
    /// Between the parentheses.
    pub(crate) operands: Span,
    /// From the closing parenthesis to the end of the line.
    pub(crate) attributes: Span,
    pub(crate) is_root: bool,
}

#[derive(Debug)]
pub(crate) struct ComputationRecord {
    pub(crate) name: Span,
    pub(crate) signature: Span,
    /// The text behind the closing brace on its line.
    pub(crate) attributes: Span,
    pub(crate) is_entry: bool,
    pub(crate) first: usize,
    pub(crate) end: usize,
}

impl ComputationRecord {
    pub(crate) fn implicit(first: usize) -> Self {
        let (name, signature, attributes) = Default::default();
        Self { name, signature, attributes, is_entry: false, first, end: first }
    }

    pub(crate) fn is_implicit(&self) -> bool {
        self.name == Span::default()
    }
}

/// The attributes of all instructions, which are long, and asked for many times.
#[derive(Debug, Default)]
pub(crate) struct AttributeRecords {
    /// The start of each instruction's `pairs`.
    firsts: Vec<u32>,
    /// Name and value.
    pairs: Vec<[Span; 2]>,
}

impl AttributeRecords {
    /// Adds those of the next instruction.
    pub(crate) fn push(&mut self, pairs: impl Iterator<Item = [Span; 2]>) {
        // A pair takes two bytes at least, so that their number fits as offsets do.
        self.firsts.push(u32::try_from(self.pairs.len()).unwrap_or(u32::MAX));
        self.pairs.extend(pairs);
    }

    pub(crate) fn of(&self, instruction: usize) -> &[[Span; 2]] {
        let at = |index: usize| self.firsts.get(index).map_or(self.pairs.len(), |first| *first as usize);
        self.pairs.get(at(instruction)..at(instruction + 1)).unwrap_or_default()
    }
}

/// The callers of a computation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Uses {
    pub(crate) by_fusion: bool,
    pub(crate) otherwise: bool,
}

/// No instruction.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Data {
    /// The text, and behind it the names and operands that it leaves out.
    pub(crate) source: String,
    /// The length of the text.
    pub(crate) length: usize,
    pub(crate) name: Span,
    pub(crate) header: Span,
    pub(crate) has_header: bool,
    pub(crate) computations: Vec<ComputationRecord>,
    pub(crate) instructions: Vec<InstructionRecord>,
    /// The start of each computation within an instruction, and its index, in rising order.
    pub(crate) inline: Vec<(u32, u32)>,
    /// Each operand: the index of an instruction, or [`NONE`].
    pub(crate) operands: Vec<u32>,
    /// The start of each instruction's `operands`.
    pub(crate) first_operands: Vec<u32>,
    /// The callers of each computation.
    pub(crate) uses: Vec<Uses>,
    pub(crate) table: SourceTable,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) entry: Option<usize>,
    pub(crate) computations_by_name: OnceLock<NameIndex>,
    /// The instructions of each computation.
    pub(crate) instructions_by_name: OnceLock<Vec<OnceLock<NameIndex>>>,
    pub(crate) attributes: OnceLock<AttributeRecords>,
    pub(crate) owning: OnceLock<Vec<bool>>,
    pub(crate) has_tiles: OnceLock<bool>,
}

impl Data {
    pub(crate) fn text(&self, span: Span) -> &str {
        self.source.get(span.range()).unwrap_or_default()
    }

    /// The offset in the source of a part of it.
    pub(crate) fn offset_of(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.source.as_ptr() as usize)
    }

    pub(crate) fn span_of(&self, part: &str) -> Span {
        let start = self.offset_of(part);
        Span::new(start, start + part.len())
    }

    /// Whether any layout has tiles.
    pub(crate) fn has_tiles(&self) -> bool {
        let is_tiled = |instruction: &InstructionRecord| self.text(instruction.shape).contains(":T(");
        *self.has_tiles.get_or_init(|| self.instructions.iter().any(is_tiled))
    }

    /// The operands of an instruction: each the index of an instruction, or [`NONE`].
    pub(crate) fn operands_of(&self, instruction: usize) -> &[u32] {
        let at = |index: usize| self.first_operands.get(index).map_or(self.operands.len(), |first| *first as usize);
        self.operands.get(at(instruction)..at(instruction + 1)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_takes_what_the_documentation_says() {
        assert_eq!(size_of::<InstructionRecord>(), 44);
    }
}
