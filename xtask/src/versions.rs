//! `cargo xtask versions`: tilewise and the TPU compiler in the versions that people have.

use crate::{python, tools::target_folder};
use anyhow::Context;
use clap::Args;
use xshell::{Shell, cmd};

/// Pairs of JAX and libtpu: the newest of each, the pair that the newest JAX pins, and one that runs on Python 3.11.
const PAIRS: [&str; 3] = ["0.12.0.1+0.0.52", "0.12.0.1+0.0.50.1", "0.10.2+0.0.51"];
/// Other packages in every environment.
const OTHERS: &str = "ml_dtypes==0.6.0\nnumpy==2.4.6\nopt_einsum==3.4.0\nscipy==1.17.1\n";
const TABLE: &str = "conformance/VERSIONS.md";

/// The versions, and the suites to compare.
#[derive(Args)]
pub(crate) struct Options {
    /// A version of JAX and one of libtpu, such as 0.12.0.1+0.0.52 [default: those of the table]
    pairs: Vec<String>,
    /// Only this suite; keep the others in the table
    #[arg(long, value_name = "SUITE")]
    only: Vec<String>,
    /// Begin no program of a suite after this many seconds
    #[arg(long, default_value_t = 100)]
    seconds: u64,
}

pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    cmd!(shell, "cargo build --quiet --package tilewise-cli").quiet().run()?;
    let target = target_folder(shell);
    let tilewise = target.join("debug/tilewise");
    let pairs = if options.pairs.is_empty() { PAIRS.map(String::from).to_vec() } else { options.pairs.clone() };
    for pair in &pairs {
        let (jax, libtpu) = pair.split_once('+').with_context(|| format!("{pair} is no JAX+libtpu"))?;
        let requirements = format!("jax=={jax}\njaxlib=={jax}\nlibtpu=={libtpu}\n{OTHERS}");
        let python = python::with_text(shell, &format!("versions/{pair}"), &requirements)?;
        let log = target.join(format!("xtask/versions/{pair}.log"));
        let seconds = options.seconds.to_string();
        let only = options.only.iter().flat_map(|suite| ["--only", suite]);
        cmd!(shell, "{python} conformance/tpu/versions.py --tilewise {tilewise} --table {TABLE} --log {log}")
            .args(["--seconds", &seconds])
            .args(only)
            .quiet()
            .run()?;
    }
    Ok(())
}
