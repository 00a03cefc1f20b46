//! Rows of a few columns: a gather makes, and a scatter reads, each row in 128 lanes of its own.

use crate::{
    advice::{
        change::Target,
        evidence::{ArrayFact, Evidence, Listed, default_bytes},
        finding::{Finding, RowOperation, RowsOfFew},
        message::MessageModel,
        program::{LiveArray, ProgramModel},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
    },
    program::{SourceLine, does, is_backward, name, source_line, traced, with_fused},
};
use foldhash::HashSet;
use tilewise::ElementType;
use tilewise_hlo::{Instruction, Opcode, dataflow::Position};

pub(crate) struct GatheredRows;

/// Part of the operation's name with which JAX up to 0.4.33 joined the indices of `take_along_axis`, one for each
/// dimension.
const INDEX_TUPLES: &str = "jit(_take_along_axis)/concatenate";

impl Rule for GatheredRows {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let mut done: Vec<(u64, u64)> = Vec::new();
        let few = |array: &dyn ArrayFact| narrow_rows(evidence, array).map(|(rows, columns)| (count(&rows), columns));
        let mut proposals = Vec::new();
        let temporaries = evidence.temporaries();
        for array in temporaries.iter().copied() {
            let Some((rows, columns)) = few(array).filter(|few| !done.contains(few)) else { continue };
            // From the gather to the scatter, all arrays made of the rows have as many rows and columns.
            let all = evidence.program().map_or_else(|| temporaries.clone(), |program| program.held_temporaries());
            let (alike, others): (Vec<&dyn ArrayFact>, Vec<_>) =
                all.into_iter().partition(|same| few(*same) == Some((rows, columns)));
            let operation = match (evidence.program(), evidence.message()) {
                _ if array.op_name().contains(INDEX_TUPLES) => Some((RowOperation::IndexTuples, None)),
                // The gradient's rows are those of a gather that ran before.
                (Some(program), _) => {
                    followed(program, array).or_else(|| alike.iter().find_map(|same| gathered(program, same.live()?)))
                }
                (_, Some(message)) => named(message, array, columns).map(|operation| (operation, None)),
                _ => None,
            };
            let Some((operation, source)) = operation else { continue };
            let scattered = scattered(evidence, &alike, &others);
            let scattered = scattered.into_iter().filter(|array| few(*array).is_some_and(|at| at.1 == columns));
            let apart = |array: &dyn ArrayFact| {
                let (rows, columns) = narrow_rows(evidence, array)?;
                Some((array.buffer(), default_bytes(evidence, array, &rows)?.checked_mul(columns)?.min(array.bytes())))
            };
            let buffers: Vec<(usize, u64)> = alike.iter().copied().chain(scattered).filter_map(apart).collect();
            let freed = |(buffer, after): &(usize, u64)| {
                let bytes = temporaries.iter().find(|array| array.buffer() == *buffer).map_or(0, |array| array.bytes());
                bytes.saturating_sub(*after)
            };
            let freed = buffers.iter().map(freed).fold(0, u64::saturating_add);
            let finding = Finding::RowsOfFew(RowsOfFew { columns, operation });
            let advised = array.advised(evidence);
            // The line to change is that of the operation on the rows, not of the array.
            let advised = AdvisedArray { source: source.or(advised.source), ..advised };
            let proposal = Proposal::new(finding, Target::Upstream, advised).at_most(buffers);
            proposals.push(match evidence.message() {
                Some(_) => proposal.bound().extrapolated(evidence, freed, Listed::Padding),
                // A gradient scatters the columns in an order of its own.
                None if evidence.program().is_some_and(|program| program.has_gradient) => proposal.bound(),
                None => proposal,
            });
            done.push((rows, columns));
        }
        proposals
    }
}

/// The bounds of an array's rows, and its number of columns, if these are few and lie along the lanes, padded. Other
/// short dimensions but the first are columns, too: `[N,3,3]` has nine.
pub(super) fn narrow_rows(evidence: &dyn Evidence, array: &dyn ArrayFact) -> Option<(Vec<u64>, u64)> {
    let thresholds = evidence.thresholds();
    let minor = *array.minor_to_major().first()?;
    let is_column = |at: usize, bound: u64| at == minor || bound <= thresholds.max_minor && at > 0;
    let bounds = || array.bounds().iter().copied().enumerate();
    let rows: Vec<u64> = bounds().filter(|(at, bound)| !is_column(*at, *bound)).map(|(_, bound)| bound).collect();
    let columns: Vec<u64> = bounds().filter(|(at, bound)| is_column(*at, *bound)).map(|(_, bound)| bound).collect();
    let columns = count(&columns);
    // A single column is a kept dimension of size 1, which a program's reader may want.
    let least = if evidence.program().is_some() { 2 } else { 1 };
    ((least..=thresholds.max_columns).contains(&columns)
        && !rows.is_empty()
        && count(&rows) >= thresholds.min_rows
        && is_padded(evidence, array))
    .then_some((rows, columns))
}

fn count(bounds: &[u64]) -> u64 {
    bounds.iter().copied().fold(1, u64::saturating_mul)
}

/// Whether much of an array is padding.
pub(super) fn is_padded(evidence: &dyn Evidence, array: &dyn ArrayFact) -> bool {
    let least = array.logical_bytes().saturating_mul(evidence.thresholds().padded_quarters);
    array.bytes().saturating_mul(4) >= least
}

/// A program's operation on an array of rows, and its line; `None` if neither a gather nor a scatter is near, or it is a
/// gradient's scatter.
fn followed(program: &ProgramModel<'_>, array: &dyn ArrayFact) -> Option<(RowOperation, Option<SourceLine>)> {
    let array = array.live()?;
    gathered(program, array).or_else(|| {
        // The scatter of a gather's gradient, such as an embedding's, has no line in the program.
        let scatter = program.led_to(array, |user| does(user, Opcode::Scatter));
        let scatter = scatter.filter(|_| !is_of_gradient(program, array))?;
        Some((RowOperation::Scatter, source_line(&scatter)))
    })
}

/// The gather that makes an array of rows, and its line.
fn gathered(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<(RowOperation, Option<SourceLine>)> {
    let gather = program.made_by(array.op, is_gather)?;
    let table = table(program, &gather).map(|table| name(&table));
    let dimension = columns_of_table(&gather);
    let is_scattered = Some(program.led_to(array, |user| does(user, Opcode::Scatter)).is_some());
    Some((RowOperation::Gather { table, dimension, is_scattered }, source_line(&gather)))
}

/// The only dimension of which a gather takes more than one element, if it isn't its operand's last: the compiler may lay the
/// rows out in another order than the program.
fn columns_of_table(gather: &Instruction<'_>) -> Option<usize> {
    let gather = with_fused(*gather).find(|at| at.opcode() == Opcode::Gather)?;
    let taken = gather.gather_dimensions()?.slice_sizes;
    let mut whole = (0..taken.len()).filter(|at| taken[*at] > 1);
    whole.next().filter(|at| whole.next().is_none() && at + 1 < taken.len())
}

/// Arrays into which rows are scattered: split into columns, as the rows are.
fn scattered<'a>(
    evidence: &dyn Evidence,
    rows: &[&dyn ArrayFact],
    others: &[&'a dyn ArrayFact],
) -> Vec<&'a dyn ArrayFact> {
    let Some(program) = evidence.program() else { return Vec::new() };
    let made = |other: &&&dyn ArrayFact| other.live().is_some_and(|other| does(&other.instruction, Opcode::Scatter));
    let mut results = others.iter().filter(made).peekable();
    if results.peek().is_none() {
        return Vec::new();
    }
    let flow = program.flow;
    let rows: HashSet<Position> =
        rows.iter().filter_map(|rows| rows.live()).map(|rows| flow.origin(rows.position)).collect();
    let reads_rows = |other: &&&dyn ArrayFact| {
        let operands = other.live().map(|other| flow.operands(other.op)).unwrap_or_default();
        operands.iter().any(|operand| rows.contains(&flow.origin(flow[*operand].position)))
    };
    results.filter(reads_rows).copied().collect()
}

fn is_of_gradient(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
    traced(program.flow, &array.instruction).0.is_some_and(|name| is_backward(&name))
}

/// The operation on rows, by the names of operations on equally many rows; `None` if these don't show it and all of
/// their lines are in installed packages.
fn named(message: &MessageModel<'_>, array: &dyn ArrayFact, columns: u64) -> Option<RowOperation> {
    let same = || {
        let alike = message.arrays.iter().filter(|other| other.bounds.first() == array.bounds().first());
        alike.filter(|other| other.role == array.role())
    };
    let is_of = |words: &[&str]| same().any(|other| words.iter().any(|word| other.row.operation().contains(word)));
    let is_installed = || same().all(|other| other.row.source.as_ref().is_some_and(SourceLine::is_installed));
    Some(match columns {
        // Random bits, such as those of dropout, are unsigned, and the compiler gives them no name of the program's.
        1 if array.element_type() == ElementType::U32 && array.op_name().is_empty() => RowOperation::RandomBits,
        1 => RowOperation::KeptDimension,
        _ if is_of(&["one_hot", "OneHot", "iota"]) => RowOperation::OneHot,
        _ if is_of(&["gather", "take"]) => RowOperation::Gather { table: None, dimension: None, is_scattered: None },
        _ if is_of(&["scatter"]) => RowOperation::Scatter,
        _ if is_of(&["conv"]) => RowOperation::Convolution,
        _ if is_installed() => return None,
        _ => RowOperation::Unknown,
    })
}

/// Whether an instruction is a gather, but not the one that brings a scatter's updates into order.
pub(super) fn is_gather(instruction: &Instruction<'_>) -> bool {
    does(instruction, Opcode::Gather) && !does(instruction, Opcode::Scatter)
}

/// The argument that a gather's rows come from, through operations of the same bounds at most.
pub(super) fn table<'m>(program: &ProgramModel<'m>, gather: &Instruction<'m>) -> Option<Instruction<'m>> {
    let table = *program.flow.operands(program.flow.op(gather)?).first()?;
    program.made_by(table, |at| at.opcode() == Opcode::Parameter && at.computation().is_entry())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Audit, Program};
    use tilewise::tpu::Generation;
    use tilewise_memory::Machine;

    /// Forces on particles: positions of neighbours are gathered, and the gradient is scattered, in rows of 3 with another shape.
    const FORCES: &str = r#"HloModule jit_f, is_scheduled=true

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }

ENTRY main {
  x = f32[16384,3]{0,1:T(4,128)} parameter(0), metadata={op_name="x"}
  i = s32[1048576]{0:T(1024)} parameter(1), metadata={op_name="i"}
  near = f32[1048576,3]{1,0:T(8,128)} gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}, metadata={op_name="jit(f)/jvp()/gather" source_file="md.py" source_line=7}
  zero = f32[] constant(0)
  r = f32[1048576]{0:T(1024)} reduce(near, zero), dimensions={1}, to_apply=add, metadata={op_name="jit(f)/jvp()/reduce_sum"}
  back = f32[16384,64,3]{2,1,0:T(8,128)} custom-call(r), custom_call_target="f", metadata={op_name="jit(f)/transpose(jvp())/mul"}
  rows = f32[1048576,3]{1,0:T(8,128)} bitcast(back)
  start = f32[16384,3]{0,1:T(4,128)} broadcast(zero), dimensions={}
  ROOT force = f32[16384,3]{0,1:T(4,128)} scatter(start, i, rows), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add, metadata={op_name="jit(f)/transpose(jvp())/scatter-add"}
}"#;

    #[test]
    fn rows_of_a_gradient_are_those_of_the_gather_before() {
        let program = Program::parse(FORCES).expect("a module");
        let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(64 << 20).run();
        let advice = report.advice();
        let found = advice.iter().find(|one| matches!(&one.finding, Finding::RowsOfFew(few) if few.columns == 3));
        let found = found.expect("columns");
        let source = found.array.as_ref().and_then(|array| array.source.as_ref());
        assert_eq!(source.map(|line| line.line), Some(7));
        // Both arrays of 512 MiB are gone.
        assert!(found.saving.bytes().is_some_and(|bytes| bytes > 480 << 20), "{:?}", found.saving);
    }
}
