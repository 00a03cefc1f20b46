#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - [`Audit`] makes a [`Report`] of a program: [`BufferRow`]s, [`CopyRow`]s, a [`SpaceTotal`] for each memory space,
//!   and the [`MemoryBounds`] that show whether it fits.
//! - [`Content::read`] reads the bytes of a file: [`Program`]s, or the compiler's plan of one for an
//!   [`AssignmentReport`]; errors are a [`Failure`].
//! - The module [`dump`] detects a file's kind from its first bytes, and selects a dump's final programs with the
//!   compiler's plans.
//! - [`Report::advice`] recommends changes to the program: [`Recommendation`]s, priced by planning its memory again.
//!   [`Report::copy_reasons`] explains its copies, and which of them another layout at the interface removes.
//! - [`Report::time`] breaks down the time of a run, estimated from the compiler's own cycle counts.
//! - [`Together`] sums the memory of programs that are loaded at once, and counts the pages of their cache that fit.
//! - [`explain`] makes an [`Explanation`] of an out-of-memory message: an [`Allocation`] for each of its entries, and
//!   [`Recommendation`]s.
//! - [`causes`] lists the causes of an array's padding.
//!
//! All results are data: `tilewise-report` puts them into words.

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
    //! Changes and their savings: one type for programs, copies and messages.

    pub use crate::advice::{AdvisedArray, Change, EditedLines, MadeBatch, Recommendation, Saving, Target, finding};
}

pub use advice::{CopyEnd, CopyEndKind, CopyReason, Recommendation};
pub use copies::{CopyClass, CopyLine, CopyRow, RequestObstacle, copies_by_line};
pub use dump::{AssignmentReport, AssignmentRow, AssignmentSpace};
pub use explain::{Explanation, Mismatch, MismatchCause, explain};
pub use failure::Failure;
pub use message::{Allocation, decode_log, read_log, read_stream};
pub use program::{
    AxisName, Cause, Content, NamedAxis, Program, Purpose, SourceLine, build_in_name, causes, infer_generation,
    infer_machine, machine_in_name,
};
pub use report::{
    Agreement, Audit, BoundaryChange, BufferRow, ChangeCost, Concerned, FittingSize, ForcedBy, KernelArray, KernelRow,
    KernelSide, Meaning, MemoryBounds, ModuleRow, Neighbour, Neighbours, Origin, Origins, OtherCompiler, OwnerName,
    Owners, Pass, PeakGroup, PeakRow, PlacedElsewhere, PlanPiece, PlanRow, Remedy, Report, ReportWarning, Resident,
    Sent, SpacePeak, SpaceTotal, Span, StandingRow, Timeline, TimelinePiece, Width, Work, audit,
};
pub use together::{Alternative, LoadedProgram, Member, PageArrays, PagesOf, ResidentArray, SetChange, Together};
pub mod time {
    //! The time of a run: [`Report::time`](crate::Report::time).

    pub use crate::report::{MomentTime, TimeGroup, TimeRow, by_kind, by_line, by_module};
    pub use tilewise_time::{Basis, Cores, Estimate, Kind, LoopRow, NoTime, Rates, Roof, Row, Time, Unpriced};
}
pub use tilewise_memory::{Error as PlanError, ErrorKind as PlanErrorKind, Machine, MemoryPlan, Role, UnknownMachine};
