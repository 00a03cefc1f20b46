//! Reasons for a program's copies, and copies that another layout at the interface removes.

use super::{program::ProgramModel, recommendation::Recommendation, rules::LayoutRequests};
use crate::{
    copies::{CopyClass, CopyRow, RequestObstacle},
    program::{PlannedProgram, op_name},
};
use foldhash::HashMap;
use std::borrow::Cow;
use tilewise::{Layout, Shape, tpu};
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Dataflow, OpId, Position, Source, Use},
};

/// The reason for a copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CopyReason {
    /// Where the value comes from, looking through bitcasts, loops and other copies.
    pub origin: CopyEnd,
    /// The first reader of its result, looking through bitcasts, loops and other copies; `None` if there isn't any.
    pub reader: Option<CopyEnd>,
    /// Whether the text has the copied value; otherwise [`origin`](Self::origin) is the copy itself.
    pub is_in_text: bool,
    /// Whether the origin has the copied layout: behind other copies or a bitcast it may have another.
    pub is_own: bool,
    /// Whether the origin's layout is the default one.
    pub is_default: bool,
    /// The other copy of a pair, if the second restores the order that the first changed.
    pub cancels: Option<String>,
    /// Why no other layout at the interface removes it, if one was looked for.
    pub obstacle: Option<RequestObstacle>,
    /// How to pass an argument or take a result so that this copy isn't needed, at no cost of memory: its array's
    /// [`requested`](crate::recommendation::AdvisedArray::requested) layout.
    pub fix: Option<Recommendation>,
}

/// Where a copied value comes from or goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyEnd {
    /// Its kind.
    pub kind: CopyEndKind,
    /// The number of an argument, or of an array among all results; `None` for others.
    pub number: Option<usize>,
    /// The instruction, without `%`.
    pub instruction: String,
    /// The framework's name of the operation, or of the argument.
    pub op_name: Option<String>,
}

/// The kind of a [`CopyEnd`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CopyEndKind {
    /// An argument of the program.
    Argument,
    /// A result of the program.
    Result,
    /// A constant.
    Constant,
    /// A value that a loop carries from turn to turn.
    Loop,
    /// Another instruction, which makes or reads the value.
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

/// The reasons for a program's copies, in their order.
pub(crate) fn reasons(
    planned: &PlannedProgram,
    copies: &[CopyRow],
    found: Option<(&ProgramModel<'_>, &LayoutRequests<'_>)>,
) -> Vec<CopyReason> {
    let explained = Explained { planned, flow: &planned.flow, found, undone: undone(planned, copies) };
    copies.iter().map(|row| explained.reason(row)).collect()
}

/// A program with its layout requests, to explain copies by.
struct Explained<'a, 'm> {
    planned: &'a PlannedProgram,
    flow: &'a Dataflow,
    /// The program with the layout requests at its interface.
    found: Option<(&'a ProgramModel<'m>, &'a LayoutRequests<'m>)>,
    /// The other copy of a pair that cancels, by the index of either.
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
                is_in_text: false,
                is_own: false,
                is_default: false,
                cancels: None,
                obstacle: None,
                fix: None,
            };
        };
        let made = copy.and_then(|copy| self.made(copy));
        let reader = made.and_then(|made| self.reader(self.flow.readers(made).next()?));
        let requests = self.found.map(|(_, requests)| requests);
        let cancels = self.undone.get(&row.index).and_then(|other| self.planned.module.instruction(*other));
        let (origin, position) = origin;
        let has_it = |shape: Shape| layout(&shape) == layout(&row.from) && shape.dimensions() == row.from.dimensions();
        CopyReason {
            is_in_text: true,
            is_own: self.shape(position).is_some_and(has_it),
            is_default: self.is_default(position),
            origin,
            reader,
            cancels: cancels.map(|other| other.name().to_owned()),
            obstacle: requests.and_then(|requests| requests.obstacle(row.index)),
            fix: self.found.and_then(|(program, requests)| requests.fix(program, row.index)),
        }
    }

    /// The position of a copy's result.
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
        // The carry of a loop is the loop's.
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

    fn is_default(&self, position: Position) -> bool {
        let is_default = || {
            let shape = self.shape(position)?;
            let bounds: Vec<u64> = shape.bounds()?;
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
    let op_name = op_name(instruction).filter(|name| !name.is_empty()).map(Cow::into_owned);
    CopyEnd { kind, number, instruction: instruction.name().to_owned(), op_name }
}

/// The layout alone, without the memory space.
fn layout(shape: &Shape) -> Option<Layout> {
    shape.layout().cloned().and_then(|layout| layout.with_memory_space(0).ok())
}

/// Pairs of copies where the second undoes the first, by the index of either.
fn undone(planned: &PlannedProgram, copies: &[CopyRow]) -> HashMap<usize, usize> {
    let flow = &planned.flow;
    let known: HashMap<usize, &CopyRow> = copies.iter().map(|row| (row.index, row)).collect();
    let relayout = |copy: OpId| {
        known.get(&flow.instruction_index(copy)).filter(|first| first.class == CopyClass::Relayout).copied()
    };
    let mut pairs = HashMap::default();
    for row in copies.iter().filter(|row| row.class == CopyClass::Relayout) {
        let Some(copy) = planned.module.instruction(row.index).and_then(|copy| flow.op(&copy)) else { continue };
        let Some(copied) = flow.operand(copy, 0) else { continue };
        // Beyond a bitcast it is another array.
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
