//! State of an optimizer for weights that a step returns unchanged: the optimizer can leave them out.

use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, FrozenState},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{Purpose, name, root},
};
use tilewise_hlo::Opcode;
use tilewise_memory::Machine;

pub(crate) struct StateOfFrozenWeights;

impl Rule for StateOfFrozenWeights {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().filter(|program| program.has_gradient).and_then(proposal).into_iter().collect()
    }
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    let result = program.flow.result(program.flow.entry()?);
    let is_weight = |name: &String| Purpose::of_argument(name) == Purpose::Parameter && !path(name).is_empty();
    let origins = program.flow.elements(result).map(|element| program.flow.op_at(program.flow.origin(element)));
    let given = origins.filter_map(|op| program.flow.instruction(op)).filter(|at| at.opcode() == Opcode::Parameter);
    let frozen: Vec<String> = given.map(|argument| name(&argument)).filter(is_weight).collect();
    let weights: Vec<String> = program.parameters().iter().map(name).filter(is_weight).collect();
    // Where no weight changes nothing is trained.
    if frozen.is_empty() || frozen.len() == weights.len() {
        return None;
    }
    let is_of_frozen = |array: &&LiveArray<'_>| {
        let name = name(&array.instruction);
        // A deeper leaf of another weight may end alike.
        let tree = |weight: &String| name.strip_suffix(path(weight)).filter(|tree| !tree.ends_with(']'));
        Purpose::of_argument(&name) == Purpose::OptimizerState && frozen.iter().any(|weight| tree(weight).is_some())
    };
    let state: Vec<&LiveArray<'_>> = program.arguments().filter(is_of_frozen).collect();
    let largest = state.iter().max_by_key(|array| array.bytes)?;
    let bytes = state.iter().map(|array| array.bytes).fold(0, u64::saturating_add);
    let holder = root(&name(&largest.instruction)).to_owned();
    let finding = FrozenState { weights: in_whole(&frozen, &weights), holder, bytes };
    // Gradients of these weights go, too.
    let proposal = Proposal::new(Finding::FrozenState(finding), Target::Argument, program.advised(largest));
    Some(proposal.at_most(state.iter().map(|array| (array.buffer, 0))))
}

/// The place of a leaf in its tree: `['base']['w']` of `state.params['base']['w']`.
fn path(name: &str) -> &str {
    name.find('[').map_or("", |at| &name[at..])
}

/// Names of frozen weights: the branch of their tree, `params['base']`, where all of it is frozen, or else single arrays.
fn in_whole(frozen: &[String], weights: &[String]) -> Vec<String> {
    let branch = |name: &str| name.find(']').map_or(name.len(), |at| at + 1);
    let mut found: Vec<String> = Vec::new();
    for name in frozen {
        let whole = &name[..branch(name)];
        let count = |names: &[String]| names.iter().filter(|other| other.starts_with(whole)).count();
        let name = if count(frozen) == count(weights) { whole } else { name };
        if !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::{Audit, Machine, Program, recommendation::finding::Finding};
    use tilewise::tpu::Generation;

    /// Weights of two branches and a moment of each, of 32 MiB, for a memory of 100 MiB.
    #[test]
    fn weights_that_a_step_returns_unchanged_need_no_state() {
        let text = r#"HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias), {2}: (2, {}, may-alias), {3}: (3, {}, may-alias) }

ENTRY main (a.1: f32[1024,8192], b.1: f32[1024,8192], m.1: f32[1024,8192], n.1: f32[1024,8192]) -> (f32[1024,8192], f32[1024,8192], f32[1024,8192], f32[1024,8192]) {
  a.1 = f32[1024,8192]{1,0:T(8,128)} parameter(0), metadata={op_name="params['base']['w']"}
  b.1 = f32[1024,8192]{1,0:T(8,128)} parameter(1), metadata={op_name="params['lora']['w']"}
  m.1 = f32[1024,8192]{1,0:T(8,128)} parameter(2), metadata={op_name="opt_state[0].mu['base']['w']"}
  n.1 = f32[1024,8192]{1,0:T(8,128)} parameter(3), metadata={op_name="opt_state[0].mu['lora']['w']"}
  b.2 = f32[1024,8192]{1,0:T(8,128)} add(b.1, n.1), metadata={op_name="jit(step)/transpose(jvp())/add"}
  m.2 = f32[1024,8192]{1,0:T(8,128)} negate(m.1)
  n.2 = f32[1024,8192]{1,0:T(8,128)} negate(n.1)
  ROOT r = (f32[1024,8192]{1,0:T(8,128)}, f32[1024,8192]{1,0:T(8,128)}, f32[1024,8192]{1,0:T(8,128)}, f32[1024,8192]{1,0:T(8,128)}) tuple(FIRST, b.2, m.2, n.2)
}"#;
        let advice = |first: &str| {
            let program = Program::parse(text.replace("FIRST", first)).expect("a module");
            let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(100 << 20).run();
            report.advice().iter().find_map(|one| match &one.finding {
                Finding::FrozenState(state) => Some((state.weights.clone(), state.bytes)),
                _ => None,
            })
        };
        assert_eq!(advice("a.1"), Some((vec!["params['base']".to_owned()], 32 << 20)));
        // The state of a deeper leaf is another weight's.
        let deeper = text.replace("mu['base']['w']", "mu['lora']['base']['w']").replace("FIRST", "a.1");
        assert!(!Program::parse(deeper).is_ok_and(|program| {
            let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(100 << 20).run();
            report.advice().iter().any(|one| matches!(one.finding, Finding::FrozenState(_)))
        }));
        // Both are trained.
        assert_eq!(advice("b.2"), None);
    }
}
