//! Arrays that are repeated for a product, `jnp.repeat(k, heads)` or `jnp.repeat(kv, beams)`: one product of grouped
//! dimensions reads the array itself.

use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, Repeated},
        program::{LiveArray, ProgramModel},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
    },
    program::{SourceLine, any_fused, bounds, elements, name, source_line},
};
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{AxisId, EventKind, FactorKind, Position, Reached, Use},
};
use tilewise_memory::Machine;

/// The largest arrays whose readers are looked at.
const MOST_ARRAYS: usize = 64;

/// Repeats matter from this part of the program's bytes on.
const MUCH: u64 = 8;

/// An array that is spread over more than this is a bias or a weight, not a repeated operand.
const MOST: u64 = 64;

/// The most repeats of an array of which parts are read: its source is as well read in parts, a bias too.
const MOST_SLICED: u64 = 1 << 16;

/// Maximum number of axes along which repeats are followed.
const MOST_AXES: usize = 64;

/// Maximum number of repeats that are followed.
const MOST_REPEATS: usize = 8;

pub(crate) struct RepeatedOperands;

/// How an array came to have equal parts.
#[derive(Clone)]
struct Repeat {
    times: u64,
    /// The array that is repeated, where it is read by the repeat alone.
    operand: Option<Position>,
    /// The line that repeats it.
    source: Option<SourceLine>,
}

impl Rule for RepeatedOperands {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    let mut differing: HashMap<AxisId, Option<Reached>> = HashMap::default();
    let found = program.peak_temporaries().filter_map(|array| {
        let found = repeated(program, array).or_else(|| follows_from_repeated(program, array, &mut differing));
        Some((array, found?))
    });
    let mut arrays: Vec<(&LiveArray<'_>, Repeat)> = found.collect();
    arrays.sort_by_key(|(array, _)| Reverse(array.bytes));
    arrays.truncate(MOST_ARRAYS);
    // A bias that is read in parts is as well read itself.
    arrays.retain(|(array, found)| {
        is_read_by_products(program, array) && (found.times <= MOST || is_sliced(program, array))
    });
    let (largest, Repeat { times, operand, source }) = arrays.first()?.clone();
    arrays.retain(|(_, other)| other.times == times);
    let bytes = arrays.iter().map(|(array, _)| array.bytes).fold(0, u64::saturating_add);
    if bytes < program.total_bytes / MUCH {
        return None;
    }
    // Behind loops and copies, the argument.
    let origin = operand.and_then(|operand| program.flow.instruction(program.flow.op_at(program.flow.origin(operand))));
    let argument = origin.filter(|at| at.opcode() == Opcode::Parameter && at.computation().is_entry());
    let about = AdvisedArray { source: source.clone(), ..program.advised(largest) };
    let of = argument.map(|argument| name(&argument));
    let is_sliced = is_sliced(program, largest);
    let finding = Finding::Repeated(Repeated { times, arrays: arrays.len(), bytes, of, is_sliced, source });
    let proposal = Proposal::new(finding, Target::Upstream, about).bound();
    let left = |array: &LiveArray<'_>, repeat: &Repeat| if repeat.operand.is_some() { 0 } else { array.bytes / times };
    Some(proposal.at_most(arrays.iter().map(|(array, repeat)| (array.buffer, left(array, repeat)))))
}

/// The array that an instruction only repeats, and how often; `None` for other instructions.
fn repeated(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<Repeat> {
    let at = array.instruction;
    let is_repeat = |at: &Instruction<'_>| {
        matches!(
            at.opcode(),
            Opcode::Fusion
                | Opcode::Parameter
                | Opcode::Broadcast
                | Opcode::Bitcast
                | Opcode::Copy
                | Opcode::Reshape
                | Opcode::Transpose
        )
    };
    let fused = at.calls().filter_map(|call| call.computation());
    let is_plain = match at.opcode() {
        Opcode::Broadcast => true,
        Opcode::Fusion => {
            fused.flat_map(|computation| computation.instructions().collect::<Vec<_>>()).all(|at| is_repeat(&at))
        }
        _ => false,
    };
    let is_only = program.flow.operands(array.op).len() == 1;
    let operand = program.flow.operand(array.op, 0).filter(|_| is_plain && is_only)?;
    let (all, own) = (array.elements(), elements(&program.flow.shape(operand)?.bounds()?));
    let most = if own > MOST { MOST_SLICED } else { MOST };
    let times = all.checked_div(own).filter(|times| (2..=most).contains(times) && times * own == all)?;
    Some(Repeat { times, operand: Some(operand), source: source_line(&at) })
}

/// The array that is repeated, and how often, where another one is computed of that and is the same for all repeats; `differing`
/// has the arrays that differ along an axis that repeats make, once they are known.
fn follows_from_repeated(
    program: &ProgramModel<'_>,
    array: &LiveArray<'_>,
    differing: &mut HashMap<AxisId, Option<Reached>>,
) -> Option<Repeat> {
    let (flow, axes) = (program.flow, program.flow.axes());
    let (at, leaf) = flow.told(array.position)?;
    let is_reduce = |found: Use| match found {
        Use::Read(op) => flow.instruction(op).is_some_and(|reader| reader.opcode() == Opcode::Reduce),
        _ => true,
    };
    let own = axes.in_array(&at, leaf).iter().copied();
    own.filter(|axis| (2..=MOST_SLICED).contains(&axes.all()[*axis].size)).find_map(|axis| {
        let leaves = |at: usize| (0..axes.leaves(at)).map(move |leaf| (at, leaf));
        let is_full = differing.len() >= MOST_AXES;
        let differs = differing.entry(axis).or_insert_with(|| {
            let events = || axes.events(axis).iter();
            let is_repeated = events().any(|event| event.kind == EventKind::Made(FactorKind::Repeat));
            let begins = events().filter(|event| match event.kind {
                EventKind::Made(kind) => kind != FactorKind::Repeat,
                EventKind::Argument(..) | EventKind::Mixed => true,
                _ => false,
            });
            let reach = || axes.reach(begins.flat_map(|event| leaves(event.instruction)), &|_| false);
            (is_repeated && !is_full).then(reach)
        });
        if differs.as_ref().is_none_or(|differs| differs.has(at.index(), leaf)) {
            return None;
        }
        let repeats = axes.events(axis).iter().filter(|event| event.kind == EventKind::Made(FactorKind::Repeat));
        let is_made_of =
            |repeat: &Instruction<'_>| axes.reach(leaves(repeat.index()), &|_| false).has(at.index(), leaf);
        // A number for all elements isn't repeated; the largest arrays come first.
        let count = |at: &Instruction<'_>| bounds(at).map_or(0, |bounds| elements(&bounds));
        let is_array = |repeat: &Instruction<'_>| {
            let operand = repeat.operands().next().and_then(|operand| operand.instruction());
            operand.is_some_and(|operand| count(&operand) > MOST)
        };
        let repeats = repeats.filter_map(|event| program.module.instruction(event.instruction)).filter(is_array);
        let mut repeats: Vec<Instruction<'_>> = repeats.collect();
        repeats.sort_by_key(|repeat| Reverse(count(repeat)));
        let repeat = repeats.into_iter().take(MOST_REPEATS).find(is_made_of)?;
        Some(Repeat { times: axes.all()[axis].size, operand: None, source: source_line(&repeat) })
            .filter(|_| !flow.readers(array.position).any(is_reduce))
    })
}

/// Whether all that reads an array makes sums of its products, and nothing else of it: an operation that joins it with other
/// values needs the copy.
fn is_read_by_products(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
    let mut readers = program.flow.readers(array.position).peekable();
    let is_read = readers.peek().is_some();
    is_read
        && readers.all(|found| match found {
            Use::Read(op) => program.flow.instruction(op).is_some_and(|reader| {
                let operands = program.flow.operands(op).len();
                let is_it = |number: &usize| {
                    program
                        .flow
                        .operand(op, *number)
                        .is_some_and(|operand| program.flow.origin(operand) == array.position)
                };
                let mut numbers = (0..operands).filter(is_it).peekable();
                numbers.peek().is_some() && numbers.all(|number| makes_products(&reader, number, DEPTH))
            }),
            _ => false,
        })
}

/// Whether parts of an array are read, such as those of one step of a loop.
fn is_sliced(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
    let takes_part = |at: &Instruction<'_>| matches!(at.opcode(), Opcode::DynamicSlice | Opcode::Gather);
    program.flow.readers(array.position).any(|found| match found {
        Use::Read(op) => program.flow.instruction(op).is_some_and(|reader| any_fused(&reader, takes_part)),
        _ => false,
    })
}

/// Maximum levels of nested fusions.
const DEPTH: usize = 4;

/// Whether an instruction only multiplies an operand, and adds the products up.
fn makes_products(at: &Instruction<'_>, number: usize, depth: usize) -> bool {
    match at.opcode() {
        Opcode::Dot | Opcode::Convolution | Opcode::Reduce => true,
        // A part of the copies is a part of the array.
        Opcode::DynamicSlice | Opcode::Gather => number == 0,
        Opcode::Fusion if depth > 0 => {
            let called = at.calls().filter_map(|call| call.computation());
            called.into_iter().all(|computation| {
                let inside: Vec<Instruction<'_>> = computation.instructions().collect();
                let parameter = inside.iter().find(|at| at.parameter_number() == Some(number));
                parameter.is_some_and(|parameter| is_multiplied(&inside, parameter, depth - 1))
            })
        }
        _ => false,
    }
}

/// Whether all that reads a value in a fused computation multiplies it, and adds the products up.
fn is_multiplied(inside: &[Instruction<'_>], value: &Instruction<'_>, depth: usize) -> bool {
    let mut readers: HashMap<usize, Vec<(usize, usize)>> = HashMap::default();
    for (reader, at) in inside.iter().enumerate() {
        for (number, operand) in at.operand_indices().enumerate() {
            if let Some(operand) = operand {
                readers.entry(operand).or_default().push((reader, number));
            }
        }
    }
    let mut waiting = vec![value.index()];
    let mut seen: HashSet<usize> = HashSet::default();
    while let Some(at) = waiting.pop() {
        if !seen.insert(at) {
            continue;
        }
        // The result of the fused computation itself is no sum.
        let Some(all) = readers.get(&at) else { return false };
        for (reader, number) in all {
            let reader = &inside[*reader];
            match reader.opcode() {
                Opcode::Bitcast | Opcode::Reshape | Opcode::Transpose | Opcode::Copy | Opcode::Convert => {
                    waiting.push(reader.index());
                }
                Opcode::Multiply => waiting.push(reader.index()),
                Opcode::Fusion if passes_on_in(reader) => waiting.push(reader.index()),
                _ if makes_products(reader, *number, depth) => {}
                _ => return false,
            }
        }
    }
    true
}

/// Whether a fusion only converts its operand or lays it out anew.
fn passes_on_in(fusion: &Instruction<'_>) -> bool {
    let is_plain = |at: &Instruction<'_>| {
        matches!(
            at.opcode(),
            Opcode::Parameter | Opcode::Bitcast | Opcode::Reshape | Opcode::Transpose | Opcode::Copy | Opcode::Convert
        )
    };
    let mut called = fusion.calls().filter_map(|call| call.computation());
    called.all(|computation| computation.instructions().all(|at| is_plain(&at)))
}

#[cfg(test)]
mod tests {
    use crate::{Audit, Machine, Program, recommendation::finding::Finding};
    use tilewise::tpu::Generation;

    /// Frames of a sound, repeated 256 times for its samples, one of which each step of a loop reads.
    #[test]
    fn a_repeat_that_is_read_in_parts() {
        let text = r#"HloModule jit_f, is_scheduled=true

body {
  c = (s32[], f32[512], f32[131072,512]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[512]{0:T(512)} get-tuple-element(c), index=1
  all = f32[131072,512]{1,0:T(8,128)} get-tuple-element(c), index=2
  zero = s32[] constant(0)
  part = f32[1,512]{1,0:T(1,128)} dynamic-slice(all, i, zero), dynamic_slice_sizes={1,512}
  row = f32[512]{0:T(512)} bitcast(part)
  z = f32[512]{0:T(512)} add(y, row)
  ROOT t = (s32[], f32[512], f32[131072,512]) tuple(n, z, all)
}
condition {
  d = (s32[], f32[512], f32[131072,512]) parameter(0)
  j = s32[] get-tuple-element(d), index=0
  k = s32[] constant(131072)
  ROOT p = pred[] compare(j, k), direction=LT
}
ENTRY main (x.1: f32[512,512]) -> f32[512] {
  x.1 = f32[512,512]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  b = f32[512,256,512]{2,1,0:T(8,128)} broadcast(x.1), dimensions={0,2}
  all = f32[131072,512]{1,0:T(8,128)} bitcast(b)
  n = s32[] constant(0)
  f = f32[] constant(0)
  y = f32[512]{0:T(512)} broadcast(f), dimensions={}
  begun = (s32[], f32[512], f32[131072,512]) tuple(n, y, all)
  done = (s32[], f32[512], f32[131072,512]) while(begun), condition=condition, body=body
  ROOT r = f32[512]{0:T(512)} get-tuple-element(done), index=1
}"#;
        let report = Audit::new(&Program::parse(text).expect("a module")).run();
        let found = report.advice().iter().find_map(|one| match &one.finding {
            Finding::Repeated(repeated) => Some((repeated.times, repeated.is_sliced)),
            _ => None,
        });
        assert_eq!(found, Some((256, true)));
    }

    /// Rows of 512 texts, repeated for 8 beams before they are multiplied by a weight, for products with what each beam has.
    #[test]
    fn what_follows_from_a_repeat_is_repeated() {
        let text = r#"HloModule jit_f, is_scheduled=true

ENTRY main (x.1: f32[64,512], w.1: f32[512,8192], q.1: f32[64,8,8192]) -> f32[64,8] {
  x.1 = f32[64,512]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  w.1 = f32[512,8192]{1,0:T(8,128)} parameter(1), metadata={op_name="params['w']"}
  q.1 = f32[64,8,8192]{2,1,0:T(8,128)} parameter(2), metadata={op_name="q"}
  b = f32[64,8,512]{2,1,0:T(8,128)} MADE
  k = f32[64,8,8192]{2,1,0:T(8,128)} dot(b, w.1), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ROOT r = f32[64,8]{1,0:T(8,128)} dot(q.1, k), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
}"#;
        let found = |made: &str| {
            let program = Program::parse(text.replace("MADE", made)).expect("a module");
            Audit::new(&program).run().advice().iter().find_map(|one| match &one.finding {
                Finding::Repeated(repeated) => Some((repeated.times, repeated.bytes)),
                _ => None,
            })
        };
        assert_eq!(found("broadcast(x.1), dimensions={0,2}"), Some((8, 17 << 20)));
        // Each beam's own numbers among them.
        let own = "slice(q.1), slice={[0:64], [0:8], [0:512]}";
        assert_eq!(found(own), None);
    }

    /// Keys of 16 MiB, repeated for 8 heads, for a memory of 100 MiB.
    #[test]
    fn an_operand_that_is_repeated_for_a_product() {
        let text = r#"HloModule jit_f, is_scheduled=true

ENTRY main (k.1: f32[4096,1024], q.1: f32[8,16,1024]) -> f32[8,16,4096] {
  k.1 = f32[4096,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="cache['k']"}
  q.1 = f32[8,16,1024]{2,1,0:T(8,128)} parameter(1), metadata={op_name="q"}
  b = f32[8,4096,1024]{2,1,0:T(8,128)} broadcast(k.1), dimensions={1,2}
  ROOT r = f32[8,16,4096]{2,1,0:T(8,128)} END
}"#;
        let found = |end: &str| {
            let program = Program::parse(text.replace("END", end)).expect("a module");
            let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(100 << 20).run();
            report.advice().iter().find_map(|one| match &one.finding {
                Finding::Repeated(repeated) => Some((repeated.times, repeated.bytes, repeated.of.clone())),
                _ => None,
            })
        };
        let product =
            "dot(q.1, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}";
        assert_eq!(found(product), Some((8, 128 << 20, Some("cache['k']".to_owned()))));
        // Sorted rows aren't shared.
        assert_eq!(found("custom-call(q.1, b), custom_call_target=\"own\""), None);
    }
}
