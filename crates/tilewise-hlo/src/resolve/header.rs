//! The attributes of a module, and the choice of its entry computation.

use super::Resolver;
use super::misspelt::{Seen, is_nearly_any};
use super::root;
use super::signature::{Layouts, interface, is_same_shape, signature};
use crate::calls::CallRole;
use crate::error::WarningKind;
use crate::opcode::Opcode;
use crate::operands::OperandTexts;
use crate::pairs::Pairs;
use crate::scan::trim;
use crate::span::Span;

/// The attributes of modules that a plan of memory depends on.
const READ: [&str; 3] = ["entry_computation_layout", "input_output_alias", "is_scheduled"];

/// The other attributes that XLA's parser takes, and those that it took once.
const OTHER: [&str; 12] = [
    "alias_passthrough_params",
    "allow_spmd_sharding_propagation_to_output",
    "allow_spmd_sharding_propagation_to_parameters",
    "backend_config",
    "buffer_donor",
    "debug_attributes",
    "device_assignment",
    "frontend_attributes",
    "num_partitions",
    "origin_recovery_table",
    "replica_count",
    "use_auto_spmd_partitioning",
];

impl<'d> Resolver<'d> {
    /// Checks that the header is a list of attributes, and that none belongs to an instruction.
    pub(super) fn header(&mut self) {
        let data = self.data;
        let text = data.text(data.header);
        let mut pairs = Pairs::new(text);
        let foreign =
            |name: &str| matches!(name, "metadata" | "backend_config" | "kind") || CallRole::of(name).is_some();
        let mut seen = Seen::default();
        while let Some((name, value)) = pairs.next_name() {
            if !seen.add(name) {
                self.warn(WarningKind::DuplicateAttribute, data.span_of(name));
            }
            let value = pairs.skip_value(value);
            let is_sound = match name {
                "is_scheduled" => matches!(value, "true" | "false"),
                "entry_computation_layout" => interface(value).is_some(),
                "num_partitions" | "replica_count" => value.parse::<i64>().is_ok_and(|count| count > 0),
                _ => true,
            };
            if foreign(name) {
                self.warn(WarningKind::UnreadLines, data.span_of(name));
            } else if is_nearly_any(name, &READ) {
                self.warn(WarningKind::MisspeltAttribute, data.span_of(name));
            } else if !READ.contains(&name) && !OTHER.contains(&name) {
                self.warn(WarningKind::UnknownHeaderAttribute, data.span_of(name));
            } else if !is_sound {
                self.warn(WarningKind::HeaderValue, data.span_of(name));
            }
        }
        if !pairs.is_at_end() {
            self.warn(WarningKind::UnreadLines, data.span_of(pairs.rest()));
        }
    }
    /// The entry computation: the one marked so, else the last one, as in XLA
    /// (`HloParserImpl::ParseComputations` in xla/hlo/parser/hlo_parser.cc). XLA prints `ENTRY`, and the entry's layout
    /// in the header: a module without `ENTRY`, whose last computation has another layout, is truncated, and has none.
    pub(super) fn choose_entry(&mut self) -> Option<usize> {
        let data = self.data;
        let marked: Vec<usize> = (0..data.computations.len()).filter(|at| data.computations[*at].is_entry).collect();
        if let [_, second, ..] = marked[..] {
            self.warn(WarningKind::SeveralEntries, data.computations[second].name);
        }
        let announced = self.announced();
        if let Some(entry) = marked.first() {
            if !self.is_as_announced(*entry, announced) {
                self.warn(WarningKind::HeaderMismatch, data.computations[*entry].name);
            }
            return Some(*entry);
        }
        let last = data.computations.len().checked_sub(1)?;
        let is_cut = data.warnings.iter().any(|warning| warning.kind == WarningKind::UnterminatedComputation);
        let end = Span::new(data.length, data.length);
        if data.has_header && (is_cut || announced.is_some_and(|_| !self.is_as_announced(last, announced))) {
            self.warn(WarningKind::EntryMissing, end);
            return None;
        }
        // Computations within instructions can't be the entry.
        if announced.is_none() && data.computations.len() > data.inline.len() + 1 {
            self.warn(WarningKind::NoEntry, end);
        }
        Some(last)
    }

    /// The parameters and the result of the entry, as the header has them.
    fn announced(&self) -> Option<(&'d str, &'d str)> {
        let is_layout = |(name, _): &(&str, &str)| *name == "entry_computation_layout";
        interface(Pairs::new(self.data.text(self.data.header)).find(is_layout)?.1)
    }

    /// Whether a computation's parameters and root are those of the header, and those of the line above it.
    fn is_as_announced(&self, computation: usize, announced: Option<(&str, &str)>) -> bool {
        let data = self.data;
        let record = &data.computations[computation];
        let instructions = record.first..record.end;
        let mut parameters: Vec<(Option<usize>, &str)> = Vec::new();
        for at in instructions.clone().filter(|at| data.instructions[*at].opcode == Opcode::Parameter) {
            let number = trim(data.text(data.instructions[at].operands)).parse().ok();
            parameters.push((number, self.shape_text(at)));
        }
        parameters.sort_by_key(|(number, _)| *number);
        // Before layouts are assigned, only the header has those of the interface.
        let is_scheduled = Pairs::new(data.text(data.header)).any(|pair| pair == ("is_scheduled", "true"));
        let layouts = if is_scheduled { Layouts::Compared } else { Layouts::Ignored };
        let are_those = |(list, result): (&str, &str), names: bool, layouts: Layouts| {
            let mut shapes = OperandTexts::new(list).map(|text| match text.split_once(':').filter(|_| names) {
                Some((_, shape)) => shape,
                None => text,
            });
            parameters.iter().all(|(_, shape)| shapes.next().is_some_and(|other| is_same_shape(other, shape, layouts)))
                && shapes.next().is_none()
                && root(data, record).is_some_and(|root| is_same_shape(result, self.shape_text(root), layouts))
        };
        let above = signature(data.text(record.signature));
        above.is_none_or(|above| are_those(above, true, Layouts::Ignored))
            && announced.is_none_or(|announced| are_those(announced, false, layouts))
    }
}
