//! Copies: what a program moves without computing anything, and which arguments and results it copies.

mod correspondence;
mod interface;
mod rows;

pub use interface::Obstacle;
pub(crate) use interface::{Copied, CopiedInterface, InterfaceArray};
pub use rows::{CopyClass, CopyLine, CopyRow, copies_by_line};
pub(crate) use rows::{copies, moved_bytes};
