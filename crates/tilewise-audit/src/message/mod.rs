//! A message: read from a log, with the sizes of its arrays.

mod allocation;
mod log;

pub use allocation::Allocation;
pub(crate) use allocation::{Listing, Tiles};
pub use log::{decode_log, read_log, read_stream};
