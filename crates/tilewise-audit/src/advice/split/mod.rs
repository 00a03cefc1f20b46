//! Follows one dimension through a program, to split the program along it: the arrays that have it, and the
//! instructions that join its positions. Positions that nothing joins can be computed in parts; of a sum over all
//! positions, such as a gradient, the parts' sums are added up.
//!
//! The program's [`Axes`] show which array dimensions it is, and the events along it, but not their order; so data that
//! follows from sums or from joints is traced from there on.

mod beyond;
mod steps;
mod walk;

use self::walk::Walk;
use super::{
    evidence::Evidence,
    parts::LEAST,
    program::{LiveArray, ProgramModel},
};
use crate::program::{Purpose, any_fused, is_elementwise, is_input, name, op_name};
use foldhash::HashSet;
use std::collections::BTreeSet;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Axes, AxisId, Event, EventKind, FactorKind, OpId, Reached, Use},
};

/// Joined arrays take at most `1 / JOINABLE` of the temporaries.
const JOINABLE: u64 = 16;

/// Maximum number of dimensions followed.
const MOST_FOLLOWED: usize = 8;

/// How positions are joined after the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    /// Their rows are put together.
    Rows,
    /// The parts' sums are added up.
    Sums,
}

/// A dimension of a program, and the arrays that are computed in parts along it.
pub(crate) struct Split<'p> {
    axes: &'p Axes,
    /// Products of axes: the dimension's own, then those after padding, concatenations, slices, lookups and kernels.
    along: Vec<Vec<AxisId>>,
    known: HashSet<Vec<AxisId>>,
    /// For each axis number, whether one of these products begins with it.
    begins: Vec<bool>,
    pub(crate) size: u64,
    /// The arguments that have it, each with its dimension number; weights and states only if all results begin with
    /// it.
    pub(crate) inputs: Vec<(String, usize)>,
    /// Whether the program itself makes it, like the pixels of a picture that it draws.
    pub(crate) is_made: bool,
    /// Whether the largest array at the peak has another dimension of the same size that would do as well.
    pub(crate) is_of_pairs: bool,
    /// The first instruction that joins its positions, and how.
    pub(crate) joined: Option<(usize, Joint)>,
    /// The first instruction that adds its positions up.
    pub(crate) added: Option<usize>,
    /// Whether something other than a sum, such as a maximum, is made of all of them.
    pub(crate) is_reduced: bool,
    /// The first instruction that ranks them.
    pub(crate) ranked: Option<usize>,
    /// Whether something is divided by a sum over all positions that no weight is part of.
    pub(crate) is_divided: bool,
    /// Arrays that depend on the position, and arrays that follow from joined positions.
    each: Reached,
    after: Reached,
    /// Arrays that follow from unknown operations: of all positions at once, unless they depend on the position.
    whole: Reached,
}

impl<'p> Split<'p> {
    /// The dimension to split a program along, which most of the peak has: the first candidate that nothing joins, or
    /// else the first that is joined late. Dimensions of arguments come before those that the program makes.
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
            with_it / program.thresholds().min_percent >= all / 100
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

    /// Follows a dimension, given as a product of axes.
    ///
    /// `None` if there are too many joints, or too large ones, if a weight has the dimension, or if its origin is
    /// unknown.
    fn follow(walk: &Walk<'p, '_>, own: &[AxisId], is_of_pairs: bool) -> Option<Self> {
        let axes = walk.program.flow.axes();
        let size = own.iter().map(|axis| axes.all()[*axis].size).fold(1, u64::saturating_mul);
        let nothing = axes.reach([], &|_| false);
        let mut split = Self {
            axes,
            along: Vec::new(),
            known: HashSet::default(),
            begins: vec![false; axes.all().len()],
            size,
            inputs: Vec::new(),
            is_made: false,
            is_of_pairs,
            joined: None,
            added: None,
            is_reduced: false,
            ranked: None,
            is_divided: false,
            each: nothing.clone(),
            after: nothing.clone(),
            whole: nothing,
        };
        split.add(vec![own.to_vec()]);
        split.continued(walk);
        if split.is_of_steps(walk.program) {
            return None;
        }
        let born = split.born(walk.program)?;
        walk.run(&mut split, &born)?;
        Some(split)
    }

    /// The number of the dimension in an instruction's array; the first, if several match.
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

    /// Whether a position's elements lie apart along an array's dimension: the array has only a part of the split dimension's
    /// axes, or other axes before them.
    fn is_scattered(&self, instruction: &Instruction<'_>, leaf: usize, dimension: usize) -> bool {
        let of = self.axes.of_dimension(instruction, leaf, dimension);
        let is_leading = || self.along.iter().any(|own| of.starts_with(own));
        self.place(instruction, leaf).is_none_or(|place| place == dimension && !is_leading())
    }

    /// The dimension along which an array is computed in parts; `None` if it isn't.
    pub(crate) fn dimension(&self, program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<usize> {
        let (instruction, leaf) = program.flow.told(array.position)?;
        let (at, place) = (instruction.index(), self.place(&instruction, leaf)?);
        let is_whole = || self.whole.has(at, leaf) && !self.each.has(at, leaf);
        // A buffer that is allocated apart has what is written into it.
        let is_written_after = || {
            let is_allocated = instruction.opcode() == Opcode::CustomCall && instruction.operands().next().is_none();
            let is_after = |found: Use| match found {
                Use::Read(op) => self.after.has_any(program.flow.instruction_index(op)),
                _ => false,
            };
            is_allocated && program.flow.readers(array.position).any(is_after)
        };
        (!self.after.has(at, leaf) && !is_whole() && !is_written_after()).then_some(place)
    }

    /// Whether an array is the same for all positions.
    pub(crate) fn is_same_for_all(&self, program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
        let told = program.flow.told(array.position);
        told.is_some_and(|(instruction, leaf)| {
            !self.each.has(instruction.index(), leaf) && self.place(&instruction, leaf).is_none()
        })
    }

    /// Whether one of an instruction's results depends on the position.
    pub(crate) fn is_of_each(&self, program: &ProgramModel<'_>, op: OpId) -> bool {
        self.each.has_any(program.flow.instruction_index(op))
    }

    /// Whether all of the program's results begin with it.
    pub(crate) fn is_in_all_results(&self, program: &ProgramModel<'_>) -> bool {
        let root = program.module.entry().and_then(|entry| entry.root());
        root.is_some_and(|root| {
            (0..self.axes.leaves(root.index()))
                .all(|leaf| self.places(&root, leaf).any(|dimension| dimension == 0) || self.repeats(&root, leaf))
        })
    }

    /// Whether one of the program's results begins with it.
    pub(crate) fn is_in_a_result(&self, program: &ProgramModel<'_>) -> bool {
        let root = program.module.entry().and_then(|entry| entry.root());
        root.is_some_and(|root| {
            (0..self.axes.leaves(root.index())).any(|leaf| self.places(&root, leaf).any(|dimension| dimension == 0))
        })
    }

    /// Whether random bits are made along it.
    pub(crate) fn is_drawn(&self, program: &ProgramModel<'_>) -> bool {
        program.module.instructions().filter(draws_bits).any(|at| self.place(&at, 0).is_some())
    }

    /// Whether a result is made of all positions together and of an argument that it replaces, such as a state, which the
    /// positions read: after a call for one part, the next part would read another one.
    pub(crate) fn renews_state(&self, program: &ProgramModel<'_>) -> bool {
        let (flow, axes) = (program.flow, self.axes);
        let Some(entry) = flow.entry() else { return false };
        let ends = flow.within(flow.result(entry)).filter(|position| !flow.is_tuple(*position));
        let ends = ends.filter(|position| {
            let told = flow.told(*position);
            told.is_some_and(|(at, leaf)| self.each.has(at.index(), leaf) && self.place(&at, leaf).is_none())
        });
        let argument = |op: OpId| flow.instruction(op).filter(|at| at.opcode() == Opcode::Parameter);
        let states = ends.filter_map(|position| {
            let shape = flow.shape(position)?;
            let (bounds, element) = (shape.bounds().filter(|bounds| !bounds.is_empty())?, shape.element_type());
            let last = flow.op_at(flow.origin(position));
            let operands = |op: OpId| {
                let count = if op == last || program.is_op(op, is_elementwise) { flow.operands(op).len() } else { 0 };
                let origins = (0..count).filter_map(move |number| flow.operand(op, number));
                origins.map(|operand| flow.op_at(flow.origin(operand))).collect::<Vec<_>>()
            };
            let is_replaced = |at: &Instruction<'_>| {
                at.shape().is_ok_and(|of| of.bounds().as_ref() == Some(&bounds) && of.element_type() == element)
            };
            flow.reached([last], operands).filter_map(argument).find(is_replaced)
        });
        let states: Vec<(usize, usize)> = states.map(|at| (at.index(), 0)).collect();
        let reached = axes.reach(states, &|_| false);
        program.temporaries().any(|array| {
            let is_reached = |(at, leaf): (Instruction<'_>, usize)| reached.has(at.index(), leaf);
            self.dimension(program, array).is_some() && flow.told(array.position).is_some_and(is_reached)
        })
    }

    /// Whether an array's leading dimension repeats one value for each position, such as a counter of steps under `vmap`.
    fn repeats(&self, instruction: &Instruction<'_>, leaf: usize) -> bool {
        let leading = self.axes.of_dimension(instruction, leaf, 0);
        let is_repeated =
            |event: &Event| matches!(event.kind, EventKind::Made(FactorKind::Repeat) | EventKind::Result(..));
        !leading.is_empty()
            && leading.iter().map(|axis| self.axes.all()[*axis].size).fold(1, u64::saturating_mul) == self.size
            && leading.iter().all(|axis| self.axes.events(*axis).iter().all(is_repeated))
    }

    /// Whether all positions are treated alike and none meet, so that a part of them can be computed as all are.
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

    /// The instructions that make the dimension, other than by repetition.
    fn made<'a, 'm>(&'a self, program: &'a ProgramModel<'m>) -> impl Iterator<Item = Instruction<'m>> + 'a {
        let made = self.events().filter(|event| matches!(event.kind, EventKind::Made(FactorKind::Mix)));
        // One instruction may make many axes.
        let made: BTreeSet<usize> = made.map(|event| event.instruction).collect();
        made.into_iter().filter_map(|at| program.module.instruction(at))
    }

    /// Whether the program numbers its positions.
    pub(crate) fn is_counted(&self, program: &ProgramModel<'_>) -> bool {
        self.made(program).any(|at| at.opcode() == Opcode::Iota)
    }

    /// Notes the inputs that have it, and returns the arrays where it begins: arguments, iotas and random draws, and
    /// results of other known operations that make it. `None` if a weight has it that isn't each part's own, or if its
    /// origin is unknown.
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
        // In an ensemble, each part has its own model's weights.
        let is_in_all = self.is_in_all_results(program);
        for (parameter, leaf, dimension) in arguments {
            // The program puts it together, such as the tiles of a picture, of which another input has the rows alone.
            if self.is_scattered(&parameter, leaf, dimension) {
                self.is_made = true;
                continue;
            }
            if born.contains(&(parameter.index(), leaf)) || !self.places(&parameter, leaf).any(|at| at == dimension) {
                continue;
            }
            let name = name(&parameter);
            if is_input(&name) || is_in_all || is_data(program, &parameter) {
                self.inputs.push((name, dimension));
            } else if Purpose::of_argument(&name) != Purpose::Cache {
                return None;
            }
            born.push((parameter.index(), leaf));
        }
        // Other inputs' positions move along it, as at the neighbours of a grid.
        if !born.is_empty() && self.made(program).any(|at| self.takes_window(&at)) {
            return None;
        }
        if born.is_empty() {
            self.is_made = true;
            let drawn =
                |at: &Instruction<'_>| matches!(at.opcode(), Opcode::Iota | Opcode::Rng | Opcode::RngBitGenerator);
            // Part of a counted dimension is the compiler's, as of a Fourier transform's columns; random bits are drawn flat.
            let is_random = self.is_drawn(program);
            let is_own = |at: &Instruction<'_>| is_random || self.axes.of_array(at, 0).any(|all| self.along[0] == all);
            for at in self.made(program).filter(drawn).filter(is_own) {
                born.extend((0..self.axes.leaves(at.index())).map(|leaf| (at.index(), leaf)));
            }
        }
        if born.is_empty() {
            return None;
        }
        // Results of other operations that make it depend on the position, too, such as samples concatenated with
        // others.
        let others = self.made(program).filter(|at| at.operands().next().is_some() && !is_unknown(at));
        born.extend(others.flat_map(|at| (0..self.axes.leaves(at.index())).map(move |leaf| (at.index(), leaf))));
        Some(born)
    }
}

/// Whether an array of a weight's name is data all the same: a step that takes a gradient neither updates it nor multiplies
/// matrices by it, such as the weights of samples in a loss.
fn is_data(program: &ProgramModel<'_>, parameter: &Instruction<'_>) -> bool {
    let flow = program.flow;
    let is_updated =
        parameter.shape().map_or(true, |shape| program.states().contains(&shape.without_layout().to_string()));
    let Some(op) = flow.op(parameter).filter(|_| program.has_gradient && !is_updated) else { return false };
    let is_product = |at: &Instruction<'_>| {
        matches!(at.opcode(), Opcode::Dot | Opcode::Convolution | Opcode::Gather | Opcode::CustomCall)
    };
    flow.readers(flow[op].position).all(|found| match found {
        Use::Read(op) => flow.instruction(op).is_some_and(|at| !any_fused(&at, is_product)),
        _ => false,
    })
}

/// Whether an instruction makes random bits; JAX's own generator uses `xor`.
pub(crate) fn draws_bits(at: &Instruction<'_>) -> bool {
    matches!(at.opcode(), Opcode::Xor | Opcode::Rng | Opcode::RngBitGenerator)
}

/// Whether a reduction asks whether any position of a loop under `jax.vmap` goes on: JAX runs the loop until none does, and keeps
/// the values of those that have ended.
pub(crate) fn asks_for_any(reduce: &Instruction<'_>) -> bool {
    let is_or = |call: tilewise_hlo::Call<'_>| {
        call.computation().and_then(|of| of.root()).is_some_and(|root| root.opcode() == Opcode::Or)
    };
    let is_of_loop = || op_name(reduce).is_some_and(|name| name.contains("vmap(") && name.ends_with("/while"));
    reduce.opcode() == Opcode::Reduce && is_of_loop() && reduce.calls().any(is_or)
}

/// Whether the relation of an instruction's results to its operands is unknown; an allocated buffer has no operands.
fn is_unknown(at: &Instruction<'_>) -> bool {
    matches!(at.opcode(), Opcode::CustomCall | Opcode::Unknown) && at.operands().next().is_some()
}

/// Candidate dimensions, best first: arguments' dimensions in the largest array at the peak (inputs' leading ones
/// before others, the outermost first), other leading dimensions of inputs, then that array's axes that no argument
/// has.
///
/// Each has a flag for pairs: the array has another dimension of the same size, and inputs begin with either one.
fn candidates(program: &ProgramModel<'_>, peak: &[&LiveArray<'_>]) -> Vec<(Vec<AxisId>, bool)> {
    let axes = program.flow.axes();
    // Among equals the one with most dimensions: a flattened array shows none.
    let largest = peak.iter().max_by_key(|array| (array.bytes, array.bounds.len()));
    let Some((largest, leaf_of_largest)) = largest.and_then(|array| program.flow.told(array.position)) else {
        return Vec::new();
    };
    let size = |own: &[AxisId]| own.iter().map(|axis| axes.all()[*axis].size).fold(1, u64::saturating_mul);
    let mut found: Vec<(usize, Vec<AxisId>)> = Vec::new();
    for all in axes.of_array(&largest, leaf_of_largest) {
        let is_passed =
            |axis: &AxisId| axes.events(*axis).iter().any(|event| matches!(event.kind, EventKind::Argument(..)));
        // A generator may put the numbers of a dimension together of its halves.
        if all.len() > 1 && !all.iter().any(is_passed) {
            found.push((3, all.to_vec()));
        }
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
    // The largest array may have an input's leading dimension at another size, or beyond an unknown operation.
    for parameter in program.parameters().iter().filter(|parameter| is_input(&name(parameter))) {
        for leaf in 0..axes.leaves(parameter.index()) {
            let own = axes.of_dimension(parameter, leaf, 0);
            if !own.is_empty() && !found.iter().any(|(_, known)| known == own) {
                found.push((2, own.to_vec()));
            }
        }
    }
    // Of rows and columns of one size, both leading dimensions of inputs, either would do; any other candidate is
    // likelier the batch.
    let first: Vec<&Vec<AxisId>> = found.iter().filter(|(rank, _)| *rank == 0).map(|(_, own)| own).collect();
    let is_of_pairs = |own: &Vec<AxisId>| {
        let is_there = |own: &Vec<AxisId>| axes.of_array(&largest, leaf_of_largest).any(|all| all == own);
        first.iter().any(|other| *other != own && size(other) == size(own) && is_there(other)) && is_there(own)
    };
    let pairs: Vec<Vec<AxisId>> = first.iter().filter(|own| is_of_pairs(own)).map(|own| (*own).clone()).collect();
    // Stable: among equals, the outermost comes first.
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
