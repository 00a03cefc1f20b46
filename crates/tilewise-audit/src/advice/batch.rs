//! Parts of the input, one after the other.

use super::{
    AdviceKind, AdviceTarget,
    scene::{Candidate, Held, Scene},
    words,
};
use std::collections::HashSet;
use tilewise_hlo::Instruction;

/// Below this a dimension can't be halved to any use.
const LEAST: u64 = 2;
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
    let peak: Vec<&Held<'m>> = scene.peak_temporaries().collect();
    let all: u64 = peak.iter().map(|held| held.bytes).fold(0, u64::saturating_add);
    // As many elements as an argument has: a copy of it, or its gradient, which no part of the input makes smaller.
    let of_input: Vec<&Held<'m>> = peak.into_iter().filter(|held| !arguments.contains(&held.elements())).collect();
    let Some(&largest) = of_input.iter().max_by_key(|held| held.bytes) else { return };
    let input = input_sizes(scene);
    let covered = |size: u64| {
        let with = of_input.iter().filter(|held| held.bounds.contains(&size));
        with.map(|held| held.bytes).fold(0, u64::saturating_add)
    };
    let candidate_sizes = largest.bounds.iter().copied().filter(|size| *size >= LEAST && input.contains(size));
    // The outermost of those that are in as much.
    let Some(size) = candidate_sizes.rev().max_by_key(|size| covered(*size)) else { return };
    if covered(size) / MOST_OF_THEM < all / 100 || trips(scene).contains(&size) {
        return;
    }
    let mut candidate = Candidate::new(AdviceKind::Chunk, AdviceTarget::Value, largest, String::new());
    let halved = scene.temporaries().filter(|held| held.bounds.contains(&size));
    let halved = halved.filter(|held| !arguments.contains(&held.elements()));
    candidate.resized = halved.map(|held| (held.buffer, held.bytes.div_ceil(2))).collect();
    candidate.is_bound = true;
    words::chunk(scene, &mut candidate, size);
    candidates.push(candidate);
}

/// Sizes that dimensions of the program's input have, alone or its first ones merged.
fn input_sizes(scene: &Scene<'_>) -> HashSet<u64> {
    let mut sizes = HashSet::new();
    let Some(entry) = scene.module.entry() else { return sizes };
    for parameter in entry.instructions().filter(|at| at.opcode() == "parameter") {
        let Ok(shape) = parameter.shape() else { continue };
        for (_, leaf) in shape.leaves() {
            let bounds: Vec<u64> = leaf.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
            sizes.extend(&bounds);
            let mut merged = 1_u64;
            for bound in bounds {
                merged = merged.saturating_mul(bound);
                sizes.insert(merged);
            }
        }
    }
    sizes
}

/// How often loops run: along such a dimension the program takes parts already.
fn trips(scene: &Scene<'_>) -> HashSet<u64> {
    scene.module.instructions().filter_map(|at: Instruction<'_>| at.trip_count()).collect()
}
