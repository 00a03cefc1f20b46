//! `tilewise index`: the offset of an element, or the element at an offset.

use crate::{
    cli::IndexArgs,
    input::each_item,
    output::{Output, Status},
};
use std::io;
use tilewise_audit::Failure;
use tilewise_report::Located;

pub(crate) fn run(args: &IndexArgs, output: &mut Output) -> io::Result<()> {
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
