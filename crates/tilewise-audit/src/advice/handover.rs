//! Arguments and results that the program copies into another order: in which to hand them over so that it needn't.

use super::{
    AdviceKind, AdviceTarget,
    scene::{Candidate, Held, Party, Scene},
    words,
};
use crate::copies::{
    CopyClass,
    correspondence::Correspondence,
    trace::{Place, Tracer, Use},
};
use crate::flow::is_reduction;
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};
use tilewise::{Shape, tpu};
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Role;

/// More copies of copies aren't followed.
const COPIES: usize = 4;
/// How many times the memory a layout may take: the caller keeps arguments and results beyond the call.
const MOST_PADDED: u64 = 3;
/// The most that are priced, the largest: each plans the program's memory again.
const MOST_PRICED: usize = 64;
/// Values passed on more often aren't followed.
const PLACES: usize = 256;

/// A change of arguments and results that makes copies needless.
#[derive(Clone, Debug)]
pub(crate) struct Handover<'m> {
    pub(crate) candidate: Candidate<'m>,
    pub(crate) parties: Vec<Party<'m>>,
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

/// What is copied at the interface, and whether that can be helped.
#[derive(Debug, Default)]
pub(crate) struct Handovers<'m> {
    pub(crate) list: Vec<Handover<'m>>,
    /// By the index of a copy.
    pub(crate) obstacles: HashMap<usize, Obstacle>,
}

/// A copied argument or result with what it wants, or with the copies that nothing can be done about.
type Found<'m> = Result<Party<'m>, (Vec<usize>, Obstacle)>;

impl<'m> Handovers<'m> {
    pub(crate) fn new(scene: &mut Scene<'m>, tracer: &Tracer<'m>) -> Self {
        let mut found = Self::default();
        let (arguments, results) = (arguments(scene, tracer), results(scene, tracer));
        let (lone, together) = found.pair(scene, arguments, results);
        let lone = largest(lone, |party| bytes(&party.to));
        let together = largest(together, |parties| parties.iter().map(|party| bytes(&party.to)).max().unwrap_or(0));
        let mut kept: Vec<Candidate<'m>> = Vec::new();
        let mut total = scene.total_bytes;
        // Results are named in one call of `jit`: each that doesn't cost more joins those before it.
        let mut joined: Vec<Party<'m>> = Vec::new();
        for parties in together {
            let with: Vec<Party<'m>> = joined.iter().chain(&parties).cloned().collect();
            if found.price(scene, &kept, &with, &parties, &mut total).is_some() {
                joined = with;
            }
        }
        if let Some(candidate) = candidate(scene, &joined) {
            kept.push(candidate.clone());
            found.list.push(Handover { candidate, parties: joined });
        }
        for party in lone {
            let parties = vec![party];
            if let Some(candidate) = found.price(scene, &kept, &parties, &parties, &mut total) {
                kept.push(candidate.clone());
                found.list.push(Handover { candidate, parties });
            }
        }
        found
    }

    /// The change, unless the program then holds more than `total`, the bytes it holds with those that are kept.
    fn price(
        &mut self,
        scene: &mut Scene<'m>,
        kept: &[Candidate<'m>],
        parties: &[Party<'m>],
        new: &[Party<'m>],
        total: &mut u64,
    ) -> Option<Candidate<'m>> {
        let padded = new.iter().find(|party| bytes(&party.to) > bytes(&party.from).saturating_mul(MOST_PADDED));
        if let Some(party) = padded {
            self.refuse(new.iter().flat_map(|party| &party.copies), Obstacle::Padded(bytes(&party.to)));
            return None;
        }
        let candidate = candidate(scene, parties)?;
        let after = scene.after(kept.iter().chain([&candidate]));
        if after > *total {
            self.refuse(new.iter().flat_map(|party| &party.copies), Obstacle::Larger(after - *total));
            return None;
        }
        *total = after;
        Some(candidate)
    }

    fn refuse<'a>(&mut self, copies: impl IntoIterator<Item = &'a usize>, obstacle: Obstacle) {
        self.obstacles.extend(copies.into_iter().map(|copy| (*copy, obstacle)));
    }

    /// Arguments alone, and what belongs together: each result, with the argument whose memory it takes.
    fn pair(
        &mut self,
        scene: &Scene<'m>,
        arguments: HashMap<usize, Found<'m>>,
        results: Vec<(Vec<usize>, Found<'m>)>,
    ) -> (Vec<Party<'m>>, Vec<Vec<Party<'m>>>) {
        let aliases = scene.module.input_output_aliases().unwrap_or_default();
        let mut arguments = arguments;
        let mut results = results;
        let mut together = Vec::new();
        for alias in aliases.iter().filter(|alias| alias.parameter_index.is_empty()) {
            let argument = arguments.remove(&alias.parameter_number);
            let at = results.iter().position(|(path, _)| *path == alias.output_index);
            let result = at.map(|at| results.swap_remove(at).1);
            match (argument, result) {
                (Some(Ok(mut argument)), Some(Ok(result)))
                    if argument.to.same_bytes(&result.to).is_ok_and(|same| same) =>
                {
                    argument.donated_to = Some(result.number);
                    together.push(vec![argument, result]);
                }
                (argument, result) => {
                    for found in [argument, result].into_iter().flatten() {
                        match found {
                            Ok(party) => self.refuse(&party.copies, Obstacle::Donated),
                            Err((copies, obstacle)) => self.refuse(&copies, obstacle),
                        }
                    }
                }
            }
        }
        let mut lone = Vec::new();
        let mut arguments: Vec<(usize, Found<'m>)> = arguments.into_iter().collect();
        arguments.sort_by_cached_key(|(number, _)| *number);
        for (_, found) in arguments {
            match found {
                Ok(party) if is_overwritten(scene, &party) => self.refuse(&party.copies, Obstacle::Overwritten),
                Ok(party) => lone.push(party),
                Err((copies, obstacle)) => self.refuse(&copies, obstacle),
            }
        }
        for (_, found) in results {
            match found {
                Ok(party) => together.push(vec![party]),
                Err((copies, obstacle)) => self.refuse(&copies, obstacle),
            }
        }
        (lone, together)
    }
}

/// Those that are worth pricing, in the order they were in.
fn largest<T>(items: Vec<T>, bytes: impl Fn(&T) -> u64) -> Vec<T> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_cached_key(|at| Reverse(bytes(&items[*at])));
    let kept: HashSet<usize> = order.into_iter().take(MOST_PRICED).collect();
    items.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, item)| item).collect()
}

/// The change that hands these over as they had better be; `None` where the plan doesn't know them.
fn candidate<'m>(scene: &Scene<'m>, parties: &[Party<'m>]) -> Option<Candidate<'m>> {
    let about = parties.iter().max_by_key(|party| bytes(&party.to))?;
    let is_argument = parties.iter().any(|party| party.role == Role::Argument);
    let target = if is_argument { AdviceTarget::Argument } else { AdviceTarget::Result };
    let mut candidate = Candidate::new(AdviceKind::Order, target, &held(scene, about)?, String::new());
    for party in parties {
        let gone = party.copies.iter().chain(&party.made).filter_map(|copy| buffer(scene, *copy));
        for buffer in gone.collect::<Vec<usize>>() {
            candidate.placed.entry(buffer).or_insert(0);
        }
    }
    for party in parties {
        candidate.placed.insert(buffer(scene, party.instruction.index())?, bytes(&party.to));
    }
    words::handover(scene, &mut candidate, parties);
    Some(candidate)
}

fn held<'m>(scene: &Scene<'m>, party: &Party<'m>) -> Option<Held<'m>> {
    let bounds = party.from.dimensions().iter().map(|dimension| dimension.bound()).collect::<Option<_>>()?;
    Some(Held {
        instruction: party.instruction,
        shape: party.from.clone(),
        bounds,
        bytes: bytes(&party.from),
        role: party.role,
        buffer: buffer(scene, party.instruction.index())?,
        is_at_peak: true,
    })
}

fn bytes(shape: &Shape) -> u64 {
    shape.as_array().and_then(|array| array.sizes().ok()).map_or(0, |sizes| sizes.physical_bytes)
}

/// The plan's buffer that an instruction's array lies in.
fn buffer(scene: &Scene<'_>, instruction: usize) -> Option<usize> {
    scene.buffers.get(&instruction).copied()
}

/// Whether something else is written where the copies are, so that the argument's own bytes can't take their place.
fn is_overwritten(scene: &Scene<'_>, party: &Party<'_>) -> bool {
    let places: HashSet<usize> = party.copies.iter().filter_map(|copy| buffer(scene, *copy)).collect();
    scene.buffers.iter().any(|(at, buffer)| places.contains(buffer) && !party.copies.contains(at))
}

/// Arguments that are copied, by number.
fn arguments<'m>(scene: &Scene<'m>, tracer: &Tracer<'m>) -> HashMap<usize, Found<'m>> {
    let Some(entry) = scene.module.entry() else { return HashMap::new() };
    let parameters = entry.instructions().filter(|instruction| instruction.opcode() == Opcode::Parameter);
    let found = parameters.filter_map(|parameter| {
        let place = Place::new(parameter);
        let from = place.shape().filter(|shape| memory_space(shape) == 0)?;
        let number = parameter.parameter_number()?;
        let found = wanted(scene, tracer, &place, &from)?;
        let party = |(to, copies)| Party {
            role: Role::Argument,
            instruction: parameter,
            number,
            from,
            to,
            copies,
            made: None,
            donated_to: None,
        };
        Some((number, found.map(party)))
    });
    found.collect()
}

/// The layout in which all want an argument, and the copies that bring it there; `None` where it isn't copied.
fn wanted<'m>(scene: &Scene<'m>, tracer: &Tracer<'m>, place: &Place<'m>, from: &Shape) -> Option<Wanted> {
    let mut stage = Stage::after(tracer, place, Correspondence::identity(from.dimensions().len()));
    let mut copies = stage.indices();
    if copies.is_empty() {
        return None;
    }
    let mut to = match stage.wanted(scene, from) {
        Ok(to) => to,
        Err(obstacle) => return Some(Err((copies, obstacle))),
    };
    // A copy may itself be copied, and nothing else be made of it.
    for _ in 0..COPIES {
        let [Copied { place, elements: Some(elements), .. }] = &stage.copies[..] else { break };
        let next = Stage::after(tracer, place, elements.clone());
        let Some(layout) = next.wanted(scene, from).ok().filter(|layout| layout != from) else { break };
        copies.extend(next.indices());
        (stage, to) = (next, layout);
    }
    let is_result =
        |copied: &Copied<'m>| tracer.readers(&copied.place).iter().any(|reader| matches!(reader, Use::Result(_)));
    if stage.copies.iter().any(is_result) {
        return Some(Err((copies, Obstacle::IsArgument)));
    }
    Some(Ok((to, copies)))
}

type Wanted = Result<(Shape, Vec<usize>), (Vec<usize>, Obstacle)>;

/// The copies into another order that are made of a value, and whether it is read otherwise, too.
struct Stage<'m> {
    copies: Vec<Copied<'m>>,
    is_read: bool,
}

struct Copied<'m> {
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
                            stage.copies.push(Copied { copy, place: next, elements: elements.clone() });
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
        self.copies.iter().map(|copied| copied.copy.index()).collect()
    }

    /// The one layout of the argument whose bytes all the copies have.
    fn wanted(&self, scene: &Scene<'m>, argument: &Shape) -> Result<Shape, Obstacle> {
        let layout =
            |copied: &Copied<'m>| copied.elements.as_ref()?.layout(argument, &copied.place.shape()?, scene.generation);
        let (Some(first), false) = (self.copies.first(), self.is_read) else { return Err(Obstacle::Readers) };
        let wanted = layout(first).ok_or(Obstacle::Order)?;
        let is_common = self.copies.iter().all(|copied| layout(copied).is_some_and(|layout| layout == wanted));
        if is_common { Ok(wanted) } else { Err(Obstacle::Readers) }
    }
}

fn class(from: &Place<'_>, to: &Place<'_>) -> Option<CopyClass> {
    CopyClass::of(&from.shape()?, &to.shape()?)
}

fn memory_space(shape: &Shape) -> u8 {
    shape.as_array().map_or(0, |array| array.memory_space())
}

/// Results that are copied, with the way to them.
fn results<'m>(scene: &Scene<'m>, tracer: &Tracer<'m>) -> Vec<(Vec<usize>, Found<'m>)> {
    let Some(root) = scene.module.entry().and_then(|entry| entry.root()) else { return Vec::new() };
    let Ok(shape) = root.shape() else { return Vec::new() };
    let arrays =
        shape.leaves().enumerate().filter(|(_, (_, leaf))| leaf.as_array().is_some() && memory_space(leaf) == 0);
    let found = arrays.filter_map(|(number, (path, leaf))| {
        let place = Place { instruction: root, path: path.to_vec() };
        Some((path.to_vec(), made(scene, tracer, place, number, leaf)?))
    });
    found.collect()
}

/// In which layout a result is made, if it is copied then.
fn made<'m>(
    scene: &Scene<'m>,
    tracer: &Tracer<'m>,
    result: Place<'m>,
    number: usize,
    from: Shape,
) -> Option<Found<'m>> {
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
            let layout = elements.layout(&from, &source.shape()?, scene.generation);
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
    if !has_default_tiles(scene, &to) {
        return Some(Err((copies, Obstacle::Tiles)));
    }
    let origin = tracer.origin(&result).instruction;
    if matches!(origin.opcode(), Opcode::Parameter | Opcode::Constant) {
        return Some(Err((copies, Obstacle::IsArgument)));
    }
    let role = Role::Output;
    Some(Ok(Party {
        role,
        instruction,
        number,
        from,
        to,
        copies,
        made: Some(at.instruction.index()),
        donated_to: None,
    }))
}

fn has_default_tiles(scene: &Scene<'_>, shape: &Shape) -> bool {
    tpu::predict(shape, scene.generation).is_ok_and(|default| default.shape.layout() == shape.layout())
}
