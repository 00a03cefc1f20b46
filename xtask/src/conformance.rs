//! `cargo xtask conformance`: tilewise and live XLA on generated shapes.

use crate::python;
use clap::Args;
use std::path::Path;
use xshell::{Cmd, Shell, cmd};

/// How many shapes, and from which seed.
#[derive(Args)]
pub(crate) struct Options {
    /// How many shapes to generate
    #[arg(long, default_value_t = 100_000)]
    shapes: u64,
    /// The random generator's seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let python = python::environment(shell)?;
    let (shapes, seed) = (options.shapes.to_string(), options.seed.to_string());
    Ok(command(shell, &python).args(["--shapes", &shapes, "--seed", &seed]).quiet().run()?)
}

/// The comparison with its own defaults.
pub(crate) fn command<'a>(shell: &'a Shell, python: &Path) -> Cmd<'a> {
    cmd!(shell, "cargo run --quiet --package tilewise-conformance -- --python {python}")
}
