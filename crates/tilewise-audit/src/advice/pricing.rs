//! Prices proposals by planning the program's memory again, and selects those worth showing.

use super::{
    blocks::{blocks, made_anew},
    change::Change,
    edited_lines::{Stacks, edited_lines},
    finding::{Blocks, Finding, GradientSums, OfStep},
    mapped_call::mapped_call,
    message::MessageModel,
    program::{LiveArray, ProgramModel},
    recommendation::Recommendation,
    rule::{Proposal, Rule},
    rules::{divided, narrowed, scores_of},
    taken_apart::is_joined,
};
use crate::program::{is_name, name, root};
use foldhash::HashMap;
use std::cmp::Reverse;

/// A proposal has to free more than a hundredth of the program's memory.
const WORTHWHILE: u64 = 100;
/// A proposal that takes the program apart has to free more than a tenth, if the program fits without it.
const WORTH_TAKING_APART: u64 = 10;
/// Arrays that each device holds whole are divided if that frees more than a quarter, though the program fits.
const MUCH_OF_WHOLE: u64 = 4;
/// Blocks of a large array replace other parts if they free more than this many times as much.
const MUCH_BETTER: u64 = 2;
/// One call in parts is enough if it frees this part of what other parts free.
const OF_PARTS: (u64, u64) = (3, 4);
/// Maximum number of recommendations: readers stop here.
const MOST: usize = 5;

/// The best proposals as recommendations, best first. Each saving assumes that the preceding ones are done.
pub(crate) fn recommend(program: &ProgramModel<'_>, proposals: Vec<Proposal>) -> Vec<Recommendation> {
    let freed = |all: &[&Proposal]| program.freed_with(all.iter().map(|proposal| &proposal.buffers));
    let saved = |before: &[(u64, Proposal)], proposal: &Proposal| {
        let before = before.iter().map(|(_, proposal)| proposal);
        freed(&before.chain([proposal]).collect::<Vec<_>>())
    };
    let least = program.total_bytes / WORTHWHILE;
    let mut proposals = proposals;
    proposals.retain(|proposal| !is_joined(program, proposal));
    if proposals.iter().any(is_of_whole_batch) {
        proposals.retain(|proposal| !is_of_rows(proposal));
    } else if proposals.iter().any(is_of_rows) {
        proposals.retain(|proposal| !proposal.is_of_pairs);
    }
    let mut priced: Vec<(Price, Proposal)> = proposals
        .into_iter()
        .map(|proposal| {
            let alone = saved(&[], &proposal);
            (Price { alone, said: self::alone(&proposal, alone) }, proposal)
        })
        .collect();
    let all = |is: fn(&Proposal) -> bool| {
        freed(&priced.iter().map(|(_, proposal)| proposal).filter(|proposal| is(proposal)).collect::<Vec<_>>())
    };
    let (others, kept_whole) = (all(|proposal| !is_rewritten(proposal)), all(keeps_computation));
    let are_enough = program.is_too_large() && program.fits_without(others);
    let is_after = |proposal: &Proposal, said: u64| {
        is_rewritten(proposal) && (said <= others || are_enough)
            || is_of_parts(proposal) && said / 2 <= kept_whole && kept_whole > 0
    };
    // Stable: among equals, the earlier rule's proposals come first.
    priced.sort_by_key(|(price, proposal)| {
        let said = of_few_parts(proposal, price.said);
        (is_after(proposal, said), Reverse(said))
    });
    let mut kept: Vec<(u64, Proposal)> = Vec::new();
    let mut together = 0;
    for (price, proposal) in priced {
        // The peak of a program with better proposals may lie elsewhere.
        let is_elsewhere = price.alone == 0 && !kept.is_empty();
        if !is_elsewhere && of_few_parts(&proposal, price.said) <= least {
            continue;
        }
        if kept.iter().any(|(_, before)| keeps_apart(program, &proposal, before)) {
            continue;
        }
        // Bytes that better proposals free already don't count.
        let with = saved(&kept, &proposal);
        let more = with.saturating_sub(together);
        let is_taken_apart = matches!(proposal.finding.change(), Change::Chunk | Change::Checkpoint);
        let least = if is_taken_apart && program.fits_without(together) {
            program.total_bytes / WORTH_TAKING_APART
        } else {
            least
        };
        let said = if is_elsewhere { more } else { scaled(more, price.said, price.alone) };
        if kept.len() < MOST && of_few_parts(&proposal, said) > least {
            together = with;
            kept.push((said, proposal));
        }
    }
    // Devices that are there already divide a state without rounding it.
    if program.partitions > 1 && program.is_too_large() && !program.fits_without(together) {
        let enough = |proposal: &Proposal| Some(saved(&kept, proposal)).filter(|freed| program.fits_without(*freed));
        let own = divided(program, enough);
        kept.extend(own.map(|(freed, proposal)| (freed.saturating_sub(together), proposal)));
    }
    if program.partitions > 1 && kept.is_empty() {
        let much = |proposal: &Proposal| {
            Some(saved(&[], proposal)).filter(|freed| *freed > program.total_bytes / MUCH_OF_WHOLE)
        };
        kept.extend(divided(program, much));
    }
    // Without a better change, the lines of the largest array in blocks.
    let is_enough =
        program.has_limit() && program.fits_without(freed(&kept.iter().map(|(_, kept)| kept).collect::<Vec<_>>()));
    let much = |proposal: &Proposal| {
        let least = (program.total_bytes / WORTH_TAKING_APART).max(together.saturating_mul(MUCH_BETTER));
        Some(saved(&[], proposal)).filter(|freed| *freed > least)
    };
    if !is_enough
        && let Some(better) = blocks(program, false, much)
            .or_else(|| mapped_call(program, much))
            .or_else(|| blocks(program, true, much))
            .or_else(|| made_anew(program, much))
    {
        let others = std::mem::replace(&mut kept, vec![better]);
        let takes_apart = |proposal: &Proposal| matches!(proposal.finding.change(), Change::Chunk | Change::Checkpoint);
        for (_, proposal) in others.into_iter().filter(|(_, proposal)| !takes_apart(proposal)) {
            let before = freed(&kept.iter().map(|(_, kept)| kept).collect::<Vec<_>>());
            let more = saved(&kept, &proposal).saturating_sub(before);
            if more > least {
                kept.push((more, proposal));
            }
        }
    }
    // One call in parts before all of the program, or some lines of it.
    if let Some(at) = kept.iter().position(|(_, proposal)| is_in_parts(proposal)) {
        let own = saved(&[], &kept[at].1);
        let is_as_good = |(freed, _): &(u64, Proposal)| *freed >= own / OF_PARTS.1 * OF_PARTS.0;
        if let Some(call) = mapped_call(program, |proposal| Some(saved(&[], proposal))).filter(is_as_good) {
            let fits = |all: &[(u64, Proposal)]| {
                program.fits_without(freed(&all.iter().map(|(_, one)| one).collect::<Vec<_>>()))
            };
            let did_fit = fits(&kept);
            let before = std::mem::replace(&mut kept[at], call);
            if did_fit && !fits(&kept) {
                kept[at] = before;
            }
        }
    }
    // Narrower state, which rounds values, and other devices are the last resorts.
    let together = freed(&kept.iter().map(|(_, kept)| kept).collect::<Vec<_>>());
    if program.is_too_large() && !program.fits_without(together) {
        let enough = |proposal: &Proposal| Some(saved(&kept, proposal)).filter(|freed| program.fits_without(*freed));
        let last = narrowed(program, enough).or_else(|| divided(program, enough));
        kept.extend(last.map(|(freed, proposal)| (freed.saturating_sub(together), proposal)));
    }
    let stacks = Stacks::of(program.module);
    let said = |(at, (saved, proposal)): (usize, (u64, Proposal))| {
        let takes_apart = matches!(proposal.finding.change(), Change::Chunk | Change::Checkpoint);
        let scores = if takes_apart { scores_of(program, &proposal.buffers) } else { None };
        let edited = edited_lines(program, &stacks, &proposal);
        let alone = if at == 0 { saved } else { self::alone(&proposal, freed(&[&proposal])).max(saved) };
        let said = proposal.recommendation(program, saved);
        // On machines other than TPUs, temporaries share the memory of arguments and results, so the saving isn't
        // exact.
        let saving = if program.machine.generation().is_some() { said.saving } else { said.saving.inexact() };
        Recommendation { scores, saving, edited, alone_bytes: Some(alone), ..said }
    };
    let mut advice: Vec<Recommendation> = kept.into_iter().enumerate().map(said).collect();
    // Code of a later change keeps what an earlier one donates.
    let mut before: Vec<String> = Vec::new();
    for change in &mut advice {
        change.donated.extend_from_slice(&before);
        before.extend_from_slice(change.donate());
    }
    advice
}

/// The bytes that a proposal frees alone: its own estimate, if it has one and the plan shrinks by some.
fn alone(proposal: &Proposal, by_plan: u64) -> u64 {
    proposal.estimate.filter(|_| by_plan > 0).unwrap_or(by_plan)
}

/// The bytes that rank a proposal: many parts that are named first rank as few do, since any change could be taken further.
fn of_few_parts(proposal: &Proposal, said: u64) -> u64 {
    match &proposal.finding {
        Finding::LargeDimension(batch) => {
            let less = batch.others.filter(|others| !others.is_more).map_or(0, |others| others.freed);
            said.saturating_sub(less)
        }
        _ => said,
    }
}

/// Bytes that a proposal frees alone.
struct Price {
    /// By the plan with its buffer sizes.
    alone: u64,
    /// By its own estimate, if it has one and the plan shrinks; otherwise `alone`.
    said: u64,
}

/// Whether a layout request conflicts with an earlier proposal: that donates an argument, which in another layout than its
/// result could no longer lend its memory to that, or takes an argument in parts, which the compiler lays out anew.
fn keeps_apart(program: &ProgramModel<'_>, proposal: &Proposal, before: &Proposal) -> bool {
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
    // A result of a donated argument's bounds takes its place.
    let donated: Vec<&LiveArray<'_>> = match &before.finding {
        Finding::UndonatedState(state) => {
            let is_donated =
                |array: &&LiveArray<'_>| state.roots.iter().any(|of| of == root(&name(&array.instruction)));
            program.arguments().filter(is_donated).collect()
        }
        _ => Vec::new(),
    };
    let results =
        || request.arrays.iter().filter(|array| array.argument.is_none()).filter_map(|array| array.to.bounds());
    arguments().all(|argument| argument.is_some()) && arguments().flatten().any(is_changed)
        || results().any(|bounds| donated.iter().any(|array| array.bounds == bounds))
}

/// Whether a change keeps the computation, such as a carried cache: it precedes parts that free up to twice its bytes.
fn keeps_computation(proposal: &Proposal) -> bool {
    match &proposal.finding {
        // The caller may want all that is returned.
        Finding::StackedSteps(stack) => stack.enough != OfStep::Returned,
        Finding::ReturnedArguments(_) => false,
        finding => matches!(finding.change(), Change::Carry | Change::Free),
    }
}

fn is_of_parts(proposal: &Proposal) -> bool {
    matches!(&proposal.finding, Finding::LargeDimension(_))
}

/// Whether a program runs in parts, or some lines of it, with code around them that has to be written; the gradients of parts of a
/// batch are added up without computing anything again.
fn is_in_parts(proposal: &Proposal) -> bool {
    match &proposal.finding {
        Finding::LargeDimension(found) => {
            let has_names = found.inputs.iter().flat_map(|(_, names)| names).all(|name| is_name(name));
            let is_added_up = found.gradients == GradientSums::Summed && found.joint.is_none() && !found.is_made;
            !(is_added_up && has_names && !found.is_divided)
        }
        Finding::Blocks(Blocks { are_directions, .. }) => !are_directions,
        Finding::AllPairs(_) => true,
        _ => false,
    }
}

/// Whether a batch is split into parts that nothing joins: they have fewer rows, and all arrays made of rows shrink.
fn is_of_whole_batch(proposal: &Proposal) -> bool {
    matches!(&proposal.finding, Finding::LargeDimension(found) if found.joint.is_none() && !proposal.is_of_pairs)
}

/// Whether some rows are computed at a time.
fn is_of_rows(proposal: &Proposal) -> bool {
    matches!(&proposal.finding, Finding::AllPairs(_) | Finding::Blocks(_) | Finding::ClassLogits(_))
}

/// Whether a program with a gradient is rewritten, and recomputes like a checkpoint; it comes last if the other
/// proposals together free at least its bytes, or enough to fit.
fn is_rewritten(proposal: &Proposal) -> bool {
    matches!(&proposal.finding, Finding::LargeDimension(found) if found.joint.is_some() && found.gradients != GradientSums::None)
}

/// Scales `bytes` by `said / alone`.
fn scaled(bytes: u64, said: u64, alone: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(said) / u128::from(alone.max(1))).unwrap_or(u64::MAX)
}

/// A change matters if it frees a tenth of the missing bytes, and a hundredth of the used ones.
const OF_MISSING: u128 = 10;
const OF_USED: u128 = 100;
/// Changes that free less than a twentieth of the best one are dropped.
const OF_BEST: u128 = 20;

/// The proposals of rules for a program.
pub(crate) fn proposals(program: &ProgramModel<'_>, rules: &[&dyn Rule]) -> Vec<Proposal> {
    let holds = |rule: &&&dyn Rule| rule.is_of_programs() && rule.holds_on(program.machine);
    rules.iter().filter(holds).flat_map(|rule| rule.propose(program)).collect()
}

/// Recommendations for a message whose savings matter, best first. There is no program to plan again: a saving is what
/// the listed arrays shrink by, or the proposal's estimate, and mostly a bound.
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
            let listed = proposal.of_listed.unwrap_or_else(|| listed(&proposal));
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
    // Stable: among equals, changes to the caller's arrays come first, then those that keep every value.
    advice.sort_by_key(|piece| Reverse(piece.saving.bytes()));
    advice
}
