//! Asynchronous pairs: a start, updates, a done, and the computation they run.

use foldhash::HashMap;

use crate::{Instruction, Opcode};

use super::{BodyId, Dataflow, OpId, Position};

/// A start, its updates and its done.
#[derive(Debug)]
pub struct Chain {
    /// Its first instruction.
    pub start: OpId,
    /// Its last, if the text has it.
    pub done: Option<OpId>,
    /// The computation that it runs.
    pub wrapped: Option<BodyId>,
    /// The operands that the start and the updates pass to it, in order.
    operands: Vec<OpId>,
    last: OpId,
}

impl Chain {
    /// All operands that it passes to the computation.
    #[must_use]
    pub fn operands(&self) -> &[OpId] {
        &self.operands
    }
}

/// The asynchronous chains of a module.
#[derive(Debug, Default)]
pub(super) struct Chains {
    chains: Vec<Chain>,
    /// The chain of each of its instructions, and the number of operands that are bound once that has run.
    links: HashMap<OpId, (usize, usize)>,
}

impl Chains {
    pub(super) fn new(flow: &Dataflow) -> Self {
        let mut this = Self::default();
        for (op, data) in flow.ops().iter() {
            let operands = flow.operands(op);
            match data.opcode {
                Opcode::AsyncStart => {
                    let wrapped = flow.calls(op).first().map(|call| call.1);
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
                        if data.opcode == Opcode::AsyncDone {
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
}

/// Asynchronous pairs.
impl Dataflow {
    /// The chain that an instruction is a step of.
    #[must_use]
    pub fn chain(&self, op: OpId) -> Option<&Chain> {
        let chains = self.chains();
        chains.links.get(&op).map(|(chain, _)| &chains.chains[*chain])
    }

    /// The operands bound once this instruction of a chain has run.
    #[must_use]
    pub fn bound(&self, op: OpId) -> &[OpId] {
        let chains = self.chains();
        chains.links.get(&op).map_or(&[], |(chain, bound)| &chains.chains[*chain].operands[..*bound])
    }

    /// The computation that the chain runs, if this instruction has bound all its operands.
    #[must_use]
    pub fn ready(&self, op: OpId) -> Option<BodyId> {
        let wrapped = self.chain(op)?.wrapped?;
        (self.bound(op).len() >= self[wrapped].parameters.len()).then_some(wrapped)
    }

    /// The instruction in the text that has an array, with the array's number among its leaves. The results of an
    /// instruction that the text leaves out are those of its chain's done.
    #[must_use]
    pub fn told(&self, position: Position) -> Option<(Instruction<'_>, usize)> {
        let op = self.op_at(position);
        let told = if self[op].is_hidden {
            self.caller(op).filter(|_| self[op].is_root).and_then(|start| self.chain(start)?.done)?
        } else {
            op
        };
        Some((self.instruction(told)?, self.leaves_before(position)))
    }
}
