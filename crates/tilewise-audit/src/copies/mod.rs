//! Copies: data movement without computation, and the arguments and results that are copied.

mod correspondence;
mod interface;
mod rows;

pub use interface::RequestObstacle;
pub(crate) use interface::{Copied, CopiedInterface, InterfaceArray};
pub use rows::{CopyClass, CopyLine, CopyRow, copies_by_line};
pub(crate) use rows::{copies, moved_bytes};
