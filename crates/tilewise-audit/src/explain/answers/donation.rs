//! Donated arrays that found no result to live in.

use super::answer::Answer;
use crate::{
    advice::{Change, Recommendation, Saving, Target, snippet},
    message::Listing,
    program::bytes_in_words,
};

/// Below this nobody misses the memory.
const SMALL: u64 = 1 << 20;

pub(super) fn answer(explanation: Listing<'_>) -> Answer {
    let message = explanation.message;
    if let Some(platform) = message.facts.text("platform") {
        return Answer {
            headline: format!("Warning: arrays can't be donated on {platform}."),
            cause: "The program runs as if nothing was donated.".to_owned(),
            advice: Vec::new(),
        };
    }
    let held = explanation.allocations.iter().map(|row| row.taken_bytes()).fold(0, u64::saturating_add);
    let arrays = match explanation.allocations.len() {
        0 => "donated arrays".to_owned(),
        1 => format!("a donated array of {}", bytes_in_words(held)),
        count => format!("{count} donated arrays, together {},", bytes_in_words(held)),
    };
    let cause = "A donated array's memory is used for a result of the same shape, type, sharding and memory; there is \
                 none left for these, so they are held twice while the program runs. It runs all the same.";
    let leave_out = Recommendation::new(
        Change::Donate,
        Target::Argument,
        "Donate only what comes back: take inputs such as token ids and lengths out of `donate_argnums`",
    )
    .snippet(snippet::JAX, "step = jax.jit(step, donate_argnums=(0,))  # the state alone");
    let give_back = Recommendation::new(
        Change::Donate,
        Target::Result,
        "Donate a state that the program returns as it came: a result in the same shape, dtype, sharding and memory kind \
         takes its memory; a cast to f32, a slice or another sharding of it does not",
    )
    .saving(if held > 0 { Saving::AtMost(held) } else { Saving::Unknown })
    .snippet(
        snippet::JAX,
        "step = jax.jit(step, donate_argnums=(0,), out_shardings=jax.tree.map(lambda x: x.sharding, state))",
    );
    let is_small = held <= SMALL && !explanation.allocations.is_empty();
    Answer {
        headline: format!("Warning: {arrays} found no result to live in."),
        cause: if is_small { format!("{cause} These are small: it is harmless.") } else { cause.to_owned() },
        advice: if is_small { vec![leave_out] } else { vec![give_back, leave_out] },
    }
}
