//! Arrays that are made before a loop of which each step reads a part: the step can make its own part, of little or of the rows of
//! an argument that the part needs.

use super::{stacked_cache::Stack, stacked_steps::element};
use crate::{
    advice::{
        call_stacks::calls,
        change::Target,
        evidence::Evidence,
        finding::{Finding, MadeForSteps},
        program::{LiveArray, ProgramModel},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
        split::draws_bits,
    },
    program::{
        Carry, SourceLine, any_fused, bytes_of_leaf, count, is_backward, is_elementwise, is_installed, name, op_name,
        passes_on, source_line,
    },
};
use foldhash::HashSet;
use std::{cmp::Reverse, rc::Rc};
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{OpId, Position, Use},
};
use tilewise_memory::Machine;

/// The arrays matter from this part of the program's bytes on.
const MUCH: u64 = 8;
/// A step reads less than this part of an array, which is made of less in all.
const PART: u64 = 8;
/// An operand of this part of the bytes is little.
const LITTLE: u64 = 16;
/// Most operations between an array and what it is made of.
const MOST: usize = 32;
/// Slices of slices are followed this far, one for each loop in a loop.
const DEPTH: usize = 4;

pub(crate) struct PartsMadeBefore;

impl Rule for PartsMadeBefore {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    let mut all: Vec<&LiveArray<'_>> = program.peak_temporaries().collect();
    all.retain(|array| array.bytes >= program.total_bytes / MUCH / LITTLE);
    all.sort_by_key(|array| Reverse(array.bytes));
    let mapped: Vec<MappedStack<'_>> =
        program.module.instructions().filter_map(|at| MappedStack::of(program, &at)).flatten().collect();
    let found = all.into_iter().filter_map(|array| {
        // The buffer in which a loop stacks up its parts begins without them.
        let stack = mapped.iter().find(|stack| stack.stack.is_held_in(program, stack.number, array));
        let value = stack.map_or((array.op, array.position), |stack| (stack.op, stack.position));
        let read = Read::of(program, array, value)?;
        Some((array, Made::of(program, array, value.0, &read)?, read))
    });
    let mut found: Vec<_> = found.collect();
    let (largest, made, read) = found.first()?;
    let (argument, around, rows) = (made.argument.map(|at| at.index()), read.around, largest.bounds.first().copied()?);
    let (part, is_drawn, is_mapped) = (read.elements, any_fused(&made.maker, draws_bits), made.is_mapped);
    let of = made.argument.as_ref().map(name);
    let (parts, rows) = (largest.elements().checked_div(part)?, (part.checked_mul(rows)? / largest.elements(), rows));
    let source = source_line(&read.reader);
    let line = made.line(read).or_else(|| source_line(&made.maker));
    let about = AdvisedArray { source: line, ..program.advised(largest) };
    found.retain(|(_, made, read)| made.argument.map(|at| at.index()) == argument && read.around == around);
    let bytes = found.iter().map(|(array, ..)| array.bytes).fold(0, u64::saturating_add);
    if bytes < program.total_bytes / MUCH {
        return None;
    }
    // A lookup in another order of dimensions is then one of the argument's copy in that order.
    let given = argument.and_then(|at| program.arguments().find(|given| given.instruction.index() == at));
    let after = |array: &LiveArray<'_>, part: u64| match given {
        Some(given) if array.minor_to_major() != given.minor_to_major() => given.bytes,
        _ => u64::try_from(u128::from(array.bytes) * u128::from(part) / u128::from(array.elements().max(1)))
            .unwrap_or(array.bytes),
    };
    let slices: HashSet<Position> = found.iter().flat_map(|(.., read)| read.slices.iter().copied()).collect();
    let slices = program.temporaries().filter(|array| slices.contains(&array.position));
    let arrays = found.iter().map(|(array, ..)| *array).chain(slices);
    let finding = Finding::MadeForSteps(MadeForSteps { parts, bytes, is_drawn, is_mapped, of, rows, source });
    let proposal = Proposal::new(finding, Target::Loop, about).bound();
    Some(proposal.at_most(arrays.map(|array| (array.buffer, after(array, part)))))
}

/// An element of a loop's result that the loop stacks up, part by part, each of which is made apart from others.
struct MappedStack<'m> {
    stack: Rc<Stack<'m>>,
    number: usize,
    op: OpId,
    position: Position,
}

impl<'m> MappedStack<'m> {
    fn of(program: &ProgramModel<'m>, around: &Instruction<'m>) -> Option<Vec<Self>> {
        if around.opcode() != Opcode::While {
            return None;
        }
        given_to_map(around)?;
        let stack = Rc::new(Stack::of(around)?);
        let op = program.flow.op(around)?;
        let of = |number: &usize| {
            let position = element(program, around, *number)?;
            Some(Self { stack: Rc::clone(&stack), number: *number, op, position })
        };
        Some(stack.written.iter().filter_map(of).collect())
    }
}

/// The readers of an array, each of which takes a part of it, in a loop that runs after it is made.
struct Read<'m> {
    /// Elements of the largest part.
    elements: u64,
    /// An instruction that takes one.
    reader: Instruction<'m>,
    /// The loop.
    around: OpId,
    /// Slices of which parts are taken in turn.
    slices: Vec<Position>,
}

impl<'m> Read<'m> {
    /// Of the value at a position of an instruction's result, which the array holds.
    fn of(program: &ProgramModel<'m>, array: &LiveArray<'m>, value: (OpId, Position)) -> Option<Self> {
        let flow = program.flow;
        let (maker, position) = value;
        let (elements, op, reader, slices) = parts_of(program, position, DEPTH)?;
        let runs = |op: OpId| flow.executions(flow[op].body);
        let mut callers = std::iter::successors(flow.caller(op), |caller| flow.caller(*caller));
        let around = callers.find(|caller| flow[*caller].opcode == Opcode::While)?;
        let is_own = program.own_loops.contains(&flow.instruction_index(around));
        (is_own && runs(op)? > runs(maker)? && elements <= array.elements() / PART).then_some(Self {
            elements,
            reader,
            around,
            slices,
        })
    }
}

/// The largest part that is read of an array: its elements, the operation, the slice or gather in it, and the slices of which it is
/// one. `None` if something reads the array as a whole.
fn parts_of<'m>(
    program: &ProgramModel<'m>,
    position: Position,
    depth: usize,
) -> Option<(u64, OpId, Instruction<'m>, Vec<Position>)> {
    let flow = program.flow;
    let (mut largest, mut slices) = (None::<(u64, OpId, Instruction<'m>)>, Vec::new());
    for found in flow.readers(position) {
        let Use::Read(op) = found else { return None };
        let at = program.module.instruction(flow.instruction(op)?.index())?;
        let is_it =
            |number: &usize| flow.operand(op, *number).is_some_and(|of| flow.origin(of) == flow.origin(position));
        for number in (0..flow.operands(op).len()).filter(is_it) {
            let (elements, reader) = taken(&at, number)?;
            let mut part = (elements, op, reader);
            // A slice that is kept for a loop inside.
            let slice =
                flow.positions(op).find(|slice| !flow.is_tuple(*slice)).filter(|_| count(&at) == Some(elements));
            if let Some((slice, (less, op, reader, more))) =
                slice.filter(|_| depth > 0).and_then(|slice| Some((slice, parts_of(program, slice, depth - 1)?)))
            {
                part = (less, op, reader);
                slices.push(slice);
                slices.extend(more);
            }
            let is_forward = |at: &Instruction<'_>| !op_name(at).is_some_and(|name| is_backward(&name));
            let key = |(elements, _, reader): &(u64, OpId, Instruction<'_>)| (*elements, is_forward(reader));
            if largest.as_ref().is_none_or(|largest| key(&part) > key(largest)) {
                largest = Some(part);
            }
        }
    }
    largest.map(|(elements, op, reader)| (elements, op, reader, slices))
}

/// The elements that an instruction takes of an operand, and the slice or gather that takes most of them; `None` if it reads all.
fn taken<'m>(at: &Instruction<'m>, number: usize) -> Option<(u64, Instruction<'m>)> {
    let is_lookup = |at: &Instruction<'_>| matches!(at.opcode(), Opcode::Gather | Opcode::DynamicSlice);
    if is_lookup(at) {
        return Some((count(at).filter(|_| number == 0)?, *at));
    }
    let inside = at.calls().find_map(|call| call.computation())?;
    let parameter = inside.instructions().find(|at| at.parameter_number() == Some(number))?;
    let (mut waiting, mut found, mut left) = (vec![parameter.index()], None::<(u64, Instruction<'m>)>, MOST);
    while let Some(of) = waiting.pop() {
        left = left.checked_sub(1)?;
        for reader in inside.instructions().filter(|at| at.operand_indices().flatten().any(|read| read == of)) {
            if passes_on(&reader) {
                waiting.push(reader.index());
                continue;
            }
            let is_of_it = reader.operand_indices().next() == Some(Some(of));
            let elements = count(&reader).filter(|_| is_lookup(&reader) && is_of_it)?;
            if found.is_none_or(|(most, _)| elements > most) {
                found = Some((elements, reader));
            }
        }
    }
    found
}

/// The making of an array from little, or from the rows of an argument, one by one.
struct Made<'m> {
    argument: Option<Instruction<'m>>,
    /// The last operation that makes other values, or another type.
    maker: Instruction<'m>,
    /// Whether a loop makes the parts, one by one.
    is_mapped: bool,
}

impl<'m> Made<'m> {
    /// Of the instruction that an array's value is the result of.
    fn of(program: &ProgramModel<'m>, array: &LiveArray<'m>, op: OpId, read: &Read<'m>) -> Option<Self> {
        let flow = program.flow;
        let (mut waiting, mut seen) = (vec![op], HashSet::default());
        let (mut argument, mut maker, mut little, mut is_by_rows) = (None::<Instruction<'m>>, None, 0_u64, true);
        let mut is_mapped = false;
        while let Some(op) = waiting.pop() {
            let at = program.module.instruction(flow.instruction(op)?.index())?;
            if !seen.insert(op) {
                continue;
            }
            if at.opcode() == Opcode::Parameter {
                let is_other = argument.as_ref().is_some_and(|before| before.index() != at.index());
                if is_other || !at.computation().is_entry() {
                    return None;
                }
                argument = Some(at);
                continue;
            }
            if at.opcode() == Opcode::While {
                little = little.saturating_add(given_to_map(&at)?);
                maker = maker.or(Some(at));
                (is_mapped, is_by_rows) = (true, false);
                continue;
            }
            // A backward pass reads parts of what is kept for it.
            if seen.len() > MOST || !makes_parts(&at) || op_name(&at).is_some_and(|name| is_backward(&name)) {
                return None;
            }
            maker = maker.or(Some(at).filter(|at| !passes_on(at)));
            is_by_rows &= is_elementwise(&at) || passes_on(&at);
            for number in 0..flow.operands(op).len() {
                let of = flow.operand(op, number)?;
                let bytes = bytes_of_leaf(&flow.shape(of)?)?;
                if bytes > array.bytes / LITTLE {
                    waiting.push(flow.op_at(flow.origin(of)));
                } else {
                    little = little.saturating_add(bytes);
                }
            }
        }
        let maker = maker.filter(|_| little <= array.bytes / PART && (argument.is_none() || is_by_rows))?;
        (argument.is_some() || maker.index() != read.reader.index()).then_some(Self { argument, maker, is_mapped })
    }

    /// The line that makes all parts, of the innermost function that the reader's calls go through as well.
    fn line(&self, read: &Read<'m>) -> Option<SourceLine> {
        let (made, read) = (calls(&self.maker), calls(&read.reader));
        let own = made.iter().rev().filter(|frame| !is_installed(&frame.file));
        let mut shared = own
            .filter(|frame| read.iter().any(|other| (&other.file, &other.function) == (&frame.file, &frame.function)));
        shared.next().cloned().map(SourceLine::of)
    }
}

/// The bytes that a loop reads of which each step only writes its part of results, as `jax.lax.map` does; `None` for others.
fn given_to_map(around: &Instruction<'_>) -> Option<u64> {
    let carry = Carry::of(around)?;
    if op_name(around).is_some_and(|name| is_backward(&name)) {
        return None;
    }
    let mut given = 0_u64;
    for (number, next) in carry.next().iter().enumerate() {
        let Some(bounds) = carry.bounds(number).filter(|bounds| !bounds.is_empty()) else { continue };
        if carry.element(next) == Some(number) {
            let start = carry.start(number)?;
            given = given.saturating_add(bytes_of_leaf(&start.shape().ok()?)?);
        } else if bounds.len() < 2 || carry.writer(number, next).is_none() {
            return None;
        }
    }
    Some(given)
}

/// Whether parts of a result may be made of parts of the operands, or of all where they are small.
fn makes_parts(at: &Instruction<'_>) -> bool {
    let is_own = passes_on(at)
        || is_elementwise(at)
        || matches!(at.opcode(), Opcode::Fusion | Opcode::Broadcast | Opcode::Iota | Opcode::RngBitGenerator);
    // One product takes less time than those of its rows, one after another.
    let of_all = |at: &Instruction<'_>| {
        let is_product = matches!(at.opcode(), Opcode::Dot | Opcode::Convolution);
        is_product || matches!(at.opcode(), Opcode::Sort | Opcode::Scatter | Opcode::ReduceWindow | Opcode::CustomCall)
    };
    is_own && !any_fused(at, of_all)
}

#[cfg(test)]
mod tests {
    use super::super::looped::{Looped, READS};
    use crate::{Audit, Program, advice::finding::Finding};

    #[test]
    fn a_step_makes_what_it_reads() {
        // 64 steps each read a slice of 128 MiB.
        let made = |start: &str| {
            let end = "ROOT r.1 = ONE get-tuple-element(w), index=1";
            let found = Looped { steps: 64, matrix: "512,1024", turn: READS, start, end }.advice();
            found.into_iter().find_map(|one| match one.finding {
                Finding::MadeForSteps(made) if made.of.is_none() => Some((made.parts, made.bytes, made.is_drawn)),
                _ => None,
            })
        };
        assert_eq!(made("ALL fusion(key.1), kind=kLoop, calls=drawn"), Some((64, 128 << 20, true)));
        // The argument itself, and sums of all that came before.
        assert_eq!(made("ALL copy(noise.1)"), None);
        assert_eq!(made("ALL custom-call(key.1), custom_call_target=\"sums\""), None);
    }

    /// 4,096 rows of bytes, made floats before a loop of 512 steps that each read 8 of them.
    #[test]
    fn a_step_converts_the_rows_that_it_looks_up() {
        let text = r#"HloModule jit_f, is_scheduled=true

body {
  c = (s32[], f32[8,1024], FROM) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[8,1024]{1,0:T(8,128)} get-tuple-element(c), index=1
  all = f32[4096,1024]{1,0:T(8,128)} get-tuple-element(c), index=2
  rows = s32[8]{0:T(128)} iota(), iota_dimension=0
  part = READ
  z = f32[8,1024]{1,0:T(8,128)} add(y, part)
  ROOT t = (s32[], f32[8,1024], FROM) tuple(n, z, all)
}
condition {
  d = (s32[], f32[8,1024], FROM) parameter(0)
  j = s32[] get-tuple-element(d), index=0
  k = s32[] constant(512)
  ROOT p = pred[] compare(j, k), direction=LT
}
ENTRY main {
  x.1 = u8[4096,1024]{1,0:T(8,128)(4,1)} parameter(0), metadata={op_name="data['x']"}
  y.1 = f32[8,1024]{1,0:T(8,128)} parameter(1), metadata={op_name="y"}
  all = f32[4096,1024]{1,0:T(8,128)} MADE(x.1)
  n = s32[] constant(0)
  begun = (s32[], f32[8,1024], FROM) tuple(n, y.1, all)
  done = (s32[], f32[8,1024], FROM) while(begun), condition=condition, body=body, metadata={op_name="jit(f)/while"}
  ROOT r = f32[8,1024]{1,0:T(8,128)} get-tuple-element(done), index=1
}"#;
        const LOOKUP: &str = "f32[8,1024]{1,0:T(8,128)} gather(all, rows), offset_dims={1}, collapsed_slice_dims={0}, \
                              start_index_map={0}, index_vector_dim=1, slice_sizes={1,1024}";
        let found = |made: &str, read: &str| {
            let text = text.replace("FROM", "f32[4096,1024]").replace("MADE", made).replace("READ", read);
            let report = Audit::new(&Program::parse(text).expect("a module")).run();
            report.advice().iter().find_map(|one| match &one.finding {
                Finding::MadeForSteps(made) => made.of.clone().map(|of| (of, made.rows)),
                _ => None,
            })
        };
        assert_eq!(found("convert", LOOKUP), Some(("data['x']".to_owned(), (8, 4096))));
        // All rows decide each one.
        assert_eq!(found("sort", LOOKUP), None);
        // Without rows there is nothing to divide by.
        let empty =
            text.replace("4096", "0").replace("FROM", "f32[0,1024]").replace("MADE", "convert").replace("READ", LOOKUP);
        let report = Audit::new(&Program::parse(empty).expect("a module")).run();
        assert!(!report.advice().iter().any(|one| matches!(one.finding, Finding::MadeForSteps(_))));
        // A step needs all rows.
        let all = "f32[8,1024]{1,0:T(8,128)} slice(all), slice={[0:8], [0:1024]}";
        assert_eq!(found("convert", all), None);
    }

    /// A loop that makes a part of each of 64 rows of `x`, 128 MiB, before another one that reads a part in each step.
    #[test]
    fn a_step_makes_what_another_loop_maps() {
        let text = r#"HloModule jit_f, is_scheduled=true

map {
  c = (s32[], f32[64,512], ALL) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[64,512]{1,0:T(8,128)} get-tuple-element(c), index=1
  all = ALL get-tuple-element(c), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  own = f32[1,512]{1,0:T(1,128)} dynamic-slice(x, i, zero), dynamic_slice_sizes={1,512}
  wide = f32[1,512,1024]{2,1,0:T(8,128)} broadcast(own), dimensions={0,1}
  part = f32[1,512,1024]{2,1,0:T(8,128)} WITH
  next = ALL dynamic-update-slice(all, part, i, zero, zero)
  ROOT t = (s32[], f32[64,512], ALL) tuple(n, x, next)
}
read {
  c = (s32[], f32[512,1024], ALL) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  y = f32[512,1024]{1,0:T(8,128)} get-tuple-element(c), index=1
  all = ALL get-tuple-element(c), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  part = f32[1,512,1024]{2,1,0:T(8,128)} dynamic-slice(all, i, zero, zero), dynamic_slice_sizes={1,512,1024}
  own = f32[512,1024]{1,0:T(8,128)} bitcast(part)
  z = f32[512,1024]{1,0:T(8,128)} add(y, own)
  ROOT t = (s32[], f32[512,1024], ALL) tuple(n, z, all)
}
of_map {
  c = (s32[], f32[64,512], ALL) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  k = s32[] constant(64)
  ROOT p = pred[] compare(i, k), direction=LT
}
of_read {
  c = (s32[], f32[512,1024], ALL) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  k = s32[] constant(64)
  ROOT p = pred[] compare(i, k), direction=LT
}
ENTRY main {
  x.1 = f32[64,512]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  y.1 = f32[512,1024]{1,0:T(8,128)} parameter(1), metadata={op_name="y"}
  n = s32[] constant(0)
  none = ALL custom-call(), custom_call_target="AllocateBuffer"
  begun = (s32[], f32[64,512], ALL) tuple(n, x.1, none)
  made = (s32[], f32[64,512], ALL) while(begun), condition=of_map, body=map, metadata={op_name="jit(f)/while"}
  all = ALL get-tuple-element(made), index=2
  start = (s32[], f32[512,1024], ALL) tuple(n, y.1, all)
  done = (s32[], f32[512,1024], ALL) while(start), condition=of_read, body=read, metadata={op_name="jit(f)/while"}
  ROOT r = f32[512,1024]{1,0:T(8,128)} get-tuple-element(done), index=1
}"#;
        let found = |with: &str| {
            let text = text.replace("WITH", with).replace("ALL", "f32[64,512,1024]{2,1,0:T(8,128)}");
            let report = Audit::new(&Program::parse(text).expect("a module")).run();
            report.advice().iter().find_map(|one| match &one.finding {
                Finding::MadeForSteps(made) => Some((made.parts, made.is_mapped)),
                _ => None,
            })
        };
        assert_eq!(found("sine(wide)"), Some((64, true)));
    }
}
