//! `cargo xtask fuzz`: every fuzz target for real, then the inputs that are too large for every day.

use crate::slow::install;
use anyhow::{bail, ensure};
use clap::Args;
use xshell::{Shell, cmd};

/// How long, and what.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds for each target
    #[arg(default_value_t = 60)]
    seconds: u64,
    /// One target alone, and no inputs of a gigabyte
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
}

/// Longer inputs find nothing that shorter ones don't, at fewer a second.
const LONGEST_INPUT: &str = "-max_len=8192";
/// Seconds that one input may take, a hundred times what the slowest takes.
const TIMEOUT: &str = "-timeout=10";
/// Megabytes for everything, the fuzzer's and AddressSanitizer's own among them.
const MEMORY: &str = "-rss_limit_mb=2048";
/// A thread that is just ending when its scope has ended looks like a leak; real ones run into the limit above.
const LEAKS: &str = "-detect_leaks=0";

/// Runs each target for that many seconds, on the stable compiler, which has the sanitizer's runtime but hides the switch.
///
/// What they find new goes to `fuzz/target`, and stays there for the next run: the corpora in the tree are for the tests.
pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    install(shell, "fuzz")?;
    let nightly_switches = shell.push_env("RUSTC_BOOTSTRAP", "1");
    let (seconds, one) = (options.seconds, options.target.as_deref());
    let targets = cmd!(shell, "cargo fuzz list").read()?;
    let targets: Vec<&str> = targets.lines().filter(|target| one.is_none_or(|one| one == *target)).collect();
    ensure!(!targets.is_empty(), "no such target; `cargo fuzz list` names them all");
    cmd!(shell, "cargo fuzz build {one...}").run()?;
    let mut failed = Vec::new();
    let mut report = Vec::new();
    for target in &targets {
        let found = format!("fuzz/target/corpus/{target}");
        shell.create_dir(&found)?;
        let time = format!("-max_total_time={seconds}");
        eprintln!("\n== {target} for {seconds} s");
        let output = cmd!(
            shell,
            "cargo fuzz run {target} {found} fuzz/corpus/{target} --
             {time} {LONGEST_INPUT} {TIMEOUT} {MEMORY} {LEAKS} -print_final_stats=1"
        )
        .quiet()
        .ignore_status()
        .output()?;
        let log = String::from_utf8_lossy(&output.stderr);
        let stat = |name: &str| {
            let line = log.lines().find_map(|line| line.strip_prefix(&format!("stat::{name}:")));
            line.map_or("?", str::trim).to_owned()
        };
        let (executions, memory) = (stat("number_of_executed_units"), stat("peak_rss_mb"));
        let result = if output.status.success() { "holds" } else { "FAILED" };
        let line = format!("{target:<18} {executions:>12} executions  peak {memory:>5} MB  {result}");
        eprintln!("{line}");
        report.push(line);
        if !output.status.success() {
            let end: Vec<&str> = log.lines().rev().take(60).collect();
            end.iter().rev().for_each(|line| eprintln!("{line}"));
            failed.push(*target);
        }
    }
    drop(nightly_switches);

    if one.is_none() {
        eprintln!("\n== lines and files of a gigabyte");
        let large = cmd!(shell, "cargo test --release --package tilewise-cli --test it limits:: -- --ignored").run();
        if large.is_err() {
            failed.push("a gigabyte");
        }
    }
    eprintln!("\n{}", report.join("\n"));
    if !failed.is_empty() {
        bail!("failed: {}; the inputs are in fuzz/artifacts", failed.join(", "));
    }
    eprintln!("{} targets hold, each for {seconds} s", targets.len());
    Ok(())
}
