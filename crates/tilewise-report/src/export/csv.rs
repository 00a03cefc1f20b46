//! Rows as CSV.

use super::Exporter;
use crate::{AuditOutput, TableRow, Value};
use std::io::{self, Write};
use tilewise::visible;
use tilewise_audit::BufferRow;

/// The columns in front of a buffer's own, the same in every row of a file.
pub(crate) const OF_FILE: [&str; 2] = ["source", "module"];

/// A row for each buffer. A text that a spreadsheet would run as a formula gets an apostrophe in front.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv;

impl Exporter for Csv {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let names = BufferRow::COLUMNS.iter().map(|column| column.name);
        writeln!(out, "{}", OF_FILE.into_iter().chain(names).collect::<Vec<_>>().join(","))
    }

    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(out);
        let of_file: [Value<'_>; OF_FILE.len()] =
            [visible(&output.report.source).into(), output.report.module_name.as_str().into()].map(inert);
        for buffer in output.view().buffers() {
            table.serialize((&of_file, buffer.cells().into_iter().map(inert).collect::<Vec<_>>()))?;
        }
        table.flush()
    }
}

/// The value, never a formula, so that a table of a stranger's program can be opened.
fn inert(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Text(text) if text.starts_with(['=', '+', '-', '@']) => format!("'{text}").into(),
        value => value,
    }
}
