//! Asynchronous pairs: a start, updates, a done, and the computation they run.

use std::collections::HashMap;

use tilewise_hlo::CallRole;

use crate::{
    graph::Graph,
    index::{ComputationId, OpId},
    opcode::Opcode,
};

/// A start and what follows it.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) start: OpId,
    pub(crate) done: Option<OpId>,
    /// The computation that it runs.
    pub(crate) wrapped: Option<ComputationId>,
    /// What the start and the updates pass to it, in order.
    operands: Vec<OpId>,
    last: OpId,
}

impl Chain {
    /// All that it passes to the computation.
    pub(crate) fn operands(&self) -> &[OpId] {
        &self.operands
    }
}

/// The asynchronous chains of a module.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    chains: Vec<Chain>,
    /// The chain of each of its instructions, and how many operands are bound once that has run.
    links: HashMap<OpId, (usize, usize)>,
}

impl Chains {
    pub(crate) fn new(graph: &Graph<'_>) -> Self {
        let mut this = Self::default();
        for (op, instruction) in graph.ops.iter() {
            let operands = graph.operands(op);
            match instruction.opcode {
                Opcode::AsyncStart => {
                    let wrapped = graph.callees(op, &[CallRole::Calls, CallRole::ToApply]).next();
                    this.links.insert(op, (this.chains.len(), operands.len()));
                    let operands = operands.to_vec();
                    this.chains.push(Chain { start: op, done: None, wrapped, operands, last: op });
                }
                Opcode::AsyncUpdate | Opcode::AsyncDone => {
                    let Some((before, bound)) = operands.split_first() else { continue };
                    let Some(&(at, _)) = this.links.get(before) else { continue };
                    let chain = &mut this.chains[at];
                    if chain.last == *before {
                        chain.operands.extend(bound);
                        chain.last = op;
                        if instruction.opcode == Opcode::AsyncDone {
                            chain.done = Some(op);
                        }
                    }
                    this.links.insert(op, (at, this.chains[at].operands.len()));
                }
                _ => {}
            }
        }
        this
    }

    pub(crate) fn of(&self, op: OpId) -> Option<&Chain> {
        self.links.get(&op).map(|(chain, _)| &self.chains[*chain])
    }

    /// The operands bound once this instruction of a chain has run.
    pub(crate) fn bound(&self, op: OpId) -> &[OpId] {
        self.links.get(&op).map_or(&[], |(chain, bound)| &self.chains[*chain].operands[..*bound])
    }

    /// The computation that the chain runs, if this instruction has bound all its operands.
    pub(crate) fn ready(&self, graph: &Graph<'_>, op: OpId) -> Option<ComputationId> {
        let wrapped = self.of(op)?.wrapped?;
        (self.bound(op).len() >= graph.bodies[wrapped].parameters.len()).then_some(wrapped)
    }
}
