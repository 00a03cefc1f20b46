//! Asks live XLA: child processes run `ask_xla.py`, and are started again after XLA crashes.

use crate::generate::Case;
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
};
use tilewise::{Error, Shape};

/// The versions of jaxlib that the ledger holds for, as pinned in `requirements.txt`.
const VERSIONS: [&str; 2] = ["0.12.0.1", "0.10.2"];

/// The version of an interpreter's jaxlib.
pub(crate) fn version(python: &Path) -> anyhow::Result<String> {
    let output = Command::new(python).args(["-c", "import jaxlib; print(jaxlib.__version__)"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A text, tilewise's print of its shape, and another text to compare it with.
#[derive(Serialize)]
pub(crate) struct Question<'a> {
    pub(crate) text: &'a str,
    pub(crate) canonical: Option<String>,
    pub(crate) other: Option<&'a str>,
}

impl<'a> Question<'a> {
    pub(crate) fn new(case: &'a Case, read: &Result<Shape, Error>) -> Self {
        let canonical = read.as_ref().ok().map(Shape::to_string);
        Self { text: &case.text, canonical, other: case.other.as_deref() }
    }
}

/// XLA's answer to a text.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The parser reads it.
    Accepted(Accepted),
    /// The parser refuses it, with this message.
    Refused(String),
    /// The process crashed with this signal.
    #[serde(skip)]
    Crashed(String),
}

impl Answer {
    /// XLA's message, if it refuses the text.
    pub(crate) fn message(&self) -> &str {
        if let Self::Refused(message) = self { message } else { "" }
    }
}

#[derive(Deserialize)]
pub(crate) struct Accepted {
    pub(crate) text: String,
    pub(crate) without_layout: String,
    /// In hex.
    pub(crate) proto: String,
    /// Whether `ShapeUtil::ValidateShape` passes.
    pub(crate) valid: bool,
    /// Tilewise's print, read and printed again by XLA.
    pub(crate) reprinted: Option<String>,
    /// `==` in both directions with the other shape; `None` if there is no other or XLA refuses it.
    pub(crate) equal: Option<[bool; 2]>,
    pub(crate) same_hash: Option<bool>,
}

/// One answer for each question.
pub(crate) fn ask(python: &Path, questions: &[Question<'_>]) -> anyhow::Result<Vec<Answer>> {
    let mut answers = Vec::with_capacity(questions.len());
    while answers.len() < questions.len() {
        answers.extend(ask_until_a_crash(python, &questions[answers.len()..])?);
    }
    Ok(answers)
}

/// All answers, or those up to and including a crash.
fn ask_until_a_crash(python: &Path, questions: &[Question<'_>]) -> anyhow::Result<Vec<Answer>> {
    let mut child = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/ask_xla.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} does not start", python.display()))?;
    let mut input = child.stdin.take().context("its input is a pipe")?;
    let mut output = BufReader::new(child.stdout.take().context("its output is a pipe")?).lines();

    let version = output.next().context("jaxlib does not load")??;
    if !VERSIONS.contains(&version.as_str()) {
        bail!("the ledger is for jaxlib {}, not {version}", VERSIONS.join(" and "));
    }
    let mut answers = thread::scope(|scope| {
        scope.spawn(move || {
            for question in questions {
                let Ok(mut line) = serde_json::to_vec(question) else { return };
                line.push(b'\n');
                // The process has crashed.
                if input.write_all(&line).is_err() {
                    return;
                }
            }
        });
        output.map(|line| Ok(serde_json::from_str(&line?)?)).collect::<anyhow::Result<Vec<Answer>>>()
    })?;
    let status = child.wait()?;
    if answers.len() < questions.len() {
        // Python's own exit status after an error.
        if status.code() == Some(1) {
            bail!("ask_xla.py failed on {:?}", questions[answers.len()].text);
        }
        // `signal: 6 (SIGABRT)`, and perhaps ` (core dumped)`
        let status = status.to_string();
        let signal = status.split(['(', ')']).nth(1).unwrap_or(&status);
        answers.push(Answer::Crashed(signal.to_owned()));
    }
    Ok(answers)
}
