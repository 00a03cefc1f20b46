//! Advice and copy reasons of a program, computed together: advice and copy reasons share the layout requests.

use super::{
    copy_reasons::{CopyReason, reasons},
    finding::{Finding, SmallerBatch},
    message::MessageModel,
    pricing::{proposals, recommend, recommend_for_message},
    program::{LiveArray, ProgramModel},
    recommendation::Recommendation,
    rule::Proposal,
    rules::{LayoutRequests, rules},
    smaller_batch::smaller_batch_of_step,
};
use crate::{
    copies::CopyRow,
    message::Listing,
    program::{PlannedProgram, Purpose, name},
};

#[derive(Clone, Debug)]
pub(crate) struct Findings {
    pub(crate) advice: Vec<Recommendation>,
    pub(crate) smaller_batch: Option<SmallerBatch>,
    /// Whether no batch of a training step was found whose samples stay apart, or are added up.
    pub(crate) are_samples_mixed: bool,
    pub(crate) copy_reasons: Vec<CopyReason>,
}

impl Findings {
    pub(crate) fn new(planned: &PlannedProgram, copies: &[CopyRow]) -> Self {
        let Some(program) = ProgramModel::new(planned, copies) else {
            let copy_reasons = reasons(planned, copies, None);
            return Self { advice: Vec::new(), smaller_batch: None, are_samples_mixed: false, copy_reasons };
        };
        // Layouts can be requested where they have tiles.
        let requests = planned.machine.generation().map(|_| LayoutRequests::new(&program)).unwrap_or_default();
        let proposals = proposals(&program, &rules(&requests));
        let is_apart =
            |proposal: &Proposal| matches!(&proposal.finding, Finding::LargeDimension(batch) if batch.joint.is_none());
        let is_of_model = |array: &LiveArray<'_>| {
            let purpose = Purpose::of_argument(&name(&array.instruction));
            matches!(purpose, Purpose::Parameter | Purpose::OptimizerState)
        };
        let is_trained = program.has_gradient && program.arguments().any(is_of_model);
        let are_samples_mixed = is_trained && !proposals.iter().any(is_apart);
        let smaller_batch = proposals.iter().find_map(|proposal| match &proposal.finding {
            Finding::LargeDimension(batch) => batch.smaller.clone(),
            _ => None,
        });
        let smaller_batch = smaller_batch.or_else(|| smaller_batch_of_step(&program));
        let advice = recommend(&program, proposals);
        let copy_reasons = reasons(planned, copies, Some((&program, &requests)));
        Self { advice, smaller_batch, are_samples_mixed, copy_reasons }
    }
}

/// Recommendations that matter for a message, best first.
pub(crate) fn of_message(listing: Listing<'_>) -> Vec<Recommendation> {
    recommend_for_message(&MessageModel::new(listing), &rules(&LayoutRequests::default()))
}
