//! What loops and layers keep for the backward pass: all but their inputs can be recomputed.

use super::{
    Words,
    code::JAX,
    words::{at_line, bare, modules},
};
use crate::style::bytes;
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{KeptByLoop, Library, RepeatedLayers},
};
use tilewise_oom::Framework;

pub(super) fn of_loop(finding: &KeptByLoop, about: &Recommendation) -> Words {
    let place = at_line(about);
    let Some((steps, arrays)) = finding.steps else {
        let words = Words::new(format!(
            "Put a checkpoint around the layer or the loop's step that makes what is kept for the gradient{place}: those values \
             are then recomputed"
        ));
        return match about.framework {
            Some(Framework::Jax) => words.code(JAX, "layer = jax.checkpoint(layer)  # or the step of a jax.lax.scan"),
            Some(Framework::TorchXla) => {
                words.code("from torch_xla.utils.checkpoint import checkpoint", "y = checkpoint(layer, x)")
            }
            Some(Framework::TensorFlow) => words.code("import tensorflow as tf", "layer = tf.recompute_grad(layer)"),
            _ => words,
        };
    };
    let (checkpoint, import, code) = match finding.library {
        Library::Haiku => {
            ("hk.remat", "import haiku as hk", "ys, state = hk.dynamic_unroll(hk.remat(step), xs, state)")
        }
        Library::Linen => {
            ("nn.remat", "import flax.linen as nn", "Step = nn.remat(Step)  # the class that nn.scan or nn.RNN runs")
        }
        _ => ("jax.checkpoint", JAX, "carry, ys = jax.lax.scan(jax.checkpoint(step), carry, xs)"),
    };
    let arrays = if arrays == 1 { "an array".to_owned() } else { format!("{arrays} arrays") };
    Words::new(format!(
        "Put `{checkpoint}` around the step of the loop{place}: it keeps {arrays} of all its {steps} steps for the gradient, and \
         could recompute them from what it carries"
    ))
    .jax(about, import, code)
}

pub(super) fn of_layers(finding: &RepeatedLayers, about: &Recommendation) -> Words {
    let (checkpoint, import, code) = match finding.library {
        Library::Linen => ("nn.remat", "import flax.linen as nn", "Layer = nn.remat(Layer)  # the class of the layers"),
        Library::Nnx => ("nnx.remat", "from flax import nnx", "y = nnx.remat(lambda layer, x: layer(x))(layer, x)"),
        Library::Haiku => ("hk.remat", "import haiku as hk", "x = hk.remat(layer)(x)"),
        Library::Equinox => ("eqx.filter_checkpoint", "import equinox as eqx", "x = eqx.filter_checkpoint(layer)(x)"),
        _ => ("jax.checkpoint", JAX, "layer = jax.checkpoint(layer)"),
    };
    let layers = &finding.layers;
    let (name, shapes) = match &layers.path {
        Some(path) => (format!("each of the {} layers `{path}`", layers.count), String::new()),
        None => ("each layer".to_owned(), format!(", {} by the shapes that repeat", layers.count)),
    };
    Words::new(format!(
        "Put `{checkpoint}` around {name}{shapes}: for the backward pass each keeps up to {}{}, most of it {}{}, and could \
         recompute all but its input",
        bytes(layers.bytes),
        modules(layers),
        bare(about),
        at_line(about),
    ))
    .jax(about, import, code)
}
