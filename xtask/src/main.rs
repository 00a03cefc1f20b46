//! Development tasks, as `cargo xtask VERB`.

mod advice;
mod bench;
mod capi;
mod checks;
mod conformance;
#[path = "../../testing/src/corpus.rs"]
#[expect(
    unreachable_pub,
    reason = "the testing crate's; by its path, so that xtask, which is built first, waits for no crate"
)]
mod corpus;
mod coverage;
mod cpu;
mod cross;
mod debian;
mod emulated;
mod fuzz;
mod gpu;
mod kernels;
mod miri;
mod msrv;
mod package;
mod python;
mod release;
mod remat;
mod sanitize;
mod site;
mod stub;
mod test;
mod time;
mod tools;
mod tpu;
mod versions;
mod web;

use clap::{Parser, Subcommand};
use std::{path::Path, process::ExitCode};
use xshell::Shell;

/// Development tasks of tilewise.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Every check a change must pass: Rust, Python, the web page, live XLA, the TPU compiler
    Test(test::Options),
    /// Compares tilewise with the XLA inside jaxlib on generated shapes
    Conformance(conformance::Options),
    /// Compares the memory that tilewise finds in TPU programs with what their compiler reports, without a TPU
    Tpu(tpu::Options),
    /// Compares the memory that tilewise finds in programs for this machine's CPU with what their compiler reports
    Cpu(tpu::Programs),
    /// Compares tilewise's VMEM of Pallas kernels with what the TPU compiler allocates, without a TPU
    Kernels(kernels::Options),
    /// Compares tilewise with the versions of JAX and libtpu that people have, and renews conformance/VERSIONS.md
    Versions(versions::Options),
    /// Builds the web page and serves it, tests it in Chromium, or measures it
    Web(web::Options),
    /// Builds the documents, the page and the crates' documentation as one site
    Site(site::Options),
    /// Follows the advice that tilewise gives for TPU programs, and compares the bytes it frees with its promise
    Advice(advice::Options),
    /// Follows advice for programs of GPUs, compiled without one, or of this machine's CPU, and compares the bytes it
    /// frees with its promise
    Gpu(gpu::Options),
    /// Compares the choices of `tw.remat` for steps of public libraries with those made by hand; renews
    /// conformance/remat/rows.csv
    Remat(remat::Options),
    /// Compares the times that tilewise estimates with measurements that others published, without a TPU
    Time(time::Options),
    /// Measures tilewise and its rivals, and renews bench/RESULTS.md
    Bench(bench::Options),
    /// Runs every fuzz target, then the tests with inputs of a gigabyte; packs and unpacks the corpora
    Fuzz(fuzz::Options),
    /// Runs the relayout engine's tests under AddressSanitizer
    Sanitize,
    /// Runs the core's and the relayout engine's tests under Miri
    Miri,
    /// Runs the relayout engine's tests for aarch64, under qemu
    Aarch64,
    /// Runs the core's tests where a pointer has 32 bits (i686), and where the most significant byte comes first (s390x), under
    /// qemu
    Targets,
    /// Builds and runs users of the C library: C++, CMake, Zig and Go; checks its header against the sources
    Capi(capi::Options),
    /// Builds, installs and tests the Python package
    Python,
    /// Renews the types of the Python package's native half
    Stub,
    /// Builds and tests the core with the oldest supported compiler
    Msrv,
    /// Checks licenses, bans and sources of all dependencies
    Deny,
    /// Packages every published crate and builds it from its package; uploads nothing
    Publish,
    /// Compares the public interfaces with those of an earlier release
    Semver {
        /// A git revision, or a folder with an earlier tree [default: the newest tag v…]
        baseline: Option<String>,
    },
    /// Measures which lines of the core its tests run
    Coverage,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // Without the stack, which doesn't explain a check's findings.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let shell = Shell::new()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    shell.change_dir(root);
    match Cli::parse().verb {
        Verb::Test(options) => test::run(&shell, &options),
        Verb::Conformance(options) => conformance::run(&shell, &options),
        Verb::Tpu(options) => tpu::run(&shell, &options),
        Verb::Cpu(programs) => cpu::run(&shell, &programs),
        Verb::Kernels(options) => kernels::run(&shell, &options),
        Verb::Versions(options) => versions::run(&shell, &options),
        Verb::Web(options) => web::run(&shell, &options),
        Verb::Site(options) => site::run(&shell, &options),
        Verb::Advice(options) => advice::run(&shell, &options),
        Verb::Remat(options) => remat::run(&shell, &options),
        Verb::Time(options) => time::run(&shell, &options),
        Verb::Gpu(options) => gpu::run(&shell, &options),
        Verb::Bench(options) => bench::run(&shell, &options),
        Verb::Fuzz(options) => fuzz::run(&shell, &options),
        Verb::Sanitize => sanitize::run(&shell),
        Verb::Miri => miri::run(&shell),
        Verb::Aarch64 => emulated::aarch64(&shell),
        Verb::Targets => emulated::targets(&shell),
        Verb::Capi(options) => capi::run(&shell, &options),
        Verb::Python => package::run(&shell),
        Verb::Stub => stub::run(&shell),
        Verb::Msrv => msrv::run(&shell),
        Verb::Deny => release::deny(&shell),
        Verb::Publish => release::publish(&shell),
        Verb::Semver { baseline } => release::semver(&shell, baseline.as_deref()),
        Verb::Coverage => coverage::run(&shell),
    }
}
