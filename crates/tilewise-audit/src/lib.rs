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
//! - [`Report::advice`] says what to change in the program: [`Advice`], priced by planning its memory again.
//! - [`explain`] makes an [`Explanation`] of an out-of-memory message: an [`Allocation`] for each of its entries, what
//!   fills the memory ([`BudgetStack`]), and what to do ([`MessageAdvice`]).
//! - [`causes`] says in words what pads an array; the module [`fix`] says what to
//!   hand over in place of an argument, and what that frees.
//! - A [`ReportView`] is what is shown of a report. Rows are [`TableRow`]s: their fields are spelled once, for JSON,
//!   CSV and data frames.
//!
//! # Features
//!
//! | feature | default | what |
//! |---|---|---|
//! | `serde` | no | [`ReportView`], [`Explanation`] and what they hold serialise as the command line's JSON; `JsonLine` |

#![forbid(unsafe_code)]

mod advice;
mod agreement;
mod assignment;
mod audit;
mod buffers;
mod causes;
mod content;
mod copies;
pub mod dump;
mod explain;
mod failure;
pub mod fix;
mod flow;
mod generation;
#[cfg(feature = "serde")]
mod json_line;
mod origin;
mod peak;
mod plan_row;
mod report;
#[cfg(feature = "serde")]
mod serialize;
mod sizing;
mod snippet;
mod table;
mod timeline;
mod view;
mod words;

pub use advice::{Advice, AdviceKind, AdviceTarget, CopyEnd, CopyEndKind, CopyFix, CopyReason};
pub use agreement::Agreement;
pub use assignment::{AssignmentReport, AssignmentRow, AssignmentSpace};
pub use audit::{AuditOptions, audit, audit_with};
pub use causes::causes;
pub use content::{Content, Program};
pub use copies::{CopyClass, CopyLine, CopyRow, copies_by_line};
pub use explain::{Allocation, BudgetPart, BudgetStack, Explanation, MessageAdvice, decode_log, explain};
pub use failure::Failure;
pub use generation::{generation_in_name, infer_generation};
#[cfg(feature = "serde")]
pub use json_line::JsonLine;
pub use origin::SourceLine;
pub use peak::{PeakRow, SpacePeak};
pub use plan_row::{PlanPiece, PlanRow};
pub use report::{BufferRow, MemoryBounds, Report, SpaceTotal, Warning};
pub use table::{Column, Kind, TableRow, Value};
pub use tilewise_memory::{Error as PlanError, MemoryPlan, Role};
pub use timeline::{Owners, Timeline, TimelinePiece};
pub use view::{BufferView, ReportView, ViewOptions};
pub use words::{bytes_in_words, size_in_words};
