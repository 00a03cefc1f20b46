//! Records of a few numbers each, that come in one flat array, or in rows that are no records, and are reshaped to rows of a
//! few columns inside: each such row takes 128 lanes.

use super::upstream::of_few;
use crate::{
    advice::{
        program::{BufferChanges, LiveArray, ProgramModel},
        recommendation::{Change, Target},
        rule::{Proposal, Rule},
        snippet::NUMPY,
    },
    program::name,
};
use tilewise_hlo::{Instruction, Opcode};

pub(crate) struct FlatRecords;

impl Rule for FlatRecords {
    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
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

/// The argument that is reshaped to an array of rows of a few columns, and how many rows there are.
fn records<'m>(program: &ProgramModel<'m>, array: &LiveArray<'m>) -> Option<(Instruction<'m>, u64)> {
    let (rows, columns) = of_few(array)?;
    let [records] = rows[..] else { return None };
    if array.instruction.opcode() != Opcode::Reshape || array.bounds != [records, columns] {
        return None;
    }
    let operand = program.flow.operand(array.op, 0)?;
    let argument = program.flow.instruction(program.flow.op_at(program.flow.origin(operand)))?;
    (argument.opcode() == Opcode::Parameter && argument.computation().is_entry()).then_some((argument, records))
}

/// Whatever is made of the records has a row for each, and is an array for each column instead.
fn proposal<'m>(
    program: &ProgramModel<'m>,
    array: &LiveArray<'m>,
    argument: &Instruction<'m>,
    records: u64,
) -> Option<Proposal> {
    let &[_, columns] = &array.bounds[..] else { return None };
    let in_columns = |other: &LiveArray<'m>| {
        let (rows, columns) = of_few(other).filter(|(rows, _)| *rows == [records])?;
        let column = program.default_bytes(other.element_type(), &rows)?;
        Some((other.buffer, column.checked_mul(columns)?))
    };
    let name = name(argument);
    let sentence = format!(
        "Pass `{name}` as {columns} arrays of [{records}], one for each column, keep them separate inside, and return such \
         arrays: reshaped to [{records},{columns}], each row takes 128 lanes"
    );
    Some(Proposal {
        buffers: BufferChanges {
            at_most: program.temporaries().filter_map(in_columns).collect(),
            ..BufferChanges::default()
        },
        is_bound: true,
        snippet: program.snippet(
            NUMPY,
            format!(
                "{name} = [{name}.reshape(-1)[column::{columns}] for column in range({columns})]  # {columns} arrays"
            ),
        ),
        ..Proposal::new(Change::Split, Target::Argument, program.advised(array), sentence)
    })
}
