//! An optimizer's state for weights that a step doesn't change.

use super::{Words, words::quoted};
use crate::style::bytes;
use tilewise_audit::{Recommendation, recommendation::finding::FrozenState};

/// Names that a sentence and code list.
const MOST: usize = 4;

/// The place of a weight in its tree, `['base']`, if it is one of plain keys.
fn path(name: &str) -> Option<&str> {
    let path = &name[name.find('[')?..];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.[]'".contains(c);
    path.chars().all(is_plain).then_some(path)
}

pub(super) fn words(finding: &FrozenState, about: &Recommendation) -> Words {
    let FrozenState { weights, holder, bytes: taken, .. } = finding;
    let names = if weights.len() > MOST { "the frozen weights".to_owned() } else { quoted(weights) };
    // All of them, or else some would be trained.
    let paths: Option<Vec<String>> = weights.iter().map(|name| Some(format!("\"{}\"", path(name)?))).collect();
    let words = Words::new(format!(
        "Leave {names} out of the optimizer: the step returns them unchanged, and `{holder}` has {} for them, beside gradients that \
         nothing needs",
        bytes(*taken)
    ))
    .task(format!("Leave {names} out of the optimizer: returned unchanged"))
    .caveat("make its state anew, with `optimizer.init(params)`");
    let Some(paths) = paths.filter(|paths| paths.len() <= MOST) else { return words };
    words.jax(
        about,
        "import jax\nimport optax",
        format!(
            "frozen = ({},)
label = lambda path, _: 'frozen' if jax.tree_util.keystr(path).startswith(frozen) else 'trained'
labels = lambda params: jax.tree_util.tree_map_with_path(label, params)
optimizer = optax.multi_transform({{'trained': optimizer, 'frozen': optax.set_to_zero()}}, labels)",
            paths.join(", ")
        ),
    )
}
