//! `tilewise explain`: a pasted out-of-memory message, and what to do about it.

use crate::{
    input::InputArgs,
    output::{FormatArgs, Output},
    values::parse_generation,
};
use std::{
    io,
    path::{Path, PathBuf},
};
use tilewise::{tpu::Generation, visible};
use tilewise_audit::{Explanation, Failure, read_log, read_stream};
use tilewise_report::{
    Item, Page,
    style::{FAINT, styled},
};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise explain train.log
  python train.py 2>&1 | tilewise explain
  tilewise explain E1001")]
pub(crate) struct Args {
    /// Files with one message each, among other text or alone; - reads standard input; a code such as E1001 prints its
    /// meaning
    #[arg(default_value = "-", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// TPU generation, if the tiles in the message do not show it: v2 v3 v4 v5e v5p v6e v7x
    #[arg(long, value_name = "TPU", value_parser = parse_generation)]
    tpu: Option<Generation>,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    for file in &args.files {
        let input = file.to_string_lossy();
        if let Some(page) = Page::named(&input).filter(|_| !file.exists()) {
            output.item(&input, Ok(page))?;
            continue;
        }
        let explanation = explanation(file, args);
        if explanation.is_ok() && args.files.len() > 1 {
            output.text(&format!("{}\n", styled(FAINT, visible(&input))))?;
        }
        output.item(&input, explanation)?;
    }
    Ok(())
}

fn explanation(file: &Path, args: &Args) -> Result<Item<Explanation>, Failure> {
    let limit = args.input.max_input;
    let message = if file == Path::new("-") { read_stream(io::stdin().lock(), limit) } else { read_log(file, limit) };
    Ok(Item(tilewise_audit::explain(message?, args.tpu)))
}
