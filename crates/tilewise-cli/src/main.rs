//! The `tilewise` command line: XLA's tiled layouts explained, indexed and audited.

use std::process::ExitCode;

fn main() -> ExitCode {
    tilewise_cli::run(std::env::args_os()).into()
}
