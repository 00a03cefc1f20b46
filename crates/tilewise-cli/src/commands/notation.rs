//! `tilewise show --as …`: a layout in another system's words.

use crate::input::parse_shape;
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{Tiled, interop::Notation};
use tilewise_audit::Failure;

#[derive(Serialize)]
pub(super) struct Rendered {
    shape: String,
    notation: &'static str,
    rendering: String,
}

pub(super) fn render(input: &str, notation: Notation) -> Result<Rendered, Failure> {
    let shape = parse_shape(input)?;
    let rendering = Tiled::new(&shape).and_then(|tiled| notation.write(&tiled));
    let rendering = rendering.map_err(|error| Failure::from(error).within(0..input.len()))?;
    Ok(Rendered { shape: shape.to_string(), notation: notation.as_str(), rendering: format!("{rendering}\n") })
}

impl Rendered {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.rendering.as_bytes())
    }
}
