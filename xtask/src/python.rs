//! The Python that tests run: a virtual environment with everything that they import.

use crate::slow::target_folder;
use anyhow::Context;
use std::{env, fs, path::PathBuf};
use xshell::{Shell, cmd};

/// What is installed: what the conformance tests need, and what those of the Python package need besides.
const REQUIREMENTS: [&str; 2] = ["conformance/requirements.txt", "python/requirements-test.txt"];

/// The environment's interpreter. The environment is made anew only after a change of the requirements.
///
/// `PYTHON` names the interpreter to make it with, if not the usual one.
pub(crate) fn environment(shell: &Shell) -> anyhow::Result<PathBuf> {
    let venv = target_folder(shell).join("xtask").join("venv");
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    // Written last, so that half an environment is none.
    let stamp = venv.join("requirements.txt");

    let wanted = REQUIREMENTS.map(|file| shell.read_file(file)).into_iter().collect::<Result<String, _>>()?;
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(python);
    }
    let base = env::var("PYTHON").unwrap_or_else(|_| if cfg!(windows) { "python" } else { "python3" }.to_owned());
    eprintln!("making a virtual environment in {}", venv.display());
    cmd!(shell, "{base} -m venv --clear {venv}").quiet().run().context("Python 3.11 or newer, with venv, is needed")?;
    let requirements = REQUIREMENTS.iter().flat_map(|file| ["--requirement", file]);
    // Most of what is installed is never imported: whatever is, Python compiles then.
    cmd!(shell, "{python} -m pip install --quiet --disable-pip-version-check --no-compile {requirements...}")
        .quiet()
        .run()?;
    shell.write_file(stamp, wanted)?;
    Ok(python)
}
