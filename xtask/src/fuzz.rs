//! `cargo xtask fuzz`: runs the fuzz targets, then the tests with inputs of a gigabyte; packs and unpacks the corpora.

use crate::{corpus, tools::install};
use anyhow::{Context, bail, ensure};
use clap::Args;
use std::path::Path;
use xshell::{Shell, cmd};

/// The duration and the targets.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds for each target
    #[arg(default_value_t = 60)]
    seconds: u64,
    /// Run only this target, and no inputs of a gigabyte
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Don't fuzz: renew fuzz/corpus by those of its inputs and of those found by earlier runs that reach different code
    #[arg(long, conflicts_with = "unpack")]
    pack: bool,
    /// Don't fuzz: write each input of fuzz/corpus to a file in fuzz/target/seeds
    #[arg(long)]
    unpack: bool,
}

/// The words of XLA's texts.
const DICTIONARY: &str = "-dict=fuzz/xla.dict";
/// Longer inputs find no more, and run more slowly.
const LONGEST_INPUT: &str = "-max_len=8192";
/// The most seconds of one input: a hundred times those of the slowest.
const TIMEOUT: &str = "-timeout=10";
/// Megabytes for the whole process, with the fuzzer and AddressSanitizer.
const MEMORY: &str = "-rss_limit_mb=2048";
/// A thread that has not quite ended when its scope does looks like a leak. Real leaks reach the limit above.
const LEAKS: &str = "-detect_leaks=0";

/// Runs each target for that many seconds, with the stable compiler, which has the sanitizer's runtime but needs
/// `RUSTC_BOOTSTRAP` to use it.
///
/// Inputs that reach new code go to `fuzz/target/corpus` and stay there for the next runs; `--pack` adds them to the tree.
pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let (seconds, one) = (options.seconds, options.target.as_deref());
    let targets = shell.read_dir("fuzz/fuzz_targets")?;
    let targets = targets.iter().filter_map(|path| path.file_stem()?.to_str());
    let targets: Vec<&str> = targets.filter(|target| one.is_none_or(|one| one == *target)).collect();
    ensure!(!targets.is_empty(), "no such target; fuzz/fuzz_targets has them all");
    for target in &targets {
        unpack(shell, target)?;
    }
    if options.unpack {
        eprintln!("the inputs of {} targets are in fuzz/target/seeds", targets.len());
        return Ok(());
    }
    install(shell, "fuzz")?;
    let nightly_switches = shell.push_env("RUSTC_BOOTSTRAP", "1");
    cmd!(shell, "cargo fuzz build {one...}").run()?;
    if options.pack {
        return targets.iter().try_for_each(|target| pack(shell, target));
    }
    let mut failed = Vec::new();
    let mut report = Vec::new();
    for target in &targets {
        let [found, seeds, regressions] = folders(shell, target)?;
        let time = format!("-max_total_time={seconds}");
        eprintln!("\n== {target} for {seconds} s");
        let output = cmd!(
            shell,
            "cargo fuzz run {target} {found} {seeds} {regressions} --
             {time} {DICTIONARY} {LONGEST_INPUT} {TIMEOUT} {MEMORY} {LEAKS} -print_final_stats=1"
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
        let result = if output.status.success() { "passed" } else { "FAILED" };
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
        eprintln!("\n== inputs of a gigabyte, a program cut at many places, and many pairs of layouts");
        let packages = ["tilewise-cli", "tilewise-audit", "tilewise-relayout"].map(|name| ["--package", name]).concat();
        let large = cmd!(shell, "cargo test --release {packages...} --test it -- --ignored").run();
        if large.is_err() {
            failed.push("tests of hostile inputs");
        }
    }
    eprintln!("\n{}", report.join("\n"));
    if !failed.is_empty() {
        bail!("failed: {}; the inputs are in fuzz/artifacts", failed.join(", "));
    }
    eprintln!("every target passed; each ran for {seconds} s");
    Ok(())
}

/// The folders with a target's inputs: found by runs, unpacked, and regressions. They exist, perhaps without a file.
fn folders(shell: &Shell, target: &str) -> anyhow::Result<[String; 3]> {
    let folders = ["target/corpus", "target/seeds", "regressions"].map(|folder| format!("fuzz/{folder}/{target}"));
    for folder in &folders {
        shell.create_dir(folder)?;
    }
    Ok(folders)
}

/// The target's inputs in the tree, each as a file named by its number.
fn unpack(shell: &Shell, target: &str) -> anyhow::Result<()> {
    let [_, seeds, _] = folders(shell, target)?;
    shell.remove_path(&seeds)?;
    let pack = format!("fuzz/corpus/{target}.pack");
    let inputs = corpus::read(&shell.current_dir().join(&pack)).context(pack)?;
    for (number, input) in inputs.iter().enumerate() {
        shell.write_file(Path::new(&seeds).join(format!("{number:04}")), input)?;
    }
    Ok(())
}

/// Renews the target's inputs in the tree by the smallest set that reaches the code of all together.
fn pack(shell: &Shell, target: &str) -> anyhow::Result<()> {
    let [found, seeds, _] = folders(shell, target)?;
    let merged = format!("fuzz/target/merged/{target}");
    shell.remove_path(&merged)?;
    shell.create_dir(&merged)?;
    cmd!(
        shell,
        "cargo fuzz run {target} {merged} {seeds} {found} -- -merge=1 {LONGEST_INPUT} {TIMEOUT} {MEMORY} {LEAKS}"
    )
    .quiet()
    .ignore_stderr()
    .run()?;
    let files = shell.read_dir(&merged)?;
    let inputs: Vec<Vec<u8>> = files.iter().map(|file| shell.read_binary_file(file)).collect::<Result<_, _>>()?;
    eprintln!("{target:<18} {:>5} inputs", inputs.len());
    Ok(corpus::write(&shell.current_dir().join(format!("fuzz/corpus/{target}.pack")), inputs)?)
}
