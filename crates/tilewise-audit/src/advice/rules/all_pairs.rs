//! A matrix with one value for each pair of input rows, such as distances: operations on its rows need one block of
//! them at a time.

use crate::{
    advice::{
        blocks::blocks_of,
        change::Target,
        evidence::Evidence,
        finding::{AllPairs, Finding},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{any_fused, bounds, elements, is_input, is_softmax, name, ranks_rows, scores, softened, sorted, twice},
};
use foldhash::HashSet;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{AxisId, Use},
};

/// Number of blocks of rows.
const BLOCKS: u64 = 16;
/// Fewer rows than this are features or heads, unless a softmax goes over their pairs.
const ROWS: u64 = 1024;
/// Pairs of fewer rows than this don't fill a memory.
const ROWS_OF_SOFTMAX: u64 = 128;

/// Blocks that free less by this part are as good.
const AS_MUCH: u64 = 8;

pub(crate) struct MatrixOfPairs;

impl Rule for MatrixOfPairs {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>) -> Option<Proposal> {
    let rows: HashSet<u64> = program
        .parameters()
        .iter()
        .filter(|parameter| is_input(&name(parameter)))
        .filter_map(|parameter| parameter.shape().ok()?.dimensions().first()?.bound())
        .filter(|rows| *rows >= ROWS_OF_SOFTMAX)
        .collect();
    let softened: HashSet<Vec<u64>> = softened(program.module).iter().map(|(bounds, _)| sorted(bounds)).collect();
    let scores = scores(program.module, ROWS_OF_SOFTMAX);
    let given: HashSet<Vec<u64>> = program.arguments().map(|argument| argument.bounds.clone()).collect();
    // Arrays with an argument's bounds are passed pairs, unless a fusion of smaller operands makes them.
    let is_made = |array: &LiveArray<'m>| {
        let operands = array.instruction.operands().filter_map(|operand| operand.instruction());
        array.instruction.opcode() == Opcode::Fusion
            && operands.filter_map(|operand| bounds(&operand)).all(|bounds| elements(&bounds) < elements(&array.bounds))
    };
    let is_of_pairs = |array: &LiveArray<'m>| {
        let is_many = |rows: u64| rows >= ROWS || softened.contains(&sorted(&array.bounds));
        matches!(array.bounds[..], [.., a, b] if rows.contains(&a) && rows.contains(&b) && is_many(a.min(b)))
            && (!given.contains(&array.bounds) || is_made(array))
    };
    // Arrays with equally many elements are the same pairs in another order of dimensions.
    let pairs: HashSet<u64> = program
        .temporaries()
        .filter(|array| is_of_pairs(array))
        .map(|array| elements(&array.bounds))
        .chain(scores.keys().copied())
        .collect();
    // Arrays with several numbers for each pair of positions, such as an embedding of their distance, are pairs, too. A loop that
    // carries pairs has them as its state.
    let carried = program.temporaries().filter(|array| array.instruction.opcode() == Opcode::While);
    let carried: HashSet<AxisId> = carried.flat_map(|array| met_twice(program, array)).collect();
    let met: HashSet<AxisId> = program
        .temporaries()
        .filter(|array| pairs.contains(&elements(&array.bounds)))
        .flat_map(|array| met_twice(program, array))
        .filter(|axis| !carried.contains(axis))
        .collect();
    let stacked = stacked(program);
    let is_alike = |array: &&LiveArray<'m>| {
        let is_copied = || given.contains(&array.bounds) && array.instruction.opcode() != Opcode::Fusion;
        let is_of_met = || met_twice(program, array).iter().any(|axis| met.contains(axis));
        // Pairs of each step that a loop keeps for its backward pass are computed again in it.
        let is_kept = || !scores.contains_key(&elements(&array.bounds)) && stacked.contains(&array.buffer);
        (pairs.contains(&elements(&array.bounds)) || is_of_met()) && !is_copied() && !is_kept()
    };
    let largest = program.peak_temporaries().filter(is_alike).max_by_key(|array| array.bytes)?;
    let count = elements(&largest.bounds);
    let of_scores = scores.get(&count).map(|keys| {
        let mut others = largest.bounds.clone();
        let at = others.iter().rposition(|bound| bound == keys);
        let queries = at.and_then(|at| {
            others.remove(at);
            others.into_iter().max()
        });
        (queries.unwrap_or(count / keys), *keys)
    });
    let all = program.flow.axes().all();
    let of_met = || {
        let axis = met_twice(program, largest).into_iter().find(|axis| met.contains(axis))?;
        Some((all[axis].size, all[axis].size))
    };
    let (rows, columns) = of_scores.or_else(of_met).or_else(|| {
        let mut sizes = largest.bounds.iter().copied().filter(|size| rows.contains(size));
        Some((sizes.next()?, sizes.next()?))
    })?;
    // Arrays of other sizes are other pairs, which blocks of these rows leave whole.
    let is_of_these =
        |array: &&LiveArray<'m>| elements(&array.bounds).is_multiple_of(rows.saturating_mul(columns).max(1));
    let alike = || program.temporaries().filter(is_alike).filter(is_of_these);
    if alike().any(|array| is_needed_whole(program, array)) {
        return None;
    }
    let finding = AllPairs {
        rows,
        columns,
        blocks: BLOCKS,
        has_gradient: program.has_gradient,
        is_read_in_loop: is_read_in_loop(program, largest, |_| true),
    };
    let proposal = Proposal::new(Finding::AllPairs(finding), Target::Value, program.advised(largest)).bound();
    // Rows that a later loop looks up stay.
    let in_blocks = alike().filter(|array| !is_looked_up(program, array));
    let proposal = proposal.at_most(in_blocks.map(|array| (array.buffer, array.bytes / BLOCKS)));
    // Rows that are known to need no other one come first.
    let freed = |proposal: &Proposal| program.freed_with([&proposal.buffers]);
    let all = freed(&proposal);
    let as_much = |other: &Proposal| Some(freed(other)).filter(|freed| *freed >= all - all / AS_MUCH);
    let known = if of_scores.is_none() { blocks_of(program, largest, as_much) } else { None };
    Some(known.map_or(proposal, |(_, known)| known))
}

/// The buffers in which a loop puts a slice of each of its steps.
fn stacked(program: &ProgramModel<'_>) -> HashSet<usize> {
    let is_stack = |array: &&LiveArray<'_>| {
        let at = &array.instruction;
        let trips = program.flow.op(at).and_then(|op| program.flow.trip_count(op));
        at.opcode() == Opcode::While && trips.is_some() && array.bounds.first().copied() == trips
    };
    program.arrays.iter().filter(is_stack).map(|array| array.buffer).collect()
}

/// Whether the steps of a loop pick rows of an array that is made before it.
fn is_looked_up(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
    let picks = |at: &Instruction<'_>| matches!(at.opcode(), Opcode::DynamicSlice | Opcode::Gather);
    is_read_in_loop(program, array, |reader| any_fused(reader, picks))
}

/// Whether the steps of a loop read an array that is made before it, by an instruction of some sort.
fn is_read_in_loop(
    program: &ProgramModel<'_>,
    array: &LiveArray<'_>,
    is_it: impl Fn(&Instruction<'_>) -> bool,
) -> bool {
    program.flow.readers(array.position).any(|found| match found {
        Use::Read(op) => program
            .flow
            .instruction(op)
            .is_some_and(|reader| reader.computation() != array.instruction.computation() && is_it(&reader)),
        _ => false,
    })
}

/// The axes that an array has twice.
fn met_twice(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Vec<AxisId> {
    let told = program.flow.told(array.position);
    told.map_or_else(Vec::new, |(at, leaf)| twice(program.flow.axes().in_array(&at, leaf)).collect())
}

/// Whether the program returns a matrix, or an operation needs all of it at once, such as a solve.
fn is_needed_whole<'m>(program: &ProgramModel<'m>, array: &LiveArray<'m>) -> bool {
    // A gather's call for its indices reads no pairs.
    let count = elements(&array.bounds);
    let reads_it = |at: &Instruction<'_>| {
        let operands = at.operands().filter_map(|operand| operand.instruction());
        operands.filter_map(|operand| bounds(&operand)).any(|bounds| elements(&bounds) == count)
    };
    program.flow.readers(array.position).any(|found| match found {
        Use::Result(_) => true,
        Use::Read(op) => program.flow.instruction(op).is_none_or(|at| {
            any_fused(&at, |at| {
                // A softmax or a ranking takes the rows one by one.
                !is_softmax(at)
                    && !ranks_rows(at)
                    && matches!(
                        at.opcode(),
                        Opcode::CustomCall | Opcode::Cholesky | Opcode::TriangularSolve | Opcode::Fft
                    )
                    && reads_it(at)
            })
        }),
        _ => false,
    })
}
