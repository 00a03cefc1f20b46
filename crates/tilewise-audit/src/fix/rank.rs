//! Which fixes are worth showing, and which comes first.

use super::{FixKind, change::Candidate, subject::Now};

/// Whether the change removes a twentieth of the padding, and more than the data it gives up.
pub(super) fn is_worthwhile(candidate: &Candidate, now: Now) -> bool {
    let Now { physical, logical, .. } = now;
    let freed = physical.saturating_sub(candidate.after);
    let padding = physical.saturating_sub(logical);
    let padding_after = candidate.after.saturating_sub(candidate.logical);
    let removed = padding.saturating_sub(padding_after);
    let dropped = logical.saturating_sub(candidate.logical);
    let pays = candidate.kind() != FixKind::Resize || u128::from(freed) > u128::from(dropped) * 4;
    freed > 0 && u128::from(removed) * 20 >= u128::from(padding) && pays
}

/// The candidates worth showing, the best first.
pub(super) fn rank(mut candidates: Vec<Candidate>, now: Now) -> Vec<Candidate> {
    let kept: Vec<(FixKind, u64)> =
        candidates.iter().filter(|c| !c.changes_values()).map(|c| (c.kind(), c.after)).collect();
    let best = kept.iter().map(|&(_, after)| after).min().unwrap_or(now.physical);
    candidates.retain(|candidate| {
        let (kind, after) = (candidate.kind(), candidate.after);
        match kind {
            // An operation that insists on an unusual order takes neither another order nor a reshape: there splitting is what helps.
            FixKind::Split if !now.is_usual && now.is_as_tight(after, best) => true,
            FixKind::Split | FixKind::Batch => {
                let simpler = kept.iter().any(|&(other, bytes)| other < kind && now.is_as_good(bytes, after));
                !simpler && now.frees(50, after, best)
            }
            _ => true,
        }
    });
    let reached = now.is_reached(best);
    let mut ranked = Vec::with_capacity(candidates.len());
    let lossy = if reached { candidates.extract_if(.., |c| c.changes_values()).collect() } else { Vec::new() };
    for mut group in [candidates, lossy] {
        while let Some(best) = group.iter().map(|c| c.after).min() {
            let near = |c: &Candidate| now.is_as_good(c.after, best);
            let first = group.iter().enumerate().filter(|(_, c)| near(c)).min_by_key(|(_, c)| c.kind());
            let Some(at) = first.map(|(at, _)| at) else { break };
            ranked.push(group.remove(at));
        }
    }
    ranked
}
