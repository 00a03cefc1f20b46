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
    match jitted(finding) {
        Some(Jitted { import, call, option }) => {
            let function = &jit.function;
            let above = match jit.library {
                Library::Equinox => format!("@{call}({option})"),
                _ => format!("@functools.partial({call}, {option})"),
            };
            words.jax(
                about,
                import,
                format!("{function} = {call}({function}, {option})  # or above its `def`: {above}"),
            )
        }
        None => words,
    }
}

/// The `jit` of a function that donates.
pub(crate) struct Jitted {
    import: &'static str,
    /// `jax.jit`
    pub(crate) call: &'static str,
    /// `donate_argnames=("state",)`
    pub(crate) option: String,
}

/// The `jit` with donation; `None` without a known `jit`, or for an argument without a name.
pub(crate) fn jitted(finding: &UndonatedState) -> Option<Jitted> {
    let library = finding.jit.as_ref()?.library;
    // `args` may be `*args`, which has no name to donate by.
    let all = || finding.donated.iter().chain(&finding.roots);
    if !all().all(|root| is_name(root) && root != "args") {
        return None;
    }
    let names: Vec<String> = all().map(|root| format!("\"{root}\"")).collect();
    let names = tuple(names.iter());
    let named = format!("donate_argnames=({names})");
    let (import, call, option) = match library {
        Library::Equinox => ("import equinox as eqx", "eqx.filter_jit", "donate=\"all\"".to_owned()),
        Library::Nnx => ("from flax import nnx", "nnx.jit", named),
        _ => (JAX, "jax.jit", named),
    };
    Some(Jitted { import, call, option })
}
