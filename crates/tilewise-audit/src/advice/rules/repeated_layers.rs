//! Values that unrolled layers keep for the backward pass: all but their inputs can be recomputed, a layer at a time.

use crate::{
    advice::{
        change::Target,
        evidence::{ArrayFact, Evidence},
        finding::{Finding, Library, RepeatedLayers},
        layers::Layers,
        message::{ListedArray, MessageModel, total},
        program::ProgramModel,
        rule::{Proposal, Rule},
    },
    message::Allocation,
    program::is_recomputed,
};
use tilewise_memory::{Machine, Role};

/// The least number of equal arrays that are taken for layers': fewer may be the operands of one operation.
const OF_LAYERS: usize = 4;

pub(crate) struct LayersKeepValues;

impl Rule for LayersKeepValues {
    /// XLA for CPUs drops the barriers around recomputed values, and then computes them once: in three programs,
    /// nothing was freed.
    fn holds_on(&self, machine: Machine) -> bool {
        machine != Machine::Cpu
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let of_message = || evidence.message().and_then(|message| equal_arrays(evidence, message));
        evidence.program().and_then(proposal).or_else(of_message).into_iter().collect()
    }
}

/// Large arrays of one shape and without names in a message: a model has one of each layer alive at once only for its gradient.
fn equal_arrays(evidence: &dyn Evidence, message: &MessageModel<'_>) -> Option<Proposal> {
    let unnamed = |array: &&ListedArray<'_>| array.role == Role::Temporary && array.op_name().is_empty();
    let like = |first: &ListedArray<'_>| {
        let shape = first.shape;
        message.arrays.iter().filter(unnamed).filter(move |array| array.shape == shape).collect::<Vec<_>>()
    };
    let equal = message.arrays.iter().filter(unnamed).map(like).max_by_key(Vec::len)?;
    let listed = total(message.temporaries.iter().copied(), Allocation::taken_bytes);
    let held = total(equal.iter().map(|array| array.row), Allocation::taken_bytes);
    let is_most = u128::from(held) * 100 >= u128::from(listed) * u128::from(evidence.thresholds().min_percent);
    if equal.len() < OF_LAYERS || !is_most {
        return None;
    }
    let finding = Finding::EqualArrays(equal.len());
    let proposal = Proposal::new(finding, Target::Value, equal[0].advised(evidence)).bound();
    Some(proposal.at_most(equal.iter().skip(1).map(|array| (array.number, 0))))
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    let kept = program.kept_values();
    let layers = Layers::of(&kept)?;
    let at_peak = || layers.recomputed().filter(|value| value.array.is_at_peak);
    let largest = at_peak().max_by_key(|value| value.array.bytes)?;
    let resident = program.total_bytes.saturating_sub(program.temporary_bytes);
    let freed = |held: u64| program.total_bytes.saturating_sub(resident.saturating_add(held));
    // The compiler recomputes some values when the layer's backward pass begins, and others only when they are read: in
    // ten of eleven programs, the recompiled size was over a third of the way from all late to all early.
    let [early, late] = [false, true].map(|is_lazy| layers.temporary_bytes(program, is_lazy));
    let bytes = |is: fn(&str) -> bool| {
        let those = layers.recomputed().filter(|value| is(&value.name));
        those.map(|value| value.array.bytes).fold(0, u64::saturating_add)
    };
    let finding = Finding::RepeatedLayers(RepeatedLayers {
        library: library(program),
        layers: layers.checkpointed(),
        is_checkpointed: bytes(is_recomputed) > bytes(|_| true) / 2,
    });
    let proposal = Proposal::new(finding, Target::Value, program.advised(largest.array));
    let proposal = proposal.at_most(layers.recomputed().map(|value| (value.array.buffer, 0)));
    Some(proposal.estimated(freed(late.saturating_add(early.saturating_sub(late) / 3))))
}

/// The library whose layers they are.
fn library(program: &ProgramModel<'_>) -> Library {
    let text = program.module.source();
    let libraries = [
        ("flax/linen/", Library::Linen),
        ("flax/nnx/", Library::Nnx),
        ("haiku/_src/", Library::Haiku),
        ("equinox/nn/", Library::Equinox),
    ];
    libraries.into_iter().find(|(sign, _)| text.contains(sign)).map_or(Library::Jax, |(_, library)| library)
}
