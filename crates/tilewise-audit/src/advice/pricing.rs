//! What proposals free, found by planning the program's memory again, and which of them are worth a line.

use super::{
    change::{Change, Target},
    edited_line::edited_line,
    finding::{Finding, GradientSums},
    message::MessageModel,
    program::ProgramModel,
    recommendation::Recommendation,
    rule::{Proposal, Rule},
    rules::scores_of,
};
use crate::program::root;
use std::{cmp::Reverse, collections::HashMap};

/// Less than a hundredth of what the program holds is no advice.
const WORTHWHILE: u64 = 100;
/// Nor less than a tenth, where the program has to be taken apart, unless it doesn't fit otherwise.
const WORTH_TAKING_APART: u64 = 10;
/// The most that is recommended: readers stop here.
const MOST: usize = 5;

/// The best of what the rules propose, the best first. Each frees its bytes once those before it are done.
pub(crate) fn recommend(program: &ProgramModel<'_>, rules: &[&dyn Rule]) -> Vec<Recommendation> {
    let freed = |all: &[&Proposal]| {
        program.total_bytes.saturating_sub(program.total_with(all.iter().map(|proposal| &proposal.buffers)))
    };
    let saved = |before: &[(u64, Proposal)], proposal: &Proposal| {
        let before = before.iter().map(|(_, proposal)| proposal);
        freed(&before.chain([proposal]).collect::<Vec<_>>())
    };
    let least = program.total_bytes / WORTHWHILE;
    let mut proposals: Vec<Proposal> = rules
        .iter()
        .filter(|rule| rule.is_of_programs() && rule.holds_on(program.machine))
        .flat_map(|rule| rule.propose(program))
        .collect();
    if proposals.iter().any(is_of_whole_batch) {
        proposals.retain(|proposal| !is_of_rows(proposal));
    } else if proposals.iter().any(is_of_rows) {
        proposals.retain(|proposal| !proposal.is_of_pairs);
    }
    let mut priced: Vec<(Price, Proposal)> = proposals
        .into_iter()
        .map(|proposal| {
            let alone = saved(&[], &proposal);
            let said = proposal.estimate.filter(|_| alone > 0).unwrap_or(alone);
            (Price { alone, said }, proposal)
        })
        .collect();
    let all = |is: fn(&Proposal) -> bool| {
        freed(&priced.iter().map(|(_, proposal)| proposal).filter(|proposal| is(proposal)).collect::<Vec<_>>())
    };
    let (others, carried) = (all(|proposal| !is_rewritten(proposal)), all(is_carried));
    let is_after = |proposal: &Proposal, said: u64| {
        is_rewritten(proposal) && said <= others || is_of_parts(proposal) && said / 2 <= carried && carried > 0
    };
    // Stable: of equals, those of the earlier rule come first.
    priced.sort_by_key(|(price, proposal)| (is_after(proposal, price.said), Reverse(price.said)));
    let mut kept: Vec<(u64, Proposal)> = Vec::new();
    let mut together = 0;
    for (price, proposal) in priced.into_iter().filter(|(price, _)| price.said > least) {
        if kept.iter().any(|(_, before)| keeps_apart(&proposal, before)) {
            continue;
        }
        // What the better ones free already is no further advice.
        let with = saved(&kept, &proposal);
        let more = with.saturating_sub(together);
        let is_taken_apart =
            matches!((proposal.finding.change(), proposal.target), (Change::Chunk | Change::Checkpoint, Target::Value));
        let least = if is_taken_apart && program.fits_without(together) {
            program.total_bytes / WORTH_TAKING_APART
        } else {
            least
        };
        let said = scaled(more, price.said, price.alone);
        if kept.len() < MOST && said > least {
            together = with;
            kept.push((said, proposal));
        }
    }
    let said = |(saved, proposal): (u64, Proposal)| {
        let takes_apart = matches!(proposal.finding.change(), Change::Chunk | Change::Checkpoint);
        let scores = if takes_apart { scores_of(program, &proposal.buffers) } else { None };
        let said = proposal.recommendation(program, saved);
        // On other machines than TPUs, arguments' and results' memory serves temporaries, too: what is left then isn't known.
        let saving = if program.machine.generation().is_some() { said.saving } else { said.saving.inexact() };
        Recommendation { scores, saving, edited: edited_line(program, &said.finding), ..said }
    };
    kept.into_iter().map(said).collect()
}

/// What a proposal frees by itself.
struct Price {
    /// By the plan with its buffers.
    alone: u64,
    /// As it is said.
    said: u64,
}

/// Whether an argument in another layout could no longer lend its memory to its result, as it does once it is donated; or whether
/// it is taken in parts, which the compiler lays out anew.
fn keeps_apart(proposal: &Proposal, before: &Proposal) -> bool {
    let Finding::LayoutRequest(request) = &proposal.finding else { return false };
    let is_changed = |name: &String| match &before.finding {
        Finding::UndonatedState(state) => state.roots.iter().any(|donated| donated == root(name)),
        Finding::LargeDimension(batch) => {
            let mut inputs = batch.inputs.iter().flat_map(|(_, names)| names);
            inputs.any(|input| input == name || input == root(name))
        }
        _ => false,
    };
    let arguments = || request.arrays.iter().map(|array| array.argument.as_ref());
    arguments().all(|argument| argument.is_some()) && arguments().flatten().any(is_changed)
}

/// Whether a cache is carried: nothing is computed in another way, and so it comes before parts that free twice as much.
fn is_carried(proposal: &Proposal) -> bool {
    matches!(&proposal.finding, Finding::StackedCache(_))
}

fn is_of_parts(proposal: &Proposal) -> bool {
    matches!(&proposal.finding, Finding::LargeDimension(_))
}

/// Whether nothing joins the parts of a batch: they have fewer rows, and less of all that is made of them.
fn is_of_whole_batch(proposal: &Proposal) -> bool {
    matches!(&proposal.finding, Finding::LargeDimension(found) if found.joint.is_none() && !proposal.is_of_pairs)
}

/// Whether something is made of some rows at a time.
fn is_of_rows(proposal: &Proposal) -> bool {
    matches!(&proposal.finding, Finding::AllPairs(_) | Finding::ClassLogits(_))
}

/// Whether a gradient's program has to be written anew for it, and computes as much again as a checkpoint: it comes after what
/// frees as much.
fn is_rewritten(proposal: &Proposal) -> bool {
    matches!(&proposal.finding, Finding::LargeDimension(found) if found.joint.is_some() && found.gradients != GradientSums::None)
}

/// So many bytes by the scale on which `alone` is `said`.
fn scaled(bytes: u64, said: u64, alone: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(said) / u128::from(alone.max(1))).unwrap_or(u64::MAX)
}

/// A change matters if it frees a tenth of what is missing, and a hundredth of what is used.
const OF_MISSING: u128 = 10;
const OF_USED: u128 = 100;
/// Beside the best, a twentieth of it is not worth a line.
const OF_BEST: u128 = 20;

/// What matters of what the rules propose for a message, the best first. There is no program to plan again: what each frees is
/// what its arrays take less, mostly a bound.
pub(crate) fn recommend_for_message(message: &MessageModel<'_>, rules: &[&dyn Rule]) -> Vec<Recommendation> {
    let taken: HashMap<usize, u64> =
        message.arrays.iter().map(|array| (array.number, array.row.taken_bytes())).collect();
    let listed = |proposal: &Proposal| {
        let changed = proposal.buffers.at_most.iter();
        let freed =
            changed.map(|(buffer, after)| taken.get(buffer).copied().unwrap_or_default().saturating_sub(*after));
        freed.fold(0, u64::saturating_add)
    };
    let proposals = rules.iter().flat_map(|rule| rule.propose(message));
    let mut advice: Vec<Recommendation> = proposals
        .map(|proposal| {
            let listed = listed(&proposal);
            let saved = proposal.estimate.unwrap_or(listed);
            let listed_bytes = Some(listed).filter(|listed| *listed > 0 && *listed < saved);
            Recommendation { listed_bytes, ..proposal.recommendation(message, saved) }
        })
        .collect();
    let bytes = |piece: &Recommendation| piece.saving.bytes().unwrap_or_default();
    let (missing, used) =
        (message.budget.missing_bytes.unwrap_or_default(), message.budget.used_bytes.unwrap_or_default());
    advice.retain(|piece| {
        let saved = u128::from(bytes(piece));
        saved > 0 && saved * OF_MISSING >= u128::from(missing) && saved * OF_USED >= u128::from(used)
    });
    let best = advice.iter().map(bytes).max().unwrap_or_default();
    advice.retain(|piece| u128::from(bytes(piece)) * OF_BEST >= u128::from(best));
    // Stable: of equals, what the caller hands over comes first, then what keeps every value.
    advice.sort_by_key(|piece| Reverse(piece.saving.bytes()));
    advice
}
