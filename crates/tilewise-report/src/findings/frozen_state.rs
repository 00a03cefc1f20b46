//! An optimizer's state for weights that a step doesn't change.

use super::{Words, words::quoted};
use crate::style::bytes;
use tilewise_audit::{Recommendation, recommendation::finding::FrozenState};

/// Names that code lists.
const MOST: usize = 4;

pub(super) fn words(finding: &FrozenState, about: &Recommendation) -> Words {
    let FrozenState { weights, holder, bytes: taken, .. } = finding;
    let names = if weights.len() > MOST { "the frozen weights".to_owned() } else { quoted(weights) };
    // A tree's leaf begins with its first key.
    let paths: Vec<String> =
        weights.iter().take(MOST).filter_map(|name| Some(format!("\"{}\"", &name[name.find('[')?..]))).collect();
    Words::new(format!(
        "Leave {names} out of the optimizer: the step returns them unchanged, and `{holder}` has {} for them, beside gradients that \
         nothing needs",
        bytes(*taken)
    ))
    .task(format!("Leave {names} out of the optimizer: returned unchanged"))
    .jax(
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
    .caveat("make its state anew, with `optimizer.init(params)`")
}
