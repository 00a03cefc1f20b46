//! State that takes less in another form: in 16 bits a cache, the optimizer's first moment, weights that no gradient updates,
//! and what a loop carries; as sums of rows and columns both moments.

use crate::advice::{
    change::Target,
    finding::{Finding, WideState, WideStateKind},
    program::{LiveArray, ProgramModel},
    rule::Proposal,
};
use crate::program::{Purpose, is_name, name, op_name, root};
use foldhash::HashMap;
use tilewise::{ElementType, Shape};
use tilewise_hlo::Opcode;

/// Maximum number of keys that are named.
const MOST_KEYS: usize = 2;

/// The first of these states whose narrowing is enough, with the bytes freed; `enough` gives those of a proposal that is
/// enough. It rounds values, so it comes after all changes that compute the same.
pub(crate) fn narrowed(
    program: &ProgramModel<'_>,
    enough: impl Fn(&Proposal) -> Option<u64>,
) -> Option<(u64, Proposal)> {
    let kinds = [WideStateKind::Cache, WideStateKind::FirstMoment, WideStateKind::Moments, WideStateKind::Weights];
    let of_arguments = kinds.into_iter().filter_map(|kind| of_kind(program, kind));
    of_arguments.chain(carried(program)).find_map(|proposal| Some((enough(&proposal)?, proposal)))
}

/// The largest array that a loop carries in `f32`, where no gradient is taken through it.
fn carried(program: &ProgramModel<'_>) -> Option<Proposal> {
    // The compiler's own loops, such as a gather's, are called as what they are made of.
    let is_carried = |array: &&LiveArray<'_>| {
        let is_loop = array.instruction.opcode() == Opcode::While;
        let is_of_program = is_loop && op_name(&array.instruction).is_some_and(|name| name.contains("while"));
        is_of_program && array.is_at_peak && array.element_type() == ElementType::F32
    };
    let largest = program.temporaries().filter(|_| !program.has_gradient).filter(is_carried);
    let largest = largest.max_by_key(|array| array.bytes)?;
    let (kind, bytes) = (WideStateKind::Carry, largest.bytes);
    let finding = Finding::WideState(WideState { kind, roots: Vec::new(), keys: Vec::new(), bytes });
    let smaller = [(largest.buffer, bytes.div_ceil(2))];
    Some(Proposal::new(finding, Target::Loop, program.advised(largest)).at_most(smaller).bound())
}

fn of_kind(program: &ProgramModel<'_>, kind: WideStateKind) -> Option<Proposal> {
    let updated = program.states();
    let bare = |array: &LiveArray<'_>| array.shape.without_layout().to_string();
    let is_of_kind = |array: &&LiveArray<'_>| {
        let name = name(&array.instruction);
        let purpose = Purpose::of_argument(&name);
        let is_kind = match kind {
            WideStateKind::Cache => purpose == Purpose::Cache,
            WideStateKind::FirstMoment => purpose == Purpose::OptimizerState && has_word(&name, "mu"),
            WideStateKind::Moments => {
                purpose == Purpose::OptimizerState && (has_word(&name, "mu") || has_word(&name, "nu"))
            }
            WideStateKind::Carry => false,
            // A gradient's small steps are lost in 16 bits.
            WideStateKind::Weights => purpose == Purpose::Parameter && !updated.contains(&bare(array)),
        };
        is_kind && array.element_type() == ElementType::F32
    };
    let arrays: Vec<&LiveArray<'_>> = program.arguments().filter(is_of_kind).collect();
    let largest = arrays.iter().max_by_key(|array| array.bytes)?;
    let is_second = |array: &LiveArray<'_>| has_word(&name(&array.instruction), "nu");
    if kind == WideStateKind::Moments && !arrays.iter().any(|array| is_second(array)) {
        return None;
    }
    // Sums of rows and columns are too few to count; an array of one dimension has neither.
    let after = |array: &LiveArray<'_>| match kind {
        WideStateKind::Moments if array.bounds.len() > 1 => 0,
        WideStateKind::Moments => array.bytes,
        _ => array.bytes.div_ceil(2),
    };
    let (mut roots, mut keys): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut shapes: HashMap<&Shape, usize> = HashMap::default();
    for array in &arrays {
        let name = name(&array.instruction);
        let key = name.rsplit('\'').nth(1).filter(|key| is_name(key)).map(str::to_owned);
        for (known, found) in [(&mut roots, Some(root(&name).to_owned())), (&mut keys, key)] {
            known.extend(found.filter(|found| !known.contains(found)));
        }
        *shapes.entry(&array.shape).or_default() += 1;
    }
    // The new state is a result, which has the argument's type.
    let results = program.results().filter(|result| {
        let left = shapes.get_mut(&result.shape).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    });
    let smaller: Vec<(usize, u64)> =
        arrays.iter().copied().chain(results).map(|array| (array.buffer, after(array))).collect();
    let bytes = arrays.iter().map(|array| array.bytes).fold(0, u64::saturating_add);
    let is_of_roots = |array: &&LiveArray<'_>| roots.iter().any(|of| of == root(&name(&array.instruction)));
    if program.arguments().filter(is_of_roots).count() == arrays.len() || keys.len() > MOST_KEYS {
        keys.clear();
    }
    let finding = Finding::WideState(WideState { kind, roots, keys, bytes });
    Some(Proposal::new(finding, Target::Argument, program.advised(largest)).at_most(smaller).bound())
}

/// Whether an argument's path has this word: `opt_state[0].mu['w']` has `mu`.
fn has_word(name: &str, word: &str) -> bool {
    name.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::{super::looped::Looped, WideStateKind};
    use crate::{Audit, Machine, Program, Recommendation, recommendation::finding::Finding};
    use tilewise::tpu::Generation;

    /// A decoding step that writes one position, with weights in `bf16`, for a memory of `limit` MiB.
    fn advice(limit: u64) -> Vec<Recommendation> {
        let text = r#"HloModule jit_step, is_scheduled=true

ENTRY main (w.1: bf16[1024,16384], k.1: f32[1024,8192], v.1: bf16[1024,8192]) -> (f32[1024,8192], bf16[1024,8192]) {
  w.1 = bf16[1024,16384]{1,0:T(8,128)(2,1)} parameter(0), metadata={op_name="params['w']"}
  k.1 = f32[1024,8192]{1,0:T(8,128)} parameter(1), metadata={op_name="cache['k']"}
  v.1 = bf16[1024,8192]{1,0:T(8,128)(2,1)} parameter(2), metadata={op_name="cache['v']"}
  k.2 = f32[1024,8192]{1,0:T(8,128)} negate(k.1)
  v.2 = bf16[1024,8192]{1,0:T(8,128)(2,1)} negate(v.1)
  ROOT r = (f32[1024,8192]{1,0:T(8,128)}, bf16[1024,8192]{1,0:T(8,128)(2,1)}) tuple(k.2, v.2)
}"#;
        let program = Program::parse(text).expect("a module");
        Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(limit << 20).run().advice().to_vec()
    }

    /// Weights of 32 MiB, keys of 32, values of 16. Donated it holds 80, with narrow keys 64.
    #[test]
    fn keys_are_narrowed_before_weights_are_divided() {
        let found = |limit| advice(limit).into_iter().map(|one| (one.finding, one.saving.bytes())).collect::<Vec<_>>();
        assert!(matches!(&found(81)[..], [(Finding::UndonatedState(_), Some(bytes))] if *bytes == 48 << 20));
        let narrowed = found(66);
        let [_, (Finding::WideState(state), Some(bytes))] = &narrowed[..] else { panic!("{narrowed:?}") };
        assert_eq!(
            (&state.roots[..], &state.keys[..], state.bytes),
            (&["cache".to_owned()][..], &["k".to_owned()][..], 32 << 20)
        );
        assert_eq!(*bytes, 16 << 20);
        // The second change keeps what the first donates.
        let advice = advice(66);
        assert!(!advice[0].donate().is_empty() && advice[0].donated.is_empty());
        assert_eq!(advice[1].donated, advice[0].donate());
        assert!(matches!(&found(50)[..], [_, (Finding::Memory(_), _)]));
    }

    /// 34 MiB that each turn reads and writes whole, beside an argument as large, for a memory of 64.
    #[test]
    fn what_a_loop_carries_is_narrowed() {
        let turn = "y = ONE negate(x)\n  kept = ALL negate(stack)";
        let start = "ALL custom-call(), custom_call_target=\"AllocateBuffer\"";
        let end = "least = f32[] constant(0)\n  ROOT r.1 = ONE reduce(e, least), dimensions={0}, to_apply=sum";
        let found = Looped { steps: 17, matrix: "512,1024", turn, start, end }.advice();
        let kinds = found.iter().filter_map(|one| match &one.finding {
            Finding::WideState(state) => Some((state.kind, state.bytes, one.saving.bytes())),
            _ => None,
        });
        assert_eq!(kinds.collect::<Vec<_>>(), [(WideStateKind::Carry, 34 << 20, Some(17 << 20))]);
    }

    /// Weights and Adam's moments, of 32 MiB each and donated, for a memory of 50 MiB: the first moment in 16 bits isn't enough.
    #[test]
    fn an_optimizer_without_moments_comes_before_more_devices() {
        let text = r#"HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias), {2}: (2, {}, may-alias) }

ENTRY main (w.1: f32[1024,8192], m.1: f32[1024,8192], n.1: f32[1024,8192]) -> (f32[1024,8192], f32[1024,8192], f32[1024,8192]) {
  w.1 = f32[1024,8192]{1,0:T(8,128)} parameter(0), metadata={op_name="params['w']"}
  m.1 = f32[1024,8192]{1,0:T(8,128)} parameter(1), metadata={op_name="opt_state[0].mu['w']"}
  n.1 = f32[1024,8192]{1,0:T(8,128)} parameter(2), metadata={op_name="opt_state[0].nu['w']"}
  w.2 = f32[1024,8192]{1,0:T(8,128)} negate(w.1)
  m.2 = f32[1024,8192]{1,0:T(8,128)} negate(m.1)
  n.2 = f32[1024,8192]{1,0:T(8,128)} negate(n.1)
  ROOT r = (f32[1024,8192]{1,0:T(8,128)}, f32[1024,8192]{1,0:T(8,128)}, f32[1024,8192]{1,0:T(8,128)}) tuple(w.2, m.2, n.2)
}"#;
        let found = |text: &str| {
            let program = Program::parse(text).expect("a module");
            let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(50 << 20).run();
            report.advice().iter().map(|one| (one.finding.clone(), one.saving.bytes())).collect::<Vec<_>>()
        };
        let advice = found(text);
        let [(Finding::WideState(state), Some(bytes))] = &advice[..] else { panic!("{advice:?}") };
        assert_eq!((state.kind, *bytes), (WideStateKind::Moments, 64 << 20));
        // Momentum alone may be another optimizer's.
        assert!(matches!(&found(&text.replace("].nu", "].trace"))[..], [(Finding::Memory(_), _)]));
    }
}
