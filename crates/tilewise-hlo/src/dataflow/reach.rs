//! The arrays that follow from others: instructions read whole arrays, and pass them on or make others.

use foldhash::HashSet;
use std::sync::Arc;

use crate::steps;

/// The arrays of a module's instructions, and the edges to those made of them.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// For each instruction, the number of arrays of those before it; at the end, of all.
    leaves_before: Arc<[u32]>,
    /// The instruction that makes each array.
    makers: Vec<u32>,
    /// The start of each node's edges in `ends`, and the end of the last one's. The first nodes are arrays; then
    /// instructions, with edges from the arrays they read and to their results; last tuples, with edges from all of
    /// their arrays, for readers of whole tuples.
    first: Vec<u32>,
    ends: Vec<u32>,
    /// The nodes of sorts of several arrays: the order of their elements.
    orders: HashSet<u32>,
}

impl Edges {
    /// The instructions with these numbers of arrays, without edges.
    pub(super) fn new(leaves: impl IntoIterator<Item = usize>) -> Self {
        let (mut leaves_before, mut makers) = (vec![0], Vec::new());
        for (instruction, leaves) in leaves.into_iter().enumerate() {
            makers.resize(makers.len() + leaves, number(instruction));
            leaves_before.push(number(makers.len()));
        }
        Self { leaves_before: leaves_before.into(), makers, ..Self::default() }
    }

    pub(super) fn leaf(&self, instruction: usize, leaf: usize) -> u32 {
        self.leaves_before[instruction] + number(leaf)
    }

    /// The node of an instruction's computation: its array, if it has one.
    pub(super) fn made(&self, instruction: usize) -> u32 {
        match self.leaves(instruction) {
            1 => self.leaves_before[instruction],
            _ => self.leaves_before.last().copied().unwrap_or(0) + number(instruction),
        }
    }

    /// The node for readers of all of an instruction's arrays.
    pub(super) fn read(&self, instruction: usize) -> u32 {
        match self.leaves(instruction) {
            1 => self.leaves_before[instruction],
            _ => self.leaves_before.last().copied().unwrap_or(0) + number(self.leaves_before.len() + instruction),
        }
    }

    /// Adds the edges from the operands of a sort of several to the results that have their elements.
    pub(super) fn sort(&mut self, operands: &[Option<usize>], result: usize, edges: &mut Vec<(u32, u32)>) {
        if self.leaves(result) != operands.len() || operands.len() < 2 {
            return;
        }
        self.orders.insert(self.made(result));
        let operands = operands.iter().enumerate().filter_map(|(number, operand)| Some((number, (*operand)?)));
        edges.extend(operands.map(|(number, operand)| (self.leaf(operand, 0), self.leaf(result, number))));
    }

    fn leaves(&self, instruction: usize) -> usize {
        match self.leaves_before.get(instruction..=instruction + 1) {
            Some([before, end]) => (end - before) as usize,
            _ => 0,
        }
    }

    /// Stores the edges from node to node.
    pub(super) fn fill(&mut self, edges: &[(u32, u32)]) {
        let leaves = self.leaves_before.last().copied().unwrap_or(0) as usize;
        let nodes = leaves + 2 * self.leaves_before.len();
        // First the number of each node's edges, then their end, then, filled from the last, their start.
        self.first = vec![0; nodes + 1];
        for (from, _) in edges {
            self.first[*from as usize] += 1;
        }
        for node in 0..nodes {
            self.first[node + 1] += self.first[node];
        }
        self.ends = vec![0; edges.len()];
        for (from, to) in edges {
            self.first[*from as usize] -= 1;
            self.ends[self.first[*from as usize] as usize] = *to;
        }
    }

    /// The instruction of a node; `None` for a tuple's.
    fn instruction(&self, node: u32) -> Option<usize> {
        let node = node as usize;
        match self.makers.get(node) {
            Some(maker) => Some(*maker as usize),
            None => Some(node - self.makers.len()).filter(|at| *at < self.leaves_before.len()),
        }
    }

    pub(super) fn reach(
        &self,
        from: impl IntoIterator<Item = (usize, usize)>,
        stops: &dyn Fn(usize) -> bool,
        by_order: bool,
    ) -> Reached {
        let leaves = self.leaves_before.last().copied().unwrap_or(0) as usize;
        let mut is_reached = vec![false; self.first.len().saturating_sub(1)];
        let from = from.into_iter().filter(|(instruction, leaf)| *leaf < self.leaves(*instruction));
        let mut waiting: Vec<u32> = from.map(|(instruction, leaf)| self.leaf(instruction, leaf)).collect();
        waiting.iter().for_each(|node| is_reached[*node as usize] = true);
        while let Some(node) = waiting.pop() {
            let [start, end] = [0, 1].map(|next| self.first[node as usize + next] as usize);
            for to in &self.ends[start..end] {
                steps::take(1);
                let is_followed = by_order || !self.orders.contains(to);
                if !is_reached[*to as usize] && is_followed && !self.instruction(*to).is_some_and(stops) {
                    is_reached[*to as usize] = true;
                    waiting.push(*to);
                }
            }
        }
        is_reached.truncate(leaves);
        Reached { is_reached, leaves_before: Arc::clone(&self.leaves_before) }
    }
}

/// Arrays that follow from others.
#[derive(Clone, Debug)]
pub struct Reached {
    is_reached: Vec<bool>,
    leaves_before: Arc<[u32]>,
}

impl Reached {
    fn of(&self, instruction: usize) -> &[bool] {
        match self.leaves_before.get(instruction..=instruction + 1) {
            Some([before, end]) => &self.is_reached[*before as usize..*end as usize],
            _ => &[],
        }
    }

    /// Whether an instruction's array is among them; an array of a tuple is a leaf, by its number.
    #[must_use]
    pub fn has(&self, instruction: usize, leaf: usize) -> bool {
        self.of(instruction).get(leaf) == Some(&true)
    }

    /// Whether one of an instruction's arrays is among them.
    #[must_use]
    pub fn has_any(&self, instruction: usize) -> bool {
        self.of(instruction).contains(&true)
    }

    /// All of them: instructions with the numbers of leaves.
    pub fn all(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let instructions = 0..self.leaves_before.len().saturating_sub(1);
        instructions
            .flat_map(|at| (0..self.of(at).len()).map(move |leaf| (at, leaf)))
            .filter(|(at, leaf)| self.has(*at, *leaf))
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
