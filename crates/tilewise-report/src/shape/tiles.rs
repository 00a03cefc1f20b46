//! Tile formats of TPUs, other machines and libraries, by name.

use crate::{
    Terminal, WriteText,
    style::{FAINT, STRONG, styled},
    text::write_wrapped,
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::TileFormat;

/// A named tile format: a row of `tilewise tiles`.
#[derive(Clone, Debug, Serialize)]
pub struct TileFormatRow {
    /// Whether the row before has the same description.
    #[serde(skip)]
    is_another_example: bool,
    name: String,
    /// The form of such names, if they have a parameter.
    pattern: Option<&'static str>,
    layout: String,
    used_by: &'static str,
    source: &'static str,
}

impl TileFormatRow {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Self> {
        let mut described = None;
        TileFormat::all().map(move |format| Self {
            is_another_example: described.replace(format.used_by()) == Some(format.used_by()),
            name: format.name().to_owned(),
            pattern: format.pattern(),
            layout: format.layout(),
            used_by: format.used_by(),
            source: format.source(),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The width of the names.
const NAME: usize = 24;

impl WriteText for TileFormatRow {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}{}", styled(STRONG, format_args!("{:<NAME$}", self.name)), self.layout)?;
        if self.is_another_example {
            return Ok(());
        }
        // Where the names leave too little room, lines begin at the left.
        let indent = " ".repeat(if terminal.width >= 2 * NAME { NAME } else { 2 });
        let detail = |out: &mut dyn Write, text: &str| write_wrapped(text, FAINT, [&indent; 2], terminal.width, out);
        if let Some(pattern) = self.pattern {
            detail(out, &format!("one of {pattern}"))?;
        }
        detail(out, self.used_by)?;
        detail(out, self.source)
    }
}
