//! Arguments and results that the program copies into another layout: which one it wants, and which copies that is.

use super::{
    CopyClass,
    correspondence::Correspondence,
    trace::{Place, Tracer, Use},
};
use crate::flow::is_reduction;
use std::collections::HashMap;
use tilewise::{
    Shape,
    tpu::{self, Generation},
};
use tilewise_hlo::{Instruction, Module, Opcode};
use tilewise_memory::Role;

/// More copies of copies aren't followed.
const COPIES: usize = 4;
/// Values passed on more often aren't followed.
const PLACES: usize = 256;

/// An argument or a result that is copied.
#[derive(Clone, Debug)]
pub(crate) struct InterfaceArray<'m> {
    pub(crate) role: Role,
    /// The parameter, or the instruction that is the result.
    pub(crate) instruction: Instruction<'m>,
    /// Among the arguments, or among the arrays of the result.
    pub(crate) number: usize,
    /// As it is passed or returned.
    pub(crate) from: Shape,
    /// The layout to request.
    pub(crate) to: Shape,
    /// The copies that are then needless, by the index of their instructions.
    pub(crate) copies: Vec<usize>,
    /// A result's value before it is copied.
    pub(crate) made: Option<usize>,
    /// The number of the result that shares an argument's memory.
    pub(crate) donated_to: Option<usize>,
}

impl InterfaceArray<'_> {
    /// What it takes as it is.
    pub(crate) fn bytes(&self) -> u64 {
        physical_bytes(&self.from)
    }

    /// What it takes in the layout to request.
    pub(crate) fn requested_bytes(&self) -> u64 {
        physical_bytes(&self.to)
    }
}

fn physical_bytes(shape: &Shape) -> u64 {
    shape.as_array().and_then(|array| array.sizes().ok()).map_or(0, |sizes| sizes.physical_bytes)
}

/// Why a copied argument or result is better left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Something reads it in the order it has, or in a third one.
    Readers,
    /// The order can't be said of its own dimensions.
    Order,
    /// A result in tiles that no order of its dimensions has by default: asked for them, the compiler takes others elsewhere.
    Tiles,
    /// Argument and result share memory, and don't want the same order.
    Donated,
    /// The copy is overwritten in place.
    Overwritten,
    /// An argument is the result: it has to be copied somehow.
    IsArgument,
    /// The program would hold so many bytes more.
    Larger(u64),
    /// It would take so many bytes, most of them padding, as long as the caller keeps it.
    Padded(u64),
}

/// A copied argument or result with what it wants, or with the copies that nothing can be done about.
pub(crate) type Copied<'m> = Result<InterfaceArray<'m>, (Vec<usize>, Obstacle)>;

/// What a program copies at its interface.
pub(crate) struct CopiedInterface<'a, 'm> {
    pub(crate) module: &'m Module,
    pub(crate) tracer: &'a Tracer<'m>,
    pub(crate) generation: Generation,
}

impl<'m> CopiedInterface<'_, 'm> {
    /// Arguments that are copied, by number.
    pub(crate) fn arguments(&self) -> HashMap<usize, Copied<'m>> {
        let Some(entry) = self.module.entry() else { return HashMap::new() };
        let parameters = entry.instructions().filter(|instruction| instruction.opcode() == Opcode::Parameter);
        let found = parameters.filter_map(|parameter| {
            let place = Place::new(parameter);
            let from = place.shape().filter(|shape| memory_space(shape) == 0)?;
            let number = parameter.parameter_number()?;
            let found = self.wanted(&place, &from)?;
            let array = |(to, copies)| InterfaceArray {
                role: Role::Argument,
                instruction: parameter,
                number,
                from,
                to,
                copies,
                made: None,
                donated_to: None,
            };
            Some((number, found.map(array)))
        });
        found.collect()
    }

    /// The layout in which all want an argument, and the copies that bring it there; `None` where it isn't copied.
    fn wanted(&self, place: &Place<'m>, from: &Shape) -> Option<Wanted> {
        let mut stage = Stage::after(self.tracer, place, Correspondence::identity(from.dimensions().len()));
        let mut copies = stage.indices();
        if copies.is_empty() {
            return None;
        }
        let mut to = match stage.wanted(self.generation, from) {
            Ok(to) => to,
            Err(obstacle) => return Some(Err((copies, obstacle))),
        };
        // A copy may itself be copied, and nothing else be made of it.
        for _ in 0..COPIES {
            let [CopyOf { place, elements: Some(elements), .. }] = &stage.copies[..] else { break };
            let next = Stage::after(self.tracer, place, elements.clone());
            let Some(layout) = next.wanted(self.generation, from).ok().filter(|layout| layout != from) else { break };
            copies.extend(next.indices());
            (stage, to) = (next, layout);
        }
        let is_result =
            |copy: &CopyOf<'m>| self.tracer.readers(&copy.place).iter().any(|reader| matches!(reader, Use::Result(_)));
        if stage.copies.iter().any(is_result) {
            return Some(Err((copies, Obstacle::IsArgument)));
        }
        Some(Ok((to, copies)))
    }

    /// Results that are copied, by the way to them.
    pub(crate) fn results(&self) -> HashMap<Vec<usize>, Copied<'m>> {
        let Some(root) = self.module.entry().and_then(|entry| entry.root()) else { return HashMap::new() };
        let Ok(shape) = root.shape() else { return HashMap::new() };
        let arrays =
            shape.leaves().enumerate().filter(|(_, (_, leaf))| leaf.as_array().is_some() && memory_space(leaf) == 0);
        let found = arrays.filter_map(|(number, (path, leaf))| {
            let place = Place { instruction: root, path: path.to_vec() };
            Some((path.to_vec(), self.made(place, number, leaf)?))
        });
        found.collect()
    }

    /// In which layout a result is made, if it is copied then.
    fn made(&self, result: Place<'m>, number: usize, from: Shape) -> Option<Copied<'m>> {
        let tracer = self.tracer;
        let mut elements = Correspondence::identity(from.dimensions().len());
        let (mut at, mut last, mut to) = (result.clone(), None, None);
        let mut copies = Vec::new();
        for _ in 0..PLACES {
            if let Some(source) = tracer.source(&at) {
                if at.instruction.opcode() == Opcode::Bitcast {
                    let Some(seen) = elements.clone().bitcast(&at.shape()?, &source.shape()?) else { break };
                    elements = seen;
                }
                at = source;
                continue;
            }
            let Some((copy, source)) = tracer.copied(&at) else { break };
            last = last.or(Some(copy));
            if class(&source, &at) == Some(CopyClass::Relayout) {
                let is_only_this = matches!(&tracer.readers(&at)[..], [Use::Result(_)]);
                let layout = elements.layout(&from, &source.shape()?, self.generation);
                match layout.filter(|_| is_only_this) {
                    Some(layout) if layout != from => to = Some(layout),
                    _ if copies.is_empty() => {
                        let obstacle = if is_only_this { Obstacle::Order } else { Obstacle::Readers };
                        return Some(Err((vec![copy.index()], obstacle)));
                    }
                    _ => break,
                }
                copies.push(copy.index());
            }
            at = source;
        }
        let (Some(to), Some(instruction)) = (to, last) else { return None };
        if !self.has_default_tiles(&to) {
            return Some(Err((copies, Obstacle::Tiles)));
        }
        let origin = tracer.origin(&result).instruction;
        if matches!(origin.opcode(), Opcode::Parameter | Opcode::Constant) {
            return Some(Err((copies, Obstacle::IsArgument)));
        }
        Some(Ok(InterfaceArray {
            role: Role::Output,
            instruction,
            number,
            from,
            to,
            copies,
            made: Some(at.instruction.index()),
            donated_to: None,
        }))
    }

    fn has_default_tiles(&self, shape: &Shape) -> bool {
        tpu::predict(shape, self.generation).is_ok_and(|default| default.shape.layout() == shape.layout())
    }
}

type Wanted = Result<(Shape, Vec<usize>), (Vec<usize>, Obstacle)>;

/// The copies into another order that are made of a value, and whether it is read otherwise, too.
struct Stage<'m> {
    copies: Vec<CopyOf<'m>>,
    is_read: bool,
}

struct CopyOf<'m> {
    copy: Instruction<'m>,
    /// What it makes.
    place: Place<'m>,
    /// Its elements among those of the argument.
    elements: Option<Correspondence>,
}

impl<'m> Stage<'m> {
    fn after(tracer: &Tracer<'m>, place: &Place<'m>, elements: Correspondence) -> Self {
        let mut stage = Self { copies: Vec::new(), is_read: false };
        let mut waiting = vec![(place.clone(), Some(elements))];
        let mut looked_at = 0;
        while let Some((at, elements)) = waiting.pop() {
            looked_at += 1;
            let Some(uses) = tracer.uses(&at).filter(|_| looked_at < PLACES) else {
                stage.is_read = true;
                break;
            };
            for found in uses {
                match found {
                    Use::Passed(next) => waiting.push((next, elements.clone())),
                    Use::Bitcast(next) => {
                        let seen = elements.clone().zip(at.shape()).zip(next.shape());
                        let elements = seen.and_then(|((elements, from), to)| elements.bitcast(&from, &to));
                        waiting.push((next, elements));
                    }
                    Use::Copied(copy, next) => match class(&at, &next) {
                        Some(CopyClass::Relayout) => {
                            stage.copies.push(CopyOf { copy, place: next, elements: elements.clone() });
                        }
                        Some(_) => waiting.push((next, elements.clone())),
                        None => stage.is_read = true,
                    },
                    // In any order.
                    Use::Read(reader) if is_reduction(&reader) => {}
                    Use::Result(_) | Use::Read(_) => stage.is_read = true,
                }
            }
        }
        stage
    }

    fn indices(&self) -> Vec<usize> {
        self.copies.iter().map(|copy| copy.copy.index()).collect()
    }

    /// The one layout of the argument whose bytes all the copies have.
    fn wanted(&self, generation: Generation, argument: &Shape) -> Result<Shape, Obstacle> {
        let layout = |copy: &CopyOf<'m>| copy.elements.as_ref()?.layout(argument, &copy.place.shape()?, generation);
        let (Some(first), false) = (self.copies.first(), self.is_read) else { return Err(Obstacle::Readers) };
        let wanted = layout(first).ok_or(Obstacle::Order)?;
        let is_common = self.copies.iter().all(|copy| layout(copy).is_some_and(|layout| layout == wanted));
        if is_common { Ok(wanted) } else { Err(Obstacle::Readers) }
    }
}

fn class(from: &Place<'_>, to: &Place<'_>) -> Option<CopyClass> {
    CopyClass::of(&from.shape()?, &to.shape()?)
}

fn memory_space(shape: &Shape) -> u8 {
    shape.as_array().map_or(0, |array| array.memory_space())
}
