//! Measures tilewise and its rivals on the same work in the same run, and writes `bench/RESULTS.md`.
//!
//! `cargo xtask bench` builds this optimised, gives it a Python with the rivals, and runs it.

#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod bitcasts;
mod copy;
mod hlo;
mod measure;
mod offsets;
mod package;
mod programs;
mod relayout;
mod report;
mod rivals;
mod shapes;
mod start;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use measure::Effort;
use report::Report;
use rivals::Rivals;
use std::{cell::OnceCell, path::PathBuf};

/// The section that `bench/tpu_sync/run.sh` prints: it needs a checkout of tpu-sync, and is kept.
const BESIDE_TPU_SYNC: &str = "Beside tpu-sync";

/// Measures tilewise and its rivals
#[derive(Parser)]
struct Args {
    /// Sections to measure [default: everything]
    sections: Vec<Section>,
    /// A Python interpreter with the rivals
    #[arg(long, required_unless_present = "audit_once")]
    python: Option<PathBuf>,
    /// A Python interpreter with the package
    #[arg(long)]
    package_python: Option<PathBuf>,
    /// The file to write the tables to
    #[arg(long, required_unless_present = "audit_once")]
    out: Option<PathBuf>,
    /// Smaller inputs and fewer rounds, to test that everything runs
    #[arg(long)]
    quick: bool,
    /// The `tilewise` command
    #[arg(long)]
    tilewise: Option<PathBuf>,
    /// Audit this file and print the memory that took, for a measurement in a process of its own
    #[arg(long, hide = true)]
    audit_once: Option<PathBuf>,
}

/// A section of the results.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Reading, printing and comparing shapes
    Shapes,
    /// Offsets in bulk
    Offsets,
    /// Reading HLO text
    Hlo,
    /// Audits of real programs
    Programs,
    /// Converting buffers between layouts
    Relayout,
    /// The relayout engine with each of its mechanisms left out
    Ablation,
    /// Converting buffers from C
    CLibrary,
    /// The Python package
    Package,
    /// From a command to its end
    Start,
}

impl Section {
    fn title(self) -> &'static str {
        match self {
            Self::Shapes => "Shapes",
            Self::Offsets => "Offsets in bulk",
            Self::Hlo => "HLO text",
            Self::Programs => "Real programs",
            Self::Relayout => "Relayout",
            Self::Ablation => "Ablation",
            Self::CLibrary => "The C library",
            Self::Package => "The Python package",
            Self::Start => "Start",
        }
    }

    /// Measures the section. `rivals` starts the Python rivals, for the sections that have some.
    fn measure<'a>(
        self,
        effort: &Effort,
        rivals: impl FnOnce() -> anyhow::Result<&'a Rivals>,
        args: &Args,
    ) -> anyhow::Result<Report> {
        let alone = || Report::new(self.title(), "");
        let package = args.package_python.as_deref();
        let beside = |rivals: &Rivals| Report::new(self.title(), rivals.versions());
        match self {
            Self::Shapes => alone().filled(|report| {
                shapes::run(effort, report)?;
                bitcasts::run(effort, report)
            }),
            Self::Ablation => alone().filled(|report| relayout::ablate::run(effort, report)),
            Self::CLibrary => alone().filled(|report| relayout::c_library::run(effort, report)),
            Self::Programs => alone().filled(|report| programs::run(effort, report)),
            Self::Package => alone().filled(|report| package::run(effort, package, report)),
            Self::Start => alone().filled(|report| {
                let tilewise = args.tilewise.as_deref().context("--tilewise names no command")?;
                start::run(effort, tilewise, package.context("--package-python names no interpreter")?, report)
            }),
            Self::Offsets | Self::Hlo | Self::Relayout => {
                let rivals = rivals()?;
                beside(rivals).filled(|report| match self {
                    Self::Offsets => offsets::run(effort, rivals, report),
                    Self::Hlo => hlo::run(effort, rivals, report),
                    _ => relayout::run(effort, rivals, report),
                })
            }
        }
    }
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(file) = args.audit_once {
        return hlo::audit_once(&file);
    }
    let (python, out) = args.python.clone().zip(args.out.clone()).unwrap_or_default();
    let effort = Effort::new(args.quick);
    let started = OnceCell::new();
    let rivals = || match started.get() {
        Some(rivals) => Ok(rivals),
        None => Rivals::start(&python).map(|rivals| started.get_or_init(|| rivals)),
    };
    let all = Section::value_variants();
    for section in if args.sections.is_empty() { all } else { &args.sections } {
        let titles: Vec<&str> = all.iter().map(|section| section.title()).chain([BESIDE_TPU_SYNC]).collect();
        section.measure(&effort, rivals, &args)?.write(&out, &titles)?;
    }
    Ok(())
}
