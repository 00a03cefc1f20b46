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
//! [`tilewise_hlo::dataflow`] follows values, for any machine; `size` computes the bytes and memory space of each
//! position (`storage`), `in_place` finds results written into an operand, `timeline` holds the order of execution,
//! `buffers` joins values that must share memory, `assign` decides which buffers are packed, and `heap` packs them.
//! Everything is linear in the text but for sorting, and nothing recurses.
//!
//! The rules are those of libtpu 0.0.51, restated from XLA's sources and checked against its reports.

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
pub use error::{Error, ErrorKind};
pub use machine::{GpuModel, Machine, UnknownMachine};
pub use packing::Packing;
pub use plan::{AssignedValue, LiveBuffer, MemoryPlan, Peak, PlanOptions, SpacePlan};
pub use planner::Planner;
