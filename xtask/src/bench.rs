//! `cargo xtask bench`: measures, and renews `bench/RESULTS.md`.

use crate::python;
use std::path::Path;
use xshell::{Shell, cmd};

/// Builds the benchmark optimised and runs it beside the rivals of the Python environment.
pub(crate) fn run(shell: &Shell, quick: bool) -> anyhow::Result<()> {
    let python = python::environment(shell)?;
    let quick = quick.then_some("--quick");
    let out = Path::new("bench").join("RESULTS.md");
    cmd!(shell, "cargo run --release --package tilewise-bench -- --python {python} --out {out} {quick...}").run()?;
    Ok(())
}
