//! Which fixes are worth showing, and which comes first.

use super::{change::Candidate, fixes::FixKind, target::Baseline};

/// Whether the change removes 5 % of the padding, and more than the data it gives up.
pub(super) fn is_worthwhile(candidate: &Candidate, baseline: Baseline) -> bool {
    let (physical, logical) = (baseline.sizes.physical_bytes, baseline.sizes.logical_bytes);
    let freed = physical.saturating_sub(candidate.after);
    let padding = baseline.sizes.padding_bytes();
    let padding_after = candidate.after.saturating_sub(candidate.logical);
    let removed = padding.saturating_sub(padding_after);
    let dropped = logical.saturating_sub(candidate.logical);
    let pays = candidate.kind() != FixKind::Resize || u128::from(freed) > u128::from(dropped) * 4;
    freed > 0 && u128::from(removed) * 20 >= u128::from(padding) && pays
}

/// The candidates worth showing, the best first.
pub(super) fn rank(mut candidates: Vec<Candidate>, baseline: Baseline) -> Vec<Candidate> {
    let kept: Vec<(FixKind, u64)> =
        candidates.iter().filter(|c| !c.changes_values()).map(|c| (c.kind(), c.after)).collect();
    let best = kept.iter().map(|&(_, after)| after).min().unwrap_or(baseline.sizes.physical_bytes);
    candidates.retain(|candidate| {
        let (kind, after) = (candidate.kind(), candidate.after);
        match kind {
            // An operation that insists on another order takes neither another order nor a reshape: there splitting is
            // what helps.
            FixKind::Split if !baseline.has_default_order && baseline.is_as_tight(after, best) => true,
            FixKind::Split | FixKind::Batch => {
                let simpler = kept.iter().any(|&(other, bytes)| other < kind && baseline.is_as_good(bytes, after));
                !simpler && baseline.frees(50, after, best)
            }
            _ => true,
        }
    });
    let reached = baseline.is_reached(best);
    let mut ranked = Vec::with_capacity(candidates.len());
    let lossy = if reached { candidates.extract_if(.., |c| c.changes_values()).collect() } else { Vec::new() };
    for mut group in [candidates, lossy] {
        while let Some(best) = group.iter().map(|c| c.after).min() {
            let near = |c: &Candidate| baseline.is_as_good(c.after, best);
            let first = group.iter().enumerate().filter(|(_, c)| near(c)).min_by_key(|(_, c)| c.kind());
            let Some(at) = first.map(|(at, _)| at) else { break };
            ranked.push(group.remove(at));
        }
    }
    ranked
}
