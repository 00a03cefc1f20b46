//! Rematerialization that stopped above its target.

use super::answer::Answer;
use crate::{
    advice::{Change, Recommendation, Target, snippet},
    program::{bytes_in_words, size_in_words},
};
use tilewise_oom::{Message, PrintedSize};

/// Less than a fiftieth saved: nothing was left to recompute.
const LITTLE: u64 = 50;

pub(super) fn answer(message: &Message) -> Answer {
    let size = |size: Option<&PrintedSize>| size.map_or_else(|| "?".to_owned(), size_in_words);
    let reached = message.used.as_ref();
    let below_zero = message.facts.size("below_zero");
    let target = match below_zero {
        Some(missing) => format!("−{}", size_in_words(missing)),
        None => size(message.limit.as_ref()),
    };
    let headline =
        format!("Warning: rematerialization brought the program to {}; its target was {target}.", size(reached));
    let saved = message.facts.size("original").zip(reached);
    let little =
        saved.is_some_and(|(first, reached)| first.bytes().saturating_sub(reached.bytes()) <= first.bytes() / LITTLE);
    let mut cause = match below_zero {
        Some(missing) => format!(
            "The target is the memory less arguments and results, and is below zero: these alone are {} more than there \
             is.",
            bytes_in_words(missing.bytes())
        ),
        None => {
            "The program may still run: this is an estimate of its temporaries, and can be too high. Only an error \
                 after it says that it doesn't fit."
                .to_owned()
        }
    };
    if little {
        cause.push_str(" Recomputing saved next to nothing: what is left is needed all at once.");
    }
    let shard = Recommendation::new(
        Change::Shard,
        Target::Argument,
        "Divide parameters and optimizer state between devices, or keep the state in the host's memory: arguments alone \
         exceed the memory, whatever the program does",
    )
    .snippet(
        "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec",
        "mesh = jax.make_mesh((jax.device_count(),), ('x',))\n\
         state = jax.device_put(state, NamedSharding(mesh, PartitionSpec('x')))",
    );
    let recompute = Recommendation::new(
        Change::Checkpoint,
        Target::Value,
        "If an error follows: put `jax.checkpoint` around each layer, or process the batch in parts; the compiler's own \
         recomputing has reached its end",
    )
    .snippet(
        snippet::JAX,
        "layer = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)",
    );
    Answer { headline, cause, advice: if below_zero.is_some() { vec![shard, recompute] } else { vec![recompute] } }
}
