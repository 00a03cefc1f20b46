//! Verbs that ask a TPU compiler, which only Python reaches: `fit`, `lock`, and `audit --against` but for its page.

use crate::output::say;
use std::{env, ffi::OsString, io, process::Command};
use tilewise_audit::Failure;

/// Names the interpreter that has the package; the package sets it to its own.
const VARIABLE: &str = "TILEWISE_INTERPRETER";
const IS_INSTALLED: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tilewise') is None)";

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// `tilewise fit --help` and `tilewise lock --help` list them once the Python package is installed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Whether these arguments, the program's name first, are for the Python package. A page of two programs needs no
/// compiler.
pub(crate) fn is_asked(arguments: &[OsString]) -> bool {
    let any = |is: fn(&str) -> bool| arguments.iter().filter_map(|argument| argument.to_str()).any(is);
    match arguments.get(1).and_then(|verb| verb.to_str()) {
        Some("fit" | "lock") => true,
        Some("audit") => {
            let is_page =
                || any(|argument| argument.ends_with(".html") || matches!(argument, "html" | "--format=html"));
            any(|argument| argument == "--against" || argument.starts_with("--against=")) && !is_page()
        }
        _ => false,
    }
}

/// The interpreter that has the package, or may have it.
fn interpreter() -> OsString {
    env::var_os(VARIABLE).unwrap_or_else(|| if cfg!(windows) { "python" } else { "python3" }.into())
}

/// The package's command line, without arguments.
pub(crate) fn command() -> Command {
    let mut command = Command::new(interpreter());
    command.args(["-m", "tilewise"]);
    command
}

/// The failure where the package is not installed.
pub(crate) fn missing(verb: &str) -> Failure {
    let interpreter = interpreter();
    let message = format!(
        "`tilewise {verb}` asks the TPU compiler through the Python package, which {} has not",
        interpreter.to_string_lossy()
    );
    Failure::new("no_package", message).with_help("pip install 'tilewise[tpu]'")
}

/// Runs the package's command line, in place of this process where the system can do that, and returns its exit status.
pub(crate) fn run(arguments: &[OsString]) -> u8 {
    let found = Command::new(interpreter()).args(["-c", IS_INSTALLED]).status();
    if !found.is_ok_and(|status| status.success()) {
        let verb = arguments.first().map_or_else(String::new, |verb| verb.to_string_lossy().into_owned());
        let Failure { message, help, .. } = missing(&verb);
        let help = help.unwrap_or_default();
        let is_help = arguments.iter().any(|argument| argument == "--help" || argument == "-h");
        if let Some(usage) = usage(&verb).filter(|_| is_help) {
            anstream::println!("{usage}\n\n{message}.\n`{help}` installs it; then this lists the options.");
            return 0;
        }
        say(format!("error: {message}\nhelp: {help}"));
        return 2;
    }
    let mut command = command();
    command.args(arguments);
    match replaced_by(command) {
        Ok(status) => status,
        Err(error) => {
            say(format!("error: can't run {}: {error}", interpreter().to_string_lossy()));
            2
        }
    }
}

/// What a verb of the package is for, where the package itself can't say it.
fn usage(verb: &str) -> Option<&'static str> {
    Some(match verb {
        "fit" => {
            "Find the largest sizes of a program that fit a TPU, with no TPU\n\n\
             Usage: tilewise fit FILE.py:FACTORY --tpu TPU [--largest NAME=FROM..TO] [--grid NAME=A,B] …"
        }
        "lock" => {
            "Write a program's memory plan to a file that is committed, or compare with it\n\n\
             Usage: tilewise lock FILE.py:FACTORY --tpu TPU [--check] …"
        }
        _ => return None,
    })
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
