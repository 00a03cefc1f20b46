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
    program::{elements, name, source_line},
};
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Position, Use},
};
use tilewise_memory::Machine;

/// Repeats matter from this part of the program's bytes on.
const MUCH: u64 = 8;

/// An array that is spread over more than this is a bias or a weight, not a repeated operand.
const MOST: u64 = 64;

pub(crate) struct RepeatedOperands;

impl Rule for RepeatedOperands {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    let repeats = program.peak_temporaries().filter_map(|array| Some((array, repeated(program, array)?)));
    let mut arrays: Vec<(&LiveArray<'_>, (Position, u64))> =
        repeats.filter(|(array, _)| is_read_by_products(program, array)).collect();
    arrays.sort_by_key(|(array, _)| Reverse(array.bytes));
    let (largest, (operand, times)) = *arrays.first()?;
    arrays.retain(|(_, (_, other))| *other == times);
    let bytes = arrays.iter().map(|(array, _)| array.bytes).fold(0, u64::saturating_add);
    if bytes < program.total_bytes / MUCH {
        return None;
    }
    // Behind loops and copies, the argument.
    let origin = program.flow.instruction(program.flow.op_at(program.flow.origin(operand)));
    let argument = origin.filter(|at| at.opcode() == Opcode::Parameter && at.computation().is_entry());
    let source = source_line(&largest.instruction);
    let about = AdvisedArray { source: source.clone(), ..program.advised(largest) };
    let of = argument.map(|argument| name(&argument));
    let finding = Finding::Repeated(Repeated { times, arrays: arrays.len(), bytes, of, source });
    let proposal = Proposal::new(finding, Target::Upstream, about).bound();
    Some(proposal.at_most(arrays.iter().map(|(array, _)| (array.buffer, 0))))
}

/// The array that an instruction only repeats, and how often; `None` for other instructions.
fn repeated(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<(Position, u64)> {
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
    let times = all.checked_div(own).filter(|times| (2..=MOST).contains(times) && times * own == all)?;
    Some((operand, times))
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

/// Maximum levels of nested fusions.
const DEPTH: usize = 4;

/// Whether an instruction only multiplies an operand, and adds the products up.
fn makes_products(at: &Instruction<'_>, number: usize, depth: usize) -> bool {
    match at.opcode() {
        Opcode::Dot | Opcode::Convolution | Opcode::Reduce => true,
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
