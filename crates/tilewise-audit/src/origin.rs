//! Where an instruction comes from, as reports say it.

use crate::SourceLine;
use tilewise_hlo::Instruction;

pub(crate) fn op_name(instruction: &Instruction<'_>) -> Option<String> {
    Some(instruction.metadata()?.op_name()?.into_owned())
}

pub(crate) fn source_line(instruction: &Instruction<'_>) -> Option<SourceLine> {
    let source = instruction.source()?;
    Some(SourceLine {
        file: source.file.into_owned(),
        line: source.line,
        function: source.function.map(|function| function.into_owned()),
    })
}
