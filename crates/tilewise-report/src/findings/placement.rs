//! Values in host memory: a result that ends there (E1200), and one that is computed with there.

use super::{Words, code::JAX};
use tilewise_audit::recommendation::finding::PlacementFinding;
use tilewise_oom::Message;

pub(super) fn words(finding: PlacementFinding) -> Words {
    match finding {
        PlacementFinding::Host => Words::new("If the result belongs on the host, say so in `out_shardings`")
            .code(JAX, "step = jax.jit(step, out_shardings=sharding.with_memory_kind('pinned_host'))"),
        PlacementFinding::BeforeUse => {
            Words::new("Bring its inputs to the device before it, and send the result back to the host if it belongs there")
                .code(JAX, "x = jax.device_put(x, jax.memory.Space.Device)  # in the function, before it is computed with")
        }
        _ => Words::new(
            "If it belongs on the device, bring it back before it is returned; `--vmodule=host_offloader=1` in the log shows its \
             way",
        )
        .task("Bring it back to the device before it is returned")
        .code(
            JAX,
            "x = jax.device_put(x, sharding.with_memory_kind('device'))  # in the function, before the return",
        ),
    }
}

/// A value in host memory that the host computes with.
pub(super) fn computed(message: &Message) -> [String; 2] {
    let name = message.facts.text("instruction").map(|name| name.trim_start_matches('%'));
    let name = name.map_or("an instruction".to_owned(), |name| format!("`{name}`"));
    [
        format!("Warning: {name} computes with values in host memory, so the host computes it."),
        "The program runs, and is likely slow there. Its operands are in `pinned_host` memory; no memory ran out."
            .to_owned(),
    ]
}

pub(super) fn answer(message: &Message) -> [String; 2] {
    let name = message.facts.text("instruction").map(|name| name.trim_start_matches('%'));
    let value = name.map(|name| format!(" that begins at {name}")).unwrap_or_default();
    [
        format!("A value{value} is moved to the host and returned, and the program's results are the device's."),
        "The memory of each result is part of the program's signature, and this one's is device memory.".to_owned(),
    ]
}
