//! An array that each device makes whole on its way from one sharding to another.

use super::{Words, code::SHARDING};
use crate::style::bytes;
use tilewise_audit::recommendation::finding::ReplicatedArray;
use tilewise_oom::{Message, Resharding};

pub(super) fn words(finding: &ReplicatedArray) -> Words {
    if is_of_host(finding.from.as_deref(), finding.array.as_ref()) {
        return Words::new(
            "Nothing, if the program makes it once, as at the start: it only warns. Else make the value outside of the program, and pass it \
             divided: what a callback of the host returns lies on one device first, whatever is asked of it afterwards",
        )
        .task("Nothing, if this is done once, as at the start; else make it before the program")
        .code(SHARDING, "params = jax.device_put(load(), sharding)  # in place of a callback inside jit");
    }
    let to = finding.to.as_ref().map(|to| format!(" ({to})")).unwrap_or_default();
    let what = finding.array.as_ref().map_or("the value".to_owned(), |array| format!("`{}`", array.instruction));
    let pieces = finding.array.as_ref().and_then(|array| array.piece_bytes);
    let pieces = pieces.map(|piece| format!("; devices then exchange pieces of {}", bytes(piece))).unwrap_or_default();
    Words::new(format!(
        "Take {what} to its new sharding{to} in two steps, each of which moves one axis of the mesh{pieces}; or give what it is made from \
         that sharding from its start, without another one on the way"
    ))
    .task("Go to the new sharding in two steps, one mesh axis in each")
    .code(SHARDING, constraint(finding))
}

/// Whether a value is a result of a callback of the host: of several, on one device alone.
fn is_of_host(sharding: Option<&str>, array: Option<&Resharding>) -> bool {
    let is_of_call = |array: &Resharding| {
        ["get-tuple-element", "custom-call", "recv", "infeed"].iter().any(|name| array.instruction.starts_with(name))
    };
    sharding.is_some_and(|sharding| sharding.contains("maximal device")) && array.is_some_and(is_of_call)
}

/// Code that requests the wanted sharding; the axes of its mesh have other names than the program's.
fn constraint(finding: &ReplicatedArray) -> String {
    let parts = finding.array.as_ref().and_then(|array| array.to_parts.as_deref());
    let mut axes = ["'x'", "'y'", "'z'"].into_iter();
    let mut axis = |parts: &u64| if *parts > 1 { axes.next().unwrap_or("…") } else { "None" };
    let axes: Vec<&str> = parts.map_or_else(|| vec!["'x'"], |parts| parts.iter().map(&mut axis).collect());
    format!(
        "x = jax.lax.with_sharding_constraint(x, between)  # a NamedSharding: one mesh axis where it is wanted, the others as they were\n\
         x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec({})))",
        axes.join(", ")
    )
}

pub(super) fn answer(message: &Message) -> [String; 2] {
    let array = message.resharding();
    let what = array.as_ref().map_or("An array".to_owned(), |array| format!("{}, {},", array.instruction, array.shape));
    let path = match (message.facts.text("from"), message.facts.text("to")) {
        (Some(from), Some(to)) => format!(" on its way from {from} to {to}"),
        _ => " on its way from one sharding to another".to_owned(),
    };
    let source = if is_of_host(message.facts.text("from"), array.as_ref()) {
        " It is on one device at first, as the results of a callback of the host are."
    } else {
        ""
    };
    let takes = array.map(|array| {
        let device = bytes(array.device_bytes);
        match array.whole_bytes {
            Some(whole) => format!(" It takes {device} on each device, {} whole.", bytes(whole)),
            None => format!(" It takes {device} on each device."),
        }
    });
    [
        format!("Warning: {what} is made whole on every device{path}."),
        format!(
            "XLA's partitioner knows no cheaper way between the two shardings.{source}{} The program is compiled all the same, \
             and holds and moves the whole array.",
            takes.unwrap_or_default()
        ),
    ]
}
