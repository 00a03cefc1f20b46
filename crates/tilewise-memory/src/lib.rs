//! What a compiled TPU program holds in memory, when, and where: to the byte, from its HLO text alone.
//!
//! A [`MemoryPlan`] is worked out as the TPU compiler does after scheduling: which values share a buffer, how long each
//! lives, what is packed where. Its totals are those of `memory_analysis()`.
//!
//! ```
//! use tilewise::tpu::Generation;
//! use tilewise_hlo::Module;
//! use tilewise_memory::{MemoryPlan, PlanOptions};
//!
//! let module = Module::parse("\
//! HloModule m, is_scheduled=true
//!
//! ENTRY %main (x: f32[1024,1024]) -> f32[1024,1024] {
//!   %x = f32[1024,1024]{1,0:T(8,128)} parameter(0)
//!   %a = f32[1024,1024]{1,0:T(8,128)} negate(%x)
//!   %b = f32[1024,1024]{1,0:T(8,128)} dot(%a, %a)
//!   ROOT %c = f32[1024,1024]{1,0:T(8,128)} dot(%b, %a)
//! }
//! ")?;
//! let plan = MemoryPlan::new(&module, &PlanOptions::new(Generation::V5e))?;
//! assert_eq!((plan.argument_bytes, plan.output_bytes, plan.temporary_bytes()), (4 << 20, 4 << 20, 8 << 20));
//!
//! let hbm = plan.space(0).expect("a plan has its default memory");
//! let peak = hbm.peak.as_ref().expect("two temporaries");
//! assert_eq!(module.instruction(peak.instruction).unwrap().name(), "b");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
mod buffers;
mod error;
mod heap;
mod in_place;
mod plan;
mod planner;
mod sharing;
mod size;
mod storage;
mod timeline;

pub use assign::Role;
pub use error::Error;
pub use heap::Packing;
pub use plan::{AssignedValue, LiveBuffer, MemoryPlan, Peak, PlanOptions, SpacePlan};
pub use planner::Planner;
