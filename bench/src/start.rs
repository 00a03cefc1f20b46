//! The time from a command to its end, beside comparable tools.

use crate::{
    measure::{Contender, Effort, medians},
    report::Report,
};
use anyhow::{Context, ensure};
use std::{
    path::Path,
    process::{Command, Stdio},
};

/// A message to explain.
const MESSAGE: &str = "crates/tilewise-oom/tests/data/public/hbm_v4.txt";

pub(crate) fn run(effort: &Effort, tilewise: &Path, package: &Path, report: &mut Report) -> anyhow::Result<()> {
    let ours = |args: &[&str]| command(tilewise, args);
    let python = |code: &str| command(package, &["-c", code]);
    let commands = [
        ("`tilewise --version`", ours(&["--version"])),
        ("`tilewise show SHAPE`", ours(&["show", "bf16[30000,500]{1,0:T(8,128)(2,1)}"])),
        ("`tilewise explain MESSAGE`", ours(&["explain", MESSAGE])),
        ("`tilewise audit`, 24 kB", ours(&["audit", "examples/gnn_large.v5e.hlo"])),
        ("`ruff --version`", command(package, &["-m", "ruff", "--version"])),
        ("Python alone", python("pass")),
        ("`import tilewise`", python("import tilewise")),
        ("`import numpy`", python("import numpy")),
        ("`import jax`", python("import jax")),
    ];
    let mut known = Vec::new();
    for (name, mut command) in commands {
        // A rival may not be installed.
        let status = command.status().with_context(|| format!("{name} does not start"))?;
        ensure!(status.success() || !name.contains("tilewise"), "{name} fails");
        if status.success() {
            known.push((name, command));
        }
    }
    let (names, mut commands): (Vec<&str>, Vec<Command>) = known.into_iter().unzip();
    let mut contenders: Vec<Contender<'_>> =
        commands.iter_mut().map(|command| Box::new(move || _ = command.status()) as Contender<'_>).collect();
    let times = medians(effort.rounds, &mut contenders);
    let rows: Vec<Vec<String>> = names
        .iter()
        .zip(times)
        .map(|(name, time)| vec![(*name).to_owned(), format!("{:.1} ms", time.as_secs_f64() * 1e3)])
        .collect();
    report.table("Processes from start to end, their files in the page cache.", &["command", "time"], &rows);
    Ok(())
}

fn command(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    // The first run writes compiled modules, as anybody's does.
    command.env_remove("PYTHONDONTWRITEBYTECODE");
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
