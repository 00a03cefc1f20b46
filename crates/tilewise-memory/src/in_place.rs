//! Results that an instruction writes into an operand.
//!
//! The rules are those of `HloDataflowAnalysis::GetInPlaceInputOutputPairs` and `AliasInfo`
//! (xla/hlo/analysis/alias_info.cc), fusions included.

use foldhash::HashMap;
use std::collections::hash_map::Entry;

use tilewise_hlo::{
    CallRole, Opcode,
    dataflow::{Dataflow, OpId, Position},
};

use crate::{Error, ErrorKind};

/// A result in the place of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The operand's number.
    operand: usize,
    /// Offset in nodes within the operand's shape.
    from: usize,
    /// Offset in nodes within the result's shape.
    to: usize,
}

impl Pair {
    const WHOLE: Self = Self { operand: 0, from: 0, to: 0 };
}

/// The pairs of every instruction.
#[derive(Debug)]
pub(crate) struct InPlace<'f> {
    flow: &'f Dataflow,
    /// The pairs of each fusion's body, sorted by `to`, at most one for each.
    fusions: HashMap<OpId, Vec<Pair>>,
    /// Steps left for `back`: 16 for each position of the program.
    left: usize,
}

impl<'f> InPlace<'f> {
    pub(crate) fn new(flow: &'f Dataflow) -> Result<Self, Error> {
        let left = flow.all_positions().len().saturating_mul(16);
        let mut this = Self { flow, fusions: HashMap::default(), left };
        // Bodies are printed before their callers, so in text order nested fusions come first.
        let mut fusions: Vec<OpId> = flow.ops().ids().filter(|op| flow[*op].opcode == Opcode::Fusion).collect();
        fusions.sort_by_cached_key(|op| flow.instruction_index(*op));
        for op in fusions {
            let pairs = this.fusion(op)?;
            if !pairs.is_empty() {
                this.fusions.insert(op, pairs);
            }
        }
        Ok(this)
    }

    /// The pairs as positions of an operand and of the result.
    pub(crate) fn positions(&self, op: OpId) -> Result<Vec<(Position, Position)>, Error> {
        let flow = self.flow;
        let position = |pair: &Pair| {
            let operand = flow.operand(op, pair.operand)?;
            let result = flow[op].position;
            let exist = pair.from < flow.extent(operand) && pair.to < flow.extent(result);
            exist.then(|| (operand.plus(pair.from), result.plus(pair.to)))
        };
        Ok(self.pairs(op)?.iter().filter_map(position).collect())
    }

    fn pairs(&self, op: OpId) -> Result<Vec<Pair>, Error> {
        let flow = self.flow;
        let result = flow[op].position;
        let count = flow.operands(op).len();
        Ok(match flow[op].opcode {
            Opcode::DynamicUpdateSlice | Opcode::SetDimensionSize => vec![Pair::WHOLE],
            Opcode::RaggedAllToAll => vec![Pair { operand: 1, ..Pair::WHOLE }],
            Opcode::Scatter => self.one_by_one(result, count.saturating_sub(1) / 2),
            Opcode::AllReduceStart => self.one_by_one(result, count),
            Opcode::CollectivePermute | Opcode::CollectivePermuteStart if count == 4 => {
                let is_start = flow[op].opcode == Opcode::CollectivePermuteStart;
                let to = if is_start { flow.element(result, 1) } else { Some(result) };
                let nodes = flow.operand(op, 1).map_or(0, |operand| flow.extent(operand));
                let to = to.filter(|to| flow.extent(*to) == nodes).map(|to| to.since(result));
                to.into_iter()
                    .flat_map(|to| (0..nodes).map(move |k| Pair { operand: 1, from: k, to: to + k }))
                    .collect()
            }
            Opcode::CustomCall => self.annotated(op, op)?,
            Opcode::Fusion => {
                let mut pairs = self.fusions.get(&op).cloned().unwrap_or_default();
                pairs.extend(self.annotated(op, op)?);
                pairs
            }
            Opcode::AsyncStart => self.annotated(op, op)?,
            Opcode::AsyncUpdate => {
                let mut pairs = self.annotated(op, op)?;
                if let (Some(chain), Some(&before)) = (flow.chain(op), flow.operands(op).first()) {
                    // The start's pairs number all operands; this binds those from `late` on, as operands 1 and up.
                    let late = flow.bound(before).len();
                    for pair in self.annotated(chain.start, op)? {
                        if let Some(operand) = (pair.operand + 1).checked_sub(late).filter(|k| (1..count).contains(k)) {
                            pairs.push(Pair { operand, ..pair });
                        }
                    }
                }
                pairs
            }
            Opcode::AsyncDone => self.of_done(op)?,
            _ => Vec::new(),
        })
    }

    /// Pairs operand `k` with element `k` of the result, or the only operand with the whole result.
    fn one_by_one(&self, result: Position, count: usize) -> Vec<Pair> {
        if count == 1 {
            return vec![Pair::WHOLE];
        }
        let elements = self.flow.elements(result).take(count).enumerate();
        elements.map(|(operand, element)| Pair { operand, from: 0, to: element.since(result) }).collect()
    }

    /// The start's pairs for element 1 of its result, as pairs of the done: its operand holds the start's in element 0.
    fn of_done(&self, op: OpId) -> Result<Vec<Pair>, Error> {
        let flow = self.flow;
        let (Some(chain), Some(before)) = (flow.chain(op), flow.operand(op, 0)) else { return Ok(Vec::new()) };
        let (Some(inputs), Some(output)) = (flow.element(before, 0), flow.element(before, 1)) else {
            return Ok(Vec::new());
        };
        let output = output.since(before);
        let pairs = self.annotated(chain.start, chain.start)?.into_iter().filter_map(|pair| {
            let from = flow.element(inputs, pair.operand)?.since(before) + pair.from;
            let to = pair.to.checked_sub(output).filter(|to| *to < flow.extent(flow[op].position))?;
            Some(Pair { operand: 0, from, to })
        });
        Ok(pairs.collect())
    }

    /// The pairs in `output_to_operand_aliasing` of `op`, for the result of `of`. On an asynchronous start, `{}` is the
    /// whole result of the wrapped instruction.
    fn annotated(&self, op: OpId, of: OpId) -> Result<Vec<Pair>, Error> {
        let flow = self.flow;
        let Some(instruction) = flow.instruction(op) else { return Ok(Vec::new()) };
        let chain = flow.chain(op).filter(|chain| chain.start == op);
        let operands = chain.map_or(flow.operands(op), |chain| chain.operands());
        let result = flow[of].position;
        let is_wrapped = flow[op].is_hidden;
        let pairs = instruction.output_to_operand_aliasing()?.into_iter().filter_map(|alias| {
            let is_of_wrapped = alias.output_index.is_empty() && !flow.is_tuple(result);
            if is_wrapped && !is_of_wrapped || chain.is_some() && alias.output_index.is_empty() {
                return None;
            }
            let operand = flow[*operands.get(alias.operand_number)?].position;
            let from = flow.at(operand, &alias.operand_index)?.since(operand);
            let to = flow.at(result, &alias.output_index)?.since(result);
            Some(Pair { operand: alias.operand_number, from, to })
        });
        Ok(pairs.collect())
    }

    /// The outputs that an in-place operation of the body writes into a parameter.
    fn fusion(&mut self, op: OpId) -> Result<Vec<Pair>, Error> {
        let flow = self.flow;
        let Some(body) = flow.callee(op, CallRole::Calls) else { return Ok(Vec::new()) };
        let (root, result) = (flow[body].root, flow[op].position);
        let mut pairs = Vec::new();
        let mut of_others: HashMap<OpId, HashMap<usize, Pair>> = HashMap::default();
        for leaf in flow.positions(op).filter(|position| !flow.is_tuple(*position)) {
            let to = leaf.since(result);
            let (producer, node) = self.back(root, to)?;
            let pair = if flow[producer].opcode == Opcode::Fusion {
                self.of_fusion(producer, node)
            } else {
                let by_place = match of_others.entry(producer) {
                    Entry::Occupied(known) => known.into_mut(),
                    // If several pairs have one output, the last counts.
                    Entry::Vacant(new) => new.insert(self.pairs(producer)?.into_iter().map(|p| (p.to, p)).collect()),
                };
                by_place.get(&node).copied()
            };
            let Some(pair) = pair else { continue };
            let Some(&operand) = flow.operands(producer).get(pair.operand) else { continue };
            let (mut source, mut from) = self.back(operand, pair.from)?;
            if let Some(pair) = self.of_fusion(source, from) {
                let Some(&operand) = flow.operands(source).get(pair.operand) else { continue };
                (source, from) = self.back(operand, pair.from)?;
            }
            if flow[source].opcode == Opcode::Parameter {
                pairs.push(Pair { operand: flow[source].number, from, to });
            }
        }
        Ok(pairs)
    }

    /// The pair of an already visited fusion for node `to` of its result.
    fn of_fusion(&self, op: OpId, to: usize) -> Option<Pair> {
        let pairs = self.fusions.get(&op)?;
        pairs.binary_search_by_key(&to, |pair| pair.to).ok().map(|at| pairs[at])
    }

    /// Follows a node in a fusion's body back through tuples, elements and bitcasts to the instruction that makes it.
    fn back(&mut self, mut op: OpId, mut node: usize) -> Result<(OpId, usize), Error> {
        let flow = self.flow;
        loop {
            self.left = self.left.checked_sub(1).ok_or(ErrorKind::TooLarge)?;
            let position = flow[op].position;
            let next = match flow[op].opcode {
                Opcode::Tuple if node > 0 => flow.element_around(position, node).and_then(|(number, element)| {
                    Some((*flow.operands(op).get(number)?, node - element.since(position)))
                }),
                Opcode::GetTupleElement => flow.operands(op).first().and_then(|operand| {
                    let tuple = flow[*operand].position;
                    let element = flow.element(tuple, flow[op].number)?;
                    Some((*operand, element.since(tuple) + node))
                }),
                Opcode::Bitcast if node == 0 => flow.operands(op).first().map(|operand| (*operand, node)),
                _ => None,
            };
            match next {
                Some(next) => (op, node) = next,
                None => return Ok((op, node)),
            }
        }
    }
}
