//! A result that could take the memory of the argument it is made of.

use super::{
    Words,
    code::{JAX, is_name, tuple},
};
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{Library, UndonatedState},
};

pub(super) fn words(finding: &UndonatedState, about: &Recommendation) -> Words {
    let Some(jit) = &finding.jit else {
        return Words::new(
            "Donate arguments that the caller no longer needs, such as the state before a step: results of the same shape take \
             their place",
        )
        .jax(about, JAX, "step = jax.jit(step, donate_argnums=(0,))  # 0: the argument's number");
    };
    let quoted: Vec<String> = finding.roots.iter().map(|root| format!("`{root}`")).collect();
    let words = Words::new(format!(
        "Donate {}: results of the same shape can take the place of what they replace, if the caller no longer needs the old \
         values",
        quoted.join(" and ")
    ))
    .caveat("the caller can't read the old values afterwards");
    // `args` may be `*args`, which has no name to donate by.
    if !finding.roots.iter().all(|root| is_name(root) && root != "args") {
        return words;
    }
    let function = &jit.function;
    let names = tuple(finding.roots.iter().map(|root| format!("\"{root}\"")));
    let (import, code) = match jit.library {
        Library::Equinox => {
            ("import equinox as eqx", format!("{function} = eqx.filter_jit({function}, donate=\"all\")"))
        }
        Library::Nnx => {
            ("from flax import nnx", format!("{function} = nnx.jit({function}, donate_argnames=({names}))"))
        }
        _ => (JAX, format!("{function} = jax.jit({function}, donate_argnames=({names}))")),
    };
    words.jax(about, import, code)
}
