//! Rows of a product of which few are read, such as the logits of a prompt's last token: they can be picked before it.

use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, PickedRows},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{any_fused, bounds, does, keeps_indices, source_line},
};
use foldhash::HashSet;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{OpId, REACH, Use},
};
use tilewise_memory::Machine;

/// The product matters from this part of the program's bytes on.
const MUCH: u64 = 8;

/// At most one of these rows is read.
const FEW: u64 = 8;

pub(crate) struct RowsPickedLate;

impl Rule for RowsPickedLate {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        // A gradient scatters what it gathered.
        let Some(program) = evidence.program().filter(|program| !program.has_gradient) else { return Vec::new() };
        let is_product = |array: &&LiveArray<'_>| {
            does(&array.instruction, Opcode::Dot) || does(&array.instruction, Opcode::Convolution)
        };
        let products = program.peak_temporaries().filter(is_product);
        products
            .filter(|array| array.bytes > program.total_bytes / MUCH)
            .filter_map(|array| proposal(program, array))
            .collect()
    }
}

fn proposal(program: &ProgramModel<'_>, product: &LiveArray<'_>) -> Option<Proposal> {
    let columns = *product.bounds.last()?;
    let all = product.elements() / columns.max(1);
    let Picked { elements, between } = Picked::of(program, product)?;
    let rows = elements.div_ceil(columns.max(1));
    if rows == 0 || rows > all / FEW {
        return None;
    }
    let finding = PickedRows { rows, all, columns, bytes: product.bytes, source: source_line(&product.instruction) };
    let held = program.peak_temporaries().filter(|array| array.op == product.op || between.contains(&array.op));
    let part = held.map(|array| (array.buffer, array.bytes.div_ceil(all / rows)));
    let proposal = Proposal::new(Finding::PickedRows(finding), Target::Value, program.advised(product)).bound();
    Some(proposal.at_most(part))
}

/// The rows that are read of a product.
struct Picked {
    /// The elements that all operations read together.
    elements: u64,
    /// The operations between the product and those that pick rows: these keep its rows.
    between: HashSet<OpId>,
}

impl Picked {
    /// Follows a product through what keeps its rows; `None` if anything else reads it than gathers of whole rows.
    fn of(program: &ProgramModel<'_>, product: &LiveArray<'_>) -> Option<Self> {
        let mut picked = Self { elements: 0, between: HashSet::default() };
        let mut waiting = vec![(product.position, *product.bounds.last()?)];
        while let Some((at, columns)) = waiting.pop() {
            for found in program.flow.readers(at) {
                let Use::Read(op) = found else { return None };
                let reader = program.flow.instruction(op)?;
                // A loop may pick other rows in each of its steps.
                if reader.computation().index() != product.instruction.computation().index() {
                    return None;
                }
                if picks(&reader) {
                    // Single elements of rows are something else.
                    let made = bounds(&reader).filter(|made| made.last() == Some(&columns))?;
                    let elements = made.into_iter().fold(1, u64::saturating_mul);
                    picked.elements = picked.elements.saturating_add(elements);
                } else if picked.between.len() < REACH && !any_fused(&reader, mixes) {
                    if picked.between.insert(op) {
                        let made = program.flow.positions(op).filter(|made| !program.flow.is_tuple(*made));
                        let columns = |made| Some(*program.flow.shape(made)?.bounds()?.last()?);
                        waiting.extend(made.filter_map(|made| Some((made, columns(made)?))));
                    }
                } else {
                    return None;
                }
            }
        }
        Some(picked)
    }
}

fn picks(at: &Instruction<'_>) -> bool {
    does(at, Opcode::Gather) || does(at, Opcode::DynamicSlice)
}

/// Whether an operation doesn't keep rows apart; a slice of columns does.
fn mixes(at: &Instruction<'_>) -> bool {
    !matches!(at.opcode(), Opcode::Fusion | Opcode::Slice | Opcode::Convert | Opcode::Copy)
        && !keeps_indices(at.opcode())
}

#[cfg(test)]
mod tests {
    use crate::{Audit, Program, advice::finding::Finding};
    use tilewise::tpu::Generation;
    use tilewise_memory::Machine;

    /// A model's head over all positions, of which `read` takes some.
    fn advice(read: &str) -> Option<(u64, u64)> {
        let text = format!(
            "HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}

ENTRY main {{
  x = bf16[8192,256]{{1,0:T(8,128)(2,1)}} parameter(0), metadata={{op_name=\"x\"}}
  w = bf16[256,32768]{{1,0:T(8,128)(2,1)}} parameter(1), metadata={{op_name=\"w\"}}
  i = s32[8]{{0:T(128)}} parameter(2), metadata={{op_name=\"i\"}}
  zero = f32[] constant(0)
  logits = f32[8192,32768]{{1,0:T(8,128)}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  capped = f32[8192,32768]{{1,0:T(8,128)}} tanh(logits)
  ROOT {read}
}}"
        );
        let program = Program::parse(&text).expect("a module");
        let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(64 << 20).run();
        report.advice().iter().find_map(|one| match &one.finding {
            Finding::PickedRows(picked) => Some((picked.rows, picked.all)),
            _ => None,
        })
    }

    #[test]
    fn rows_that_are_read_of_a_product() {
        let gather = |size: u64, start: u64| {
            format!(
                "r = f32[8,{size}]{{1,0:T(8,128)}} gather(capped, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, \
                 start_index_map={{{start}}}, index_vector_dim=1, slice_sizes={{1,{size}}}"
            )
        };
        assert_eq!(advice(&gather(32_768, 0)), Some((8, 8192)));
        // Single logits, and sums of all.
        assert_eq!(advice(&gather(1, 0)), None);
        assert_eq!(advice("r = f32[8192]{0:T(1024)} reduce(capped, zero), dimensions={1}, to_apply=add"), None);
    }
}
