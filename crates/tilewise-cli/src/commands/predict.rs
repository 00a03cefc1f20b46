//! `tilewise predict`: the layout a TPU generation picks, and the physical size.

use crate::{
    input::each_item,
    output::{FormatArgs, Output},
    values::Tpu,
};
use std::io;
use tilewise::{tpu::Generation, visible};
use tilewise_audit::Failure;
use tilewise_report::{
    PredictedShape,
    style::{STRONG, styled},
};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise predict 'bf16[2048,1,2048,128]' --tpu v5e
  tilewise predict 'f32[400000,12]{1,0}' --tpu all     tiles for the given order")]
pub(crate) struct Args {
    /// Shapes without a layout, or with an order such as {0,1}; - reads one per line
    #[arg(required = true, value_name = "SHAPE")]
    shapes: Vec<String>,
    /// TPU generation: v2 v3 v4 v5e v5p v6e v7x, or all
    #[arg(long, value_name = "TPU")]
    tpu: Tpu,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    each_item(&args.shapes, |input, readable| {
        let mut reader = output.reader();
        let shape = readable.and_then(|()| reader.shape_as_written(input));
        output.notes(&mut reader)?;
        let shape = match shape {
            Ok(shape) => shape,
            Err(failure) => return output.failure(input, failure),
        };
        if let Some(tiles) = shape.layout().filter(|layout| !layout.tiles().is_empty() && output.is_for_people()) {
            output
                .note(&format!("note: the tiles of {tiles} are left out: a compiler picks its own, for that order"))?;
        }
        let predicted = |generation| {
            PredictedShape::of(&shape, generation).map_err(|error| Failure::from(error).within(0..input.len()))
        };
        if let Tpu::One(generation) = args.tpu {
            return output.item(input, predicted(generation));
        }
        for (position, &generation) in Generation::ALL.iter().enumerate() {
            output.item_as(input, predicted(generation), |predicted, out| {
                if position == 0 {
                    writeln!(out, "{}", styled(STRONG, visible(input)))?;
                }
                writeln!(out, "{}", predicted.row())
            })?;
        }
        output.text("\n")
    })
}
