//! Verbs that ask a TPU compiler, which only Python reaches: `fit`, `lock`, and `audit --against`.

use crate::output::say;
use std::{
    ffi::{OsStr, OsString},
    io,
    process::Command,
};

const INTERPRETER: &str = if cfg!(windows) { "python" } else { "python3" };
const IS_INSTALLED: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tilewise') is None)";

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// As `tilewise fit --help` and `tilewise lock --help` list them, where the Python package is installed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Whether these arguments, the program's name first, are for the Python package.
pub(crate) fn is_asked(arguments: &[OsString]) -> bool {
    let is_against = |argument: &OsString| {
        argument == "--against" || argument.to_str().is_some_and(|argument| argument.starts_with("--against="))
    };
    match arguments.get(1).and_then(|verb| verb.to_str()) {
        Some("fit" | "lock") => true,
        Some("audit") => arguments.iter().any(is_against),
        _ => false,
    }
}

/// Runs the package's command line, in place of this process where the system can do that, and returns its exit status.
pub(crate) fn run(arguments: &[OsString]) -> u8 {
    let verb = arguments.first().map_or_else(String::new, |verb| verb.to_string_lossy().into_owned());
    let found = Command::new(INTERPRETER).args(["-c", IS_INSTALLED]).status();
    if !found.is_ok_and(|status| status.success()) {
        say(format!(
            "error: `tilewise {verb}` asks the TPU compiler through the Python package, which {INTERPRETER} has not\n\
             help: pip install 'tilewise[tpu]'"
        ));
        return 2;
    }
    let mut command = Command::new(INTERPRETER);
    command.args([OsStr::new("-m"), OsStr::new("tilewise")]).args(arguments);
    match replaced_by(command) {
        Ok(status) => status,
        Err(error) => {
            say(format!("error: can't run {INTERPRETER}: {error}"));
            2
        }
    }
}

/// Ctrl-C is then the package's to handle.
#[cfg(unix)]
fn replaced_by(mut command: Command) -> io::Result<u8> {
    Err(std::os::unix::process::CommandExt::exec(&mut command))
}

#[cfg(not(unix))]
fn replaced_by(mut command: Command) -> io::Result<u8> {
    Ok(command.status()?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}
