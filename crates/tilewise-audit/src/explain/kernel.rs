//! VMEM, SMEM and the SparseCore's memories: the needs of one kernel or instruction.

use super::library;
use crate::{
    advice::{
        Recommendation, Saving, Target,
        finding::{BlockFinding, Finding, KernelLimit, SparseCoreProgram, WholeArrays},
    },
    message::{Allocation, Listing},
};
use tilewise::{Shape, tpu::Generation};
use tilewise_kernel::Limits;
use tilewise_oom::{BlockSize, Entry, Form, Framework, KernelBlocks, Message, PrintedSize, Server, Window, WindowKind};

/// The VMEM of a v7x.
const SMALLEST_OF_TODAY: u64 = 64 << 20;
/// The most VMEM that a TPU has.
const LARGEST_VMEM: u64 = 128 << 20;

fn block(finding: BlockFinding, framework: Framework) -> Recommendation {
    Recommendation::new(Finding::Block(finding), Target::Kernel, Some(framework))
}

/// The SparseCore's program, by the operation that the message names.
fn sparse_core(message: &Message) -> SparseCoreProgram {
    const COLLECTIVES: [&str; 4] = ["all-gather", "all-reduce", "reduce-scatter", "all-to-all"];
    let fixed = message.facts.size("fixed").map(PrintedSize::bytes);
    if message.facts.get("embedding").is_some() {
        let is_of_samples = fixed.zip(message.limit.as_ref()).is_some_and(|(fixed, limit)| fixed > limit.bytes());
        return SparseCoreProgram::Table { is_of_samples };
    }
    let Some(name) = message.facts.text("program") else { return SparseCoreProgram::Unknown };
    let collective = COLLECTIVES.into_iter().find(|operation| name.starts_with(operation));
    // XLA calls the result of a program so.
    let named = || if name.starts_with("result") { None } else { Some(name.split('.').next().unwrap_or(name)) };
    collective
        .map(SparseCoreProgram::Collective)
        .unwrap_or_else(|| named().map_or(SparseCoreProgram::Unknown, |name| SparseCoreProgram::Named(name.to_owned())))
}

pub(super) fn of(explanation: Listing<'_>, framework: Framework) -> Vec<Recommendation> {
    let message = explanation.message;
    if message.form == Form::SparseCore {
        return vec![block(
            match message.memory_space.as_deref() {
                Some("hbm") => BlockFinding::SparseCoreInHbm,
                _ => BlockFinding::SparseCore(sparse_core(message)),
            },
            framework,
        )];
    }
    let options = library::options(explanation).map(|finding| block(finding, framework));
    if message.memory_space.as_deref() == Some("smem") {
        return vec![options.unwrap_or_else(|| block(scalars(explanation), framework))];
    }
    let (raised, cap) = (limit(explanation, framework), cap_in_the_way(explanation));
    if let Some(options) = options {
        return [options].into_iter().chain(raised).collect();
    }
    let is_own = is_kernel(explanation) && message.kernel.is_none() && message.named.library.is_none();
    if raised.is_some() && is_own && generation(explanation).and_then(Limits::of).is_some() {
        // It costs nothing, and is enough for a user's own kernel; a library sets its kernels' limit itself.
        return raised.into_iter().collect();
    }
    let smaller = blocks(explanation, framework, cap).unwrap_or_else(|| {
        // The cap is only mentioned where no higher limit helps.
        block(smaller_blocks(explanation, cap.filter(|_| raised.is_none())), framework)
    });
    // The compiler chooses the blocks of its own operations, and a library or a server those of its kernels.
    let is_of_others = explanation.message.server.is_some()
        || matches!(
            smaller.finding,
            Finding::Block(BlockFinding::Fusion { .. } | BlockFinding::Unlisted { library: Some(_), .. })
        );
    let (first, last) = if is_of_others { (raised, Some(smaller)) } else { (Some(smaller), raised) };
    first.into_iter().chain(last).collect()
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

/// Smaller blocks: all are halved until the missing bytes are freed; the largest is named.
fn blocks(explanation: Listing<'_>, framework: Framework, cap: Option<(Generation, u64)>) -> Option<Recommendation> {
    let windows = windows(explanation);
    let is_block = |kind| matches!(kind, WindowKind::Input | WindowKind::Output);
    let blocks = || windows.iter().filter(|(_, window)| is_block(window.kind));
    let all = blocks().map(|(row, _)| row.taken_bytes()).fold(0, u64::saturating_add);
    let missing = explanation.message.budget().missing_bytes.unwrap_or_default();
    let Some((row, window)) = blocks().find(|(_, window)| window.block.is_some()) else {
        let (row, _) = windows.first().filter(|(_, window)| window.kind == WindowKind::Scratch)?;
        let shape = row.entry.shape.as_ref().map(|shape| shape.text.clone()).unwrap_or_default();
        let finding = BlockFinding::Scratch { shape: shape.clone(), bytes: row.taken_bytes(), cap };
        return Some(block(finding, framework).about(shape));
    };
    let written = window.block.as_ref()?;
    // The fewest halvings of all blocks that free the missing bytes.
    let parts = (1..=10).map(|power| 1_u64 << power).find(|parts| all - all / parts >= missing).unwrap_or(2);
    let smaller = written.parsed.as_ref().ok().map(|shape| divided(shape, parts));
    let sizes = explanation.message.block_sizes.iter();
    let is_divided = |size: u64| smaller.as_ref().is_some_and(|(whole, _)| *whole == size);
    let finding = BlockFinding::Window {
        kind: window.kind,
        operand: window.operand,
        block: written.text.clone(),
        parameters: sizes.filter(|each| is_divided(each.size)).map(|each| each.name.clone()).collect(),
        smaller: smaller.map(|(_, bounds)| bounds),
        parts,
        buffers: window.buffers.unwrap_or(1),
        bytes: row.taken_bytes(),
        windows: blocks().count(),
        cap,
    };
    Some(block(finding, framework).about(&*written.text).saving(Saving::Exact(all - all / parts)))
}

/// Divides the largest bound, if possible not the one on the lanes. Returns its size before, and the new bounds.
fn divided(block: &Shape, parts: u64) -> (u64, Vec<u64>) {
    let mut bounds: Vec<u64> = block.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    let rows = bounds.len().saturating_sub(1).max(1).min(bounds.len());
    let largest = (0..rows).max_by_key(|at| (bounds[*at], std::cmp::Reverse(*at)));
    // Fewer than the eight rows of a tile are padded to it: then the lanes are divided.
    let at = largest
        .filter(|at| bounds[*at] / parts >= 8 || bounds.len() == 1 || bounds.len() > 2 && *at + 2 < bounds.len());
    let Some(bound) = at.or(bounds.len().checked_sub(1)).and_then(|at| bounds.get_mut(at)) else { return (1, bounds) };
    let whole = *bound;
    *bound = whole.div_ceil(parts);
    (whole, bounds)
}

/// The generation that the reader gives, or else the text.
fn generation(explanation: Listing<'_>) -> Option<Generation> {
    explanation.generation.or(explanation.message.generation)
}

/// The generation and its cap, if the cap is less than a kernel needs.
fn cap_in_the_way(explanation: Listing<'_>) -> Option<(Generation, u64)> {
    let generation = generation(explanation)?;
    let cap = Limits::of(generation)?.cap_bytes;
    let message = explanation.message;
    let used = message.used.as_ref().map(PrintedSize::bytes)?;
    let is_of_vmem = message.memory_space.as_deref() == Some("vmem") && is_kernel(explanation);
    (is_of_vmem && used > cap).then_some((generation, cap))
}

/// Whether the message is about a kernel, not about an instruction of the compiler's.
fn is_kernel(explanation: Listing<'_>) -> bool {
    explanation.message.kernel.is_some()
        || explanation.allocations.iter().any(|row| {
            let label = row.entry.label.as_deref().unwrap_or_default();
            row.entry.window().is_some_and(|window| window.kind != WindowKind::Spill)
                || row.entry.instruction().is_some_and(|(_, opcode)| opcode == "custom-call")
                || label.contains("tpu_custom_call")
        })
}

/// Advice to raise the limit, if the memory itself has room.
fn limit(explanation: Listing<'_>, framework: Framework) -> Option<Recommendation> {
    let message = explanation.message;
    let used = message.used.as_ref().map(PrintedSize::bytes)?;
    let limit = message.limit.as_ref().map(PrintedSize::bytes)?;
    // A kernel's default limit is 16, 32 or 64 MiB. Lists may print the size of the memory itself instead, which is a
    // little less than 64 MiB on a v7x.
    let is_scoped = message.form == Form::Scoped;
    let is_all_of_it = !is_scoped && limit > SMALLEST_OF_TODAY - (1 << 20);
    if message.form == Form::Allocation
        || is_all_of_it
        || message.memory_space.as_deref() != Some("vmem")
        || used > LARGEST_VMEM
    {
        return None;
    }
    // A printed size is rounded, and the next request to a server may be larger.
    let needed = message.used.as_ref()?.high();
    let more = if message.server.is_some() { needed / 8 } else { 0 };
    let raised = needed.saturating_add(more).next_multiple_of(1 << 20);
    let cap = generation(explanation).and_then(|generation| Some((generation, Limits::of(generation)?.cap_bytes)));
    // The compiler silently cuts a larger limit to the cap.
    let is_beyond = |(_, cap): (_, u64)| raised > cap;
    if cap.map_or(limit > LARGEST_VMEM / 2, is_beyond) {
        return None;
    }
    let finding = KernelLimit {
        raised,
        limit: message.limit.clone()?,
        cap,
        is_kernel: match (is_kernel(explanation), explanation.allocations.is_empty()) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        },
        is_setting: is_scoped,
        // Who runs a server has no code to change.
        is_of_pallas: (framework == Framework::Jax || message.named.pallas) && message.server.is_none(),
    };
    Some(Recommendation::new(Finding::KernelLimit(finding), Target::Kernel, Some(framework)))
}

fn smaller_blocks(explanation: Listing<'_>, cap: Option<(Generation, u64)>) -> BlockFinding {
    let message = explanation.message;
    // An instruction may be truncated after its name.
    let is_named_fusion =
        |entry: &Entry| entry.label.as_deref().is_some_and(|label| label.trim_start_matches('%').starts_with("fusion"));
    let is_fusion = message.entries.iter().any(|entry| match entry.instruction() {
        Some((_, opcode)) => opcode != "custom-call",
        None => is_named_fusion(entry),
    });
    match &message.kernel {
        kernel if kernel.is_some() || !message.block_sizes.is_empty() => BlockFinding::Library {
            kernel: kernel.clone().unwrap_or_default(),
            sizes: sizes(message),
            parts: library::parts_that_fit(message),
            cap,
        },
        _ if is_fusion => BlockFinding::Fusion { cap },
        // Without a kernel in the text, operations of PyTorch and TensorFlow are the compiler's own.
        _ if matches!(message.framework, Some(Framework::TorchXla | Framework::TensorFlow))
            && !message.named.kernel =>
        {
            BlockFinding::Fusion { cap }
        }
        _ => BlockFinding::Unlisted {
            whole: whole(explanation),
            shrink: shrink(message),
            cap,
            is_own: message.named.own_kernel,
            library: message.named.library.or(message.server.map(Server::as_str)).filter(|_| !message.named.own_kernel),
        },
    }
}

/// The sizes of a kernel's blocks, by its name or metadata, else by the text's own settings of its fields.
fn sizes(message: &Message) -> Vec<BlockSize> {
    let blocks = message.kernel.as_deref().and_then(KernelBlocks::of).filter(|_| message.block_sizes.is_empty());
    let Some(blocks) = blocks else { return message.block_sizes.clone() };
    let set = message.job.blocks.iter().filter(|setting| blocks.fields.contains(&&*setting.name));
    set.map(|setting| BlockSize { name: setting.name.clone(), size: setting.value }).collect()
}

/// The arrays that a kernel holds whole: one that exceeds each limit of today's; or all operands and results that its call
/// prints, where these make up what it needs, or the text's own call has neither a grid nor blocks.
fn whole(explanation: Listing<'_>) -> Option<WholeArrays> {
    let message = explanation.message;
    let is_array = |row: &&Allocation| row.entry.shape.is_some() && row.entry.window().is_none();
    let largest = explanation.allocations.iter().filter(is_array).map(Allocation::taken_bytes).max();
    if let Some(bytes) = largest.filter(|largest| *largest >= LARGEST_VMEM) {
        return Some(WholeArrays { bytes, exceeds_all: true, rows: None });
    }
    let (used, limit) = (message.used.as_ref()?, message.limit.as_ref()?.bytes());
    let label = message.entries.first().and_then(|entry| entry.label.as_deref());
    let arrays = label.map(arrays).unwrap_or_default();
    let bytes = |array: &Shape| array.as_array()?.sizes().ok().map(|sizes| sizes.physical_bytes);
    let all = arrays.iter().try_fold(0_u64, |all, array| all.checked_add(bytes(array)?)).filter(|all| *all > limit);
    if !all.is_some_and(|all| used.agrees_with(all)) && !message.named.whole_arrays {
        return None;
    }
    let rows = || {
        let largest = arrays.iter().max_by_key(|array| bytes(array))?;
        let [rows, columns] = largest.as_array()?.bounds()?[..] else { return None };
        // Twice, for double buffering, and half of the limit.
        let block = limit.checked_mul(rows)? / all?.checked_mul(4)?;
        (block >= 8).then(|| [rows, columns, 1 << block.ilog2()])
    };
    Some(WholeArrays { bytes: used.bytes(), exceeds_all: false, rows: rows() })
}

/// The results and operands in the call of a kernel: `%k = (f32[8,128], …) custom-call(f32[8,128] %x), custom_call_target=…`.
fn arrays(label: &str) -> Vec<Shape> {
    let Some((_, call)) = label.split_once(" = ").filter(|(_, call)| call.contains("custom-call(")) else {
        return Vec::new();
    };
    let call = call.split("custom_call_target").next().unwrap_or(call);
    let shapes = call.match_indices('[').filter_map(|(at, _)| {
        let start = call[..at].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |before| before + 1);
        let bounds = at + call[at..].find(']')? + 1;
        let layout = call[bounds..].starts_with('{').then(|| call[bounds..].find('}')).flatten();
        call.get(start..layout.map_or(bounds, |length| bounds + length + 1))?.parse().ok()
    });
    shapes.collect()
}

/// The percentage by which the needed memory exceeds what is there, of the needed.
fn shrink(message: &Message) -> Option<u64> {
    let used = message.used.as_ref().map(PrintedSize::bytes)?;
    let beyond = message.budget().missing_bytes.filter(|beyond| (1..used).contains(beyond))?;
    u64::try_from((u128::from(beyond) * 100).div_ceil(u128::from(used))).ok()
}

/// Advice on SMEM, which holds the operands of a core's scalar unit.
fn scalars(explanation: Listing<'_>) -> BlockFinding {
    let limit = explanation.message.limit.as_ref().map_or(1 << 20, PrintedSize::bytes);
    // A server's kernel prefetches tables of its requests.
    match windows(explanation).into_iter().next().filter(|_| explanation.message.server.is_none()) {
        Some((row, window)) => BlockFinding::ScalarOperand {
            kind: window.kind,
            operand: window.operand,
            shape: row.shape.clone(),
            bytes: row.taken_bytes(),
            limit,
        },
        None => {
            let rows = explanation.allocations.iter().filter(|row| row.taken_bytes() > 0);
            let largest = rows.max_by_key(|row| row.taken_bytes());
            let largest = largest.and_then(|row| Some((row.shape.clone()?, row.taken_bytes())));
            let enough = largest.as_ref().and_then(|(table, taken)| enough(explanation.message, table, *taken));
            let (shrink, server) = (shrink(explanation.message), explanation.message.server);
            BlockFinding::ScalarTables { largest, limit, shrink, enough, server }
        }
    }
}

/// The rows and columns of a table in SMEM, and as many of each as leave room for the rest; columns fill whole tiles of 128.
fn enough(message: &Message, table: &Shape, taken: u64) -> Option<[[u64; 2]; 2]> {
    const LANES: u64 = 128;
    let missing = message.budget().missing_bytes?;
    let [rows, columns] = table.as_array()?.bounds()?[..] else { return None };
    let of_row = taken.checked_div(rows).filter(|bytes| *bytes > 0)?;
    let fewer_rows = rows.checked_sub(missing.div_ceil(of_row)).filter(|rows| *rows > 0)?;
    let of_column = taken.checked_div(columns.next_multiple_of(LANES)).filter(|bytes| *bytes > 0)?;
    let kept = columns.next_multiple_of(LANES).checked_sub(missing.div_ceil(of_column))?;
    (kept >= LANES).then_some([[rows, columns], [fewer_rows, kept / LANES * LANES]])
}

/// Advice on values that did not fit into registers.
pub(super) fn spills(explanation: Listing<'_>, framework: Framework) -> Vec<Recommendation> {
    let windows = windows(explanation);
    let spilled = windows.iter().filter(|(_, window)| window.kind == WindowKind::Spill);
    let bytes = spilled.map(|(row, _)| row.taken_bytes()).fold(0, u64::saturating_add);
    let finding = match smaller_blocks(explanation, None) {
        library @ BlockFinding::Library { .. } => library::options(explanation).unwrap_or(library),
        other => {
            let operation = explanation.message.requested_at.clone().filter(|frame| frame.unrolled().is_some());
            BlockFinding::Spills { bytes, is_of_fusion: matches!(other, BlockFinding::Fusion { .. }), operation }
        }
    };
    [block(finding, framework)].into_iter().chain(limit(explanation, framework)).collect()
}
