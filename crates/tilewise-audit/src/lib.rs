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

mod advice;
mod copies;
pub mod dump;
mod explain;
mod failure;
#[cfg(feature = "serde")]
mod json_line;
mod message;
mod program;
mod report;
#[cfg(feature = "serde")]
mod serialize;
pub mod table;

pub mod recommendation {
    //! What to change, and what that frees: one type, whatever it follows from.

    pub use crate::advice::{AdvisedArray, Change, Recommendation, Saving, Snippet, Target};
}

pub use advice::{CopyEnd, CopyEndKind, CopyReason, Recommendation};
pub use copies::{CopyClass, CopyLine, CopyRow, copies_by_line};
pub use dump::{AssignmentReport, AssignmentRow, AssignmentSpace};
pub use explain::{Answer, Explanation, explain};
pub use failure::Failure;
#[cfg(feature = "serde")]
pub use json_line::JsonLine;
pub use message::{Allocation, decode_log, read_log, read_stream};
pub use program::{
    Content, Program, SourceLine, build_in_name, bytes_in_words, causes, generation_in_name, infer_generation,
    infer_machine, size_in_words,
};
pub use report::{
    Agreement, AuditOptions, BufferRow, CopyChange, Diff, KernelRow, MemoryBounds, OwnerChange, Owners, Pass, PeakRow,
    PlanPiece, PlanRow, Report, ReportView, Resident, SpacePeak, SpaceTotal, Timeline, TimelinePiece, ViewOptions,
    Warning, Work, audit, audit_with,
};
pub use tilewise_memory::{Error as PlanError, Machine, MemoryPlan, Role, UnknownMachine};
