//! `tilewise show`: a shape and its layout in words and numbers.

use crate::{
    cli::{ShowArgs, ShowFormat},
    input::each_item,
    output::Output,
};
use std::io;
use tilewise_audit::Failure;
use tilewise_report::{Rendered, ShapeSummary, parse_shape, understand};

pub(crate) fn run(args: &ShowArgs, output: &mut Output) -> io::Result<()> {
    each_item(&args.shapes, |input, readable| {
        if let Some(notation) = args.notation {
            let rendered = readable.and_then(|()| {
                let shape = parse_shape(input)?;
                Rendered::of(&shape, notation).map_err(|error| Failure::from(error).within(0..input.len()))
            });
            return output.item(input, rendered);
        }
        let mut shape = readable.and_then(|()| parse_shape(input));
        // Machines get an error for what is not XLA's notation, people an answer and a note.
        if let Some(understood) = shape.is_err().then(|| understand(input)).flatten().filter(|_| output.is_for_people())
        {
            output.note(&understood.note)?;
            shape = Ok(understood.shape);
        }
        let summary = shape.map(|shape| ShapeSummary::of(&shape));
        match args.format {
            ShowFormat::Proto => {
                output.item_as(input, summary, |summary, out| writeln!(out, "{}", summary.proto_hex()))
            }
            _ => output.item(input, summary),
        }
    })
}
