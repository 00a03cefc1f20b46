//! Gradients of weights that a loop adds up for each sample on its own: a loop over the whole batch adds up one for
//! all.

use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, SampleGradients},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::name,
};
use foldhash::{HashMap, HashSet};
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Machine;

pub(crate) struct GradientsOfSamples;

impl Rule for GradientsOfSamples {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>) -> Option<Proposal> {
    if !program.has_gradient {
        return None;
    }
    let (weights, sums) = (weights(program), sums_of_outer_products(program));
    let of =
        |array: &LiveArray<'m>| weights.get(&sorted(array.bounds.get(1..)?)).filter(|_| sums.contains(&array.bounds));
    let found = program.peak_temporaries().filter(|array| of(array).is_some());
    let largest = found.max_by_key(|array| array.bytes)?;
    let ((samples, one), weight) = (largest.bounds.split_first()?, of(largest)?);
    let of_one = |array: &LiveArray<'m>| {
        of(array)?;
        Some((array.buffer, program.default_bytes(array.element_type(), array.bounds.get(1..)?)?))
    };
    let finding = SampleGradients { weight: weight.clone(), samples: *samples, bounds: one.to_vec() };
    let proposal = Proposal::new(Finding::SampleGradients(finding), Target::Loop, program.advised(largest)).bound();
    Some(proposal.at_most(program.temporaries().filter_map(of_one)))
}

/// Names of arguments that may be weights, by their sorted bounds.
fn weights(program: &ProgramModel<'_>) -> HashMap<Vec<u64>, String> {
    let mut weights = HashMap::default();
    for parameter in program.parameters() {
        if let Some(bounds) = parameter.shape().ok().and_then(|shape| shape.bounds()).filter(|bounds| bounds.len() > 1)
        {
            weights.entry(sorted(&bounds)).or_insert_with(|| name(&parameter));
        }
    }
    weights
}

/// Bounds of arrays to which outer products of each sample's vectors are added.
fn sums_of_outer_products(program: &ProgramModel<'_>) -> HashSet<Vec<u64>> {
    let adds = program.module.instructions().filter(|at| at.opcode() == Opcode::Add);
    let sums = adds.filter(|at| at.operands().any(|operand| operand.instruction().is_some_and(|at| is_outer(&at))));
    sums.filter_map(|at| at.shape().ok()?.bounds()).collect()
}

/// Whether an instruction multiplies two factors that have the first dimension, and each a dimension that the other
/// lacks.
fn is_outer(at: &Instruction<'_>) -> bool {
    let factors: Vec<HashSet<usize>> = at
        .operands()
        .filter_map(|operand| operand.instruction().filter(|factor| factor.opcode() == Opcode::Broadcast))
        .filter_map(|factor| Some(factor.dimensions()?.into_iter().collect()))
        .collect();
    let [left, right] = &factors[..] else { return false };
    at.opcode() == Opcode::Multiply
        && left.contains(&0)
        && right.contains(&0)
        && !left.is_subset(right)
        && !right.is_subset(left)
}

fn sorted(bounds: &[u64]) -> Vec<u64> {
    let mut bounds = bounds.to_vec();
    bounds.sort_unstable();
    bounds
}
