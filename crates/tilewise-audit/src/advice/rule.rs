//! What a rule is, and what it proposes.

use super::{
    message::MessageModel,
    program::{BufferChanges, ProgramModel},
    recommendation::{AdvisedArray, Change, Recommendation, Saving, Snippet, Target},
};
use tilewise_memory::Machine;

/// Finds one sign in a program, and what to change where it is found.
pub(crate) trait Rule {
    /// Whether what it proposes helps on this machine: on others than TPUs, where sizes are dense, only what does away
    /// with arrays.
    fn holds_on(&self, machine: Machine) -> bool {
        machine.generation().is_some()
    }

    /// The changes that may help; what they free isn't known yet.
    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal>;
}

/// Finds one sign in a message, and what to change where it is found.
pub(crate) trait MessageRule {
    /// What may help. There is no program to plan again: what it frees is what the message tells of it, mostly a bound.
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation>;
}

/// A change that may help.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub(crate) change: Change,
    pub(crate) target: Target,
    /// The array it is about, of several the largest.
    pub(crate) about: AdvisedArray,
    /// What buffers take instead.
    pub(crate) buffers: BufferChanges,
    /// What it frees by itself, where a plan with other sizes alone doesn't tell.
    pub(crate) estimate: Option<u64>,
    /// Whether it may free less than that.
    pub(crate) is_bound: bool,
    /// The parts of the batch that it frees so much with, where more parts free more.
    pub(crate) parts: Option<u64>,
    /// What to do: a sentence without a full stop.
    pub(crate) sentence: String,
    /// The code that does it.
    pub(crate) snippet: Option<Snippet>,
}

impl Proposal {
    /// A proposal without code; a plan with its changed buffers says what it frees.
    pub(crate) fn new(change: Change, target: Target, about: AdvisedArray, sentence: String) -> Self {
        let buffers = BufferChanges::default();
        Self { change, target, about, buffers, estimate: None, is_bound: false, parts: None, sentence, snippet: None }
    }

    /// What is recommended, once it is known that it frees so much.
    pub(crate) fn recommendation(self, bytes_saved: u64) -> Recommendation {
        Recommendation {
            change: self.change,
            target: self.target,
            array: Some(self.about),
            saving: if self.is_bound { Saving::AtMost(bytes_saved) } else { Saving::Exact(bytes_saved) },
            parts: self.parts,
            sentence: self.sentence,
            snippet: self.snippet,
        }
    }
}
