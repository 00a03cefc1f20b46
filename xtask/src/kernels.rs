//! `cargo xtask kernels`: the VMEM of Pallas kernels, by tilewise and by the TPU compiler.

use crate::{tools::target_folder, tpu};
use clap::Args;
use std::path::Path;
use xshell::{Cmd, Shell, cmd};

/// The number of kernels, and their class.
#[derive(Args)]
pub(crate) struct Options {
    /// How many kernels to compile
    #[arg(default_value_t = 60)]
    kernels: u64,
    /// The random generator's seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Compile kernels of this class only
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
}

pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let python = tpu::environment(shell)?;
    cmd!(shell, "cargo build --quiet --package tilewise-cli").quiet().run()?;
    let seed = options.seed.to_string();
    let mut command = command(shell, &python, options.kernels).args(["--seed", &seed]);
    if let Some(class) = &options.class {
        command = command.args(["--class", class]);
    }
    Ok(command.quiet().run()?)
}

/// The comparison of `kernels` kernels, with the `tilewise` that was built last.
pub(crate) fn command<'a>(shell: &'a Shell, python: &Path, kernels: u64) -> Cmd<'a> {
    let tilewise = target_folder(shell).join("debug/tilewise");
    let kernels = kernels.to_string();
    cmd!(shell, "{python} conformance/tpu/kernels.py --tilewise {tilewise} {kernels}")
}
