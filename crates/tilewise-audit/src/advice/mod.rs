//! What to change so that a program holds less, and why it has its copies.

mod copy_reasons;
mod findings;
mod following;
mod kept;
mod layers;
mod message;
mod notes;
mod parts;
mod pricing;
mod program;
mod purpose;
mod recommendation;
mod rule;
mod rules;
pub(crate) mod snippet;
mod words;

pub use copy_reasons::{CopyEnd, CopyEndKind, CopyReason};
pub(crate) use findings::Findings;
pub(crate) use message::MessageModel;
pub use recommendation::{AdvisedArray, Change, Recommendation, Saving, Snippet, Target};
pub(crate) use rules::MESSAGE_RULES;
