//! `cargo xtask aarch64` and `targets`: a crate's tests for other machines, under qemu.

use crate::{cross::StandardLibrary, debian};
use anyhow::Context;
use std::time::Instant;
use xshell::{Shell, cmd};

/// Another machine that tests run for.
struct Machine {
    target: &'static str,
    /// As in the names of Debian's compilers.
    gnu: &'static str,
    emulator: &'static str,
    /// With the C compiler, its library, and the emulator.
    packages: [&'static str; 3],
}

const AARCH64: Machine = Machine {
    target: "aarch64-unknown-linux-gnu",
    gnu: "aarch64-linux-gnu",
    emulator: "qemu-aarch64",
    packages: ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"],
};
/// A pointer has 32 bits.
const I686: Machine = Machine {
    target: "i686-unknown-linux-gnu",
    gnu: "i686-linux-gnu",
    emulator: "qemu-i386",
    packages: ["gcc-i686-linux-gnu", "libc6-dev-i386-cross", "qemu-user"],
};
/// The most significant byte comes first.
const S390X: Machine = Machine {
    target: "s390x-unknown-linux-gnu",
    gnu: "s390x-linux-gnu",
    emulator: "qemu-s390x",
    packages: ["gcc-s390x-linux-gnu", "libc6-dev-s390x-cross", "qemu-user"],
};

/// The relayout engine's tests for aarch64, whose vector instructions have kernels of their own.
pub(crate) fn aarch64(shell: &Shell) -> anyhow::Result<()> {
    test(shell, &AARCH64, "tilewise-relayout")
}

/// The core's tests where a pointer has 32 bits, and where the most significant byte comes first.
pub(crate) fn targets(shell: &Shell) -> anyhow::Result<()> {
    [I686, S390X].iter().try_for_each(|machine| test(shell, machine, "tilewise"))
}

/// Builds and runs the crate's tests. Installs what is missing: a linker, an emulator, the target's standard library.
fn test(shell: &Shell, machine: &Machine, package: &str) -> anyhow::Result<()> {
    let Machine { target, gnu, emulator, packages } = machine;
    let compiler = format!("{gnu}-gcc");
    let installed =
        |program: &str| cmd!(shell, "{program} --version").quiet().ignore_stdout().ignore_stderr().run().is_ok();
    if !installed(emulator) || !installed(&compiler) {
        debian::install(shell, packages).with_context(|| format!("a linker for {target} and qemu are needed"))?;
    }
    let variable = target.to_uppercase().replace('-', "_");
    let _linker = shell.push_env(format!("CARGO_TARGET_{variable}_LINKER"), compiler);
    let _runner = shell.push_env(format!("CARGO_TARGET_{variable}_RUNNER"), format!("{emulator} -L /usr/{gnu}"));
    let library = StandardLibrary::of(shell, target)?;
    let start = Instant::now();
    library.add_to(cmd!(shell, "cargo test --package {package} --lib --tests --target {target}")).run()?;
    eprintln!("the tests of {package} pass on {target} ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(())
}
