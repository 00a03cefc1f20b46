//! Virtual environments for tests and benchmarks, each with the packages of some `requirements.txt`.

use crate::tools::target_folder;
use anyhow::Context;
use std::{
    env, fs,
    path::{Path, PathBuf},
};
use xshell::{Shell, cmd};

/// The interpreter for tests: with the requirements of conformance and of the Python package.
pub(crate) fn environment(shell: &Shell) -> anyhow::Result<PathBuf> {
    with_packages(shell, "venv", &["conformance/requirements.txt", "python/requirements-test.txt"])
}

/// The interpreter of the environment of that name, which is made again only when its requirements or its Python change.
pub(crate) fn with_packages(shell: &Shell, name: &str, requirements: &[&str]) -> anyhow::Result<PathBuf> {
    let wanted = requirements.iter().map(|file| shell.read_file(file)).collect::<Result<String, _>>()?;
    with_text(shell, name, &wanted)
}

/// The interpreter of the environment of that name, for a text of requirements.
pub(crate) fn with_text(shell: &Shell, name: &str, requirements: &str) -> anyhow::Result<PathBuf> {
    let venv = target_folder(shell).join("xtask").join(name);
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    // Written last: without it, the environment is incomplete.
    let stamp = venv.join("requirements.txt");

    let (base, version) = newest(shell)?;
    let wanted = format!("# Python {version}\n{requirements}");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(python);
    }
    eprintln!("making a virtual environment of Python {version} in {}", venv.display());
    cmd!(shell, "{base} -m venv --clear {venv}").quiet().run().context("Python 3.11 or newer, with venv, is needed")?;
    let list = venv.join("wanted.txt");
    shell.write_file(&list, &wanted)?;
    // Most of it is never imported; Python compiles the rest on import.
    cmd!(shell, "{python} -m pip install --quiet --disable-pip-version-check --no-compile --requirement {list}")
        .quiet()
        .run()?;
    shell.write_file(stamp, wanted)?;
    Ok(python)
}

/// The versions in the environment, such as `Python 3.13.0, jax 0.12.0.1, libtpu 0.0.50.1`.
pub(crate) fn versions(shell: &Shell, python: &Path) -> anyhow::Result<String> {
    let program = "
import importlib.metadata as m, platform
names = [d.metadata['Name'] for d in m.distributions()]
print(', '.join([f'Python {platform.python_version()}', *(f'{n} {m.version(n)}' for n in ('jax', 'libtpu') if n in names)]))";
    Ok(cmd!(shell, "{python} -c {program}").quiet().read()?)
}

/// The newest Python that all packages are pinned for, of `PATH`'s and pyenv's, with its version; or the one that `PYTHON` names.
fn newest(shell: &Shell) -> anyhow::Result<(String, String)> {
    let program = "import sys, venv; print('{}.{}'.format(*sys.version_info))";
    let version = |python: &str| cmd!(shell, "{python} -c {program}").quiet().ignore_stderr().read().ok();
    let default = if cfg!(windows) { "python" } else { "python3" };
    if let Ok(python) = env::var("PYTHON") {
        let version = version(&python).with_context(|| format!("{python} does not run"))?;
        return Ok((python, version));
    }
    for minor in PYTHONS {
        let of_pyenv = env::home_dir().into_iter().flat_map(|home| installed(&home.join(".pyenv/versions"), minor));
        for python in [format!("python3.{minor}")].into_iter().chain(of_pyenv) {
            if let Some(version) = version(&python) {
                return Ok((python, version));
            }
        }
    }
    let version = version(default).context("Python 3.11 or newer, with venv, is needed")?;
    Ok((default.to_owned(), version))
}

/// Minor versions of Python 3, the first choice first.
const PYTHONS: [u32; 3] = [13, 12, 11];

/// The interpreters of a minor version that pyenv has installed.
fn installed(versions: &Path, minor: u32) -> Vec<String> {
    let prefix = format!("3.{minor}.");
    let entries = fs::read_dir(versions).into_iter().flatten().flatten();
    let found = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    found.map(|entry| entry.path().join("bin/python3").to_string_lossy().into_owned()).collect()
}
