//! The batch of a program: a dimension of its input that most of the peak has, and along which nothing joins its samples.

use super::{
    graphs::nodes_of,
    in_parts::{is_in_all_results, is_key},
};
use crate::{
    advice::{
        evidence::Evidence,
        finding::GradientSums,
        parts::{LEAST, bytes_of_part, leading_sizes},
        program::{BufferChanges, LiveArray, ProgramModel},
        purpose::{Purpose, is_input, of_argument},
        samples::Samples,
    },
    program::{begins_with, name, op_name},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    iter::successors,
};
use tilewise::Shape;
use tilewise_hlo::{Instruction, Opcode, dataflow::OpId};
use tilewise_memory::Role;

/// So many dimensions are followed at most: each takes a walk through the program.
const MOST_FOLLOWED: usize = 8;

/// Of so many arguments at most, each is left out once.
const MOST_LEFT_OUT: usize = 4;

/// More parts than this are no advice.
const MOST_PARTS: u64 = 1024;

/// A batch, and what its parts take.
pub(super) struct Batch<'a, 'm> {
    pub(super) size: u64,
    /// The largest array at the peak that has it.
    pub(super) largest: &'a LiveArray<'m>,
    /// Which of the input's arrays have it, by the dimension that it is of them; none where nothing tells.
    pub(super) inputs: Vec<(usize, Vec<String>)>,
    /// In how many parts buffers take so much.
    pub(super) parts: u64,
    pub(super) buffers: Vec<(usize, u64)>,
    /// What that frees, with the sums of gradients beside each part's.
    pub(super) freed: u64,
    /// Whether these are more parts than help, since with fewer the program doesn't fit.
    pub(super) is_to_fit: bool,
    pub(super) gradients: GradientSums,
}

/// The dimension of a batch in each of the arrays that have it; `None` for one that has it under another shape.
type Places = HashMap<usize, Option<usize>>;

impl<'a, 'm> Batch<'a, 'm> {
    /// The first of the dimensions that may be a batch's of which that is so.
    pub(super) fn of(program: &'a ProgramModel<'m>) -> Option<Self> {
        let interface = program.total_bytes.saturating_sub(program.temporary_bytes);
        // Where the arguments are as large, their own size is the cause, and temporaries are their copies; of a training step,
        // the state has no copies. What doesn't fit may still fit in parts.
        let least = if program.has_gradient() { interface / 4 } else { interface.saturating_add(interface / 3) };
        if program.fits_without(0) && program.temporary_bytes < least {
            return None;
        }
        let peak: Vec<&LiveArray<'m>> = program.peak_temporaries().collect();
        let all = total(&peak);
        // Flattened arrays have no dimension to go by.
        let largest = *peak.iter().max_by_key(|array| (array.bytes, array.bounds.len()))?;
        let states = results(program);
        let most = program.thresholds().most;
        let mut is_followed = false;
        let mut found = None;
        for size in candidates(program, largest, &states) {
            let Some(is_input) = inputs(program, size, &states) else { continue };
            is_followed = true;
            let covers = |samples: &Samples| {
                let with_it = peak.iter().copied().filter(|at| samples.dimension(program, at).is_some());
                total(&with_it.collect::<Vec<_>>()) / most >= all / 100
            };
            if let Some(samples) = followed(program, largest, size, is_input, &states).into_iter().find(covers) {
                found = Some((size, Some(samples)));
                break;
            }
        }
        // Which arguments have it isn't known, nor what joins it.
        if found.is_none() && !is_followed && !program.has_gradient() {
            found = by_size(program, &peak, largest, &states).map(|size| (size, None));
        }
        let (size, samples) = found?;
        if nodes_of(program, size).is_some() {
            return None;
        }
        let place = |array: &LiveArray<'m>| match &samples {
            Some(samples) => samples.dimension(program, array).map(Some),
            None => is_of_size(program, &peak, array, size).then(|| array.bounds.iter().position(|at| *at == size)),
        };
        let places: Places =
            program.temporaries().enumerate().filter_map(|(at, array)| Some((at, place(array)?))).collect();
        let with_it = || program.temporaries().enumerate().filter_map(|(at, array)| Some((array, *places.get(&at)?)));
        let at_peak: HashSet<usize> = peak.iter().map(|array| array.instruction.index()).collect();
        let of_peak: Vec<_> = with_it().filter(|(array, _)| at_peak.contains(&array.instruction.index())).collect();
        // Where each part has results of its own, gradients aren't added up: models of an ensemble, or samples whose gradients
        // stay apart.
        let gradients = match (program.has_gradient(), is_in_all_results(program, size)) {
            (false, _) => GradientSums::None,
            (true, false) => GradientSums::Summed,
            (true, true) => GradientSums::Apart,
        };
        let in_parts = |parts: u64| {
            let part =
                |(array, at): (&LiveArray<'m>, _)| Some((array.buffer, bytes_of_part(program, array, at, parts)?));
            let buffers: Vec<(usize, u64)> = with_it().filter_map(part).collect();
            let freed = freed(program, &buffers, gradients);
            (parts, buffers, freed)
        };
        let helping = parts_that_help(program, size, &of_peak);
        let more = successors(Some(helping), |parts| parts.checked_mul(2))
            .take_while(|parts| *parts <= MOST_PARTS && size.is_multiple_of(*parts));
        // With a tenth less than promised.
        let fitting = more.map(in_parts).find(|(_, _, freed)| program.fits_without(freed / 10 * 9));
        let (parts, buffers, freed) = fitting.unwrap_or_else(|| in_parts(helping));
        let inputs = samples.map(|samples| named(program, samples.inputs)).unwrap_or_default();
        let largest = of_peak.iter().map(|(array, _)| *array).max_by_key(|array| (array.bytes, array.bounds.len()))?;
        let is_to_fit = parts > helping;
        Some(Self { size, largest, inputs, parts, buffers, freed, is_to_fit, gradients })
    }

    /// Keys of random numbers that are the same for all parts unless they are split: where samples have some of their own.
    pub(super) fn keys(&self, program: &ProgramModel<'_>) -> Vec<String> {
        if !draws_for_each(program, self.size) {
            return Vec::new();
        }
        let parameters = program.parameters();
        let is_shared =
            |at: &&Instruction<'_>| is_key(at) && !at.shape().is_ok_and(|shape| begins_with(&shape, self.size));
        parameters.iter().filter(is_shared).map(name).collect()
    }
}

/// What parts free; where their gradients are added up, the sums lie beside each part's.
fn freed(program: &ProgramModel<'_>, buffers: &[(usize, u64)], gradients: GradientSums) -> u64 {
    let changes = BufferChanges { at_most: buffers.iter().copied().collect(), ..BufferChanges::default() };
    let Some(plan) = program.plan_with(&changes) else { return 0 };
    if gradients != GradientSums::Summed {
        return program.total_bytes.saturating_sub(plan.total_bytes());
    }
    let states = results(program);
    let is_trained = |argument: &&LiveArray<'_>| {
        states.contains(&argument.shape.without_layout().to_string())
            && !is_input(&name(&argument.instruction))
            && of_argument(&name(&argument.instruction)).0 == Purpose::Parameter
    };
    let mut trained: Vec<(&[u64], u64)> =
        program.arguments().filter(is_trained).map(|argument| (&argument.bounds[..], argument.bytes)).collect();
    let sums = trained.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    // Gradients that are all alive then are the sums themselves.
    let mut held = 0_u64;
    let peak = plan.space(0).and_then(|hbm| Some((hbm, hbm.peak.as_ref()?)));
    for (hbm, live) in peak.iter().flat_map(|(hbm, peak)| peak.live.iter().map(move |live| (hbm, live))) {
        let value = &hbm.values[live.value];
        let bounds: Option<Vec<u64>> = value
            .shape()
            .filter(|_| value.role == Role::Temporary)
            .map(|shape| shape.dimensions().iter().filter_map(|dimension| dimension.bound()).collect());
        let found = bounds.and_then(|bounds| trained.iter().position(|(known, _)| *known == bounds));
        if let Some(found) = found {
            held = held.saturating_add(trained.swap_remove(found).1);
        }
    }
    let with_sums = plan.total_bytes().saturating_add(sums.saturating_sub(held));
    program.total_bytes.saturating_sub(with_sums)
}

fn total(arrays: &[&LiveArray<'_>]) -> u64 {
    arrays.iter().map(|array| array.bytes).fold(0, u64::saturating_add)
}

/// Which arguments are of the batch: those that are neither weights nor states, or else those that aren't weights by their
/// names; of an ensemble's models, whose results have it, too, all that begin with it. `None` where none has the dimension.
fn inputs<'p>(
    program: &'p ProgramModel<'_>,
    size: u64,
    states: &'p HashSet<String>,
) -> Option<impl Fn(&Instruction<'_>) -> bool + use<'p>> {
    #[derive(Clone, Copy)]
    enum Which {
        Begin,
        Inputs,
        Named,
    }
    let is_state =
        |at: &Instruction<'_>| at.shape().is_ok_and(|shape| states.contains(&shape.without_layout().to_string()));
    let is_of = move |at: &Instruction<'_>, which: Which| {
        let is_input = is_input(&name(at));
        match which {
            Which::Begin => at.shape().is_ok_and(|shape| begins_with(&shape, size)),
            Which::Inputs => is_input && !is_state(at),
            Which::Named => is_input,
        }
    };
    let parameters = program.parameters();
    let ways: &[Which] =
        if is_in_all_results(program, size) { &[Which::Begin] } else { &[Which::Inputs, Which::Named] };
    let which =
        ways.iter().copied().find(|which| parameters.iter().any(|at| has_bound(at, size) && is_of(at, *which)))?;
    Some(move |at: &Instruction<'_>| is_of(at, which))
}

/// The samples of these arguments or, where these are joined, of all but one of them: weights may have any name.
fn followed(
    program: &ProgramModel<'_>,
    largest: &LiveArray<'_>,
    size: u64,
    is_input: impl Fn(&Instruction<'_>) -> bool,
    states: &HashSet<String>,
) -> Vec<Samples> {
    let is_state =
        |at: &Instruction<'_>| at.shape().is_ok_and(|shape| states.contains(&shape.without_layout().to_string()));
    let all = Samples::follow(program, size, &is_input, is_state);
    let inputs: Vec<usize> = program
        .parameters()
        .iter()
        .filter(|at| is_input(at) && has_bound(at, size))
        .map(tilewise_hlo::Instruction::index)
        .collect();
    // Of pairs, one side has as good a claim as the other.
    let has_pairs = largest.bounds.iter().filter(|bound| **bound == size).count() > 1;
    if all.is_ok() || has_pairs || program.has_gradient() || !(2..=MOST_LEFT_OUT).contains(&inputs.len()) {
        return all.into_iter().collect();
    }
    let without = |left_out: usize| {
        Samples::follow(program, size, |at: &Instruction<'_>| is_input(at) && at.index() != left_out, is_state)
    };
    inputs.into_iter().filter_map(|left_out| without(left_out).ok()).collect()
}

/// Sizes that may be a batch's, the most likely first.
fn candidates(program: &ProgramModel<'_>, largest: &LiveArray<'_>, states: &HashSet<String>) -> Vec<u64> {
    let (input, trips) = (input_sizes(program, &largest.bounds, states), trips(program));
    let is_candidate = |size: &u64| *size >= LEAST && !trips.contains(size);
    // A batch is the outermost: features are in weights, too, and so in more.
    let sizes = || largest.bounds.iter().copied().filter(is_candidate);
    let own = input.iter().flat_map(|known| sizes().filter(|size| known.contains(size)));
    // Merged with another, it is none of the largest array's.
    let is_merged = |size: &u64| largest.bounds.iter().any(|bound| bound > size && bound.is_multiple_of(*size));
    let mut merged: Vec<u64> = input[..2].iter().flatten().copied().filter(is_candidate).filter(is_merged).collect();
    merged.sort_unstable_by_key(|size| Reverse(*size));
    let mut seen = HashSet::new();
    own.chain(merged).filter(|size| seen.insert(*size)).take(MOST_FOLLOWED).collect()
}

/// A dimension that most of the peak has, by its size alone.
fn by_size(
    program: &ProgramModel<'_>,
    peak: &[&LiveArray<'_>],
    largest: &LiveArray<'_>,
    states: &HashSet<String>,
) -> Option<u64> {
    let most = program.thresholds().most;
    let covered = |size: u64| {
        let with = peak.iter().filter(|array| is_of_size(program, peak, array, size));
        with.map(|array| array.bytes).fold(0, u64::saturating_add)
    };
    let is_in_most = |size: &u64| covered(*size) / most >= total(peak) / 100;
    let size = candidates(program, largest, states).into_iter().find(is_in_most)?;
    // One short of it, in its place: neighbours are read, which parts don't have.
    // In a square one, both are.
    let is_short = |bounds: &[u64]| {
        let is_square = bounds.len() == 2 && bounds.iter().all(|bound| [size, size - 1].contains(bound));
        bounds.contains(&(size - 1)) && (is_square || !bounds.contains(&size))
    };
    let reads_neighbours =
        size > program.thresholds().few && program.peak_temporaries().any(|array| is_short(&array.bounds));
    (!reads_neighbours).then_some(size)
}

/// Whether an array has a dimension of this size, be it flattened, and isn't an argument's copy or gradient.
fn is_of_size(program: &ProgramModel<'_>, peak: &[&LiveArray<'_>], array: &LiveArray<'_>, size: u64) -> bool {
    let is_of_argument = || program.arguments().any(|argument| argument.elements() == array.elements());
    // Arguments of several sorts that begin with the dimension are those of a batch.
    let leads = || leading_sizes(program).get(&size).is_some_and(|sorts| sorts.len() > 1);
    let has_it = |array: &LiveArray<'_>| array.bounds.contains(&size);
    // Flattened, it has as many elements as another that has the dimension.
    let is_flat = || array.bounds.len() == 1 && peak.iter().any(|at| has_it(at) && at.elements() == array.elements());
    (has_it(array) || is_flat()) && (!is_of_argument() || leads())
}

/// The fewest parts, up to eight, that free about what they would without padding, or those that come nearest to it. A
/// small batch along the lanes leaves more of them empty the smaller it is, until features take its place.
fn parts_that_help(program: &ProgramModel<'_>, size: u64, arrays: &[(&LiveArray<'_>, Option<usize>)]) -> u64 {
    let bytes = |parts: u64| {
        let part = |(array, at): &(&LiveArray<'_>, Option<usize>)| bytes_of_part(program, array, *at, parts);
        let parts = arrays.iter().map(|array| part(array).unwrap_or(array.0.bytes));
        parts.fold(0, u64::saturating_add)
    };
    let whole = bytes(1);
    // Tenths of what they would free without padding.
    let kept = |parts: u64| {
        let freed = u128::from(whole.saturating_sub(bytes(parts)));
        freed * 10 * u128::from(parts) / (u128::from(whole) * u128::from(parts - 1)).max(1)
    };
    let choices = program.thresholds().parts.iter().copied().filter(|parts| size.is_multiple_of(*parts));
    choices.max_by_key(|parts| (kept(*parts).min(8), Reverse(*parts))).unwrap_or(2)
}

/// Sizes by which a dimension of an array may be one of the input: first those that what is neither weight nor state begins
/// with, alone or merged with what follows; then those of theirs that weights lack; neither where the array has pairs of
/// them, unless the input itself begins with such a pair; then any of an argument's. Experts and heads are dimensions of weights, too.
fn input_sizes(program: &ProgramModel<'_>, bounds: &[u64], states: &HashSet<String>) -> [HashSet<u64>; 3] {
    let has_pairs = |size: u64| bounds.iter().filter(|bound| **bound == size).count() > 1;
    let [mut first, mut of_batch, mut of_any] = [const { Vec::new() }; 3];
    let (mut of_weights, mut squares) = (HashSet::new(), HashSet::new());
    for parameter in program.parameters() {
        let Ok(shape) = parameter.shape() else { continue };
        let is_of_batch = is_input(&name(&parameter)) && !states.contains(&shape.without_layout().to_string());
        for (_, leaf) in shape.leaves() {
            let bounds: Vec<u64> = leaf.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
            if let Some((first, rest)) = bounds.split_first()
                && is_of_batch
                && rest.contains(first)
            {
                squares.insert(*first);
            }
            let mut merged = 1_u64;
            for bound in bounds {
                merged = merged.saturating_mul(bound);
                of_any.extend([bound, merged]);
                if is_of_batch {
                    first.push(merged);
                    of_batch.extend([bound, merged]);
                } else {
                    of_weights.insert(bound);
                }
            }
        }
    }
    first.retain(|size| !has_pairs(*size) || squares.contains(size));
    of_batch.retain(|size| !has_pairs(*size) && !of_weights.contains(size));
    [first, of_batch, of_any].map(HashSet::from_iter)
}

/// Whether random bits are made along a dimension of this size, be it merged with others: JAX's own generator is made of `xor`.
fn draws_for_each(program: &ProgramModel<'_>, size: u64) -> bool {
    let makes_bits = |at: &Instruction<'_>| matches!(at.opcode(), Opcode::Xor | Opcode::Rng | Opcode::RngBitGenerator);
    let is_of_each = |bounds: Vec<u64>| match bounds[..] {
        [merged] => merged >= size && merged.is_multiple_of(size),
        _ => bounds.contains(&size),
    };
    let shapes =
        |at: &Instruction<'_>| at.shape().ok().map(|shape| shape.leaves().map(|(_, leaf)| leaf).collect::<Vec<_>>());
    program
        .module
        .instructions()
        .filter(makes_bits)
        .filter_map(|at| shapes(&at))
        .flatten()
        .any(|leaf| is_of_each(leaf.dimensions().iter().filter_map(|dimension| dimension.bound()).collect()))
}

/// Whether an argument has a dimension of this size.
fn has_bound(at: &Instruction<'_>, size: u64) -> bool {
    at.shape().is_ok_and(|shape| shape.dimensions().iter().any(|dimension| dimension.bound() == Some(size)))
}

/// The shapes of what the program returns, where it takes a gradient: those of weights and states.
fn results(program: &ProgramModel<'_>) -> HashSet<String> {
    let result = program.module.entry().and_then(|entry| entry.root()?.shape().ok());
    let result = result.filter(|_| program.has_gradient());
    result.iter().flat_map(Shape::leaves).map(|(_, leaf)| leaf.without_layout().to_string()).collect()
}

/// The input's arrays by the dimension that is the batch's: parameters of the function all of whose arrays have it there, or
/// single arrays of others.
fn named(program: &ProgramModel<'_>, inputs: Vec<(String, usize)>) -> Vec<(usize, Vec<String>)> {
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (name, place) in inputs {
        found.entry(place).or_default().push(name);
    }
    found.into_iter().map(|(place, names)| (place, program.in_whole(&names))).collect()
}

/// How often loops run: along such a dimension the program takes parts already. Scatters and gathers that the compiler
/// makes loops of keep their names.
fn trips(program: &ProgramModel<'_>) -> HashSet<u64> {
    let is_own = |op: &OpId| {
        let name = program.flow.instruction(*op).and_then(|at| op_name(&at));
        name.is_none_or(|name| {
            !["gather", "scatter"].iter().any(|sign| name.rsplit('/').next().unwrap_or_default().contains(sign))
        })
    };
    program.flow.ops().ids().filter(is_own).filter_map(|op| program.flow.trip_count(op)).collect()
}
