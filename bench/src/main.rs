//! Measures tilewise and its rivals on the same work in the same run, and writes `bench/RESULTS.md`.
//!
//! `cargo xtask bench` builds this optimised, gives it a Python with the rivals, and runs it.

#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod copy;
mod hlo;
mod measure;
mod offsets;
mod package;
mod relayout;
mod report;
mod rivals;
mod shapes;

use clap::{Parser, ValueEnum};
use measure::Effort;
use report::Report;
use rivals::Rivals;
use std::path::{Path, PathBuf};

/// Measures tilewise and its rivals
#[derive(Parser)]
struct Args {
    /// What to measure [default: everything]
    sections: Vec<Section>,
    /// A Python interpreter with the rivals
    #[arg(long)]
    python: PathBuf,
    /// A Python interpreter with the package
    #[arg(long)]
    package_python: Option<PathBuf>,
    /// The file to write the tables to
    #[arg(long)]
    out: PathBuf,
    /// Smaller inputs and fewer rounds, to test that everything runs
    #[arg(long)]
    quick: bool,
}

/// A section of the results.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Reading and printing shapes
    Shapes,
    /// Offsets in bulk
    Offsets,
    /// Reading HLO text
    Hlo,
    /// Converting buffers between layouts
    Relayout,
    /// The Python package
    Package,
}

impl Section {
    fn title(self) -> &'static str {
        match self {
            Self::Shapes => "Shapes",
            Self::Offsets => "Offsets in bulk",
            Self::Hlo => "HLO text",
            Self::Relayout => "Relayout",
            Self::Package => "The Python package",
        }
    }

    fn measure(self, effort: &Effort, rivals: &Rivals, package: Option<&Path>) -> anyhow::Result<Report> {
        let versions = if matches!(self, Self::Shapes | Self::Package) { "" } else { rivals.versions() };
        let mut report = Report::new(self.title(), versions);
        match self {
            Self::Shapes => shapes::run(effort, &mut report),
            Self::Offsets => offsets::run(effort, rivals, &mut report),
            Self::Hlo => hlo::run(effort, rivals, &mut report),
            Self::Relayout => relayout::run(effort, rivals, &mut report),
            Self::Package => package::run(effort, package, &mut report),
        }?;
        Ok(report)
    }
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let effort = Effort::new(args.quick);
    let rivals = Rivals::start(&args.python)?;
    let all = Section::value_variants();
    for section in if args.sections.is_empty() { all } else { &args.sections } {
        let titles: Vec<&str> = all.iter().map(|section| section.title()).collect();
        section.measure(&effort, &rivals, args.package_python.as_deref())?.write(&args.out, &titles)?;
    }
    Ok(())
}
