//! `cargo xtask remat`: the choices of `tw.remat` for training steps of public libraries, beside those made by hand.

use crate::{
    package::{self, Profile},
    python,
};
use clap::Args;
use xshell::{Shell, cmd};

/// The steps, and the TPUs.
#[derive(Args)]
pub(crate) struct Options {
    /// The generations
    #[arg(long, value_name = "TPU,…", default_value = "v5e,v6e")]
    tpu: String,
    /// Judge these steps only
    #[arg(long, value_name = "NAME,…")]
    only: Option<String>,
    /// Compare results of small steps on this machine's CPU instead
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let python = {
        // The libraries exclude one another's versions, of packages that no step needs.
        let _whole = shell.push_env("PIP_NO_DEPS", "1");
        python::with_packages(shell, "remat", &["conformance/remat/requirements.txt"])?
    };
    package::install(shell, &python, Profile::Tests)?;
    let Options { tpu, only, check } = options;
    let check = check.then_some("--check");
    let only = only.iter().flat_map(|names| ["--only", names]);
    Ok(cmd!(shell, "{python} conformance/remat/judge.py --tpu {tpu} {only...} {check...}").quiet().run()?)
}
