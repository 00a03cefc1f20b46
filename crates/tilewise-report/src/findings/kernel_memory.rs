//! VMEM, SMEM and the SparseCore's memories: what one kernel or instruction needs for itself.

use super::{
    Words,
    code::{JAX, tuple},
    words::{list, printed},
};
use crate::style::bytes;
use tilewise::tpu::Generation;
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{BlockFinding, KernelLimit},
};
use tilewise_oom::{Framework, WindowKind};

const PALLAS: &str = "from jax.experimental import pallas as pl";
const PALLAS_TPU: &str = "from jax.experimental.pallas import tpu as pltpu";

/// The message has no blocks; the function has.
const WHICH_FIT: &str = "`tilewise kernel FILE.py:FACTORY --space NAME=A,B,C`, or `tw.suggest_blocks`, finds blocks that fit, \
                         from the function";

/// `v5p honours up to 63.94 MiB`
fn honoured((generation, cap): (Generation, u64)) -> String {
    format!("{generation} honours up to {}", bytes(cap))
}

/// What of a generation's cap keeps a kernel from getting as much as it needs.
fn no_higher(cap: Option<(Generation, u64)>) -> String {
    cap.map(|cap| format!("; no higher limit helps: {}", honoured(cap))).unwrap_or_default()
}

fn number(operand: Option<u32>) -> String {
    operand.map(|operand| format!(" {operand}")).unwrap_or_default()
}

pub(super) fn block(finding: &BlockFinding, about: &Recommendation) -> Words {
    match finding {
        BlockFinding::Window { .. } => window(finding),
        BlockFinding::Scratch { shape, bytes: taken, cap } => Words::new(format!(
            "Make the kernel's own scratch {shape} smaller in `scratch_shapes`, or leave it in HBM (`memory_space=pl.ANY`) and \
             copy parts of it in: it takes {}{}",
            bytes(*taken),
            no_higher(*cap)
        )),
        BlockFinding::Library { kernel, cap } => Words::new(format!(
            "Choose smaller blocks for `{kernel}`: {}; each block in VMEM counts twice, for double buffering. {WHICH_FIT}{}",
            block_parameters(kernel).unwrap_or_default(),
            no_higher(*cap)
        )),
        BlockFinding::Fusion { cap } => {
            let words = Words::new(format!(
                "Give the operation less at once (a smaller window, sort or reduction; parts of the batch), or break the fusion \
                 around it: a compiler-generated fusion exceeds its limit; if it is a plain operation, report it to XLA, with \
                 the program{}",
                no_higher(*cap)
            ));
            words.jax(about, JAX, "x = jax.lax.optimization_barrier(x)  # before that operation")
        }
        BlockFinding::Unlisted { cap, is_all_of_v7x } => Words::new(format!(
            "Halve the largest blocks of the kernel's BlockSpecs, if it is a Pallas kernel (for attention: the block sizes of \
             queries and keys): its blocks in VMEM, each counted twice for double buffering, its scratch and its stack are too \
             large; else give the operation parts of the batch{}. {WHICH_FIT}{}",
            if *is_all_of_v7x { "; `vmem_limit_bytes` of 128 MiB is worth a try on a v7x" } else { "" },
            no_higher(*cap)
        )),
        BlockFinding::SparseCoreInHbm => Words::new(
            "Divide the embedding tables between more devices, and lower `max_ids_per_partition` and \
             `max_unique_ids_per_partition` to what the data has: one allocation of the SparseCore's program is too large for \
             HBM",
        ),
        BlockFinding::SparseCore { is_scratchpad: true } => Words::new(
            "Lower the limits on ids in a partition to what the data has, or the batch; for a kernel of your own, its \
             `scratch_shapes`; for a collective that was offloaded, set \
             `--xla_tpu_enable_sparse_core_collective_offload_all_reduce=false` (or `…_all_gather=false`): what a SparseCore \
             takes at once is too large for its scratchpad",
        ),
        BlockFinding::SparseCore { .. } => {
            Words::new("Lower the limits on ids in a partition to what the data has, or the batch")
        }
        BlockFinding::Spills { bytes } => spills(*bytes, about),
        _ => scalars(finding),
    }
}

fn window(finding: &BlockFinding) -> Words {
    let BlockFinding::Window { kind, operand, block, smaller, parts, buffers, bytes: taken, windows, cap } = finding
    else {
        return Words::new("");
    };
    let (what, likewise) = if *parts == 2 { ("Halve", "halved") } else { ("Shrink", "shrunk as much") };
    let to = smaller.as_ref().map(|bounds| format!(" to [{}]", list(bounds)));
    let others = if *windows > 1 {
        format!("; there are {windows} windows, and the block of each has to be {likewise}")
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
    let words = Words::new(format!(
        "{what} the block of {}{}{}: {block}{times} takes {}{others}{single}{}",
        kind.as_str(),
        number(*operand),
        to.unwrap_or_default(),
        bytes(*taken),
        no_higher(*cap)
    ));
    match smaller {
        Some(bounds) => {
            let why = "its steps along that dimension grow as many times";
            words.code(PALLAS, format!("spec = pl.BlockSpec(({}), index_map)  # {why}", tuple(bounds.iter())))
        }
        None => words,
    }
}

pub(super) fn limit(finding: &KernelLimit, about: &Recommendation) -> Words {
    let raised = finding.raised;
    let most = match finding.cap {
        Some(cap) => honoured(cap),
        None => "a v5e or v6e has 128 MiB of VMEM, a core of a v5p or v7x 64 MiB".to_owned(),
    };
    let words = Words::new(format!(
        "Raise the limit to {}{}: {} {} a configurable limit, not the hardware's ({most})",
        bytes(raised),
        match finding.is_kernel {
            Some(true) => ", for a kernel of your own in its compiler_params".to_owned(),
            None => format!(", for a kernel of Pallas by `vmem_limit_bytes={raised}` in its compiler_params"),
            Some(false) => String::new(),
        },
        printed(&finding.limit),
        if finding.is_setting { "is" } else { "may be" },
    ));
    match (about.framework, finding.is_kernel) {
        (Some(Framework::Jax), Some(true)) => words.code(
            PALLAS_TPU,
            format!(
                "params = pltpu.CompilerParams(vmem_limit_bytes={raised})  # pallas_call(…, compiler_params=params)"
            ),
        ),
        _ => words.code(None, format!("export LIBTPU_INIT_ARGS=\"--xla_tpu_scoped_vmem_limit_kib={}\"", raised >> 10)),
    }
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

/// SMEM has what a core's scalar unit reads.
fn scalars(finding: &BlockFinding) -> Words {
    let most = |limit: u64| {
        format!("SMEM has {}, for what the scalar unit reads (indices, lengths, tables of pages)", bytes(limit))
    };
    match finding {
        BlockFinding::ScalarOperand { kind, operand, shape, bytes: taken, limit } => {
            let shape = shape.as_ref().map(|shape| shape.without_layout().to_string()).unwrap_or_default();
            let then = if *kind == WindowKind::Prefetched {
                "Prefetch only what chooses the blocks, in parts, and read the rest from VMEM with a BlockSpec of its own"
            } else {
                "Keep it in VMEM (`pltpu.VMEM`), or copy parts of it in from HBM"
            };
            let (kind, number, taken) = (kind.as_str(), number(*operand), bytes(*taken));
            Words::new(format!("{then}: {kind}{number} {shape} takes {taken} alone, and {}", most(*limit)))
        }
        BlockFinding::ScalarTables { largest, limit } => {
            let largest = largest
                .as_ref()
                .map(|(shape, taken)| format!(". {} alone takes {}", shape.without_layout(), bytes(*taken)));
            Words::new(format!(
                "Serve fewer sequences at once, a shorter context (in vLLM `--max-model-len`, `--max-num-seqs`) or larger pages: \
                 {}; kernels prefetch these (`PrefetchScalarGridSpec`), and they grow with sequences × pages{}",
                most(*limit),
                largest.unwrap_or_default()
            ))
        }
        _ => Words::new(""),
    }
}

/// Values that did not fit into registers.
fn spills(taken: u64, about: &Recommendation) -> Words {
    let spilled = if taken > 0 {
        format!("{} are spilled registers", bytes(taken))
    } else {
        "VMEM holds spilled registers".to_owned()
    };
    let is_torch = about.framework == Some(Framework::TorchXla);
    let look = if is_torch {
        ". In a program of PyTorch, look for the operation that unrolls (sort, topk, isin, cumsum over a long dimension), give it \
         less at once, and end the step before it"
    } else {
        ". Otherwise look for an operation that unrolls (sort, top_k, cumsum over a long dimension), and update libtpu"
    };
    let words = Words::new(format!(
        "Work on smaller blocks in a kernel of your own, unroll less, and use values soon after they are read: {spilled}, of one \
         kernel or fusion; arrays in HBM, their layouts and the batch of the model are not the cause{look}"
    ));
    if is_torch {
        words.code("import torch_xla.core.xla_model as xm", "xm.mark_step()  # before that operation")
    } else {
        words
    }
}
