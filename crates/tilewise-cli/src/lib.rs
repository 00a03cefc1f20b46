//! The `tilewise` command line as a library, which the binary runs.
//!
//! [`run`] is the whole program; `tilewise-report` writes its output. [`programs_in`] lists a folder's programs, for
//! other front ends.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod container;
mod input;
#[cfg(feature = "mcp")]
mod mcp;
mod output;
mod values;

use clap::{CommandFactory, Parser};
use cli::Cli;
pub use commands::audit::Sources;
use commands::python;
pub use commands::python::asks_compiler;
use std::{
    borrow::Cow,
    ffi::OsString,
    path::{Path, PathBuf},
};
use tilewise::visible_lines;
use tilewise_audit::Failure;

/// Runs the command line with these arguments, the program's name first, on the process's standard streams.
///
/// Returns the exit status and doesn't end the process: 0 for success, 1 if something was flagged as asked, 2 for bad
/// usage or bad input, 3 if compilers differ. Arguments that [ask a compiler](asks_compiler) run the Python package: on
/// Unix its process replaces this one.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().map(bracketed).collect();
    if asks_compiler(&arguments) {
        return python::run(&arguments[1..]);
    }
    let Cli { color, command } = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(usage) => {
            // Help and version are such errors, too, with status 0. Control characters of arguments are made visible.
            let plain = usage.render().to_string();
            match visible_lines(&plain) {
                Cow::Borrowed(_) => _ = usage.print(),
                Cow::Owned(shown) => anstream::eprint!("{shown}"),
            }
            return u8::try_from(usage.exit_code()).unwrap_or(2);
        }
    };
    color.write_global();
    match command.run(Cli::command) {
        Ok(status) => status.code(),
        // The reader closed the pipe: `tilewise … | head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            anstream::eprintln!("error: can't write the results: {error}");
            2
        }
    }
}

/// Puts a list that begins with a negative number, `-1,-1`, in brackets, so that it isn't taken for an option. It is an
/// index or an order, which the verb checks.
fn bracketed(argument: OsString) -> OsString {
    let is_number = |part: &str| part.trim_start_matches('-').parse::<u64>().is_ok();
    let is_list = |text: &&str| text.starts_with('-') && text.contains(',') && text.split(',').all(is_number);
    argument.to_str().filter(is_list).map(|list| format!("({list})").into()).unwrap_or(argument)
}

/// The files in a folder and its subfolders that `tilewise audit` takes as final programs. Unreadable files are
/// included, since each may be one.
///
/// # Errors
/// The folder can't be read (`io`), or holds no program (`no_program`).
pub fn programs_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    commands::audit::files_of(folder)
}
