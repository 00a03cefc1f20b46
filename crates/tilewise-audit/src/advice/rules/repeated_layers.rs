//! What unrolled layers keep for the backward pass: all but their inputs can be recomputed, a layer at a time.

use crate::{
    advice::{
        layers::{Layer, Layers},
        program::{BufferChanges, ProgramModel},
        recommendation::{Change, Target},
        rule::{Proposal, Rule},
        snippet::JAX,
    },
    program::{at_line, bytes_in_words},
};
use tilewise_memory::Machine;

pub(crate) struct RepeatedLayers;

impl Rule for RepeatedLayers {
    /// XLA for CPUs drops the barriers around what is to be computed again, and then computes it once: of three programs,
    /// nothing was freed.
    fn holds_on(&self, machine: Machine) -> bool {
        machine != Machine::Cpu
    }

    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
        proposal(program).into_iter().collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>) -> Option<Proposal> {
    let kept = program.kept_values();
    let layers = Layers::of(&kept)?;
    let at_peak = || layers.recomputed().filter(|value| value.array.is_at_peak);
    let largest = at_peak().max_by_key(|value| value.array.bytes)?;
    let at_most = layers.recomputed().map(|value| (value.array.buffer, 0)).collect();
    let resident = program.total_bytes.saturating_sub(program.temporary_bytes);
    // A compiler computes some of a layer's values again when the layer begins, some when they are read: of GPT-2's, Llama's, ViT's
    // and a graph network's layers, recompiling freed between 0.98 and 1.14 times the mean of both.
    let held = u64::midpoint(layers.temporary_bytes(program, false), layers.temporary_bytes(program, true));
    let each = bytes_in_words(layers.layers.iter().map(Layer::bytes).max().unwrap_or(0));
    let (count, modules) = (layers.layers.len(), layers.modules_in_words());
    let (name, where_) = match &layers.path {
        Some(path) => (format!("each of the {count} layers `{path}`"), String::new()),
        None => ("each layer".to_owned(), format!(", {count} by the shapes that repeat")),
    };
    let (checkpoint, import, code) = checkpoint(program);
    let sentence = format!(
        "Put `{checkpoint}` around {name}{where_}: for the backward pass each keeps up to {each}{modules}, most of it {}{}, \
         and could recompute all but its input",
        largest.array.shape.without_layout(),
        at_line(&largest.array.instruction),
    );
    Some(Proposal {
        buffers: BufferChanges { at_most, ..BufferChanges::default() },
        estimate: Some(program.total_bytes.saturating_sub(resident.saturating_add(held))),
        is_bound: true,
        snippet: program.snippet(import, code),
        ..Proposal::new(Change::Checkpoint, Target::Value, program.advised(largest.array), sentence)
    })
}

/// What the library that the layers are of calls it.
fn checkpoint(program: &ProgramModel<'_>) -> (&'static str, &'static str, &'static str) {
    const LIBRARIES: &[(&str, &str, &str, &str)] = &[
        ("flax/linen/", "nn.remat", "import flax.linen as nn", "Layer = nn.remat(Layer)  # the class of the layers"),
        ("flax/nnx/", "nnx.remat", "from flax import nnx", "y = nnx.remat(lambda layer, x: layer(x))(layer, x)"),
        ("haiku/_src/", "hk.remat", "import haiku as hk", "x = hk.remat(layer)(x)"),
        ("equinox/nn/", "eqx.filter_checkpoint", "import equinox as eqx", "x = eqx.filter_checkpoint(layer)(x)"),
    ];
    let text = program.module.source();
    let of_library = LIBRARIES.iter().find(|(sign, ..)| text.contains(sign));
    of_library.map_or(("jax.checkpoint", JAX, "layer = jax.checkpoint(layer)"), |(_, name, import, code)| {
        (*name, *import, *code)
    })
}
