//! `cargo xtask sanitize`: every kernel of the relayout engine under AddressSanitizer.

use crate::slow::rustc_says;
use std::time::Instant;
use xshell::{Shell, cmd};

/// Runs the crate's tests on the stable compiler, which has the sanitizer's runtime but hides the switch.
///
/// The tests run each kernel at each level this CPU has. With a target named, build scripts stay as they are.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let host = rustc_says(shell, "host:")?;
    let _nightly_switches = shell.push_env("RUSTC_BOOTSTRAP", "1");
    let _sanitizer = shell.push_env("RUSTFLAGS", "-Zsanitizer=address");
    let start = Instant::now();
    cmd!(shell, "cargo test --package tilewise-relayout --features portable --lib --tests --target {host}").run()?;
    eprintln!("the relayout engine's tests hold under AddressSanitizer ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(())
}
