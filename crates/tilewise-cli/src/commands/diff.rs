//! `tilewise diff`: how two shapes and their layouts differ, in words.

use crate::{
    input::each_pair,
    output::{FormatArgs, Output, Status},
};
use std::io;
use tilewise_report::Differences;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise diff 'bf16[300,500]{1,0:T(8,128)(2,1)}' 'bf16[300,500]{0,1:T(8,128)(2,1)S(1)}'

The exit status is 1 if there is a difference.")]
pub(crate) struct Args {
    /// A shape; - reads lines A<TAB>B
    #[arg(value_name = "A")]
    first: String,
    /// Another
    #[arg(value_name = "B")]
    second: Option<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    each_pair(&args.first, args.second.as_deref(), output, |output, input, pair| {
        let answer = pair.map(|pair| Differences::of(&pair));
        if answer.as_ref().is_ok_and(|answer| !answer.is_empty()) {
            output.raise(Status::Flagged);
        }
        output.item(input, answer)
    })
}
