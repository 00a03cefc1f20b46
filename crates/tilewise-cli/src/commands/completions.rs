//! `tilewise completions`: a completion script.

use crate::{
    cli::{Cli, CompletionsArgs},
    output::Status,
};
use clap::CommandFactory;
use std::io;

pub(crate) fn run(args: &CompletionsArgs) -> io::Result<Status> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tilewise", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(Status::Fine)
}
