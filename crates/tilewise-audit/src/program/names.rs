//! Parses names of arguments and operations.

use super::origin::op_name;
use std::borrow::Cow;
use tilewise::Shape;
use tilewise_hlo::Instruction;

/// An argument's name in the program, such as `params['w']`; without metadata its instruction's, as in `%param.1`,
/// which isn't a Python name.
pub(crate) fn name(argument: &Instruction<'_>) -> String {
    let of_metadata = op_name(argument).filter(|name| !name.is_empty() && !root(name).contains('/'));
    of_metadata.map_or_else(|| format!("%{}", argument.name()), Cow::into_owned)
}

/// Whether a name is an instruction's, for lack of one in the program.
pub(crate) fn is_of_instruction(name: &str) -> bool {
    name.starts_with('%')
}

/// The parameter of the Python function that an argument is part of.
pub(crate) fn root(name: &str) -> &str {
    if is_of_instruction(name) { name } else { name.split(['[', '.']).next().unwrap_or(name) }
}

/// Parts of a training state, and of an optimizer's state: trees of their own.
const TREES: &[&str] =
    &["params", "opt_state", "batch_stats", "ema_params", "grads", "mu", "nu", "trace", "acc_grads", "v_row", "v_col"];

/// The tree that an argument is a leaf of: of `state.opt_state[0].mu['w']` that is `mu`, of `batch['x']` it is `batch`.
pub(crate) fn tree(name: &str) -> Option<&str> {
    let words = name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty());
    let known = words.take(8).filter(|word| TREES.contains(word)).last();
    known.or_else(|| Some(root(name)).filter(|root| is_name(root) && !name.contains('/')))
}

/// Whether it can be a variable's name.
pub(crate) fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Whether an array's first dimension has this size.
pub(crate) fn begins_with(shape: &Shape, size: u64) -> bool {
    shape.dimensions().first().and_then(|dimension| dimension.bound()) == Some(size)
}

/// Whether an operation is of the backward pass, by JAX's names.
pub(crate) fn is_backward(name: &str) -> bool {
    name.contains("transpose(")
}

/// Whether an operation is of the forward pass of a gradient, by JAX's names.
pub(crate) fn is_forward(name: &str) -> bool {
    name.contains("jvp(") && !is_backward(name) && !is_of_directions(name)
}

/// Whether an operation is of derivatives of a gradient along many directions at once, as `jax.hessian` takes them, by JAX's names:
/// nothing is kept for a backward pass through them. A gradient through all of it stands before.
pub(crate) fn is_of_directions(name: &str) -> bool {
    name.split_once("vmap(jvp(").is_some_and(|(before, after)| !before.contains("jvp(") && after.contains("jvp("))
}

/// Whether an operation is under a checkpoint, by JAX's names.
pub(crate) fn is_recomputed(name: &str) -> bool {
    name.split('/').any(|word| matches!(word, "checkpoint" | "remat" | "rematted_computation"))
}

/// Deepest nesting of modules that is searched for layers.
const DEEPEST: usize = 16;

/// Each module's path in an operation's name, with a star for its last number, and that number (0 without one).
pub(crate) fn numbered(name: &str) -> Vec<(String, u64)> {
    let (mut before, mut found) = (String::new(), Vec::new());
    for word in modules(name).take(DEEPEST) {
        let base = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let number = word[base.len()..].parse().ok();
        let base = if number.is_some() { base.to_owned() } else { format!("{word}_") };
        found.push((format!("{before}{base}*"), number.unwrap_or(0)));
        before = format!("{before}{word}/");
    }
    found
}

/// The modules of an operation, the outermost first: its name without the compiled function and the primitive.
pub(crate) fn modules(name: &str) -> impl Iterator<Item = &str> {
    let inner = name.rsplit_once('/').and_then(|(before, _)| Some(before.split_once('/')?.1)).unwrap_or_default();
    inner.split('/').map(untransformed).filter(|word| !word.is_empty())
}

/// Strips transformations: `h_0` of `transpose(jvp(h_0))`.
fn untransformed(word: &str) -> &str {
    const TRANSFORMATIONS: [&str; 3] = ["transpose(", "jvp(", "vmap("];
    let mut inner = word;
    while let Some(rest) = TRANSFORMATIONS.iter().find_map(|name| inner.strip_prefix(name)) {
        inner = rest;
    }
    inner.trim_end_matches(')')
}

/// The network's module of an operation, `Model/Block_3/Dense_0`, or the subtree of an argument,
/// `params/Block_3/Dense_0`; empty if its name has none.
pub(crate) fn module_path(name: &str) -> String {
    // XLA joins the names of operations that it merges.
    let name = name.split(';').next().unwrap_or(name);
    if root(name).contains('/') {
        return modules(name).filter(|word| is_module(word)).collect::<Vec<_>>().join("/");
    }
    let parts = name.split(['.', '[', ']', '\'', '"', '/']).filter(|part| !part.is_empty());
    let mut parts: Vec<&str> = parts.collect();
    parts.pop();
    parts.join("/")
}

/// Whether a part of an operation's name is a module: not one that JAX adds for control flow, functions or an einsum.
pub(crate) fn is_module(word: &str) -> bool {
    const FRAMES: [&str; 10] = [
        "while",
        "body",
        "cond",
        "scan",
        "checkpoint",
        "rematted_computation",
        "closed_call",
        "custom_jvp_call",
        "custom_vjp_call",
        "eval_jaxpr",
    ];
    let is_branch = word.starts_with("branch_") && word.ends_with("_fun");
    !(FRAMES.contains(&word) || is_branch || word.starts_with("jit(") || word.contains("->"))
}

/// Merges names that differ only in their numbers; numbers that differ become letters: `ws[i]`.
pub(crate) fn family(names: &[&str]) -> String {
    let numbers = |name: &str| -> Vec<String> {
        let runs = name.split(|letter: char| !letter.is_ascii_digit()).filter(|run| !run.is_empty());
        runs.map(str::to_owned).collect()
    };
    let all: Vec<Vec<String>> = names.iter().map(|name| numbers(name)).collect();
    let mut letters = "ijklmn".chars();
    let (mut at, mut told, mut rest) = (0, String::new(), names.first().copied().unwrap_or_default());
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let end =
            rest[start..].find(|letter: char| !letter.is_ascii_digit()).map_or(rest.len(), |length| start + length);
        told.push_str(&rest[..start]);
        let is_same = all.iter().all(|numbers| numbers.get(at).map(String::as_str) == Some(&rest[start..end]));
        match is_same {
            true => told.push_str(&rest[start..end]),
            false => told.push(letters.next().unwrap_or('n')),
        }
        (rest, at) = (&rest[end..], at + 1);
    }
    told + rest
}

/// A name with `#` for each number; the same for all names of one [`family`].
pub(crate) fn without_numbers(name: &str) -> String {
    let mut kept = String::new();
    for letter in name.chars() {
        match letter {
            '0'..='9' if kept.ends_with('#') => {}
            '0'..='9' => kept.push('#'),
            other => kept.push(other),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{family, is_of_directions, module_path, without_numbers};

    /// Names as JAX 0.12 gives them.
    #[test]
    fn frames_of_jax_are_no_modules() {
        assert_eq!(module_path("jit(step)/jvp(jit(relu))/max"), "");
        assert_eq!(module_path("jit(step)/while/body/eval_jaxpr/jvp()/btd,dh->bth/dot_general"), "");
        assert_eq!(module_path("jit(f)/jvp(Model)/while/body/Block_3/Dense_0/dot_general"), "Model/Block_3/Dense_0");
        assert_eq!(module_path("jit(f)/Model/cond/branch_1_fun/Dense_0/add"), "Model/Dense_0");
        assert_eq!(module_path("jit(f)/transpose(jvp(vmap(Model)))/Dense_0/add"), "Model/Dense_0");
    }

    /// Names as JAX 0.12 gives them: of `jax.hessian`, then of a gradient for each sample, and of a loss that differentiates at each
    /// point.
    #[test]
    fn directions_are_outside_of_any_gradient() {
        assert!(is_of_directions("jit(f)/while/body/vmap(jvp(jvp(ijx,ikx->ijk)))/dot_general"));
        assert!(is_of_directions("jit(f)/vmap(jvp(vmap(transpose(jvp()))))/scatter-add"));
        assert!(!is_of_directions("jit(f)/vmap(jvp())/mul"));
        assert!(!is_of_directions("jit(f)/vmap(transpose(jvp()))/mul"));
        assert!(!is_of_directions("jit(f)/jvp(vmap(jvp(jvp())))/mul"));
    }

    #[test]
    fn joined_names_are_of_the_first_module() {
        assert_eq!(module_path("jit(f)/transpose(jvp())/mul;jit(f)/transpose(jvp())/broadcast_in_dim"), "");
        assert_eq!(module_path("jit(f)/jvp(Model)/Dense_0/mul;jit(f)/jvp(Model)/Dense_1/add"), "Model/Dense_0");
    }

    /// Names of Flax, of an optimizer's state, and of Haiku, whose module names have slashes.
    #[test]
    fn arguments_are_parts_of_their_tree() {
        assert_eq!(module_path("params['encoder']['layer']['0']['kernel']"), "params/encoder/layer/0");
        assert_eq!(module_path("state.opt_state[0].mu['w']"), "state/opt_state/0/mu");
        assert_eq!(module_path("params['lstm/linear']['w']"), "params/lstm/linear");
        assert_eq!(module_path("x"), "");
    }

    #[test]
    fn families_keep_the_numbers_they_share() {
        assert_eq!(family(&["h[0].mu[3]", "h[0].mu[12]"]), "h[0].mu[i]");
        assert_eq!(family(&["w1[2]", "w4[5]"]), "wi[j]");
        assert_eq!(without_numbers("h[0].mu[12]"), "h[#].mu[#]");
    }
}
