//! Virtual environments for tests and benchmarks, each with the packages of some `requirements.txt`.

use crate::tools::target_folder;
use anyhow::Context;
use std::{env, fs, path::PathBuf};
use xshell::{Shell, cmd};

/// The interpreter for tests: with the requirements of conformance and of the Python package.
pub(crate) fn environment(shell: &Shell) -> anyhow::Result<PathBuf> {
    with_packages(shell, "venv", &["conformance/requirements.txt", "python/requirements-test.txt"])
}

/// The interpreter of the environment of that name, which is made again only when its requirements change.
///
/// `PYTHON` names the interpreter that makes it [default: `python3`].
pub(crate) fn with_packages(shell: &Shell, name: &str, requirements: &[&str]) -> anyhow::Result<PathBuf> {
    let venv = target_folder(shell).join("xtask").join(name);
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    // Written last: without it, the environment is incomplete.
    let stamp = venv.join("requirements.txt");

    let wanted = requirements.iter().map(|file| shell.read_file(file)).collect::<Result<String, _>>()?;
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(python);
    }
    let base = env::var("PYTHON").unwrap_or_else(|_| if cfg!(windows) { "python" } else { "python3" }.to_owned());
    eprintln!("making a virtual environment in {}", venv.display());
    cmd!(shell, "{base} -m venv --clear {venv}").quiet().run().context("Python 3.11 or newer, with venv, is needed")?;
    let requirements = requirements.iter().flat_map(|file| ["--requirement", file]);
    // Most of it is never imported; Python compiles the rest on import.
    cmd!(shell, "{python} -m pip install --quiet --disable-pip-version-check --no-compile {requirements...}")
        .quiet()
        .run()?;
    shell.write_file(stamp, wanted)?;
    Ok(python)
}
