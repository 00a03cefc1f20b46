//! NVIDIA GPUs: `GpuAliasInfo` (xla/service/gpu/alias_info.cc) and `NVPTXAliasInfo`.

use tilewise_hlo::{
    Opcode,
    dataflow::{Dataflow, Position},
};

use super::{Compiler, fusion::Fusions};
use crate::{rules::Rules, sharing};

/// `kXlaAllocatedBufferAlignBytes` (xla/service/gpu/gpu_constants.h).
const ALIGNMENT: u64 = 256;

#[derive(Debug)]
pub(super) struct Gpu {
    fusions: Fusions,
}

impl Gpu {
    pub(super) fn new(flow: &Dataflow) -> Self {
        Self { fusions: Fusions::new(flow) }
    }
}

impl Compiler for Gpu {}

impl Rules for Gpu {
    fn alignment(&self, _: u8) -> Option<u64> {
        Some(ALIGNMENT)
    }

    fn may_share(&self, flow: &Dataflow, result: Position, operand: Position) -> bool {
        let (user, op) = (flow.op_at(result), flow.op_at(operand));
        if flow[op].opcode == Opcode::Constant {
            return false;
        }
        let operands = flow.operands(user);
        match flow[user].opcode {
            Opcode::Fusion => self.fusions.writes_in_order(flow, result, op),
            Opcode::AllReduce | Opcode::CollectiveBroadcast => {
                let path = flow.shape_index(result);
                let is_own = || path.len() == 1 && operands.get(path[0]) == Some(&op);
                !flow.attributes(user).contains("nvshmem") && (operands.len() == 1 || is_own())
            }
            Opcode::CustomCall => {
                adds_to_third(flow.attributes(user))
                    && operands.get(2) == Some(&op)
                    && sharing::reads_once(operands, op)
                    && flow.shape_index(result) == [0]
            }
            _ => sharing::may_share(flow, result, operand),
        }
    }
}

/// Whether a cuBLAS call adds its product to operand 2: its `beta` is not 0.
fn adds_to_third(attributes: &str) -> bool {
    let beta = attributes.split_once("\"beta\":").map_or("", |(_, rest)| rest);
    let beta = beta.split([',', '}']).next().unwrap_or_default().trim();
    attributes.contains("\"__cublas$lt$matmul\"") && beta.parse().is_ok_and(|beta: f64| beta != 0.0)
}
