//! The Python package compared with NumPy, in Python, by `python/bench.py`.

use crate::{measure::Effort, report::Report};
use anyhow::{Context, ensure};
use std::{path::Path, process::Command};

pub(crate) fn run(effort: &Effort, python: Option<&Path>, report: &mut Report) -> anyhow::Result<()> {
    let python = python.context("--package-python names no interpreter that has the package")?;
    let mut bench = Command::new(python);
    bench.args(["python/bench.py", "--markdown"]).args(effort.quick.then_some("--quick"));
    let output = bench.output().with_context(|| format!("can't run {}", python.display()))?;
    ensure!(output.status.success(), "python/bench.py: {}", String::from_utf8_lossy(&output.stderr));
    report.body(&String::from_utf8_lossy(&output.stdout));
    Ok(())
}
