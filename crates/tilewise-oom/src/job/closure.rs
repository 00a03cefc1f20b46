//! Arrays that a compiled function reads without taking them as arguments.

use super::SEARCHED;
use crate::prose;
use crate::text::tail;

/// Words of such a function, and JAX's own for its arrays.
const CLOSES: [&str; 6] = [
    "closes over",
    "close over",
    "closed over",
    "closing over",
    "closed-over",
    "constants were captured during lowering",
];

/// Calls that compile.
const COMPILERS: [&str; 2] = ["jit(", "pmap("];

/// Whether a text tells that a compiled function closes over an array, or its code compiles one that returns what it isn't given:
/// `jax.jit(lambda: state, out_shardings=shardings)()`.
pub(super) fn closes_over(log: &str, lower: &str) -> bool {
    // The alarm of that pass of XLA's comes with arrays that a program makes itself, too.
    let is_folded =
        prose::tells(lower, &[&["constant folding", "constant-folding"], &["oom", "memory"]], &["n't ", "not "]);
    const FOLDS: [&str; 4] = ["constant folding of", "constant-folding of", "constant-folds", "constant folds"];
    let is_told = prose::tells(lower, &[&FOLDS, &["slow", "minute", "memory"]], &["n't ", "not "]);
    is_folded
        || is_told
        || CLOSES.iter().any(|sign| lower.contains(sign))
        || tail(log, SEARCHED).lines().any(returns_outer)
}

fn returns_outer(line: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_. ".contains(c);
    COMPILERS.iter().filter_map(|call| line.split_once(call)?.1.strip_prefix("lambda:")).any(|body| {
        let name = body[..body.find(|c| !is_part(c)).unwrap_or(body.len())].trim();
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && body.contains([',', ')'])
            && !body.contains(&[name, "("].concat())
    })
}

/// Whether code of a text compiles a function without parameters, so that the program makes all its arrays.
pub(super) fn takes_nothing(log: &str) -> bool {
    let lines: Vec<&str> = tail(log, SEARCHED).lines().map(str::trim).collect();
    let is_compiled =
        |line: &str| line.starts_with('@') && COMPILERS.iter().any(|call| line.contains(call.trim_end_matches('(')));
    lines.windows(2).any(|pair| is_compiled(pair[0]) && pair[1].starts_with("def ") && pair[1].ends_with("():"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_return_what_they_are_not_given() {
        assert!(returns_outer("y = jax.jit(lambda: self.params)()"));
        for none in [
            "jax.jit(lambda: init(key))()",
            "jax.jit(lambda x: x)(y)",
            "jit(lambda: 1)",
            "lambda: state",
            "jit(lambda:é",
            "",
        ] {
            assert!(!returns_outer(none), "{none}");
        }
    }

    #[test]
    fn functions_without_parameters() {
        assert!(takes_nothing("@jax.jit\ndef square():\n    a = jnp.ones((9, 9))"));
        assert!(
            !takes_nothing("@jax.jit\ndef square(a):")
                && !takes_nothing("@dataclass\ndef f():")
                && !takes_nothing("def f():")
        );
    }
}
