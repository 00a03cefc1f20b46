//! Why a TPU ran out of memory, and what to do about it.

mod advice;
mod answers;
mod elsewhere;
mod explanation;
mod holders;
mod kernel;
mod library;
mod lowered;
mod mismatch;
mod mosaic;
mod run_time;
mod settings;
mod software;
mod torch;

pub use explanation::{Explanation, explain};
pub use mismatch::{Mismatch, MismatchCause};
