//! Donated arrays that found no result to live in.

use super::{Words, code::JAX};
use crate::style::bytes;
use tilewise_audit::{Explanation, recommendation::finding::DonationFinding};

pub(super) fn words(finding: DonationFinding) -> Words {
    match finding {
        DonationFinding::State => Words::new(
            "Donate a state that the program returns as it came: a result in the same shape, dtype, sharding and memory kind takes \
             its memory; a cast to f32, a slice or another sharding of it does not",
        )
        .code(
            JAX,
            "step = jax.jit(step, donate_argnums=(0,), out_shardings=jax.tree.map(lambda x: x.sharding, state))",
        ),
        _ => Words::new(
            "Donate only what comes back: take inputs, such as a batch and its labels, out of `donate_argnums`",
        )
        .code(JAX, "step = jax.jit(step, donate_argnums=(0,))  # the state alone"),
    }
}

pub(super) fn answer(explanation: &Explanation) -> [String; 2] {
    let message = &explanation.message;
    if let Some(platform) = message.facts.text("platform") {
        return [
            format!("Warning: arrays can't be donated on {platform}."),
            "The program runs as if nothing was donated.".to_owned(),
        ];
    }
    let held = explanation.allocations.iter().map(|row| row.taken_bytes()).fold(0, u64::saturating_add);
    let arrays = match explanation.allocations.len() {
        0 => "donated arrays".to_owned(),
        1 => format!("a donated array of {}", bytes(held)),
        count => format!("{count} donated arrays, together {},", bytes(held)),
    };
    let cause = "A donated array's memory is used for a result of the same shape, type, sharding and memory; there is \
                 none left for these, so that donating them frees nothing. It runs all the same.";
    let harmless = if explanation.is_harmless { " These are small: it is harmless." } else { "" };
    [format!("Warning: {arrays} found no result to live in."), format!("{cause}{harmless}")]
}
