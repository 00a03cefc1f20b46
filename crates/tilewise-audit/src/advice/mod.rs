//! Changes that reduce a program's memory, and the reasons for its copies: findings as data.

mod as_evidence;
mod blocks;
mod call_stacks;
mod change;
mod copy_reasons;
mod devices;
mod edited_lines;
mod evidence;
pub mod finding;
mod findings;
mod layer_calls;
mod layers;
mod made;
mod mapped_call;
mod message;
mod parts;
mod pricing;
mod program;
mod recommendation;
mod residuals;
mod rule;
mod rules;
mod scan_residuals;
mod smaller_batch;
mod split;
mod taken_apart;
mod uses;

pub use change::{Change, Saving, Target};
pub use copy_reasons::{CopyEnd, CopyEndKind, CopyReason};
pub(crate) use findings::{Findings, of_message};
pub use made::MadeBatch;
pub use recommendation::{AdvisedArray, EditedLines, Recommendation};
pub(crate) use rules::conversion;
