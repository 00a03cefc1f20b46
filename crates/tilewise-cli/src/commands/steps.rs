//! `tilewise steps`: how the buffer is made from the logical array.

use super::draw::run_steps;
use crate::{cli::StepsArgs, input::each_item, output::Output};
use std::io;
use tilewise_report::{Derived, parse_shape};

pub(crate) fn run(args: &StepsArgs, output: &mut Output) -> io::Result<()> {
    if args.draw {
        return run_steps(&args.shapes, args.out.as_ref(), output);
    }
    each_item(&args.shapes, |input, readable| {
        let derived = readable.and_then(|()| {
            let shape = parse_shape(input)?;
            Derived::of(&shape, args.rendering.into()).map_err(|failure| failure.within(0..input.len()))
        });
        output.item(input, derived)
    })
}
