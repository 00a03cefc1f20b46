//! What loops keep for their gradient.

use super::{
    AdviceKind, AdviceTarget,
    scene::{Candidate, Held, Scene},
    words,
};
use std::collections::HashSet;
use tilewise::Shape;
use tilewise_hlo::{Instruction, Opcode};

/// Values stacked over a loop's trips that its backward pass reads: all but what the loop carries can be worked out
/// again.
pub(super) fn checkpoints<'m>(scene: &Scene<'m>, candidates: &mut Vec<Candidate<'m>>) {
    let loops = scene.module.instructions().filter(|at| at.opcode() == Opcode::While && is_forward(at));
    for forward in loops {
        let Some(trips) = forward.trip_count().filter(|trips| *trips > 1) else { continue };
        let of_loop: HashSet<usize> = scene
            .held
            .iter()
            .filter(|held| held.instruction.index() == forward.index())
            .map(|held| held.buffer)
            .collect();
        let mut stacked: Vec<&Held<'m>> = scene
            .peak_temporaries()
            .filter(|held| of_loop.contains(&held.buffer) && held.bounds.first() == Some(&trips))
            .collect();
        stacked.sort_by_cached_key(|held| std::cmp::Reverse(held.bytes));
        let Some(&largest) = stacked.first() else { continue };
        let mut kept = carried(&forward, &largest.bounds[1..]);
        let mut candidate = Candidate::new(AdviceKind::Checkpoint, AdviceTarget::Loop, largest, String::new());
        for held in &stacked {
            if held.bounds == largest.bounds && kept > 0 {
                kept -= 1;
            } else {
                candidate.resized.insert(held.buffer, 0);
            }
        }
        if !candidate.resized.is_empty() {
            words::checkpoint(scene, &mut candidate, stacked.len(), trips);
            candidates.push(candidate);
        }
    }
}

/// Whether a loop runs forward in a program that takes a gradient: JAX's names of operations say so.
fn is_forward(instruction: &Instruction<'_>) -> bool {
    let name = instruction.metadata().and_then(|metadata| metadata.op_name());
    name.is_some_and(|name| name.contains("jvp(") && !name.contains("transpose("))
}

/// How many arrays of these bounds a loop carries, whatever memory they lie in; at least one.
fn carried(forward: &Instruction<'_>, bounds: &[u64]) -> usize {
    let Ok(shape) = forward.shape() else { return 1 };
    let is_one = |leaf: &Shape| {
        let dimensions: Option<Vec<u64>> = leaf.dimensions().iter().map(|dimension| dimension.bound()).collect();
        leaf.as_array().is_some() && dimensions.as_deref() == Some(bounds)
    };
    shape.leaves().filter(|(_, leaf)| is_one(leaf)).count().max(1)
}
