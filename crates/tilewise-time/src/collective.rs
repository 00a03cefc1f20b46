//! Bytes of collectives.

use tilewise_hlo::{Instruction, Module, Opcode};

use crate::traffic::Arrays;

/// The least bytes that one device receives, whatever the algorithm. An all-reduce whose devices each keep only a part
/// (`scatters`) is a reduce-scatter.
#[expect(clippy::cast_precision_loss, reason = "an estimate of two digits")]
pub(crate) fn received_bytes<'m>(
    collective: &Instruction<'m>,
    module: &Module,
    scatters: bool,
    arrays: &mut Arrays<'m>,
) -> f64 {
    let operands: Vec<_> = collective.operands().filter_map(|operand| operand.instruction()).collect();
    let input = operands.iter().map(|operand| arrays.part(operand).logical).fold(0, u64::saturating_add) as f64;
    let all = || module.attribute("num_partitions").or_else(|| module.attribute("replica_count"))?.parse().ok();
    let devices = collective.group_size().or_else(all).unwrap_or(2).max(2) as f64;
    let others = (devices - 1.0) / devices;
    match collective.opcode() {
        Opcode::AllGather | Opcode::AllGatherStart => input * (devices - 1.0),
        Opcode::AllReduce if scatters => input * others,
        Opcode::AllReduce | Opcode::AllReduceStart | Opcode::CollectiveReduce => 2.0 * input * others,
        Opcode::ReduceScatter | Opcode::AllToAll | Opcode::RaggedAllToAll => input * others,
        _ => input,
    }
}
