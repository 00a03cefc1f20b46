//! `cargo xtask test`: every check a change must pass, from a fresh checkout.

use crate::{
    capi,
    checks::Checks,
    gpu, kernels,
    package::{self, Profile},
    python, stub,
    tools::FEATURES,
    tpu, web,
};
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use std::{
    path::Path,
    thread::{self, JoinHandle},
};
use xshell::{Shell, cmd};

/// The extent of the checks.
#[derive(Args)]
pub(crate) struct Options {
    /// These parts only [default: every part]
    parts: Vec<Part>,
    /// Rust alone, in a few minutes: formatting, lints, tests
    #[arg(long, conflicts_with_all = ["all", "parts"])]
    quick: bool,
    /// Also slow checks: many programs compiled live, notebooks, type checkers, clusters, the page and the wheel as
    /// users get them
    #[arg(long)]
    all: bool,
}

/// The checks of one job of the workflow.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Formatting, lints, tests, documentation, builds without features
    Rust,
    /// The Python package, live XLA, the TPU compiler
    Python,
    /// The web page, in Chromium
    Web,
}

/// The number of shapes and programs for live XLA and the TPU compiler.
struct Live {
    shapes: &'static str,
    cpu_programs: u64,
    tpu_programs: u64,
    kernels: u64,
    /// Programs with one change each.
    mutants: u64,
}

/// Just enough to show that the comparison works: recorded facts guard the rest.
const SMOKE: Live = Live { shapes: "10000", cpu_programs: 4, tpu_programs: 2, kernels: 5, mutants: 0 };
/// Enough for a few minutes.
const ALL: Live = Live { shapes: "100000", cpu_programs: 60, tpu_programs: 12, kernels: 40, mutants: 1200 };

/// The part of the workspace that concerns only Rust.
const QUICK: [&str; 7] = [
    "--workspace",
    "--exclude=tilewise-bench",
    "--exclude=tilewise-bindgen",
    "--exclude=tilewise-conformance",
    "--exclude=tilewise-fuzz",
    "--exclude=tilewise-python",
    "--exclude=tilewise-wasm",
];
/// All of the workspace but the crate that needs libFuzzer, a library in C++.
const WHOLE: [&str; 2] = ["--workspace", "--exclude=tilewise-fuzz"];
/// The crates with tests. Without those that use wasm-bindgen, the wheel's crates are built as these are: its macros
/// need other features of the crates that all macros use.
const TESTED: [&str; 4] =
    ["--workspace", "--exclude=tilewise-bindgen", "--exclude=tilewise-fuzz", "--exclude=tilewise-wasm"];

/// Runs every check even if one fails, so that one run shows every failure.
pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let mut checks = Checks::default();
    if options.quick {
        rust(shell, &mut checks, &QUICK, &QUICK);
        return checks.finish();
    }
    let has = |part| options.parts.is_empty() || options.parts.contains(&part);
    // Downloads hardly use the processor: they run while the compiler does.
    let environment = has(Part::Python).then(|| in_background(shell, python::environment));
    let web_environment = has(Part::Web)
        .then(|| in_background(shell, |shell| web::environment(shell).and_then(|()| web::chromium(shell))));
    if has(Part::Rust) {
        rust(shell, &mut checks, &WHOLE, &TESTED);
        documentation(shell, &mut checks);
        without_features(shell, &mut checks);
        if options.all {
            let exports = cmd!(shell, "cargo test --package tilewise-cli --all-features --test it exports");
            checks.run("tests of Parquet", exports);
            checks.make("the C library", || capi::check(shell, false));
        }
    }
    if let Some(environment) = environment
        && let Some(python) = checks.make("the Python environment", || finished(environment))
    {
        eprintln!("with {}", python::versions(shell, &python)?);
        live(shell, &mut checks, &python, if options.all { &ALL } else { &SMOKE });
        package(shell, &mut checks, &python, options.all);
    }
    match web_environment.map(finished) {
        Some(Ok(())) => {
            if !has(Part::Rust) && !has(Part::Python) {
                // Its answers are compared with those of the command line, which other tests build.
                checks.run("the command line", cmd!(shell, "cargo build --package tilewise-cli"));
            }
            page(shell, &mut checks, options.all);
        }
        Some(Err(why)) if options.parts.contains(&Part::Web) => return Err(why),
        Some(Err(_)) => {
            checks.skip("the web page", "npm's packages, Chromium or a compiler for WebAssembly could not be had");
        }
        None => {}
    }
    checks.finish()
}

/// The checks of Rust that need only its toolchain.
fn rust(shell: &Shell, checks: &mut Checks, linted: &[&str], tested: &[&str]) {
    checks.run("formatting", cmd!(shell, "cargo fmt --all --check"));
    let lints = cmd!(shell, "cargo clippy --all-targets").args(linted).args(FEATURES);
    checks.run("lints", lints.args(["--", "--deny", "warnings"]));
    checks.run("tests", cmd!(shell, "cargo test --quiet --no-fail-fast").args(tested).args(FEATURES));
}

fn documentation(shell: &Shell, checks: &mut Checks) {
    let documentation = cmd!(shell, "cargo doc --no-deps").args(WHOLE).args(FEATURES);
    checks.run("documentation", documentation.env("RUSTDOCFLAGS", "--deny warnings"));
}

/// Builds crates one by one: together, a crate would get the features that another needs of it.
fn without_features(shell: &Shell, checks: &mut Checks) {
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
}

/// The comparisons with XLA and the TPU compiler as they run.
fn live(shell: &Shell, checks: &mut Checks, python: &Path, live: &Live) {
    // This builds the command line, too, which programs are compared with.
    let tests = cmd!(shell, "cargo test --quiet --test it").args(TESTED).args(FEATURES);
    let tests = tests.env("TILEWISE_PYTHON", python).env("SHAPES", live.shapes);
    checks.run("conformance", tests.args(["--", "interop", "live_xla"]));
    let programs = tpu::command(shell, python, live.cpu_programs);
    checks.run("CPU programs", programs.args(["--cpu", "--limit", "20"]));
    if live.mutants > 0 {
        checks.run("mutated programs", tpu::mutants(shell, python, live.mutants));
    }
    // Its compiler exists for Linux on x86 only.
    if cmd!(shell, "{python} -c").arg("import libtpu").quiet().ignore_stderr().run().is_err() {
        checks.skip("TPU programs and kernels", "libtpu can't be had here");
        return;
    }
    // Programs that take longer to compile are left to `cargo xtask tpu`.
    checks.run("TPU programs", tpu::command(shell, python, live.tpu_programs).args(["--limit", "30"]));
    checks.run("kernels", kernels::command(shell, python, live.kernels).args(["--limit", "20"]));
}

fn package(shell: &Shell, checks: &mut Checks, python: &Path, all: bool) {
    let profile = if all { Profile::Release } else { Profile::Tests };
    if checks.make("the Python package", || package::install(shell, python, profile)).is_some() {
        checks.run("the package's tests", package::tests(shell, python, all));
        if all {
            checks.make("the package's stub", || stub::check(shell, python));
            checks.run("advice for the CPU", gpu::command(shell, python, gpu::CPU));
        }
    }
}

fn page(shell: &Shell, checks: &mut Checks, all: bool) {
    let size = if all { web::Size::Small } else { web::Size::Unoptimised };
    if checks.make("the web page", || web::build(shell, size)).is_some() {
        checks.make("the page of reports", || web::check_template(shell));
        checks.run("the web page's tests", web::tests(shell));
    }
}

fn in_background<T: Send + 'static>(
    shell: &Shell,
    make: impl FnOnce(&Shell) -> anyhow::Result<T> + Send + 'static,
) -> JoinHandle<anyhow::Result<T>> {
    let shell = shell.clone();
    thread::spawn(move || make(&shell))
}

fn finished<T>(made: JoinHandle<anyhow::Result<T>>) -> anyhow::Result<T> {
    made.join().unwrap_or_else(|_| Err(anyhow!("it panicked")))
}
