//! Finds padding waste in compiled TPU programs.
//!
//! [`audit`] takes every buffer that a module defines, asks its layout for the size in memory, and totals by memory
//! space. The sum over all buffers is what a program *defines*; buffers that are never live at the same time share
//! memory, so it is not what the program holds.
//!
//! ```
//! let text = "
//! ENTRY main {
//!   x = f32[400000,12]{1,0:T(8,128)} parameter(0)
//!   ROOT y = f32[400000,12]{1,0:T(8,128)} negate(x)
//! }";
//! let module = tilewise_hlo::Module::parse(text)?;
//! let report = tilewise_audit::audit(&module);
//!
//! let worst = report.largest_padding().next().expect("two buffers");
//! assert_eq!((worst.sizes.logical_bytes, worst.sizes.physical_bytes), (19_200_000, 204_800_000));
//! assert_eq!(worst.causes, ["dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used"]);
//! # Ok::<(), tilewise_hlo::Error>(())
//! ```
//!
//! # What is where
//!
//! - [`audit`] makes a [`Report`] of a module: [`BufferRow`]s, [`CopyRow`]s, a [`SpaceTotal`] for each memory space,
//!   and the [`MemoryBounds`] that say whether it fits.
//! - [`explain`] makes an [`Explanation`] of an out-of-memory message: an [`Allocation`] for each of its entries.
//! - [`causes`] says in words what pads an array; the module [`fix`] says what to change, and what that frees.
//! - A [`ReportView`] is what is shown of a report. Rows are [`TableRow`]s: their fields are spelled once, for JSON,
//!   CSV and data frames.
//!
//! # Features
//!
//! | feature | default | what |
//! |---|---|---|
//! | `serde` | no | [`ReportView`], [`Explanation`] and what they hold serialise as the command line's JSON |

#![forbid(unsafe_code)]

mod audit;
mod causes;
mod explain;
pub mod fix;
mod report;
#[cfg(feature = "serde")]
mod serialize;
mod table;
mod view;

pub use audit::audit;
pub use causes::causes;
pub use explain::{Allocation, Explanation, explain};
pub use report::{BufferRow, CopyRow, MemoryBounds, Report, SourceLine, SpaceTotal, Warning};
pub use table::{Column, Kind, TableRow, Value};
pub use view::{BufferView, ReportView, ViewOptions};
