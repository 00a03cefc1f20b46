#![doc = include_str!("../README.md")]
//!
//! # How it is worked out
//!
//! ```text
//! module ─► dataflow ─► storage ─► buffers ─► live ranges ─► assignment ─► heap ─► plan
//!           what each   what it    what must   when each     which have    where
//!           position    takes      lie         lives         memory of     each
//!           holds                  together                  their own     lies
//! ```
//!
//! [`tilewise_hlo::dataflow`] follows values, for any machine; `storage` says what each position takes on a TPU,
//! `in_place` knows the results that stay in an operand, `timeline` the order in which everything runs, `buffers` puts
//! together what must lie together, `assign` says what is packed, and `heap` packs it. Everything is linear in the text
//! but for sorting, and nothing recurses.
//!
//! The rules are those of libtpu 0.0.51, restated from XLA's sources and checked against what it reports.

#![forbid(unsafe_code)]

mod assign;
mod bound;
mod buffers;
mod compiler;
mod error;
mod heap;
mod in_place;
mod machine;
mod order;
mod packing;
mod plan;
mod planner;
mod rules;
mod sharing;
mod size;
mod storage;
mod timeline;

pub use assign::Role;
pub use bound::unshared_bytes;
pub use error::Error;
pub use machine::{GpuModel, Machine, UnknownMachine};
pub use packing::Packing;
pub use plan::{AssignedValue, LiveBuffer, MemoryPlan, Peak, PlanOptions, SpacePlan};
pub use planner::Planner;
