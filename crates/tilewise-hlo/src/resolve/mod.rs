//! Resolves names, and checks that the text is complete.
//!
//! XLA's parser resolves names while it reads (xla/hlo/parser/hlo_parser.cc): a name must be defined above its uses,
//! and once. So a text that was cut, wherever it was, mostly misses something that the rest needs.

mod attributes;
mod header;
mod misspelt;
mod signature;

use foldhash::HashMap;
use std::ops::Range;

use crate::arity::{are_pairs, operand_counts};
use crate::calls::called;
use crate::error::{Error, Warning, WarningKind};
use crate::infer::{Operation, infer};
use crate::name_index::NameIndex;
use crate::opcode::{Opcode, wrapped};
use crate::operands::{OperandTexts, has_operands};
use crate::pairs::Pairs;
use crate::record::{ComputationRecord, Data, NONE, Uses};
use crate::scan::trim;
use crate::span::Span;
use signature::{Layouts, is_same_shape, signature};

/// Looks up operands and computations that are called, infers the shapes that XLA infers, chooses the entry, and warns
/// of missing, doubled or contradictory parts.
///
/// `elements` has, for the instructions that the text leaves out, the operands that brought them in.
///
/// # Errors
/// If the text with the inferred shapes is too large.
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
        crate::error::check_size(&data.source)?;
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
    /// The callers of each computation.
    uses: Vec<Uses>,
    /// The shapes that the text leaves out.
    inferred: HashMap<usize, String>,
    inferred_bytes: usize,
    /// The ranges of the elements in the shapes of tuples.
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
            inferred: HashMap::default(),
            inferred_bytes: 0,
            elements: HashMap::default(),
            at: 0,
            warnings: Vec::new(),
        }
    }

    /// Warns of a part of the text; for a part that the text leaves out, of the instruction at hand.
    fn warn(&mut self, kind: WarningKind, span: Span) {
        let is_written = span.end as usize <= self.data.length;
        let span = if is_written { span } else { self.place(self.at) };
        self.warnings.push(Warning::new(kind, span));
    }

    fn warn_at(&mut self, kind: WarningKind, instruction: usize) {
        self.warnings.push(Warning::new(kind, self.place(instruction)));
    }

    /// The span of an instruction in the text: its name, else the operand that brought it in, else its opcode.
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
        self.instructions = NameIndex::with_capacity(instructions.len());
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

    /// Looks up the operands; those of lines on their own may be undefined.
    fn operands(&mut self, at: usize, may_lack: bool) {
        let data = self.data;
        let instruction = &data.instructions[at];
        self.first_operands.push(u32::try_from(self.operands.len()).unwrap_or(NONE));
        if !has_operands(instruction.opcode) {
            return;
        }
        let text = data.text(instruction.operands);
        // An element that is left is of a tuple that isn't defined.
        let lacks = may_lack && memchr::memchr(b'#', text.as_bytes()).is_some();
        let mut operands = OperandTexts::new(text);
        while let Some(operand) = operands.next_operand() {
            let found = operand.ok().and_then(|name| self.instructions.find(name, instruction_name(data)));
            let found = found.filter(|_| !lacks);
            match operand {
                Err(text) => self.warn(WarningKind::OperandSyntax, data.span_of(text)),
                Ok(name) if found.is_none() && !may_lack => {
                    let mut span = data.span_of(name);
                    if name.is_empty() {
                        // Its sigil, or the end of its shape.
                        span.start = span.start.saturating_sub(1);
                    }
                    self.warn(WarningKind::UndefinedOperand, span);
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
                    // A name may be empty, as in `calls=%,`.
                    let span = if name.is_empty() { self.place(self.at) } else { self.data.span_of(name) };
                    self.warn(WarningKind::UndefinedComputation, span);
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
}

/// The root of a computation: the instruction marked so, else the last one.
fn root(data: &Data, computation: &ComputationRecord) -> Option<usize> {
    let instructions = computation.first..computation.end;
    instructions.clone().rev().find(|at| data.instructions[*at].is_root).or(instructions.last())
}

/// The ranges of the elements of a tuple's shape.
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
