//! Dumps of a compiler: which of many files hold final programs, and what the compiler's own plans of them say.

mod assignment;
mod selection;

pub use assignment::{AssignmentReport, AssignmentRow, AssignmentSpace};
pub use selection::{FileKind, Selected, Selection, is_plan_of, plan_in, select};
