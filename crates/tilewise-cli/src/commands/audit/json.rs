//! A report as one JSON object.

use super::Audited;
use crate::output::parts::{self, FixJson, SourceJson};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use tilewise::{memory_space_name, tpu::Generation};
use tilewise_audit::{BufferRow, CopyRow, SpaceTotal, Warning};

#[derive(Serialize)]
struct AuditJson<'a> {
    module: &'a str,
    source: &'a str,
    entry: Option<&'a str>,
    is_scheduled: bool,
    memory_spaces: Vec<SpaceJson>,
    buffers: Vec<BufferJson<'a>>,
    copies: Vec<CopyJson<'a>>,
    argument_bytes: u64,
    output_bytes: u64,
    alias_bytes: u64,
    at_least_bytes: u64,
    at_most_bytes: u64,
    hbm_limit_bytes: Option<u64>,
    /// Null where no limit was given, or where it depends on how temporaries share.
    fits: Option<bool>,
    /// What is left if nothing shares memory; null unless that fits.
    headroom_bytes: Option<u64>,
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
    fix: Option<String>,
    fixes: Vec<FixJson>,
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
            buffers: self.listed(Self::LISTED).into_iter().map(|row| BufferJson::of(row, self.tpu)).collect(),
            copies: report.copies.iter().map(CopyJson::from).collect(),
            argument_bytes: report.held.argument_bytes,
            output_bytes: report.held.output_bytes,
            alias_bytes: report.held.alias_bytes,
            at_least_bytes: report.held.at_least_bytes(),
            at_most_bytes: report.held.at_most_bytes,
            hbm_limit_bytes: self.limit,
            fits: self.limit.and_then(|limit| report.held.fits(limit)),
            headroom_bytes: self.limit.and_then(|limit| limit.checked_sub(report.held.at_most_bytes)),
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

impl<'a> BufferJson<'a> {
    fn of(row: &'a BufferRow, tpu: Option<Generation>) -> Self {
        let advice = row.advice(tpu);
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
            fix: parts::sentence(advice.as_ref()),
            fixes: parts::fixes(advice.as_ref()),
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

impl<'a> From<&'a Warning> for WarningJson<'a> {
    fn from(warning: &'a Warning) -> Self {
        Self {
            kind: warning.kind,
            message: &warning.message,
            span: warning.span.as_ref().map(|span| [span.start, span.end]),
        }
    }
}
