//! `tilewise edit`: one shape made from another, with its layout kept as XLA keeps it.

use crate::{
    input::each_item,
    output::{FormatArgs, Output},
};
use std::io;
use tilewise_report::Edited;

#[derive(clap::Args)]
#[command(after_help = help())]
pub(crate) struct Args {
    /// A shape with its layout; - reads one per line
    #[arg(value_name = "SHAPE")]
    shape: String,
    /// What to change, NAME or NAME=VALUE, in order
    #[arg(required = true, value_name = "EDIT")]
    edits: Vec<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// Each edit, and examples.
fn help() -> String {
    let edits: String = Edited::edits().map(|(written, meaning)| format!("  {written:<18}{meaning}\n")).collect();
    format!(
        "Edits, made one behind the other:\n{edits}
Examples:
  tilewise edit 'f32[3,5]{{1,0:T(2,2)}}' permute=1,0
  tilewise edit 'f32[3,1,5]{{2,1,0}}' delete=1 type=bf16 append-major=8
  tilewise edit - clear-tiles < shapes.txt"
    )
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    each_item(std::slice::from_ref(&args.shape), |input, readable| {
        let mut reader = output.reader();
        let edited = readable.and_then(|()| Edited::read(input, &args.edits, &mut reader));
        output.item_read(input, reader, edited)
    })
}
