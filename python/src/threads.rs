//! How many threads a call uses, and calls that Ctrl-C ends.

use pyo3::prelude::*;
use std::{
    num::NonZero,
    panic,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

/// The requested number of threads, but at least 1 and at most what the machine runs in parallel.
pub(crate) fn available(asked: usize) -> usize {
    asked.clamp(1, thread::available_parallelism().map_or(1, NonZero::get))
}

/// The result of `work`, which runs without the GIL on a thread of its own, so that a signal ends the call.
///
/// If a signal handler raises, the work continues on its thread, and its result is dropped.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    /// Shorter than a delay that people notice.
    const PATIENCE: Duration = Duration::from_millis(50);
    let (sender, mut receiver) = mpsc::channel();
    // After a signal, the receiver is gone.
    let worker = thread::Builder::new().spawn(move || drop(sender.send(work())))?;
    loop {
        let (returned, received) = py.detach(move || {
            let received = receiver.recv_timeout(PATIENCE);
            (receiver, received)
        });
        receiver = returned;
        match received {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match worker.join() {
        Err(payload) => panic::resume_unwind(payload),
        Ok(()) => Err(pyo3::exceptions::PyRuntimeError::new_err("the worker thread ended without a result")),
    }
}
