//! `cargo xtask aarch64`: the relayout engine's tests for aarch64, under qemu.

use crate::slow::{apt_install, rustc_says, target_folder};
use anyhow::{Context, ensure};
use std::{
    path::{Path, PathBuf},
    time::Instant,
};
use xshell::{Shell, cmd};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Suites of Debian that may carry the sources of a compiler newer than the system's own.
const SUITES: [&str; 3] = ["trixie-backports", "forky", "sid"];

/// Builds and runs the crate's tests. Installs what is missing: a linker, an emulator, the target's standard library.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let installed =
        |program: &str| cmd!(shell, "{program} --version").quiet().ignore_stdout().ignore_stderr().run().is_ok();
    if !installed("qemu-aarch64") || !installed("aarch64-linux-gnu-gcc") {
        let packages = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"];
        apt_install(shell, &packages).context("a linker for aarch64 and qemu's user emulation are needed")?;
    }
    let _linker = shell.push_env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
    let _runner =
        shell.push_env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu");
    let test = cmd!(shell, "cargo test --package tilewise-relayout --lib --tests --target {TARGET}");
    let start = Instant::now();
    if cmd!(shell, "rustup target add {TARGET}").quiet().ignore_stderr().run().is_ok() {
        test.run()?;
    } else {
        eprintln!("rustup does not have the standard library for {TARGET}: building it from Debian's sources");
        let compiler = compiler_with_sources(shell)?;
        test.arg("-Zbuild-std").env("RUSTC", compiler).env("RUSTC_BOOTSTRAP", "1").run()?;
    }
    eprintln!("the relayout engine's tests pass on {TARGET} ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(())
}

/// Without rustup: the same compiler, with Debian's sources of its standard library added.
fn compiler_with_sources(shell: &Shell) -> anyhow::Result<PathBuf> {
    let release = rustc_says(shell, "release:")?;
    let folder = target_folder(shell).join("aarch64").join(&release);
    let (script, sysroot) = (folder.join("rustc"), folder.join("sysroot"));
    if script.exists() {
        return Ok(script);
    }
    let sources =
        debian_sources(shell, &folder, &release).context("no standard library for aarch64, and no sources of it")?;
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

/// The `library` folder of Debian's `rust-src` of exactly that release, unpacked without installing it.
///
/// apt works in a separate folder, with the system's mirror and keys but other suites.
fn debian_sources(shell: &Shell, folder: &Path, release: &str) -> anyhow::Result<PathBuf> {
    let mirrors = cmd!(shell, "apt-get indextargets --format $(REPO_URI)").quiet().read()?;
    let mirror =
        mirrors.lines().find(|line| line.trim_end_matches('/').ends_with("/debian")).context("no mirror of Debian")?;
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial"] {
        shell.create_dir(apt.join(part))?;
    }
    let list: String = SUITES.iter().map(|suite| format!("deb {mirror} {suite} main\n")).collect();
    shell.write_file(apt.join("sources.list"), list)?;
    let apt = apt.display();
    let options = [
        format!("-oDir::Etc::sourcelist={apt}/sources.list"),
        "-oDir::Etc::sourceparts=/dev/null".to_owned(),
        format!("-oDir::State::lists={apt}/lists"),
        format!("-oDir::Cache={apt}/cache"),
        "-oAcquire::Languages=none".to_owned(),
        "-oAPT::Sandbox::User=root".to_owned(),
    ];
    // A mirror need not have every suite.
    let apt_get = || cmd!(shell, "apt-get").args(&options);
    _ = apt_get().arg("update").run();
    let root = folder.join("root");
    {
        let _here = shell.push_dir(folder);
        apt_get().args(["download", &format!("rust-src={release}+*")]).run()?;
    }
    let packages = shell.read_dir(folder)?;
    let package =
        packages.iter().find(|path| path.extension().is_some_and(|end| end == "deb")).context("no package")?;
    cmd!(shell, "dpkg --extract {package} {root}").run()?;
    let sources = shell.read_dir(root.join("usr/src"))?.pop().context("no sources")?.join("library");
    ensure!(sources.join("Cargo.lock").exists(), "{} is not the standard library", sources.display());
    Ok(sources)
}
