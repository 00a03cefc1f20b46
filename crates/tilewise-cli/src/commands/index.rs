//! `tilewise index`: the offset of an element, or the element at an offset.

use crate::{
    input::each_item,
    output::{FormatArgs, Output, Status},
};
use std::io;
use tilewise_audit::Failure;
use tilewise_report::Located;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise index 'f32[3,5]{1,0:T(2,2)}' 2,3
  tilewise index 'f32[3,5]{1,0:T(2,2)}' --offset 17
  printf 'f32[3,5]{1,0:T(2,2)}\\t@17\\n' | tilewise index -")]
pub(crate) struct Args {
    /// A shape with its layout; - reads lines SHAPE<TAB>2,3 or SHAPE<TAB>@17
    #[arg(value_name = "SHAPE")]
    shape: String,
    /// Logical indices, such as 2,3; '' for a scalar
    #[arg(value_name = "INDEX")]
    indices: Vec<String>,
    /// Offsets, in elements, whose index to find
    #[arg(long = "offset", value_name = "N", num_args = 1..)]
    offsets: Vec<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    if args.shape == "-" {
        return each_item(std::slice::from_ref(&args.shape), |input, readable| {
            output.item(input, readable.and_then(|()| Located::of_line(input)))
        });
    }
    let questions = args.indices.iter().cloned().chain(args.offsets.iter().map(|offset| format!("@{offset}")));
    let questions: Vec<String> = questions.collect();
    if questions.is_empty() {
        output.raise(Status::BadInput);
        let missing = Failure::new("malformed_batch_line", "no index and no offset is given")
            .with_help("write `tilewise index SHAPE 2,3` or `tilewise index SHAPE --offset 17`");
        return output.failure(&args.shape, missing);
    }
    for question in questions {
        // Answered as a line of the batch form, so that errors point into the same text.
        let input = format!("{}\t{question}", args.shape);
        output.item(&input, Located::of_line(&input))?;
    }
    Ok(())
}
