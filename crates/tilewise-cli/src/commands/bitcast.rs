//! `tilewise bitcast`: whether the bytes of one array can be read as another.

use crate::{
    cli::BitcastArgs,
    input::{each_item, each_pair},
    output::{Output, Status},
};
use std::io;
use tilewise_report::{BitcastAnswer, FreeLayouts};

pub(crate) fn run(args: &BitcastArgs, output: &mut Output) -> io::Result<()> {
    if args.reshape.is_some() || args.transpose.is_some() {
        return each_item(std::slice::from_ref(&args.from), |input, readable| {
            let free = readable.and_then(|()| match &args.reshape {
                Some(dimensions) => FreeLayouts::of_reshape(input, dimensions),
                None => FreeLayouts::of_transpose(input, args.transpose.as_deref().unwrap_or_default()),
            });
            if free.as_ref().is_ok_and(FreeLayouts::is_empty) {
                output.raise(Status::Flagged);
            }
            output.item(input, free)
        });
    }
    let reading = args.reading.into();
    each_pair(&args.from, args.to.as_deref(), |input, pair| {
        let answer = pair.and_then(|pair| BitcastAnswer::of(&pair, reading));
        if answer.as_ref().is_ok_and(|answer| !answer.is_bitcast()) {
            output.raise(Status::Flagged);
        }
        output.item(input, answer)
    })
}
