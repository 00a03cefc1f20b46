//! Machines without tiles: GPUs, hosts, Tenstorrent's.

use crate::{
    advice::{
        Target, conversion,
        finding::{
            ElsewhereFinding::{self, *},
            Finding, LargestBuffer, Transform,
        },
    },
    message::{Allocation, Listing},
};
use tilewise_oom::{Form, Framework, Message, PrintedSize, Section, UntiledMachine, Verdict};

pub(super) fn findings(listing: Listing<'_>) -> Vec<(Finding, Target)> {
    let target = |finding: &ElsewhereFinding| match finding {
        Smaller(_) | TorchCheckpoint | SmallerWorkspace | OffloadLess => Target::Value,
        Bank { .. } | SharedMemory { .. } | OtherKernel => Target::Kernel,
        AnyAlgorithm => Target::Compiler,
        _ => Target::Process,
    };
    let found = of_machine(listing);
    let is_shrunk = found.iter().any(|finding| matches!(finding, Smaller(_)));
    let copy = largest(listing).filter(|_| is_shrunk).and_then(conversion);
    let copy = copy.map(|copy| (Finding::ConvertedArguments(copy), Target::Argument));
    // Fewer samples don't make a copy of a weight smaller.
    let is_most = || largest(listing).zip(listing.message.budget().temporary_bytes);
    let is_most = copy.is_some() && is_most().is_some_and(|(row, all)| row.taken_bytes() > all / 2);
    let found = found.into_iter().filter(|finding| !(is_most && matches!(finding, Smaller(_)))).map(|finding| {
        let target = target(&finding);
        (Finding::Elsewhere(finding), target)
    });
    copy.into_iter().chain(found).collect()
}

/// The largest array inside the program.
fn largest<'a>(listing: Listing<'a>) -> Option<&'a Allocation> {
    let inside = listing.allocations.iter().filter(|row| row.entry.section == Section::Allocations);
    inside.max_by_key(|row| row.taken_bytes())
}

fn of_machine(listing: Listing<'_>) -> Vec<ElsewhereFinding> {
    let message = listing.message;
    let fact = |name| message.facts.size(name).map(PrintedSize::bytes);
    match (message.machine(), message.cause()) {
        _ if message.facts.get("broken").is_some() => vec![Broken],
        // TensorFlow's operation for an array of NumPy's.
        _ if message.facts.text("node") == Some("_EagerConst") => vec![HostArray],
        _ if message.form == Form::SharedMemory => vec![shared_memory(message), OtherKernel],
        _ if message.form == Form::Autotuning && !message.lacks_workspace() => vec![OtherKernel],
        _ if message.form == Form::Autotuning => vec![SmallerWorkspace, AnyAlgorithm],
        _ if message.form == Form::GpuRetry && message.facts.get("pinned").is_some() => vec![Pinned],
        _ if message.form == Form::GpuRetry => vec![NoFailure],
        _ if message.form == Form::HostPool => {
            let asked = message.used.as_ref().map(PrintedSize::bytes);
            vec![HostPool { gigabytes: message.facts.number("pool_gigabytes"), asked }, OffloadLess]
        }
        (Some(UntiledMachine::Host), _) if message.has_damaged_size() => vec![Damaged],
        (Some(UntiledMachine::Host), _) if message.facts.get("pages").is_some() => vec![HostMapping],
        (Some(UntiledMachine::Host), _) if message.facts.get("session").is_some() => vec![HostCode],
        (Some(UntiledMachine::Host), _) if message.facts.get("shell").is_some() => vec![HostKilled],
        (Some(UntiledMachine::Host), _) => vec![Host { is_group: message.is_of_group() }],
        (Some(UntiledMachine::Tenstorrent), cause) => {
            vec![Bank { cause, bytes: fact("needed").zip(fact("bank")).map(|(needed, bank)| [needed, bank]) }]
        }
        _ if message.framework == Some(Framework::Torch) => torch(listing),
        (_, Some(Verdict::Reservation)) if message.facts.get("communicator").is_some() => {
            vec![Pool { is_of_nccl: true }]
        }
        (_, Some(Verdict::Reservation)) if message.facts.get("context").is_some() => vec![Context],
        (_, Some(Verdict::Reservation))
            if ["loaded", "library"].iter().any(|fact| message.facts.get(fact).is_some()) =>
        {
            vec![Pool { is_of_nccl: false }, Processes { is_likely: false }]
        }
        (machine, Some(Verdict::Reservation)) => match message.full_percent() {
            Some(percent) => vec![Alive { percent }, smaller(listing)],
            None => vec![Processes { is_likely: machine != Some(UntiledMachine::Unnamed) }],
        },
        (_, Some(Verdict::Fragmentation)) => vec![Fragmented],
        (_, Some(Verdict::Size)) => vec![smaller(listing)],
        // Of a device that may be a host, nothing tells that it is shared.
        (Some(UntiledMachine::Unnamed), _) if !makes_little(message) => vec![smaller(listing)],
        _ if makes_little(message) => vec![Processes { is_likely: false }],
        _ => vec![smaller(listing), Processes { is_likely: false }],
    }
}

/// Whether temporaries take less than a twentieth of arguments and results.
fn makes_little(message: &Message) -> bool {
    const LITTLE: u64 = 20;
    let budget = message.budget();
    let beside = [budget.argument_bytes, budget.output_bytes].into_iter().flatten().fold(0, u64::saturating_add);
    budget.temporary_bytes.is_some_and(|made| made < beside / LITTLE)
}

/// Smaller blocks of a kernel.
fn shared_memory(message: &Message) -> ElsewhereFinding {
    let figures = message.used.as_ref().zip(message.limit.as_ref());
    let percent = figures.map(|(used, limit)| limit.bytes().saturating_mul(100) / used.bytes().max(1));
    let fusion = message.facts.text("function").filter(|name| name.contains("fusion")).map(str::to_owned);
    let is_of_pallas = message.named.pallas;
    SharedMemory { percent, fusion, is_of_pallas }
}

/// Findings on PyTorch's own allocator.
fn torch(listing: Listing<'_>) -> Vec<ElsewhereFinding> {
    let message = listing.message;
    let asked = message.used.as_ref().map_or(u64::MAX, PrintedSize::bytes);
    match message.facts.size("cached") {
        _ if message.cause() == Some(Verdict::Reservation) => vec![TorchProcesses, TorchCheckpoint],
        Some(cached) if cached.bytes() >= asked => vec![TorchFragmented, TorchCheckpoint, TorchProcesses],
        Some(_) => vec![TorchCheckpoint, TorchFragmented, TorchProcesses],
        None => vec![TorchCheckpoint, TorchProcesses],
    }
}

fn transform(op_name: &str) -> Option<Transform> {
    // The names of operations in TensorFlow's `GradientTape`.
    let signs = [("vmap(", Transform::Map), ("jvp(", Transform::Gradient), ("gradient_tape/", Transform::Gradient)];
    signs.into_iter().find_map(|(sign, transform)| op_name.contains(sign).then_some(transform))
}

/// Whether an operation makes random bits, outside of a gradient.
fn is_random(op_name: &str) -> bool {
    let is_of_bits = |name: &str| ["threefry2x32", "random_bits", "rng_bit_generator"].contains(&name);
    op_name.split('/').any(is_of_bits) && transform(op_name) != Some(Transform::Gradient)
}

fn smaller(listing: Listing<'_>) -> ElsewhereFinding {
    Smaller(largest(listing).map(|row| {
        let own = row.source.as_ref().filter(|source| !source.is_installed());
        let line = own.map(|source| [&*source.file, &source.line.to_string()].join(":"));
        let name = Some(row.op_name()).filter(|name| !name.is_empty()).map(str::to_owned);
        let leading = row.shape.as_ref().and_then(|shape| shape.dimensions().first()?.bound());
        LargestBuffer {
            owner: line.or(name),
            bytes: row.taken_bytes(),
            is_one_sample: leading == Some(1),
            is_random: is_random(row.op_name()),
            transform: transform(row.op_name()),
        }
    }))
}
