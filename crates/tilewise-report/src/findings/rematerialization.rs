//! Rematerialization that stopped above its target.

use super::{
    Words,
    code::{JAX, SHARDING},
    words::printed,
};
use crate::style::bytes;
use tilewise_audit::Recommendation;
use tilewise_oom::{Message, PrintedSize};

/// Less than a fiftieth saved: nothing was left to recompute.
const LITTLE: u64 = 50;

/// Advice if arguments and results exceed the memory by themselves.
pub(super) fn shard(about: &Recommendation) -> Words {
    Words::new(
        "Divide arguments and results between devices, or keep those that last, such as optimizer state, in the host's memory: \
         together they exceed the memory, whatever the program does",
    )
    .jax(
        about,
        SHARDING,
        "mesh = jax.make_mesh((jax.device_count(),), ('x',))\n\
         state = jax.device_put(state, NamedSharding(mesh, PartitionSpec('x')))",
    )
}

/// Advice if the compiler's own recomputing has reached its end.
pub(super) fn recompute(about: &Recommendation) -> Words {
    Words::new(
        "If an error follows: put `jax.checkpoint` around each layer, or process the batch in parts; the compiler's own \
         recomputing has reached its end",
    )
    .jax(
        about,
        JAX,
        "layer = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)",
    )
}

pub(super) fn answer(message: &Message) -> [String; 2] {
    let size = |size: Option<&PrintedSize>| size.map_or_else(|| "?".to_owned(), printed);
    let reached = message.used.as_ref();
    let below_zero = message.facts.size("below_zero");
    let target = match below_zero {
        Some(missing) => format!("−{}", printed(missing)),
        None => size(message.limit.as_ref()),
    };
    let headline =
        format!("Warning: rematerialization brought the program to {}; its target was {target}.", size(reached));
    let saved = message.facts.size("original").zip(reached);
    let little =
        saved.is_some_and(|(first, reached)| first.bytes().saturating_sub(reached.bytes()) <= first.bytes() / LITTLE);
    let mut cause = match below_zero {
        Some(missing) => format!(
            "The target is the memory less arguments and results, and is below zero: these alone are {} more than the \
             compiler counts on.",
            bytes(missing.bytes())
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
    [headline, cause]
}
