//! Changes that reduce a program's memory, and the reasons for its copies: findings as data.

mod asked;
mod change;
mod copy_reasons;
mod edited_line;
mod evidence;
pub mod finding;
mod findings;
mod following;
mod kept;
mod layer_calls;
mod layers;
mod loop_stacks;
mod message;
mod parts;
mod pricing;
mod program;
mod recommendation;
mod rule;
mod rules;
mod smaller_batch;
mod split;

pub use change::{Change, Saving, Target};
pub use copy_reasons::{CopyEnd, CopyEndKind, CopyReason};
pub(crate) use findings::{Findings, of_message};
pub use recommendation::{AdvisedArray, EditedLine, Recommendation};
pub(crate) use rules::conversion;
