//! CPUs: XLA's general rules, with those for fusions of `AliasInfo` (xla/hlo/analysis/alias_info.cc).

use tilewise_hlo::{
    Opcode,
    dataflow::{Dataflow, Position},
};

use super::{Compiler, fusion::Fusions};
use crate::{rules::Rules, sharing};

/// `cpu_function_runtime::MinAlign` (xla/backends/cpu/alignment.h).
const ALIGNMENT: u64 = 64;

#[derive(Debug)]
pub(super) struct Cpu {
    fusions: Fusions,
}

impl Cpu {
    pub(super) fn new(flow: &Dataflow) -> Self {
        Self { fusions: Fusions::new(flow) }
    }
}

impl Compiler for Cpu {}

impl Rules for Cpu {
    fn alignment(&self, _: u8) -> Option<u64> {
        Some(ALIGNMENT)
    }

    fn may_share(&self, flow: &Dataflow, result: Position, operand: Position) -> bool {
        let (user, op) = (flow.op_at(result), flow.op_at(operand));
        match flow[user].opcode {
            _ if flow[op].opcode == Opcode::Constant => false,
            Opcode::Fusion => {
                sharing::same_shape(flow, result, operand) && self.fusions.is_elementwise_on(flow, user, op)
            }
            _ => sharing::may_share(flow, result, operand),
        }
    }
}
