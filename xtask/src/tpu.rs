//! `cargo xtask tpu`: tilewise and the TPU compiler on generated programs.

use crate::{python, tools::target_folder};
use clap::Args;
use std::path::{Path, PathBuf};
use xshell::{Cmd, Shell, cmd};

/// The number of programs, and their class.
#[derive(Args)]
pub(crate) struct Programs {
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

/// Options for TPUs.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    programs: Programs,
    /// Compile for this generation of TPU only
    #[arg(long, value_name = "TPU")]
    generation: Option<String>,
}

pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let generation = options.generation.iter().flat_map(|generation| ["--generation", generation]);
    Ok(comparison(shell, &environment(shell)?, &options.programs)?.args(generation).quiet().run()?)
}

/// The comparison of these programs, with `tilewise` as it is.
pub(crate) fn comparison<'a>(shell: &'a Shell, python: &Path, programs: &Programs) -> anyhow::Result<Cmd<'a>> {
    cmd!(shell, "cargo build --quiet --package tilewise-cli").quiet().run()?;
    let seed = programs.seed.to_string();
    let class = programs.class.iter().flat_map(|class| ["--class", class]);
    Ok(command(shell, python, programs.programs).args(["--seed", &seed]).args(class))
}

/// The comparison of `programs` programs, with the `tilewise` that was built last.
pub(crate) fn command<'a>(shell: &'a Shell, python: &Path, programs: u64) -> Cmd<'a> {
    let target = target_folder(shell);
    let (tilewise, folder) = (target.join("debug/tilewise"), target.join("tpu"));
    let programs = programs.to_string();
    cmd!(shell, "{python} conformance/tpu/check.py --tilewise {tilewise} --folder {folder} {programs}")
}

/// Mutated programs: none that XLA refuses may be reported to fit.
pub(crate) fn mutants<'a>(shell: &'a Shell, python: &Path, count: u64) -> Cmd<'a> {
    let (tilewise, count) = (target_folder(shell).join("debug/tilewise"), count.to_string());
    cmd!(shell, "{python} conformance/mutants/judge.py --tilewise {tilewise} --count {count}").ignore_stdout()
}

/// The packages of its compiler.
pub(crate) const REQUIREMENTS: &str = "conformance/tpu/requirements.txt";

/// The interpreter with jax and the TPU compiler, which exists for Linux only.
pub(crate) fn environment(shell: &Shell) -> anyhow::Result<PathBuf> {
    python::with_packages(shell, "tpu", &[REQUIREMENTS])
}
