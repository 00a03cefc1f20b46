//! Arrays that a program makes for all steps of a loop before it, of which each step reads a slice: the step can make its own.

use super::stacked_cache::Stack;
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, MadeForSteps},
        program::{LiveArray, ProgramModel},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
        split::draws_bits,
    },
    program::{any_fused, bytes_of_leaf, is_backward, op_name, source_line},
};
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Machine;

/// The array matters from this part of the program's bytes on.
const MUCH: u64 = 8;

/// It is made of less than this part of its bytes.
const LITTLE: u64 = 16;

pub(crate) struct SlicesMadeBefore;

impl Rule for SlicesMadeBefore {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let Some(program) = evidence.program() else { return Vec::new() };
        // A compiler makes loops of gathers and scatters, too.
        let is_own = |at: &Instruction<'_>| op_name(at).is_some_and(|name| name.ends_with("while"));
        let loops = program.module.instructions().filter(|at| at.opcode() == Opcode::While && is_own(at));
        loops.filter_map(|around| proposal(program, &around)).collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>, around: &Instruction<'m>) -> Option<Proposal> {
    let steps = program.flow.trip_count(program.flow.op(around)?).filter(|steps| *steps > 1)?;
    // A backward pass reads slices of what the forward pass kept, and of what it is given.
    let is_of_user = |at: &Instruction<'_>| !op_name(at).is_some_and(|name| is_backward(&name));
    let stack = Stack::of(around).filter(|_| is_of_user(around))?;
    let of_steps = stack.read.iter().filter(|number| {
        stack.bounds(**number).is_some_and(|bounds| bounds.first() == Some(&steps) && bounds.len() > 1)
    });
    let made: Vec<(&LiveArray<'m>, Instruction<'m>)> = of_steps
        .filter_map(|number| {
            let maker = stack.start(*number).filter(|at| is_of_user(at) && is_made_of_little(program, at))?;
            let held = program.peak_temporaries().find(|array| stack.is_held_in(program, *number, array));
            Some((held?, maker))
        })
        .collect();
    let (largest, maker) = *made.iter().max_by_key(|(array, _)| array.bytes)?;
    let bytes = made.iter().map(|(array, _)| array.bytes).fold(0, u64::saturating_add);
    if bytes < program.total_bytes / MUCH {
        return None;
    }
    let source = source_line(around);
    let about = AdvisedArray { source: source_line(&maker).or_else(|| source.clone()), ..program.advised(largest) };
    let finding =
        Finding::MadeForSteps(MadeForSteps { steps, bytes, is_drawn: any_fused(&maker, draws_bits), of: None, source });
    let proposal = Proposal::new(finding, Target::Loop, about).bound();
    Some(proposal.at_most(made.iter().map(|(array, _)| (array.buffer, array.bytes / steps))))
}

/// Whether an instruction makes an array of others that are much smaller.
fn is_made_of_little(program: &ProgramModel<'_>, at: &Instruction<'_>) -> bool {
    let bytes = |at: &Instruction<'_>| {
        let shape = at.shape().ok()?;
        let mut leaves = shape.leaves();
        leaves.try_fold(0_u64, |all, (_, leaf)| Some(all.saturating_add(bytes_of_leaf(&leaf)?)))
    };
    let mut given = at.operands().map(|operand| bytes(&operand.instruction()?));
    let given = given.try_fold(0_u64, |all, operand| Some(all.saturating_add(operand?)));
    let is_own = program.flow.op(at).is_some()
        && matches!(at.opcode(), Opcode::Fusion | Opcode::Broadcast | Opcode::RngBitGenerator);
    is_own && bytes(at).zip(given).is_some_and(|(made, given)| given < made / LITTLE)
}

#[cfg(test)]
mod tests {
    use super::super::looped::{Looped, READS};
    use crate::advice::finding::Finding;

    #[test]
    fn a_step_makes_what_it_reads() {
        // 64 steps each read a slice of 128 MiB.
        let made = |start: &str| {
            let end = "ROOT r.1 = ONE get-tuple-element(w), index=1";
            let found = Looped { steps: 64, matrix: "512,1024", turn: READS, start, end }.advice();
            found.into_iter().find_map(|one| match one.finding {
                Finding::MadeForSteps(made) if made.of.is_none() => Some((made.steps, made.bytes, made.is_drawn)),
                _ => None,
            })
        };
        assert_eq!(made("ALL fusion(key.1), kind=kLoop, calls=drawn"), Some((64, 128 << 20, true)));
        // As much is needed to make it.
        assert_eq!(made("ALL negate(noise.1)"), None);
    }
}
