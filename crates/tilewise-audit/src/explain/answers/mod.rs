//! Answers to messages of which no memory of a TPU ran out, or none of a program's own arrays: what happened, why, and
//! what to do, one file a family.

mod answer;
mod cache;
mod donation;
mod elsewhere;
mod mismatch;
mod mosaic;
mod placement;
mod rematerialization;
mod statistics;

pub use answer::Answer;

use crate::message::Listing;
use tilewise_oom::{Form, Verdict};

/// The answer to a message of one of these families; `None` for others.
pub(super) fn answer(explanation: Listing<'_>) -> Option<Answer> {
    let message = explanation.message;
    Some(match (message.form, message.verdict()) {
        (Form::CachePage, _) => cache::page(message),
        (Form::CacheRoom, _) => cache::room(message),
        (_, Verdict::InputMismatch) => mismatch::answer(message),
        (_, Verdict::Mosaic) => mosaic::answer(message),
        (_, Verdict::Donation) => donation::answer(explanation),
        (_, Verdict::HostPlacement) => placement::answer(message),
        (_, Verdict::RematLimit) => rematerialization::answer(message),
        (_, Verdict::Fits) => statistics::answer(message),
        (_, Verdict::NotTpu) => elsewhere::answer(explanation),
        _ => return None,
    })
}
