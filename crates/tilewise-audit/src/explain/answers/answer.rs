//! What is said of a message that no program's arrays explain.

use crate::advice::Recommendation;

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
