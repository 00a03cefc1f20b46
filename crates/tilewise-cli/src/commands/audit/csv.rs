//! A report's rows as CSV.

use super::Audited;
use std::io::{self, Write};
use tilewise_audit::{BufferView, TableRow, Value};

/// What stands in front of a buffer's own columns, the same in every row of a file.
const OF_FILE: [&str; 2] = ["source", "module"];

/// The names of the columns, once for all files.
pub(super) fn header() -> String {
    let names = BufferView::COLUMNS.iter().map(|column| column.name);
    let names: Vec<&str> = OF_FILE.into_iter().chain(names).collect();
    format!("{}\n", names.join(","))
}

impl Audited {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(out);
        let of_file: [Value<'_>; OF_FILE.len()] = [self.source.as_str().into(), self.report.module.as_str().into()];
        for buffer in self.view(Self::LISTED).buffers() {
            table.serialize((&of_file, buffer.cells()))?;
        }
        table.flush()
    }
}
