//! `cargo xtask time`: estimated times, against measurements that others published.

use crate::{python, tools::target_folder};
use clap::Args;
use xshell::{Shell, cmd};

/// The programs, and whether to renew the table.
#[derive(Args)]
pub(crate) struct Options {
    /// Judge programs whose names begin with this
    #[arg(long, value_name = "NAME", conflicts_with = "write")]
    only: Option<String>,
    /// Renew conformance/time/TABLE.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let python = python::with_packages(shell, "time", &["conformance/time/requirements.txt"])?;
    cmd!(shell, "cargo build --quiet --package tilewise-cli").quiet().run()?;
    let target = target_folder(shell);
    let (tilewise, folder) = (target.join("debug/tilewise"), target.join("time"));
    let mut command = cmd!(shell, "{python} conformance/time/judge.py --tilewise {tilewise} --folder {folder}");
    if let Some(name) = &options.only {
        command = command.args(["--only", name]);
    }
    if options.write {
        command = command.arg("--write");
    }
    Ok(command.quiet().run()?)
}
