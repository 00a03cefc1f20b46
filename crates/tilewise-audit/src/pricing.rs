//! What proposals free, found by planning the program's memory again, and which of them are worth a line.

use crate::{
    Recommendation,
    program_model::ProgramModel,
    recommendation::Change,
    rules::{OTHERWISE, Proposal, RULES},
};
use std::cmp::Reverse;

/// Less than a hundredth of what the program holds is no advice.
const WORTHWHILE: u64 = 100;
/// Nor less than a tenth, where the program has to be taken apart.
const WORTH_TAKING_APART: u64 = 10;
/// The most that is recommended: readers stop here.
const MOST: usize = 5;

/// The best of what the rules propose, the best first. Each frees its bytes once those before it are done.
pub(crate) fn recommend(program: &ProgramModel<'_>) -> Vec<Recommendation> {
    let saved = |before: &[(u64, Proposal<'_>)], proposal: &Proposal<'_>| {
        let changes = before.iter().map(|(_, proposal)| proposal).chain([proposal]).map(|proposal| &proposal.buffers);
        program.total_bytes.saturating_sub(program.total_with(changes))
    };
    let least = program.total_bytes / WORTHWHILE;
    let proposals = RULES.iter().flat_map(|rule| rule.propose(program));
    let mut priced: Vec<(u64, Proposal<'_>)> = proposals.map(|proposal| (saved(&[], &proposal), proposal)).collect();
    // Stable: of equals, those of the earlier rule come first.
    priced.sort_by_key(|(saved, _)| Reverse(*saved));
    let mut kept: Vec<(u64, Proposal<'_>)> = Vec::new();
    let mut together = 0;
    for (_, proposal) in priced.into_iter().filter(|(saved, _)| *saved > least) {
        // What the better ones free already is no further advice.
        let with = saved(&kept, &proposal);
        let more = with.saturating_sub(together);
        let least = if proposal.change == Change::Chunk { program.total_bytes / WORTH_TAKING_APART } else { least };
        if kept.len() < MOST && more > least {
            together = with;
            kept.push((more, proposal));
        }
    }
    if kept.is_empty() {
        kept.extend(OTHERWISE.propose(program).into_iter().map(|proposal| (0, proposal)));
    }
    kept.into_iter().map(|(saved, proposal)| proposal.recommendation(program, saved)).collect()
}
