//! Rules and their proposals.

use super::{
    change::{Saving, Target},
    evidence::{Evidence, Listed},
    finding::Finding,
    program::BufferChanges,
    recommendation::{AdvisedArray, Recommendation},
};
use tilewise_memory::Machine;

/// Looks for one sign in a program or in its message, and proposes changes.
pub(crate) trait Rule {
    /// Whether its proposals help on this machine. On machines other than TPUs, where sizes are dense, only those that
    /// remove arrays do.
    fn holds_on(&self, machine: Machine) -> bool {
        machine.generation().is_some()
    }

    /// Whether it applies to programs, rather than to messages alone.
    fn is_of_programs(&self) -> bool {
        true
    }

    /// The changes that may help; their savings aren't known yet.
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal>;
}

/// A change that may help.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub(crate) finding: Finding,
    pub(crate) target: Target,
    /// The array concerned, of several the largest.
    pub(crate) about: Option<AdvisedArray>,
    /// New buffer sizes.
    pub(crate) buffers: BufferChanges,
    /// Bytes that it frees by itself, if the new buffer sizes alone don't show them.
    pub(crate) estimate: Option<u64>,
    /// The part of that estimate that arrays in a message's list free; the rest is extrapolated.
    pub(crate) of_listed: Option<u64>,
    /// The kind of its saving: exact, a bound or an estimate.
    pub(crate) saving: fn(u64) -> Saving,
    /// The number of parts of the batch that its saving is for, if more parts free more.
    pub(crate) parts: Option<u64>,
    /// Whether it splits either of two dimensions of an array of pairs.
    pub(crate) is_of_pairs: bool,
    /// The instruction, by its index, at which parts end, since it joins them.
    pub(crate) joint: Option<usize>,
    /// The instructions, by their indices, that join positions of blocks and can't be among their lines.
    pub(crate) apart: Vec<usize>,
}

impl Proposal {
    /// A proposal whose saving is that of the changed buffers.
    pub(crate) fn new(finding: Finding, target: Target, about: impl Into<Option<AdvisedArray>>) -> Self {
        let buffers = BufferChanges::default();
        Self {
            finding,
            target,
            about: about.into(),
            buffers,
            estimate: None,
            of_listed: None,
            saving: Saving::Exact,
            parts: None,
            is_of_pairs: false,
            joint: None,
            apart: Vec::new(),
        }
    }

    /// Adds upper bounds of buffers, in bytes.
    pub(crate) fn at_most(mut self, buffers: impl IntoIterator<Item = (usize, u64)>) -> Self {
        self.buffers.at_most.extend(buffers);
        self
    }

    /// Marks the saving as an upper bound.
    pub(crate) fn bound(self) -> Self {
        Self { saving: Saving::AtMost, ..self }
    }

    /// Marks an exact saving as an estimate, where the compiler may order the changed program otherwise.
    pub(crate) fn rescheduled(self) -> Self {
        let is_exact = matches!((self.saving)(0), Saving::Exact(_));
        if is_exact { Self { saving: Saving::About, ..self } } else { self }
    }

    /// Marks the saving as an estimate: `bytes` for the proposal alone.
    pub(crate) fn estimated(self, bytes: u64) -> Self {
        Self { saving: Saving::About, estimate: Some(bytes), ..self }
    }

    /// Estimates the saving from the bytes that listed arrays free.
    pub(crate) fn extrapolated(self, evidence: &dyn Evidence, freed: u64, listed: Listed) -> Self {
        Self { estimate: Some(evidence.extrapolated(freed, listed)), of_listed: Some(freed), ..self }
    }

    /// The recommendation, with the bytes that it frees.
    pub(crate) fn recommendation(self, evidence: &dyn Evidence, bytes_saved: u64) -> Recommendation {
        Recommendation {
            array: self.about,
            saving: (self.saving)(bytes_saved),
            parts: self.parts,
            function: evidence.function().map(str::to_owned),
            donated: evidence.donated(),
            ..Recommendation::new(self.finding, self.target, evidence.framework())
        }
    }
}
