//! A dimension of size 1 on the rows of a tile, of which all others are padding: a message's arrays.

use super::narrow_rows::is_padded;
use crate::advice::{
    change::Target,
    evidence::{ArrayFact, Evidence, Listed, default_bytes},
    finding::{Finding, RowOperation, RowsOfFew},
    rule::{Proposal, Rule},
};

pub(crate) struct KeptRows;

impl Rule for KeptRows {
    fn is_of_programs(&self) -> bool {
        false
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let (mut done, mut proposals) = (Vec::<Vec<u64>>::new(), Vec::new());
        let temporaries = evidence.temporaries();
        for array in temporaries.iter().copied() {
            let Some(others) = beside(evidence, array).filter(|others| !done.contains(others)) else { continue };
            let alike = temporaries.iter().filter(|same| beside(evidence, **same).as_ref() == Some(&others));
            let squeezed = |same: &&dyn ArrayFact| Some((same.buffer(), default_bytes(evidence, *same, &others)?));
            let buffers: Vec<(usize, u64)> = alike.clone().filter_map(squeezed).collect();
            let after = buffers.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
            let freed = alike.map(|same| same.bytes()).fold(0, u64::saturating_add).saturating_sub(after);
            let finding = Finding::RowsOfFew(RowsOfFew { columns: 1, operation: RowOperation::KeptRow });
            let proposal = Proposal::new(finding, Target::Upstream, array.advised(evidence)).at_most(buffers);
            proposals.push(proposal.bound().extrapolated(evidence, freed, Listed::Padding));
            done.push(others);
        }
        proposals
    }
}

/// The bounds of the other dimensions of an array whose rows are one.
fn beside(evidence: &dyn Evidence, array: &dyn ArrayFact) -> Option<Vec<u64>> {
    let row = *array.minor_to_major().get(1)?;
    let is_one = array.bounds().get(row) == Some(&1) && is_padded(evidence, array);
    let others = || array.bounds().iter().enumerate().filter(|(at, _)| *at != row).map(|(_, bound)| *bound);
    is_one.then(|| others().collect())
}
