//! The Python package: built as a wheel, installed where its tests run, and checked.

use crate::{python, tools::target_folder};
use anyhow::Context;
use std::path::Path;
use xshell::{Cmd, Shell, cmd};

const MANIFEST: &str = "python/Cargo.toml";

/// `cargo xtask python`: every check of the package.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let python = python::environment(shell)?;
    for check in style(shell) {
        check.run()?;
    }
    install(shell, &python, Profile::Tests)?;
    Ok(tests(shell, &python).run()?)
}

/// Formatting and lints of its Rust.
pub(crate) fn style(shell: &Shell) -> [Cmd<'_>; 2] {
    [
        cmd!(shell, "cargo fmt --check --manifest-path {MANIFEST}"),
        cmd!(shell, "cargo clippy --manifest-path {MANIFEST} --all-targets -- --deny warnings")
            .env("CARGO_TARGET_DIR", target_folder(shell).join("python")),
    ]
}

/// What a wheel is for.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// Fast to build, with overflow checks.
    Tests,
    /// As users install it.
    Release,
}

/// Builds the wheel, and installs it into the environment.
pub(crate) fn install(shell: &Shell, python: &Path, profile: Profile) -> anyhow::Result<()> {
    let target = target_folder(shell).join("python");
    let wheels = target.join("wheels");
    shell.remove_path(&wheels)?;
    let release = matches!(profile, Profile::Release).then_some("--release");
    cmd!(shell, "{python} -m maturin build --quiet --manifest-path {MANIFEST} --out {wheels} {release...}")
        .env("CARGO_TARGET_DIR", &target)
        .run()?;
    let wheel = shell.read_dir(&wheels)?.pop().context("maturin left no wheel")?;
    cmd!(shell, "{python} -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps {wheel}")
        .run()?;
    Ok(())
}

/// Its tests, the type checkers and the notebook among them.
pub(crate) fn tests<'a>(shell: &'a Shell, python: &Path) -> Cmd<'a> {
    cmd!(shell, "{python} -m pytest --quiet -p no:cacheprovider python")
}
