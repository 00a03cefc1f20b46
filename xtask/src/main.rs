//! Development tasks, as `cargo xtask VERB`.

mod test;

use clap::{Parser, Subcommand};
use std::path::Path;
use xshell::Shell;

/// Development tasks of tilewise.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Everything that must hold: formatting, lints, documentation, tests, builds without features
    Test,
}

fn main() -> anyhow::Result<()> {
    let shell = Shell::new()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    shell.change_dir(root);
    match Cli::parse().verb {
        Verb::Test => test::run(&shell),
    }
}
