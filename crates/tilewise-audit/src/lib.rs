#![doc = include_str!("../README.md")]
//!
//! # What is where
//!
//! - [`audit`] makes a [`Report`] of a module: [`BufferRow`]s, [`CopyRow`]s, a [`SpaceTotal`] for each memory space,
//!   and the [`MemoryBounds`] that say whether it fits.
//! - [`Content::read`] finds [`Program`]s in the bytes of a file, or the compiler's plan of one, of which an
//!   [`AssignmentReport`] tells; a [`Failure`] says why there are none.
//! - The module [`dump`] says what a file is by its first bytes, and which of a dump's files hold final programs and the
//!   compiler's plans of them.
//! - [`Report::advice`] says what to change in the program: [`Recommendation`]s, priced by planning its memory again.
//!   [`Report::notes`] says what fills its memory, by kind. [`Report::copy_reasons`] says why it has its copies, and which of them another layout at the interface removes.
//! - [`explain`] makes an [`Explanation`] of an out-of-memory message: an [`Allocation`] for each of its entries, and
//!   what to do, as [`Recommendation`]s.
//! - [`causes`] says in words what pads an array.
//! - A [`ReportView`] is what is shown of a report. Rows are [`table`] rows: their fields are spelled once, for JSON,
//!   CSV and data frames.
//!
//! # Features
//!
//! | feature | default | what |
//! |---|---|---|
//! | `serde` | no | [`ReportView`], [`Explanation`] and what they hold serialise as the command line's JSON; `JsonLine` |

#![forbid(unsafe_code)]

mod agreement;
mod assignment;
mod audit;
mod buffers;
mod byte_counts;
mod causes;
mod content;
mod copies;
mod copy_reasons;
mod diff;
pub mod dump;
mod elementwise;
mod explain;
mod failure;
mod findings;

#[cfg(feature = "serde")]
mod json_line;
mod kept;
mod kernels;
mod layers;
mod machine;
mod message_model;
mod notes;
mod origin;
mod passes;
mod peak;
mod plan_row;
mod pricing;
mod program_model;
pub mod recommendation;
mod report;
mod rules;
#[cfg(feature = "serde")]
mod serialize;
mod sizing;
mod snippet;
pub mod table;
mod timeline;
mod view;
mod work;

pub use agreement::Agreement;
pub use assignment::{AssignmentReport, AssignmentRow, AssignmentSpace};
pub use audit::{AuditOptions, audit, audit_with};
pub use byte_counts::{bytes_in_words, size_in_words};
pub use causes::causes;
pub use content::{Content, Program};
pub use copies::{CopyClass, CopyLine, CopyRow, copies_by_line};
pub use copy_reasons::{CopyEnd, CopyEndKind, CopyReason};
pub use diff::{CopyChange, Diff, OwnerChange};
pub use explain::{Allocation, Answer, Explanation, decode_log, explain, read_log, read_stream};
pub use failure::Failure;
#[cfg(feature = "serde")]
pub use json_line::JsonLine;
pub use kernels::KernelRow;
pub use machine::{build_in_name, generation_in_name, infer_generation, infer_machine};
pub use origin::SourceLine;
pub use peak::{PeakRow, SpacePeak};
pub use plan_row::{PlanPiece, PlanRow};
pub use recommendation::Recommendation;
pub use report::{BufferRow, MemoryBounds, Report, SpaceTotal, Warning};
pub use tilewise_memory::{Error as PlanError, Machine, MemoryPlan, Role, UnknownMachine};
pub use timeline::{Owners, Pass, Resident, Timeline, TimelinePiece};
pub use view::{ReportView, ViewOptions};
pub use work::Work;
