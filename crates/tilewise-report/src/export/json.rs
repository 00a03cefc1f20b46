//! JSON Lines.

use super::Exporter;
use crate::{AuditOutput, JsonLine, to_visible_json};
use std::io::{self, Write};

/// A line for each program: [`JsonLine`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Exporter for Json {
    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        to_visible_json(out, &JsonLine::of(&output.report.source, output))?;
        out.write_all(b"\n")
    }
}
