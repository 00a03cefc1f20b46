//! `tilewise index`: the offset of an element, or the element at an offset.

use crate::{
    input::each_item,
    output::{FormatArgs, Output, Status},
};
use std::io;
use tilewise_audit::Failure;
use tilewise_report::{Answer, Equation, Reader};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise index 'f32[3,5]{1,0:T(2,2)}' 2,3
  tilewise index 'f32[3,5]{1,0:T(2,2)}' 2,3 --explain
  tilewise index 'f32[3,5]{1,0:T(2,2)}' --offset 17
  tilewise index 'f32[3,5]{1,0:T(2,2)}' y=2,x=3
  tilewise index 'linear_index_with_tile((2,3), (3,5), (2,2))'
  printf 'f32[3,5]{1,0:T(2,2)}\\t@17\\n' | tilewise index -")]
pub(crate) struct Args {
    /// A shape with its layout, or an equation of the document with numbers; - reads lines
    /// SHAPE<TAB>2,3 or SHAPE<TAB>@17
    #[arg(value_name = "SHAPE")]
    shape: String,
    /// Logical indices, such as 2,3 or '(2,3)', '' for a scalar; or indices in memory, such as 1,1,0,1
    #[arg(value_name = "INDEX", allow_negative_numbers = true)]
    indices: Vec<String>,
    /// Work out the document's formula: tile index, index within the tile, offset
    #[arg(long)]
    explain: bool,
    /// Find the index of the element at each offset, in elements
    #[arg(long = "offset", value_name = "N", num_args = 1.., allow_negative_numbers = true)]
    offsets: Vec<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    let answer = |input: &str, reader: &mut Reader| Answer::read(input, args.explain, reader);
    if args.shape == "-" {
        return each_item(std::slice::from_ref(&args.shape), |input, readable| {
            let mut reader = output.reader();
            let answer = readable.and_then(|()| answer(input, &mut reader));
            write(input, reader, answer, output)
        });
    }
    let questions = args.indices.iter().cloned().chain(args.offsets.iter().map(|offset| format!("@{offset}")));
    let questions: Vec<String> = questions.collect();
    if questions.is_empty() {
        let mut reader = output.reader();
        if Equation::begins(&args.shape) {
            let answer = answer(&args.shape, &mut reader);
            return write(&args.shape, reader, answer, output);
        }
        // Errors in the shape come first.
        if let Err(failure) = reader.shape(&args.shape) {
            return output.failure(&args.shape, failure);
        }
        let missing = Failure::new("malformed_batch_line", "no index and no offset is given")
            .with_help("write `tilewise index SHAPE 2,3` or `tilewise index SHAPE --offset 17`");
        return output.failure(&args.shape, missing);
    }
    for (position, question) in questions.iter().enumerate() {
        // Answered as a line of the batch form, so that errors point into the same text.
        let input = format!("{}\t{question}", args.shape);
        let mut reader = output.reader();
        let located = answer(&input, &mut reader);
        // All questions have the same shape: its notes are written once.
        if position == 0 {
            output.notes(&mut reader)?;
        }
        output.item(&input, located)?;
    }
    Ok(())
}

/// Writes an answer; an equation that doesn't hold is flagged.
fn write(input: &str, reader: Reader, answer: Result<Answer, Failure>, output: &mut Output) -> io::Result<()> {
    if answer.as_ref().is_ok_and(Answer::is_wrong) {
        output.raise(Status::Flagged);
    }
    output.item_read(input, reader, answer)
}
