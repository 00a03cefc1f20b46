//! `cargo xtask sanitize`: the relayout engine's tests under AddressSanitizer.

use crate::tools::rustc_says;
use std::time::Instant;
use xshell::{Shell, cmd};

/// Runs the crate's tests with the stable compiler, which has the sanitizer's runtime but needs `RUSTC_BOOTSTRAP` to
/// use it.
///
/// The tests run each kernel with each instruction set this CPU has. Naming the target leaves build scripts without
/// the sanitizer.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let host = rustc_says(shell, "host:")?;
    let _nightly_switches = shell.push_env("RUSTC_BOOTSTRAP", "1");
    let _sanitizer = shell.push_env("RUSTFLAGS", "-Zsanitizer=address");
    let start = Instant::now();
    cmd!(shell, "cargo test --package tilewise-relayout --lib --tests --target {host}").run()?;
    eprintln!("the relayout engine's tests pass under AddressSanitizer ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(())
}
