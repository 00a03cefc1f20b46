//! `tilewise audit`: what compiled programs hold at their peak.

mod against;
mod dump;
mod parallel;
mod programs;
mod sink;
mod sources;
mod together;

use crate::{
    commands::python::Comparing,
    input::InputArgs,
    output::{Format, Output, Status, say},
    values::{CopyLimit, DrawTheme, Limit, parse_generation, parse_size},
};
use clap::ValueEnum;
pub(crate) use dump::files_of;
pub(crate) use programs::Limits;
use programs::{Input, InputResult};
use sink::Sink;
pub use sources::Sources;
use std::{
    io,
    path::{Path, PathBuf},
};
use tilewise::tpu::{Generation, Libtpu, memory_space_name};
use tilewise_audit::{AssignmentReport, Audit, Content, Failure, Machine, PagesOf};
use tilewise_report::{AuditOutput, Doubt, Headline, Item, LISTED, Quotes, Verdict, memory_of, warning};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  tilewise audit step.hlo --tpu v5e
  tilewise audit dump/ -o report.html
  tilewise audit after.hlo --against before.hlo
  python train.py | tilewise audit -

The exit status is 1 if a program does not fit --tpu or --hbm-limit or tilewise can't tell, and if
the limit of --fail-above or --fail-on-copies is exceeded; it is 2 if a file can't be read.")]
pub(crate) struct Args {
    /// Compiled programs: HLO text, protos, profiles (.xplane.pb), buffer assignments, plain or gzip, or a folder of them;
    /// - reads one from standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Write a file: .svg or .png draws the memory plan, .html is a page with the whole report
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Memory space to draw: hbm, vmem, … or its number
    #[arg(long, default_value = "hbm", value_name = "SPACE", value_parser = parse_memory_space, requires = "out")]
    memory_space: u8,
    /// Colours of the picture, for a light or dark background
    #[arg(long, value_enum, default_value_t, value_name = "THEME", requires = "out")]
    theme: DrawTheme,
    /// Audit the program of this name in a profile: jit_step, or jit_step(6)
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// List every buffer, not only those with the most padding
    #[arg(long)]
    all: bool,
    /// Show where the time of a run goes, estimated from the compiler's own cycle counts: by kind, line and module
    #[arg(long, conflicts_with = "against")]
    time: bool,
    /// TPU generation that the program must fit: v2 v3 v4 v5e v5p v6e v7x
    #[arg(long, value_name = "TPU", value_parser = parse_generation)]
    tpu: Option<Generation>,
    /// Machine that the program is compiled for, if its text does not name it: tpu:v5e and other generations, gpu, gpu:a100,
    /// gpu:a100-40gb, gpu:h100, gpu:h200, gpu:b200, gpu:b300, cpu. Naming a GPU model reports whether the program fits; the exit
    /// status is unaffected
    #[arg(long, value_name = "MACHINE", conflicts_with = "tpu")]
    machine: Option<Machine>,
    /// Share of the GPU's memory that JAX's pool takes, as in XLA_PYTHON_CLIENT_MEM_FRACTION [default: 0.75]
    #[arg(long, value_name = "SHARE", value_parser = parse_share, requires = "machine", conflicts_with = "hbm_limit")]
    memory_fraction: Option<f64>,
    /// Exit with status 1 if the padding in HBM at the peak exceeds a share of the live bytes (10%) or a size (1GiB)
    #[arg(long, value_name = "LIMIT")]
    fail_above: Option<Limit>,
    /// Exit with status 1 if the program copies more than SIZE into another order or again, transfers between memories not
    /// counted; with into=KERNEL, of what kernels of that name read and write
    #[arg(long, value_name = "SIZE[,into=KERNEL]")]
    fail_on_copies: Option<CopyLimit>,
    /// HBM that the program must fit, such as 16GiB [default: that of --tpu]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    hbm_limit: Option<u64>,
    /// Version of libtpu, such as 0.0.48: of a text the one that compiled it; of FILE.py:FACTORY (Python package) the one that
    /// compiles it, installed from PyPI the first time [default: what the text says, or the installed one]
    #[arg(long, value_name = "VERSION", value_parser = parse_libtpu)]
    libtpu: Option<Libtpu>,
    /// Compare the memory plan with a lock's or another program's; -o PAGE.html writes the comparison of two programs as a page.
    /// Either may be FILE.py:FACTORY, and libtpu=0.0.52 is the same compiled by that version. The exit status is 1 if the program is
    /// worse, 3 if another compiler than the lock's made it
    #[arg(long, value_name = "PLAN.lock|PROGRAM|libtpu=VERSION")]
    against: Option<PathBuf>,
    /// Sum the programs up as loaded on one device at once, such as a server's: arrays of one name are held once. It reports what
    /// the whole takes of HBM, how many pages of a cache fit, and what makes room
    #[arg(long, conflicts_with_all = ["against", "time"])]
    together: bool,
    /// With --together: the argument that is the cache, or the tree of its arrays, and the dimension that counts pages [default: the
    /// donated arrays of all programs, dimension 0]
    #[arg(long, value_name = "ARGUMENT[:DIMENSION]", requires = "together", value_parser = parse_pages)]
    pages: Option<PagesOf>,
    /// Of FILE.py:FACTORY (Python package): make every change that the report advises, in memory, and compile the program with it; of
    /// a program that doesn't fit, the changes up to the one it fits with are made anyway
    #[arg(long, conflicts_with_all = ["against", "together"])]
    check: bool,
    #[command(flatten, next_help_heading = "With --against")]
    comparing: Comparing,
    /// Quote lines of source from files below this folder, and from no others
    #[arg(long, value_name = "DIR", value_parser = parse_sources)]
    pub(crate) source: Option<Sources>,
    #[command(flatten)]
    input: InputArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: AuditFormat,
}

impl Args {
    /// How much is read.
    const fn limits(&self) -> Limits {
        Limits { file_bytes: self.input.max_input, ..Limits::NONE }
    }

    /// Whether something is asked that only a program answers, not a plan without one.
    const fn judges_programs(&self) -> bool {
        self.fail_above.is_some() || self.fail_on_copies.is_some()
    }
}

fn parse_sources(text: &str) -> Result<Sources, String> {
    Sources::at(text).map_err(|error| format!("`{text}` can't be read as a folder: {error}"))
}

fn parse_memory_space(text: &str) -> Result<u8, String> {
    let by_name = || (0..=u8::MAX).find(|space| memory_space_name(*space) == text);
    text.parse().ok().or_else(by_name).ok_or_else(|| format!("`{text}` isn't a memory space such as hbm or vmem"))
}

fn parse_libtpu(text: &str) -> Result<Libtpu, String> {
    text.parse().map_err(|_| format!("`{text}` isn't a version of libtpu such as 0.0.52"))
}

fn parse_pages(text: &str) -> Result<PagesOf, String> {
    text.parse().map_err(|failure: Failure| failure.message)
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| 0.0 < *share && *share <= 1.0);
    share.ok_or_else(|| format!("`{text}` isn't a share of the memory such as 0.9"))
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// Text for people
    #[default]
    Human,
    /// JSON Lines: one object per program
    Json,
    /// One row per buffer
    Csv,
    /// One row per buffer, as a Parquet file
    #[cfg(feature = "parquet")]
    Parquet,
    /// A page in one file, for a browser
    Html,
    /// A section per program, for a pull request or the summary of a job
    Markdown,
    /// Advice and failures at lines of the source, for code scanning
    Sarif,
    /// The same as workflow commands, for the log of a GitHub job
    Github,
    /// The memory plan as a trace, for Perfetto and chrome://tracing
    Trace,
    /// The memory plan as a snapshot (pickle), for pytorch.org/memory_viz
    MemoryViz,
}

impl From<AuditFormat> for Format {
    fn from(format: AuditFormat) -> Self {
        match format {
            AuditFormat::Json => Self::Json,
            _ => Self::Human,
        }
    }
}

pub(crate) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    let written_over = args.out.as_deref().and_then(|out| {
        let read = args.paths.iter().chain(&args.against);
        read.map(PathBuf::as_path).find(|path| is_same_file(path, out))
    });
    if let Some(path) = written_over {
        let message = format!("`{}` would be written over what is read", path.display());
        return output.failure("", Failure::new("usage", message).with_help("give `--out` another name"));
    }
    if let Some(machine) =
        args.machine.filter(|machine| args.memory_fraction.is_some() && machine.pool_bytes(1.0).is_none())
    {
        let message = format!("`--memory-fraction` is of a GPU whose memory is known, and `{machine}` isn't one");
        return output
            .failure("", Failure::new("usage", message).with_help("name the model, such as `--machine gpu:h100`"));
    }
    if args.check {
        let message = "`--check` compiles changes of FILE.py:FACTORY; a text is compiled already";
        return output.failure("", Failure::new("usage", message));
    }
    if args.together {
        return together::run(args, output);
    }
    if let Some(before) = &args.against {
        return against::run(before, args, output);
    }
    let inputs = dump::inputs(&args.paths, args.module.as_deref(), &args.limits());
    let source = |input: &InputResult| match input {
        Ok(input) => input.path.to_string_lossy().into_owned().into(),
        Err((source, _)) => source.clone().into(),
    };
    let mut sink = match Sink::of(args, &inputs.iter().map(source).collect::<Vec<_>>()) {
        Ok(sink) => sink,
        Err(failure) => return output.failure("", failure),
    };
    let request = Request { args, tpu: args.tpu, takes_plans: sink.takes_plans() && !args.judges_programs() };
    sink.begin(output)?;
    parallel::each(
        &inputs,
        |input| input.as_ref().map_or(0, Input::size),
        |input| request.answer(input),
        |_, (source, found)| found.into_iter().try_for_each(|found| show(&source, found, args, &mut sink, output)),
    )?;
    sink.end(output)
}

/// Whether two paths lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let found = [one, other].map(std::fs::canonicalize);
    matches!(found, [Ok(one), Ok(other)] if one == other)
}

/// The contents of a file, or of a folder's files with final programs.
#[cfg(feature = "mcp")]
pub(crate) fn programs_in(path: &Path, module: Option<&str>, limits: &Limits) -> Vec<Result<Content, Failure>> {
    let inputs = dump::inputs(&[path.to_owned()], module, limits).into_iter();
    inputs.flat_map(|input| input.map_or_else(|(_, failure)| vec![Err(failure)], |input| input.contents())).collect()
}

/// The audit of a program or of a plan.
enum Found {
    Program(Box<AuditOutput>),
    /// A plan without its program.
    Plan(AssignmentReport),
}

/// The options for each file.
struct Request<'a> {
    args: &'a Args,
    /// The TPU that programs are for.
    tpu: Option<Generation>,
    /// Whether a plan without its program can be reported.
    takes_plans: bool,
}

impl Request<'_> {
    /// The file's name, and each program in it.
    fn answer(&self, input: &InputResult) -> (String, Vec<Result<Found, Failure>>) {
        match input {
            Ok(input) => {
                let contents = input.contents().into_iter();
                let found = contents.map(|content| content.and_then(|content| self.audit(content, input)));
                (input.path.to_string_lossy().into_owned(), found.collect())
            }
            Err((source, failure)) => (source.clone(), vec![Err(failure.clone())]),
        }
    }

    fn audit(&self, content: Content, input: &Input) -> Result<Found, Failure> {
        let (&Args { machine, memory_fraction, all, time: of_time, hbm_limit, .. }, tpu) = (self.args, self.tpu);
        let source = input.path.to_string_lossy();
        match content {
            Content::Program(program) => {
                let fits = match machine {
                    Some(machine) => program.for_machine(machine),
                    None if tpu.is_some() || self.args.judges_programs() => program.for_tpu(),
                    None => Ok(()),
                };
                fits.map_err(|failure| failure.in_file(&input.path))?;
                let asked = Audit::new(&program).machine(machine.or(tpu.map(Machine::Tpu))).source(&source);
                let asked = asked.libtpu(self.args.libtpu);
                let limit = hbm_limit.or_else(|| machine?.pool_bytes(memory_fraction?));
                let report = limit.map_or(asked, |limit| asked.limit(limit)).run();
                let sources = self.args.source.as_ref();
                let quotes =
                    sources.map(|sources| Quotes::read(&report, |file| sources.text(file))).unwrap_or_default();
                Ok(Found::Program(Box::new(AuditOutput { report, all, of_time, quotes })))
            }
            Content::BufferAssignment(assignment) if self.takes_plans => {
                let most = (!all).then_some(LISTED);
                Ok(Found::Plan(AssignmentReport::of(&assignment, &source, most)))
            }
            _ => {
                let message = "a buffer assignment has no shapes, source lines or padding; give its program";
                Err(Failure::new("no_program", message).in_file(&input.path))
            }
        }
    }
}

/// Shows a result, with its warnings and verdict on standard error.
fn show(
    source: &str,
    found: Result<Found, Failure>,
    args: &Args,
    sink: &mut Sink<'_>,
    output: &mut Output,
) -> io::Result<()> {
    let audited = match found {
        Ok(Found::Program(audited)) => audited,
        Ok(Found::Plan(report)) => {
            let held =
                report.memory_spaces.iter().find(|space| space.memory_space == 0).map_or(0, |hbm| hbm.total_bytes());
            let limit = args.hbm_limit.or(args.tpu.map(Generation::hbm_bytes));
            if let Some(limit) = limit.filter(|limit| held > *limit) {
                let machine = args.machine.unwrap_or(Machine::Tpu(Generation::V5e));
                let words = Verdict::DoesNotFit { missing: held - limit }.sentence(&memory_of(machine, limit));
                say(format!("{source}: {words}"));
                output.raise(Status::Flagged);
            }
            return output.item(source, Ok(Item(report)));
        }
        Err(failure) => return output.failure(source, failure),
    };
    judge(&audited, args, sink.has_headlines(), output);
    sink.write(&audited, output)
}

/// Prints a program's warnings and the reasons to flag it on standard error, without a misfit that its headline shows,
/// and raises the exit status if there is a reason.
fn judge(audited: &AuditOutput, args: &Args, has_headline: bool, output: &mut Output) {
    let source = &audited.report.source;
    for doubt in &audited.report.warnings {
        say(format!("warning: {source}: {}", warning(doubt)));
    }
    let bounds = &audited.report.memory_bounds;
    // `--machine` names the machine, not a limit.
    let limit = audited.report.limit().filter(|_| args.tpu.is_some() || args.hbm_limit.is_some());
    let misfit = limit.and_then(|limit| match Verdict::of(&audited.report, limit) {
        Verdict::Fits { .. } => None,
        _ => Some(Headline::of(&audited.report).sentence),
    });
    let doubt =
        Doubt::of(&audited.report).filter(|_| misfit.is_none() && !bounds.is_complete && args.judges_programs());
    let unknown = doubt.map(|doubt| format!("what it holds can't be known: {doubt}"));
    let excess = args.fail_above.and_then(|limit| limit.excess(audited.report.memory_space(0)));
    let copied = args.fail_on_copies.as_ref().and_then(|limit| limit.excess(&audited.report));
    if misfit.is_some() {
        output.raise(Status::Flagged);
    }
    for reason in [misfit.filter(|_| !has_headline), unknown, excess, copied].into_iter().flatten() {
        say(format!("{source}: {reason}"));
        output.raise(Status::Flagged);
    }
}
