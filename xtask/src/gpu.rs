//! `cargo xtask gpu`: what the audit's advice promises for programs of GPUs, against what XLA says once it is followed.

use crate::{
    package::{self, Profile},
    python,
};
use clap::Args;
use xshell::{Shell, cmd};

/// Which programs, for which card.
#[derive(Args)]
pub(crate) struct Options {
    /// The card that they are compiled for
    #[arg(long, value_name = "MACHINE", default_value = "gpu:h100")]
    machine: String,
    /// Judge programs whose names begin so
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
}

pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let python = python::with_packages(shell, "gpu", &["conformance/gpu/requirements.txt"])?;
    package::install(shell, &python, Profile::Tests)?;
    let Options { machine, only } = options;
    Ok(cmd!(shell, "{python} conformance/gpu/judge.py --machine {machine} --only {only}").quiet().run()?)
}
