//! Parts of the input, one after the other.

use super::{
    AdviceKind, AdviceTarget,
    rows::FEW,
    scene::{Candidate, Held, Scene},
    words,
};
use std::collections::{HashMap, HashSet};
use tilewise::{Shape, tpu};
use tilewise_hlo::{Instruction, Opcode};

/// Below this a dimension can't be halved to any use.
const LEAST: u64 = 4;
/// The hundredths of the peak's temporaries that must have the dimension.
const MOST_OF_THEM: u64 = 60;

/// What has one dimension of the input in common, halved.
pub(super) fn chunks<'m>(scene: &Scene<'m>, candidates: &mut Vec<Candidate<'m>>) {
    let interface = scene.total_bytes.saturating_sub(scene.temporary_bytes);
    // Where the arguments are as large, their own size is the matter.
    if scene.temporary_bytes < interface.saturating_add(interface / 2) {
        return;
    }
    let arguments: HashSet<u64> = scene.arguments().map(Held::elements).collect();
    let leading = leading_sizes(scene);
    // As many elements as an argument has: a copy of it, or its gradient, which no part of the input makes smaller;
    // unless arguments of several sorts begin with the dimension, as those of a batch do.
    let peak: Vec<&Held<'m>> = scene.peak_temporaries().collect();
    let is_of_input = |held: &&Held<'m>, size: u64| {
        let leads = || leading.get(&size).is_some_and(|sorts| sorts.len() > 1);
        let has_it = |held: &Held<'m>| held.bounds.contains(&size);
        // Flattened, it has as many elements as another that has the dimension.
        let is_flat = || held.bounds.len() == 1 && peak.iter().any(|at| has_it(at) && at.elements() == held.elements());
        (has_it(held) || is_flat()) && (!arguments.contains(&held.elements()) || leads())
    };
    let all: u64 = peak.iter().map(|held| held.bytes).fold(0, u64::saturating_add);
    // Flattened arrays have no dimension to go by.
    let Some(&largest) = peak.iter().max_by_key(|held| (held.bytes, held.bounds.len())) else { return };
    let (input, trips) = (input_sizes(scene), trips(scene));
    let covered = |size: u64| {
        let with = peak.iter().filter(|held| is_of_input(held, size));
        with.map(|held| held.bytes).fold(0, u64::saturating_add)
    };
    let is_candidate = |size: &u64| *size >= LEAST && input.contains(size) && !trips.contains(size);
    let is_in_most = |size: &u64| covered(*size) / MOST_OF_THEM >= all / 100;
    // A batch is the outermost: features are in weights, too, and so in more.
    let mut sizes = largest.bounds.iter().copied().filter(is_candidate);
    let Some(size) = sizes.find(is_in_most) else { return };
    // One short of it: neighbours are read, which parts don't have.
    let reads_neighbours = size > FEW && scene.peak_temporaries().any(|held| held.bounds.contains(&(size - 1)));
    if reads_neighbours {
        return;
    }
    let mut candidate = Candidate::new(AdviceKind::Chunk, AdviceTarget::Value, largest, String::new());
    let halved = scene.temporaries().filter(|held| is_of_input(held, size));
    candidate.resized = halved.filter_map(|held| Some((held.buffer, bytes_of_half(scene, held, size)?))).collect();
    candidate.is_bound = true;
    words::chunk(scene, &mut candidate, size);
    candidates.push(candidate);
}

/// Bytes with the dimension of this size halved: in the same order, or, where it lies along the lanes and fills them no
/// better, in that which the compiler prefers.
fn bytes_of_half(scene: &Scene<'_>, held: &Held<'_>, size: u64) -> Option<u64> {
    let Some(at) = held.bounds.iter().position(|bound| *bound == size) else { return Some(held.bytes.div_ceil(2)) };
    let mut bounds = held.bounds.clone();
    bounds[at] = size.div_ceil(2);
    let half = tpu::layout_for_order(held.element_type(), &bounds, held.minor_to_major(), scene.generation).ok()?;
    let in_order = half.as_array()?.sizes().ok()?.physical_bytes;
    let by_default = scene.default_bytes(held.element_type(), &bounds)?;
    Some(in_order.min(by_default).max(held.bytes / 2))
}

/// The sizes that arguments begin with, each with the bounds of those that do.
fn leading_sizes(scene: &Scene<'_>) -> HashMap<u64, HashSet<Vec<u64>>> {
    let mut leading: HashMap<u64, HashSet<Vec<u64>>> = HashMap::new();
    for bounds in arguments(scene) {
        if let Some(first) = bounds.first() {
            leading.entry(*first).or_default().insert(bounds);
        }
    }
    leading
}

/// The bounds of the program's arguments.
fn arguments(scene: &Scene<'_>) -> Vec<Vec<u64>> {
    let Some(entry) = scene.module.entry() else { return Vec::new() };
    let parameters = entry.instructions().filter(|at| at.opcode() == Opcode::Parameter);
    let shapes = parameters.filter_map(|parameter| parameter.shape().ok());
    let bounds = |leaf: &Shape| leaf.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    shapes.flat_map(|shape| shape.leaves().map(|(_, leaf)| bounds(&leaf)).collect::<Vec<_>>()).collect()
}

/// Sizes that dimensions of the program's input have, alone or its first ones merged.
fn input_sizes(scene: &Scene<'_>) -> HashSet<u64> {
    let mut sizes = HashSet::new();
    for bounds in arguments(scene) {
        sizes.extend(&bounds);
        let mut merged = 1_u64;
        for bound in bounds {
            merged = merged.saturating_mul(bound);
            sizes.insert(merged);
        }
    }
    sizes
}

/// How often loops run: along such a dimension the program takes parts already.
fn trips(scene: &Scene<'_>) -> HashSet<u64> {
    scene.module.instructions().filter_map(|at: Instruction<'_>| at.trip_count()).collect()
}
