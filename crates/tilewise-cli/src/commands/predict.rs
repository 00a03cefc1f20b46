//! `tilewise predict`: the layout a TPU generation picks, and the physical size.

use crate::{
    cli::{PredictArgs, Tpu},
    input::each_item,
    output::Output,
};
use std::io;
use tilewise::{Shape, tpu::Generation};
use tilewise_audit::Failure;
use tilewise_report::{
    PredictedShape,
    style::{STRONG, styled},
};

pub(crate) fn run(args: &PredictArgs, output: &mut Output) -> io::Result<()> {
    each_item(&args.shapes, |input, readable| {
        let shape = match readable.and_then(|()| Ok(Shape::parse_as_written(input)?)) {
            Ok(shape) => shape,
            Err(failure) => return output.failure(input, failure),
        };
        let predicted = |generation| {
            PredictedShape::of(&shape, generation).map_err(|error| Failure::from(error).within(0..input.len()))
        };
        if let Tpu::One(generation) = args.tpu {
            return output.item(input, predicted(generation));
        }
        for (position, &generation) in Generation::ALL.iter().enumerate() {
            output.item_as(input, predicted(generation), |predicted, out| {
                if position == 0 {
                    writeln!(out, "{}", styled(STRONG, input))?;
                }
                writeln!(out, "{}", predicted.row())
            })?;
        }
        output.text("\n")
    })
}
