//! How many threads a call uses.

use std::{num::NonZero, thread};

/// The requested number of threads, but at least 1 and at most what the machine runs in parallel.
pub(crate) fn available(asked: usize) -> usize {
    asked.clamp(1, thread::available_parallelism().map_or(1, NonZero::get))
}
