//! VMEM, SMEM and the SparseCore's memories: what one kernel or instruction needs for itself.

use crate::{
    advice::{Change, Recommendation, Saving, Target, snippet},
    message::{Allocation, Listing},
    program::{bytes_in_words, size_in_words},
};
use std::fmt::Write as _;
use tilewise::{Shape, tpu::kernel::Limits};
use tilewise_oom::{Entry, Form, Framework, Message, PrintedSize, Window, WindowKind};

/// The VMEM of a v7x.
const SMALLEST_OF_TODAY: u64 = 64 << 20;
/// The most VMEM that a TPU has.
const LARGEST_VMEM: u64 = 128 << 20;

const PALLAS: &str = "from jax.experimental import pallas as pl";
const PALLAS_TPU: &str = "from jax.experimental.pallas import tpu as pltpu";

pub(super) fn of(explanation: Listing<'_>, framework: Framework) -> Vec<Recommendation> {
    let message = explanation.message;
    if message.form == Form::SparseCore {
        return vec![sparse_core(message)];
    }
    if message.memory_space.as_deref() == Some("smem") {
        return vec![scalars(explanation)];
    }
    let raised = limit(message, explanation, framework);
    let is_honoured = explanation.generation.and_then(Limits::of).is_some();
    match raised {
        // It costs nothing, and is all that a kernel of one's own needs.
        Some(raised) if is_honoured && is_kernel(explanation) => vec![raised],
        raised => {
            let mut advice = blocks(explanation);
            advice.extend(raised);
            if advice.iter().all(|piece| piece.change == Change::Limit) {
                advice.push(smaller_blocks(message, framework));
            }
            if let (Some(first), Some(cap)) = (advice.first_mut(), cap_in_the_way(explanation)) {
                let _ = write!(first.sentence, "; no higher limit helps: {cap}");
            }
            advice
        }
    }
}

fn windows<'a>(explanation: Listing<'a>) -> Vec<(&'a Allocation, Window)> {
    let rows = explanation.allocations.iter();
    let mut windows: Vec<_> = rows.filter_map(|row| Some((row, row.entry.window()?))).collect();
    windows.sort_by_key(|(row, _)| std::cmp::Reverse(row.taken_bytes()));
    windows
}

/// [`Explanation::declared_and_body_bytes`](super::explanation::Explanation::declared_and_body_bytes)
pub(super) fn declared_and_body_bytes(explanation: Listing<'_>) -> Option<(u64, u64)> {
    let message = explanation.message;
    if message.memory_space.as_deref() != Some("vmem") {
        return None;
    }
    let used = message.used.as_ref().map(PrintedSize::bytes)?;
    let declared = windows(explanation)
        .iter()
        .filter(|(_, window)| matches!(window.kind, WindowKind::Input | WindowKind::Output | WindowKind::Scratch))
        .map(|(row, _)| row.taken_bytes())
        .fold(0, u64::saturating_add);
    (declared > 0).then(|| (declared, used.saturating_sub(declared)))
}

/// Smaller blocks, the largest halved until it fits.
fn blocks(explanation: Listing<'_>) -> Vec<Recommendation> {
    let message = explanation.message;
    let windows = windows(explanation);
    let is_block = |kind| matches!(kind, WindowKind::Input | WindowKind::Output);
    let blocks = windows.iter().filter(|(_, window)| is_block(window.kind));
    let all = blocks.map(|(row, _)| row.taken_bytes()).fold(0, u64::saturating_add);
    let missing = message.budget().missing_bytes.unwrap_or_default();
    let Some((row, window)) = windows.iter().find(|(_, window)| is_block(window.kind) && window.block.is_some()) else {
        let largest = windows.first().filter(|(_, window)| window.kind == WindowKind::Scratch);
        return largest.map(|(row, _)| scratch(row)).into_iter().collect();
    };
    let Some(block) = window.block.as_ref() else { return Vec::new() };
    // The least number of halvings of all blocks that frees what is missing.
    let parts = (1..=10).map(|power| 1_u64 << power).find(|parts| all - all / parts >= missing).unwrap_or(2);
    let buffers = window.buffers.unwrap_or(1);
    let number = window.operand.map(|operand| format!(" {operand}")).unwrap_or_default();
    let (what, likewise) = if parts == 2 { ("Halve", "halved") } else { ("Shrink", "shrunk as much") };
    let smaller = block.parsed.as_ref().ok().map(|shape| divided(shape, parts));
    let to = smaller.as_ref().map(|bounds| format!(" to [{}]", bounds.join(",")));
    let count = windows.iter().filter(|(_, window)| is_block(window.kind)).count();
    let others = if count > 1 {
        format!("; there are {count} windows, and the block of each has to be {likewise}")
    } else {
        String::new()
    };
    let (times, single) = match buffers {
        1 => (String::new(), String::new()),
        _ => {
            let single = "`pipeline_mode=pl.Buffered(1)` keeps one buffer";
            let single = format!(". {single} in place of {buffers}, and does not overlap copies with work");
            (format!(" × {buffers}"), single)
        }
    };
    let sentence = format!(
        "{what} the block of {}{number}{}: {}{times} takes {}{others}{single}",
        window.kind.as_str(),
        to.unwrap_or_default(),
        block.text,
        bytes_in_words(row.taken_bytes()),
    );
    let mut piece = Recommendation::new(Change::Block, Target::Kernel, sentence)
        .about(&*block.text)
        .saving(Saving::Exact(all - all / parts));
    if let Some(bounds) = smaller {
        let block = snippet::tuple(bounds.iter());
        let why = "its steps along that dimension grow as many times";
        piece = piece.snippet(PALLAS, format!("spec = pl.BlockSpec(({block}), index_map)  # {why}"));
    }
    vec![piece]
}

/// The bounds with the largest of them, but for the one on the lanes, divided.
fn divided(block: &Shape, parts: u64) -> Vec<String> {
    let mut bounds: Vec<u64> = block.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    let rows = bounds.len().saturating_sub(1).max(1).min(bounds.len());
    let largest = (0..rows).max_by_key(|at| (bounds[*at], std::cmp::Reverse(*at)));
    // Rows below a tile's eight are padded to it: then the lanes are divided.
    let at = largest
        .filter(|at| bounds[*at] / parts >= 8 || bounds.len() == 1 || bounds.len() > 2 && *at + 2 < bounds.len());
    if let Some(bound) = at.or(bounds.len().checked_sub(1)).and_then(|at| bounds.get_mut(at)) {
        *bound = (*bound).div_ceil(parts);
    }
    bounds.iter().map(u64::to_string).collect()
}

fn scratch(row: &Allocation) -> Recommendation {
    let shape = row.entry.shape.as_ref().map(|shape| shape.text.clone()).unwrap_or_default();
    let sentence = format!(
        "Make the kernel's own scratch {shape} smaller in `scratch_shapes`, or leave it in HBM (`memory_space=pl.ANY`) \
         and copy parts of it in: it takes {}",
        bytes_in_words(row.taken_bytes())
    );
    Recommendation::new(Change::Block, Target::Kernel, sentence).about(shape)
}

/// What of a generation's cap keeps a kernel from getting as much as it needs.
fn cap_in_the_way(explanation: Listing<'_>) -> Option<String> {
    let generation = explanation.generation?;
    let cap = Limits::of(generation)?.cap_bytes;
    let message = explanation.message;
    let used = message.used.as_ref().map(PrintedSize::bytes)?;
    let is_of_vmem = message.memory_space.as_deref() == Some("vmem") && is_kernel(explanation);
    (is_of_vmem && used > cap).then(|| format!("{generation} honours up to {}", bytes_in_words(cap)))
}

/// Whether it is a kernel that the message is about, and not an instruction of the compiler's.
fn is_kernel(explanation: Listing<'_>) -> bool {
    explanation.message.kernel.is_some()
        || explanation.allocations.iter().any(|row| {
            let label = row.entry.label.as_deref().unwrap_or_default();
            row.entry.window().is_some_and(|window| window.kind != WindowKind::Spill)
                || row.entry.instruction().is_some_and(|(_, opcode)| opcode == "custom-call")
                || label.contains("tpu_custom_call")
        })
}

/// A higher limit, where the memory itself has room.
fn limit(message: &Message, explanation: Listing<'_>, framework: Framework) -> Option<Recommendation> {
    let used = message.used.as_ref().map(PrintedSize::bytes)?;
    let limit = message.limit.as_ref().map(PrintedSize::bytes)?;
    // What a kernel may have is 16, 32 or 64 MiB where it doesn't ask for more. Lists tell of the memory itself, too, which
    // is a little less than 64 MiB on a v7x.
    let is_scoped = message.form == Form::Scoped;
    let is_all_of_it = !is_scoped && limit > SMALLEST_OF_TODAY - (1 << 20);
    if message.form == Form::Allocation
        || is_all_of_it
        || message.memory_space.as_deref() != Some("vmem")
        || used > LARGEST_VMEM
        || limit > LARGEST_VMEM / 2
    {
        return None;
    }
    let raised = used.next_multiple_of(1 << 20);
    let known = explanation.generation.and_then(|generation| Some((generation, Limits::of(generation)?)));
    // A larger limit is cut to the cap without a word.
    if known.is_some_and(|(_, limits)| raised > limits.cap_bytes) {
        return None;
    }
    let is_kernel = is_kernel(explanation);
    let most = match known {
        Some((generation, limits)) => format!("{generation} honours up to {}", bytes_in_words(limits.cap_bytes)),
        None => "a v5e or v6e has 128 MiB of VMEM, a core of a v5p or v7x 64 MiB".to_owned(),
    };
    let sentence = format!(
        "Raise the limit to {}{}: {} {} a setting, not all there is ({most})",
        bytes_in_words(raised),
        match (is_kernel, explanation.allocations.is_empty()) {
            (true, _) => ", for a kernel of your own in its compiler_params".to_owned(),
            (false, true) => format!(", for a kernel of Pallas by `vmem_limit_bytes={raised}` in its compiler_params"),
            (false, false) => String::new(),
        },
        message.limit.as_ref().map(size_in_words).unwrap_or_default(),
        if is_scoped { "is" } else { "may be" },
    );
    let piece = Recommendation::new(Change::Limit, Target::Kernel, sentence);
    let flag = format!("xla_tpu_scoped_vmem_limit_kib={}", raised >> 10);
    Some(match (framework, is_kernel) {
        (Framework::Jax, true) => piece.snippet(
            PALLAS_TPU,
            format!(
                "params = pltpu.CompilerParams(vmem_limit_bytes={raised})  # pallas_call(…, compiler_params=params)"
            ),
        ),
        _ => piece.snippet(None, format!("export LIBTPU_INIT_ARGS=\"--{flag}\"")),
    })
}

/// What sets the blocks of a kernel that many programs share.
fn block_parameters(kernel: &str) -> Option<&'static str> {
    const PARAMETERS: [(&str, &str); 6] = [
        ("splash", "`block_q`, `block_kv` and `block_kv_compute` of splash attention's `BlockSizes`"),
        ("ragged_paged_attention", "`num_kv_pages_per_block` and `num_queries_per_block`"),
        ("rpa_", "`num_kv_pages_per_block` and `num_queries_per_block`"),
        ("paged_attention", "`pages_per_compute_block`"),
        ("flash_attention", "`block_q`, `block_k_major` and `block_k` of flash attention's `BlockSizes`"),
        ("gmm", "`tiling`, the block of rows, of the contracted dimension and of columns"),
    ];
    PARAMETERS.iter().find(|(sign, _)| kernel.contains(sign)).map(|(_, parameters)| *parameters)
}

fn smaller_blocks(message: &Message, framework: Framework) -> Recommendation {
    // An instruction may be cut off behind its name.
    let is_named_fusion =
        |entry: &Entry| entry.label.as_deref().is_some_and(|label| label.trim_start_matches('%').starts_with("fusion"));
    let is_fusion = message.entries.iter().any(|entry| match entry.instruction() {
        Some((_, opcode)) => opcode != "custom-call",
        None => is_named_fusion(entry),
    });
    if let Some((kernel, parameters)) = message.kernel.as_deref().and_then(|name| Some((name, block_parameters(name)?)))
    {
        let sentence = format!(
            "Choose smaller blocks for `{kernel}`: {parameters}; each block in VMEM counts twice, for double buffering"
        );
        return Recommendation::new(Change::Block, Target::Kernel, sentence);
    }
    let sentence = if is_fusion {
        "Give the operation less at once (a smaller window, sort or reduction; parts of the batch), or break the fusion \
         around it: one of the compiler's own making needs more than it may have; if it is a plain operation, report it \
         to XLA, with the program"
    } else {
        "Halve the largest blocks of the kernel's BlockSpecs, if it is one of Pallas (for attention: the block sizes of \
         queries and keys): its blocks in VMEM, each counted twice for double buffering, its scratch and its stack are \
         too large; else give the operation parts of the batch"
    };
    let piece = Recommendation::new(Change::Block, Target::Kernel, sentence);
    match (framework, is_fusion) {
        (Framework::Jax, true) => {
            piece.snippet(snippet::JAX, "x = jax.lax.optimization_barrier(x)  # before that operation")
        }
        _ => piece,
    }
}

/// SMEM has what a core's scalar unit reads.
fn scalars(explanation: Listing<'_>) -> Recommendation {
    let windows = windows(explanation);
    let limit = explanation.message.limit.as_ref().map_or(1 << 20, PrintedSize::bytes);
    let most = format!(
        "SMEM has {}, for what the scalar unit reads (indices, lengths, tables of pages)",
        bytes_in_words(limit)
    );
    let sentence = match windows.first() {
        Some((row, window)) => {
            let number = window.operand.map(|operand| format!(" {operand}")).unwrap_or_default();
            let shape = row.shape.as_ref().map(|shape| shape.without_layout().to_string()).unwrap_or_default();
            let then = if window.kind == WindowKind::Prefetched {
                "Prefetch only what chooses the blocks, in parts, and read the rest from VMEM with a BlockSpec of \
                 its own"
            } else {
                "Keep it in VMEM (`pltpu.VMEM`), or copy parts of it in from HBM"
            };
            format!(
                "{then}: {}{number} {shape} takes {} alone, and {most}",
                window.kind.as_str(),
                bytes_in_words(row.taken_bytes())
            )
        }
        None => format!(
            "Serve fewer sequences at once, a shorter context (in vLLM `--max-model-len`, `--max-num-seqs`) or larger \
             pages: {most}; kernels prefetch these (`PrefetchScalarGridSpec`), and they grow with sequences × \
             pages{}",
            largest(explanation).unwrap_or_default()
        ),
    };
    Recommendation::new(Change::Block, Target::Kernel, sentence)
}

/// `. s32[163840] alone takes 640.00 KiB`
fn largest(explanation: Listing<'_>) -> Option<String> {
    let row = explanation.allocations.iter().max_by_key(|row| row.taken_bytes()).filter(|row| row.taken_bytes() > 0)?;
    let shape = row.shape.as_ref()?.without_layout().to_string();
    Some(format!(". {shape} alone takes {}", bytes_in_words(row.taken_bytes())))
}

fn sparse_core(message: &Message) -> Recommendation {
    let sentence = match message.memory_space.as_deref() {
        Some("hbm") => {
            "Divide the embedding tables between more devices, and lower `max_ids_per_partition` and \
             `max_unique_ids_per_partition` to what the data has: one allocation of the SparseCore's program is too \
             large for HBM"
        }
        _ if message.used.as_ref().zip(message.limit.as_ref()).is_some() => {
            "Lower the limits on ids in a partition to what the data has, or the batch; for a kernel of your own, its \
             `scratch_shapes`; for a collective that was offloaded, set \
             `--xla_tpu_enable_sparse_core_collective_offload_all_reduce=false` (or `…_all_gather=false`): what a \
             SparseCore takes at once is too large for its scratchpad"
        }
        _ => "Lower the limits on ids in a partition to what the data has, or the batch",
    };
    Recommendation::new(Change::Block, Target::Kernel, sentence)
}

/// Values that did not fit into registers.
pub(super) fn spills(explanation: Listing<'_>, framework: Framework) -> Vec<Recommendation> {
    let spilled: u64 = windows(explanation)
        .iter()
        .filter(|(_, window)| window.kind == WindowKind::Spill)
        .map(|(row, _)| row.taken_bytes())
        .fold(0, u64::saturating_add);
    let spilled = if spilled > 0 {
        format!("{} are spilled registers", bytes_in_words(spilled))
    } else {
        "VMEM holds spilled registers".to_owned()
    };
    let mut sentence = format!(
        "Work on smaller blocks in a kernel of your own, unroll less, and use values soon after they are read: {spilled}, \
         of one kernel or fusion; arrays in HBM, their layouts and the batch of the model are not the cause"
    );
    sentence.push_str(match framework {
        Framework::TorchXla => {
            ". In a program of PyTorch, look for the operation that unrolls (sort, topk, isin, cumsum over a long \
             dimension), give it less at once, and end the step before it"
        }
        _ => ". Otherwise look for an operation that unrolls (sort, top_k, cumsum over a long dimension), and update libtpu",
    });
    let piece = Recommendation::new(Change::Block, Target::Kernel, sentence);
    let piece = match framework {
        Framework::TorchXla => {
            piece.snippet("import torch_xla.core.xla_model as xm", "xm.mark_step()  # before that operation")
        }
        _ => piece,
    };
    let mut advice = vec![piece];
    advice.extend(limit(explanation.message, explanation, framework));
    advice
}
