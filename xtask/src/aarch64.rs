//! `cargo xtask aarch64`: the relayout engine's tests for aarch64, under qemu.

use crate::{cross::StandardLibrary, debian};
use anyhow::Context;
use std::time::Instant;
use xshell::{Shell, cmd};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Builds and runs the crate's tests. Installs what is missing: a linker, an emulator, the target's standard library.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let installed =
        |program: &str| cmd!(shell, "{program} --version").quiet().ignore_stdout().ignore_stderr().run().is_ok();
    if !installed("qemu-aarch64") || !installed("aarch64-linux-gnu-gcc") {
        let packages = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"];
        debian::install(shell, &packages).context("a linker for aarch64 and qemu's user emulation are needed")?;
    }
    let _linker = shell.push_env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
    let _runner =
        shell.push_env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu");
    let library = StandardLibrary::of(shell, TARGET)?;
    let test = cmd!(shell, "cargo test --package tilewise-relayout --lib --tests --target {TARGET}");
    let start = Instant::now();
    library.add_to(test).run()?;
    eprintln!("the relayout engine's tests pass on {TARGET} ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(())
}
