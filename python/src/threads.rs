//! How many threads a call uses.

use std::{num::NonZero, thread};

/// As many threads as were asked for and the machine runs at once.
pub(crate) fn available(asked: usize) -> usize {
    asked.clamp(1, thread::available_parallelism().map_or(1, NonZero::get))
}
