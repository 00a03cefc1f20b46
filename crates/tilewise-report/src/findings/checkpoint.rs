//! Values that loops and layers keep for the backward pass: all but their inputs can be recomputed.

use super::{
    Words,
    code::JAX,
    words::{at_line, bare, modules},
};
use crate::style::bytes;
use std::borrow::Cow;
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{KeptByLoop, Library, RepeatedLayers},
};
use tilewise_oom::Framework;

/// A text doesn't show the cost of recomputing; with the step at hand, the compiler does.
pub(super) const BY_TIME: &str = "recomputing takes time; `tilewise.remat(step, *args)` in Python asks a TPU's compiler which values take the least of it";

pub(super) fn of_loop(finding: &KeptByLoop, about: &Recommendation) -> Words {
    let place = at_line(about);
    let Some((steps, arrays)) = finding.steps else {
        if finding.is_checkpointed {
            return Words::new(format!(
                "Save less under the checkpoint that is there{place}: by their names its policy saves these arrays of each layer beside the layer's \
                 input. A trainer has an option for the policy, such as `remat_policy`"
            ))
            .task("Save less under the checkpoint that is there: its policy keeps these")
            .jax(
                about,
                JAX,
                "layer = jax.checkpoint(layer, policy=jax.checkpoint_policies.nothing_saveable)  # in place of the policy now",
            );
        }
        let words = Words::new(format!(
            "Put a checkpoint around the layer or the loop's step that makes what is kept for the gradient{place}: those values \
             are then recomputed"
        ))
        .task("Recompute the layer or the loop's step (a checkpoint around it)");
        return around_a_layer(words, about);
    };
    if let Some(segments) = finding.segments {
        return of_segments((segments, steps / segments), about);
    }
    let (checkpoint, import, code) = of_step(finding);
    let arrays = if arrays == 1 { "an array".to_owned() } else { format!("{arrays} arrays") };
    let module = finding.module.as_ref().map(|module| format!(" of `{module}`")).unwrap_or_default();
    let it = match finding.loops {
        1 => "it".to_owned(),
        loops => format!("each of the {loops} times that it runs, it"),
    };
    let sentence = if finding.is_checkpointed {
        format!(
            "Save less under the checkpoint around the step of the loop{module}{place}: its policy saves {arrays} of all its \
             {steps} steps for the gradient, and `jax.checkpoint_policies.nothing_saveable` only what the loop carries"
        )
    } else {
        format!(
            "Put `{checkpoint}` around the step of the loop{module}{place}: {it} keeps {arrays} of all its {steps} steps for the \
             gradient, and could recompute them from what it carries"
        )
    };
    let task = if finding.is_checkpointed {
        format!("Save nothing under the checkpoint around the step of the loop{module}")
    } else {
        let step = match &finding.class {
            Some(class) => format!("the loop's step, `{class}`,"),
            None => format!("the step of the loop{module}"),
        };
        format!("Recompute {step} in the backward pass (`{checkpoint}`)")
    };
    Words::new(sentence).task(task).jax(about, import, code)
}

/// Checkpoints around segments of a loop's steps.
fn of_segments((segments, of_each): (u64, u64), about: &Recommendation) -> Words {
    let place = at_line(about);
    let steps = segments * of_each;
    Words::new(format!(
        "Put `jax.checkpoint` around each {of_each} of the loop's {steps} steps{place}: it keeps all of them for the gradient, and \
         each step carries about as much as it keeps; then what is carried stays of every {of_each}th step, and the rest is \
         recomputed, {of_each} steps at a time"
    ))
    .task(format!("Recompute the loop's steps {of_each} at a time in the backward pass"))
    .jax(
        about,
        JAX,
        format!(
            "def segment(carry, xs):  # step, carry and xs: those of your scan\n    \
             return jax.lax.scan(step, carry, xs)  # without xs: length={of_each}\n\
             xs = jax.tree.map(lambda x: x.reshape({segments}, {of_each}, *x.shape[1:]), xs)\n\
             carry, ys = jax.lax.scan(jax.checkpoint(segment), carry, xs)  # without xs: length={segments}\n\
             ys = jax.tree.map(lambda y: y.reshape({steps}, *y.shape[2:]), ys)"
        ),
    )
}

/// The function that recomputes a loop's step, its imports and its call.
fn of_step(finding: &KeptByLoop) -> (&'static str, &'static str, Cow<'static, str>) {
    let (checkpoint, import, code) = match (finding.library, finding.is_checkpointed) {
        (Library::Haiku, true) => (
            "hk.remat",
            "import haiku as hk\nimport jax",
            "step = hk.remat(step, policy=jax.checkpoint_policies.nothing_saveable)  # in place of its policy now",
        ),
        (Library::Haiku, false) if finding.is_stack => (
            "hk.remat",
            "import haiku as hk",
            "layer = hk.remat(layer)  # what layer_stack(…) is given: stack = layer_stack(n)(layer)",
        ),
        (Library::Haiku, false) => {
            ("hk.remat", "import haiku as hk", "ys, state = hk.dynamic_unroll(hk.remat(step), xs, state)")
        }
        (Library::Linen, is_checkpointed) => {
            if !is_checkpointed {
                return ("nn.remat", "import flax.linen as nn", linen_classes(finding.class.as_slice()).into());
            }
            let class = finding.class.as_deref().unwrap_or("Step");
            let code = format!(
                "nn.scan(nn.remat({class}, policy=jax.checkpoint_policies.nothing_saveable), …)  # in place of its policy now"
            );
            return ("nn.remat", "import flax.linen as nn\nimport jax", code.into());
        }
        (_, true) => (
            "jax.checkpoint",
            JAX,
            "step = jax.checkpoint(step, policy=jax.checkpoint_policies.nothing_saveable)  # in place of its policy now",
        ),
        (_, false) => ("jax.checkpoint", JAX, "carry, ys = jax.lax.scan(jax.checkpoint(step), carry, xs)"),
    };
    (checkpoint, import, code.into())
}

/// A checkpoint around a layer, in the framework's own words.
pub(super) fn around_a_layer(words: Words, about: &Recommendation) -> Words {
    match about.framework {
        Some(Framework::Jax) => words.code(JAX, "layer = jax.checkpoint(layer)  # or the step of a jax.lax.scan"),
        Some(Framework::TorchXla) => {
            words.code("from torch_xla.utils.checkpoint import checkpoint", "y = checkpoint(layer, x)")
        }
        Some(Framework::TensorFlow) => words.code("import tensorflow as tf", "layer = tf.recompute_grad(layer)"),
        _ => words,
    }
}

/// Equal arrays without names.
pub(super) fn of_equal(count: usize, about: &Recommendation) -> Words {
    let words = Words::new(format!(
        "If the model is trained, put a checkpoint around each layer: {count} equal arrays, {}, are alive at once, most likely one of \
         each layer for the gradient",
        bare(about)
    ))
    .task("If the model is trained, recompute each layer for the gradient");
    around_a_layer(words, about)
}

/// A checkpoint on the call of classes. Around a class it would name the parameters anew: `CheckpointBlock_0`.
fn linen_classes(classes: &[String]) -> String {
    let which = match classes {
        [] => "the class of the layers".to_owned(),
        [class] => format!("class {class}"),
        classes => format!("the classes {}", classes.join(", ")),
    };
    format!(
        "@nn.remat  # in {which}, above @nn.compact; for a flag after x: @functools.partial(nn.remat, static_argnums=(2,))"
    )
}

pub(super) fn of_layers(finding: &RepeatedLayers, about: &Recommendation) -> Words {
    let of_classes = linen_classes(&finding.layers.classes);
    let (checkpoint, import, code) = match finding.library {
        Library::Linen => ("nn.remat", "import flax.linen as nn", &*of_classes),
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
    // A number that only shapes tell needn't be that of the layers a reader knows.
    let which = match &layers.path {
        Some(_) => format!("each of the {} layers", layers.count),
        None => "each layer".to_owned(),
    };
    if finding.is_checkpointed {
        return Words::new(format!(
            "Save less under the checkpoint around {name}{shapes}: its policy saves {}{} of the largest, most of it {}{}; \
             `jax.checkpoint_policies.nothing_saveable` saves only the input",
            bytes(layers.bytes),
            modules(layers),
            bare(about),
            at_line(about),
        ))
        .task(format!("Save nothing under the checkpoint around {which}"));
    }
    Words::new(format!(
        "Put `{checkpoint}` around {name}{shapes}: for the backward pass the largest keeps {}{}, most of it {}{}, and each could \
         recompute all but its input",
        bytes(layers.bytes),
        modules(layers),
        bare(about),
        at_line(about),
    ))
    .task(format!("Recompute {which} in the backward pass (`{checkpoint}`)"))
    .jax(about, import, code)
}
