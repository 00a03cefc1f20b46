//! `cargo xtask fuzz`: every fuzz target for real, then the inputs that are too large for every day.

use crate::slow::install;
use anyhow::bail;
use xshell::{Shell, cmd};

/// Longer inputs find nothing that shorter ones don't, at fewer a second.
const LONGEST_INPUT: &str = "-max_len=8192";
/// Seconds that one input may take, a hundred times what the slowest takes.
const TIMEOUT: &str = "-timeout=10";
/// Megabytes for everything, the fuzzer's and AddressSanitizer's own among them.
const MEMORY: &str = "-rss_limit_mb=2048";

/// Runs each target for that many seconds, on the stable compiler, which has the sanitizer's runtime but hides the switch.
///
/// What they find new goes to `fuzz/target`, and stays there for the next run: the corpora in the tree are for the tests.
pub(crate) fn run(shell: &Shell, seconds: u64) -> anyhow::Result<()> {
    install(shell, "fuzz")?;
    let nightly_switches = shell.push_env("RUSTC_BOOTSTRAP", "1");
    cmd!(shell, "cargo fuzz build").run()?;
    let targets = cmd!(shell, "cargo fuzz list").read()?;
    let mut failed = Vec::new();
    let mut report = Vec::new();
    for target in targets.lines() {
        let found = format!("fuzz/target/corpus/{target}");
        shell.create_dir(&found)?;
        let time = format!("-max_total_time={seconds}");
        eprintln!("\n== {target} for {seconds} s");
        let output = cmd!(
            shell,
            "cargo fuzz run {target} {found} fuzz/corpus/{target} --
             {time} {LONGEST_INPUT} {TIMEOUT} {MEMORY} -print_final_stats=1"
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
            failed.push(target);
        }
    }
    drop(nightly_switches);

    eprintln!("\n== lines and files of a gigabyte");
    let large = cmd!(shell, "cargo test --release --package tilewise-cli --test hostile -- --ignored").run();
    if large.is_err() {
        failed.push("a gigabyte");
    }
    eprintln!("\n{}", report.join("\n"));
    if !failed.is_empty() {
        bail!("failed: {}; the inputs are in fuzz/artifacts", failed.join(", "));
    }
    eprintln!("all {} targets hold, each for {seconds} s", targets.lines().count());
    Ok(())
}
