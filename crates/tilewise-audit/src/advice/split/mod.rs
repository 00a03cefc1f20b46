//! A dimension followed through a program that is taken apart along it: which arrays have it, and what joins its places. What
//! nothing joins can be computed in parts; of a sum over all places, such as a gradient, the parts' sums are added up.
//!
//! Which dimensions of which arrays it is, and what happens along it, is told by the program's [`Axes`]; these don't see order, so
//! what follows from sums, and what follows from what joins places, is followed from there on.

mod beyond;
mod walk;

use self::walk::Walk;
use super::{
    evidence::Evidence,
    parts::LEAST,
    program::{LiveArray, ProgramModel},
};
use crate::program::{Purpose, is_input, name, of_argument};
use std::collections::{BTreeSet, HashSet};
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Axes, AxisId, Event, EventKind, FactorKind, OpId, Reached},
};

/// What places have in common at the end takes at most this share of the temporaries: one divided by it.
const JOINABLE: u64 = 16;

/// The most dimensions that are followed.
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
    known: HashSet<Vec<AxisId>>,
    /// Whether one of these begins with an axis, by its number.
    begins: Vec<bool>,
    pub(crate) size: u64,
    /// The arguments that have it, each with its place, but for weights and states.
    pub(crate) inputs: Vec<(String, usize)>,
    /// Whether the program makes it, as it does the pixels of a picture that it draws.
    pub(crate) is_made: bool,
    /// Whether the largest array at the peak has another dimension of as many places that would do as well.
    pub(crate) is_of_pairs: bool,
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
        let walk = Walk::new(program, program.temporary_bytes / JOINABLE);
        let mut joined = None;
        for (own, is_of_pairs) in candidates(program, peak) {
            let found = Self::follow(&walk, &own, is_of_pairs).filter(covers);
            match found {
                Some(found) if found.joined.is_none() => return Some(found),
                Some(found) => _ = joined.get_or_insert(found),
                None => {}
            }
        }
        joined
    }

    /// Follows a dimension, the product of some axes.
    ///
    /// `None` where places are joined by more than may be, or where a weight has them.
    fn follow(walk: &Walk<'p, '_>, own: &[AxisId], is_of_pairs: bool) -> Option<Self> {
        let axes = walk.program.flow.axes();
        let size = own.iter().map(|axis| axes.all()[*axis].size).fold(1, u64::saturating_mul);
        let nothing = axes.reach([], &|_| false);
        let mut split = Self {
            axes,
            along: Vec::new(),
            known: HashSet::new(),
            begins: vec![false; axes.all().len()],
            size,
            inputs: Vec::new(),
            is_made: false,
            is_of_pairs,
            joined: None,
            each: nothing.clone(),
            after: nothing.clone(),
            whole: nothing,
        };
        split.add(vec![own.to_vec()]);
        split.continued(walk);
        let born = split.born(walk.program)?;
        walk.run(&mut split, &born)?;
        Some(split)
    }

    /// Which dimension it is of an instruction's array; of several, the first.
    fn place(&self, instruction: &Instruction<'_>, leaf: usize) -> Option<usize> {
        self.places(instruction, leaf).next()
    }

    fn places<'a>(&'a self, instruction: &'a Instruction<'_>, leaf: usize) -> impl Iterator<Item = usize> + 'a {
        let is_in = |all: &[AxisId]| {
            let mut begins = (0..all.len()).filter(|first| self.begins[all[*first].index()]);
            begins.any(|first| (first..all.len()).any(|last| self.known.contains(&all[first..=last])))
        };
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
        // An instruction may make many axes.
        let made: BTreeSet<usize> = made.map(|event| event.instruction).collect();
        made.into_iter().filter_map(|at| program.module.instruction(at))
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
        if born.is_empty() {
            return None;
        }
        // What isn't known beside them is places' own as well, as samples are that are joined with others.
        let others = self.made(program).filter(|at| at.operands().next().is_some() && !is_unknown(at));
        born.extend(others.flat_map(|at| (0..self.axes.leaves(at.index())).map(move |leaf| (at.index(), leaf))));
        Some(born)
    }
}

/// Whether nothing tells how an instruction relates its operands to its results; an allocated buffer has no operands.
fn is_unknown(at: &Instruction<'_>) -> bool {
    matches!(at.opcode(), Opcode::CustomCall | Opcode::Unknown) && at.operands().next().is_some()
}

/// Dimensions of arguments that the largest array at the peak has, those that inputs begin with before others, the outermost first;
/// then what of it no argument has.
///
/// Each with whether the array is of pairs: it has another dimension of as many places, which an input begins with as well.
fn candidates(program: &ProgramModel<'_>, peak: &[&LiveArray<'_>]) -> Vec<(Vec<AxisId>, bool)> {
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
    // Of rows and columns that are as many, each of which an input begins with, either would do, but anything else is more of a batch.
    let first: Vec<&Vec<AxisId>> = found.iter().filter(|(rank, _)| *rank == 0).map(|(_, own)| own).collect();
    let is_of_pairs = |own: &Vec<AxisId>| {
        let is_there = |own: &Vec<AxisId>| axes.of_array(&largest, leaf_of_largest).any(|all| all == own);
        first.iter().any(|other| *other != own && size(other) == size(own) && is_there(other)) && is_there(own)
    };
    let pairs: Vec<Vec<AxisId>> = first.iter().filter(|own| is_of_pairs(own)).map(|own| (*own).clone()).collect();
    // Stable: of equals, the outermost comes first.
    found.sort_by_key(|(rank, own)| (pairs.contains(own), *rank));
    let mut candidates: Vec<(Vec<AxisId>, bool)> = Vec::new();
    for (_, own) in found {
        let is_known = candidates.iter().any(|(known, _)| *known == own);
        if size(&own) >= LEAST && !is_known && candidates.len() < MOST_FOLLOWED {
            let is_of_pairs = pairs.contains(&own);
            candidates.push((own, is_of_pairs));
        }
    }
    candidates
}
