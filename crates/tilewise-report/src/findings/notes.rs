//! What fills a program's memory at its peak, by kind, and what can be done about each.

use super::words::{at, modules, quoted};
use crate::style::bytes;
use tilewise_audit::{Machine, Note, Purpose, Width};

/// A note in words, without a full stop; with a remedy, if its arrays fill the memory.
#[must_use]
pub fn note(note: &Note, machine: Machine) -> String {
    let names = if note.names.is_empty() { String::new() } else { format!(", {}", quoted(&note.names)) };
    let largest = note.largest.as_ref();
    let largest = largest.map(|(shape, source)| format!(", the largest {shape}{}", at(source.as_ref())));
    let largest = largest.unwrap_or_default();
    let (what, more, then) = match note.purpose {
        Purpose::Parameter => {
            let then = match (note.has_gradient, note.width) {
                (_, Width::Byte) | (true, Width::Half) => "shard them over more devices",
                (true, Width::Full) => "shard them over more devices, or hold them in bfloat16",
                (false, Width::Half) => "hold them in int8, or shard them over more devices",
                (false, Width::Full) => "hold them in bfloat16 or int8, or shard them over more devices",
            };
            ("Parameters", names, then)
        }
        Purpose::OptimizerState if note.width < Width::Full => (
            "State of the optimizer",
            names,
            "shard it over the devices that have the same parameters (ZeRO, FSDP), use an optimizer that keeps less \
             (Adafactor, Lion), or keep it in the host's memory between updates",
        ),
        Purpose::OptimizerState => (
            "State of the optimizer",
            names,
            "shard it over the devices that have the same parameters (ZeRO, FSDP), hold it in bfloat16, use an optimizer \
             that keeps less (Adafactor, Lion), or keep it in the host's memory between updates",
        ),
        Purpose::Cache if note.width == Width::Byte => {
            ("Cache", names, "bound its length, or shard it over heads or sequences")
        }
        Purpose::Cache => {
            ("Cache", names, "hold it in int8 or float8, bound its length, or shard it over heads or sequences")
        }
        Purpose::OtherArgument => ("Arguments", names, "pass them in a smaller type or in parts, or shard them"),
        Purpose::Result => {
            ("Results that lie in no donated argument", largest, "return less, or return them in a smaller type")
        }
        Purpose::Logits => {
            ("Logits and what a softmax makes of them", largest, "compute the cross entropy in chunks of tokens")
        }
        Purpose::Kept => (
            "Values that the forward pass keeps for the backward pass",
            format!("{}{largest}", layers(note)),
            if note.is_recomputed {
                "take fewer samples at a time and add up the gradients: these layers are already recomputed"
            } else if machine == Machine::Cpu {
                "take fewer samples at a time and add up the gradients, compute them in bfloat16, or run the layers in a loop \
                 (`jax.lax.scan`) with `jax.checkpoint` around its step: XLA for CPUs recomputes nothing outside of loops"
            } else if note.width < Width::Full {
                "recompute them (`jax.checkpoint`, `nn.remat` or `hk.remat` around each layer), or take fewer samples at a \
                 time and add up the gradients"
            } else {
                "recompute them (`jax.checkpoint`, `nn.remat` or `hk.remat` around each layer), compute them in bfloat16, or \
                 take fewer samples at a time and add up the gradients"
            },
        ),
        Purpose::Gradient if note.width < Width::Full => {
            ("Gradients of parameters", largest, "shard them as the parameters")
        }
        Purpose::Gradient => {
            ("Gradients of parameters", largest, "shard them as the parameters, or add them up in bfloat16")
        }
        Purpose::CopyOfArgument => (
            "Copies of arguments in another type, layout or memory",
            largest,
            "pass the arguments as their readers want them",
        ),
        Purpose::Workspace => (
            "Workspace of library routines",
            names,
            "choose another algorithm or routine, or give it less at once: the routine asks for these bytes itself",
        ),
        Purpose::LoopCarry => ("What loops carry", largest, "carry less, or carry it in a smaller type"),
        _ => ("Intermediate values", largest, "work through the input in parts, or compute in a smaller type"),
    };
    let then = if note.is_main { format!(". To reduce this, {then}") } else { String::new() };
    format!("{what}: {}, {} %{more}{then}", bytes(note.bytes), note.percent)
}

/// `, 644.00 MiB of the largest of 4 layers `transformer/h/*``, where values that are kept repeat.
fn layers(note: &Note) -> String {
    let Some(layers) = &note.layers else { return String::new() };
    let path = layers.path.as_ref().map(|path| format!(" `{path}`")).unwrap_or_default();
    format!(", {} of the largest of {} layers{path}{}", bytes(layers.bytes), layers.count, modules(layers))
}
