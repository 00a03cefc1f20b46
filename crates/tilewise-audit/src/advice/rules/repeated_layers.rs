//! What unrolled layers keep for the backward pass: all but their inputs can be recomputed, a layer at a time.

use crate::advice::{
    change::Target,
    evidence::Evidence,
    finding::{Finding, Library, RepeatedLayers},
    layers::Layers,
    program::ProgramModel,
    rule::{Proposal, Rule},
};
use crate::program::is_recomputed;
use tilewise_memory::Machine;

pub(crate) struct LayersKeepValues;

impl Rule for LayersKeepValues {
    /// XLA for CPUs drops the barriers around what is to be computed again, and then computes it once: of three programs,
    /// nothing was freed.
    fn holds_on(&self, machine: Machine) -> bool {
        machine != Machine::Cpu
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    let kept = program.kept_values();
    let layers = Layers::of(&kept)?;
    let at_peak = || layers.recomputed().filter(|value| value.array.is_at_peak);
    let largest = at_peak().max_by_key(|value| value.array.bytes)?;
    let resident = program.total_bytes.saturating_sub(program.temporary_bytes);
    let freed = |held: u64| program.total_bytes.saturating_sub(resident.saturating_add(held));
    // The compiler computes some values again when the layer's backward pass begins, and others only when they are read: in ten of
    // eleven programs, recompiling left more than a third of the way from all of them late to all of them early.
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

/// The library that the layers are of.
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
