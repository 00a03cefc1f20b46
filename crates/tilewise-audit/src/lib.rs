#![doc = include_str!("../README.md")]
//!
//! # What is where
//!
//! - [`Audit`] makes a [`Report`] of a program: [`BufferRow`]s, [`CopyRow`]s, a [`SpaceTotal`] for each memory space,
//!   and the [`MemoryBounds`] that say whether it fits.
//! - [`Content::read`] finds [`Program`]s in the bytes of a file, or the compiler's plan of one, of which an
//!   [`AssignmentReport`] tells; a [`Failure`] says why there are none.
//! - The module [`dump`] says what a file is by its first bytes, and which of a dump's files hold final programs and the
//!   compiler's plans of them.
//! - [`Report::advice`] says what to change in the program: [`Recommendation`]s, priced by planning its memory again.
//!   [`Report::notes`] says what fills its memory, by kind. [`Report::copy_reasons`] says why it has its copies, and which of them another layout at the interface removes.
//! - [`Report::time`] says where the time of a run goes, estimated from the compiler's own cycle counts.
//! - [`Together`] sums what programs that are loaded at once hold, and how many pages of their cache fit.
//! - [`explain`] makes an [`Explanation`] of an out-of-memory message: an [`Allocation`] for each of its entries, and
//!   what to do, as [`Recommendation`]s.
//! - [`causes`] tells what pads an array.
//!
//! All of it is data: `tilewise-report` has the words.

#![forbid(unsafe_code)]

mod advice;
mod copies;
pub mod dump;
mod explain;
mod failure;
mod message;
mod program;
mod report;
mod together;

pub mod recommendation {
    //! What to change, and what that frees: one type for programs, copies and messages.

    pub use crate::advice::{AdvisedArray, Change, Recommendation, Saving, Target, finding};
}

pub use advice::{CopyEnd, CopyEndKind, CopyReason, Note, Recommendation, Width};
pub use copies::{CopyClass, CopyLine, CopyRow, Obstacle, copies_by_line};
pub use dump::{AssignmentReport, AssignmentRow, AssignmentSpace};
pub use explain::{Explanation, Mismatch, MismatchCause, explain};
pub use failure::Failure;
pub use message::{Allocation, decode_log, read_log, read_stream};
pub use program::{
    AxisName, Cause, Content, NamedAxis, Program, Purpose, SourceLine, build_in_name, causes, generation_in_name,
    infer_generation, infer_machine,
};
pub use report::{
    Agreement, Audit, BoundaryChange, BufferRow, Concerned, ForcedBy, KernelArray, KernelRow, KernelSide, Meaning,
    MemoryBounds, ModuleRow, Neighbour, Neighbours, Origin, Origins, OtherCompiler, OwnerName, Owners, Pass, PeakGroup,
    PeakRow, PlacedElsewhere, PlanPiece, PlanRow, Remedy, Report, ReportWarning, Resident, Sent, SpacePeak, SpaceTotal,
    Span, StandingRow, Timeline, TimelinePiece, Work, audit,
};
pub use together::{Alternative, LoadedProgram, Member, PageArrays, PagesOf, ResidentArray, SetChange, Together};
pub mod time {
    //! Where the time of a run goes: [`Report::time`](crate::Report::time).

    pub use crate::report::{MomentTime, TimeGroup, TimeRow, by_kind, by_line, by_module};
    pub use tilewise_time::{Basis, Cores, Estimate, Kind, LoopRow, NoTime, Rates, Roof, Row, Time, Unpriced};
}
pub use tilewise_memory::{Error as PlanError, Machine, MemoryPlan, Role, UnknownMachine};
