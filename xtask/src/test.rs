//! `cargo xtask test`: every check a change must pass, from a fresh checkout.

use crate::{
    conformance, gpu, kernels,
    package::{self, Profile},
    python, tpu, web,
};
use anyhow::{anyhow, bail};
use std::{
    thread,
    time::{Duration, Instant},
};
use xshell::{Cmd, Shell, cmd};

/// How many TPU programs are compiled: a minute's worth.
const TPU_PROGRAMS: u64 = 12;
/// How many programs are compiled for this machine's CPU: a minute's worth.
const CPU_PROGRAMS: u64 = 60;
/// How many Pallas kernels are compiled: half a minute's worth.
const KERNELS: u64 = 40;

/// What of the workspace `--quick` leaves out: the comparisons with others, and the page's side of WebAssembly.
const NOT_QUICK: [&str; 6] =
    ["--exclude", "tilewise-bench", "--exclude", "tilewise-conformance", "--exclude", "tilewise-wasm"];

/// The checks of Rust that need nothing but its toolchain. Parquet is left out: it takes a minute to build.
pub(crate) fn quick(shell: &Shell) -> anyhow::Result<()> {
    let mut checks = Checks::default();
    checks.run("formatting", cmd!(shell, "cargo fmt --all --check"));
    // What tests need beside the features that the crates ask of each other.
    let set = ["--workspace", "--features", "tilewise/serde"].into_iter().chain(NOT_QUICK);
    let lints = cmd!(shell, "cargo clippy").args(set.clone());
    checks.run("lints", lints.args(["--all-targets", "--", "--deny", "warnings"]));
    checks.run("tests", cmd!(shell, "cargo test --quiet --no-fail-fast").args(set));
    checks.finish()
}

/// Runs every check even if one fails, so that one run shows every failure.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let mut checks = Checks::default();
    // Downloads hardly use the processor: they run while the compiler does.
    let environment = thread::spawn({
        let shell = shell.clone();
        move || python::environment(&shell)
    });
    let tpu_environment = thread::spawn({
        let shell = shell.clone();
        move || tpu::environment(&shell)
    });
    let web_environment = thread::spawn({
        let shell = shell.clone();
        move || web::environment(&shell).and_then(|()| web::chromium(&shell))
    });
    let [package_formatting, package_lints] = package::style(shell);
    checks.run("formatting", cmd!(shell, "cargo fmt --all --check"));
    checks.run("the package's formatting", package_formatting);
    checks.run("lints", cmd!(shell, "cargo clippy --workspace --all-targets --all-features -- --deny warnings"));
    checks.run("the package's lints", package_lints);
    let python = checks.make("the Python environment", || {
        environment.join().unwrap_or_else(|_| Err(anyhow!("making the environment panicked")))
    });
    let tests = cmd!(shell, "cargo test --workspace --all-features --no-fail-fast");
    match &python {
        Some(python) => {
            checks.run("tests", tests.env("TILEWISE_PYTHON", python));
            checks.run("conformance", conformance::command(shell, python));
            // On a busy machine fewer are compiled.
            let programs = tpu::command(shell, python, CPU_PROGRAMS);
            checks.run("CPU programs", programs.args(["--cpu", "--limit", "20", "--seconds", "40"]));
            if checks.make("the Python package", || package::install(shell, python, Profile::Tests)).is_some() {
                checks.run("the package's tests", package::tests(shell, python));
                checks.run("advice for the CPU", gpu::command(shell, python, gpu::CPU));
            }
        }
        None => checks.run("tests", tests),
    }
    // Its packages are large, and for Linux only.
    match tpu_environment.join() {
        Ok(Ok(python)) => {
            // What takes longer to compile is left to `cargo xtask tpu`.
            checks.run("TPU programs", tpu::command(shell, &python, TPU_PROGRAMS).args(["--limit", "30"]));
            // Kernels compile in less than a second each; on a busy machine fewer are.
            checks.run("kernels", kernels::command(shell, &python, KERNELS).args(["--limit", "20", "--seconds", "30"]));
        }
        _ => checks.skip("TPU programs and kernels", "jax and libtpu could not be installed"),
    }
    match web_environment.join() {
        Ok(Ok(())) => {
            // Its answers are compared with those of the command line that the tests above have built.
            if checks.make("the web page", || web::build(shell, web::Size::AsCompiled)).is_some() {
                checks.make("the page of reports", || web::check_template(shell));
                checks.run("the web page's tests", web::tests(shell));
            }
        }
        _ => checks.skip("the web page", "npm's packages, Chromium or a compiler for WebAssembly could not be had"),
    }
    checks.run(
        "documentation",
        cmd!(shell, "cargo doc --workspace --all-features --no-deps").env("RUSTDOCFLAGS", "--deny warnings"),
    );
    // One by one: together, a crate would get the features that another asks of it.
    for (name, package) in [
        ("the core without features", "tilewise"),
        ("HLO without features", "tilewise-hlo"),
        ("audit without features", "tilewise-audit"),
        ("reports without features", "tilewise-report"),
        ("drawing without features", "tilewise-draw"),
        ("relayout without features", "tilewise-relayout"),
    ] {
        checks.run(name, cmd!(shell, "cargo check --package {package} --no-default-features"));
    }
    checks.finish()
}

#[derive(Default)]
struct Checks {
    done: Vec<(&'static str, bool, Duration)>,
    skipped: Vec<(&'static str, &'static str)>,
}

impl Checks {
    fn run(&mut self, name: &'static str, command: Cmd<'_>) {
        eprintln!("\n== {name}: {command}");
        let start = Instant::now();
        let passed = command.quiet().run().is_ok();
        self.done.push((name, passed, start.elapsed()));
    }

    /// What later checks need; `None` if it can't be made.
    fn make<T>(&mut self, name: &'static str, make: impl FnOnce() -> anyhow::Result<T>) -> Option<T> {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let made = make().inspect_err(|error| eprintln!("{error:#}")).ok();
        self.done.push((name, made.is_some(), start.elapsed()));
        made
    }

    /// Leaves a check out that this machine can't run.
    fn skip(&mut self, name: &'static str, why: &'static str) {
        eprintln!("\n== {name}: skipped: {why}");
        self.skipped.push((name, why));
    }

    fn finish(self) -> anyhow::Result<()> {
        eprintln!();
        for (name, passed, time) in &self.done {
            eprintln!("{} {name} ({:.0} s)", if *passed { "passed" } else { "FAILED" }, time.as_secs_f64());
        }
        for (name, why) in &self.skipped {
            eprintln!("skipped {name}: {why}");
        }
        let failed = self.done.iter().filter(|(_, passed, _)| !passed).count();
        if failed > 0 {
            bail!("{failed} of {} checks failed", self.done.len());
        }
        eprintln!("all {} checks passed", self.done.len());
        Ok(())
    }
}
