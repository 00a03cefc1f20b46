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
    let devices = devices(collective, module).unwrap_or(2).max(2) as f64;
    let others = (devices - 1.0) / devices;
    match collective.opcode() {
        Opcode::AllGather | Opcode::AllGatherStart => input * (devices - 1.0),
        Opcode::AllReduce if scatters => input * others,
        Opcode::AllReduce | Opcode::AllReduceStart | Opcode::CollectiveReduce => 2.0 * input * others,
        Opcode::ReduceScatter | Opcode::AllToAll | Opcode::RaggedAllToAll => input * others,
        _ => input,
    }
}

/// The number of devices that take part, by the first group.
fn devices(collective: &Instruction<'_>, module: &Module) -> Option<u64> {
    let all = || module.attribute("num_partitions").or_else(|| module.attribute("replica_count"))?.parse().ok();
    let Some(groups) = collective.attribute("replica_groups") else { return all() };
    if let Some(first) = groups.strip_prefix("{{") {
        let members = first.split('}').next()?.split(',').filter(|member| !member.trim().is_empty());
        return u64::try_from(members.count()).ok();
    }
    // `[groups,members]<=[…]`
    let counts = groups.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match counts.and_then(|(counts, _)| counts.split(',').nth(1)) {
        Some(members) => members.trim().parse().ok(),
        None => all(),
    }
}
