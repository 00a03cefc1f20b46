//! A layout in another system's notation.

use crate::{Terminal, WriteText};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{Error, Shape, Tiled, interop::Notation};

/// The answer of `tilewise show --as`.
#[derive(Clone, Debug, Serialize)]
pub struct Rendered {
    shape: String,
    notation: &'static str,
    rendering: String,
}

impl Rendered {
    /// A shape in a notation.
    ///
    /// # Errors
    /// A shape without sizes, or one that the notation can't express.
    pub fn of(shape: &Shape, notation: Notation) -> Result<Self, Error> {
        let rendering = notation.write(&Tiled::new(shape)?)?;
        Ok(Self { shape: shape.to_string(), notation: notation.as_str(), rendering: format!("{rendering}\n") })
    }
}

impl WriteText for Rendered {
    fn write_text(&self, _: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.rendering.as_bytes())
    }
}
