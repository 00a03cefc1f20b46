//! `cargo xtask python`: builds the Python package as a wheel, installs it into an environment of its own, and runs its checks.

use crate::slow::target_folder;
use anyhow::Context;
use std::env;
use xshell::{Shell, cmd};

/// Everything from an empty environment, as a user has it.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let target = target_folder(shell).join("python");
    let (venv, wheels) = (target.join("venv"), target.join("wheels"));
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let base = env::var("PYTHON").unwrap_or_else(|_| if cfg!(windows) { "python" } else { "python3" }.to_owned());
    shell.remove_path(&wheels)?;
    cmd!(shell, "{base} -m venv --clear {venv}").run().context("Python 3.10 or newer, with venv, is needed")?;
    cmd!(shell, "{python} -m pip install --quiet --requirement python/requirements-test.txt").run()?;
    let _target = shell.push_env("CARGO_TARGET_DIR", &target);
    cmd!(shell, "{python} -m maturin build --manifest-path python/Cargo.toml --out {wheels}").run()?;
    let wheel = shell.read_dir(&wheels)?.pop().context("maturin left no wheel")?;
    cmd!(shell, "{python} -m pip install --quiet --force-reinstall --no-deps {wheel}").run()?;
    cmd!(shell, "{python} -m pytest -q -p no:cacheprovider python").run()?;
    cmd!(shell, "cargo fmt --check --manifest-path python/Cargo.toml").run()?;
    cmd!(shell, "cargo clippy --manifest-path python/Cargo.toml --all-targets -- --deny warnings").run()?;
    Ok(())
}
