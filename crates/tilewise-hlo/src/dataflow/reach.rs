//! Which arrays follow from which: instructions read whole arrays, and hand on or make others.

use std::{collections::HashSet, sync::Arc};

use crate::steps;

/// The arrays of a module's instructions, and what is made of each.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// Of each instruction, how many arrays those before it have; then of all.
    leaves_before: Arc<[u32]>,
    /// Of each array, the instruction that makes it.
    makers: Vec<u32>,
    /// Where the ends of each node's edges begin, and where those of the last one end. First come arrays, then instructions, which what
    /// they read leads to, and which lead to their results; last tuples, which all of their arrays lead to, for what reads them whole.
    first: Vec<u32>,
    ends: Vec<u32>,
    /// Nodes of what sorts of several arrays work out: the order of their elements.
    orders: HashSet<u32>,
}

impl Edges {
    /// Of instructions that have so many arrays each.
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

    /// The node of what an instruction works out: its array, if it has one.
    pub(super) fn made(&self, instruction: usize) -> u32 {
        match self.leaves(instruction) {
            1 => self.leaves_before[instruction],
            _ => self.leaves_before.last().copied().unwrap_or(0) + number(instruction),
        }
    }

    /// The node of what reads all of an instruction's arrays.
    pub(super) fn read(&self, instruction: usize) -> u32 {
        match self.leaves(instruction) {
            1 => self.leaves_before[instruction],
            _ => self.leaves_before.last().copied().unwrap_or(0) + number(self.leaves_before.len() + instruction),
        }
    }

    /// Adds the edges from a sort's operands, one of several, to the results that have their elements.
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

    /// Takes the edges from node to node.
    pub(super) fn fill(&mut self, edges: &[(u32, u32)]) {
        let leaves = self.leaves_before.last().copied().unwrap_or(0) as usize;
        let nodes = leaves + 2 * self.leaves_before.len();
        // First how many each has, then where they end, then, filled from the last, where they begin.
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

    /// The instruction that makes a node; a tuple's is of none.
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

    /// Whether an instruction's array is among them; of a tuple it is a leaf, by its number.
    #[must_use]
    pub fn has(&self, instruction: usize, leaf: usize) -> bool {
        self.of(instruction).get(leaf) == Some(&true)
    }

    /// Whether one of an instruction's arrays is.
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
