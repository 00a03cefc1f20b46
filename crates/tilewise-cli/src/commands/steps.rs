//! `tilewise steps`: how the buffer is made from the logical array.

use super::draw::run_steps;
use crate::{
    input::each_item,
    output::{FormatArgs, Output},
};
use clap::ValueEnum;
use std::{io, path::PathBuf};
use tilewise_report::{Derived, StepLanguage};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise steps 'f32[3,5]{1,0:T(2,2)}'
  tilewise steps 'bf16[300,500]{1,0:T(8,128)(2,1)}' --as numpy
  tilewise steps 'f32[3,5]{1,0:T(2,2)}' --draw --highlight 2,3 -o steps.svg")]
pub(crate) struct Args {
    /// Shapes with their layout; - reads one per line
    #[arg(required = true, value_name = "SHAPE")]
    shapes: Vec<String>,
    /// Language of the steps
    #[arg(long = "as", value_enum, default_value_t, value_name = "LANGUAGE")]
    rendering: Rendering,
    /// Draw the steps as a strip of pictures
    #[arg(long, conflicts_with = "rendering")]
    draw: bool,
    /// Follow one element through the strip, such as 2,3
    #[arg(long, value_name = "INDEX", requires = "draw")]
    highlight: Option<String>,
    /// Write the strip to a file, .svg or .png; - is standard output, SVG
    #[arg(short, long = "out", value_name = "FILE", requires = "draw")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Rendering {
    /// One line per step, in words
    #[default]
    Text,
    /// A NumPy program, in both directions
    Numpy,
    /// An einops program, in both directions
    Einops,
    /// MLIR affine maps from the logical index to the physical index and to the offset
    Mlir,
}

impl From<Rendering> for StepLanguage {
    fn from(rendering: Rendering) -> Self {
        match rendering {
            Rendering::Text => Self::Text,
            Rendering::Numpy => Self::Numpy,
            Rendering::Einops => Self::Einops,
            Rendering::Mlir => Self::Mlir,
        }
    }
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    if args.draw {
        return run_steps(&args.shapes, args.highlight.as_deref(), args.out.as_ref(), output);
    }
    each_item(&args.shapes, |input, readable| {
        let mut reader = output.reader();
        let derived = readable.and_then(|()| {
            let shape = reader.shape(input)?;
            Derived::of(&shape, args.rendering.into()).map_err(|failure| failure.within(0..input.len()))
        });
        output.item_read(input, reader, derived)
    })
}
