//! Arguments and results that the program relayouts: the layout to request, and the copies that it removes.

use super::{correspondence::Correspondence, rows::CopyClass};
use crate::program::is_reduction;
use foldhash::{HashMap, HashSet};
use tilewise::{
    Shape,
    tpu::{self, Generation},
};
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Dataflow, OpId, Position, REACH, Source, Use},
};
use tilewise_memory::Role;

/// An update in place is small if it writes at most this part (1/4) of the array: then the array's order matters more.
const SMALL_PART: u64 = 4;

/// An argument or a result that is copied.
#[derive(Clone, Debug)]
pub(crate) struct InterfaceArray<'m> {
    pub(crate) role: Role,
    /// The parameter, or the instruction that is the result.
    pub(crate) instruction: Instruction<'m>,
    pub(crate) op: OpId,
    /// Its index among the arguments, or among the arrays of the result.
    pub(crate) number: usize,
    /// Its shape as passed or returned.
    pub(crate) from: Shape,
    /// The layout to request.
    pub(crate) to: Shape,
    /// The copies that this removes, by the index of their instructions.
    pub(crate) copies: Vec<usize>,
    /// The instruction that makes a result before it is copied, by its index.
    pub(crate) made: Option<usize>,
    /// The number of the result that shares an argument's memory.
    pub(crate) donated_to: Option<usize>,
    /// The position in the result of an argument that is returned, at most updated in place.
    pub(crate) returned: Option<Position>,
}

impl InterfaceArray<'_> {
    /// Physical bytes in its present layout.
    pub(crate) fn bytes(&self) -> u64 {
        physical_bytes(&self.from)
    }

    /// Physical bytes in the layout to request.
    pub(crate) fn requested_bytes(&self) -> u64 {
        physical_bytes(&self.to)
    }
}

fn physical_bytes(shape: &Shape) -> u64 {
    shape.as_array().and_then(|array| array.sizes().ok()).map_or(0, |sizes| sizes.physical_bytes)
}

/// Why a copied argument or result should keep its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestObstacle {
    /// An instruction reads it in its present order, or in a third one.
    Readers,
    /// The wanted order isn't an order of its own dimensions.
    Order,
    /// A result wanted in tiles that aren't the default of its order: if requested, the compiler changes tiles
    /// elsewhere.
    Tiles,
    /// Argument and result share memory, but want different orders.
    Donated,
    /// The copy is overwritten in place.
    Overwritten,
    /// The result is an argument: some copy is unavoidable.
    IsArgument,
    /// The program would hold this many bytes more.
    Larger(u64),
    /// It would take this many bytes, most of them padding, for as long as the caller keeps it.
    Padded(u64),
}

/// A copied argument or result with the layout to request, or the copies that stay, by index, and why.
pub(crate) type Copied<'m> = Result<InterfaceArray<'m>, (Vec<usize>, RequestObstacle)>;

/// Finds the arguments and results that a program copies.
pub(crate) struct CopiedInterface<'m> {
    pub(crate) flow: &'m Dataflow,
    pub(crate) generation: Generation,
}

impl<'m> CopiedInterface<'m> {
    /// Copied arguments, by number.
    pub(crate) fn arguments(&self) -> HashMap<usize, Copied<'m>> {
        let flow = self.flow;
        let parameters = flow.entry().into_iter().flat_map(|entry| flow[entry].parameters.iter().copied());
        let found = parameters.filter_map(|op| {
            let (position, instruction) = (flow[op].position, flow.instruction(op)?);
            let from = array(self.flow, position).filter(|shape| memory_space(shape) == 0)?;
            let number = instruction.parameter_number()?;
            let found = self.wanted(position, &from)?;
            let array = |Wanted { to, copies, returned }| InterfaceArray {
                role: Role::Argument,
                instruction,
                op,
                number,
                from,
                to,
                copies,
                made: None,
                donated_to: None,
                returned,
            };
            Some((number, found.map(array)))
        });
        found.collect()
    }

    /// The result that returns `argument` in its memory and its present layout, to be requested in the argument's new
    /// one.
    pub(crate) fn result_of(&self, argument: &InterfaceArray<'m>) -> Option<InterfaceArray<'m>> {
        let returned = argument.returned.filter(|at| array(self.flow, *at).as_ref() == Some(&argument.from))?;
        Some(InterfaceArray {
            role: Role::Output,
            number: self.flow.leaves_before(returned),
            copies: Vec::new(),
            returned: None,
            ..argument.clone()
        })
    }

    /// The one layout that all copies of an argument want, and those copies; `None` if it isn't copied.
    fn wanted(&self, position: Position, from: &Shape) -> Option<Result<Wanted, (Vec<usize>, RequestObstacle)>> {
        let mut stage = Stage::after(self.flow, position, Correspondence::identity(from.dimensions().len()));
        let mut copies = stage.indices();
        if copies.is_empty() {
            return None;
        }
        let mut to = match stage.wanted(self.generation, from) {
            Ok(to) => to,
            Err(obstacle) => return Some(Err((copies, obstacle))),
        };
        if let Some(returned) = stage.returned {
            return Some(Ok(Wanted { to, copies, returned: Some(returned) }));
        }
        // Follow a copy whose only use is another copy.
        for _ in 0..REACH {
            let [CopyOf { position, elements: Some(elements), .. }] = &stage.copies[..] else { break };
            let next = Stage::after(self.flow, *position, elements.clone());
            let wanted = next.wanted(self.generation, from).ok().filter(|_| next.returned.is_none());
            let Some(layout) = wanted.filter(|layout| layout != from) else { break };
            copies.extend(next.indices());
            (stage, to) = (next, layout);
        }
        let is_result = |copy: &CopyOf| self.flow.readers(copy.position).any(|reader| matches!(reader, Use::Result(_)));
        if stage.copies.iter().any(is_result) {
            return Some(Err((copies, RequestObstacle::IsArgument)));
        }
        Some(Ok(Wanted { to, copies, returned: None }))
    }

    /// Copied results, by tuple index path.
    pub(crate) fn results(&self) -> HashMap<Vec<usize>, Copied<'m>> {
        let Some(root) = self.flow.entry().map(|entry| self.flow[entry].root) else { return HashMap::default() };
        let Some(shape) = self.flow.shape(self.flow[root].position) else { return HashMap::default() };
        let leaves = self.flow.positions(root).filter(|position| !self.flow.is_tuple(*position)).zip(shape.leaves());
        let arrays =
            leaves.enumerate().filter(|(_, (_, (_, leaf)))| leaf.as_array().is_some() && memory_space(leaf) == 0);
        let found =
            arrays.filter_map(|(number, (position, (path, leaf)))| Some((path, self.made(position, number, leaf)?)));
        found.collect()
    }

    /// A copied result with the layout in which it is made; `None` if it isn't copied.
    fn made(&self, result: Position, number: usize, from: Shape) -> Option<Copied<'m>> {
        let flow = self.flow;
        let mut elements = Correspondence::identity(from.dimensions().len());
        let (mut at, mut last, mut to) = (result, None, None);
        let mut copies = Vec::new();
        for source in flow.sources(result) {
            match source {
                Source::Bitcast(source) => {
                    let Some(seen) = elements.clone().bitcast(&array(self.flow, at)?, &array(self.flow, source)?)
                    else {
                        break;
                    };
                    elements = seen;
                }
                Source::Copied(copy, source) => {
                    last = last.or(Some(copy));
                    if class(self.flow, source, at) == Some(CopyClass::Relayout) {
                        let mut readers = flow.readers(at);
                        let is_only_this = matches!((readers.next(), readers.next()), (Some(Use::Result(_)), None));
                        let layout = elements.layout(&from, &array(self.flow, source)?, self.generation);
                        match layout.filter(|_| is_only_this) {
                            Some(layout) if layout != from => to = Some(layout),
                            _ if copies.is_empty() => {
                                let obstacle =
                                    if is_only_this { RequestObstacle::Order } else { RequestObstacle::Readers };
                                return Some(Err((vec![flow.instruction_index(copy)], obstacle)));
                            }
                            _ => break,
                        }
                        copies.push(flow.instruction_index(copy));
                    }
                }
                _ => {}
            }
            at = source.position();
        }
        let (Some(to), Some(op)) = (to, last) else { return None };
        if !self.has_default_tiles(&to) {
            return Some(Err((copies, RequestObstacle::Tiles)));
        }
        let origin = flow.op_at(flow.origin(result));
        if matches!(flow[origin].opcode, Opcode::Parameter | Opcode::Constant) {
            return Some(Err((copies, RequestObstacle::IsArgument)));
        }
        Some(Ok(InterfaceArray {
            role: Role::Output,
            instruction: flow.instruction(op)?,
            op,
            number,
            from,
            to,
            copies,
            made: Some(flow.instruction_index(flow.op_at(at))),
            donated_to: None,
            returned: None,
        }))
    }

    fn has_default_tiles(&self, shape: &Shape) -> bool {
        tpu::predict(shape, self.generation).is_ok_and(|default| default.shape.layout() == shape.layout())
    }
}

/// The layout that all copies of an argument want.
struct Wanted {
    to: Shape,
    /// The copies that this removes, by the index of their instructions.
    copies: Vec<usize>,
    /// The position in the result at which the argument is returned.
    returned: Option<Position>,
}

/// The relayouts of a value, and whether it has other readers.
struct Stage<'m> {
    flow: &'m Dataflow,
    copies: Vec<CopyOf>,
    /// The position in the program's result at which it is returned.
    returned: Option<Position>,
    is_read: bool,
}

struct CopyOf {
    copy: OpId,
    /// The position of its output.
    position: Position,
    /// The mapping from the argument's elements to its own; `None` if unknown.
    elements: Option<Correspondence>,
}

impl<'m> Stage<'m> {
    fn after(flow: &'m Dataflow, position: Position, elements: Correspondence) -> Self {
        let mut stage = Self { flow, copies: Vec::new(), returned: None, is_read: false };
        let mut seen = HashSet::default();
        let mut waiting = vec![(position, Some(elements))];
        while let Some((at, elements)) = waiting.pop() {
            if !seen.insert(at) {
                continue;
            }
            if seen.len() > REACH {
                stage.is_read = true;
                break;
            }
            for found in flow.uses(at) {
                match found {
                    Use::Passed(next) => waiting.push((next, elements.clone())),
                    Use::Bitcast(next) => {
                        let seen = elements.clone().zip(array(flow, at)).zip(array(flow, next));
                        let elements = seen.and_then(|((elements, from), to)| elements.bitcast(&from, &to));
                        waiting.push((next, elements));
                    }
                    Use::Copied(copy, next) => match class(flow, at, next) {
                        Some(CopyClass::Relayout) => {
                            stage.copies.push(CopyOf { copy, position: next, elements: elements.clone() });
                        }
                        Some(_) => waiting.push((next, elements.clone())),
                        None => stage.is_read = true,
                    },
                    // Reductions accept any order.
                    Use::Read(reader) if flow.instruction(reader).is_some_and(|at| is_reduction(&at)) => {}
                    Use::Read(writer) if updates(flow, writer, at) => {
                        waiting.push((flow[writer].position, elements.clone()));
                    }
                    Use::Result(returned) if stage.returned.is_none() => stage.returned = Some(returned),
                    _ => stage.is_read = true,
                }
            }
        }
        stage
    }

    fn indices(&self) -> Vec<usize> {
        self.copies.iter().map(|copy| self.flow.instruction_index(copy.copy)).collect()
    }

    /// The one layout of the argument that all the copies want.
    fn wanted(&self, generation: Generation, argument: &Shape) -> Result<Shape, RequestObstacle> {
        let layout =
            |copy: &CopyOf| copy.elements.as_ref()?.layout(argument, &array(self.flow, copy.position)?, generation);
        let (Some(first), false) = (self.copies.first(), self.is_read) else { return Err(RequestObstacle::Readers) };
        let wanted = layout(first).ok_or(RequestObstacle::Order)?;
        let is_common = self.copies.iter().all(|copy| layout(copy).is_some_and(|layout| layout == wanted));
        if is_common { Ok(wanted) } else { Err(RequestObstacle::Readers) }
    }
}

/// Whether an instruction writes a small part of an array in place.
fn updates(flow: &Dataflow, writer: OpId, updated: Position) -> bool {
    // Compares numbers of elements: padding depends on the layout.
    let elements = |at: Position| {
        let shape = array(flow, at)?;
        shape.dimensions().iter().try_fold(1_u64, |product, dimension| product.checked_mul(dimension.bound()?))
    };
    let is_small = || {
        let part = elements(flow.operand(writer, 1)?)?;
        Some(part.checked_mul(SMALL_PART)? <= elements(updated)?)
    };
    flow[writer].opcode == Opcode::DynamicUpdateSlice
        && flow.operand(writer, 0) == Some(updated)
        && is_small().unwrap_or(false)
}

/// The shape at a position; `None` if it isn't an array.
fn array(flow: &Dataflow, position: Position) -> Option<Shape> {
    flow.shape(position).filter(|shape| shape.as_array().is_some())
}

fn class(flow: &Dataflow, from: Position, to: Position) -> Option<CopyClass> {
    CopyClass::of(&array(flow, from)?, &array(flow, to)?)
}

fn memory_space(shape: &Shape) -> u8 {
    shape.as_array().map_or(0, |array| array.memory_space())
}
