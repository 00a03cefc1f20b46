//! Rematerialization that stopped above its target.

use super::{Words, code::JAX, words::printed};
use crate::style::bytes;
use tilewise_audit::Recommendation;
use tilewise_oom::{Message, PrintedSize};

/// From this multiple of the target on, the doubt is in the program, not in the estimate.
const FAR: u64 = 2;

/// Less than a fiftieth saved: nothing was left to recompute.
const LITTLE: u64 = 50;

/// Advice if arguments and results exceed the memory by themselves.
pub(super) fn shard(about: &Recommendation) -> Words {
    Words::new(
        "Pass and return less: arguments and results together exceed the memory, whatever the program does. Look for the largest, \
         such as a replay buffer, a cache or a table; divide them between devices where there are several, or keep those that last, \
         such as optimizer state, in the host's memory",
    )
    .task("Make arguments and results smaller, or divide them between devices")
    .jax(
        about,
        JAX,
        "# f, args: of the call. [0]… are arguments, [1]… results\n\
         arrays = jax.tree.leaves_with_path((args, jax.eval_shape(f, *args)))\n\
         size = lambda x: x.size * x.dtype.itemsize\n\
         for path, x in sorted(arrays, key=lambda of: -size(of[1]))[:20]: print(jax.tree_util.keystr(path), size(x), x.shape)",
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
    let times =
        reached.zip(message.limit.as_ref()).and_then(|(reached, limit)| reached.bytes().checked_div(limit.bytes()));
    let mut cause = match below_zero {
        None if times.is_some_and(|times| times >= FAR) => format!(
            "That is {} times the target: it may run only if this estimate of its temporaries is as far too high.",
            times.unwrap_or_default()
        ),
        Some(missing) => format!(
            "The target is the memory less arguments and results, and is below zero: these alone are {} more than the \
             compiler counts on. On a GPU with unified memory it may run all the same.",
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
