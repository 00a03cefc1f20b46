//! VMEM, SMEM and the SparseCore's memories: what one kernel or instruction needs for itself.

use super::{
    Words,
    code::{JAX, PALLAS, tuple},
    words::{capitalized, list, printed},
};
use crate::style::{bytes, file_name, grouped};
use tilewise::{tpu::Generation, visible};
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{BlockFinding, ChangedOption, KernelLimit, SparseCoreProgram, WholeArrays},
};
use tilewise_oom::{BlockSize, Frame, Framework, KernelBlocks, OptionChange, Server, WindowKind};

/// The task where an operation unrolls.
const UNROLLS: &str = "Find the operation that unrolls, and give it less at once";
const PALLAS_TPU: &str = "from jax.experimental.pallas import tpu as pltpu";

/// The message has no blocks; the function has.
const WHICH_FIT: &str = "`tilewise kernel FILE.py:FACTORY --space NAME=A,B,C`, or `tw.suggest_blocks`, finds blocks that fit, \
                         from the function";

/// `v5p honours up to 63.94 MiB`
fn honoured((generation, cap): (Generation, u64)) -> String {
    format!("{generation} honours up to {}", bytes(cap))
}

/// The generation's cap, above which no limit helps; empty if unknown.
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
        BlockFinding::Library { kernel, sizes, parts, cap } => {
            let library = KernelBlocks::of(kernel);
            let whose = if kernel.is_empty() { "the kernel".to_owned() } else { format!("`{kernel}`") };
            let told = sizes.iter().map(|each| format!("`{}` is {}", each.name, each.size)).collect::<Vec<_>>();
            let set = library.map(parameters);
            let which = set.into_iter().chain((!told.is_empty()).then(|| told.join(", "))).collect::<Vec<_>>();
            let words = Words::new(format!(
                "Choose smaller blocks for {whose}: {}; each block in VMEM counts twice, for double buffering. {WHICH_FIT}{}",
                which.join("; now "),
                no_higher(*cap)
            ));
            let largest = sizes.iter().max_by_key(|each| each.size);
            let words = match largest {
                Some(BlockSize { name, size }) => {
                    words.task(format!("Choose smaller blocks for the kernel: `{name}` is {size} now"))
                }
                None => words,
            };
            match library.and_then(|library| smaller(library, sizes, *parts)) {
                Some((imports, code)) => words.jax(about, imports, code),
                None => match library {
                    Some(library) => words.caveat(format!("set by {}; a server's kernel by another version of it", parameters(library))),
                    None => words,
                },
            }
        }
        BlockFinding::Options { library, options, product } => options_of_library(library, options, product.as_ref()),
        BlockFinding::Unlisted { library: Some(library), shrink, .. } => shrunk(*shrink, Words::new(format!(
            "Update {library}, whose kernel it is, or take an option of it with smaller blocks, a smaller page or another \
             implementation: the kernel's blocks in VMEM, double-buffered in a grid, its scratch and its stack are too large together"
        ))
        .task(format!("Update {library}, whose kernel it is, or choose smaller blocks there"))),
        BlockFinding::Fusion { cap } => {
            let words = Words::new(format!(
                "Update libtpu, which has the compiler, or report it to XLA, with the program: the operation is the compiler's own, \
                 whose blocks it chooses itself, and should always fit. Meanwhile give the operation less at once (a smaller window, sort or \
                 reduction, fewer rows), or break the fusion around it{}",
                no_higher(*cap)
            ))
            .task("Update libtpu, or report it: the operation is the compiler's own");
            words.jax(about, JAX, "x = jax.lax.optimization_barrier(x)  # before that operation")
        }
        BlockFinding::Unlisted { whole: Some(whole), is_own, .. } => whole_arrays(*whole, *is_own),
        BlockFinding::Unlisted { shrink, cap, is_own, .. } => shrunk(*shrink, Words::new(format!(
            "If it is a Pallas kernel of yours: {} (for attention: the block sizes of queries \
             and keys): its blocks in VMEM, double-buffered in a grid, its scratch and its stack are too large together. If the \
             operation is the compiler's own, give it less at once. {WHICH_FIT}{}",
            divided(LARGEST_BLOCKS, *shrink),
            no_higher(*cap)
        ))
        .task(if *is_own {
            capitalized(&divided("the largest blocks of the kernel's BlockSpecs, or its accumulator's,", *shrink)).trim_end_matches(',').to_owned()
        } else {
            format!("If the kernel is yours: {}", divided(LARGEST_BLOCKS, *shrink))
        }))
        .code(PALLAS, smaller_spec(*shrink)),
        BlockFinding::SparseCoreInHbm => Words::new(
            "Divide the embedding tables between more devices, and lower `max_ids_per_partition` and \
             `max_unique_ids_per_partition` to what the data has: one allocation of the SparseCore's program is too large for \
             HBM",
        ),
        BlockFinding::SparseCore(program) => sparse_core(program),
        BlockFinding::Spills { bytes, operation: Some(line), .. } => unrolled(*bytes, line, about),
        BlockFinding::Spills { bytes, is_of_fusion, .. } => spills(*bytes, *is_of_fusion, about),
        _ => scalars(finding),
    }
}

/// A program of a SparseCore's that takes too much at once.
fn sparse_core(program: &SparseCoreProgram) -> Words {
    match program {
        SparseCoreProgram::Table { is_of_samples: true } => Words::new(
            "Give each SparseCore fewer samples, by a smaller batch or more devices: the part that doesn't depend on the rows is too \
             large by itself, so lower limits on ids don't reach",
        )
        .task("Give each SparseCore fewer samples: a smaller batch, or more devices"),
        SparseCoreProgram::Table { .. } => {
            Words::new("Lower the limits on ids in a partition to what the data has, or the batch")
        }
        SparseCoreProgram::Collective(operation) => {
            let flag = format!("--xla_tpu_enable_sparse_core_collective_offload_{}=false", operation.replace('-', "_"));
            Words::new(format!(
                "Run the {operation} on the TensorCore: the compiler offloaded it to a SparseCore, whose memory its program exceeds; then report it \
                 to XLA"
            ))
            .task(format!("Run the {operation} on the TensorCore, not on a SparseCore"))
            .code(None, format!("export LIBTPU_INIT_ARGS=\"$LIBTPU_INIT_ARGS {flag}\""))
        }
        SparseCoreProgram::Named(name) => Words::new(format!(
            "Give `{name}` less at once: what it allocates on a SparseCore grows with its blocks and `scratch_shapes`, if the kernel is yours, and \
             with its input, such as the tokens of a step, if it is a library's"
        ))
        .task(format!("Give `{name}` less at once: smaller blocks, or fewer tokens or rows")),
        _ => Words::new(
            "Give a SparseCore less at once: in a kernel of your own, smaller blocks and `scratch_shapes`; of embedding tables, lower \
             limits on ids in a partition, or a smaller batch; of a collective that was offloaded, set \
             `--xla_tpu_enable_sparse_core_collective_offload_all_reduce=false` (or `…_all_gather=false`)",
        ),
    }
}

/// Options that reach a library's kernel.
fn options_of_library(library: &str, options: &[ChangedOption], product: Option<&(Vec<u64>, u64)>) -> Words {
    let verb = |change: &OptionChange| match change {
        OptionChange::Raise => "raise",
        OptionChange::Lower => "lower",
        _ => "set",
    };
    let value = |option: &ChangedOption| match (option.change, option.from, option.to) {
        (OptionChange::Set(to), ..) => format!("`{}` to '{to}'", option.name),
        (_, Some(from), Some(to)) => format!("`{}` from {from} to {to}", option.name),
        (_, None, Some(to)) => format!("`{}` to {to}", option.name),
        (_, Some(from), None) => format!("`{}` ({from})", option.name),
        (_, None, None) => format!("`{}`", option.name),
    };
    // A verb is said once for options that follow each other.
    let mut said = String::new();
    for (at, option) in options.iter().enumerate() {
        let is_same = at > 0 && options[at - 1].change == option.change;
        let before = match at {
            0 => "",
            _ if is_same => " and ",
            _ => ", or ",
        };
        let verb = if is_same { String::new() } else { format!("{} ", verb(&option.change)) };
        said.push_str(&format!("{before}{verb}{}", value(option)));
    }
    if library.is_empty() {
        return Words::new(format!(
            "If these size the blocks of what doesn't fit, {said}: one of them is in VMEM at once, and a score of attention's for each pair of both"
        ))
        .task(format!("If they size the kernel's blocks: {said}"));
    }
    let task = capitalized(&said);
    let words = Words::new(format!("{task}: the kernel is {library}'s, and this reaches it")).task(task);
    match product {
        Some((factors, element)) => {
            let all = factors.iter().fold(*element, |all, factor| all.saturating_mul(*factor));
            let factors: Vec<String> = factors.iter().map(|factor| grouped(*factor)).collect();
            words.caveat(format!("{} × {element} B = {}, of {library}'s kernel", factors.join(" × "), bytes(all)))
        }
        None => words.caveat(format!("the kernel is {library}'s")),
    }
}

/// A kernel that holds its arrays whole.
fn whole_arrays(whole: WholeArrays, is_own: bool) -> Words {
    let taken = bytes(whole.bytes);
    let (task, why) = match whole.exceeds_all {
        true => {
            ("give it a grid, and blocks", format!("it holds an array of {taken} whole, and no TPU has as much VMEM"))
        }
        false => (
            "give it a grid and blocks: its arrays are in VMEM whole",
            format!("its operands and results are in VMEM whole, {taken}"),
        ),
    };
    let task =
        if is_own { task.replace("give it", "Give the kernel") } else { format!("If the kernel is yours: {task}") };
    let words = Words::new(format!(
        "Give the kernel a grid, and its operands blocks (`pl.BlockSpec`) that fit: {why}. {WHICH_FIT}"
    ))
    .task(task);
    let code = match whole.rows {
        Some([rows, columns, block]) => format!(
            "spec = pl.BlockSpec(({block}, {columns}), lambda i: (i, 0))  # of each operand and result of {rows} rows\n\
             # pl.pallas_call(kernel, grid=({},), in_specs=[spec], out_specs=…, …)",
            rows.div_ceil(block.max(1))
        ),
        None => "spec = pl.BlockSpec((256, 1024), lambda i, j: (i, j))\n\
                 # pl.pallas_call(kernel, grid=(rows // 256, columns // 1024), in_specs=[spec], out_specs=spec, …)"
            .to_owned(),
    };
    words.code(PALLAS, code)
}

fn window(finding: &BlockFinding) -> Words {
    let BlockFinding::Window { kind, operand, block, smaller, parts, buffers, bytes: taken, windows, parameters, cap } =
        finding
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
    let names: Vec<_> = parameters.iter().map(|name| format!("`{name}`")).collect();
    let by = if names.is_empty() { String::new() } else { format!(", by {}", names.join(" or ")) };
    let words = Words::new(format!(
        "{what} the block of {}{}{}{by}: {block}{times} takes {}{others}{single}{}",
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

pub(super) fn limit(finding: &KernelLimit) -> Words {
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
            _ => String::new(),
        },
        printed(&finding.limit),
        if finding.is_setting { "is" } else { "may be" },
    ));
    match finding.is_kernel {
        Some(true) if finding.is_of_pallas => words.code(
            PALLAS_TPU,
            format!(
                "params = pltpu.CompilerParams(vmem_limit_bytes={raised})  # pallas_call(…, compiler_params=params)"
            ),
        ),
        _ => words.code(None, format!("export LIBTPU_INIT_ARGS=\"--xla_tpu_scoped_vmem_limit_kib={}\"", raised >> 10)),
    }
}

const REPLACE: &str = "import dataclasses";
/// The least that blocks of attention and of products have along lanes.
const LANES: u64 = 128;

/// The settings of a kernel's blocks: `` `block_q` and `block_kv` of splash attention's `BlockSizes` ``.
fn parameters(blocks: &KernelBlocks) -> String {
    let fields: Vec<String> = blocks.fields.iter().map(|field| format!("`{field}`")).collect();
    let fields = match &fields[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => fields.concat(),
    };
    if blocks.owner.is_empty() { fields } else { format!("{fields} of {}", blocks.owner) }
}

/// Imports and code that divide the blocks by `parts`: from the sizes, if known, else from the program's own.
fn smaller(blocks: &KernelBlocks, sizes: &[BlockSize], parts: u64) -> Option<(&'static str, String)> {
    let object = Some(blocks.object).filter(|object| !object.is_empty())?;
    let told = |name: &str| sizes.iter().find(|each| each.name == name).map(|each| each.size);
    let is_told = blocks.fields.iter().all(|name| told(name).is_some());
    let smaller = |name: &&str| match told(name).filter(|_| is_told) {
        Some(size) => format!("{name}={}", (size / parts).max(LANES)),
        None => format!("{name}={object}.{name} // {parts}"),
    };
    let smaller = blocks.fields.iter().map(smaller).collect::<Vec<_>>().join(", ");
    Some(match blocks.import.filter(|_| is_told) {
        Some(import) => (import, format!("{object} = BlockSizes({smaller})")),
        None => (REPLACE, format!("{object} = dataclasses.replace({object}, {smaller})")),
    })
}

/// The blocks of a kernel that a message doesn't list.
const LARGEST_BLOCKS: &str = "the largest blocks of its BlockSpecs";

/// Blocks that become smaller by this percentage, in powers of two: `halve the blocks`.
fn divided(blocks: &str, percent: Option<u64>) -> String {
    match parts_of_block(percent) {
        2 => format!("halve {blocks}"),
        4 => format!("cut {blocks} to a quarter"),
        _ => format!("cut {blocks} to an eighth or less"),
    }
}

/// The power of two by which a block has to be divided to become smaller by this percentage, eight at most.
fn parts_of_block(percent: Option<u64>) -> u64 {
    match percent {
        None | Some(..=50) => 2,
        Some(..=75) => 4,
        Some(_) => 8,
    }
}

/// A block whose first side is divided likewise.
fn smaller_spec(percent: Option<u64>) -> String {
    let parts = parts_of_block(percent);
    format!(
        "spec = pl.BlockSpec((ROWS // {parts}, COLUMNS), index_map)  # its sides now; the grid takes {parts} times as many steps along the rows"
    )
}

/// Adds by how much a kernel's memory has to shrink, if that is known.
fn shrunk(percent: Option<u64>, words: Words) -> Words {
    match percent {
        Some(percent) => words.caveat(format!("It has to shrink by {percent} %")),
        None => words,
    }
}

/// Advice on SMEM, which holds the values that a core's scalar unit reads.
fn scalars(finding: &BlockFinding) -> Words {
    let most = |limit: u64| {
        format!("SMEM has {}, for what the scalar unit reads (indices, lengths, tables of pages)", bytes(limit))
    };
    match finding {
        BlockFinding::ScalarOperand { kind, operand, shape, bytes: taken, limit } => {
            let shape = shape.as_ref().map(|shape| shape.without_layout().to_string()).unwrap_or_default();
            let is_prefetched = *kind == WindowKind::Prefetched;
            let then = if is_prefetched {
                "Prefetch only what chooses the blocks, in parts, and read the rest from VMEM with a BlockSpec of its own"
            } else {
                "Keep it in VMEM (`pltpu.VMEM`), or copy parts of it in from HBM"
            };
            let beyond = taken.checked_sub(*limit).filter(|beyond| *beyond > 0);
            let percent = beyond.map(|beyond| (u128::from(beyond) * 100).div_ceil(u128::from(*taken)));
            let percent = percent.and_then(|percent| u64::try_from(percent).ok());
            let (kind, number, taken) = (kind.as_str(), number(*operand), bytes(*taken));
            let task = match is_prefetched {
                true => "If the kernel is yours: prefetch fewer scalars (`num_scalar_prefetch`)",
                false => "If the kernel is yours: keep the operand in VMEM (`pltpu.VMEM`)",
            };
            let words = Words::new(format!("{then}: {kind}{number} {shape} takes {taken} alone, and {}", most(*limit)));
            shrunk(percent, words.task(task))
        }
        BlockFinding::ScalarTables { largest, limit, shrink, enough, server } => {
            let server = server.unwrap_or(Server::Vllm);
            let (requests, length) = (server.requests_flag(), server.length_flag());
            let largest = largest
                .as_ref()
                .map(|(shape, taken)| format!(". {} alone takes {}", shape.without_layout(), bytes(*taken)));
            let words = Words::new(format!(
                "Serve fewer sequences at once, a shorter context (in {} `{length}`, `{requests}`) or larger pages: \
                 {}; kernels prefetch these (`PrefetchScalarGridSpec`), and they grow with sequences × pages{}",
                server.as_str(),
                most(*limit),
                largest.unwrap_or_default()
            ))
            .task(format!("Serve fewer or shorter sequences (`{requests}`, `{length}`)"));
            match (enough, shrink) {
                (Some([[rows, columns], [fewer, narrower]]), _) => words.caveat(format!(
                    "the largest table is {rows} × {columns}: {fewer} rows, or {narrower} columns, leave room"
                )),
                (None, Some(percent)) => words.caveat(format!("{percent} % fewer, or as much shorter, are enough")),
                _ => words,
            }
        }
        _ => Words::new(""),
    }
}

/// An operation that unrolls, by its line in a traceback.
fn unrolled(taken: u64, line: &Frame, about: &Recommendation) -> Words {
    let name = line.unrolled().unwrap_or("the operation");
    let place = format!("{}:{}", visible(file_name(&line.file)), line.line);
    let words = Words::new(format!(
        "Give `{name}` at {place} less at once, or take another form of it: compilers unroll it along its dimension, which fills {} with spilled \
         registers. 64-bit integers take two registers for one; a count is an `arange`; small arrays are computed as well on the host",
        if taken > 0 { bytes(taken) } else { "VMEM".to_owned() }
    ))
    .task(format!("Give `{name}` ({place}) less at once, 32 bits, or another form"));
    match about.framework {
        Some(Framework::TorchXla) => words.code(
            "import torch",
            "x.to(torch.int32)  # in place of int64; counting up: torch.arange(n, device=x.device)\nx.cpu()  # or on the host, if x is small",
        ),
        _ => words,
    }
}

/// Values that did not fit into registers.
fn spills(taken: u64, is_of_fusion: bool, about: &Recommendation) -> Words {
    let spilled = if taken > 0 {
        format!("{} are spilled registers", bytes(taken))
    } else {
        "VMEM holds spilled registers".to_owned()
    };
    let is_torch = about.framework == Some(Framework::TorchXla);
    if is_of_fusion && !is_torch {
        return Words::new(format!(
            "Find the operation that unrolls (sort, top_k, cumsum over a long dimension, a join of many arrays), give it less at once, \
             and update libtpu: {spilled}, of a fusion of the compiler's; arrays in HBM, their layouts and the batch of the model are not \
             the cause"
        ))
        .task(UNROLLS);
    }
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
        let words = words.task(UNROLLS);
        words.code("import torch_xla.core.xla_model as xm", "xm.mark_step()  # before that operation")
    } else {
        words
    }
}
