//! The work of a program, counted from its text: what variants of one program can be ranked by.

use std::collections::BTreeMap;
use tilewise::Tiled;
use tilewise_hlo::{CallRole, Computation, Instruction, Opcode, dataflow::Dataflow};
use tilewise_time::flops;

/// What a program computes and sends, loops times their trips; a loop that can't be counted counts once.
///
/// It is counted from the text, and was checked against no hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Floating-point operations of matrix multiplications and convolutions: a multiplication and an addition for each
    /// pair of elements that meet, as `HloCostAnalysis` in xla/service/hlo_cost_analysis.cc counts them.
    pub flops: u64,
    /// Collectives by opcode (`all-gather`).
    pub collectives: BTreeMap<&'static str, Sent>,
    /// Instructions that the compiler computes a second time rather than keep their results. What is only kept in a tighter
    /// layout for a while is copied, and isn't counted.
    pub recomputed: u64,
}

/// The collectives of one opcode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// How many there are.
    pub count: u64,
    /// Bytes of their results, loops times their trips.
    pub bytes: u64,
}

pub(crate) fn work(flow: &Dataflow) -> Work {
    let instructions = flow.module().computations().flat_map(|computation| computation.instructions());
    let recomputed = instructions.filter(|instruction| is_recomputed(instruction.name())).count() as u64;
    let mut work = Work { recomputed, ..Work::default() };
    // What is fused runs as often as what it is part of.
    let mut waiting: Vec<(Computation<'_>, u64)> = flow
        .module()
        .computations()
        .filter(Computation::owns_buffers)
        .map(|computation| {
            let count = flow.body(&computation).and_then(|body| flow.executions(body)).unwrap_or(1);
            (computation, count)
        })
        .collect();
    while let Some((computation, count)) = waiting.pop() {
        for instruction in computation.instructions() {
            match instruction.opcode() {
                Opcode::Fusion => {
                    let fused = instruction.calls().find(|call| call.role == CallRole::Calls);
                    waiting.extend(fused.and_then(|call| call.computation()).map(|fused| (fused, count)));
                }
                opcode => {
                    if let Some(kind) = collective(opcode) {
                        let sent = work.collectives.entry(kind).or_default();
                        sent.count += 1;
                        sent.bytes = sent.bytes.saturating_add(bytes_of(&instruction).saturating_mul(count));
                    }
                }
            }
            let flops = flops(&instruction).unwrap_or(0);
            work.flops = work.flops.saturating_add(flops.saturating_mul(count));
        }
    }
    work
}

/// Whether rematerialisation named it: it appends `.remat`, a number, and for a copy in a tighter layout what it is.
fn is_recomputed(name: &str) -> bool {
    name.match_indices(".remat").any(|(at, mark)| {
        let rest = &name[at + mark.len()..];
        !rest.starts_with("_compressed") && !rest.starts_with("_uncompressed")
    })
}

/// The name of a collective; `None` for what only waits for one.
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

/// Bytes of the result. What begins a collective has its operands and semaphores as well: the largest array counts.
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
