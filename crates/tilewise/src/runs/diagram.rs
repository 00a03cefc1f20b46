//! A slice as a decision diagram over the digits of the layout.
//!
//! Levels go from the digit with the largest stride down to the smallest. On each level a *node* is the rest of
//! the slice once the digits above have their values. Values with the same rest lead to the same node, so there are a
//! handful of nodes whatever the size of the array: for each level and each dimension "at the slice's first value",
//! "inside", and "at its last". From the lowest level up, every node gets the number of its runs, their start and their
//! end; so runs are counted before they are made, and the n-th is found by going down once.

use super::pieces::{Group, Place, Progression, undecided};
use crate::{Error, Tiled};
use alloc::{vec, vec::Vec};

/// Maximum number of nodes on one level; more are refused.
const MOST_NODES: usize = 1 << 13;

/// A node's number; children have larger numbers than their parents, but for [`ELEMENT`].
pub(super) type NodeId = u32;

/// The end of every path: one element.
pub(super) const ELEMENT: NodeId = 0;

/// The rest of the slice below some digits, with offsets relative to those digits' own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Its branches: a range of [`Diagram::branches`].
    pub(super) branches: (u32, u32),
    /// The number of its runs.
    pub(super) runs: u64,
    /// The start of the first run.
    pub(super) start: u64,
    /// The end of the last run.
    pub(super) end: u64,
}

/// Successive values of a digit that lead to one child.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    /// The offset of the first value.
    pub(super) offset: u64,
    /// The number of values.
    pub(super) count: u64,
    /// The distance from the offset of one value to that of the next.
    pub(super) delta: u64,
    pub(super) child: NodeId,
    /// A copy of the child's own numbers, for the walk.
    pub(super) runs: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether the last run of one value and the first of the next are one run.
    pub(super) joins: bool,
    /// Whether the last run of the branch before and the first of this one are one run.
    pub(super) joins_before: bool,
}

/// The slice.
#[derive(Clone, Debug)]
pub(super) struct Diagram {
    pub(super) nodes: Vec<Node>,
    pub(super) branches: Vec<Branch>,
    pub(super) root: NodeId,
}

/// A digit in the order in which runs are made.
#[derive(Clone, Copy)]
pub(super) struct Level {
    group: usize,
    /// The number of the digit in its group.
    digit: usize,
    stride: u64,
    /// Whether it is the last level of its group, behind which the group's pieces are decided.
    is_last: bool,
}

/// The levels of memory's order: by falling stride, for each stride is above the sum of all lower digits.
pub(super) fn levels(tiled: &Tiled, groups: &[Group]) -> Vec<Level> {
    let mut levels = Vec::with_capacity(tiled.digits().len());
    for (group, Group { digits, .. }) in groups.iter().enumerate() {
        for (digit, place) in digits.iter().enumerate() {
            if let Place::Memory(number) = *place {
                levels.push(Level { group, digit, stride: tiled.digits()[number].stride, is_last: false });
            }
        }
    }
    levels.sort_by_key(|level| core::cmp::Reverse(level.stride));
    levels
}

/// The levels of the slice's own order, row-major: dimension by dimension, each from its most significant digit on.
pub(super) fn row_major_levels(tiled: &Tiled, groups: &[Group]) -> Vec<Level> {
    let mut levels = levels(tiled, groups);
    // Groups are dimensions here, and their digits fall.
    levels.sort_by_key(|level| (level.group, level.digit));
    levels
}

impl Diagram {
    /// The diagram of a slice that has an element.
    pub(super) fn of(groups: &[Group], mut levels: Vec<Level>) -> Result<Self, Error> {
        let mut seen = vec![false; groups.len()];
        for level in levels.iter_mut().rev() {
            level.is_last = !core::mem::replace(&mut seen[level.group], true);
        }
        let element = Node { branches: (0, 0), runs: 1, start: 0, end: 1 };
        let mut diagram = Self { nodes: vec![element], branches: Vec::new(), root: ELEMENT };
        if !levels.is_empty() {
            diagram.root = 1;
            Builder::new(groups).fill(&mut diagram, &levels)?;
        }
        for node in (1..diagram.nodes.len()).rev() {
            diagram.sum_up(node);
        }
        Ok(diagram)
    }

    /// Sums up a node's runs from those of its children.
    fn sum_up(&mut self, number: usize) {
        let (from, to) = self.nodes[number].branches;
        let (mut runs, mut start, mut end) = (0, 0, None);
        for branch in &mut self.branches[from as usize..to as usize] {
            let child = self.nodes[branch.child as usize];
            (branch.runs, branch.start, branch.end) = (child.runs, child.start, child.end);
            branch.joins = branch.count > 1 && branch.delta + child.start == child.end;
            branch.joins_before = end == Some(branch.offset + child.start);
            if end.is_none() {
                start = branch.offset + child.start;
            }
            end = Some(branch.offset + (branch.count - 1) * branch.delta + child.end);
            runs += branch.new_runs();
        }
        let node = &mut self.nodes[number];
        (node.runs, node.start, node.end) = (runs, start, end.unwrap_or(start));
    }
}

impl Branch {
    /// The number of runs that begin in the branch.
    pub(super) fn new_runs(&self) -> u64 {
        self.count * (self.runs - u64::from(self.joins)) + u64::from(self.joins) - u64::from(self.joins_before)
    }
}

/// Makes nodes level by level. A node's state has a bit for each piece of each group: whether the digits so far allow
/// it.
struct Builder<'a> {
    groups: &'a [Group],
    /// The first word of each group's bits in a state; at the end, the number of words.
    words: Vec<usize>,
    /// The states of all nodes of a level, and of the next.
    states: Vec<u64>,
    next: Vec<u64>,
    alive: Vec<(Progression, usize)>,
    /// The values of each branch to be made.
    chosen: Vec<Progression>,
    /// The bits of each such branch's group, one branch after the other.
    bits: Vec<u64>,
}

impl<'a> Builder<'a> {
    fn new(groups: &'a [Group]) -> Self {
        let mut words = Vec::with_capacity(groups.len() + 1);
        words.push(0);
        let mut states = Vec::new();
        for group in groups {
            let pieces = group.pieces().len();
            states.extend((0..pieces.div_ceil(64)).map(|word| {
                let bits = (pieces - 64 * word).min(64);
                u64::MAX >> (64 - bits)
            }));
            words.push(states.len());
        }
        Self { groups, words, states, next: Vec::new(), alive: Vec::new(), chosen: Vec::new(), bits: Vec::new() }
    }

    fn fill(mut self, diagram: &mut Diagram, levels: &[Level]) -> Result<(), Error> {
        let width = *self.words.last().unwrap_or(&0);
        diagram.nodes.push(Node { branches: (0, 0), runs: 0, start: 0, end: 0 });
        let mut first = 1;
        for (number, level) in levels.iter().enumerate() {
            let is_lowest = number + 1 == levels.len();
            let below = diagram.nodes.len();
            self.next.clear();
            let here = self.words[level.group]..self.words[level.group + 1];
            for node in first..below {
                let state = (node - first) * width;
                self.choose(level, state)?;
                let start = diagram.branches.len();
                for (at, &values) in self.chosen.iter().enumerate() {
                    let child = if is_lowest {
                        ELEMENT as usize
                    } else {
                        let begin = self.next.len();
                        self.next.extend_from_slice(&self.states[state..state + width]);
                        let own = &mut self.next[begin + here.start..begin + here.end];
                        if level.is_last {
                            own.fill(0);
                        } else {
                            own.copy_from_slice(&self.bits[at * here.len()..][..here.len()]);
                        }
                        let (known, new) = self.next.split_at(begin);
                        if let Some(same) = known.chunks_exact(width).position(|state| state == new) {
                            self.next.truncate(begin);
                            below + same
                        } else {
                            let node = Node { branches: (0, 0), runs: 0, start: 0, end: 0 };
                            diagram.nodes.push(node);
                            if diagram.nodes.len() - below > MOST_NODES {
                                return Err(undecided());
                            }
                            diagram.nodes.len() - 1
                        }
                    };
                    push(&mut diagram.branches, start, level.stride, values, number_of(child)?);
                }
                diagram.nodes[node].branches = (number_of(start)?, number_of(diagram.branches.len())?);
            }
            core::mem::swap(&mut self.states, &mut self.next);
            first = below;
        }
        Ok(())
    }

    /// Sets `chosen` to the values that a level's digit may take in a state, in rising order, and `bits` to the pieces
    /// left by each.
    fn choose(&mut self, level: &Level, state: usize) -> Result<(), Error> {
        let group = &self.groups[level.group];
        let here = self.words[level.group]..self.words[level.group + 1];
        let words = &self.states[state + here.start..state + here.end];
        let width = group.digits.len();
        self.alive.clear();
        for (number, &word) in words.iter().enumerate() {
            let mut word = word;
            while word != 0 {
                let piece = 64 * number + word.trailing_zeros() as usize;
                self.alive.push((group.progressions[piece * width + level.digit], piece));
                word &= word - 1;
            }
        }
        self.chosen.clear();
        self.bits.clear();
        self.alive.sort_unstable();
        let apart = |pair: &[(Progression, usize)]| pair[0].0 == pair[1].0 || pair[0].0.last() < pair[1].0.first;
        if self.alive.windows(2).all(apart) {
            for &(values, piece) in &self.alive {
                if self.chosen.last() != Some(&values) {
                    self.chosen.push(values);
                    self.bits.resize(self.bits.len() + here.len(), 0);
                }
                let own = self.bits.len() - here.len();
                self.bits[own + piece / 64] |= 1 << (piece % 64);
            }
            return Ok(());
        }
        // Pieces that overlap in this digit: where any of them begins or ends, another set of them is alive.
        let mut cuts = Vec::new();
        if self.alive.iter().all(|(values, _)| values.step == 1) {
            cuts.extend(self.alive.iter().flat_map(|(values, _)| [values.first, values.last() + 1]));
        } else {
            let values: u64 = self.alive.iter().fold(0, |sum, (values, _)| sum.saturating_add(values.count));
            if values > MOST_NODES as u64 {
                return Err(undecided());
            }
            for (values, _) in &self.alive {
                cuts.extend(
                    (0..values.count)
                        .flat_map(|n| [values.first + n * values.step, values.first + n * values.step + 1]),
                );
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        for pair in cuts.windows(2) {
            let own = self.bits.len();
            self.bits.resize(own + here.len(), 0);
            let mut any = false;
            for &(_, piece) in self.alive.iter().filter(|(values, _)| values.contains(pair[0])) {
                self.bits[own + piece / 64] |= 1 << (piece % 64);
                any = true;
            }
            if any {
                self.chosen.push(Progression::new(pair[0], 1, pair[1] - pair[0]));
            } else {
                self.bits.truncate(own);
            }
        }
        Ok(())
    }
}

/// Adds a branch to a node, or its values to the branch before.
fn push(branches: &mut Vec<Branch>, node: usize, stride: u64, values: Progression, child: NodeId) {
    let (offset, delta) = (values.first * stride, values.step * stride);
    if let Some(last) = branches[node..].last_mut().filter(|last| last.child == child) {
        let apart = offset - (last.offset + (last.count - 1) * last.delta);
        if (last.count == 1 || last.delta == apart) && (values.count == 1 || delta == apart) {
            (last.count, last.delta) = (last.count + values.count, apart);
            return;
        }
    }
    let count = values.count;
    branches.push(Branch { offset, count, delta, child, runs: 0, start: 0, end: 0, joins: false, joins_before: false });
}

fn number_of(number: usize) -> Result<NodeId, Error> {
    NodeId::try_from(number).map_err(|_| undecided())
}
