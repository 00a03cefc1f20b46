//! Changes of owners and copies, matched across compilers' renumbering and people's renaming.

use super::{Allowed, Amount, Change, KernelCopy, Outcome, Owner};
use std::{cmp::Reverse, collections::BTreeMap};
use tilewise_audit::{CopyClass, CopyRow, Report, SourceLine};

/// Merges changes of less than a thousandth of the total into one, the last; keeps them apart if any change counts.
pub(super) fn small_as_one(changes: Vec<Change>, what: &str, total: u64, allowed: Allowed) -> Vec<Change> {
    if allowed.exact {
        return changes;
    }
    let (small, mut changes): (Vec<Change>, Vec<_>) =
        changes.into_iter().partition(|change| change.difference() < total / 1000);
    if small.len() < 2 {
        changes.extend(small);
        return changes;
    }
    let bytes = |amount: &Option<Amount>| amount.as_ref().map_or(0, Amount::number);
    let sum = |amounts: &dyn Fn(&Change) -> u64| small.iter().map(amounts).fold(0, u64::saturating_add);
    let [was, is] = [sum(&|change| bytes(&change.before)), sum(&|change| bytes(&change.after))];
    if was != is {
        changes.push(Change::of(what, [was, is].map(Amount::Number), Outcome::Changed));
    }
    changes
}

/// The changes of the owners at the peaks, the largest difference first.
///
/// A renamed file is no difference; a renamed or grown array, and one of other layers, has changed.
pub(super) fn changed_owners(before: &[Owner], after: &[Owner]) -> Vec<Change> {
    let (mut lost, mut come): (Vec<&Owner>, Vec<&Owner>) = (before.iter().collect(), after.iter().collect());
    let mut changes = Vec::new();
    for key in [named, operation, place] {
        let [mut was, mut is] = [by(&lost, key), by(&come, key)];
        for (key, owners) in &is {
            if let Some(held) = was.get(key) {
                changes.extend(changed(held, owners));
            }
        }
        let [stays, stood] = [&was, &is].map(|groups| groups.keys().cloned().collect::<Vec<_>>());
        stood.iter().for_each(|key| drop(was.remove(key)));
        stays.iter().for_each(|key| drop(is.remove(key)));
        lost = was.into_values().flatten().collect();
        come = is.into_values().flatten().collect();
    }
    changes.extend(lost.into_iter().map(|owner| of_owner(owner, Some(owner.bytes), None)));
    changes.extend(come.into_iter().map(|owner| of_owner(owner, None, Some(owner.bytes))));
    changes.sort_by_key(|change| Reverse(change.difference()));
    changes
}

fn by<'a>(owners: &[&'a Owner], key: fn(&Owner) -> String) -> BTreeMap<String, Vec<&'a Owner>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for owner in owners {
        groups.entry(key(owner)).or_default().push(*owner);
    }
    groups
}

/// The operation and its array.
fn named(owner: &Owner) -> String {
    format!("{} {}", without_function(&owner.op), owner.array())
}

/// The operation in its file, without its numbers: layers are numbered, and a compiler numbers instructions anew.
fn operation(owner: &Owner) -> String {
    let letters = without_function(&owner.op).chars().filter(|letter| !letter.is_ascii_digit());
    format!("{:?} {}", owner.file, letters.collect::<String>())
}

/// The file, the type and the rank.
fn place(owner: &Owner) -> String {
    let array = owner.array();
    let (kind, bounds) = array.split_once('[').unwrap_or((&array, ""));
    format!("{:?} {kind} {}", owner.file, bounds.matches(',').count())
}

fn changed(before: &[&Owner], after: &[&Owner]) -> Option<Change> {
    let sum = |owners: &[&Owner]| owners.iter().map(|owner| owner.bytes).fold(0, u64::saturating_add);
    let [was, is] = [before, after].map(sum);
    let largest = after.iter().max_by_key(|owner| owner.bytes)?;
    (was != is).then(|| of_owner(largest, Some(was), Some(is)))
}

fn of_owner(owner: &Owner, before: Option<u64>, after: Option<u64>) -> Change {
    Change {
        what: "owner".to_owned(),
        before: before.map(Amount::Number),
        after: after.map(Amount::Number),
        owner: Some(owner.name()),
        file: owner.file.clone(),
        line: owner.line,
        verdict: Outcome::Changed,
    }
}

/// The changes of the copies at kernels, the largest difference first; more is worse.
pub(super) fn changed_kernel_copies(before: &[KernelCopy], after: &[KernelCopy], allowed: Allowed) -> Vec<Change> {
    let found = |copies: &[KernelCopy], one: &KernelCopy| {
        copies.iter().find(|copy| copy.kernel == one.kernel && copy.side == one.side).map(|copy| copy.bytes)
    };
    let gone = before.iter().filter(|copy| found(after, copy).is_none());
    let mut changes: Vec<Change> = after
        .iter()
        .chain(gone)
        .filter_map(|copy| {
            let (was, is) = (found(before, copy), found(after, copy));
            let verdict = allowed.verdict(was.unwrap_or(0), is.unwrap_or(0));
            let way = if copy.side == "operand" { "copied into" } else { "copied out of" };
            (was != is).then(|| Change {
                what: "kernel_copies".to_owned(),
                before: was.map(Amount::Number),
                after: is.map(Amount::Number),
                owner: Some(format!("{way} `{}`", copy.kernel)),
                file: copy.file.clone(),
                line: copy.line,
                verdict,
            })
        })
        .collect();
    changes.sort_by_key(|change| Reverse(change.difference()));
    changes
}

/// The changes of the bytes that each operation's copies move, the largest difference first.
pub(super) fn changed_copies(before: &Report, after: &Report) -> Vec<Change> {
    type Sums<'a> = BTreeMap<(Option<&'a str>, CopyClass), ([u64; 2], Option<&'a SourceLine>)>;
    let mut sums = Sums::new();
    for (which, report) in [before, after].into_iter().enumerate() {
        for CopyRow { op_name, class, moved_bytes, source, .. } in &report.copies {
            let (bytes, line) = sums.entry((op_name.as_deref().map(without_function), *class)).or_default();
            bytes[which] = bytes[which].saturating_add(*moved_bytes);
            *line = source.as_ref().or(*line);
        }
    }
    let differing = sums.into_iter().filter(|(_, ([was, is], _))| was != is);
    let mut changes: Vec<_> = differing
        .map(|((owner, class), (bytes, source))| Change {
            owner: Some(format!("{}: {}", class.as_str(), owner.unwrap_or("no name"))),
            file: source.map(|source| source.file.clone()),
            line: source.map(|source| source.line),
            ..Change::of("copies", bytes.map(Amount::Number), Outcome::Changed)
        })
        .collect();
    changes.sort_by_key(|change| Reverse(change.difference()));
    changes
}

/// `jit(step)/dot_general` of a function that has another name after the change.
pub(super) fn without_function(name: &str) -> &str {
    match name.split_once('/') {
        Some((first, rest)) if first.starts_with("jit(") => rest,
        _ => name,
    }
}
