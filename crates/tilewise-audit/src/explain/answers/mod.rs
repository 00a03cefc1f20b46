//! Answers to messages of which no memory of a TPU ran out, or none of a program's own arrays: what happened, why, and
//! what to do, one file a family.

mod cache;
mod donation;
mod elsewhere;
mod mismatch;
mod mosaic;
mod placement;
mod rematerialization;
mod statistics;

use super::Explanation;
use crate::Recommendation;
use tilewise_oom::{Form, Verdict};

/// What is said of a message that is not judged by what fills a TPU's memory: a warning, a log, a kernel that can't be
/// compiled, another machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// What happened, with the figures: a sentence.
    pub headline: String,
    /// What is the cause: sentences.
    pub cause: String,
    /// What to do, best first.
    pub advice: Vec<Recommendation>,
}

impl Explanation {
    /// The answer to a message of one of these families; `None` for others.
    ///
    /// ```
    /// let text = "cannot statically prove that index in dimension 1 is a multiple of 128";
    /// let explained = tilewise_audit::explain(tilewise_oom::Message::parse(text)?, None);
    /// let answer = explained.answer().expect("of a kernel that can't be compiled");
    /// assert_eq!(answer.headline, "A kernel's index in dimension 1 can't be proved to be a multiple of 128.");
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        to(self)
    }
}

fn to(explanation: &Explanation) -> Option<Answer> {
    let message = &explanation.message;
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
