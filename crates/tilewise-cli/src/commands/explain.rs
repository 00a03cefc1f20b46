//! `tilewise explain`: a pasted out-of-memory message, and what to do about it.

use crate::{
    cli::ExplainArgs,
    input::read_bytes,
    output::{Output, terminal::screen_width},
};
use std::{io, path::Path};
use tilewise::tpu::Generation;
use tilewise_audit::{Explanation, Failure, decode_log};
use tilewise_oom::Message;
use tilewise_report::{
    style::{FAINT, styled},
    write_explanation,
};

pub(crate) fn run(args: &ExplainArgs, output: &mut Output) -> io::Result<()> {
    for file in &args.files {
        let input = file.to_string_lossy();
        output.item(&input, explanation(file, args.tpu), |explanation, out| {
            if args.files.len() > 1 {
                writeln!(out, "{}", styled(FAINT, &input))?;
            }
            write_explanation(explanation, screen_width(), out)
        })?;
    }
    Ok(())
}

fn explanation(file: &Path, tpu: Option<Generation>) -> Result<Explanation, Failure> {
    let text = decode_log(read_bytes(file)?).map_err(|failure| failure.in_file(file))?;
    Ok(tilewise_audit::explain(Message::parse(&text)?, tpu))
}
