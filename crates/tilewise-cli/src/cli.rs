//! The command line: the part that all verbs share.

use crate::commands::Command;
use clap::Parser;
use std::sync::LazyLock;
use tilewise::tpu::Generation;
use tilewise_audit::Machine;

/// The version, and the compilers whose memory plans are reproduced.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let [tpu, gpu, cpu] = [Machine::Tpu(Generation::V5e), Machine::Gpu(None), Machine::Cpu].map(Machine::compiler);
    format!("{}\nplans memory as {tpu}, {gpu}, and {cpu} do", env!("CARGO_PKG_VERSION"))
});

/// XLA's tiled layouts: explain a shape, find an element, audit a compiled program's memory.
#[derive(Parser)]
#[command(name = "tilewise", version, long_version = LONG_VERSION.as_str(), max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) color: colorchoice_clap::Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}
