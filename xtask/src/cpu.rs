//! `cargo xtask cpu`: tilewise and XLA for CPUs on generated programs.

use crate::{python, tpu};
use clap::Args;
use xshell::{Shell, cmd};

/// How many programs, and which.
#[derive(Args)]
pub(crate) struct Options {
    /// How many programs to compile
    #[arg(default_value_t = 60)]
    programs: u64,
    /// The random generator's seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Compile programs of this class only
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
}

pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let python = python::environment(shell)?;
    cmd!(shell, "cargo build --quiet --package tilewise-cli").quiet().run()?;
    let seed = options.seed.to_string();
    let mut command = tpu::command(shell, &python, options.programs).args(["--cpu", "--seed", &seed]);
    if let Some(class) = &options.class {
        command = command.args(["--class", class]);
    }
    Ok(command.quiet().run()?)
}
