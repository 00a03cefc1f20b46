//! A report as one JSON object.

use super::Audited;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use tilewise::memory_space_name;
use tilewise_audit::{BufferRow, CopyRow, SourceLine, SpaceTotal, Warning};

#[derive(Serialize)]
struct AuditJson<'a> {
    module: &'a str,
    source: &'a str,
    entry: Option<&'a str>,
    is_scheduled: bool,
    memory_spaces: Vec<SpaceJson>,
    buffers: Vec<BufferJson<'a>>,
    copies: Vec<CopyJson<'a>>,
    warnings: Vec<WarningJson<'a>>,
}

#[derive(Serialize)]
struct SpaceJson {
    memory_space: u8,
    memory_space_name: Cow<'static, str>,
    buffers: usize,
    logical_bytes: u64,
    physical_bytes: u64,
    padding_bytes: u64,
}

#[derive(Serialize)]
struct BufferJson<'a> {
    instruction: &'a str,
    computation: &'a str,
    opcode: &'a str,
    shape: String,
    shape_index: &'a [usize],
    memory_space: u8,
    memory_space_name: Cow<'static, str>,
    logical_bytes: u64,
    physical_bytes: u64,
    padding_bytes: u64,
    expansion: f64,
    cause: Option<String>,
    op_name: Option<&'a str>,
    source: Option<SourceJson<'a>>,
}

#[derive(Serialize)]
struct CopyJson<'a> {
    instruction: &'a str,
    computation: &'a str,
    from: String,
    to: String,
    read_bytes: u64,
    written_bytes: u64,
    op_name: Option<&'a str>,
    source: Option<SourceJson<'a>>,
}

#[derive(Serialize)]
struct SourceJson<'a> {
    file: &'a str,
    line: u32,
    function: Option<&'a str>,
}

#[derive(Serialize)]
struct WarningJson<'a> {
    kind: &'a str,
    message: &'a str,
    span: Option<[usize; 2]>,
}

impl Serialize for Audited {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = &self.report;
        let audit = AuditJson {
            module: &report.module,
            source: &self.source,
            entry: report.entry.as_deref(),
            is_scheduled: report.is_scheduled,
            memory_spaces: report.memory_spaces.iter().map(SpaceJson::from).collect(),
            buffers: self.listed(Self::LISTED).into_iter().map(BufferJson::from).collect(),
            copies: report.copies.iter().map(CopyJson::from).collect(),
            warnings: report.warnings.iter().map(WarningJson::from).collect(),
        };
        audit.serialize(serializer)
    }
}

impl From<&SpaceTotal> for SpaceJson {
    fn from(total: &SpaceTotal) -> Self {
        Self {
            memory_space: total.memory_space,
            memory_space_name: total.memory_space_name(),
            buffers: total.buffers,
            logical_bytes: total.logical_bytes,
            physical_bytes: total.physical_bytes,
            padding_bytes: total.padding_bytes(),
        }
    }
}

impl<'a> From<&'a BufferRow> for BufferJson<'a> {
    fn from(row: &'a BufferRow) -> Self {
        Self {
            instruction: &row.instruction,
            computation: &row.computation,
            opcode: &row.opcode,
            shape: row.shape.to_string(),
            shape_index: &row.shape_index,
            memory_space: row.memory_space,
            memory_space_name: memory_space_name(row.memory_space),
            logical_bytes: row.logical_bytes,
            physical_bytes: row.physical_bytes,
            padding_bytes: row.padding_bytes(),
            expansion: row.expansion(),
            cause: row.cause(),
            op_name: row.op_name.as_deref(),
            source: row.source.as_ref().map(SourceJson::from),
        }
    }
}

impl<'a> From<&'a CopyRow> for CopyJson<'a> {
    fn from(row: &'a CopyRow) -> Self {
        Self {
            instruction: &row.instruction,
            computation: &row.computation,
            from: row.from.to_string(),
            to: row.to.to_string(),
            read_bytes: row.read_bytes,
            written_bytes: row.written_bytes,
            op_name: row.op_name.as_deref(),
            source: row.source.as_ref().map(SourceJson::from),
        }
    }
}

impl<'a> From<&'a SourceLine> for SourceJson<'a> {
    fn from(line: &'a SourceLine) -> Self {
        Self { file: &line.file, line: line.line, function: line.function.as_deref() }
    }
}

impl<'a> From<&'a Warning> for WarningJson<'a> {
    fn from(warning: &'a Warning) -> Self {
        Self {
            kind: warning.kind,
            message: &warning.message,
            span: warning.span.as_ref().map(|span| [span.start, span.end]),
        }
    }
}
