//! Machines without tiles: GPUs, hosts, Tenstorrent's.

use super::{Form, Judged, Rule};
use crate::facts::{Fact, FactValue};
use crate::level::Level::{Error, Warning};
use crate::message::Message;
use crate::tables::{Row, Usage};
use crate::text::reader::Reader;
use crate::text::size::PrintedSize;
use crate::verdict::UntiledMachine;

pub(super) const RULES: &[Rule] = &[
    Rule {
        opens: &[
            "Out of memory while trying to allocate [{used:size}]",
            "Out of memory allocating [{used:size}]",
            "Failed to allocate request for {used:size} [on device ordinal {ordinal:number}]",
            "Allocator {:name} ran out of memory trying to allocate {used:size}",
            "CUDA out of memory [Tried to allocate {used:size}]",
            "HIP out of memory [Tried to allocate {used:size}]",
            "MPS backend out of memory",
            "Failed to load in memory {loaded:name}",
            "*CUDA_ERROR_OUT_OF_MEMORY",
            "*hipErrorOutOfMemory",
            "*torch cuda OutOfMemoryError",
            "*torch OutOfMemoryError",
            "*failed to allocate memory on GPU",
            "*OOM when allocating tensor",
            "*by allocator GPU_0_bfc",
            "*CUDNN_STATUS_ALLOC_FAILED",
            "*BufferAssignment OOM Debugging",
            "*BufferAssignment stats",
            "*Buffer {:number} Size {:size}",
        ],
        adds: &[
            "parameter allocation {parameter:size}",
            "constant allocation {constant:size}",
            "maybe_live_out allocation {live_out:size}",
            "preallocated temp allocation {temporary:size}",
            "preallocated temp fragmentation {fragmentation:size}",
            "+total allocation {total:size}",
            "+executable_name {module:name}",
            "+of which {free:size} is free",
            "+already allocated {free:size} free",
            "+Of the allocated memory {held:size} is allocated by PyTorch",
            "+and {cached:size} is reserved by PyTorch but unallocated",
            "+Limit {pool:bytes} InUse {pool_used:bytes}",
        ],
        then: Some(gpu),
        ..Rule::new(Form::Gpu, Error, Judged::Elsewhere(UntiledMachine::Gpu), "gpu")
    },
    Rule {
        opens: &["byte size of input output arguments {used:bytes} exceeds the base limit [{limit:bytes}]"],
        ..Rule::new(Form::GpuArguments, Warning, Judged::Elsewhere(UntiledMachine::Gpu), "gpu")
    },
    Rule {
        memory: Some("host"),
        opens: &[
            "Unable to allocate {used:size} for an array",
            "not enough memory you tried to allocate {used:size}",
            "std bad_alloc",
            "oom kill",
            "oom_kill",
            "Out of memory Killed process",
            "Cannot allocate memory",
        ],
        ..Rule::new(Form::Host, Error, Judged::Elsewhere(UntiledMachine::Host), "gpu")
    },
    Rule {
        opens: &[
            "Not enough space to allocate {used:bytes} {kind:name} buffer across {banks:number} banks[, where each bank needs to store {needed:bytes}[, but bank size is [only] {bank:bytes}]]",
            "Statically allocated circular buffers … grow to {used:bytes} which is beyond max L1 size of {limit:bytes}",
        ],
        adds: &["free {free:bytes}", "largest free block {largest:bytes}", "+allocated {allocated:bytes}"],
        ..Rule::new(Form::Tenstorrent, Error, Judged::Elsewhere(UntiledMachine::Tenstorrent), "gpu")
    },
];

/// The statistics of XLA's buffer assignment are a table like any other.
fn gpu(_: &mut Reader<'_>, message: &mut Message) {
    let names =
        [("parameter", "arguments"), ("constant", "constants"), ("live_out", "results"), ("temporary", "temporaries")];
    let facts = &mut message.facts;
    let row = |(field, name): (&str, &str)| Some(Row { name: name.to_owned(), size: facts.take_size(field)? });
    let rows: Vec<Row> = names.into_iter().filter_map(row).collect();
    if let Some(total) = facts.take_size("total").or_else(|| rows.last().map(|row| row.size.clone())) {
        message.usage = Some(Usage { total, rows });
    }
    if let Some(free) = facts.take_size("pool").zip(facts.take_size("pool_used")) {
        let free = PrintedSize::exact(free.0.bytes().saturating_sub(free.1.bytes()));
        facts.0.push(Fact { name: "free", value: FactValue::Size(free) });
    }
}
