//! Why a TPU ran out of memory, and what to do about it.

mod advice;
mod answers;
mod explanation;
mod kernel;
mod run_time;

pub use answers::Answer;
pub use explanation::{Explanation, explain};
