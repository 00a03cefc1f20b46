//! Why a program has each of its copies, and which of them another layout at the interface makes needless.

use super::{recommendation::Recommendation, rules::LayoutRequests};
use crate::{
    copies::{CopyClass, CopyRow, Obstacle},
    program::{PlannedProgram, bytes_in_words, op_name},
};
use std::collections::HashMap;
use tilewise::{Shape, tpu};
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Dataflow, OpId, Position, Source, Use},
};

/// Why a copy is there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CopyReason {
    /// Where the value comes from, looking through bitcasts, loops and other copies.
    pub origin: CopyEnd,
    /// What makes something of it first, looking through the same; `None` where nothing does.
    pub reader: Option<CopyEnd>,
    /// A sentence, without a full stop.
    pub why: String,
    /// The other copy of a pair of which the second brings the value back into the order that the first took it from.
    pub cancels: Option<String>,
    /// How to pass an argument or take a result so that this isn't needed, at no cost of memory: its array's
    /// [`requested`](crate::recommendation::AdvisedArray::requested) layout.
    pub fix: Option<Recommendation>,
}

/// Where a copied value comes from or goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyEnd {
    /// What it is.
    pub kind: CopyEndKind,
    /// The number of an argument, or of a result among all of the program's arrays.
    pub number: Option<usize>,
    /// The instruction, without `%`.
    pub instruction: String,
    /// The framework's name of the operation, or of the argument.
    pub op_name: Option<String>,
}

/// What a [`CopyEnd`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CopyEndKind {
    /// An argument of the program.
    Argument,
    /// A result of the program.
    Result,
    /// A constant.
    Constant,
    /// What a loop carries from turn to turn.
    Loop,
    /// What another instruction makes or reads.
    Instruction,
}

impl CopyEndKind {
    /// Its name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::Result => "result",
            Self::Constant => "constant",
            Self::Loop => "loop",
            Self::Instruction => "instruction",
        }
    }
}

/// Why each of a program's copies is there, in their order.
pub(crate) fn reasons(
    planned: &PlannedProgram,
    copies: &[CopyRow],
    layout_requests: Option<&LayoutRequests<'_>>,
) -> Vec<CopyReason> {
    let explained = Explained { planned, flow: &planned.flow, layout_requests, undone: undone(planned, copies) };
    copies.iter().map(|row| explained.reason(row)).collect()
}

/// What is known of a program's copies.
struct Explained<'a, 'm> {
    planned: &'a PlannedProgram,
    flow: &'a Dataflow,
    layout_requests: Option<&'a LayoutRequests<'m>>,
    /// By the index of either of a pair of copies, the other's.
    undone: HashMap<usize, usize>,
}

impl Explained<'_, '_> {
    fn reason(&self, row: &CopyRow) -> CopyReason {
        let copy = self.planned.module.instruction(row.index).and_then(|copy| self.flow.op(&copy));
        let copied = copy.and_then(|copy| self.flow.operand(copy, 0)).map(|copied| self.flow.origin(copied));
        let Some(origin) = copied.and_then(|origin| Some((self.origin(origin)?, origin))) else {
            let kind = CopyEndKind::Instruction;
            let origin =
                CopyEnd { kind, number: None, instruction: row.instruction.clone(), op_name: row.op_name.clone() };
            return CopyReason {
                origin,
                reader: None,
                why: "what is copied isn't in the text".to_owned(),
                cancels: None,
                fix: None,
            };
        };
        let made = copy.and_then(|copy| self.made(copy));
        let reader = made.and_then(|made| self.reader(self.flow.readers(made).next()?));
        let obstacle = self.layout_requests.and_then(|requests| requests.obstacle(row.index));
        let cancels = self.undone.get(&row.index).and_then(|other| self.planned.module.instruction(*other));
        let mut why = self.why(row, &origin, reader.as_ref());
        if let Some(other) = &cancels {
            why += &format!(". With `{}` it takes the value there and back", other.name());
        }
        if let Some(obstacle) = obstacle {
            why += &format!(". {}", in_words(obstacle));
        }
        CopyReason {
            origin: origin.0,
            reader,
            why,
            cancels: cancels.map(|other| other.name().to_owned()),
            fix: self.layout_requests.and_then(|requests| requests.fix(self.flow, row.index)),
        }
    }

    /// What a copy makes.
    fn made(&self, copy: OpId) -> Option<Position> {
        let result = self.flow[copy].position;
        match self.flow[copy].opcode {
            Opcode::Copy => Some(result),
            Opcode::CopyStart => self.flow.element(result, 0),
            _ => self.flow.element(result, 1),
        }
    }

    fn origin(&self, position: Position) -> Option<CopyEnd> {
        let op = self.flow.op_at(position);
        // What a loop carries is the loop's.
        let instruction = &self.flow.instruction(self.flow.loop_around(op).unwrap_or(op))?;
        let is_entry = instruction.computation().is_entry();
        let (kind, number) = match instruction.opcode() {
            Opcode::Parameter if is_entry => (CopyEndKind::Argument, instruction.parameter_number()),
            Opcode::While => (CopyEndKind::Loop, None),
            Opcode::Constant => (CopyEndKind::Constant, None),
            _ => (CopyEndKind::Instruction, None),
        };
        Some(end(kind, number, instruction))
    }

    fn reader(&self, reader: Use) -> Option<CopyEnd> {
        match reader {
            Use::Read(op) => {
                let is_loop = self.flow[op].opcode == Opcode::While;
                let kind = if is_loop { CopyEndKind::Loop } else { CopyEndKind::Instruction };
                Some(end(kind, None, &self.flow.instruction(op)?))
            }
            Use::Result(position) => {
                let root = self.flow.instruction(self.flow.op_at(position))?;
                let number = Some(self.flow.leaves_before(position));
                Some(CopyEnd { op_name: None, ..end(CopyEndKind::Result, number, &root) })
            }
            _ => None,
        }
    }

    fn shape(&self, position: Position) -> Option<Shape> {
        self.flow.shape(position).filter(|shape| shape.as_array().is_some())
    }

    fn why(&self, row: &CopyRow, (origin, position): &(CopyEnd, Position), reader: Option<&CopyEnd>) -> String {
        let (from, to) = (layout(&row.from), layout(&row.to));
        let of = named(origin);
        let read = reader.map_or_else(|| "what follows".to_owned(), named);
        match row.class {
            CopyClass::Relayout => {
                // Behind other copies or a bitcast, what the origin has isn't what is copied.
                let is_own = self
                    .shape(*position)
                    .is_some_and(|shape| layout(&shape) == from && shape.dimensions() == row.from.dimensions());
                let begin = match origin.kind {
                    CopyEndKind::Argument if is_own && self.is_default(*position) => {
                        format!("{of} is in {from}, its default order")
                    }
                    CopyEndKind::Argument if is_own => format!("{of} is in {from}, pinned by the caller"),
                    CopyEndKind::Loop if is_own => format!("{of} carries it in {from}"),
                    CopyEndKind::Instruction if is_own => format!("{of} is produced in {from}"),
                    _ => format!("{of} is in {from}"),
                };
                let end = match reader.map(|reader| reader.kind) {
                    Some(CopyEndKind::Result) => format!("{read} is in {to}"),
                    Some(CopyEndKind::Loop) => format!("{read} carries it in {to}"),
                    _ => format!("{read} reads it in {to}"),
                };
                let is_converted = row.from.element_type() != row.to.element_type();
                let converted = row.to.element_type().filter(|_| is_converted).map(|to| format!(", as {to}"));
                format!("{begin}; {end}{}", converted.unwrap_or_default())
            }
            CopyClass::Transfer => {
                let space = tpu::memory_space_name(row.to.as_array().map_or(0, |array| array.memory_space()));
                format!("{of} is copied to {} for {read}, same layout", space.to_uppercase())
            }
            CopyClass::Duplicate => match reader.map(|reader| reader.kind) {
                Some(CopyEndKind::Loop) => format!("{read} overwrites what it carries, and {of} must stay unchanged"),
                Some(CopyEndKind::Result) => format!("{read} needs memory of its own, and {of} must stay unchanged"),
                _ => format!("{of} is copied within its memory space for {read}, same layout"),
            },
            CopyClass::Bitcast => format!("{from} and {to} put every byte of {of} in the same place"),
        }
    }

    fn is_default(&self, position: Position) -> bool {
        let is_default = || {
            let shape = self.shape(position)?;
            let bounds: Vec<u64> =
                shape.dimensions().iter().map(|dimension| dimension.bound()).collect::<Option<_>>()?;
            let Some(generation) = self.planned.machine.generation() else {
                let order = shape.layout().map_or(&[][..], |layout| layout.minor_to_major());
                return Some(order.iter().rev().copied().eq(0..bounds.len()));
            };
            let default = tpu::default_layout(shape.element_type()?, &bounds, generation).ok()?;
            let tiling = |shape: &Shape| {
                shape.layout().map(|layout| (layout.minor_to_major().to_vec(), layout.tiles().to_vec()))
            };
            Some(tiling(&default)? == tiling(&shape)?)
        };
        is_default().unwrap_or(true)
    }
}

fn end(kind: CopyEndKind, number: Option<usize>, instruction: &Instruction<'_>) -> CopyEnd {
    let op_name = op_name(instruction).filter(|name| !name.is_empty());
    CopyEnd { kind, number, instruction: instruction.name().to_owned(), op_name }
}

/// An end in a sentence.
fn named(end: &CopyEnd) -> String {
    let number = end.number.map(|number| number.to_string()).unwrap_or_default();
    match (end.kind, &end.op_name) {
        (CopyEndKind::Argument, Some(name)) => format!("`{name}` (argument {number})"),
        (CopyEndKind::Argument, None) => format!("argument {number}"),
        (CopyEndKind::Result, _) => format!("result {number}"),
        (CopyEndKind::Constant, _) => format!("the constant `{}`", end.instruction),
        (CopyEndKind::Loop, _) => format!("the loop `{}`", end.instruction),
        (CopyEndKind::Instruction, _) => format!("`{}`", end.instruction),
    }
}

/// The layout alone, without the memory space.
fn layout(shape: &Shape) -> String {
    let layout = shape.layout().cloned().and_then(|layout| layout.with_memory_space(0).ok());
    layout.map(|layout| layout.to_string()).unwrap_or_default()
}

fn in_words(obstacle: Obstacle) -> String {
    let no_use = |why: &str| format!("Requesting that layout would not help: {why}");
    let cost = |why: String| format!("Requesting that layout would cost memory: {why}");
    match obstacle {
        Obstacle::Readers => no_use("it is also read in another layout"),
        Obstacle::Order => "No order of its own dimensions gives that layout".to_owned(),
        Obstacle::Tiles => "Results are best left in the default tiles of their order".to_owned(),
        Obstacle::Donated => no_use("it shares its memory with a result in another layout"),
        Obstacle::Overwritten => no_use("the copy is overwritten, and the argument isn't donated"),
        Obstacle::IsArgument => "An argument that is returned has to be copied".to_owned(),
        Obstacle::Padded(bytes) => cost(format!("the array would take {}", bytes_in_words(bytes))),
        Obstacle::Larger(bytes) => cost(format!("the program would hold {} more", bytes_in_words(bytes))),
    }
}

/// Pairs of copies of which the second undoes what the first did.
fn undone(planned: &PlannedProgram, copies: &[CopyRow]) -> HashMap<usize, usize> {
    let flow = &planned.flow;
    let known: HashMap<usize, &CopyRow> = copies.iter().map(|row| (row.index, row)).collect();
    let relayout = |copy: OpId| {
        known.get(&flow.instruction_index(copy)).filter(|first| first.class == CopyClass::Relayout).copied()
    };
    let mut pairs = HashMap::new();
    for row in copies.iter().filter(|row| row.class == CopyClass::Relayout) {
        let Some(copy) = planned.module.instruction(row.index).and_then(|copy| flow.op(&copy)) else { continue };
        let Some(copied) = flow.operand(copy, 0) else { continue };
        // Through a bitcast it is another array.
        let sources = flow.sources(copied).take_while(|source| !matches!(source, Source::Bitcast(_)));
        let mut copies =
            sources.filter_map(|source| if let Source::Copied(copy, _) = source { Some(copy) } else { None });
        let Some(first) = copies.find_map(relayout) else { continue };
        let is_back = first.from.element_type() == row.to.element_type()
            && first.from.dimensions() == row.to.dimensions()
            && first.from.same_bytes(&row.to).is_ok_and(|same| same);
        if is_back {
            pairs.insert(row.index, first.index);
            pairs.insert(first.index, row.index);
        }
    }
    pairs
}
