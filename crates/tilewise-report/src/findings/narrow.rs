//! Values in a wider or a second type.

use super::{
    Words,
    code::{JAX_AND_NUMPY, is_name},
    words::{at, quoted},
};
use crate::style::bytes;
use tilewise::ElementType;
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{ConvertedArguments, WideState, WideStateKind},
};
use tilewise_oom::Framework;

/// Narrows a weight.
const NARROWED: &str = "lambda w: w.astype(jnp.bfloat16) if w.dtype == jnp.float32 else w";

pub(super) fn converted(finding: &ConvertedArguments, about: &Recommendation) -> Words {
    let element = finding.element_type;
    if element == ElementType::F32 {
        // Arguments in f32 would take twice the bytes of 16 bits.
        return Words::new(format!(
            "Compute in the type that arrays are stored in: the program holds copies in f32 of arrays in another type{}",
            at(finding.source.as_ref())
        ))
        .task("Compute in the stored type, without copies in f32");
    }
    let words = Words::new(format!(
        "Convert arguments, such as weights, to {element} once, before the program: it holds copies in {element} of arrays in \
         another type{}, if those are arguments",
        at(finding.source.as_ref())
    ))
    .task(format!("Convert weights to {element} once, before the program"));
    match about.framework {
        Some(Framework::Jax) if element == ElementType::Bf16 => words.code(
            JAX_AND_NUMPY,
            "params = jax.jit(lambda p: jax.tree.map(lambda w: w.astype(jnp.bfloat16), p), donate_argnums=0)(params)",
        ),
        Some(Framework::TorchXla) if element == ElementType::Bf16 => {
            words.code("import torch", "model = model.to(torch.bfloat16)")
        }
        _ => words,
    }
}

pub(super) fn state(finding: &WideState, about: &Recommendation) -> Words {
    const ROUNDED: &str = "its values are rounded to 8 significant bits";
    let (roots, taken) = (quoted(&finding.roots), bytes(finding.bytes));
    let state = if finding.keys.is_empty() { roots.clone() } else { format!("{} of {roots}", quoted(&finding.keys)) };
    match finding.kind {
        WideStateKind::FirstMoment => Words::new(format!(
            "Keep the optimizer's first moment, {taken} of {roots} in f32, in bfloat16; the second stays in f32"
        ))
        .task("Keep the optimizer's first moment in bfloat16 (f32 now)")
        .jax(
            about,
            "import jax.numpy as jnp\nimport optax",
            "optimizer = optax.adamw(learning_rate, mu_dtype=jnp.bfloat16)  # or another of optax",
        )
        .caveat(ROUNDED),
        WideStateKind::Moments => Words::new(format!(
            "Use Adafactor in place of Adam, whose two moments take {taken} of {roots}: it keeps a sum of each row and column"
        ))
        .task("Use Adafactor in place of Adam: it keeps no moments")
        .jax(about, "import optax", "optimizer = optax.adafactor(learning_rate)  # in place of optax.adam or adamw")
        .caveat("it learns otherwise: choose its learning rate anew"),
        WideStateKind::Weights => {
            let code = match &finding.roots[..] {
                [root] if is_name(root) => {
                    format!("{root} = jax.tree.map({NARROWED}, {root})")
                }
                _ => format!("params = jax.tree.map({NARROWED}, params)"),
            };
            Words::new(format!("Pass {roots}, {taken} in f32, in bfloat16: no gradient updates them"))
                .task(format!("Pass {roots} in bfloat16 (f32 now)"))
                .jax(about, JAX_AND_NUMPY, code)
                .caveat("their values are rounded to 8 significant bits; drop the old arrays")
        }
        WideStateKind::Carry => Words::new(format!(
            "Carry the array through the loop in bfloat16, which takes {taken} in f32: what it begins with, and what each step makes of it"
        ))
        .task("Carry the array through the loop in bfloat16 (f32 now)")
        .jax(
            about,
            JAX_AND_NUMPY,
            "carry = jnp.zeros(shape, jnp.bfloat16)  # where the loop begins\n\
             carry = carry + new.astype(carry.dtype)  # in its step",
        )
        .caveat("each step rounds its values to 8 significant bits: float32 sums of many steps are surer"),
        _ => Words::new(format!("Make {state}, {taken} in f32, in bfloat16, and what is written into it"))
            .task(format!("Make {state} in bfloat16 (f32 now)"))
            .caveat(format!("cast what is written into it, too; {ROUNDED}")),
    }
}

pub(super) fn predicates() -> Words {
    Words::new(
        "Update libtpu, or keep masks as 8-bit integers: this compiler is an old one, and keeps each predicate in 32 bits; masks \
         of dropout need not be kept if their layer is checkpointed",
    )
}
