//! `cargo xtask miri`: the core's and the relayout engine's tests under Miri, which sees undefined behaviour.

use anyhow::Context;
use std::time::Instant;
use xshell::{Shell, cmd};

/// Runs the tests within the two crates: for the relayout engine those of its portable kernels, which Miri interprets.
///
/// Miri is a component of nightly compilers alone.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let has_miri = || cmd!(shell, "cargo +nightly miri --version").quiet().ignore_stdout().ignore_stderr().run();
    if has_miri().is_err() {
        let install = "rustup toolchain install nightly --profile minimal --component miri --component rust-src";
        cmd!(shell, "rustup toolchain install nightly --profile minimal --component miri --component rust-src")
            .run()
            .with_context(|| format!("Miri can't be had: run `{install}`"))?;
    }
    // A few cases of each property, whose failures are looked up in files.
    let _files = shell.push_env("MIRIFLAGS", "-Zmiri-disable-isolation");
    let _cases = shell.push_env("PROPTEST_CASES", "4");
    let start = Instant::now();
    // One test looks at each of a million characters, which would take hours.
    cmd!(
        shell,
        "cargo +nightly miri test --package tilewise --package tilewise-relayout --lib -- --skip every_character"
    )
    .run()?;
    eprintln!("the core and the relayout engine pass under Miri ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(())
}
