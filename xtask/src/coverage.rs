//! `cargo xtask coverage`: the lines of the core that its tests run.

use crate::{
    debian,
    tools::{install, rustc_says},
};
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use xshell::{Shell, cmd};

/// The minimum share of the core's lines that its tests must run, in percent.
const LEAST_COVERAGE: f64 = 95.0;

/// Fails if they run less than [`LEAST_COVERAGE`].
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    install(shell, "llvm-cov")?;
    let _tools = llvm_tools(shell)?
        .map(|[cov, profdata]| (shell.push_env("LLVM_COV", cov), shell.push_env("LLVM_PROFDATA", profdata)));
    // The core's own tests, and those that replay the corpora and test limits; examples in documentation don't count.
    cmd!(shell, "cargo llvm-cov --no-report --all-features --package tilewise --package tilewise-fuzz-bodies").run()?;
    let others = "crates/tilewise-|/tests/|fuzz/|testing/|xtask/";
    let report = |option: &str| {
        cmd!(shell, "cargo llvm-cov report --ignore-filename-regex {others} {option}").quiet().ignore_stderr().read()
    };
    let missed = report("--show-missing-lines")?;
    let listed = missed.lines().skip_while(|line| !line.starts_with("Uncovered Lines"));
    listed.for_each(|line| eprintln!("{line}"));
    let share = line_share(&report("--json")?).context("cargo llvm-cov's JSON has changed")?;
    ensure!(share >= LEAST_COVERAGE, "the core's tests run {share:.2} % of its lines, less than {LEAST_COVERAGE} %");
    eprintln!("the core's tests run {share:.2} % of its lines");
    Ok(())
}

/// `"lines":{…"percent":97.1…}` of the totals.
fn line_share(json: &str) -> Option<f64> {
    let (_, totals) = json.rsplit_once("\"totals\"")?;
    let (_, lines) = totals.split_once("\"lines\"")?;
    let (_, percent) = lines.split_once("\"percent\":")?;
    percent.split(['}', ',']).next()?.trim().parse().ok()
}

/// LLVM's tools of rustc's version; `None` if rustup has them, where cargo-llvm-cov finds them.
fn llvm_tools(shell: &Shell) -> anyhow::Result<Option<[PathBuf; 2]>> {
    let sysroot = cmd!(shell, "rustc --print sysroot").quiet().read()?;
    let host = rustc_says(shell, "host:")?;
    if Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/llvm-cov").exists() {
        return Ok(None);
    }
    let version = rustc_says(shell, "LLVM version:")?;
    let llvm = version.split('.').next().context("rustc names its LLVM")?;
    let tools = ["cov", "profdata"].map(|tool| PathBuf::from(format!("/usr/bin/llvm-{tool}-{llvm}")));
    if !tools.iter().all(|tool| tool.exists()) {
        debian::install(shell, &[&format!("llvm-{llvm}")])
            .with_context(|| format!("no LLVM {llvm}: `rustup component add llvm-tools`, or install it"))?;
    }
    Ok(Some(tools))
}
