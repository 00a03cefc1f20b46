//! The `tilewise` command line: XLA's tiled layouts explained, indexed and audited.

mod cli;
mod commands;
mod failure;
mod input;
mod limit;
mod output;

use clap::Parser;
use cli::{Cli, Command};
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Cli { color, command } = Cli::parse();
    color.write_global();
    let run = match command {
        Command::Show(args) => Output::run(args.format.into(), |output| commands::show::run(&args, output)),
        Command::Index(args) => Output::run(args.format.format, |output| commands::index::run(&args, output)),
        Command::Steps(args) => Output::run(args.format.format, |output| commands::steps::run(&args, output)),
        Command::Predict(args) => Output::run(args.format.format, |output| commands::predict::run(&args, output)),
        Command::Audit(args) => Output::run(args.format.into(), |output| commands::audit::run(&args, output)),
        Command::Explain(args) => Output::run(args.format.format, |output| commands::explain::run(&args, output)),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man => commands::man::run(),
    };
    match run {
        Ok(status) => status.into(),
        // Whoever reads us has read enough: `tilewise … | head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: can't write the results: {error}");
            ExitCode::from(2)
        }
    }
}
