//! Most of the peak's temporaries have one dimension of the input in common: parts of that, one after the other.

use super::{
    attention::is_scores,
    copied_weights::is_copied_argument,
    graphs::nodes_of,
    in_parts::{in_parts, is_in_all_results, is_key},
    logits::is_logits,
    narrow::is_converted,
    upstream::FEW,
};
use crate::{
    advice::{
        message::{MessageModel, share_of_all, total},
        parts::{LEAST, bytes_of_part, leading_sizes},
        program::{BufferChanges, LiveArray, ProgramModel},
        purpose::is_input,
        recommendation::{Change, Recommendation, Saving, Target},
        rule::{MessageRule, Proposal, Rule},
        snippet::JAX,
        words::{bounds_text, listed},
    },
    message::Allocation,
    program::{at_line, begins_with, name, op_name, root},
};
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};
use tilewise::Shape;
use tilewise_hlo::{Instruction, dataflow::OpId};
use tilewise_oom::Framework;

/// The hundredths of the peak's temporaries that must have the dimension.
const MOST_OF_THEM: u64 = 60;
/// How many parts the code takes: what remains of a halved array is still the largest.
const PARTS: u64 = 8;

pub(crate) struct OneLargeDimension;

impl Rule for OneLargeDimension {
    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
        proposal(program).into_iter().collect()
    }
}

/// Priced by halves, the least that parts can do.
fn proposal<'m>(program: &ProgramModel<'m>) -> Option<Proposal> {
    let interface = program.total_bytes.saturating_sub(program.temporary_bytes);
    // Where the arguments are as large, their own size is the cause; but what doesn't fit may still fit in parts.
    if program.fits_without(0) && program.temporary_bytes < interface.saturating_add(interface / 2) {
        return None;
    }
    let arguments: HashSet<u64> = program.arguments().map(LiveArray::elements).collect();
    let leading = leading_sizes(program);
    // As many elements as an argument has: a copy of it, or its gradient, which no part of the input makes smaller;
    // unless arguments of several sorts begin with the dimension, as those of a batch do.
    let peak: Vec<&LiveArray<'m>> = program.peak_temporaries().collect();
    let is_of_input = |array: &&LiveArray<'m>, size: u64| {
        let leads = || leading.get(&size).is_some_and(|sorts| sorts.len() > 1);
        let has_it = |array: &LiveArray<'m>| array.bounds.contains(&size);
        // Flattened, it has as many elements as another that has the dimension.
        let is_flat =
            || array.bounds.len() == 1 && peak.iter().any(|at| has_it(at) && at.elements() == array.elements());
        (has_it(array) || is_flat()) && (!arguments.contains(&array.elements()) || leads())
    };
    let all: u64 = peak.iter().map(|array| array.bytes).fold(0, u64::saturating_add);
    // Flattened arrays have no dimension to go by.
    let largest = *peak.iter().max_by_key(|array| (array.bytes, array.bounds.len()))?;
    let (input, trips) = (input_sizes(program, &largest.bounds), trips(program));
    let covered = |size: u64| {
        let with = peak.iter().filter(|array| is_of_input(array, size));
        with.map(|array| array.bytes).fold(0, u64::saturating_add)
    };
    let is_candidate = |size: &u64| *size >= LEAST && !trips.contains(size);
    let is_in_most = |size: &u64| covered(*size) / MOST_OF_THEM >= all / 100;
    // A batch is the outermost: features are in weights, too, and so in more.
    let sizes = || largest.bounds.iter().copied().filter(is_candidate);
    let size = input.iter().find_map(|known| sizes().find(|size| known.contains(size) && is_in_most(size)))?;
    // One short of it, in its place: neighbours are read, which parts don't have.
    // In a square one, both are.
    let is_short = |bounds: &[u64]| {
        let is_square = bounds.len() == 2 && bounds.iter().all(|bound| [size, size - 1].contains(bound));
        bounds.contains(&(size - 1)) && (is_square || !bounds.contains(&size))
    };
    let reads_neighbours = size > FEW && program.peak_temporaries().any(|array| is_short(&array.bounds));
    if reads_neighbours || nodes_of(program, size).is_some() {
        return None;
    }
    let parts = parts_that_help(program, size, peak.iter().copied().filter(|array| is_of_input(array, size)));
    let with_it = program.temporaries().filter(|array| is_of_input(array, size));
    let at_most =
        with_it.filter_map(|array| Some((array.buffer, bytes_of_part(program, array, size, parts)?))).collect();
    let bounds = bounds_text(&largest.bounds);
    let place = at_line(&largest.instruction);
    // Where each part has results of its own, gradients aren't added up: models of an ensemble, or samples whose gradients
    // stay apart.
    let is_apart = program.has_gradient() && is_in_all_results(program, size);
    let (lead, then) = if is_apart {
        ("Take", ", and join the results (`jax.lax.map` with `batch_size`, not `jax.vmap`)")
    } else if program.has_gradient() {
        ("Microbatch (gradient accumulation): take", "; add up the gradients of the parts, and update once")
    } else {
        ("Process", "")
    };
    let what = match of_input(program, size, is_apart) {
        Some((at, names)) => format!(
            "{} along dimension {at}, of size {size}, in parts: most of the peak has it, such as [{bounds}]{place}",
            listed(&names)
        ),
        None => {
            let at = largest.bounds.iter().position(|bound| *bound == size)?;
            format!("dimension {at} of [{bounds}]{place}, of size {size}, in parts: most of the peak has it")
        }
    };
    let keys: Vec<String> = keys(program, size).iter().map(|key| format!("`{key}`")).collect();
    let keys = if keys.is_empty() { String::new() } else { format!("; split {} for each part", listed(&keys)) };
    let freed = match parts {
        2 => "halves free this much, more parts free more".to_owned(),
        parts => format!(
            "{parts} parts free this much, more parts free more; halves free little, since fewer samples leave more of the 128 \
             lanes empty"
        ),
    };
    let sentence = format!("{lead} {what}{then}{keys}; {freed}");
    let code = in_parts(program, largest, size, PARTS);
    Some(Proposal {
        buffers: BufferChanges { at_most, ..BufferChanges::default() },
        is_bound: true,
        parts: Some(parts),
        snippet: code.and_then(|code| program.snippet(JAX, code)),
        ..Proposal::new(Change::Chunk, Target::Value, program.advised(largest), sentence)
    })
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
    let choices = [2, 4, PARTS].into_iter().filter(|parts| size.is_multiple_of(*parts));
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
    let names = names.into_iter().map(|name| format!("`{name}`")).collect();
    Some((first, names))
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

impl MessageRule for OneLargeDimension {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        of_message(message).into_iter().collect()
    }
}

/// Whether another rule knows better what the array is.
fn has_own_rule(row: &Allocation) -> bool {
    is_copied_argument(row) || is_logits(row) || is_scores(row)
}

fn of_message(message: &MessageModel<'_>) -> Option<Recommendation> {
    let rows: Vec<&Allocation> =
        message.temporaries.iter().copied().filter(|row| !is_converted(row) && !has_own_rule(row)).collect();
    let size = common_size(&rows)?;
    let with_it = || rows.iter().copied().filter(|row| row.bounds().contains(&size));
    let (listed, held) =
        (total(rows.iter().copied(), Allocation::taken_bytes), total(with_it(), Allocation::taken_bytes));
    if u128::from(held) * 2 < u128::from(listed) {
        return None;
    }
    let largest = with_it().max_by_key(|row| row.taken_bytes())?;
    let shape = largest.shape.as_ref().map(|shape| shape.without_layout().to_string()).unwrap_or_default();
    let at = largest.bounds().iter().position(|bound| *bound == size).unwrap_or(0);
    let has_gradient = message.has_gradient();
    let sentence = format!(
        "Process dimension {at} of {shape}{}, of size {size}, in parts, one after the other, if it is one of your batch: \
         most of what is listed has it{}; {PARTS} parts free this much at most",
        largest.at_line(),
        if has_gradient { "; take loss and gradient of each part, and add them up" } else { "" }
    );
    let held = share_of_all(held, listed, message.budget.temporary_bytes);
    let found = Recommendation::new(Change::Chunk, Target::Value, sentence)
        .about(shape)
        .saving(Saving::AtMost(held / PARTS * (PARTS - 1)));
    Some(match message.framework {
        Framework::Jax if has_gradient => found.snippet(
            JAX,
            "def add(total, part):
    return jax.tree.map(lambda t, g: t + g / 8, total, jax.grad(loss)(params, part)), None
# parts: the batch, [8, …]; loss: a mean. The gradients of a sum are added up as they are.
total, _ = jax.lax.scan(add, jax.tree.map(jax.numpy.zeros_like, params), parts)",
        ),
        Framework::Jax => {
            let batch = (size / PARTS).max(1);
            found.snippet(JAX, format!("ys = jax.lax.map(f, xs, batch_size={batch})  # f: of one of them"))
        }
        Framework::TorchXla => found.snippet(
            "import torch_xla.core.xla_model as xm",
            format!("for part in batch.chunk({PARTS}):\n    (loss_of(part) / {PARTS}).backward()\n    xm.mark_step()"),
        ),
        Framework::TensorFlow => found.snippet(
            "import tensorflow as tf",
            format!("y = tf.concat([f(part) for part in tf.split(x, {PARTS}, axis={at})], axis={at})"),
        ),
        _ => found,
    })
}

/// The size of a dimension that most have. Of those that nearly as much has as of any, the leading one, which is the
/// batch; then the longest.
fn common_size(rows: &[&Allocation]) -> Option<u64> {
    // By size: what all with it take, and the largest of them with the place of the dimension.
    let mut sizes: HashMap<u64, (u64, u64, usize)> = HashMap::new();
    for row in rows {
        let bounds = row.bounds();
        for (at, size) in bounds.iter().enumerate().filter(|(_, size)| **size >= PARTS) {
            if bounds[..at].contains(size) {
                continue;
            }
            let (held, largest, place) = sizes.entry(*size).or_default();
            *held = held.saturating_add(row.taken_bytes());
            if row.taken_bytes() >= *largest {
                (*largest, *place) = (row.taken_bytes(), at);
            }
        }
    }
    let most = sizes.values().map(|(held, ..)| *held).max()?;
    let is_common = |held: u64| u128::from(held) * 10 >= u128::from(most) * 9;
    let common = sizes.into_iter().filter(|(_, (held, ..))| is_common(*held));
    common.max_by_key(|(size, (.., place))| (Reverse(*place), *size)).map(|(size, _)| size)
}
