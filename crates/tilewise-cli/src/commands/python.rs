//! Verbs that ask a TPU compiler, which only Python reaches: `fit`, `lock`, and `audit` of a program in Python. Their
//! options are here for help, completions and the manual; the package reads them.

use crate::{output::say, values::parse_tolerance};
use std::{env, ffi::OsString, io, process::Command};
use tilewise_audit::Failure;
use tilewise_report::Allowed;

/// Names the interpreter that has the package; the package sets it to its own.
const VARIABLE: &str = "TILEWISE_INTERPRETER";
const IS_INSTALLED: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tilewise') is None)";

#[derive(clap::Args)]
#[command(
    after_help = "Needs the Python package with its compiler: pip install 'tilewise[tpu]'. Exit status: 0 an answer, 1 nothing fits, \
                  2 usage, 3 gaps or errors with --strict, 130 interrupted."
)]
pub(crate) struct Fit {
    /// A function of settings that returns (f, args) or (f, args, jit_options)
    #[arg(value_name = "FILE.py:FACTORY")]
    program: String,
    /// v2 v3 v4 v5e v5p v6e v7x, or several
    #[arg(long, value_name = "TPU,…")]
    tpu: String,
    /// Such as 2x2, or several [default: the smallest with enough devices]
    #[arg(long, value_name = "SLICE,…")]
    topology: Option<String>,
    /// An axis to search; also 8..512..8, 1,2,8 or 0.25,0.5,1
    #[arg(long, value_name = "AXIS=1..512")]
    largest: Vec<String>,
    /// Values to search for each; donate, formats, sharding, remat and microbatch need no parameter
    #[arg(long, value_name = "AXIS=A,B")]
    grid: Vec<String>,
    /// What is kept for the gradient, as in --grid: none, dots, full, or auto for the fastest that fits
    #[arg(long, value_name = "none|auto,…")]
    remat: Option<String>,
    /// A fixed size: which combinations fit?
    #[arg(long, value_name = "AXIS=SIZE")]
    target: Vec<String>,
    /// Which rows to compile in full
    #[arg(long, default_value = "answer", value_parser = ["answer", "all", "none"])]
    confirm: String,
    /// Sizes to ask about above the first estimate
    #[arg(long, default_value = "auto", value_name = "auto|all|near|SECONDS")]
    above: String,
    /// HBM to keep free
    #[arg(long, value_name = "512MiB")]
    reserve: Option<String>,
    /// Available HBM, if less than the generation's
    #[arg(long, value_name = "8GiB")]
    hbm_limit: Option<String>,
    /// Limit for each compilation
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Combinations to search at once
    #[arg(long, default_value = "1", value_name = "N")]
    workers: u32,
    /// Where combinations are searched
    #[arg(long, default_value = "processes", value_parser = ["processes", "ray", "dask"])]
    engine: String,
    /// Where earlier answers are kept [default: ~/.cache/tilewise]
    #[arg(long, value_name = "DIR")]
    cache: Option<String>,
    /// Ignore earlier answers
    #[arg(long)]
    no_cache: bool,
    /// Append rows as they come, and resume from them
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<String>,
    #[command(flatten)]
    allowed: Allowing,
    /// Exit with 3 if sizes were not tried or have no answer
    #[arg(long)]
    strict: bool,
    /// Output format
    #[arg(long, default_value = "human", value_parser = ["human", "json", "csv", "markdown", "html"])]
    format: String,
    /// Where to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
}

#[derive(clap::Args)]
#[command(
    after_help = "Needs the Python package, and its compiler for FILE.py:FACTORY: pip install 'tilewise[tpu]'. Exit status: 0 the \
                  same or better, 1 worse, 2 usage, 3 another compiler than the lock's."
)]
pub(crate) struct Lock {
    /// The programs, or files of HLO; all of the lock with --check
    #[arg(value_name = "FILE.py:FACTORY")]
    program: Vec<String>,
    /// The lock
    #[arg(short, long, default_value = "plan.lock", value_name = "FILE")]
    output: String,
    /// Compare with the lock; write nothing
    #[arg(long)]
    check: bool,
    /// Renew all programs of the lock
    #[arg(long)]
    update: bool,
    /// The TPU generation [default: the lock's]
    #[arg(long, value_name = "TPU")]
    tpu: Option<String>,
    #[command(flatten)]
    comparing: Comparing,
    /// With --check: the version of libtpu that compiles, such as 0.0.52, installed from PyPI the first time
    #[arg(long, value_name = "VERSION", requires = "check")]
    libtpu: Option<String>,
    /// Output format
    #[arg(long, default_value = "human", value_parser = ["human", "json", "markdown", "github"])]
    format: String,
}

/// Programs that are functions of installed modules: `subprocess:call` isn't a program by accident.
#[derive(clap::Args)]
pub(crate) struct Allowing {
    /// Also run a program MODULE:FACTORY of this Python module
    #[arg(long, value_name = "MODULE")]
    allow_module: Vec<String>,
}

/// How a program is made and compared with another or a lock.
#[derive(clap::Args)]
pub(crate) struct Comparing {
    /// The slice that a FILE.py:FACTORY is for, such as 2x2
    #[arg(long, value_name = "SLICE")]
    topology: Option<String>,
    /// A setting of the factory
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    allowed: Allowing,
    /// The program's name in the lock [default: the function's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Allowed growth in bytes, at least a MiB
    #[arg(long, default_value = "1%", value_parser = parse_tolerance)]
    tolerance: f64,
    /// Count any change as worse
    #[arg(long)]
    exact: bool,
    /// Also compare plans of different compilers
    #[arg(long)]
    any_compiler: bool,
}

impl Comparing {
    pub(crate) fn allowed(&self) -> Allowed {
        let Self { tolerance, exact, any_compiler, .. } = *self;
        Allowed { tolerance, exact, any_compiler }
    }
}

/// Whether these arguments, the program's name first, need the Python package; requests for help don't.
#[must_use]
pub fn asks_compiler(arguments: &[OsString]) -> bool {
    let texts = || arguments.iter().filter_map(|argument| argument.to_str());
    let any = |is: fn(&str) -> bool| texts().take_while(|argument| *argument != "--").any(is);
    match arguments.get(1).and_then(|verb| verb.to_str()) {
        Some("fit" | "lock") => !any(|argument| argument == "--help" || argument == "-h"),
        Some("kernel") => {
            any(|argument| argument.contains(".py:") && is_factory(argument))
                && !any(|argument| argument == "--help" || argument == "-h")
        }
        Some("audit") => {
            let is_compared = any(|argument| argument == "--against" || argument.starts_with("--against="));
            texts().any(|argument| {
                let program = argument.strip_prefix("--against=").unwrap_or(argument);
                // Without a comparison a `MODULE:NAME` may be the value of another option, such as `v5e:2x2`.
                is_factory(program) && (is_compared || program.contains(".py:"))
            }) && !any(|argument| argument == "--help" || argument == "-h")
        }
        _ => false,
    }
}

/// Whether an argument names a function, `FILE.py:NAME` or `MODULE:NAME`, and not a file.
fn is_factory(argument: &str) -> bool {
    let is_name =
        |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || "_.".contains(letter));
    argument.rsplit_once(':').is_some_and(|(place, name)| {
        let is_place = place.ends_with(".py") || (is_name(place) && !place.contains('='));
        is_place && is_name(name) && !argument.starts_with('-') && !std::path::Path::new(argument).exists()
    })
}

/// The interpreter that has the package, or may have it.
fn interpreter() -> OsString {
    env::var_os(VARIABLE).unwrap_or_else(|| if cfg!(windows) { "python" } else { "python3" }.into())
}

/// A module of the package as a program, without arguments.
pub(crate) fn command(module: &str) -> Command {
    let mut command = Command::new(interpreter());
    command.args(["-m", module]);
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

/// Arguments of a verb that this binary has not.
#[cfg(not(feature = "mcp"))]
#[derive(clap::Args)]
pub(crate) struct Elsewhere {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<OsString>,
}

/// Prints where to get `mcp`.
#[cfg(not(feature = "mcp"))]
pub(crate) fn without_mcp() -> crate::output::Status {
    let package = "`pip install tilewise` has it, as does `cargo install tilewise-cli --features mcp`";
    say(format!("error: this binary is built without `mcp`\nhelp: {package}"));
    crate::output::Status::BadInput
}

/// Runs the package's command line, in place of this process where the system can do that, and returns its exit status.
pub(crate) fn run(arguments: &[OsString]) -> u8 {
    let found = Command::new(interpreter()).args(["-c", IS_INSTALLED]).status();
    if !found.is_ok_and(|status| status.success()) {
        let verb = arguments.first().map_or_else(String::new, |verb| verb.to_string_lossy().into_owned());
        let Failure { message, help, .. } = missing(&verb);
        say(format!("error: {message}\nhelp: {}", help.unwrap_or_default()));
        return 2;
    }
    let mut command = command("tilewise");
    command.args(arguments);
    match replaced_by(command) {
        Ok(status) => status,
        Err(error) => {
            say(format!("error: can't run {}: {error}", interpreter().to_string_lossy()));
            2
        }
    }
}

/// Replaces this process, so that the package handles Ctrl-C.
#[cfg(unix)]
fn replaced_by(mut command: Command) -> io::Result<u8> {
    Err(std::os::unix::process::CommandExt::exec(&mut command))
}

#[cfg(not(unix))]
fn replaced_by(mut command: Command) -> io::Result<u8> {
    Ok(command.status()?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}
