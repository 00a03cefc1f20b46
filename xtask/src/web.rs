//! `cargo xtask web`: the page in `web/`, from the core's WebAssembly to a folder that any static host takes.

use crate::{cross::StandardLibrary, debian, tools::target_folder};
use anyhow::{Context, ensure};
use std::{env, fs, path::PathBuf};
use xshell::{Cmd, Shell, cmd};

const TARGET: &str = "wasm32-unknown-unknown";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only builds `web/dist`
    #[arg(long)]
    build: bool,
    /// Tests the page in Chromium
    #[arg(long, conflicts_with = "build")]
    test: bool,
    /// Measures sizes and times, and prints them
    #[arg(long, conflicts_with_all = ["build", "test"])]
    measure: bool,
    /// Renews the page that the command line's reports are made of
    #[arg(long, conflicts_with_all = ["build", "test", "measure"])]
    template: bool,
}

/// Builds the page, then serves it, unless something else is asked for.
pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    environment(shell)?;
    build(
        shell,
        match options {
            Options { build: true, .. } | Options { measure: true, .. } => Size::Small,
            Options { test: true, .. } => Size::Unoptimised,
            _ => Size::AsCompiled,
        },
    )?;
    if options.template {
        fs::copy(report_page(shell), template(shell))?;
    } else if options.test || options.measure {
        cmd!(shell, "cargo build --quiet --package tilewise-cli").run()?;
        chromium(shell)?;
        npm(shell, &["run", if options.measure { "measure" } else { "test" }]).run()?;
    } else if !options.build {
        npm(shell, &["run", "serve"]).run()?;
    }
    Ok(())
}

/// How far the WebAssembly is optimised.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// As tests are compiled.
    Unoptimised,
    /// Optimised for size.
    AsCompiled,
    /// As small as can be, which takes a while.
    Small,
}

/// Installs the requirements of building and testing beside cargo: npm's packages, and a compiler for WebAssembly.
pub(crate) fn environment(shell: &Shell) -> anyhow::Result<()> {
    if npm(shell, &["ls", "--silent"]).quiet().ignore_stdout().ignore_stderr().run().is_err() {
        let install = npm(shell, &["ci", "--no-audit", "--no-fund"]);
        install.run().context("Node.js and its npm build the page: https://nodejs.org")?;
    }
    StandardLibrary::of(shell, TARGET).map(drop)
}

/// Builds `web/dist`, and the page of reports as it should be.
pub(crate) fn build(shell: &Shell, size: Size) -> anyhow::Result<()> {
    wasm(shell, size)?;
    Ok(npm(shell, &["run", "build"]).run()?)
}

/// The page's tests, which need the command line built.
pub(crate) fn tests(shell: &Shell) -> Cmd<'_> {
    npm(shell, &["run", "test"])
}

/// The site's tests, which need it built.
pub(crate) fn site_tests(shell: &Shell) -> Cmd<'_> {
    npm(shell, &["run", "test:site"])
}

/// Fails unless the page of reports is the one that its sources make.
pub(crate) fn check_template(shell: &Shell) -> anyhow::Result<()> {
    let is_renewed = fs::read(report_page(shell))? == fs::read(template(shell))?;
    ensure!(is_renewed, "the page of reports is not that of its sources: run `cargo xtask web --template`");
    Ok(())
}

fn report_page(shell: &Shell) -> PathBuf {
    shell.current_dir().join("web/build/report.html")
}

fn template(shell: &Shell) -> PathBuf {
    shell.current_dir().join("crates/tilewise-report/src/export/report.html")
}

/// A command of npm in `web/`.
fn npm<'a>(shell: &'a Shell, arguments: &[&str]) -> Cmd<'a> {
    cmd!(shell, "npm --prefix web --silent {arguments...}").env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
}

/// The parts of the core that the page loads on their own: features of `tilewise-wasm`.
const PARTS: [&str; 3] = ["messages", "programs", "shapes"];

/// The core for browsers, with bindings: a folder of `web/pkg` for each part.
fn wasm(shell: &Shell, size: Size) -> anyhow::Result<()> {
    let target = target_folder(shell);
    let (profile, folder) = if size == Size::Unoptimised { ("dev", "debug") } else { ("wasm", "wasm") };
    let built = target.join(TARGET).join(folder).join("tilewise_wasm.wasm");
    let library = match size {
        Size::Unoptimised | Size::AsCompiled => StandardLibrary::of(shell, TARGET)?,
        Size::Small => StandardLibrary::from_source(shell)?,
    };
    // Paths of this machine stay out of the messages of panics.
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let mut flags = home.map(|home| format!("--remap-path-prefix={}=cargo", home.display())).unwrap_or_default();
    let mut options = Vec::new();
    if size == Size::Small {
        // A panic aborts without a message: a browser shows none, and texts and paths of panics take room.
        flags += " -Zunstable-options -Cpanic=immediate-abort";
        options.push("-Zbuild-std-features=optimize_for_size");
    }
    for part in PARTS {
        let build = cmd!(shell, "cargo build --quiet --package tilewise-wasm --target {TARGET} --profile {profile}");
        let build = library.add_to(build).args(&options).args(["--no-default-features", "--features", part]);
        build.env("RUSTFLAGS", &flags).run()?;
        let folder = format!("web/pkg/{part}");
        cmd!(shell, "cargo run --quiet --package tilewise-bindgen -- {built} {folder}").run()?;
        if size != Size::Small {
            continue;
        }
        let wasm = format!("pkg/{part}/tilewise_wasm_bg.wasm");
        npm(shell, &["run", "shrink", "--", &wasm, "-o", &wasm]).run()?;
    }
    Ok(())
}

/// Finds Chromium, or installs Debian's.
pub(crate) fn chromium(shell: &Shell) -> anyhow::Result<()> {
    if env::var_os("CHROMIUM").is_some() || fs::exists("/usr/bin/chromium").unwrap_or(false) {
        return Ok(());
    }
    debian::install(shell, &["chromium"]).context("Chromium can't be had here: name one in the variable CHROMIUM")
}
