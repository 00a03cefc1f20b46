//! One-hot arrays of tokens, experts and slots, by whose products tokens are sent to experts and back: indices of slots do so
//! without them. They grow with the square of the tokens, of which an expert's slots are a share.

use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, OneHotSlots},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{any_fused, bounds, sorted},
};
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Machine;

/// The arrays matter from this part of the program's bytes on.
const MUCH: u64 = 8;

/// Fewer slots are classes or heads.
const SLOTS: u64 = 64;

pub(crate) struct OneHotDispatch;

impl Rule for OneHotDispatch {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    let found = program.peak_temporaries().filter_map(|array| Some((array, slots(program, array)?)));
    let (largest, slots) = found.max_by_key(|(array, _)| array.bytes)?;
    // Their masks, weights in another type, and gradients have equal bounds, in any order.
    let all = sorted(&largest.bounds);
    let alike = || program.temporaries().filter(|array| sorted(&array.bounds) == all);
    let at_peak = alike().filter(|array| array.is_at_peak).map(|array| array.bytes);
    if at_peak.fold(0, u64::saturating_add) < program.total_bytes / MUCH {
        return None;
    }
    let finding = Finding::OneHotSlots(OneHotSlots { slots });
    let proposal = Proposal::new(finding, Target::Value, program.advised(largest)).bound();
    Some(proposal.at_most(alike().map(|array| (array.buffer, 0))))
}

/// The number of slots of an array that a product makes from the one-hot encoding of slots, and that keeps their dimension.
fn slots(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<u64> {
    if array.bounds.len() < 3 {
        return None;
    }
    let encodes = |at: &Instruction<'_>, slots: u64| any_fused(at, |at| encoded(at) == Some(slots));
    let given: Vec<Instruction<'_>> =
        program.flow.operands(array.op).iter().filter_map(|operand| program.flow.instruction(*operand)).collect();
    // The encoding is an operand of the product itself, within a fusion or before it.
    let is_product = |at: &Instruction<'_>, slots: u64| {
        let mut operands = at.operands().filter_map(|operand| operand.instruction());
        let is_given = || given.iter().any(|operand| encodes(operand, slots));
        matches!(at.opcode(), Opcode::Dot | Opcode::Convolution)
            && operands.any(|operand| encodes(&operand, slots) || operand.opcode() == Opcode::Parameter && is_given())
    };
    let bounds = array.bounds.iter().copied().filter(|slots| *slots >= SLOTS);
    bounds.into_iter().find(|slots| any_fused(&array.instruction, |at| is_product(at, *slots)))
}

/// The size of the dimension along which a comparison of indices with an iota encodes them.
fn encoded(at: &Instruction<'_>) -> Option<u64> {
    let is_equal = at.opcode() == Opcode::Compare && at.attribute("direction") == Some("EQ");
    let operands = at.operands().filter_map(|operand| operand.instruction()).filter(|_| is_equal);
    // Two of them make an identity.
    let mut iotas = operands.filter(|operand| operand.opcode() == Opcode::Iota);
    let iota = iotas.next().filter(|_| iotas.next().is_none())?;
    bounds(&iota)?.get(iota.iota_dimension()?).copied()
}

#[cfg(test)]
mod tests {
    use crate::{Audit, Program, recommendation::finding::Finding};
    use tilewise::tpu::Generation;
    use tilewise_memory::Machine;

    /// Tokens are sent to the slots of experts by a mask.
    const DISPATCH: &str = r#"HloModule jit_f, is_scheduled=true

ENTRY main {
  x = bf16[4096,512]{1,0:T(8,128)(2,1)} parameter(0), metadata={op_name="x"}
  gate = f32[4096,8]{1,0:T(8,128)} parameter(1), metadata={op_name="gate"}
  place = s32[4096]{0:T(1024)} parameter(2), metadata={op_name="place"}
  places = s32[4096,1024]{1,0:T(8,128)} broadcast(place), dimensions={0}
  slot = s32[4096,1024]{1,0:T(8,128)} iota(), iota_dimension=1
  hot = pred[4096,1024]{1,0:T(8,128)(4,1)} compare(places, slot), direction=EQ
  mask = f32[4096,8,1024]{2,1,0:T(8,128)} dot(gate, hot), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={}, rhs_contracting_dims={}, metadata={op_name="jit(f)/dot_general" source_file="moe.py" source_line=7}
  ROOT y = f32[8,1024,512]{2,1,0:T(8,128)} dot(mask, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}"#;

    fn slots(text: &str) -> Option<u64> {
        let program = Program::parse(text).expect("a module");
        let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(64 << 20).run();
        report.advice().iter().find_map(|one| match &one.finding {
            Finding::OneHotSlots(found) => Some(found.slots),
            _ => None,
        })
    }

    #[test]
    fn a_mask_of_tokens_experts_and_slots() {
        assert_eq!(slots(DISPATCH), Some(1024));
        // Weights of any other kind.
        assert_eq!(slots(&DISPATCH.replace("direction=EQ", "direction=LT")), None);
        let identity = DISPATCH.replace("broadcast(place), dimensions={0}", "iota(), iota_dimension=0");
        assert_eq!(slots(&identity), None);
    }
}
