//! The rivals in Python: one process answers each line, a request, with a time in seconds.

use anyhow::{Context, bail};
use std::{
    cell::RefCell,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

pub(crate) struct Rivals {
    process: RefCell<Process>,
    versions: String,
}

struct Process {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Rivals {
    pub(crate) fn start(python: &Path) -> anyhow::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the rivals' Python does not start")?;
        let requests = child.stdin.take().context("no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut process = Process { child, requests, answers };
        let versions = process.read()?;
        Ok(Self { process: RefCell::new(process), versions })
    }

    /// The rivals and their versions, as a text.
    pub(crate) fn versions(&self) -> &str {
        &self.versions
    }

    /// The rivals' answer.
    pub(crate) fn ask(&self, request: &str) -> anyhow::Result<String> {
        let mut process = self.process.borrow_mut();
        writeln!(process.requests, "{request}")?;
        process.requests.flush()?;
        process.read()
    }

    /// The time that a rival reports for its work.
    pub(crate) fn time(&self, request: &str) -> anyhow::Result<Duration> {
        let answer = self.ask(request)?;
        let seconds = answer.parse().with_context(|| format!("the rival answered {answer:?} to {request:?}"))?;
        Ok(Duration::from_secs_f64(seconds))
    }
}

impl Process {
    fn read(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("the rivals' Python ended");
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
