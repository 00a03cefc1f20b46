//! A result that ends in host memory (E1200).

use super::{Words, code::JAX};
use tilewise_oom::Message;

pub(super) fn words(is_hosts: bool) -> Words {
    if is_hosts {
        Words::new("If the result belongs on the host, say so in `out_shardings`")
            .code(JAX, "step = jax.jit(step, out_shardings=sharding.with_memory_kind('pinned_host'))")
    } else {
        Words::new(
            "If it belongs on the device, bring it back before it is returned; `--vmodule=host_offloader=1` in the log shows its \
             way",
        )
        .code(
            JAX,
            "x = jax.device_put(x, sharding.with_memory_kind('device'))  # in the function, before the return",
        )
    }
}

pub(super) fn answer(message: &Message) -> [String; 2] {
    let name = message.facts.text("instruction").map(|name| name.trim_start_matches('%'));
    let value = name.map(|name| format!(" that begins at {name}")).unwrap_or_default();
    [
        format!("A value{value} is moved to the host and returned, and the program's results are the device's."),
        "The memory of each result is part of the program's signature, and this one's is device memory; no memory ran out."
            .to_owned(),
    ]
}
