//! `cargo xtask bench`: measures, and renews `bench/RESULTS.md`.

use crate::{
    package::{self, Profile},
    python,
    tools::target_folder,
};
use clap::Args;
use std::path::Path;
use xshell::{Shell, cmd};

/// The sections to measure, and the effort.
#[derive(Args)]
pub(crate) struct Options {
    /// Sections to renew: shapes, offsets, hlo, programs, relayout, ablation, c-library, package, start [default: all]
    sections: Vec<String>,
    /// Smaller inputs and fewer rounds, to test that everything runs; writes bench-quick.md in the target folder
    #[arg(long)]
    quick: bool,
    /// Install PyTorch as another rival (4 GB)
    #[arg(long)]
    torch: bool,
}

/// Builds the benchmark optimised and runs it, with its rivals in a separate Python environment.
pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let python = python::with_packages(shell, "venv-bench", &["bench/requirements.txt"])?;
    if options.torch {
        let requirements = "bench/requirements-torch.txt";
        cmd!(shell, "{python} -m pip install --quiet --disable-pip-version-check --requirement {requirements}")
            .run()?;
    }
    let (out, quick) = if options.quick {
        (target_folder(shell).join("bench-quick.md"), Some("--quick"))
    } else {
        (Path::new("bench").join("RESULTS.md"), None)
    };
    let sections = &options.sections;
    let has = |name: &str| sections.is_empty() || sections.iter().any(|section| section == name);
    let mut tools = Vec::new();
    if has("package") || has("start") {
        let python = python::environment(shell)?;
        package::install(shell, &python, Profile::Release)?;
        tools.extend(["--package-python".into(), python]);
    }
    if has("start") {
        cmd!(shell, "cargo build --release --package tilewise-cli").run()?;
        tools.extend(["--tilewise".into(), target_folder(shell).join("release").join("tilewise")]);
    }
    let bench = cmd!(shell, "cargo run --release --package tilewise-bench -- --python {python} --out {out}");
    bench.args(tools).args(quick).args(sections).run()?;
    Ok(())
}
