//! `cargo xtask msrv`: the core with the oldest supported compiler.

use crate::{debian, tools::target_folder};
use anyhow::Context;
use std::{
    env,
    path::{Path, PathBuf},
};
use xshell::{Shell, cmd};

/// The core's `rust-version`.
const MSRV: &str = "1.85.0";

/// Builds and tests the core, in a workspace of its own: in it, cargo picks test dependencies that fit the old compiler;
/// the main workspace's are newer. The facts, the vectors and the crate that tests share come along.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let folder = target_folder(shell).join("msrv");
    let compiler = compiler(shell, &folder)?;
    let workspace = folder.join("workspace");
    shell.remove_path(&workspace)?;
    let files = cmd!(shell, "git ls-files -- crates/tilewise testing conformance/facts vectors").quiet().read()?;
    for file in files.lines() {
        let copy = workspace.join(file);
        shell.create_dir(copy.parent().unwrap_or(&workspace))?;
        shell.copy_file(file, copy)?;
    }
    let manifest = shell.read_file("Cargo.toml")?;
    let lines = manifest.lines().filter(|line| !line.starts_with("default-members"));
    let lines = lines.map(|line| match line.split_once(" = ") {
        Some(("members", _)) => "members = [\"crates/tilewise\", \"testing\"]\n".to_owned(),
        _ => format!("{line}\n"),
    });
    // The target folder may lie in the main workspace, which would claim the core.
    shell.write_file(workspace.join("Cargo.toml"), lines.collect::<String>())?;

    let _here = shell.push_dir(workspace.join("crates/tilewise"));
    let _compiler = shell.push_env("RUSTC", &compiler);
    let target = folder.join("target");
    let _target = shell.push_env("CARGO_TARGET_DIR", &target);
    cmd!(shell, "cargo build").run()?;
    cmd!(shell, "cargo test --all-features --lib --tests").run()?;
    let version = cmd!(shell, "{compiler} --version").read()?;
    eprintln!("the core builds and its tests pass with {version}");
    Ok(())
}

/// rustup's, or Debian 12's, unpacked without installing it.
fn compiler(shell: &Shell, folder: &Path) -> anyhow::Result<PathBuf> {
    let rustup = cmd!(shell, "rustup which --toolchain {MSRV} rustc").quiet().ignore_stderr().read();
    if let Ok(path) = rustup {
        return Ok(path.into());
    }
    let script = folder.join("rustc");
    if script.exists() {
        return Ok(script);
    }
    let (compiler, library) = (format!("rustc-web={MSRV}*"), format!("libstd-rust-web-dev={MSRV}*"));
    let hint = || format!("no Rust {MSRV}: `rustup toolchain install {MSRV}`, or run this on Debian 12");
    debian::unpack(shell, &[&compiler, "libstd-rust-web-1.85", &library, "libllvm19"], &[], folder)
        .with_context(hint)?;
    let root = folder.join("usr").display().to_string();
    let libraries = format!("{root}/lib/{}-linux-gnu", env::consts::ARCH);
    let text = format!("#!/bin/sh\nLD_LIBRARY_PATH='{libraries}' exec '{root}/bin/rustc' --sysroot '{root}' \"$@\"\n");
    shell.write_file(&script, text)?;
    cmd!(shell, "chmod +x {script}").run()?;
    Ok(script)
}
