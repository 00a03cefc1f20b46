//! What names mean, and whether the text says what it must.
//!
//! XLA's parser resolves names while it reads (xla/hlo/parser/hlo_parser.cc): what is used must be defined above, and
//! once. So a text that was cut, wherever it was, mostly misses something that the rest needs.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::arity::{are_pairs, operand_counts};
use crate::calls::{CallRole, called};
use crate::error::{Error, Warning, WarningKind};
use crate::infer::{Operation, infer};
use crate::name_index::NameIndex;
use crate::opcode::{Opcode, wrapped};
use crate::operands::{OperandTexts, has_operands};
use crate::record::{ComputationRecord, Data, NONE, Uses};
use crate::scan::{balanced_end, identifier_end, peek, skip_trivia, trim, value_end};
use crate::span::Span;

/// Looks up operands and computations that are called, infers the shapes that XLA infers, chooses the entry, and notes
/// what is missing, doubled or contradicts itself.
///
/// `elements` has the operands that brought in instructions which the text leaves out.
///
/// # Errors
/// If the text is too large with what is inferred.
pub(crate) fn resolve(data: &mut Data, elements: &HashMap<usize, Span>) -> Result<(), Error> {
    let mut resolver = Resolver::new(data, elements);
    for index in 0..data.computations.len() {
        resolver.computation(index);
    }
    resolver.header();
    let entry = resolver.choose_entry();
    let Resolver { operands, first_operands, uses, inferred, warnings, .. } = resolver;
    data.uses = uses;
    data.entry = entry;
    data.operands = operands;
    data.first_operands = first_operands;
    data.warnings.extend(warnings);
    for (instruction, shape) in inferred {
        let start = data.source.len();
        data.source.push_str(&shape);
        crate::parse::check_size(&data.source)?;
        data.instructions[instruction].shape = Span::new(start, data.source.len());
    }
    Ok(())
}

struct Resolver<'d> {
    data: &'d Data,
    named_elements: &'d HashMap<usize, Span>,
    computations: NameIndex,
    /// The instructions of the computation at hand, as far as it is read.
    instructions: NameIndex,
    operands: Vec<u32>,
    first_operands: Vec<u32>,
    /// What calls each computation.
    uses: Vec<Uses>,
    /// The shapes that the text leaves out.
    inferred: HashMap<usize, String>,
    inferred_bytes: usize,
    /// Where the elements are in the shapes of tuples.
    elements: HashMap<usize, Vec<Range<usize>>>,
    /// The instruction at hand.
    at: usize,
    warnings: Vec<Warning>,
}

impl<'d> Resolver<'d> {
    fn new(data: &'d Data, named_elements: &'d HashMap<usize, Span>) -> Self {
        Self {
            data,
            named_elements,
            computations: NameIndex::with_capacity(data.computations.len()),
            instructions: NameIndex::with_capacity(0),
            operands: Vec::with_capacity(data.instructions.len() * 2),
            first_operands: Vec::with_capacity(data.instructions.len()),
            uses: vec![Uses::default(); data.computations.len()],
            inferred: HashMap::new(),
            inferred_bytes: 0,
            elements: HashMap::new(),
            at: 0,
            warnings: Vec::new(),
        }
    }

    /// Of a part of the text; for one that the text leaves out, of the instruction at hand.
    fn warn(&mut self, kind: WarningKind, span: Span) {
        let is_written = span.end as usize <= self.data.length;
        let span = if is_written { span } else { self.place(self.at) };
        self.warnings.push(Warning::new(kind, span));
    }

    fn warn_at(&mut self, kind: WarningKind, instruction: usize) {
        self.warnings.push(Warning::new(kind, self.place(instruction)));
    }

    /// Where an instruction is written: its name, or without one what brought it in.
    fn place(&self, instruction: usize) -> Span {
        let record = &self.data.instructions[instruction];
        let written = [Some(&record.name), self.named_elements.get(&instruction), Some(&record.opcode_text)];
        let mut written = written.into_iter().flatten();
        written.find(|span| span.end as usize <= self.data.length).copied().unwrap_or_default()
    }

    fn computation(&mut self, index: usize) {
        let data = self.data;
        let record = &data.computations[index];
        let instructions = record.first..record.end;
        self.instructions.reset(instructions.len());
        let (mut root, mut parameters) = (None, Vec::new());
        for at in instructions {
            let instruction = &data.instructions[at];
            self.at = at;
            self.operands(at, record.is_implicit());
            self.attributes(at, record.is_implicit());
            self.shape(at);
            if instruction.opcode == Opcode::Parameter {
                parameters.push(at);
            }
            let is_unknown = match instruction.opcode {
                opcode if opcode.is_async() => wrapped(data.text(instruction.opcode_text)) == Some(Opcode::Unknown),
                opcode => opcode == Opcode::Unknown,
            };
            if is_unknown {
                self.warn(WarningKind::UnknownOpcode, instruction.opcode_text);
            }
            if instruction.is_root && root.replace(at).is_some() {
                self.warn_at(WarningKind::SeveralRoots, at);
            }
            if self.instructions.insert(data.text(instruction.name), at, instruction_name(data)).is_some() {
                self.warn_at(WarningKind::DuplicateName, at);
            }
        }
        if record.is_implicit() {
            if data.has_header && record.first < record.end {
                // A line on its own is no part of a module.
                self.warn_at(WarningKind::UnreadLines, record.first);
            }
            return;
        }
        self.parameters(&parameters);
        if let (Some((_, result)), Some(root)) = (signature(data.text(record.signature)), self::root(data, record))
            && !is_same_shape(result, self.shape_text(root), Layouts::Ignored)
        {
            self.warn_at(WarningKind::RootMismatch, root);
        }
        if self.computations.insert(data.text(record.name), index, computation_name(data)).is_some() {
            self.warn(WarningKind::DuplicateName, record.name);
        }
    }

    /// Lines on their own may leave their operands out.
    fn operands(&mut self, at: usize, may_lack: bool) {
        let data = self.data;
        let instruction = &data.instructions[at];
        self.first_operands.push(u32::try_from(self.operands.len()).unwrap_or(NONE));
        if !has_operands(instruction.opcode) {
            return;
        }
        let text = data.text(instruction.operands);
        // An element that is left is of a tuple that isn't there.
        let lacks = may_lack && memchr::memchr(b'#', text.as_bytes()).is_some();
        let mut operands = OperandTexts::new(text);
        while let Some(operand) = operands.next_operand() {
            let found = operand.ok().and_then(|name| self.instructions.find(name, instruction_name(data)));
            let found = found.filter(|_| !lacks);
            match operand {
                Err(text) => self.warn(WarningKind::OperandSyntax, data.span_of(text)),
                Ok(name) if found.is_none() && !may_lack => {
                    self.warn(WarningKind::UndefinedOperand, data.span_of(name));
                }
                Ok(_) => {}
            }
            self.operands.push(found.and_then(|found| u32::try_from(found).ok()).unwrap_or(NONE));
        }
        let count = self.last_operands().len();
        let is_taken = operand_counts(instruction.opcode).contains(&count) && are_pairs(instruction.opcode, count);
        if !is_taken && !may_lack {
            self.warn_at(WarningKind::OperandCount, at);
        }
    }

    /// Reads the attributes, but for those printed last, which say where an instruction comes from and how it is
    /// compiled.
    fn attributes(&mut self, at: usize, may_lack: bool) {
        let data = self.data;
        let instruction = &data.instructions[at];
        // What `slice-start` and the like run is in their names.
        let opcode = match instruction.opcode {
            Opcode::AsyncStart if data.text(instruction.opcode_text) != "async-start" => Opcode::Slice,
            opcode => opcode,
        };
        let text = data.text(instruction.attributes);
        let (mut has, mut branches, mut seen) = (Has::default(), 0, Seen::default());
        let mut is_last_read = false;
        let mut pairs = Pairs::new(text);
        while let Some((name, value)) = pairs.next_name() {
            if !seen.add(name) {
                self.warn(WarningKind::DuplicateAttribute, data.span_of(name));
            }
            is_last_read = is_last(name, &text[value..]) && has.what_needs(opcode);
            if is_last_read {
                break;
            }
            let value = pairs.skip_value(value);
            if let Some(role) = CallRole::of(name) {
                has.roles |= 1 << role as u32;
                let runs_fusion = || {
                    let wrapped = || crate::opcode::wrapped(data.text(instruction.opcode_text));
                    opcode == Opcode::Fusion || wrapped() == Some(Opcode::Fusion)
                };
                let takes_it = match role {
                    CallRole::Condition | CallRole::Body => opcode == Opcode::While,
                    CallRole::Branch | CallRole::True | CallRole::False => opcode == Opcode::Conditional,
                    CallRole::Select | CallRole::Scatter => opcode == Opcode::SelectAndScatter,
                    // What isn't known may call anything.
                    CallRole::Calls | CallRole::ToApply | CallRole::Called => true,
                };
                if !takes_it && opcode != Opcode::Unknown && !instruction.opcode.is_async() {
                    self.warn(WarningKind::UnexpectedAttribute, data.span_of(name));
                }
                if matches!(role, CallRole::Branch | CallRole::True | CallRole::False) {
                    branches += called(data, value).count();
                }
                self.note_called(value, role == CallRole::Calls && runs_fusion());
            } else if name == "control-predecessors" && memchr::memchr(b'#', value.as_bytes()).is_some() {
                // XLA takes names alone.
                self.warn(WarningKind::UnreadLines, data.span_of(value));
            } else if name == "index" {
                has.index = trim(value).parse::<usize>().is_ok();
            } else if is_nearly_any(name, &ATTRIBUTES) {
                self.warn(WarningKind::MisspeltAttribute, data.span_of(name));
            }
        }
        if !is_last_read && !pairs.is_at_end() {
            self.warn(WarningKind::UnreadLines, data.span_of(pairs.rest()));
        }
        if !has.what_needs(opcode) {
            self.warn_at(WarningKind::MissingAttribute, at);
        } else if opcode == Opcode::Conditional && !may_lack && self.last_operands().len() != branches + 1 {
            // Which branch, and an operand for each.
            self.warn_at(WarningKind::OperandCount, at);
        }
    }

    /// The operands of the instruction that was read last.
    fn last_operands(&self) -> &[u32] {
        let first = self.first_operands.last().map_or(0, |first| *first as usize);
        self.operands.get(first..).unwrap_or_default()
    }

    fn note_called(&mut self, value: &'d str, by_fusion: bool) {
        for (name, inline) in called(self.data, value) {
            let found = inline.or_else(|| self.computations.find(name, computation_name(self.data)));
            match found.and_then(|index| self.uses.get_mut(index)) {
                Some(uses) if by_fusion => uses.by_fusion = true,
                Some(uses) => uses.otherwise = true,
                None if self.data.has_header => {
                    self.warn(WarningKind::UndefinedComputation, self.data.span_of(name));
                }
                None => {}
            }
        }
    }

    fn shape(&mut self, at: usize) {
        let data = self.data;
        let instruction = &data.instructions[at];
        if instruction.shape.start < instruction.shape.end {
            return;
        }
        let first = self.first_operands.last().map_or(0, |first| *first as usize);
        let operands: Vec<usize> = self.operands[first..].iter().map(|operand| *operand as usize).collect();
        let tuple = operands.first().filter(|_| instruction.opcode == Opcode::GetTupleElement);
        if let Some(tuple) = tuple.filter(|tuple| !self.elements.contains_key(tuple)) {
            let elements = elements(self.shape_text(*tuple));
            self.elements.insert(*tuple, elements);
        }
        let attributes = data.text(instruction.attributes);
        let element = |number: usize| {
            let tuple = operands.first()?;
            self.shape_text(*tuple).get(self.elements.get(tuple)?.get(number)?.clone())
        };
        let result_of = |name: &str| {
            let value = Pairs::new(attributes).find(|(other, _)| *other == name)?.1;
            let (name, inline) = called(data, value).next()?;
            let callee = inline.or_else(|| self.computations.find(name, computation_name(data)))?;
            Some(self.shape_text(root(data, data.computations.get(callee)?)?))
        };
        let operands = operands.iter().map(|operand| self.shape_text(*operand)).collect();
        let operation =
            Operation { opcode: instruction.opcode, operands, attributes, element: &element, result_of: &result_of };
        // Tuples of tuples grow with every level.
        let inferred = infer(&operation).filter(|shape| self.inferred_bytes + shape.len() <= 16 * data.length + 4096);
        match inferred {
            Some(shape) => {
                self.inferred_bytes += shape.len();
                self.inferred.insert(at, shape);
            }
            None => match self.named_elements.get(&at) {
                Some(operand) => self.warn(WarningKind::NoElement, *operand),
                None => self.warn_at(WarningKind::NoShape, at),
            },
        }
    }

    /// The text of an instruction's shape, written or inferred.
    fn shape_text(&self, instruction: usize) -> &str {
        match self.inferred.get(&instruction) {
            Some(shape) => shape,
            None => self.data.instructions.get(instruction).map_or("", |instruction| self.data.text(instruction.shape)),
        }
    }

    /// Parameters must be numbered 0, 1, 2 …, in any order.
    fn parameters(&mut self, parameters: &[usize]) {
        let data = self.data;
        let number = |at: &usize| trim(data.text(data.instructions[*at].operands)).parse::<usize>().ok();
        let mut seen = vec![false; parameters.len()];
        for at in parameters {
            let is_new =
                number(at).and_then(|number| seen.get_mut(number)).is_some_and(|seen| !std::mem::replace(seen, true));
            if !is_new {
                self.warn_at(WarningKind::ParameterNumbers, *at);
            }
        }
    }

    /// The entry computation: the one marked so, else the last one, as in XLA
    /// (`HloParserImpl::ParseComputations` in xla/hlo/parser/hlo_parser.cc). XLA prints `ENTRY`, and the entry's layout
    /// in the header: a module without `ENTRY`, whose last computation has another layout, is truncated, and has none.
    fn choose_entry(&mut self) -> Option<usize> {
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
        // Computations within instructions can't be meant.
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

    /// Whether a computation's parameters and root are those that the header announces, and those that the line above
    /// it does.
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

    /// The header must be a list of attributes, of which none belongs to an instruction.
    fn header(&mut self) {
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
            } else if is_nearly_any(name, &HEADER) {
                self.warn(WarningKind::MisspeltAttribute, data.span_of(name));
            } else if !HEADER.contains(&name) && !OTHER_HEADER.contains(&name) {
                self.warn(WarningKind::UnknownHeaderAttribute, data.span_of(name));
            } else if !is_sound {
                self.warn(WarningKind::HeaderValue, data.span_of(name));
            }
        }
        if !pairs.is_at_end() {
            self.warn(WarningKind::UnreadLines, data.span_of(pairs.rest()));
        }
    }
}

/// The root of a computation: the instruction marked so, else the last one.
fn root(data: &Data, computation: &ComputationRecord) -> Option<usize> {
    let instructions = computation.first..computation.end;
    instructions.clone().rev().find(|at| data.instructions[*at].is_root).or(instructions.last())
}

/// Where the elements of a tuple's shape are.
fn elements(shape: &str) -> Vec<Range<usize>> {
    let inside = shape.strip_prefix('(').and_then(|shape| shape.strip_suffix(')')).unwrap_or_default();
    let start = |text: &str| (text.as_ptr() as usize) - (shape.as_ptr() as usize);
    OperandTexts::new(inside).map(|text| start(text)..start(text) + text.len()).collect()
}

fn instruction_name<'d>(data: &'d Data) -> impl Fn(usize) -> &'d str {
    move |at| data.text(data.instructions[at].name)
}

fn computation_name<'d>(data: &'d Data) -> impl Fn(usize) -> &'d str {
    move |at| data.text(data.computations[at].name)
}

/// Whether attributes go on with nothing that needs to be read: with `metadata` and `backend_config`, which are printed
/// last, and whose brackets the parser has counted.
fn is_last(name: &str, values: &str) -> bool {
    match name {
        "metadata" => {
            let Some(end) = memchr::memchr(b'}', values.as_bytes()) else { return false };
            let rest = values[end + 1..].trim_ascii_end();
            rest.is_empty()
                || rest.strip_prefix(", backend_config=").is_some_and(|value| is_last("backend_config", value))
        }
        "backend_config" => values.trim_ascii_end().ends_with(['}', '"']) && !may_go_on(values),
        _ => false,
    }
}

/// Whether a further attribute may stand in a text: a comma with a letter behind it, which in JSON is rare.
fn may_go_on(values: &str) -> bool {
    let bytes = values.as_bytes();
    let behind = |at: usize| bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
    memchr::memchr_iter(b',', bytes).any(|at| matches!(behind(at), Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'/')))
}

/// The names of attributes that were given.
#[derive(Default)]
struct Seen<'t> {
    few: Vec<&'t str>,
    others: HashSet<&'t str>,
}

impl<'t> Seen<'t> {
    /// Whether the name is new. Instructions have few attributes; texts that no compiler printed may have any number.
    fn add(&mut self, name: &'t str) -> bool {
        const FEW: usize = 16;
        if self.few.contains(&name) {
            return false;
        }
        if self.few.len() < FEW {
            self.few.push(name);
            return true;
        }
        self.others.insert(name)
    }
}

/// What the attributes of an instruction have.
#[derive(Default)]
struct Has {
    /// A bit for each role.
    roles: u32,
    index: bool,
}

impl Has {
    /// Whether they have what such an instruction can't do without.
    fn what_needs(&self, opcode: Opcode) -> bool {
        use CallRole::{Body, Branch, Calls, Condition, False, ToApply, True};
        let has = |role: CallRole| self.roles & (1 << role as u32) != 0;
        match opcode {
            Opcode::Fusion | Opcode::AsyncStart => has(Calls),
            Opcode::Call => has(ToApply) || has(Calls),
            Opcode::While => has(Condition) && has(Body),
            Opcode::Conditional => has(Branch) || (has(True) && has(False)),
            Opcode::GetTupleElement => self.index,
            _ => true,
        }
    }
}

/// Those attributes of instructions that a plan of memory depends on.
const ATTRIBUTES: [&str; 10] = [
    "body",
    "branch_computations",
    "called_computations",
    "calls",
    "condition",
    "false_computation",
    "index",
    "output_to_operand_aliasing",
    "to_apply",
    "true_computation",
];

/// Those attributes of modules that a plan of memory depends on.
const HEADER: [&str; 3] = ["entry_computation_layout", "input_output_alias", "is_scheduled"];

/// The others that XLA's parser takes, and those that it took once.
const OTHER_HEADER: [&str; 12] = [
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

/// Whether a name is none of these, but differs from one by a letter or two: then it is damaged, not unknown.
fn is_nearly_any(name: &str, known: &[&str]) -> bool {
    let is_near = |known: &&str| {
        let far = if known.len() < 8 { 1 } else { 2 };
        // What is left of one that was cut, too.
        let is_cut = name.len() >= 4 && (known.ends_with(name) || known.starts_with(name));
        is_cut || known.len().abs_diff(name.len()) <= far && distance(name.as_bytes(), known.as_bytes()) <= far
    };
    // Most names that are known to others differ at both ends.
    let may_be = |known: &&str| {
        name.as_bytes().first() == known.as_bytes().first() || name.as_bytes().last() == known.as_bytes().last()
    };
    !known.contains(&name) && known.iter().filter(|known| may_be(known)).any(is_near)
}

/// How many letters must be put in, left out or changed to get from one name to the other.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut diagonal = at;
        row[0] = at + 1;
        for (column, known) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != known);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// The pairs of `, name=value, …`, strictly so.
pub(crate) struct Pairs<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Pairs<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The next name, and where its value begins, which must be skipped; `None` where none follows.
    fn next_name(&mut self) -> Option<(&'t str, usize)> {
        let bytes = self.text.as_bytes();
        let comma = skip_trivia(bytes, self.at);
        if peek(bytes, comma) != b',' {
            self.at = comma;
            return None;
        }
        let start = skip_trivia(bytes, comma + 1);
        let end = identifier_end(bytes, start);
        let equals = skip_trivia(bytes, end);
        if end == start || peek(bytes, equals) != b'=' {
            return None;
        }
        Some((&self.text[start..end], skip_trivia(bytes, equals + 1)))
    }

    fn skip_value(&mut self, start: usize) -> &'t str {
        self.at = value_end(self.text.as_bytes(), start, false);
        self.text[start..self.at].trim_ascii_end()
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at.min(self.text.len())..]
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }
}

impl<'t> Iterator for Pairs<'t> {
    type Item = (&'t str, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.next_name()?;
        Some((name, self.skip_value(value)))
    }
}

/// The parameters and the result of `{(parameters)->result}`, as the header has them.
fn interface(value: &str) -> Option<(&str, &str)> {
    signature(trim(value.strip_prefix('{')?.strip_suffix('}')?))
}

/// The parameters and the result of `(parameters) -> result`.
fn signature(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    if peek(bytes, 0) != b'(' {
        return None;
    }
    let end = balanced_end(bytes, 0, false).ok()?;
    let result = text.get(skip_trivia(bytes, end)..)?.strip_prefix("->")?;
    Some((text.get(1..end - 1)?, trim(result)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layouts {
    Compared,
    Ignored,
}

/// Whether two texts are of one shape, but for white space, comments, and what is dynamic.
fn is_same_shape(one: &str, other: &str, layouts: Layouts) -> bool {
    one == other || significant(one, layouts).eq(significant(other, layouts))
}

fn significant(text: &str, layouts: Layouts) -> impl Iterator<Item = u8> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at = skip_trivia(bytes, at);
            match peek(bytes, at) {
                0 => return None,
                b'<' | b'=' => at += 1,
                b'{' if layouts == Layouts::Ignored => at = balanced_end(bytes, at, false).unwrap_or(bytes.len()),
                byte => {
                    at += 1;
                    return Some(byte);
                }
            }
        }
    })
}
