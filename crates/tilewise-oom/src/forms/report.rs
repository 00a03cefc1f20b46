//! Logs and statistics without a failure, and warnings.

use super::{Judged, Rule};
use crate::form::Form;
use crate::level::Level::{Report, Warning};
use crate::message::Message;
use crate::text::reader::Reader;
use crate::text::size::PrintedSize;
use crate::verdict::OomVerdict;

const FITS: Judged = Judged::As(OomVerdict::Fits);

pub(super) const RULES: &[Rule] = &[
    Rule {
        memory: Some("hbm"),
        opens: &[
            "reduce memory use below ({limit:size}|{below_zero:below_zero}) [by rematerialization] [only reduced to {used:size}[, down from {original:size} [originally]]]",
        ],
        ..Rule::new(Form::Rematerialization, Warning, Judged::As(OomVerdict::RematLimit), "rematerialization")
    },
    Rule {
        opens: &[
            "Involuntary full rematerialization[ … from sharding {from:braces} to {to:braces}[ … HLO operation {instruction:instruction}]]",
        ],
        ..Rule::new(Form::Resharding, Warning, Judged::As(OomVerdict::Resharding), "resharding")
    },
    Rule {
        memory: Some("hbm"),
        opens: &[
            "KV cache page size calculated by vLLM {counted:bytes} does not match with actual page size used by [{kernel:name}] kernel {used:bytes}",
            "~page size calculated {counted:bytes} … actual page size … {used:bytes}",
        ],
        ..Rule::new(Form::CachePage, Warning, Judged::As(OomVerdict::Padding), "kv_cache")
    },
    Rule {
        opens: &[
            "program HBM usage {used:size} [of] {limit:size}",
            "program VMEM usage {vmem_used:size} [of] {vmem_limit:size}",
            "program SMEM usage {smem_used:size} [of] {smem_limit:size}",
            "program CMEM usage {cmem_used:size} [of] {cmem_limit:size}",
        ],
        then: Some(usage),
        ..Rule::new(Form::Usage, Report, FITS, "statistics")
    },
    Rule {
        memory: Some("hbm"),
        opens: &[
            "AllocatorStats",
            "Num Allocs {allocations:number}",
            "bytes_in_use {in_use:bytes}",
            "peak_bytes_in_use ({peak:size}|{peak:bytes})",
            "largest_free_block_bytes {largest:bytes}",
            "bytes_reservable_limit {reservable:bytes}",
        ],
        adds: &[
            "In Use {in_use:size}",
            "Peak In Use {peak:size}",
            "Largest Alloc Size {largest_allocation:size}",
            "Limit {limit:size}",
            "Reserved {reserved:size}",
            "Peak Reserved {peak_reserved:size}",
            "Reservable Limit {reservable:size}",
            "Largest Free Block {largest:size}",
            "bytes_limit {limit:bytes}",
            "bytes_reserved {reserved:bytes}",
            "peak_bytes_reserved {peak_reserved:bytes}",
            "largest_alloc_size {largest_allocation:bytes}",
            "num_allocs {allocations:number}",
        ],
        suffices: &["in_use", "limit"],
        then: Some(allocator),
        ..Rule::new(Form::AllocatorStatistics, Report, FITS, "statistics")
    },
    Rule {
        memory: Some("hbm"),
        opens: &[
            "TPU Memory profiling",
            "*Memory statistics [{statistics:line}]",
            "total_hbm_limit_gb {limit_text:name}",
            "(GPU|TPU) KV cache size {statistics:line}",
            "*Init (kv|model) [cache] … hbm {hbm_used:name} {hbm_limit:name}",
        ],
        adds: &[
            "available_device_memory {device:line}",
            "available_kv_cache {cache:name}",
            "max_tokens {tokens:number}",
            "cell_size {cell:bytes}",
        ],
        then: Some(server),
        ..Rule::new(Form::ServerStatistics, Report, FITS, "statistics")
    },
    Rule {
        opens: &["BufferAssignment allocation {allocation:number} size {size:number}"],
        ..Rule::new(Form::BufferAssignment, Report, FITS, "statistics")
    },
];

/// Takes the figures of HBM if the log has them, otherwise those of VMEM, SMEM or CMEM.
fn usage(_: &mut Reader<'_>, message: &mut Message) {
    for (space, used, limit) in [
        ("hbm", "", ""),
        ("vmem", "vmem_used", "vmem_limit"),
        ("smem", "smem_used", "smem_limit"),
        ("cmem", "cmem_used", "cmem_limit"),
    ] {
        if message.used.is_none() && message.facts.has(used) {
            (message.used, message.limit) = (message.facts.take_size(used), message.facts.take_size(limit));
        }
        if message.used.is_some() && message.memory_space.is_none() {
            message.memory_space = Some(space.to_owned());
        }
    }
}

/// The used bytes: those in use, and those that programs reserve.
fn allocator(_: &mut Reader<'_>, message: &mut Message) {
    let in_use = message.facts.size("in_use");
    message.used = match (in_use, message.facts.size("reserved")) {
        (Some(in_use), Some(reserved)) => Some(PrintedSize::sum(in_use, reserved)),
        (in_use, reserved) => in_use.or(reserved).cloned(),
    };
}

/// The used bytes: tokens × bytes of a token.
fn server(_: &mut Reader<'_>, message: &mut Message) {
    let tokens = message.facts.number("tokens").zip(message.facts.size("cell"));
    message.used = tokens.and_then(|(tokens, cell)| Some(PrintedSize::exact(tokens.checked_mul(cell.bytes())?)));
}
