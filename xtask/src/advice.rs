//! `cargo xtask advice`: the savings that the audit's advice promises, against the TPU compiler's once it is followed.

use crate::{python, tools::target_folder};
use clap::Args;
use xshell::{Shell, cmd};

/// The programs, and whether to renew the table.
#[derive(Args)]
pub(crate) struct Options {
    /// Judge the program of this name only
    #[arg(long, value_name = "NAME", conflicts_with = "write")]
    only: Option<String>,
    /// Judge the findings on copies instead
    #[arg(long)]
    copies: bool,
    /// Judge the findings on copies at kernels instead
    #[arg(long, conflicts_with = "copies")]
    boundaries: bool,
    /// Renew conformance/advice/TABLE.md and cases.csv, or conformance/copies/TABLE.md or BOUNDARIES.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let python = python::with_packages(shell, "advice", &["conformance/advice/requirements.txt"])?;
    cmd!(shell, "cargo build --quiet --package tilewise-cli").quiet().run()?;
    let target = target_folder(shell);
    let (what, judge) = match options {
        Options { boundaries: true, .. } => ("boundaries", "copies/judge_boundaries"),
        Options { copies: true, .. } => ("copies", "copies/judge"),
        _ => ("advice", "advice/judge"),
    };
    let (tilewise, folder) = (target.join("debug/tilewise"), target.join(what));
    let mut command = cmd!(shell, "{python} conformance/{judge}.py --tilewise {tilewise} --folder {folder}");
    if let Some(name) = &options.only {
        command = command.args(["--only", name]);
    }
    if options.write {
        command = command.arg("--write");
    }
    Ok(command.quiet().run()?)
}
