//! Values in a wider or a second type.

use super::{Words, code::JAX_AND_NUMPY, words::at};
use tilewise::ElementType;
use tilewise_audit::{Recommendation, recommendation::finding::ConvertedArguments};
use tilewise_oom::Framework;

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

pub(super) fn predicates() -> Words {
    Words::new(
        "Update libtpu, or keep masks as 8-bit integers: this compiler is an old one, and keeps each predicate in 32 bits; masks \
         of dropout need not be kept if their layer is checkpointed",
    )
}
