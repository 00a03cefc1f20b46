//! The work of a program, counted from its text, to rank variants of one program.

use foldhash::HashSet;
use std::collections::BTreeMap;
use tilewise::Tiled;
use tilewise_hlo::{CallRole, Computation, Instruction, Opcode, dataflow::Dataflow};
use tilewise_time::flops;

/// A program's computation and communication, times the trip counts of loops; a loop of unknown trip count counts once.
///
/// It is counted from the text, and was checked against no hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Floating-point operations of matrix multiplications and convolutions: a multiplication and an addition for each
    /// pair of elements, counted as by `HloCostAnalysis` in xla/service/hlo_cost_analysis.cc.
    pub flops: u64,
    /// Collectives by opcode (`all-gather`).
    pub collectives: BTreeMap<&'static str, Sent>,
    /// Instructions that the compiler computes a second time rather than keep their results. A value that is only kept
    /// in a tighter layout for a while is copied, and isn't counted.
    pub recomputed: u64,
}

/// The collectives of one opcode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Number of collectives in the program.
    pub count: u64,
    /// Bytes of their results, times the trip counts of loops.
    pub bytes: u64,
}

pub(crate) fn work(flow: &Dataflow) -> Work {
    let computations: Vec<Computation<'_>> = flow.module().computations().collect();
    let instructions = computations.iter().flat_map(Computation::instructions);
    let recomputed = instructions.filter(|instruction| is_recomputed(instruction.name())).count() as u64;
    let mut work = Work { recomputed, ..Work::default() };
    for (computation, Runs { places, executions }) in computations.iter().zip(runs(flow, &computations)) {
        if places == 0 {
            continue;
        }
        for instruction in computation.instructions() {
            if let Some(kind) = collective(instruction.opcode()) {
                let sent = work.collectives.entry(kind).or_default();
                sent.count = sent.count.saturating_add(places);
                sent.bytes = sent.bytes.saturating_add(bytes_of(&instruction).saturating_mul(executions));
            }
        }
    }
    let flops = products(flow).map(|product| product.flops.saturating_mul(product.executions));
    work.flops = flops.fold(0, u64::saturating_add);
    work
}

/// A matrix product or a convolution.
pub(super) struct Product<'m> {
    pub(super) instruction: Instruction<'m>,
    /// Floating-point operations of one execution.
    pub(super) flops: u64,
    /// Number of executions in a run.
    pub(super) executions: u64,
    /// Whether the compiler computes it a second time, rather than keep its result.
    pub(super) is_again: bool,
}

/// All products of a program that run.
pub(super) fn products(flow: &Dataflow) -> impl Iterator<Item = Product<'_>> {
    let computations: Vec<Computation<'_>> = flow.module().computations().collect();
    let runs = runs(flow, &computations);
    let mut again = HashSet::default();
    for computation in &computations {
        let recomputed = computation.instructions().filter(|instruction| is_recomputed(instruction.name()));
        again.extend(recomputed.flat_map(|instruction| {
            let called = instruction.calls().filter_map(|call| call.computation());
            called.map(|computation| computation.index()).collect::<Vec<_>>()
        }));
    }
    computations.into_iter().zip(runs).filter(|(_, runs)| runs.places > 0).flat_map(move |(computation, runs)| {
        let (executions, is_again) = (runs.executions, again.contains(&computation.index()));
        computation.instructions().filter_map(move |instruction| {
            let is_again = is_again || is_recomputed(instruction.name());
            Some(Product { flops: flops(&instruction)?, instruction, executions, is_again })
        })
    })
}

/// The number of runs of a computation.
#[derive(Clone, Copy, Default)]
struct Runs {
    /// Number of places of the program that call it.
    places: u64,
    /// Number of executions in all places together.
    executions: u64,
}

/// The runs of each computation. A fused one runs wherever its fusions do: callers are counted before the computations
/// they fuse, each once, so that nested fusions take time linear in their text. Computations that fuse each other in a
/// circle, which no compiler prints, don't run.
fn runs(flow: &Dataflow, computations: &[Computation<'_>]) -> Vec<Runs> {
    let mut runs = vec![Runs::default(); computations.len()];
    let mut reached: Vec<usize> = Vec::new();
    for computation in computations.iter().filter(|computation| computation.owns_buffers()) {
        let executions = flow.body(computation).and_then(|body| flow.executions(body)).unwrap_or(1);
        runs[computation.index()] = Runs { places: 1, executions };
        reached.push(computation.index());
    }
    let mut is_reached: Vec<bool> = computations.iter().map(Computation::owns_buffers).collect();
    let mut fused: Vec<Vec<usize>> = vec![Vec::new(); computations.len()];
    let mut callers = vec![0_usize; computations.len()];
    let mut waiting = reached.clone();
    while let Some(caller) = waiting.pop() {
        fused[caller] = fused_by(&computations[caller]);
        for &callee in &fused[caller] {
            callers[callee] += 1;
            if !std::mem::replace(&mut is_reached[callee], true) {
                waiting.push(callee);
            }
        }
    }
    let mut ready: Vec<usize> = reached.into_iter().filter(|computation| callers[*computation] == 0).collect();
    while let Some(caller) = ready.pop() {
        let of_caller = runs[caller];
        for &callee in &fused[caller] {
            let all = &mut runs[callee];
            all.places = all.places.saturating_add(of_caller.places);
            all.executions = all.executions.saturating_add(of_caller.executions);
            callers[callee] -= 1;
            if callers[callee] == 0 {
                ready.push(callee);
            }
        }
    }
    runs
}

/// The bodies of a computation's fusions, by index.
fn fused_by(computation: &Computation<'_>) -> Vec<usize> {
    let fusions = computation.instructions().filter(|instruction| instruction.opcode() == Opcode::Fusion);
    let body = |fusion: Instruction<'_>| {
        let call = fusion.calls().find(|call| call.role == CallRole::Calls)?;
        Some(call.computation()?.index())
    };
    fusions.filter_map(body).collect()
}

/// Whether rematerialisation named it: it appends `.remat`, a number, and for a copy in a tighter layout its kind.
fn is_recomputed(name: &str) -> bool {
    name.match_indices(".remat").any(|(at, mark)| {
        let rest = &name[at + mark.len()..];
        !rest.starts_with("_compressed") && !rest.starts_with("_uncompressed")
    })
}

/// The name of a collective; `None` for other opcodes, such as the end of an asynchronous collective.
fn collective(opcode: Opcode) -> Option<&'static str> {
    Some(match opcode {
        Opcode::AllGather | Opcode::AllGatherStart => "all-gather",
        Opcode::AllReduce | Opcode::AllReduceStart => "all-reduce",
        Opcode::AllToAll | Opcode::RaggedAllToAll => "all-to-all",
        Opcode::CollectivePermute | Opcode::CollectivePermuteStart => "collective-permute",
        Opcode::ReduceScatter => "reduce-scatter",
        _ => return None,
    })
}

/// Bytes of the result. The start of a collective also holds its operands and semaphores: its largest array counts.
fn bytes_of(instruction: &Instruction<'_>) -> u64 {
    let sizes = instruction.shape().into_iter().flat_map(|shape| {
        let leaves: Vec<u64> =
            shape.leaves().filter_map(|(_, leaf)| Tiled::new(&leaf).ok().map(|tiled| tiled.physical_bytes())).collect();
        leaves
    });
    match instruction.opcode() {
        Opcode::AllGatherStart | Opcode::CollectivePermuteStart => sizes.max().unwrap_or(0),
        _ => sizes.fold(0, u64::saturating_add),
    }
}

#[cfg(test)]
mod tests {
    use super::is_recomputed;

    /// Names as libtpu 0.0.51 prints them.
    #[test]
    fn a_tighter_layout_is_no_recomputation() {
        assert!(["a.remat", "d.remat2.1", "fusion.236.remat2"].into_iter().all(is_recomputed));
        let others = ["a", "remat", "a.remat_compressed", "a.remat_uncompressed", "a.remat_uncompressed.2"];
        assert!(!others.into_iter().any(is_recomputed));
    }
}
