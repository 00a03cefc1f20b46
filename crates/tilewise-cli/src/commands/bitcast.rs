//! `tilewise bitcast`: whether the bytes of one array can be read as another.

use crate::{
    input::{each_item, each_pair},
    output::{FormatArgs, Output, Status},
    values::parse_generation,
};
use clap::ValueEnum;
use std::io;
use tilewise::{BitcastAs, tpu::Generation};
use tilewise_report::{BitcastAnswer, FreeLayouts, FreeViews};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise bitcast 'bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}' 'bf16[8,512,768]{1,2,0:T(8,128)(2,1)}'
  tilewise bitcast 'f32[64,128]{1,0:T(8,128)}' 'f32[64,128]{0,1:T(8,128)}' --as reshape
  tilewise bitcast 'bf16[8,512,768]{1,2,0:T(8,128)(2,1)}' --reshape 8,512,12,64
  tilewise bitcast 'bf16[2,1024,2048]{2,1,0:T(8,128)(2,1)}' 'bf16[2,16,1024,128]' --views
  printf 'f32[8]\\tf32[2,4]\\n' | tilewise bitcast -

The exit status is 1 if it isn't a bitcast, or with --views, if no view is free.")]
pub(crate) struct Args {
    /// The array that the bytes hold; - reads lines FROM<TAB>TO
    #[arg(value_name = "FROM")]
    from: String,
    /// The array to read them as
    #[arg(value_name = "TO", conflicts_with_all = ["reshape", "transpose"])]
    to: Option<String>,
    /// Which relation to test
    #[arg(long = "as", value_enum, default_value_t, value_name = "WHAT", conflicts_with_all = ["reshape", "transpose"])]
    reading: Reading,
    /// Find the layouts in which a reshape to these dimensions is free; if there is none, the orders
    /// of FROM for which there is one on a TPU
    #[arg(long, value_name = "DIMENSIONS", conflicts_with = "transpose")]
    reshape: Option<String>,
    /// Find the layout in which a transpose is free, given the order of the dimensions, such as
    /// 1,0 or -1,0
    #[arg(long, value_name = "ORDER", allow_hyphen_values = true)]
    transpose: Option<String>,
    /// Find the row-major views of FROM that a kernel can read instead of a copy as TO, with the code for both sides
    #[arg(long, requires = "to", conflicts_with = "reading")]
    views: bool,
    /// TPU generation whose tiles a view has by default, or the array in other orders
    #[arg(long, value_name = "TPU", value_parser = parse_generation, default_value = "v5e")]
    tpu: Generation,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Reading {
    /// Any relation that moves no bytes
    #[default]
    Any,
    /// The same elements in the same row-major order
    Reshape,
    /// The same elements with the dimensions in another order
    Transpose,
}

impl From<Reading> for BitcastAs {
    fn from(reading: Reading) -> Self {
        match reading {
            Reading::Any => Self::Any,
            Reading::Reshape => Self::Reshape,
            Reading::Transpose => Self::Transpose,
        }
    }
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    if args.reshape.is_some() || args.transpose.is_some() {
        return each_item(std::slice::from_ref(&args.from), |input, readable| {
            let mut reader = output.reader();
            let free = readable.and_then(|()| match &args.reshape {
                Some(dimensions) => FreeLayouts::of_reshape(input, dimensions, args.tpu, &mut reader),
                None => FreeLayouts::of_transpose(input, args.transpose.as_deref().unwrap_or_default(), &mut reader),
            });
            if free.as_ref().is_ok_and(FreeLayouts::is_empty) {
                output.raise(Status::Flagged);
            }
            output.item_read(input, reader, free)
        });
    }
    if args.views {
        return each_pair(&args.from, args.to.as_deref(), output, |output, input, pair| {
            let found = pair.and_then(|pair| FreeViews::of(&pair, args.tpu));
            if found.as_ref().is_ok_and(FreeViews::is_empty) {
                output.raise(Status::Flagged);
            }
            output.item(input, found)
        });
    }
    let reading = args.reading.into();
    each_pair(&args.from, args.to.as_deref(), output, |output, input, pair| {
        let answer = pair.and_then(|pair| BitcastAnswer::of(&pair, reading));
        if answer.as_ref().is_ok_and(|answer| !answer.is_bitcast()) {
            output.raise(Status::Flagged);
        }
        output.item(input, answer)
    })
}
