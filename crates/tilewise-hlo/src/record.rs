//! What parsing leaves: ranges of the text, which modules, computations and instructions look into.

use crate::error::{Warning, WarningKind};
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
    /// What follows the closing brace on its line.
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

    /// Ends the computation before the instruction `end`.
    pub(crate) fn close(&mut self, end: usize) {
        self.end = end;
    }
}

#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) source: String,
    pub(crate) name: Span,
    pub(crate) header: Span,
    pub(crate) has_header: bool,
    pub(crate) computations: Vec<ComputationRecord>,
    pub(crate) instructions: Vec<InstructionRecord>,
    pub(crate) table: SourceTable,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) entry: Option<usize>,
    pub(crate) computations_by_name: OnceLock<NameIndex>,
    /// The instructions of each computation.
    pub(crate) instructions_by_name: OnceLock<Vec<OnceLock<NameIndex>>>,
    pub(crate) owning: OnceLock<Vec<bool>>,
}

impl Data {
    pub(crate) fn text(&self, span: Span) -> &str {
        self.source.get(span.range()).unwrap_or_default()
    }

    /// Where in the source a part of it begins.
    pub(crate) fn offset_of(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.source.as_ptr() as usize)
    }

    /// Finds the entry computation: the one marked so, else the last one, as in XLA
    /// (`HloParserImpl::ParseComputations` in xla/hlo/parser/hlo_parser.cc). XLA prints `ENTRY` last, and the entry's
    /// layout in the header: a module with that layout and without `ENTRY` is truncated, and has none.
    pub(crate) fn choose_entry(&mut self) {
        let marked = self.computations.iter().position(|computation| computation.is_entry);
        let truncated = self.warnings.iter().any(|warning| warning.kind == WarningKind::UnterminatedComputation);
        let end = Span::new(self.source.len(), self.source.len());
        let prints_entry = truncated || self.text(self.header).contains("entry_computation_layout=");
        let mut warn = |kind| self.warnings.push(Warning { kind, start: end.start, end: end.end });
        self.entry = marked.or_else(|| {
            if self.has_header && prints_entry {
                warn(WarningKind::EntryMissing);
                return None;
            }
            if self.computations.len() > 1 {
                warn(WarningKind::NoEntry);
            }
            self.computations.len().checked_sub(1)
        });
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
