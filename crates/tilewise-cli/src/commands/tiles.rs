//! `tilewise tiles`: the tile formats of other machines, by name.

use crate::output::Output;
use serde::Serialize;
use std::io::{self, Write};
use tilewise::TileFormat;
use tilewise_report::style::{FAINT, STRONG, styled};

pub(crate) fn run(output: &mut Output) -> io::Result<()> {
    let mut described = None;
    for format in TileFormat::all() {
        let is_another_example = described.replace(format.used_by()) == Some(format.used_by());
        let row = Row {
            is_another_example,
            name: format.name(),
            pattern: format.pattern(),
            layout: format.layout(),
            used_by: format.used_by(),
            source: format.source(),
        };
        output.item(format.name(), Ok(row), Row::write)?;
    }
    output.text("\nSHAPE@NAME gives a shape the format: tilewise show 'bf16[100,300]@tt-tile'\n")
}

#[derive(Serialize)]
struct Row<'a> {
    /// Whether the row before has the same description.
    #[serde(skip)]
    is_another_example: bool,
    name: &'a str,
    /// How names of this kind are written, where they have a parameter.
    pattern: Option<&'static str>,
    layout: String,
    used_by: &'static str,
    source: &'static str,
}

/// The width of the names.
const NAME: usize = 24;

impl Row<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}{}", styled(STRONG, format_args!("{:<NAME$}", self.name)), self.layout)?;
        if self.is_another_example {
            return Ok(());
        }
        let detail = |out: &mut dyn Write, text: &str| writeln!(out, "{:NAME$}{}", "", styled(FAINT, text));
        if let Some(pattern) = self.pattern {
            detail(out, &format!("one of {pattern}"))?;
        }
        detail(out, self.used_by)?;
        detail(out, self.source)
    }
}
