//! A dimension followed through a program that is taken apart along it: which arrays have it, and what joins its places. What
//! nothing joins can be computed in parts; of a sum over all places, such as a gradient, the parts' sums are added up.
//!
//! Which dimensions of which arrays it is, and what happens along it, is told by the program's [`Axes`]; these don't see order, so
//! what follows from sums, and what follows from what joins places, is followed from there on.

use super::{
    evidence::Evidence,
    parts::LEAST,
    program::{LiveArray, ProgramModel},
};
use crate::program::{Purpose, is_backward, is_input, name, of_argument, op_name};
use std::{
    collections::{BTreeSet, HashMap},
    iter::successors,
};
use tilewise::ElementKind;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Axes, AxisId, Event, EventKind, FactorKind, OpId, Reached},
};

/// Places are joined at so many instructions at most, each of which is followed anew.
const MOST_JOINTS: usize = 8;

/// What places have in common at the end takes at most this share of the temporaries: one divided by it.
const JOINABLE: u64 = 16;

/// Computations call one another so deep, and no deeper is followed.
const DEEPEST: usize = 32;

/// So many dimensions are followed at most.
const MOST_FOLLOWED: usize = 8;

/// How places are joined at the end of their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    /// By their rows, put together.
    Rows,
    /// By what the parts add up to.
    Sums,
}

/// A dimension, and what of a program is computed in parts along it.
pub(crate) struct Split<'p> {
    axes: &'p Axes,
    /// The axes that it is the product of; then those that it is once it is padded, joined with others, or handed to a kernel.
    along: Vec<Vec<AxisId>>,
    pub(crate) size: u64,
    /// The arguments that have it, each with its place, but for weights and states.
    pub(crate) inputs: Vec<(String, usize)>,
    /// Whether the program makes it, as it does the pixels of a picture that it draws.
    pub(crate) is_made: bool,
    /// The first instruction that joins its places, and how.
    pub(crate) joined: Option<(usize, Joint)>,
    /// What depends on the place, and what follows once places are joined.
    each: Reached,
    after: Reached,
    /// What is made of something unknown: of all places at once, unless it depends on the place.
    whole: Reached,
}

impl<'p> Split<'p> {
    /// The dimension to take a program apart along, which most of the peak has: the first that nothing joins, that of an argument
    /// before one that is made; or else the first that is joined late.
    pub(crate) fn of(program: &'p ProgramModel<'_>, peak: &[&LiveArray<'_>]) -> Option<Self> {
        let total = |arrays: &mut dyn Iterator<Item = &LiveArray<'_>>| {
            arrays.map(|array| array.bytes).fold(0, u64::saturating_add)
        };
        let all = total(&mut peak.iter().copied());
        let covers = |found: &Self| {
            let with_it = total(&mut peak.iter().copied().filter(|array| found.dimension(program, array).is_some()));
            let is_each = |array: &LiveArray<'_>| {
                let told = program.flow.told(array.position);
                told.is_some_and(|(at, leaf)| found.each.has(at.index(), leaf))
            };
            let largest = peak.iter().max_by_key(|array| (array.bytes, array.bounds.len()));
            with_it / program.thresholds().most >= all / 100
                && (!found.is_made || largest.is_some_and(|largest| is_each(largest)))
        };
        let mut joined = None;
        for own in candidates(program, peak) {
            let found = Self::follow(program, &own, program.temporary_bytes / JOINABLE).filter(covers);
            match found {
                Some(found) if found.joined.is_none() => return Some(found),
                Some(found) => _ = joined.get_or_insert(found),
                None => {}
            }
        }
        joined
    }

    /// Follows a dimension, the product of some axes. What joins its places takes no more than so many bytes.
    ///
    /// `None` where places are joined by more, or where a weight has them.
    pub(crate) fn follow(program: &'p ProgramModel<'_>, own: &[AxisId], joinable_bytes: u64) -> Option<Self> {
        let axes = program.flow.axes();
        let size = own.iter().map(|axis| axes.all()[*axis].size).fold(1, u64::saturating_mul);
        let nothing = axes.reach([], &|_| false);
        let mut split = Self {
            axes,
            along: vec![own.to_vec()],
            size,
            inputs: Vec::new(),
            is_made: false,
            joined: None,
            each: nothing.clone(),
            after: nothing.clone(),
            whole: nothing,
        };
        let walk = Walk::new(program, joinable_bytes);
        split.continued(&walk);
        let born = split.born(program)?;
        walk.run(&mut split, &born)?;
        Some(split)
    }

    /// Which dimension it is of an instruction's array; of several, the first.
    fn place(&self, instruction: &Instruction<'_>, leaf: usize) -> Option<usize> {
        self.places(instruction, leaf).next()
    }

    fn places<'a>(&'a self, instruction: &'a Instruction<'_>, leaf: usize) -> impl Iterator<Item = usize> + 'a {
        let is_in = |all: &[AxisId]| self.along.iter().any(|own| all.windows(own.len()).any(|some| some == own));
        let dimensions = self.axes.of_array(instruction, leaf).enumerate();
        dimensions.filter(move |(_, all)| is_in(all)).map(|(dimension, _)| dimension)
    }

    /// The dimension of an array along which it is computed in parts.
    pub(crate) fn dimension(&self, program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<usize> {
        let (instruction, leaf) = program.flow.told(array.position)?;
        let (at, place) = (instruction.index(), self.place(&instruction, leaf)?);
        let is_whole = || self.whole.has(at, leaf) && !self.each.has(at, leaf);
        (!self.after.has(at, leaf) && !is_whole()).then_some(place)
    }

    /// Whether an array is the same at all places.
    pub(crate) fn is_same_for_all(&self, program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
        let told = program.flow.told(array.position);
        told.is_some_and(|(instruction, leaf)| {
            !self.each.has(instruction.index(), leaf) && self.place(&instruction, leaf).is_none()
        })
    }

    /// Whether an instruction makes something of each place, or of all.
    pub(crate) fn is_of_each(&self, program: &ProgramModel<'_>, op: OpId) -> bool {
        self.each.has_any(program.flow.instruction_index(op))
    }

    /// Whether all that the program returns begins with it.
    pub(crate) fn is_in_all_results(&self, program: &ProgramModel<'_>) -> bool {
        let root = program.module.entry().and_then(|entry| entry.root());
        root.is_some_and(|root| {
            (0..self.axes.leaves(root.index())).all(|leaf| self.places(&root, leaf).any(|dimension| dimension == 0))
        })
    }

    /// Whether no place is told from another, nor meets one: what is done with a part of it is done with all of it.
    pub(crate) fn are_places_alike(&self) -> bool {
        let is_alike = |event: &Event| {
            matches!(event.kind, EventKind::Argument(..) | EventKind::Result(..) | EventKind::Made(FactorKind::Repeat))
        };
        self.joined.is_none() && self.events().all(is_alike)
    }

    fn events(&self) -> impl Iterator<Item = &'p Event> {
        let axes = self.axes;
        let all: BTreeSet<AxisId> = self.along.iter().flatten().copied().collect();
        all.into_iter().flat_map(|axis| axes.events(axis))
    }

    /// What makes it of other things.
    fn made<'a, 'm>(&'a self, program: &'a ProgramModel<'m>) -> impl Iterator<Item = Instruction<'m>> + 'a {
        let made = self.events().filter(|event| matches!(event.kind, EventKind::Made(FactorKind::Mix)));
        made.filter_map(|event| program.module.instruction(event.instruction))
    }

    /// Adds what it is called where it goes on under another size, or beyond what isn't known.
    fn continued(&mut self, walk: &Walk<'p, '_>) {
        let program = walk.program;
        let mut known = 0;
        while let Some(own) = self.along.get(known).cloned() {
            known += 1;
            let ends = own.iter().flat_map(|axis| self.axes.events(*axis));
            let ends: BTreeSet<usize> = ends
                .filter(|event| event.kind == EventKind::Ends(FactorKind::Mix))
                .map(|event| event.instruction)
                .collect();
            for at in ends.into_iter().filter_map(|at| program.module.instruction(at)) {
                let beyond = self.beyond(walk, &at, &own);
                self.add(beyond);
            }
            for at in program.module.instructions().filter(|at| matches!(at.opcode(), Opcode::Gather | Opcode::Scatter))
            {
                let of_tables = self.of_table(&at, &own);
                self.add(of_tables);
            }
        }
    }

    fn add(&mut self, found: Vec<Vec<AxisId>>) {
        for found in found.into_iter().filter(|found| !found.is_empty()) {
            if !self.along.contains(&found) {
                self.along.push(found);
            }
        }
    }

    /// The dimension of a table of which each place has rows of its own, told by one of several numbers of each row.
    fn of_table(&self, at: &Instruction<'_>, own: &[AxisId]) -> Vec<Vec<AxisId>> {
        let mut operands = at.operands().map(|operand| operand.instruction());
        let (Some(Some(table)), Some(Some(indices))) = (operands.next(), operands.next()) else { return Vec::new() };
        if !self.axes.of_array(&indices, 0).any(|of| of == own) {
            return Vec::new();
        }
        let dimensions = if at.opcode() == Opcode::Gather { at.gather_dimensions() } else { at.scatter_dimensions() };
        let indexed = dimensions.map(|dimensions| dimensions.indexed).filter(|indexed| indexed.len() > 1);
        let rows = indexed.into_iter().flatten().map(|dimension| self.axes.of_dimension(&table, 0, dimension));
        rows.filter(|of| !of.is_empty() && self.size_of(of) == self.size_of(own))
            .take(1)
            .map(<[AxisId]>::to_vec)
            .collect()
    }

    fn size_of(&self, of: &[AxisId]) -> u64 {
        of.iter().map(|axis| self.axes.all()[*axis].size).fold(1, u64::saturating_mul)
    }

    /// The leading axes of a dimension that are of this size together.
    fn leading<'o>(&self, of: &'o [AxisId], size: u64) -> Option<&'o [AxisId]> {
        (1..=of.len()).map(|count| &of[..count]).find(|leading| self.size_of(leading) == size)
    }

    /// What a dimension goes on as beyond an instruction that pads it, joins it with others, or is a kernel.
    fn beyond(&self, walk: &Walk<'_, '_>, at: &Instruction<'_>, own: &[AxisId]) -> Vec<Vec<AxisId>> {
        let all: Vec<&[AxisId]> = self.axes.of_array(at, 0).collect();
        // Dimensions of operands that begin with it, each with its size, and those of the result in their place.
        let mut along: Vec<(usize, u64, &[AxisId])> = Vec::new();
        for operand in at.operands().filter_map(|operand| operand.instruction()) {
            let begin = self.axes.of_array(&operand, 0).enumerate().filter(|(_, of)| of.starts_with(own));
            along.extend(begin.filter_map(|(at, of)| Some((at, self.size_of(of), *all.get(at)?))));
        }
        let result = |of: &[AxisId]| self.leading(of, self.size).unwrap_or(of).to_vec();
        match at.opcode() {
            Opcode::Pad => {
                let padding = at.padding().unwrap_or_default();
                // At the end, or by as much as all of it.
                let goes_on = |(dimension, size, _): &(usize, u64, _)| {
                    padding.get(*dimension).is_some_and(|ends| {
                        let size = i64::try_from(*size).unwrap_or(i64::MAX);
                        let is_whole = ends.low % size == 0 && ends.high % size == 0;
                        ends.interior == 0 && (ends.low == 0 || is_whole) && ends.high >= 0
                    })
                };
                along.into_iter().filter(goes_on).map(|(.., of)| of.to_vec()).collect()
            }
            Opcode::Concatenate => along.into_iter().map(|(.., of)| of.to_vec()).collect(),
            Opcode::Slice => {
                let limits = at.slice_limits().unwrap_or_default();
                let starts = |dimension: usize| limits.get(dimension).map_or(1, |limits| limits.start);
                let goes_on = |(dimension, _, of): &(usize, u64, &[AxisId])| {
                    self.leading(of, self.size).is_some() && starts(*dimension).is_multiple_of(self.size_of(of))
                };
                along.into_iter().filter(goes_on).map(|(.., of)| result(of)).collect()
            }
            // A loop of the compiler's own, which gathers a row for each place.
            Opcode::DynamicSlice if walk.is_of_compiler(at) && !along.is_empty() => {
                let parts = at.computation().instructions().collect::<Vec<_>>().into_iter();
                let parts = parts.filter(|part| {
                    matches!(part.opcode(), Opcode::DynamicSlice | Opcode::DynamicUpdateSlice)
                        && walk.is_of_compiler(part)
                });
                let wholes = parts.filter_map(|part| part.operands().next()?.instruction());
                let first = wholes.filter_map(|whole| self.axes.of_array(&whole, 0).next());
                first.filter_map(|of| Some(self.leading(of, self.size_of(own))?.to_vec())).collect()
            }
            Opcode::CustomCall | Opcode::Unknown => {
                let results = (0..self.axes.leaves(at.index())).flat_map(|leaf| self.axes.of_array(at, leaf));
                results
                    .filter(|of| self.size_of(of) == self.size_of(own) && *of != own)
                    .map(<[AxisId]>::to_vec)
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether it goes on beyond an instruction that does more with it than pass it on.
    fn goes_on(&self, walk: &Walk<'_, '_>, at: &Instruction<'_>) -> bool {
        self.along.iter().any(|own| self.beyond(walk, at, own).iter().any(|beyond| !beyond.is_empty()))
    }

    /// Notes which inputs have it, and says where it is born: in arguments, or in what counts or draws. `None` where a weight has it
    /// that isn't each part's own.
    fn born(&mut self, program: &ProgramModel<'_>) -> Option<Vec<(usize, usize)>> {
        let mut born = Vec::new();
        let arguments = self.events().filter_map(|event| match event.kind {
            EventKind::Argument(leaf, dimension) => {
                Some((program.module.instruction(event.instruction)?, leaf, dimension))
            }
            _ => None,
        });
        let mut arguments: Vec<_> = arguments.collect();
        arguments.sort_by_key(|(parameter, ..)| parameter.parameter_number());
        // Models of an ensemble are each part's own.
        let is_in_all = self.is_in_all_results(program);
        for (parameter, leaf, dimension) in arguments {
            if born.contains(&(parameter.index(), leaf)) || !self.places(&parameter, leaf).any(|at| at == dimension) {
                continue;
            }
            let name = name(&parameter);
            if is_input(&name) || is_in_all {
                self.inputs.push((name, dimension));
            } else if of_argument(&name).0 != Purpose::Cache {
                return None;
            }
            born.push((parameter.index(), leaf));
        }
        if born.is_empty() {
            self.is_made = true;
            let drawn =
                |at: &Instruction<'_>| matches!(at.opcode(), Opcode::Iota | Opcode::Rng | Opcode::RngBitGenerator);
            for at in self.made(program).filter(drawn) {
                born.extend((0..self.axes.leaves(at.index())).map(|leaf| (at.index(), leaf)));
            }
        }
        (!born.is_empty()).then_some(born)
    }
}

/// Dimensions of arguments that the largest array at the peak has, those that inputs begin with before others, the outermost first;
/// then what of it no argument has.
fn candidates(program: &ProgramModel<'_>, peak: &[&LiveArray<'_>]) -> Vec<Vec<AxisId>> {
    let axes = program.flow.axes();
    // Flattened arrays have no dimension to go by.
    let largest = peak.iter().max_by_key(|array| (array.bytes, array.bounds.len()));
    let Some((largest, leaf_of_largest)) = largest.and_then(|array| program.flow.told(array.position)) else {
        return Vec::new();
    };
    let size = |own: &[AxisId]| own.iter().map(|axis| axes.all()[*axis].size).fold(1, u64::saturating_mul);
    let mut found: Vec<(usize, Vec<AxisId>)> = Vec::new();
    for all in axes.of_array(&largest, leaf_of_largest) {
        for axis in all {
            let mut is_whole = false;
            for event in axes.events(*axis) {
                let EventKind::Argument(leaf, dimension) = event.kind else { continue };
                let Some(parameter) = program.module.instruction(event.instruction) else { continue };
                let own = axes.of_dimension(&parameter, leaf, dimension);
                if all.windows(own.len()).any(|some| some == own) {
                    is_whole = true;
                    found.push((if !is_input(&name(&parameter)) { 2 } else { dimension.min(1) }, own.to_vec()));
                }
            }
            if !is_whole {
                found.push((3, vec![*axis]));
            }
        }
    }
    // Under another size, or beyond what isn't known, the largest array may have what an input begins with.
    for parameter in program.parameters().iter().filter(|parameter| is_input(&name(parameter))) {
        for leaf in 0..axes.leaves(parameter.index()) {
            let own = axes.of_dimension(parameter, leaf, 0);
            if !own.is_empty() && !found.iter().any(|(_, known)| known == own) {
                found.push((2, own.to_vec()));
            }
        }
    }
    // Of rows and columns that are as many, each of which an input begins with, neither is the batch.
    let first: Vec<&Vec<AxisId>> = found.iter().filter(|(rank, _)| *rank == 0).map(|(_, own)| own).collect();
    let is_of_pairs = |own: &Vec<AxisId>| {
        let is_there = |own: &Vec<AxisId>| axes.of_array(&largest, leaf_of_largest).any(|all| all == own);
        first.iter().any(|other| *other != own && size(other) == size(own) && is_there(other)) && is_there(own)
    };
    let pairs: Vec<Vec<AxisId>> = first.iter().filter(|own| is_of_pairs(own)).map(|own| (*own).clone()).collect();
    found.retain(|(_, own)| !pairs.contains(own));
    // Stable: of equals, the outermost comes first.
    found.sort_by_key(|(rank, _)| *rank);
    let mut candidates: Vec<Vec<AxisId>> = Vec::new();
    for (_, own) in found {
        if size(&own) >= LEAST && !candidates.contains(&own) && candidates.len() < MOST_FOLLOWED {
            candidates.push(own);
        }
    }
    candidates
}

/// What is known of a program beside one dimension of it.
struct Walk<'p, 'm> {
    program: &'p ProgramModel<'m>,
    joinable_bytes: u64,
    /// What each computation is called by.
    callers: HashMap<usize, usize>,
}

/// What follows from what, of one dimension.
struct Facts {
    /// Of what is learned.
    learned: Reached,
    /// Numbers that count its places.
    counted: Reached,
}

impl<'p, 'm> Walk<'p, 'm> {
    fn new(program: &'p ProgramModel<'m>, joinable_bytes: u64) -> Self {
        let mut callers = HashMap::new();
        for at in program.module.instructions() {
            for callee in at.calls().filter_map(|call| call.computation()) {
                callers.entry(callee.index()).or_insert(at.index());
            }
        }
        Self { program, joinable_bytes, callers }
    }

    fn instruction(&self, at: usize) -> Option<Instruction<'m>> {
        self.program.module.instruction(at)
    }

    fn caller(&self, at: &Instruction<'_>) -> Option<Instruction<'m>> {
        self.instruction(*self.callers.get(&at.computation().index())?)
    }

    /// The instruction of the entry computation that an instruction is run by.
    fn outermost(&self, at: &Instruction<'_>) -> usize {
        let callers = successors(self.caller(at), |caller| self.caller(caller)).take(DEEPEST);
        callers.last().map_or(at.index(), |caller| caller.index())
    }

    /// Whether an instruction is no operation of the program's own, nor in a loop of it.
    fn is_of_compiler(&self, at: &Instruction<'_>) -> bool {
        let is_own_loop = |at: &Instruction<'_>| op_name(at).is_some_and(|name| name.ends_with("/while"));
        op_name(at).is_none() && !self.caller(at).is_some_and(|caller| is_own_loop(&caller))
    }

    /// Whether an instruction is of the backward pass; one without a name is of what it is run by.
    fn is_backward(&self, at: &Instruction<'_>) -> bool {
        let name = op_name(at).or_else(|| op_name(&self.instruction(self.outermost(at))?));
        name.is_some_and(|name| is_backward(&name))
    }

    /// Follows what is born, up to where its places are joined.
    fn run(&self, split: &mut Split<'p>, born: &[(usize, usize)]) -> Option<()> {
        let axes = split.axes;
        let counts = split.made(self.program).filter(|at| at.opcode() == Opcode::Iota);
        let counted = axes.reach(counts.map(|at| (at.index(), 0)), &|_| false);
        let learned = axes.reach(self.learned(split), &|_| false);
        let facts = Facts { learned, counted };
        // Of nothing is made what is allocated.
        let is_unknown = |at: &Instruction<'_>| {
            matches!(at.opcode(), Opcode::CustomCall | Opcode::Unknown) && at.operands().next().is_some()
        };
        let unknown = split.made(self.program).filter(is_unknown);
        let unknown: Vec<usize> = unknown.map(|at| at.index()).collect();
        split.whole =
            axes.reach(unknown.into_iter().flat_map(|at| (0..axes.leaves(at)).map(move |leaf| (at, leaf))), &|_| false);
        let mut joints: BTreeSet<usize> = BTreeSet::new();
        for _ in 0..=MOST_JOINTS {
            split.each = axes.reach(born.iter().copied(), &|at| joints.contains(&at));
            let joined = joints.iter().flat_map(|at| (0..axes.leaves(*at)).map(|leaf| (*at, leaf)));
            split.after = axes.reach(joined, &|_| false);
            let Some(at) = self.first_joint(split, &facts, &joints)? else { return Some(()) };
            if !joints.insert(at) || !self.is_small(split, at) {
                return None;
            }
            split.joined.get_or_insert((at, Joint::Rows));
        }
        None
    }

    /// The arrays of arguments that gradients may be taken of: numbers, not counters or keys, of all places.
    fn learned(&self, split: &Split<'_>) -> Vec<(usize, usize)> {
        let is_number = |kind: ElementKind| matches!(kind, ElementKind::Float | ElementKind::Complex);
        let results = self.program.states();
        let mut found = Vec::new();
        for parameter in self.program.parameters() {
            let Ok(shape) = parameter.shape() else { continue };
            for (leaf, (_, array)) in shape.leaves().enumerate() {
                let is_float = array.element_type().is_some_and(|of| is_number(of.kind()));
                let is_state = || results.contains(&array.without_layout().to_string());
                if is_float && !array.dimensions().is_empty() && (split.place(&parameter, leaf).is_none() || is_state())
                {
                    found.push((parameter.index(), leaf));
                }
            }
        }
        found
    }

    /// The first instruction of the entry computation that joins places, `Some(None)` where none does. What the backward pass reads
    /// of small sums of the forward pass isn't counted, but is noted.
    fn first_joint(&self, split: &mut Split<'p>, facts: &Facts, known: &BTreeSet<usize>) -> Option<Option<usize>> {
        let is_after = |split: &Split<'_>, at: &Instruction<'_>| {
            split.after.has_any(at.index()) || known.contains(&self.outermost(at))
        };
        let mut joints: BTreeSet<usize> = BTreeSet::new();
        let [mut sums, mut others, mut ranked] = [const { BTreeSet::<(usize, usize)>::new() }; 3];
        let all_of = |at: &Instruction<'_>| {
            let at = at.index();
            (0..split.axes.leaves(at)).map(move |leaf| (at, leaf)).collect::<Vec<_>>()
        };
        for event in split.events() {
            let at = self.instruction(event.instruction)?;
            if matches!(self.end(split, facts, &at, event), End::All) && self.reads_each(split, &at) {
                ranked.extend(all_of(&at));
            }
        }
        let of_ranked = split.axes.reach(ranked.iter().copied(), &|_| false);
        for event in split.events() {
            let at = self.instruction(event.instruction)?;
            let is_ranked = of_ranked.has_any(at.index()) && !ranked.contains(&(at.index(), 0));
            if is_ranked || is_after(split, &at) || !self.reads_each(split, &at) {
                continue;
            }
            let all = || (0..split.axes.leaves(at.index())).map(|leaf| (at.index(), leaf));
            match (event.kind, self.end(split, facts, &at, event)) {
                (_, End::None) => {}
                (_, End::Sum) if facts.learned.has_any(at.index()) => {
                    let is_forward = !self.is_backward(&at);
                    if is_forward { sums.extend(all()) } else { others.extend(all()) }
                }
                (_, End::Sum) => {}
                (_, End::All) => others.extend(all()),
                (_, End::Joint) => _ = joints.insert(self.outermost(&at)),
            }
        }
        for (at, leaf) in split.each.all() {
            let Some(at) = self.instruction(at).filter(|at| !split.is_made && makes(at.opcode())) else { continue };
            if split.places(&at, leaf).nth(1).is_some() && !is_after(split, &at) {
                joints.insert(self.outermost(&at));
            }
        }
        let stops = |at: usize| split.after.has_any(at);
        let of_sums = split.axes.reach(sums.iter().copied(), &stops);
        let of_others = split.axes.reach(others.iter().copied(), &stops);
        let mut late = false;
        for at in self.program.module.instructions().filter(|at| makes(at.opcode())) {
            let is_all = |reached: &Reached| at.operand_indices().flatten().any(|operand| reached.has_any(operand));
            let (by_sums, by_others) = (is_all(&of_sums), is_all(&of_others));
            if !by_sums && !by_others || is_after(split, &at) {
                continue;
            }
            let is_own = |operand: usize| !of_sums.has_any(operand) && !of_others.has_any(operand);
            let mut own = at.operands().filter_map(|operand| operand.instruction());
            if !own.any(|operand| is_own(operand.index()) && self.is_each(split, &operand)) {
                continue;
            }
            let is_late = self.is_backward(&at);
            if is_late && !by_others && split.joined.is_none_or(|(_, joint)| joint == Joint::Sums) {
                late = true;
            } else {
                joints.insert(self.outermost(&at));
            }
        }
        if late && joints.is_empty() {
            let bytes = sums.iter().map(|(at, leaf)| self.bytes(*at, *leaf)).fold(0, u64::saturating_add);
            if bytes > self.joinable_bytes {
                return None;
            }
            split.joined = sums.first().map(|(at, _)| (*at, Joint::Sums));
        }
        // What is ranked is ranked once all parts are there.
        if joints.is_empty() && !ranked.is_empty() {
            let known = split.after.all().collect::<Vec<_>>();
            split.after = split.axes.reach(known.into_iter().chain(ranked), &|_| false);
        }
        Some(joints.first().copied())
    }

    /// What an instruction does with places along which it does more than pass them on.
    fn end(&self, split: &Split<'_>, facts: &Facts, at: &Instruction<'_>, event: &Event) -> End {
        match event.kind {
            EventKind::Ends(FactorKind::Sum | FactorKind::Reduce) if at.opcode() == Opcode::Scatter => {
                return if self.is_by_number(split, facts, at) { End::None } else { End::Sum };
            }
            EventKind::Ends(FactorKind::Sum | FactorKind::Reduce) => {
                return if packs_bits(at) { End::None } else { End::Sum };
            }
            EventKind::Ends(_) | EventKind::Mixed => {}
            _ => return End::None,
        }
        // A compiler sorts, pads and looks up rows to gather and to scatter them, and moves an array in slices; loops of its own go
        // through parts.
        let around = self.instruction(self.outermost(at)).unwrap_or(*at);
        let is_start = |at: &Instruction<'_>| at.opcode() == Opcode::AsyncStart;
        let is_moved = is_start(at) || self.caller(at).is_some_and(|caller| is_start(&caller));
        let is_part =
            matches!(at.opcode(), Opcode::DynamicSlice | Opcode::DynamicUpdateSlice) && self.is_of_compiler(at);
        let looks_up = |at: &Instruction<'_>| {
            let name = op_name(at).unwrap_or_default();
            let operation = name.rsplit('/').next().unwrap_or_default();
            operation.starts_with("gather") || operation.starts_with("scatter")
        };
        let is_looked_up = looks_up(at) || around.opcode() == Opcode::While && looks_up(&around);
        if is_moved || is_part || is_looked_up && !matches!(at.opcode(), Opcode::Gather | Opcode::Scatter) {
            return End::None;
        }
        match at.opcode() {
            Opcode::Gather | Opcode::Scatter if self.is_by_number(split, facts, at) => End::None,
            Opcode::Sort => {
                let key = at.operand_indices().next().flatten();
                if key.is_some_and(|key| facts.counted.has_any(key)) { End::None } else { End::All }
            }
            Opcode::Pad | Opcode::Concatenate | Opcode::Slice if split.goes_on(self, at) => End::None,
            Opcode::CustomCall | Opcode::Unknown if split.place(at, 0).is_some() => End::None,
            Opcode::CustomCall | Opcode::Unknown => End::All,
            _ => End::Joint,
        }
    }

    /// Whether a gather or a scatter is by numbers that count places: rows of a place's own number are its own.
    fn is_by_number(&self, split: &Split<'_>, facts: &Facts, at: &Instruction<'_>) -> bool {
        let indices = at.operand_indices().nth(1).flatten();
        let dimensions = if at.opcode() == Opcode::Gather { at.gather_dimensions() } else { at.scatter_dimensions() };
        let is_one_of_several = dimensions.is_some_and(|dimensions| dimensions.indexed.len() > 1);
        indices.is_some_and(|indices| {
            let is_of_places = || self.instruction(indices).is_some_and(|at| split.place(&at, 0).is_some());
            facts.counted.has_any(indices) || is_one_of_several && is_of_places()
        })
    }

    /// Whether one of an instruction's operands has places, each with something of its own.
    fn reads_each(&self, split: &Split<'_>, at: &Instruction<'_>) -> bool {
        at.operands().filter_map(|operand| operand.instruction()).any(|operand| self.is_each(split, &operand))
    }

    fn is_each(&self, split: &Split<'_>, at: &Instruction<'_>) -> bool {
        (0..split.axes.leaves(at.index())).any(|leaf| {
            split.each.has(at.index(), leaf) && !split.after.has(at.index(), leaf) && split.place(at, leaf).is_some()
        })
    }

    /// Whether what an instruction reads of all places is small.
    fn is_small(&self, split: &Split<'_>, at: usize) -> bool {
        let Some(at) = self.instruction(at) else { return false };
        let read = at.operands().filter_map(|operand| operand.instruction()).map(|operand| {
            let own = (0..split.axes.leaves(operand.index())).filter(|leaf| split.place(&operand, *leaf).is_some());
            own.map(|leaf| self.bytes(operand.index(), leaf)).fold(0, u64::saturating_add)
        });
        read.fold(0, u64::saturating_add) <= self.joinable_bytes
    }

    fn bytes(&self, at: usize, leaf: usize) -> u64 {
        let shape = self.instruction(at).and_then(|at| at.shape().ok());
        let leaf = shape.and_then(|shape| shape.leaves().nth(leaf).map(|(_, leaf)| leaf));
        leaf.and_then(|leaf| Some(leaf.as_array()?.sizes().ok()?.physical_bytes)).unwrap_or(0)
    }
}

/// What an instruction does with places.
#[derive(Clone, Copy)]
enum End {
    /// It leaves each by itself.
    None,
    /// It adds them up, or reduces them otherwise.
    Sum,
    /// What it makes is of all of them.
    All,
    /// Places meet.
    Joint,
}

/// Whether a reduction is an `or` of predicates, each shifted to its place's bit.
fn packs_bits(at: &Instruction<'_>) -> bool {
    let mut made = at.operands().next().and_then(|operand| operand.instruction());
    while let Some(convert) = made.filter(|made| made.opcode() == Opcode::Convert) {
        made = convert.operands().next().and_then(|operand| operand.instruction());
    }
    let mut calls = at.calls().filter_map(|call| call.computation()?.root());
    made.is_some_and(|made| made.opcode() == Opcode::ShiftLeft) && calls.any(|root| root.opcode() == Opcode::Or)
}

/// Whether an instruction makes arrays of those that it reads.
fn makes(opcode: Opcode) -> bool {
    !matches!(
        opcode,
        Opcode::Parameter
            | Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::Fusion
            | Opcode::Call
            | Opcode::While
            | Opcode::Conditional
            | Opcode::AsyncStart
            | Opcode::AsyncUpdate
            | Opcode::AsyncDone
            | Opcode::OptimizationBarrier
    )
}
