//! Rows of a few columns: a gather makes, and a scatter reads, each row in 128 lanes of its own.

use super::{
    AdviceKind, AdviceTarget,
    scene::{Candidate, Held, Scene},
    words,
};
use crate::flow::does;
use tilewise_hlo::{Instruction, Opcode};

/// More columns than this are an embedding, not components, and nobody keeps each as an array.
pub(super) const FEW: u64 = 16;
/// Fewer rows than this are no table.
const MANY: u64 = 1024;

/// The bounds of an array's rows, and how many columns it has, if those lie along the lanes, padded. What is short beside
/// them is columns, too: of `[N,3,3]` nine.
pub(super) fn of_few(held: &Held<'_>) -> Option<(Vec<u64>, u64)> {
    let minor = *held.minor_to_major().first()?;
    let is_column = |at: usize, bound: u64| at == minor || bound <= FEW && at > 0;
    let bounds = || held.bounds.iter().copied().enumerate();
    let rows: Vec<u64> = bounds().filter(|(at, bound)| !is_column(*at, *bound)).map(|(_, bound)| bound).collect();
    let product = |product: u64, bound: u64| product.saturating_mul(bound);
    let columns = bounds().filter(|(at, bound)| is_column(*at, *bound)).map(|(_, bound)| bound).fold(1, product);
    let count = rows.iter().copied().fold(1, product);
    let is_padded = held.bytes >= held.logical_bytes().saturating_mul(4);
    ((2..=FEW).contains(&columns) && count >= MANY && is_padded).then_some((rows, columns))
}

/// Components gathered and scattered each on its own.
pub(super) fn upstream<'m>(scene: &Scene<'m>, candidates: &mut Vec<Candidate<'m>>) {
    let mut done: Vec<&[u64]> = Vec::new();
    for held in scene.peak_temporaries() {
        let Some((rows, columns)) = of_few(held).filter(|_| !done.contains(&&held.bounds[..])) else { continue };
        let gather = scene.flow.source(&held.instruction, is_gather);
        let is_gathered = gather.is_some();
        let is_scattered = scene.flow.leads_to(&held.instruction, |user| does(user, Opcode::Scatter));
        if !(is_gathered || is_scattered) {
            continue;
        }
        done.push(&held.bounds);
        let mut candidate = Candidate::new(AdviceKind::Split, AdviceTarget::Upstream, held, String::new());
        // From the gather to the scatter, whatever is made of the rows on the way has as many.
        for same in scene.temporaries().filter(|same| same.bounds == held.bounds && of_few(same).is_some()) {
            let column = scene.default_bytes(same.element_type(), &rows);
            if let Some(bytes) = column.and_then(|column| column.checked_mul(columns)) {
                candidate.resized.insert(same.buffer, bytes);
            }
        }
        let table = gather.and_then(|gather| table(scene, &gather));
        words::upstream(scene, &mut candidate, columns, is_gathered, is_scattered, table.as_ref());
        candidates.push(candidate);
    }
}

/// A gather, but not the one that brings a scatter's updates into order.
fn is_gather(instruction: &Instruction<'_>) -> bool {
    does(instruction, Opcode::Gather) && !does(instruction, Opcode::Scatter)
}

/// The argument that a gather's rows come from, if it does nothing but take them.
fn table<'m>(scene: &Scene<'m>, gather: &Instruction<'m>) -> Option<Instruction<'m>> {
    let table = gather.operands().next()?.instruction()?;
    scene.flow.source(&table, |at| at.opcode() == Opcode::Parameter && at.computation().is_entry())
}
