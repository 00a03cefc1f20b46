//! `cargo xtask cpu`: tilewise and XLA for CPUs on generated programs.

use crate::{
    python,
    tpu::{self, Programs},
};
use xshell::Shell;

pub(crate) fn run(shell: &Shell, programs: &Programs) -> anyhow::Result<()> {
    let python = python::environment(shell)?;
    Ok(tpu::comparison(shell, &python, programs)?.arg("--cpu").quiet().run()?)
}
