//! The dimension of a program along which it can be taken apart: most of the peak has it, and nothing joins what it has there
//! but sums, or what takes little room.

use super::{broadcast::Along, in_parts::is_in_all_results};
use crate::{
    advice::{
        evidence::Evidence,
        parts::{LEAST, leading_sizes},
        program::{LiveArray, ProgramModel},
        samples::{Samples, Way},
    },
    program::{begins_with, is_input, name, op_name},
};
use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashSet},
};
use tilewise::Shape;
use tilewise_hlo::{Instruction, Opcode, dataflow::OpId};

/// So many dimensions are followed at most: each takes a walk through the program.
const MOST_FOLLOWED: usize = 8;

/// The same of those that the program makes.
const MOST_MADE: usize = 4;

/// Of so many arguments at most, each is left out once.
const MOST_LEFT_OUT: usize = 4;

/// What samples have in common at the end takes at most this share of the temporaries: one divided by it.
const JOINABLE: u64 = 16;

/// Such a dimension.
pub(super) struct Separable {
    pub(super) size: u64,
    /// What has it; `None` where it is known by its size alone.
    pub(super) samples: Option<Samples>,
    /// Whether the program makes it, as it does the pixels of a picture that it draws.
    pub(super) is_made: bool,
}

impl Separable {
    /// The first that nothing joins, an argument's before one that is made; or else the first that is joined late.
    pub(super) fn of(program: &ProgramModel<'_>, peak: &[&LiveArray<'_>]) -> Option<Self> {
        // Flattened arrays have no dimension to go by.
        let largest = *peak.iter().max_by_key(|array| (array.bytes, array.bounds.len()))?;
        let (all, most, states) = (total(peak), program.thresholds().most, results(program));
        let covers = |found: &Self| {
            let with_it = peak.iter().copied().filter(|at| found.place(program, peak, at).is_some());
            total(&with_it.collect::<Vec<_>>()) / most >= all / 100
        };
        let way = |is_given, is_made| Way { is_given, is_made, joinable_bytes: program.temporary_bytes / JOINABLE };
        let given = candidates(program, largest, &states);
        let of_inputs = given.iter().flat_map(|size| {
            let is_input = inputs(program, *size, &states);
            let way = way(true, false);
            let all = is_input.map(|is_input| followed(program, largest, *size, way, is_input, &states));
            all.into_iter().flatten().map(|samples| Self { size: *size, samples: Some(samples), is_made: false })
        });
        let made = made_sizes(program, largest, &states).into_iter().flat_map(|size| {
            let states = &states;
            [true, false].into_iter().filter_map(move |is_given| {
                let inputs = inputs(program, size, states).filter(|_| is_given);
                let is_input = |at: &Instruction<'_>| inputs.as_ref().is_some_and(|is_input| is_input(at));
                let is_any = program.parameters().iter().any(|at| has_bound(at, size) && is_input(at));
                let way = way(is_given && is_any, true);
                // Without inputs that have it, there is but one way.
                let samples = Samples::follow(program, size, way, is_input, is_state(states)).ok();
                let samples = samples.filter(|_| is_any || !is_given);
                Some(Self { size, samples: Some(samples?), is_made: true })
            })
        });
        let mut joined = None;
        for found in of_inputs.chain(made).filter(covers) {
            if found.samples.as_ref().is_some_and(|samples| samples.joined.is_none()) {
                return Some(found);
            }
            joined.get_or_insert(found);
        }
        // Which arguments have it isn't known, nor what joins it.
        let is_unknown = || !program.has_gradient && given.iter().all(|size| inputs(program, *size, &states).is_none());
        let by_size = || by_size(program, peak, largest, &states).filter(|_| is_unknown());
        joined.or_else(|| by_size().map(|size| Self { size, samples: None, is_made: false }))
    }

    /// Whether an array has it, and which of its dimensions it is; none of one that has it under another shape.
    pub(super) fn place(
        &self,
        program: &ProgramModel<'_>,
        peak: &[&LiveArray<'_>],
        array: &LiveArray<'_>,
    ) -> Option<Option<usize>> {
        let of_size = || array.bounds.iter().position(|at| *at == self.size);
        match &self.samples {
            Some(samples) => {
                samples.dimension(program, array).or_else(|| broadcast_along(samples, program, peak, array)).map(Some)
            }
            None => is_of_size(program, peak, array, self.size).then(of_size),
        }
    }
}

/// The dimension of samples along which an array of the bounds of theirs is the same for all, or numbered.
fn broadcast_along(
    samples: &Samples,
    program: &ProgramModel<'_>,
    peak: &[&LiveArray<'_>],
    array: &LiveArray<'_>,
) -> Option<usize> {
    let (instruction, element) = (array.instruction, program.flow.leaves_before(array.position));
    let alike = peak.iter().filter(|other| other.bounds == array.bounds);
    let places: BTreeSet<usize> = alike.filter_map(|other| samples.dimension(program, other)).collect();
    places.into_iter().find(|dimension| Along { instruction, element, dimension: *dimension }.is_broadcast())
}

pub(super) fn total(arrays: &[&LiveArray<'_>]) -> u64 {
    arrays.iter().map(|array| array.bytes).fold(0, u64::saturating_add)
}

/// Whether an argument is of the shape of what the program returns.
fn is_state(states: &HashSet<String>) -> impl Fn(&Instruction<'_>) -> bool + Copy + '_ {
    |at| at.shape().is_ok_and(|shape| states.contains(&shape.without_layout().to_string()))
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
    let is_state = is_state(states);
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
    way: Way,
    is_input: impl Fn(&Instruction<'_>) -> bool,
    states: &HashSet<String>,
) -> Vec<Samples> {
    let is_state = is_state(states);
    let all = Samples::follow(program, size, way, &is_input, is_state);
    let inputs: Vec<usize> = program
        .parameters()
        .iter()
        .filter(|at| is_input(at) && has_bound(at, size))
        .map(tilewise_hlo::Instruction::index)
        .collect();
    // Of pairs, one side has as good a claim as the other.
    let has_pairs = largest.bounds.iter().filter(|bound| **bound == size).count() > 1;
    if all.as_ref().is_ok_and(|all| all.joined.is_none())
        || has_pairs
        || program.has_gradient
        || !(2..=MOST_LEFT_OUT).contains(&inputs.len())
    {
        return all.into_iter().collect();
    }
    let without = |left_out: usize| {
        Samples::follow(program, size, way, |at: &Instruction<'_>| is_input(at) && at.index() != left_out, is_state)
    };
    inputs.into_iter().filter_map(|left_out| without(left_out).ok()).chain(all).collect()
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

/// The sizes of the largest array's dimensions that the program counts or draws itself, the outermost first, then those that are
/// merged with others; none of what a gradient's own arrays have.
fn made_sizes(program: &ProgramModel<'_>, largest: &LiveArray<'_>, states: &HashSet<String>) -> Vec<u64> {
    let is_of_state = |size: u64| program.parameters().iter().any(|at| has_bound(at, size) && is_state(states)(at));
    let counted = |at: &Instruction<'_>| vec![at.shape().ok()?.dimensions().get(at.iota_dimension()?)?.bound()?].into();
    let drawn = |at: &Instruction<'_>| {
        let shape = at.shape().ok()?;
        let bounds = shape.leaves().flat_map(|(_, leaf)| leaf.dimensions().to_vec());
        Some(bounds.filter_map(|dimension| dimension.bound()).collect::<Vec<u64>>())
    };
    let sizes = |at: Instruction<'_>| match at.opcode() {
        Opcode::Iota => counted(&at),
        Opcode::Rng | Opcode::RngBitGenerator => drawn(&at),
        _ => None,
    };
    let known: HashSet<u64> = program.module.instructions().filter_map(sizes).flatten().collect();
    let trips = trips(program);
    let is_candidate =
        |size: &u64| *size >= LEAST && known.contains(size) && !trips.contains(size) && !is_of_state(*size);
    let is_merged = |size: &u64| largest.bounds.iter().any(|bound| bound > size && bound.is_multiple_of(*size));
    let mut merged: Vec<u64> = known.iter().copied().filter(|size| is_candidate(size) && is_merged(size)).collect();
    merged.sort_unstable_by_key(|size| Reverse(*size));
    let own = largest.bounds.iter().copied().filter(is_candidate);
    let mut seen = HashSet::new();
    own.chain(merged).filter(|size| seen.insert(*size)).take(MOST_MADE).collect()
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

/// Whether an argument has a dimension of this size.
fn has_bound(at: &Instruction<'_>, size: u64) -> bool {
    at.shape().is_ok_and(|shape| shape.dimensions().iter().any(|dimension| dimension.bound() == Some(size)))
}

/// The shapes of what the program returns, where it takes a gradient: those of weights and states.
pub(super) fn results(program: &ProgramModel<'_>) -> HashSet<String> {
    let result = program.module.entry().and_then(|entry| entry.root()?.shape().ok());
    let result = result.filter(|_| program.has_gradient);
    result.iter().flat_map(Shape::leaves).map(|(_, leaf)| leaf.without_layout().to_string()).collect()
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
