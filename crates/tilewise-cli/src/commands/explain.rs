//! `tilewise explain`: a pasted out-of-memory message, and what to do about it.

use crate::{cli::ExplainArgs, input::read_bytes, output::Output};
use std::{io, path::Path};
use tilewise::tpu::Generation;
use tilewise_audit::{Explanation, Failure, decode_log};
use tilewise_oom::Message;
use tilewise_report::style::{FAINT, styled};

pub(crate) fn run(args: &ExplainArgs, output: &mut Output) -> io::Result<()> {
    for file in &args.files {
        let input = file.to_string_lossy();
        let explanation = explanation(file, args.tpu);
        if explanation.is_ok() && args.files.len() > 1 {
            output.text(&format!("{}\n", styled(FAINT, &input)))?;
        }
        output.item(&input, explanation)?;
    }
    Ok(())
}

fn explanation(file: &Path, tpu: Option<Generation>) -> Result<Explanation, Failure> {
    let text = decode_log(read_bytes(file)?).map_err(|failure| failure.in_file(file))?;
    Ok(tilewise_audit::explain(Message::parse(&text)?, tpu))
}
