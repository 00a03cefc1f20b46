//! Records of a few numbers each, passed as one flat array or in other rows, and reshaped inside to rows of a few
//! columns: each such row takes 128 lanes.

use super::narrow_rows::narrow_rows;
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, FlatRecords},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::name,
};
use tilewise_hlo::{Instruction, Opcode};

pub(crate) struct ReshapedRecords;

impl Rule for ReshapedRecords {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let Some(program) = evidence.program() else { return Vec::new() };
        let mut done: Vec<usize> = Vec::new();
        let mut proposals = Vec::new();
        for array in program.temporaries() {
            let Some((argument, records)) = records(program, array) else { continue };
            if !done.contains(&argument.index()) {
                done.push(argument.index());
                proposals.extend(proposal(program, array, &argument, records));
            }
        }
        proposals
    }
}

/// The argument that is reshaped to an array of rows of a few columns, and the number of rows.
fn records<'m>(program: &ProgramModel<'m>, array: &LiveArray<'m>) -> Option<(Instruction<'m>, u64)> {
    let (rows, columns) = narrow_rows(program, array)?;
    let [records] = rows[..] else { return None };
    if array.instruction.opcode() != Opcode::Reshape || array.bounds != [records, columns] {
        return None;
    }
    let operand = program.flow.operand(array.op, 0)?;
    let argument = program.flow.instruction(program.flow.op_at(program.flow.origin(operand)))?;
    (argument.opcode() == Opcode::Parameter && argument.computation().is_entry()).then_some((argument, records))
}

/// The proposal for records: each array with one row per record becomes an array for each column.
fn proposal<'m>(
    program: &ProgramModel<'m>,
    array: &LiveArray<'m>,
    argument: &Instruction<'m>,
    records: u64,
) -> Option<Proposal> {
    let &[_, columns] = &array.bounds[..] else { return None };
    let in_columns = |other: &LiveArray<'m>| {
        let (rows, columns) = narrow_rows(program, other).filter(|(rows, _)| *rows == [records])?;
        let column = program.default_bytes(other.element_type(), &rows)?;
        Some((other.buffer, column.checked_mul(columns)?))
    };
    let finding = Finding::FlatRecords(FlatRecords { argument: name(argument), records, columns });
    let proposal = Proposal::new(finding, Target::Argument, program.advised(array)).bound();
    Some(proposal.at_most(program.temporaries().filter_map(in_columns)))
}
