//! What a kernel of the user's own reads and writes: in the order that its blocks have.

use super::{
    AdviceKind, AdviceTarget,
    rows::of_few,
    scene::{Candidate, Held, Scene},
    words,
};
use crate::flow::target;
use tilewise_hlo::Instruction;

/// Kernels written in Pallas.
const PALLAS: &str = "tpu_custom_call";

/// Operands and results with rows of a few columns, for a kernel that could take them transposed.
pub(super) fn transposes<'m>(scene: &Scene<'m>, candidates: &mut Vec<Candidate<'m>>) {
    let mut kernels: Vec<(usize, Instruction<'m>, Vec<&Held<'m>>)> = Vec::new();
    for held in scene.held.iter().filter(|held| held.is_at_peak && of_few(held).is_some()) {
        let Some(kernel) = kernel_of(scene, held) else { continue };
        match kernels.iter_mut().find(|(index, ..)| *index == kernel.index()) {
            Some((_, _, arrays)) => arrays.push(held),
            None => kernels.push((kernel.index(), kernel, vec![held])),
        }
    }
    for (_, kernel, arrays) in kernels {
        let Some(&largest) = arrays.iter().max_by_key(|held| held.bytes) else { continue };
        let mut candidate = Candidate::new(AdviceKind::Transpose, AdviceTarget::Kernel, largest, String::new());
        // What is made of its results, and what its operands are made of, has the kernel's order, too.
        let same = scene.temporaries().filter(|same| same.bounds == largest.bounds && of_few(same).is_some());
        for held in arrays.into_iter().chain(same) {
            if let Some(bytes) = transposed(scene, held) {
                candidate.resized.insert(held.buffer, bytes);
            }
        }
        words::kernel(scene, &mut candidate, &kernel);
        candidates.push(candidate);
    }
}

/// The kernel that makes or reads an array.
fn kernel_of<'m>(scene: &Scene<'m>, held: &Held<'m>) -> Option<Instruction<'m>> {
    let is_kernel = |instruction: &Instruction<'m>| target(instruction) == Some(PALLAS);
    if is_kernel(&held.instruction) {
        return Some(held.instruction);
    }
    scene.flow.readers(&held.instruction).into_iter().find(is_kernel)
}

/// Bytes with the columns before the rows, which then lie along the lanes.
fn transposed(scene: &Scene<'_>, held: &Held<'_>) -> Option<u64> {
    let minor = *held.minor_to_major().first()?;
    let mut bounds = held.bounds.clone();
    let columns = bounds.remove(minor);
    bounds.insert(bounds.len().checked_sub(1)?, columns);
    scene.default_bytes(held.element_type(), &bounds)
}
