//! `tilewise man`: the manual page, one section a verb.

use crate::output::Status;
use clap::Command;
use clap_mangen::Man;
use std::io::{self, Write};

/// Writes the page of `command`.
pub(crate) fn run(mut command: Command) -> io::Result<Status> {
    // Gives each verb the full name under which it is called.
    command.build();
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        writeln!(page, ".SH \"TILEWISE {}\"", verb.get_name().to_uppercase())?;
        let man = Man::new(verb.clone());
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    io::stdout().write_all(&page)?;
    Ok(Status::Fine)
}
