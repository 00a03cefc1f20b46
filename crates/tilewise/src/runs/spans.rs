//! The lengths and the alignment of all runs of a slice, from the diagram alone.

use super::diagram::{Branch, Diagram, ELEMENT};
use alloc::{vec, vec::Vec};

/// The lengths and the alignment of the runs, in elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    pub(super) shortest: u64,
    pub(super) longest: u64,
    /// The largest number that divides the start and the end of every run.
    pub(super) alignment: u64,
}

/// The runs of a node, or of some of its values, as its parent needs them: the first and the last may grow, those
/// between can't.
#[derive(Clone, Copy)]
struct Chain {
    runs: u64,
    /// The start of the first run and the end of the last.
    start: u64,
    end: u64,
    /// The first run's length, and the last's.
    head: u64,
    tail: u64,
    /// The least and the largest length of the runs between.
    inner: Option<(u64, u64)>,
    /// The starts and ends of runs, but for `start` and `end`: one of them, and a divisor of its distance to all
    /// others.
    places: Option<(u64, u64)>,
}

impl Spans {
    pub(super) fn of(diagram: &Diagram) -> Self {
        let element = Chain { runs: 1, start: 0, end: 1, head: 1, tail: 1, inner: None, places: None };
        let mut chains = vec![element; diagram.nodes.len()];
        for node in (1..chains.len()).rev() {
            let (from, to) = diagram.nodes[node].branches;
            let parts = diagram.branches[from as usize..to as usize].iter().map(|branch| of_branch(branch, &chains));
            if let Some(chain) = parts.reduce(Chain::then) {
                chains[node] = chain;
            }
        }
        let root = chains[if diagram.root == ELEMENT { 0 } else { diagram.root as usize }];
        let ends = [Some((root.head.min(root.tail), root.head.max(root.tail))), root.inner];
        let (shortest, longest) = ends.into_iter().flatten().fold((u64::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
        let (place, distance) = root.places.unwrap_or_default();
        let alignment = [root.start, root.end, place, distance].into_iter().fold(0, gcd);
        Self { shortest, longest, alignment }
    }
}

/// The runs of a branch: its child's, for each value.
fn of_branch(branch: &Branch, chains: &[Chain]) -> Chain {
    let child = chains[branch.child as usize].shifted(branch.offset);
    // The number of values doubles with each step, from the highest bit of their count on.
    let mut values = 1;
    let mut chain = child;
    for bit in (0..branch.count.ilog2()).rev() {
        chain = chain.then(chain.shifted(values * branch.delta));
        values *= 2;
        if branch.count >> bit & 1 == 1 {
            chain = chain.then(child.shifted(values * branch.delta));
            values += 1;
        }
    }
    chain
}

impl Chain {
    fn shifted(self, by: u64) -> Self {
        let places = self.places.map(|(place, distance)| (place + by, distance));
        Self { start: self.start + by, end: self.end + by, places, ..self }
    }

    /// The runs of both, one after the other.
    fn then(self, next: Self) -> Self {
        let joins = self.end == next.start;
        let mut between: Vec<u64> = Vec::new();
        let (mut head, mut tail) = (self.head, next.tail);
        if joins {
            let joined = self.tail + next.head;
            match (self.runs, next.runs) {
                (1, 1) => (head, tail) = (joined, joined),
                (1, _) => head = joined,
                (_, 1) => tail = joined,
                _ => between.push(joined),
            }
        } else {
            between.extend((self.runs > 1).then_some(self.tail));
            between.extend((next.runs > 1).then_some(next.head));
        }
        let inner = between.into_iter().map(|length| (length, length)).chain(self.inner).chain(next.inner);
        let ends = (!joins).then_some([(self.end, 0), (next.start, 0)]);
        let places = self.places.into_iter().chain(next.places).chain(ends.into_iter().flatten());
        Self {
            runs: self.runs + next.runs - u64::from(joins),
            start: self.start,
            end: next.end,
            head,
            tail,
            inner: inner.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
            places: places.reduce(|(a, x), (b, y)| (a, gcd(gcd(x, y), a.abs_diff(b)))),
        }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
