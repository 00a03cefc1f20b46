//! Compares tilewise with the XLA inside jaxlib on generated shapes, and gives the reason of every disagreement.

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

Written by `cargo xtask conformance > conformance/LEDGER.md`, which fails if a disagreement is in no class below.

*Accepts*: the parser reads the text; *does not validate*: `ShapeUtil::ValidateShape` then refuses the shape. If both
accept, then text, text without layout and proto bytes are the same, and each reads the other's output as the same
shape. *Equal*, *unequal*: the result of `==` on the shapes of two texts. In the column of tilewise, a name is the kind
of error.";

/// Compares tilewise with live XLA. Prints the ledger in Markdown, and unexpected disagreements on standard error
#[derive(Parser)]
struct Options {
    /// A Python interpreter with the jaxlib of requirements.txt
    #[arg(long)]
    python: PathBuf,
    /// How many shapes to generate
    #[arg(long, default_value_t = 100_000)]
    shapes: u64,
    /// The random generator's seed
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
    println!("{} shapes of seed {}, jaxlib {}:\n", options.shapes, options.seed, xla::version(&options.python)?);
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
