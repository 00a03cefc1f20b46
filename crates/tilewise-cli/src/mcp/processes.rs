//! Processes that run the Python package, and with it the user's program: at most two at a time. Each is killed with
//! all its children when its time is up, when the client cancels the request, and when the server ends.
//!
//! A program may print anything, so the package answers through a pipe of its own, one JSON value a line. The pipe is
//! passed as standard input, the one stream that nothing writes to before the package has moved it away. When the
//! server stops reading the pipe, the package ends.

use super::{Access, Refusal};
use crate::commands::python;
use serde::Deserialize;
use serde_json::Value;
use std::{
    io::{self, ErrorKind, Read},
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};
use tilewise_audit::Failure;
use tokio::{
    process::{Child, Command},
    sync::{Semaphore, oneshot},
};

/// Maximum number of processes at once: each compiler takes a core and a GB.
const AT_ONCE: usize = 2;

/// Bytes kept of a program's prints.
const PRINTED: usize = 64 << 10;

/// Bytes kept of an answer. A search has a line for each size that was tried.
const ANSWERED: usize = 64 << 20;

/// Time to wait for a pipe that is held open by a process that left the group.
const LEFT_RUNNING: Duration = Duration::from_secs(1);

/// Starts the package, [`AT_ONCE`] times at once at most.
#[derive(Clone)]
pub(super) struct Processes(Arc<Semaphore>);

/// The package's answers, and the program's prints meanwhile.
pub(super) struct Answered {
    pub(super) values: Vec<Value>,
    pub(super) printed: String,
}

/// A line of the pipe, written by `tilewise/_served.py`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Answer(Value),
    Error(Value),
}

impl Processes {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }

    /// The answer of the package's command line. The time limit is for its run, without the wait for other runs.
    pub(super) async fn answer(&self, arguments: &[String], access: &Access) -> Result<Answered, Refusal> {
        let _permit = self.0.acquire().await;
        let limit = access.compile_limit();
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => python::missing(&arguments[0]),
            _ => Failure::new("io", format!("can't run Python: {error}")),
        };
        let ran = tokio::time::timeout(limit, run(arguments)).await.map_err(|_| {
            let help = "start it with a larger `--compile-limit`, or run `tilewise` on the program";
            Failure::new("too_long", format!("not done after {} seconds", limit.as_secs())).with_help(help)
        })?;
        let Ran { status, answers, printed } = ran.map_err(failed)?;
        if printed.contains("No module named tilewise") {
            return Err(python::missing(&arguments[0]).into());
        }
        let mut values = Vec::new();
        for line in answers.lines() {
            match serde_json::from_str(line) {
                Ok(Line::Answer(value)) => values.push(value),
                Ok(Line::Error(error)) => return Err(Refusal::of_package(error, printed)),
                Err(_) => return Err(Refusal::of_program(Failure::new("compiler", "the answer is cut off"), printed)),
            }
        }
        if values.is_empty() {
            let failure = Failure::new("compiler", format!("the Python package ended without an answer: {status}"));
            return Err(Refusal::of_program(failure, printed));
        }
        Ok(Answered { values, printed })
    }
}

struct Ran {
    status: ExitStatus,
    answers: String,
    printed: String,
}

async fn run(arguments: &[String]) -> io::Result<Ran> {
    let (answers, for_answers) = io::pipe()?;
    let (printed, for_prints) = io::pipe()?;
    let mut command = Command::from(python::command("tilewise._served"));
    command.args(arguments).stdin(for_answers).stdout(for_prints.try_clone()?).stderr(for_prints).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut group = Group::of(command.spawn()?);
    // The command holds the pipes' other ends.
    drop(command);
    let (answers, printed) = (Reader::of(answers, ANSWERED), Reader::of(printed, PRINTED));
    let status = group.process.wait().await?;
    drop(group);
    Ok(Ran { status, answers: answers.text().await, printed: printed.text().await })
}

/// Reads a pipe to its end, so that the writer never waits, and keeps the first bytes.
struct Reader {
    kept: Arc<Mutex<Vec<u8>>>,
    end: oneshot::Receiver<()>,
}

impl Reader {
    fn of(mut pipe: io::PipeReader, most: usize) -> Self {
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let (at_end, end) = oneshot::channel();
        let into = kept.clone();
        thread::spawn(move || {
            let mut piece = [0; 1 << 14];
            while let Ok(length @ 1..) = pipe.read(&mut piece) {
                let mut into = into.lock().unwrap_or_else(PoisonError::into_inner);
                let free = most - into.len();
                into.extend_from_slice(&piece[..length.min(free)]);
            }
            // The receiver may be gone.
            _ = at_end.send(());
        });
        Self { kept, end }
    }

    /// The kept text, once the pipe is closed or after [`LEFT_RUNNING`]: a program may have left a process running that
    /// holds the pipe.
    async fn text(self) -> String {
        _ = tokio::time::timeout(LEFT_RUNNING, self.end).await;
        String::from_utf8_lossy(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// A process and its children, killed on drop.
struct Group {
    process: Child,
    #[cfg(unix)]
    number: Option<rustix::process::Pid>,
}

impl Group {
    fn of(process: Child) -> Self {
        Self {
            #[cfg(unix)]
            number: process.id().and_then(|number| rustix::process::Pid::from_raw(number.cast_signed())),
            process,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(number) = self.number {
            // While the package's watcher is in the group, the group's number can't be another's.
            _ = rustix::process::kill_process_group(number, rustix::process::Signal::KILL);
        }
        _ = self.process.start_kill();
    }
}
