//! Generated shapes, answered by tilewise and by the XLA inside jaxlib, and every disagreement accounted for.

mod generate;
mod judge;
mod ledger;
mod xla;

use clap::Parser;
use generate::Case;
use judge::Tally;
use std::{ops::Range, path::PathBuf, thread, time::Instant};
use tilewise::{Error, Shape};
use xla::Question;

const HEADER: &str = "\
# Where live XLA and tilewise differ

Written by `cargo xtask conformance > conformance/LEDGER.md`; a disagreement of no class below fails that command.

*Accepts*: the parser takes the text; *does not validate*: `ShapeUtil::ValidateShape` then refuses the shape. Where both accept, text, text
without layout and proto bytes are the same, and each reads what the other wrote as the same shape. *Equal*, *unequal*: what both say of
two texts' shapes. In the column of tilewise, a name is the error's kind.";

/// Compares tilewise with live XLA. The ledger goes to standard output, as Markdown; what is unexpected, to standard error.
#[derive(Parser)]
struct Options {
    /// A Python interpreter that has the jaxlib of requirements.txt
    #[arg(long)]
    python: PathBuf,
    /// How many shapes to generate
    #[arg(long, default_value_t = 100_000)]
    shapes: u64,
    /// Another seed gives other shapes
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

fn main() -> anyhow::Result<()> {
    let options = &Options::parse();
    let start = Instant::now();
    let workers = thread::available_parallelism()?.get() as u64;
    let share = |worker| options.shapes * worker / workers..options.shapes * (worker + 1) / workers;
    let tally = thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(share).map(|numbers| scope.spawn(|| run(options, numbers))).collect();
        let tallies = running.into_iter().map(|worker| worker.join().expect("workers do not panic"));
        tallies.reduce(|a, b| Ok(a?.merge(b?))).unwrap_or_else(|| Ok(Tally::default()))
    })?;
    println!("{HEADER}\n");
    println!("{} shapes of seed {}, jaxlib {}:\n", options.shapes, options.seed, xla::VERSION);
    print!("{}", tally.tables());
    eprintln!("compared in {:.0} s", start.elapsed().as_secs_f64());
    tally.finish()
}

fn run(options: &Options, numbers: Range<u64>) -> anyhow::Result<Tally> {
    let cases: Vec<Case> = numbers.map(|number| Case::new(options.seed, number)).collect();
    let read: Vec<Result<Shape, Error>> = cases.iter().map(|case| case.text.parse()).collect();
    let questions: Vec<_> = cases.iter().zip(&read).map(|(case, shape)| Question::new(case, shape)).collect();
    let answers = xla::ask(&options.python, &questions)?;
    let mut tally = Tally::default();
    for ((case, shape), answer) in cases.iter().zip(&read).zip(&answers) {
        tally.judge(case, shape, answer);
    }
    Ok(tally)
}
