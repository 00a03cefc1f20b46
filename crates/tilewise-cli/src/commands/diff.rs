//! `tilewise diff`: how two shapes and their layouts differ, in words.

use crate::{
    cli::DiffArgs,
    input::each_pair,
    output::{Output, Status},
};
use std::io;
use tilewise_report::Differences;

pub(crate) fn run(args: &DiffArgs, output: &mut Output) -> io::Result<()> {
    each_pair(&args.first, args.second.as_deref(), |input, pair| {
        let answer = pair.map(|pair| Differences::of(&pair));
        if answer.as_ref().is_ok_and(|answer| !answer.is_empty()) {
            output.raise(Status::Flagged);
        }
        output.item(input, answer)
    })
}
