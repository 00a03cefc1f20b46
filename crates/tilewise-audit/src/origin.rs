//! Where an instruction comes from, as reports say it.

use crate::elementwise::passes_on;
use std::iter;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Dataflow, OpId, REACH},
};

/// A line of the user's program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SourceLine {
    /// The file, as the compiler was told.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function, where the text says.
    pub function: Option<String>,
}

/// ` at model.py:12`: where something comes from, in a sentence; empty where that isn't known.
pub(crate) fn place(source: Option<&SourceLine>) -> String {
    let file = |source: &SourceLine| source.file.rsplit('/').next().unwrap_or_default().to_owned();
    source.map(|source| format!(" at {}:{}", file(source), source.line)).unwrap_or_default()
}

pub(crate) fn op_name(instruction: &Instruction<'_>) -> Option<String> {
    Some(instruction.metadata()?.op_name()?.into_owned())
}

/// The innermost line that is not of an installed package: a user can't change those. Of one only where there is no
/// other.
pub(crate) fn source_line(instruction: &Instruction<'_>) -> Option<SourceLine> {
    let innermost = instruction.source()?;
    let own = || instruction.frames().find(|frame| !is_installed(&frame.file));
    let source = if is_installed(&innermost.file) { own().unwrap_or(innermost) } else { innermost };
    Some(SourceLine {
        file: source.file.into_owned(),
        line: source.line,
        function: source.function.map(|function| function.into_owned()),
    })
}

fn is_installed(file: &str) -> bool {
    file.contains("site-packages/") || file.contains("dist-packages/")
}

/// Where an instruction comes from, or what it copies, if it doesn't say so itself: copies that the compiler adds
/// don't. An argument has a name, if no line.
pub(crate) fn traced(flow: &Dataflow, instruction: &Instruction<'_>) -> (Option<String>, Option<SourceLine>) {
    let mut name = op_name(instruction);
    if let Some(source) = source_line(instruction) {
        return (name, Some(source));
    }
    let copied = |op: &OpId| {
        let is_copy = flow.instruction(*op).is_some_and(|at| {
            passes_on(&at) || matches!(at.opcode(), Opcode::Convert | Opcode::Reshape | Opcode::Transpose)
        });
        flow.operands(*op).first().filter(|_| is_copy).copied()
    };
    let way = iter::successors(flow.op(instruction), copied).skip(1).take(REACH);
    for at in way.filter_map(|op| flow.instruction(op)) {
        name = name.or_else(|| op_name(&at));
        if let Some(source) = source_line(&at) {
            return (name, Some(source));
        }
    }
    (name, None)
}
