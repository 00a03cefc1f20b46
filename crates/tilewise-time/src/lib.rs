#![doc = include_str!("../README.md")]
//!
//! # How it is worked out
//!
//! ```text
//! dataflow ─► calls ─► contents ─► walk ─► executions ─► time
//!             which    what each   one     how often     of a run
//!             compu-   fusion      run of  each
//!             tations  reads,      each    computation
//!             run      computes    compu-  runs
//!                                  tation
//! ```
//!
//! `cycles` reads the compiler's figures, `rates` has the peak rates of TPUs, `traffic` and `flops` bound operations
//! without a figure of the compiler, `channels` overlap asynchronous ones. Each computation is walked once however
//! often it is called; nothing recurses; counts saturate.

#![forbid(unsafe_code)]

mod calls;
mod channels;
mod collective;
mod contents;
mod cycles;
mod estimate;
mod flops;
mod kind;
mod rates;
mod time;
mod traffic;
mod walk;

pub use estimate::Estimate;
pub use flops::flops;
pub use kind::{Basis, Kind};
pub use rates::{Cores, Rates};
pub use time::{LoopRow, NoTime, Roof, Row, Time, Unpriced};
