//! Our engines and their rivals on the same work in the same run; writes `bench/RESULTS.md`.
//!
//! `cargo xtask bench` builds this optimised, gives it a Python with the rivals, and runs it.

#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod hlo;
mod measure;
mod offsets;
mod report;
mod rivals;
mod shapes;

use clap::Parser;
use report::Report;
use std::path::PathBuf;

/// Measures tilewise and its rivals.
#[derive(Parser)]
struct Args {
    /// The Python interpreter that has numpy and jaxlib
    #[arg(long)]
    python: PathBuf,
    /// Where the table goes
    #[arg(long)]
    out: PathBuf,
    /// Smaller inputs and fewer rounds, to see that everything runs
    #[arg(long)]
    quick: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let rounds = if args.quick { 3 } else { 9 };
    let rivals = rivals::Rivals::start(&args.python)?;
    let mut report = Report::new(&rivals);
    shapes::run(rounds, &mut report)?;
    offsets::run(rounds, if args.quick { 100_000 } else { 10_000_000 }, &rivals, &mut report)?;
    hlo::run(rounds, if args.quick { 4 } else { 100 }, &rivals, &mut report)?;
    report.write(&args.out)
}
