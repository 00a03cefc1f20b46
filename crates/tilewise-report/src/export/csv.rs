//! A report's rows as CSV.

use std::io::{self, Write};
use tilewise_audit::{BufferView, ReportView, TableRow, Value};

/// The columns in front of a buffer's own, the same in every row of a file.
pub(crate) const OF_FILE: [&str; 2] = ["source", "module"];

/// The names of the columns, once for all files.
#[must_use]
pub fn header() -> String {
    let names = BufferView::COLUMNS.iter().map(|column| column.name);
    let names: Vec<&str> = OF_FILE.into_iter().chain(names).collect();
    format!("{}\n", names.join(","))
}

/// Writes the rows that a report lists.
///
/// # Errors
/// Those of `out`.
pub fn write(view: &ReportView<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    let of_file: [Value<'_>; OF_FILE.len()] = [view.source.into(), view.report.module.as_str().into()];
    for buffer in view.buffers() {
        table.serialize((&of_file, buffer.cells()))?;
    }
    table.flush()
}
