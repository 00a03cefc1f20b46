//! Checks that run one after another, and their results.

use anyhow::{Context, bail};
use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, IsTerminal, Read, Write},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};
use xshell::Cmd;

#[derive(Default)]
pub(crate) struct Checks {
    done: Vec<Done>,
    skipped: Vec<(&'static str, &'static str)>,
}

struct Done {
    name: &'static str,
    /// The output about the failure, if it failed.
    failure: Option<Vec<String>>,
    time: Duration,
}

impl Checks {
    pub(crate) fn run(&mut self, name: &'static str, command: Cmd<'_>) {
        eprintln!("\n== {name}: {command}");
        let start = Instant::now();
        let failure = run(command.into()).unwrap_or_else(|error| Some(vec![format!("{error:#}")]));
        self.done.push(Done { name, failure, time: start.elapsed() });
    }

    /// Makes something that later checks need; `None` if that fails.
    pub(crate) fn make<T>(&mut self, name: &'static str, make: impl FnOnce() -> anyhow::Result<T>) -> Option<T> {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let made = make().inspect_err(|error| eprintln!("{error:#}"));
        let failure = made.as_ref().err().map(|error| vec![format!("{error:#}")]);
        self.done.push(Done { name, failure, time: start.elapsed() });
        made.ok()
    }

    /// Leaves a check out that this machine can't run.
    pub(crate) fn skip(&mut self, name: &'static str, why: &'static str) {
        eprintln!("\n== {name}: skipped: {why}");
        self.skipped.push((name, why));
    }

    /// Prints the table of checks, and after it the failures once more: a log that is cut shows its end.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        eprintln!();
        for Done { name, failure, time } in &self.done {
            eprintln!("{} {name} ({:.0} s)", if failure.is_none() { "passed" } else { "FAILED" }, time.as_secs_f64());
        }
        for (name, why) in &self.skipped {
            eprintln!("skipped {name}: {why}");
        }
        let failed: Vec<_> = self.done.iter().filter_map(|done| Some((done.name, done.failure.as_ref()?))).collect();
        for (name, lines) in &failed {
            eprintln!("\n== {name} failed:");
            lines.iter().for_each(|line| eprintln!("{line}"));
        }
        if !failed.is_empty() {
            bail!("{} of {} checks failed", failed.len(), self.done.len());
        }
        eprintln!("all {} checks passed", self.done.len());
        Ok(())
    }
}

/// Runs a command and passes its output on as it comes. Returns the output about its failure, if it fails.
fn run(mut command: Command) -> anyhow::Result<Option<Vec<String>>> {
    if io::stderr().is_terminal() {
        // Behind a pipe, tools would print without colours.
        command.envs([("CARGO_TERM_COLOR", "always"), ("FORCE_COLOR", "1")]);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("it doesn't start")?;
    let (stdout, stderr) = (child.stdout.take().context("no output")?, child.stderr.take().context("no errors")?);
    let told = Mutex::new(Told::default());
    let passed = thread::scope(|scope| {
        scope.spawn(|| pass_on(stdout, io::stdout(), &told));
        scope.spawn(|| pass_on(stderr, io::stderr(), &told));
        child.wait()
    })?;
    Ok((!passed.success()).then(|| told.into_inner().unwrap_or_else(PoisonError::into_inner).lines()))
}

fn pass_on(from: impl Read, mut to: impl Write, told: &Mutex<Told>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        // The reader may be gone; the check goes on.
        to.write_all(&line).ok();
        told.lock().unwrap_or_else(PoisonError::into_inner).push(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

/// Parts of a command's output: lines about a failure, and its end.
#[derive(Default)]
struct Told {
    failures: Vec<String>,
    end: VecDeque<String>,
}

impl Told {
    const FAILURES: usize = 30;
    const END: usize = 20;
    /// The words by which cargo, Rust's tests, pytest and Playwright report a failure or name it.
    const MARKS: [&str; 7] = ["error", "Error:", "panicked at", "FAILED", "failures:", "✘", " › "];

    fn push(&mut self, line: &str) {
        self.end.push_back(line.into());
        if self.end.len() > Self::END
            && let Some(line) = self.end.pop_front()
            && self.failures.len() < Self::FAILURES
            && Self::MARKS.iter().any(|mark| line.contains(mark))
            && !line.contains('✓')
        {
            self.failures.push(line);
        }
    }

    fn lines(self) -> Vec<String> {
        self.failures.into_iter().chain(self.end).collect()
    }
}
