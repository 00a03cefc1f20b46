//! The Python package: built as a wheel, installed where its tests run, and checked.

use crate::{
    python, stub,
    tools::{FEATURES, target_folder},
};
use anyhow::Context;
use std::{
    env,
    path::{Path, PathBuf},
};
use xshell::{Cmd, Shell, cmd};

const MANIFEST: &str = "python/Cargo.toml";

/// `cargo xtask python`: every check of the package.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let python = python::environment(shell)?;
    lints(shell).run()?;
    stub::check(shell, &python)?;
    install(shell, &python, Profile::Tests)?;
    Ok(tests(shell, &python, true).run()?)
}

/// Lints of its Rust; the workspace's formatting covers it.
pub(crate) fn lints(shell: &Shell) -> Cmd<'_> {
    cmd!(shell, "cargo clippy --package tilewise-python --all-targets -- --deny warnings")
}

/// The purpose of a wheel.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// Fast to build, with overflow checks, of the crates that the Rust tests have built.
    Tests,
    /// As users install it.
    Release,
}

/// Builds the wheel, and installs it into the environment.
pub(crate) fn install(shell: &Shell, python: &Path, profile: Profile) -> anyhow::Result<()> {
    let wheels = target_folder(shell).join("wheels");
    shell.remove_path(&wheels)?;
    let options: &[&str] = match profile {
        Profile::Tests => &["--profile", "dev", FEATURES[0], FEATURES[1]],
        Profile::Release => &["--release"],
    };
    let build = cmd!(shell, "{python} -m maturin build --quiet --locked --manifest-path {MANIFEST} --out {wheels}");
    let build = match profile {
        Profile::Tests => build,
        Profile::Release => build.env("RUSTFLAGS", without_folders(shell)?),
    };
    build.args(options).run()?;
    let wheel = shell.read_dir(&wheels)?.pop().context("maturin left no wheel")?;
    cmd!(shell, "{python} -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps {wheel}")
        .run()?;
    Ok(())
}

/// Flags of the compiler for libraries that name no folder of the machine that built them: places of panics in dependencies do.
fn without_folders(shell: &Shell) -> anyhow::Result<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let sources = home.context("cargo has no home")?.join("registry/src");
    let folder = shell.current_dir();
    Ok(format!(
        "--remap-path-prefix={}=dependencies --remap-path-prefix={}=tilewise",
        sources.display(),
        folder.display()
    ))
}

/// Its tests; slow ones only if `all`: type checkers, notebooks, clusters, searches that compile.
pub(crate) fn tests<'a>(shell: &'a Shell, python: &Path, all: bool) -> Cmd<'a> {
    let slow = if all { &[][..] } else { &["-m", "not slow"] };
    cmd!(shell, "{python} -m pytest --quiet -p no:cacheprovider python").args(slow)
}
