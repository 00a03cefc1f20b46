//! `tilewise show --as …`: a layout in another system's words.

use crate::{cli::Notation, failure::Failure, input::parse_shape};
use clap::ValueEnum;
use serde::Serialize;
use std::{
    fmt::Display,
    io::{self, Write},
};
use tilewise::{Layout, Tiled};

#[derive(Serialize)]
pub(super) struct Rendered {
    shape: String,
    notation: String,
    rendering: String,
}

pub(super) fn render(input: &str, notation: Notation) -> Result<Rendered, Failure> {
    let shape = parse_shape(input)?;
    let rendered = Tiled::new(&shape).map_err(Failure::from).and_then(|tiled| in_words_of(notation, &tiled));
    let rendering = rendered.map_err(|failure| failure.within(0..input.len()))?;
    let name = notation.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    Ok(Rendered { shape: shape.to_string(), notation: name, rendering })
}

fn in_words_of(notation: Notation, tiled: &Tiled) -> Result<String, Failure> {
    Ok(match notation {
        Notation::Pjrt => pjrt(tiled),
        Notation::Jax => line(tiled.jax()?),
        Notation::Mlir => affine_maps(tiled)?,
        Notation::Memref => line(tiled.memref()?),
        Notation::Mosaic => {
            let memref = tiled.mosaic()?;
            // What no load fills has a layout in memory alone.
            let vector = memref.vpad(tiled.stored_bits()).map(line).unwrap_or_default();
            format!("{memref}\n{vector}")
        }
        Notation::Numpy => line(tiled.as_strided()?),
        Notation::Dlpack => line(tiled.strides()?.dlpack()),
        Notation::Cute => line(tiled.cute()?),
        Notation::Einops => {
            check_length(tiled)?;
            tiled.derivation().einops().to_string()
        }
    })
}

/// The two maps: to the index in memory, and to the offset.
pub(super) fn affine_maps(tiled: &Tiled) -> Result<String, Failure> {
    let too_large = || Failure::new("overflow", "the affine map of these nested tiles has more than 10,000 terms");
    let physical = tiled.affine_map().ok_or_else(too_large)?;
    let offset = tiled.affine_offset_map().ok_or_else(too_large)?;
    Ok(format!("// logical index → index in memory, major to minor\n{physical}\n// logical index → offset\n{offset}\n"))
}

/// Tiles × axes of the longest derivation that is written.
const LONGEST: usize = 100_000;

/// Each step of a derivation names the bounds of every axis, and each tile adds axes and steps.
pub(super) fn check_length(tiled: &Tiled) -> Result<(), Failure> {
    let tiles = tiled.array().layout().map_or(0, |layout| layout.tiles().len());
    if tiles.saturating_mul(tiled.physical_dimensions().len()) > LONGEST {
        return Err(Failure::new("derivation_too_long", "these tiles make more steps than can be printed usefully"));
    }
    Ok(())
}

/// The three forms of the C API; a form that can't say the layout says why.
fn pjrt(tiled: &Tiled) -> String {
    let fields = tiled.pjrt().map_or_else(|error| format!("none: {error}"), |fields| fields.to_string());
    let strides = match tiled.byte_strides() {
        Ok(strides) => {
            let strides: Vec<String> = strides.iter().map(u64::to_string).collect();
            format!("byte_strides = {{{}}}", strides.join(", "))
        }
        Err(error) => format!("none: {error}"),
    };
    let text = tiled.array().layout().map_or_else(String::new, Layout::to_string);
    format!("serialized  {text}\ntiled       {fields}\nstrides     {strides}\n")
}

fn line(text: impl Display) -> String {
    format!("{text}\n")
}

impl Rendered {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.rendering.as_bytes())
    }
}
