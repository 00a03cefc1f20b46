//! What a rule is, and what it proposes.

use super::{
    change::{Saving, Target},
    evidence::Evidence,
    finding::Finding,
    program::BufferChanges,
    recommendation::{AdvisedArray, Recommendation},
};
use tilewise_memory::Machine;

/// Finds one sign in what is known of a program, and what to change where it is found.
pub(crate) trait Rule {
    /// Whether what it proposes helps on this machine: on others than TPUs, where sizes are dense, only what does away
    /// with arrays.
    fn holds_on(&self, machine: Machine) -> bool {
        machine.generation().is_some()
    }

    /// Whether programs show the sign; else it is of messages alone.
    fn is_of_programs(&self) -> bool {
        true
    }

    /// The changes that may help; what they free isn't known yet.
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal>;
}

/// A change that may help.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub(crate) finding: Finding,
    pub(crate) target: Target,
    /// The array it is about, of several the largest.
    pub(crate) about: Option<AdvisedArray>,
    /// What buffers take instead.
    pub(crate) buffers: BufferChanges,
    /// What it frees by itself, where other sizes alone don't tell.
    pub(crate) estimate: Option<u64>,
    /// How much of what it frees is known.
    pub(crate) saving: fn(u64) -> Saving,
    /// The parts of the batch that it frees so much with, where more parts free more.
    pub(crate) parts: Option<u64>,
    /// Whether it takes apart either of two dimensions of an array of pairs.
    pub(crate) is_of_pairs: bool,
}

impl Proposal {
    /// A proposal of which the changed buffers say what it frees.
    pub(crate) fn new(finding: Finding, target: Target, about: AdvisedArray) -> Self {
        let buffers = BufferChanges::default();
        Self {
            finding,
            target,
            about: Some(about),
            buffers,
            estimate: None,
            saving: Saving::Exact,
            parts: None,
            is_of_pairs: false,
        }
    }

    /// The proposal with bytes that buffers take at most.
    pub(crate) fn at_most(mut self, buffers: impl IntoIterator<Item = (usize, u64)>) -> Self {
        self.buffers.at_most.extend(buffers);
        self
    }

    /// The proposal, which may free less.
    pub(crate) fn bound(self) -> Self {
        Self { saving: Saving::AtMost, ..self }
    }

    /// The proposal, which frees about so much by itself.
    pub(crate) fn estimated(self, bytes: u64) -> Self {
        Self { saving: Saving::About, estimate: Some(bytes), ..self }
    }

    /// What is recommended, once it is known that it frees so much.
    pub(crate) fn recommendation(self, evidence: &dyn Evidence, bytes_saved: u64) -> Recommendation {
        Recommendation {
            change: self.finding.change(),
            target: self.target,
            array: self.about,
            saving: (self.saving)(bytes_saved),
            listed_bytes: None,
            parts: self.parts,
            edited: None,
            scores: None,
            finding: self.finding,
            framework: evidence.framework(),
        }
    }
}
