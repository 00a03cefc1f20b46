//! The slow verbs: `cargo xtask msrv`, `deny`, `semver` and `coverage`. Each installs what it needs, and prints one line
//! at its end.

use anyhow::{Context, ensure};
use std::{
    env, fs,
    path::{Path, PathBuf},
};
use xshell::{Shell, cmd};

/// The core's `rust-version`.
const MSRV: &str = "1.85.0";

/// Installs `cargo-TOOL` unless it is there.
pub(crate) fn install(shell: &Shell, tool: &str) -> anyhow::Result<()> {
    if cmd!(shell, "cargo {tool} --version").quiet().ignore_stdout().ignore_stderr().run().is_ok() {
        return Ok(());
    }
    // A lock file may name what a registry does not have; without it a dependency may want a newer compiler.
    cmd!(shell, "cargo install cargo-{tool}")
        .run()
        .or_else(|_| cmd!(shell, "cargo install --locked cargo-{tool}").run())?;
    Ok(())
}

/// `cargo xtask msrv`: builds and tests the packaged core with the oldest supported compiler.
///
/// The packaged core becomes a workspace of its own, in which cargo picks test dependencies that fit the old compiler;
/// the main workspace's are newer. The facts and the crate that tests share come along: packages leave them out.
pub(crate) fn msrv(shell: &Shell) -> anyhow::Result<()> {
    let folder = target_folder(shell).join("msrv");
    let compiler = old_compiler(shell, &folder)?;
    let package = folder.join("package");
    cmd!(shell, "cargo package --package tilewise --no-verify --allow-dirty --target-dir {package}").run()?;
    let version = env!("CARGO_PKG_VERSION");
    let archive = package.join(format!("package/tilewise-{version}.crate"));
    let workspace = folder.join("workspace");
    shell.remove_path(&workspace)?;
    for part in ["conformance/facts", "testing/src"] {
        copy_folder(shell, Path::new(part), &workspace.join(part))?;
    }
    shell.copy_file("testing/Cargo.toml", workspace.join("testing"))?;
    let crates = workspace.join("crates");
    shell.create_dir(&crates)?;
    cmd!(shell, "tar --extract --touch --gzip --file {archive} --directory {crates}").run()?;
    let core = crates.join("tilewise");
    fs::rename(crates.join(format!("tilewise-{version}")), &core)?;
    shell.remove_path(core.join("Cargo.lock"))?;
    // The manifest as it was written, with the dependency that packages leave out.
    fs::rename(core.join("Cargo.toml.orig"), core.join("Cargo.toml"))?;
    let manifest = shell.read_file("Cargo.toml")?;
    let lines = manifest.lines().filter(|line| !line.starts_with("default-members"));
    let lines = lines.map(|line| match line.split_once(" = ") {
        Some(("members", _)) => "members = [\"crates/tilewise\", \"testing\"]\n".to_owned(),
        _ => format!("{line}\n"),
    });
    // The target folder may lie in the main workspace, which would claim the package.
    shell.write_file(workspace.join("Cargo.toml"), lines.collect::<String>())?;

    let _here = shell.push_dir(&core);
    let _compiler = shell.push_env("RUSTC", &compiler);
    let target = folder.join("target");
    let _target = shell.push_env("CARGO_TARGET_DIR", &target);
    cmd!(shell, "cargo build").run()?;
    cmd!(shell, "cargo test --all-features --lib --tests").run()?;
    let version = cmd!(shell, "{compiler} --version").read()?;
    eprintln!("the core builds and its tests pass with {version}");
    Ok(())
}

/// rustup's 1.85, or Debian 12's, unpacked without installing it.
fn old_compiler(shell: &Shell, folder: &Path) -> anyhow::Result<PathBuf> {
    let rustup = cmd!(shell, "rustup which --toolchain {MSRV} rustc").quiet().ignore_stderr().read();
    if let Ok(path) = rustup {
        return Ok(path.into());
    }
    let script = folder.join("rustc");
    if script.exists() {
        return Ok(script);
    }
    let (packages, root) = (folder.join("debian"), folder.join("root"));
    shell.create_dir(&packages)?;
    {
        let _here = shell.push_dir(&packages);
        let names = [
            format!("rustc-web={MSRV}*"),
            "libstd-rust-web-1.85".to_owned(),
            format!("libstd-rust-web-dev={MSRV}*"),
            "libllvm19".to_owned(),
        ];
        let hint = || format!("no Rust {MSRV}: `rustup toolchain install {MSRV}`, or run this on Debian 12");
        cmd!(shell, "apt-get download {names...}").run().with_context(hint)?;
    }
    for package in shell.read_dir(&packages)? {
        cmd!(shell, "dpkg --extract {package} {root}").run()?;
    }
    let root = root.join("usr").display().to_string();
    let libraries = format!("{root}/lib/{}-linux-gnu", env::consts::ARCH);
    let text = format!("#!/bin/sh\nLD_LIBRARY_PATH='{libraries}' exec '{root}/bin/rustc' --sysroot '{root}' \"$@\"\n");
    shell.write_file(&script, text)?;
    cmd!(shell, "chmod +x {script}").run()?;
    Ok(script)
}

fn copy_folder(shell: &Shell, from: &Path, to: &Path) -> anyhow::Result<()> {
    shell.create_dir(to)?;
    for file in shell.read_dir(from)? {
        shell.copy_file(file, to)?;
    }
    Ok(())
}

/// `cargo xtask deny`: licenses, bans and sources of all dependencies, as `deny.toml` has them.
pub(crate) fn deny(shell: &Shell) -> anyhow::Result<()> {
    install(shell, "deny")?;
    cmd!(shell, "cargo deny --all-features check licenses bans sources").run()?;
    let packages =
        cmd!(shell, "cargo tree --workspace --all-features --edges normal,build --prefix none --no-dedupe").quiet();
    let packages = packages.read()?;
    let mut packages: Vec<&str> = packages.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    packages.sort_unstable();
    packages.dedup();
    eprintln!("licenses, bans and sources of {} packages are allowed", packages.len());
    Ok(())
}

/// `cargo xtask semver`: compares the public interface with that of a git revision, or of a folder with an earlier tree.
///
/// The default is the newest tag `v…`.
pub(crate) fn semver(shell: &Shell, baseline: Option<&str>) -> anyhow::Result<()> {
    let baseline = match baseline {
        Some(baseline) => baseline.to_owned(),
        None => {
            let tags = cmd!(shell, "git tag --list v* --sort -version:refname").quiet().read()?;
            let Some(tag) = tags.lines().next() else {
                eprintln!(
                    "there is no earlier release (no tag `v…`) to compare the interface with: nothing was checked"
                );
                return Ok(());
            };
            tag.to_owned()
        }
    };
    install(shell, "semver-checks")?;
    let option = if shell.current_dir().join(&baseline).is_dir() { "--baseline-root" } else { "--baseline-rev" };
    let crates = ["tilewise", "tilewise-hlo", "tilewise-oom", "tilewise-audit"];
    for name in crates {
        cmd!(shell, "cargo semver-checks --package {name} {option} {baseline}").run()?;
    }
    eprintln!("the interfaces of {} crates are compatible with {baseline}", crates.len());
    Ok(())
}

/// The minimum share of the core's lines that its tests must run, in percent.
const LEAST_COVERAGE: f64 = 95.0;

/// `cargo xtask coverage`: measures which lines of the core its tests run.
pub(crate) fn coverage(shell: &Shell) -> anyhow::Result<()> {
    install(shell, "llvm-cov")?;
    let _tools = llvm_tools(shell)?
        .map(|[cov, profdata]| (shell.push_env("LLVM_COV", cov), shell.push_env("LLVM_PROFDATA", profdata)));
    // The core's own tests, and those that replay the corpora and test limits; examples in documentation don't count.
    cmd!(shell, "cargo llvm-cov --no-report --all-features --package tilewise --package tilewise-fuzz-bodies").run()?;
    let others = "crates/tilewise-|/tests/|fuzz/|testing/|xtask/";
    let report = |option: &str| {
        cmd!(shell, "cargo llvm-cov report --ignore-filename-regex {others} {option}").quiet().ignore_stderr().read()
    };
    let missed = report("--show-missing-lines")?;
    let listed = missed.lines().skip_while(|line| !line.starts_with("Uncovered Lines"));
    listed.for_each(|line| eprintln!("{line}"));
    let share = line_share(&report("--json")?).context("cargo llvm-cov's JSON has changed")?;
    ensure!(share >= LEAST_COVERAGE, "the core's tests run {share:.2} % of its lines, less than {LEAST_COVERAGE} %");
    eprintln!("the core's tests run {share:.2} % of its lines");
    Ok(())
}

/// `"lines":{…"percent":97.1…}` of the totals.
fn line_share(json: &str) -> Option<f64> {
    let (_, totals) = json.rsplit_once("\"totals\"")?;
    let (_, lines) = totals.split_once("\"lines\"")?;
    let (_, percent) = lines.split_once("\"percent\":")?;
    percent.split(['}', ',']).next()?.trim().parse().ok()
}

/// LLVM's tools of rustc's version; `None` if rustup has them, where cargo-llvm-cov finds them.
fn llvm_tools(shell: &Shell) -> anyhow::Result<Option<[PathBuf; 2]>> {
    let sysroot = cmd!(shell, "rustc --print sysroot").quiet().read()?;
    let host = rustc_says(shell, "host:")?;
    if Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/llvm-cov").exists() {
        return Ok(None);
    }
    let version = rustc_says(shell, "LLVM version:")?;
    let llvm = version.split('.').next().context("rustc names its LLVM")?;
    let tools = ["cov", "profdata"].map(|tool| PathBuf::from(format!("/usr/bin/llvm-{tool}-{llvm}")));
    if !tools.iter().all(|tool| tool.exists()) {
        apt_install(shell, &[&format!("llvm-{llvm}")])
            .with_context(|| format!("no LLVM {llvm}: `rustup component add llvm-tools`, or install it"))?;
    }
    Ok(Some(tools))
}

/// Installs Debian packages, after renewing the package lists.
pub(crate) fn apt_install(shell: &Shell, packages: &[&str]) -> anyhow::Result<()> {
    cmd!(shell, "apt-get update").quiet().ignore_stdout().run()?;
    Ok(cmd!(shell, "apt-get install --yes --no-install-recommends {packages...}").run()?)
}

/// The value that `rustc --version --verbose` gives for a key, such as `host:`.
pub(crate) fn rustc_says(shell: &Shell, word: &str) -> anyhow::Result<String> {
    let version = cmd!(shell, "rustc --version --verbose").quiet().read()?;
    let rest = version.lines().find_map(|line| line.strip_prefix(word));
    Ok(rest.with_context(|| format!("rustc does not say its {word}"))?.trim().to_owned())
}

/// Where cargo builds.
pub(crate) fn target_folder(shell: &Shell) -> PathBuf {
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    shell.current_dir().join(folder)
}
