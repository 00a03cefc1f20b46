//! Most of the peak's temporaries have one dimension of the input in common: parts of that, one after the other.

use super::{
    attention::is_scores,
    copied_weights::is_copied_argument,
    graphs::nodes_of,
    in_parts::{in_parts, is_in_all_results, is_key},
    logits::is_logits,
    narrow::is_converted,
};
use crate::{
    advice::{
        change::Target,
        evidence::{Evidence, Held, Listed},
        finding::{Finding, GradientSums, LargeDimension},
        message::{ListedArray, MessageModel, total},
        parts::{LEAST, bytes_of_part, leading_sizes},
        program::{LiveArray, ProgramModel},
        purpose::is_input,
        rule::{Proposal, Rule},
    },
    message::Allocation,
    program::{begins_with, name, op_name, root},
};
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};
use tilewise::Shape;
use tilewise_hlo::{Instruction, dataflow::OpId};
use tilewise_memory::Role;

/// How many parts the code takes: what remains of a halved array is still the largest.
const PARTS: u64 = 8;

pub(crate) struct OneLargeDimension;

impl Rule for OneLargeDimension {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let dimension = match (evidence.program(), evidence.message()) {
            (Some(program), _) => of_program(program),
            (_, Some(message)) => of_message(evidence, message),
            _ => None,
        };
        dimension.map(|dimension| proposal(evidence, dimension)).into_iter().collect()
    }
}

/// A dimension that most have.
struct Dimension<'a> {
    size: u64,
    largest: &'a dyn Held,
    /// What buffers take in so many parts.
    buffers: Vec<(usize, u64)>,
    parts: u64,
    /// What it frees, where sizes alone don't tell.
    estimate: Option<u64>,
}

fn proposal(evidence: &dyn Evidence, dimension: Dimension<'_>) -> Proposal {
    let Dimension { size, largest, buffers, parts, estimate } = dimension;
    let has_gradient = evidence.has_gradient() == Some(true);
    // Where each part has results of its own, gradients aren't added up: models of an ensemble, or samples whose gradients
    // stay apart.
    let is_apart = has_gradient && evidence.program().is_some_and(|program| is_in_all_results(program, size));
    let finding = LargeDimension {
        size,
        inputs: evidence.program().and_then(|program| of_input(program, size, is_apart)),
        gradients: match (has_gradient, is_apart) {
            (false, _) => GradientSums::None,
            (true, false) => GradientSums::Summed,
            (true, true) => GradientSums::Apart,
        },
        keys: evidence.program().map(|program| keys(program, size)).unwrap_or_default(),
        is_known: evidence.program().is_some(),
        in_parts: evidence.program().and_then(|program| in_parts(program, largest.bounds(), size, PARTS)),
    };
    let proposal = Proposal::new(Finding::LargeDimension(finding), Target::Value, largest.advised(evidence));
    Proposal { parts: Some(parts), estimate, ..proposal.at_most(buffers).bound() }
}

/// Priced by halves, the least that parts can do.
fn of_program<'a>(program: &'a ProgramModel<'_>) -> Option<Dimension<'a>> {
    let interface = program.total_bytes.saturating_sub(program.temporary_bytes);
    // Where the arguments are as large, their own size is the cause; but what doesn't fit may still fit in parts.
    if program.fits_without(0) && program.temporary_bytes < interface.saturating_add(interface / 2) {
        return None;
    }
    let arguments: HashSet<u64> = program.arguments().map(LiveArray::elements).collect();
    let leading = leading_sizes(program);
    // As many elements as an argument has: a copy of it, or its gradient, which no part of the input makes smaller;
    // unless arguments of several sorts begin with the dimension, as those of a batch do.
    let peak: Vec<&LiveArray<'_>> = program.peak_temporaries().collect();
    let is_of_input = |array: &&LiveArray<'_>, size: u64| {
        let leads = || leading.get(&size).is_some_and(|sorts| sorts.len() > 1);
        let has_it = |array: &LiveArray<'_>| array.bounds.contains(&size);
        // Flattened, it has as many elements as another that has the dimension.
        let is_flat =
            || array.bounds.len() == 1 && peak.iter().any(|at| has_it(at) && at.elements() == array.elements());
        (has_it(array) || is_flat()) && (!arguments.contains(&array.elements()) || leads())
    };
    let all: u64 = peak.iter().map(|array| array.bytes).fold(0, u64::saturating_add);
    // Flattened arrays have no dimension to go by.
    let largest = *peak.iter().max_by_key(|array| (array.bytes, array.bounds.len()))?;
    let (input, trips) = (input_sizes(program, &largest.bounds), trips(program));
    let most = program.thresholds().most;
    let covered = |size: u64| {
        let with = peak.iter().filter(|array| is_of_input(array, size));
        with.map(|array| array.bytes).fold(0, u64::saturating_add)
    };
    let is_candidate = |size: &u64| *size >= LEAST && !trips.contains(size);
    let is_in_most = |size: &u64| covered(*size) / most >= all / 100;
    // A batch is the outermost: features are in weights, too, and so in more.
    let sizes = || largest.bounds.iter().copied().filter(is_candidate);
    let size = input.iter().find_map(|known| sizes().find(|size| known.contains(size) && is_in_most(size)))?;
    // One short of it, in its place: neighbours are read, which parts don't have.
    // In a square one, both are.
    let is_short = |bounds: &[u64]| {
        let is_square = bounds.len() == 2 && bounds.iter().all(|bound| [size, size - 1].contains(bound));
        bounds.contains(&(size - 1)) && (is_square || !bounds.contains(&size))
    };
    let reads_neighbours =
        size > program.thresholds().few && program.peak_temporaries().any(|array| is_short(&array.bounds));
    if reads_neighbours || nodes_of(program, size).is_some() {
        return None;
    }
    let parts = parts_that_help(program, size, peak.iter().copied().filter(|array| is_of_input(array, size)));
    let with_it = program.temporaries().filter(|array| is_of_input(array, size));
    let buffers =
        with_it.filter_map(|array| Some((array.buffer, bytes_of_part(program, array, size, parts)?))).collect();
    Some(Dimension { size, largest, buffers, parts, estimate: None })
}

/// The fewest parts, up to eight, that free about what they would without padding, or those that come nearest to it. A
/// small batch along the lanes leaves more of them empty the smaller it is, until features take its place.
fn parts_that_help<'a, 'm: 'a>(
    program: &ProgramModel<'m>,
    size: u64,
    arrays: impl Iterator<Item = &'a LiveArray<'m>> + Clone,
) -> u64 {
    let bytes = |parts: u64| {
        let parts = arrays.clone().map(|array| bytes_of_part(program, array, size, parts).unwrap_or(array.bytes));
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
/// with, alone or merged with what follows; then those of theirs that weights lack; neither where the array has pairs of them;
/// then any of an argument's. Experts and heads are dimensions of weights, too.
fn input_sizes(program: &ProgramModel<'_>, bounds: &[u64]) -> [HashSet<u64>; 3] {
    let has_pairs = |size: u64| bounds.iter().filter(|bound| **bound == size).count() > 1;
    let [mut first, mut of_batch, mut of_any] = [const { Vec::new() }; 3];
    let mut of_weights = HashSet::new();
    let results = results(program);
    for parameter in program.parameters() {
        let Ok(shape) = parameter.shape() else { continue };
        let is_of_batch = is_input(&name(&parameter)) && !results.contains(&shape.without_layout().to_string());
        for (_, leaf) in shape.leaves() {
            let mut merged = 1_u64;
            for bound in leaf.dimensions().iter().filter_map(|dimension| dimension.bound()) {
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
    first.retain(|size| !has_pairs(*size));
    of_batch.retain(|size| !has_pairs(*size) && !of_weights.contains(size));
    [first, of_batch, of_any].map(HashSet::from_iter)
}

/// The shapes of what the program returns, where it takes a gradient: those of weights and states.
fn results(program: &ProgramModel<'_>) -> HashSet<String> {
    let result = program.module.entry().and_then(|entry| entry.root()?.shape().ok());
    let result = result.filter(|_| program.has_gradient());
    result.iter().flat_map(Shape::leaves).map(|(_, leaf)| leaf.without_layout().to_string()).collect()
}

/// Which dimension of which of the input's arrays has this size: where some begin with it, those. Weights have features
/// that may be as many: they count only where all that the program returns is of parts as well.
fn of_input(program: &ProgramModel<'_>, size: u64, is_apart: bool) -> Option<(usize, Vec<String>)> {
    let parameters = program.parameters();
    let place = |at: &Instruction<'_>| {
        let shape = at.shape().ok()?;
        shape.dimensions().iter().position(|dimension| dimension.bound() == Some(size))
    };
    let counts = |at: &&Instruction<'_>| is_input(&name(at)) || is_apart && place(at) == Some(0);
    let inputs: Vec<(String, Option<usize>)> =
        parameters.iter().filter(counts).map(|at| (name(at), place(at))).collect();
    let first = inputs.iter().filter_map(|(_, place)| *place).min()?;
    let is_first = |place: &Option<usize>| *place == Some(first);
    // By the parameter of the function, whether all of its arrays have it there; some arrays of a model do by chance.
    let mut roots: HashMap<&str, bool> = HashMap::new();
    for (name, place) in &inputs {
        *roots.entry(root(name)).or_insert(true) &= is_first(place);
    }
    let have_it = || inputs.iter().filter(|(_, place)| is_first(place)).map(|(name, _)| name.as_str());
    let mut seen = HashSet::new();
    let mut names: Vec<&str> = have_it().map(root).filter(|root| roots[root] && seen.insert(*root)).collect();
    if names.is_empty() {
        names = have_it().collect();
    }
    Some((first, names.into_iter().map(str::to_owned).collect()))
}

/// Keys of random numbers that are the same for all parts unless they are split.
fn keys(program: &ProgramModel<'_>, size: u64) -> Vec<String> {
    let parameters = program.parameters();
    parameters
        .iter()
        .filter(|at| is_key(at) && !at.shape().is_ok_and(|shape| begins_with(&shape, size)))
        .map(name)
        .collect()
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

/// Of a list, most of what no other rule knows better.
fn of_message<'a>(evidence: &dyn Evidence, message: &'a MessageModel<'_>) -> Option<Dimension<'a>> {
    let has_own_rule = |array: &ListedArray<'_>| is_copied_argument(array.row) || is_logits(array) || is_scores(array);
    let temporaries = message.arrays.iter().filter(|array| array.role == Role::Temporary);
    let rows: Vec<&ListedArray<'_>> =
        temporaries.filter(|array| !is_converted(array.row) && !has_own_rule(array)).collect();
    let size = common_size(&rows)?;
    let with_it = || rows.iter().copied().filter(|row| row.bounds.contains(&size));
    let shapeless = message.temporaries.iter().copied().filter(|row| row.shape.is_none() && !is_converted(row));
    let listed = total(rows.iter().map(|array| array.row).chain(shapeless), Allocation::taken_bytes);
    let held = total(with_it().map(|array| array.row), Allocation::taken_bytes);
    if u128::from(held) * 100 < u128::from(listed) * u128::from(evidence.thresholds().most) {
        return None;
    }
    let largest = with_it().max_by_key(|row| row.row.taken_bytes())?;
    let parts = evidence.thresholds().parts.iter().copied().max().unwrap_or(PARTS);
    Some(Dimension {
        size,
        largest,
        buffers: with_it().map(|array| (array.number, array.row.taken_bytes() / parts)).collect(),
        parts,
        estimate: Some(evidence.extrapolated(held, Listed::Bytes) / parts * (parts - 1)),
    })
}

/// The size of a dimension that most have. Of those that nearly as much has as of any, the leading one, which is the
/// batch; then the longest.
fn common_size(rows: &[&ListedArray<'_>]) -> Option<u64> {
    // By size: what all with it take, and the largest of them with the place of the dimension.
    let mut sizes: HashMap<u64, (u64, u64, usize)> = HashMap::new();
    for row in rows {
        let (bounds, taken) = (&row.bounds, row.row.taken_bytes());
        for (at, size) in bounds.iter().enumerate().filter(|(_, size)| **size >= PARTS) {
            if bounds[..at].contains(size) {
                continue;
            }
            let (held, largest, place) = sizes.entry(*size).or_default();
            *held = held.saturating_add(taken);
            if taken >= *largest {
                (*largest, *place) = (taken, at);
            }
        }
    }
    let most = sizes.values().map(|(held, ..)| *held).max()?;
    let is_common = |held: u64| u128::from(held) * 10 >= u128::from(most) * 9;
    let common = sizes.into_iter().filter(|(_, (held, ..))| is_common(*held));
    common.max_by_key(|(size, (.., place))| (Reverse(*place), *size)).map(|(size, _)| size)
}
