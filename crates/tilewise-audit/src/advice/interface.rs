//! What the caller hands over and gets: only its layout is the caller's to choose.

use super::{
    AdviceKind, AdviceTarget,
    rows::FEW,
    scene::{Candidate, Held, Scene},
    words,
};
use crate::flow::{does, is_elementwise};
use std::collections::{HashMap, HashSet};
use tilewise::tpu;
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Role;

/// How far copies of an argument are followed.
const STEPS: usize = 6;

/// Arguments and results in another order than the default one, which takes less. Those of one shape belong together: a
/// program that reads two of them would bring one into the order of the other.
pub(super) fn orders<'m>(scene: &Scene<'m>, candidates: &mut Vec<Candidate<'m>>) {
    let mut seen = HashSet::new();
    let mut groups: Vec<Vec<(&Held<'m>, u64)>> = Vec::new();
    for held in scene.arguments().chain(scene.results()) {
        let Some(after) = in_default_order(scene, held).filter(|after| *after < held.bytes) else { continue };
        if !seen.insert(held.buffer) {
            continue;
        }
        let is_alike = |group: &&mut Vec<(&Held<'m>, u64)>| {
            group.first().is_some_and(|(first, _)| first.role == held.role && first.bounds == held.bounds)
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push((held, after)),
            None => groups.push(vec![(held, after)]),
        }
    }
    for group in groups {
        let Some(&(about, _)) = group.first() else { continue };
        let target = if about.role == Role::Argument { AdviceTarget::Argument } else { AdviceTarget::Result };
        let mut candidate = Candidate::new(AdviceKind::Order, target, about, String::new());
        for (held, after) in &group {
            candidate.resized.insert(held.buffer, *after);
            if target == AdviceTarget::Argument {
                candidate.resized.extend(copies(scene, held));
            }
        }
        let group: Vec<&Held<'m>> = group.into_iter().map(|(held, _)| held).collect();
        words::order(scene, &mut candidate, &group);
        candidates.push(candidate);
    }
}

/// Bytes of an array in the default order, if it is in another.
fn in_default_order(scene: &Scene<'_>, held: &Held<'_>) -> Option<u64> {
    let default = tpu::default_layout(held.element_type(), &held.bounds, scene.generation).ok()?;
    if default.layout()?.minor_to_major() == held.minor_to_major() {
        return None;
    }
    Some(default.as_array()?.sizes().ok()?.physical_bytes)
}

/// The padded arrays that are made of an argument by moving its elements, and what each takes in the default order:
/// they are in the argument's order because it is.
fn copies<'m>(scene: &Scene<'m>, argument: &Held<'m>) -> HashMap<usize, u64> {
    let mut made: HashSet<usize> = HashSet::from([argument.instruction.index()]);
    let mut front: Vec<Instruction<'m>> = vec![argument.instruction];
    for _ in 0..STEPS {
        let users = front.iter().flat_map(|at| scene.flow.users(at));
        front = users.filter(|user| moves_elements(user) && made.insert(user.index())).collect();
    }
    let padded = scene.temporaries().filter(|held| made.contains(&held.instruction.index()));
    let padded = padded.filter(|held| held.bytes >= held.logical_bytes().saturating_mul(2));
    padded.filter_map(|held| Some((held.buffer, in_default_order(scene, held)?))).collect()
}

fn moves_elements(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.opcode(),
        Opcode::Copy | Opcode::Slice | Opcode::Bitcast | Opcode::GetTupleElement | Opcode::Transpose | Opcode::Reshape
    ) || instruction.opcode() == Opcode::Fusion && (does(instruction, Opcode::Slice) || is_elementwise(instruction))
}

/// Arguments of a few columns, padded in the order that is the default: kept flat where all that reads them is
/// elementwise, as an optimizer's state; else an array for each column.
pub(super) fn columns<'m>(scene: &Scene<'m>, candidates: &mut Vec<Candidate<'m>>) {
    let mut groups: Vec<(&[u64], Vec<&Held<'m>>)> = Vec::new();
    let crossing = || scene.arguments().chain(scene.results());
    for held in crossing().filter(|held| is_padded_by_default(scene, held)) {
        match groups.iter_mut().find(|(bounds, _)| *bounds == held.bounds) {
            Some((_, group)) => group.push(held),
            None => groups.push((&held.bounds, vec![held])),
        }
    }
    for (bounds, group) in groups {
        let Some(&largest) = group.iter().filter(|held| held.is_parameter()).max_by_key(|held| held.bytes) else {
            continue;
        };
        let rows = bounds.iter().take(bounds.len() - 1).fold(1_u64, |rows, bound| rows.saturating_mul(*bound));
        let columns = bounds.last().copied().unwrap_or(1);
        let is_read_elementwise =
            |held: &&Held<'m>| !held.is_parameter() || scene.flow.is_elementwise_to_the_end(&held.instruction);
        // How many arrays of how many elements take the place of one.
        let (kind, arrays, elements) = if group.iter().all(is_read_elementwise) {
            (AdviceKind::Reshape, 1, rows.saturating_mul(columns))
        } else if columns <= FEW && bounds.len() == 2 {
            (AdviceKind::Split, columns, rows)
        } else {
            continue;
        };
        let after = |held: &Held<'m>| scene.default_bytes(held.element_type(), &[elements])?.checked_mul(arrays);
        let mut candidate = Candidate::new(kind, AdviceTarget::Argument, largest, String::new());
        candidate.resized = group.iter().filter_map(|held| Some((held.buffer, after(held)?))).collect();
        let others: Vec<&Held<'m>> = group.iter().copied().filter(|held| held.buffer != largest.buffer).collect();
        words::columns(scene, &mut candidate, &others);
        candidates.push(candidate);
    }
}

/// Whether it is in the default order, and its last dimension, a short one, is padded in that.
fn is_padded_by_default(scene: &Scene<'_>, held: &Held<'_>) -> bool {
    let [.., columns] = held.bounds[..] else { return false };
    let is_short = held.bounds.len() >= 2 && (2..128).contains(&columns);
    let default = tpu::default_layout(held.element_type(), &held.bounds, scene.generation).ok();
    let is_default = default.is_some_and(|default| default.layout() == held.shape.layout());
    is_short && is_default && held.bytes.saturating_sub(held.logical_bytes()) > held.bytes / 16
}

/// Results that could take the place of the arguments they are made of.
pub(super) fn donations<'m>(scene: &Scene<'m>, candidates: &mut Vec<Candidate<'m>>) {
    let mut free: Vec<&Held<'m>> = scene.arguments().filter(|held| !is_donated(scene, held)).collect();
    let mut pairs: Vec<(&Held<'m>, &Held<'m>)> = Vec::new();
    for result in scene.results() {
        let is_its_own = |argument: &&Held<'m>| {
            argument.shape == result.shape && scene.flow.updates(&result.instruction, &argument.instruction)
        };
        if let Some(at) = free.iter().position(is_its_own) {
            pairs.push((free.swap_remove(at), result));
        }
    }
    let Some((largest, _)) = pairs.iter().max_by_key(|(argument, _)| argument.bytes) else { return };
    let mut candidate = Candidate::new(AdviceKind::Donate, AdviceTarget::Argument, largest, String::new());
    candidate.donated_bytes = pairs.iter().map(|(_, result)| result.bytes).fold(0, u64::saturating_add);
    candidate.is_bound = true;
    let arguments: Vec<&Held<'m>> = pairs.iter().map(|(argument, _)| *argument).collect();
    words::donation(scene, &mut candidate, &arguments);
    candidates.push(candidate);
}

/// Whether a result lies in it already.
fn is_donated(scene: &Scene<'_>, argument: &Held<'_>) -> bool {
    scene.held.iter().any(|held| held.buffer == argument.buffer && !held.is_parameter())
        || scene.module.input_output_aliases().is_ok_and(|aliases| {
            aliases.iter().any(|alias| Some(alias.parameter_number) == argument.instruction.parameter_number())
        })
}
