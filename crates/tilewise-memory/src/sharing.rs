//! Results that may take the place of an operand that ends with them, by XLA's general rules:
//! `HloDataflowAnalysis::CanShareOperandBufferWithUser` (xla/hlo/analysis/hlo_dataflow_analysis.cc).

use tilewise_hlo::{
    CallRole, Opcode,
    dataflow::{Dataflow, OpId, Position},
};

/// Whether a result of an instruction other than a fusion may take the place of an operand. Results that must lie in an
/// operand are in its buffer already.
pub(crate) fn may_share(flow: &Dataflow, result: Position, operand: Position) -> bool {
    let (user, op) = (flow.op_at(result), flow.op_at(operand));
    if !same_shape(flow, result, operand) {
        return false;
    }
    let operands = flow.operands(user);
    match flow[user].opcode {
        Opcode::While | Opcode::Conditional => true,
        Opcode::DynamicUpdateSlice | Opcode::Scatter | Opcode::SetDimensionSize => {
            operands.first() == Some(&op) && reads_once(operands, op)
        }
        Opcode::TriangularSolve => operands.get(1) == Some(&op) && reads_once(operands, op),
        Opcode::Sort => {
            let number = operands.iter().position(|operand| *operand == op);
            let is_own =
                || reads_once(operands, op) && number.is_some_and(|number| flow.shape_index(result) == [number]);
            flow.users(op).iter().all(|other| other.op == user) && (operands.len() == 1 || is_own())
        }
        Opcode::BitcastConvert => bits(flow, flow[user].position) == bits(flow, flow[op].position),
        opcode => opcode.is_elementwise(),
    }
}

/// Whether two positions have the same type, dimensions and layout.
pub(crate) fn same_shape(flow: &Dataflow, a: Position, b: Position) -> bool {
    flow.node(a) == flow.node(b) || flow.shape(a) == flow.shape(b)
}

pub(crate) fn reads_once(operands: &[OpId], op: OpId) -> bool {
    operands.iter().filter(|operand| **operand == op).count() == 1
}

/// Whether an instruction makes no values of its own, but joins those of others: a loop's carry, or branch results.
pub(crate) fn joins(flow: &Dataflow, op: OpId) -> bool {
    match flow[op].opcode {
        Opcode::While | Opcode::Conditional => true,
        Opcode::Parameter => flow.loop_around(op).is_some(),
        _ => false,
    }
}

fn bits(flow: &Dataflow, position: Position) -> Option<u32> {
    Some(flow.shape(position)?.element_type()?.bits())
}

/// The computation of a fusion, also of one in an abbreviated start.
pub(crate) fn fused_computation(flow: &Dataflow, fusion: OpId) -> Option<usize> {
    let call = flow.instruction(fusion)?.calls().find(|call| call.role == CallRole::Calls)?;
    Some(call.computation()?.index())
}
