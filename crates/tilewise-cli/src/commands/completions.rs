//! `tilewise completions`: a completion script.

use crate::output::Status;
use clap::Command;
use clap_complete::Shell;
use std::io;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Writes the script for all verbs of `command`.
pub(crate) fn run(args: &Args, mut command: Command) -> io::Result<Status> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tilewise", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(Status::Fine)
}
