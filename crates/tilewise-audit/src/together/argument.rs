//! A program's interface in HBM: arguments with their names, and results that don't lie in them.

use crate::{
    program::op_name,
    report::{PlanRow, Report},
};
use foldhash::HashSet;
use std::{borrow::Cow, collections::BTreeMap};
use tilewise::Shape;
use tilewise_hlo::Opcode;
use tilewise_memory::Role;

/// An argument.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    /// Its name, such as `params['w']`; `None` if the text has none.
    pub(super) name: Option<String>,
    pub(super) shape: Shape,
    pub(super) bytes: u64,
    pub(super) padding_bytes: u64,
    pub(super) is_donated: bool,
}

/// A result that lies in no argument.
#[derive(Clone, Debug)]
pub(super) struct NewResult {
    pub(super) shape: Shape,
    pub(super) bytes: u64,
}

pub(super) fn arguments(report: &Report) -> Vec<Argument> {
    let aliases = report.planned.module.input_output_aliases().unwrap_or_default();
    let donated: HashSet<usize> = aliases.into_iter().map(|alias| alias.parameter_number).collect();
    let argument = |row: PlanRow<'_>| {
        let parameter = row.instruction;
        Some(Argument {
            name: op_name(&parameter).filter(|name| !name.is_empty()).map(Cow::into_owned),
            shape: row.shape()?,
            bytes: row.value.bytes,
            padding_bytes: row.padding_bytes(),
            is_donated: parameter.parameter_number().is_some_and(|number| donated.contains(&number)),
        })
    };
    report.plan_rows().filter(is_argument).filter_map(argument).collect()
}

fn is_argument(row: &PlanRow<'_>) -> bool {
    let instruction = &row.instruction;
    row.memory_space == 0 && instruction.opcode() == Opcode::Parameter && instruction.computation().is_entry()
}

pub(super) fn new_results(report: &Report) -> Vec<NewResult> {
    let rows = report.plan_rows().filter(|row| row.memory_space == 0 && row.value.role == Role::Output);
    let mut by_buffer: BTreeMap<usize, NewResult> = BTreeMap::new();
    for row in rows {
        let Some(shape) = row.shape() else { continue };
        let result = NewResult { shape, bytes: row.value.bytes };
        let known = by_buffer.entry(row.value.buffer).or_insert_with(|| result.clone());
        if known.bytes < result.bytes {
            *known = result;
        }
    }
    by_buffer.into_values().collect()
}
