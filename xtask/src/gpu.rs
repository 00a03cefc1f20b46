//! `cargo xtask gpu`: the savings that the audit's advice promises for programs of GPUs, or of this machine's CPU,
//! against XLA's figures after it is followed.

use crate::{
    package::{self, Profile},
    python,
};
use clap::Args;
use std::path::Path;
use xshell::{Cmd, Shell, cmd};

/// The programs, and the card.
#[derive(Args)]
pub(crate) struct Options {
    /// The card that they are compiled for, or cpu
    #[arg(long, value_name = "MACHINE", default_value = "gpu:h100")]
    machine: String,
    /// Judge programs whose names begin with this
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
}

pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let Options { machine, only } = options;
    let python = match machine.as_str() {
        CPU => python::environment(shell)?,
        _ => python::with_packages(shell, "gpu", &["conformance/gpu/requirements.txt"])?,
    };
    package::install(shell, &python, Profile::Tests)?;
    Ok(command(shell, &python, machine).args(["--only", only]).quiet().run()?)
}

/// This machine's CPU, for which no large packages are needed.
pub(crate) const CPU: &str = "cpu";

/// The judge, in an environment with the package.
pub(crate) fn command<'a>(shell: &'a Shell, python: &Path, machine: &str) -> Cmd<'a> {
    cmd!(shell, "{python} conformance/gpu/judge.py --machine {machine}")
}
