//! Machines without tiles: GPUs, hosts, Tenstorrent's.

use super::answer::Answer;
use crate::{
    advice::{Change, Recommendation, Target, snippet},
    message::{Allocation, Listing},
    program::{bytes_in_words, size_in_words},
};
use tilewise_oom::{Form, Framework, Machine, Message, PrintedSize, Section, Verdict};

pub(super) fn answer(explanation: Listing<'_>) -> Answer {
    let message = explanation.message;
    let (place, advice) = match message.machine() {
        Some(Machine::Host) => ("on the host", vec![host()]),
        Some(Machine::Tenstorrent) => ("on a Tenstorrent device", vec![tenstorrent(message)]),
        _ => ("on a GPU", gpu(explanation)),
    };
    let asked = message.used.as_ref().map(|used| format!(": {} asked for", size_in_words(used))).unwrap_or_default();
    let headline = match message.form {
        Form::GpuArguments => "Warning: on a GPU the arguments leave no room for the program.".to_owned(),
        _ => format!("Out of memory {place}{asked}."),
    };
    let why = match message.cause() {
        Some(Verdict::Size) => too_large(message),
        Some(Verdict::Arguments) => " Arguments and results alone exceed what the scheduler may use.".to_owned(),
        Some(Verdict::Reservation) if message.facts.get("loaded").is_some() => {
            " The program itself found no memory: it lies beside the pool that the process set aside for its arrays."
                .to_owned()
        }
        Some(Verdict::Reservation) if message.machine() == Some(Machine::Tenstorrent) => {
            " An empty bank has room for its part: other buffers lie there.".to_owned()
        }
        Some(Verdict::Reservation) => " It is not much that was asked for: others hold the memory.".to_owned(),
        Some(Verdict::Fragmentation) => " Enough is free, but not in one piece.".to_owned(),
        _ => String::new(),
    };
    let cause = format!("This is no message of a TPU: nothing there is tiled, so padding is not the cause.{why}");
    Answer { headline, cause, advice }
}

fn too_large(message: &Message) -> String {
    let row = |name| message.usage.as_ref().and_then(|usage| usage.get(name));
    match row("temporaries").zip(message.used.as_ref()) {
        Some((temporaries, _)) => {
            format!(
                " The program is too large: its temporaries take {}, asked for in one piece.",
                size_in_words(temporaries)
            )
        }
        None => " It is too large.".to_owned(),
    }
}

fn gpu(explanation: Listing<'_>) -> Vec<Recommendation> {
    let message = explanation.message;
    let process =
        |sentence: &str, code: &str| Recommendation::new(Change::Free, Target::Process, sentence).snippet(None, code);
    if message.framework == Some(Framework::Torch) {
        return torch(message);
    }
    match message.cause() {
        Some(Verdict::Reservation) if message.facts.get("loaded").is_some() => vec![process(
            "Leave the pool less of the memory, so that compiled programs find room beside it; and keep constants of a \
             gigabyte out of the program",
            "export XLA_CLIENT_MEM_FRACTION=.6",
        )],
        Some(Verdict::Reservation) => vec![process(
            "See which processes and arrays hold the GPU's memory; a second process of JAX finds three quarters of it taken",
            "nvidia-smi\nexport XLA_PYTHON_CLIENT_PREALLOCATE=false  # or XLA_CLIENT_MEM_FRACTION=.4 for each",
        )],
        Some(Verdict::Fragmentation) => vec![process(
            "Let CUDA's own allocator find the memory, which joins free pieces",
            "export XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async",
        )],
        Some(Verdict::Arguments) => vec![shard()],
        _ => vec![
            smaller(explanation),
            process(
                "If the process shares the GPU, see who holds its memory",
                "nvidia-smi\nexport XLA_PYTHON_CLIENT_PREALLOCATE=false",
            ),
        ],
    }
}

/// Of PyTorch's own allocator.
fn torch(message: &Message) -> Vec<Recommendation> {
    let smaller = Recommendation::new(
        Change::Checkpoint,
        Target::Value,
        "Keep less for the backward pass: fewer samples at once, or checkpoints around the layers",
    )
    .snippet("from torch.utils.checkpoint import checkpoint", "y = checkpoint(layer, x, use_reentrant=False)");
    let pieces =
        Recommendation::new(Change::Free, Target::Process, "Let the allocator join the pieces that it holds free")
            .snippet(None, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    let others = Recommendation::new(Change::Free, Target::Process, "See which processes hold the GPU's memory")
        .snippet(None, "nvidia-smi");
    let asked = message.used.as_ref().map_or(u64::MAX, PrintedSize::bytes);
    match message.facts.size("cached") {
        Some(cached) if cached.bytes() >= asked => vec![pieces, smaller, others],
        Some(_) => vec![smaller, pieces, others],
        None => vec![smaller, others],
    }
}

fn smaller(explanation: Listing<'_>) -> Recommendation {
    let inside = explanation.allocations.iter().filter(|row| row.entry.section == Section::Allocations);
    let largest = inside.max_by_key(|row| row.taken_bytes());
    let start =
        largest.map(|row| format!(": the largest buffer{} takes {}", owner(row), bytes_in_words(row.taken_bytes())));
    let sentence = format!(
        "Make the program smaller: fewer samples at once, or `jax.checkpoint` around what makes the largest buffers{}",
        start.unwrap_or_default()
    );
    Recommendation::new(Change::Checkpoint, Target::Value, sentence)
        .snippet(snippet::JAX, "ys = jax.lax.map(f, xs, batch_size=64)  # in place of jax.vmap(f)(xs)")
}

/// ` of model.py:12`, or of the operation.
fn owner(row: &Allocation) -> String {
    let line = row.source.as_ref().map(|source| format!("{}:{}", source.file, source.line));
    let name = Some(row.op_name()).filter(|name| !name.is_empty()).map(str::to_owned);
    line.or(name).map(|owner| format!(" of {owner}")).unwrap_or_default()
}

fn shard() -> Recommendation {
    Recommendation::new(
        Change::Shard,
        Target::Argument,
        "Divide parameters and optimizer state between devices, or keep the state in the host's memory",
    )
    .snippet(
        "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec",
        "mesh = jax.make_mesh((jax.device_count(),), ('x',))\n\
         state = jax.device_put(state, NamedSharding(mesh, PartitionSpec('x')))",
    )
}

fn host() -> Recommendation {
    Recommendation::new(
        Change::Free,
        Target::Process,
        "Give the job more of the host's memory, or load and convert data and weights in parts: the host's own memory ran \
         out, not the device's",
    )
    .snippet(None, "free -g; ps aux --sort=-rss | head")
}

fn tenstorrent(message: &Message) -> Recommendation {
    let fact = |name| message.facts.size(name).map(PrintedSize::bytes);
    let bank = fact("needed").zip(fact("bank"));
    let bank = bank.map(|(needed, bank)| format!(": each bank would store {needed} of its {bank} bytes"));
    let sentence = match message.cause() {
        Some(Verdict::Size) => "Use smaller shards or blocks: one bank can't hold its part",
        Some(Verdict::Fragmentation) => {
            "Allocate what lives long first, and free what lies between: no free block is large enough"
        }
        _ => "Free buffers of L1 or DRAM before this one, or use smaller shards: others hold the banks",
    };
    Recommendation::new(Change::Block, Target::Kernel, format!("{sentence}{}", bank.unwrap_or_default()))
}
