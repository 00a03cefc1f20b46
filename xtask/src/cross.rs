//! The standard library for another target: rustup's, or one built from sources of rustup or Debian.

use crate::{
    debian,
    tools::{rustc_says, target_folder},
};
use anyhow::{Context, ensure};
use std::{fs, path::PathBuf};
use xshell::{Cmd, Shell, cmd};

/// Suites of Debian that may carry the sources of a compiler newer than the system's own.
const SUITES: [&str; 3] = ["trixie-backports", "forky", "sid"];

/// Where cargo finds the library.
pub(crate) enum StandardLibrary {
    Installed,
    /// Built with the rest, by this compiler, which has its sources.
    FromSource(PathBuf),
}

impl StandardLibrary {
    /// Finds or installs what the target needs.
    pub(crate) fn of(shell: &Shell, target: &str) -> anyhow::Result<Self> {
        let libraries = cmd!(shell, "rustc --print target-libdir --target {target}").quiet().ignore_stderr().read();
        if libraries.is_ok_and(|folder| fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()))
            || cmd!(shell, "rustup target add {target}").quiet().ignore_stdout().ignore_stderr().run().is_ok()
        {
            return Ok(Self::Installed);
        }
        let hint = || format!("no standard library for {target}: run `rustup target add {target}`");
        compiler_with_sources(shell).map(Self::FromSource).with_context(hint)
    }

    /// The library built from the compiler's sources, which are installed if they are missing.
    pub(crate) fn from_source(shell: &Shell) -> anyhow::Result<Self> {
        if cmd!(shell, "rustup component add rust-src").quiet().ignore_stdout().ignore_stderr().run().is_ok() {
            return Ok(Self::FromSource("rustc".into()));
        }
        let hint = "no sources of the standard library: run `rustup component add rust-src`";
        compiler_with_sources(shell).map(Self::FromSource).context(hint)
    }

    /// Adds the library to a cargo command.
    pub(crate) fn add_to<'a>(&self, command: Cmd<'a>) -> Cmd<'a> {
        match self {
            Self::Installed => command,
            Self::FromSource(compiler) => {
                command.arg("-Zbuild-std=std,panic_abort").env("RUSTC", compiler).env("RUSTC_BOOTSTRAP", "1")
            }
        }
    }
}

/// A copy of the compiler with Debian's sources of exactly its release.
fn compiler_with_sources(shell: &Shell) -> anyhow::Result<PathBuf> {
    let release = rustc_says(shell, "release:")?;
    let folder = target_folder(shell).join("xtask/std").join(&release);
    let (script, sysroot) = (folder.join("rustc"), folder.join("sysroot"));
    if script.exists() {
        return Ok(script);
    }
    debian::unpack(shell, &[&format!("rust-src={release}+*")], &SUITES, &folder)?;
    let sources = shell.read_dir(folder.join("usr/src"))?.pop().context("no sources")?.join("library");
    ensure!(sources.join("Cargo.lock").exists(), "{} is not the standard library", sources.display());
    let old = PathBuf::from(cmd!(shell, "rustc --print sysroot").quiet().read()?);
    let host = rustc_says(shell, "host:")?;
    let (libraries, host_libraries) = (sysroot.join("lib/rustlib"), old.join("lib/rustlib").join(&host));
    shell.create_dir(libraries.join("src/rust"))?;
    cmd!(shell, "ln --symbolic --force --no-dereference {host_libraries} {libraries}/{host}").run()?;
    cmd!(shell, "ln --symbolic --force --no-dereference {sources} {libraries}/src/rust/library").run()?;
    let text = format!("#!/bin/sh\nexec '{}/bin/rustc' --sysroot '{}' \"$@\"\n", old.display(), sysroot.display());
    // Written last: without the script, the folder is incomplete.
    shell.write_file(&script, text)?;
    cmd!(shell, "chmod +x {script}").run()?;
    Ok(script)
}
