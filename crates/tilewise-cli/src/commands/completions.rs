//! `tilewise completions`: a completion script.

use crate::{cli::Cli, output::Status};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> io::Result<Status> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tilewise", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(Status::Fine)
}
