//! Dumps of a compiler: selects files with final programs, and reports the compiler's own plans of them.

mod assignment;
mod selection;

pub use assignment::{AssignmentReport, AssignmentRow, AssignmentSpace};
pub use selection::{FileKind, Selected, Selection, is_plan_of, plan_in, select};
