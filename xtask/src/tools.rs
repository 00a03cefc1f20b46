//! Tools that several verbs share.

use anyhow::Context;
use std::{env, path::PathBuf};
use xshell::{Shell, cmd};

/// The features that lints, tests and documentation are built with, and the tests' wheel, so that each crate is compiled once.
/// Parquet, which takes a minute to build, is left to `--all`.
pub(crate) const FEATURES: [&str; 2] = [
    "--features",
    "tilewise/serde,tilewise-hlo/unstable-testing,tilewise-relayout/unstable-testing,tilewise-report/default",
];

/// Installs `cargo-TOOL` unless it is there.
pub(crate) fn install(shell: &Shell, tool: &str) -> anyhow::Result<()> {
    if cmd!(shell, "cargo {tool} --version").quiet().ignore_stdout().ignore_stderr().run().is_ok() {
        return Ok(());
    }
    // A lock file may name what a registry does not have; without it a dependency may want a newer compiler.
    cmd!(shell, "cargo install cargo-{tool}")
        .run()
        .or_else(|_| cmd!(shell, "cargo install --locked cargo-{tool}").run())?;
    Ok(())
}

/// The value that `rustc --version --verbose` gives for a key, such as `host:`.
pub(crate) fn rustc_says(shell: &Shell, word: &str) -> anyhow::Result<String> {
    let version = cmd!(shell, "rustc --version --verbose").quiet().read()?;
    let rest = version.lines().find_map(|line| line.strip_prefix(word));
    Ok(rest.with_context(|| format!("rustc does not say its {word}"))?.trim().to_owned())
}

/// Where cargo builds.
pub(crate) fn target_folder(shell: &Shell) -> PathBuf {
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    shell.current_dir().join(folder)
}
