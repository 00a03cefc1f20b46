//! The order in which instructions run.

use std::ops::Range;

use tilewise_hlo::CallRole;

use crate::{
    chains::Chains,
    graph::Graph,
    index::{ComputationId, OpId, Table},
    opcode::Opcode,
};

/// One line for the whole program: what an instruction calls runs once, before it.
///
/// As `HloLiveRange::FlattenSchedule` has it (xla/hlo/utils/hlo_live_range.cc).
#[derive(Debug)]
pub(crate) struct Timeline {
    /// What runs at each moment.
    pub(crate) order: Vec<OpId>,
    moments: Table<OpId, Option<usize>>,
    spans: Table<ComputationId, Range<usize>>,
    /// The start whose asynchronous computation each is in, if any.
    starts: Table<ComputationId, Option<OpId>>,
}

impl Timeline {
    pub(crate) fn new(graph: &Graph<'_>, chains: &Chains) -> Self {
        let mut this = Self {
            order: Vec::with_capacity(graph.ops.len()),
            moments: Table::filled(graph.ops.len(), None),
            spans: Table::filled(graph.bodies.len(), 0..0),
            starts: Table::filled(graph.bodies.len(), None),
        };
        let mut is_entered = Table::filled(graph.bodies.len(), false);
        is_entered[graph.entry] = true;
        let mut stack = vec![(graph.entry, 0)];
        while let Some((computation, k)) = stack.pop() {
            let Some(op) = graph.bodies[computation].op(k) else {
                this.spans[computation].end = this.order.len();
                continue;
            };
            let mut start = this.starts[computation];
            let is_new = |callee: &ComputationId| !is_entered[*callee];
            let callee = match graph.ops[op].opcode {
                Opcode::Call => graph.callees(op, &[CallRole::ToApply, CallRole::Calls]).find(is_new),
                Opcode::Conditional => graph.branches(op).find(is_new),
                Opcode::While => graph.callees(op, &[CallRole::Condition, CallRole::Body]).find(is_new),
                opcode if opcode.is_async() => {
                    start = chains.of(op).map(|chain| chain.start);
                    chains.ready(graph, op).filter(is_new)
                }
                _ => None,
            };
            if let Some(callee) = callee {
                is_entered[callee] = true;
                this.starts[callee] = start;
                this.spans[callee] = this.order.len()..this.order.len();
                stack.extend([(computation, k), (callee, 0)]);
            } else {
                this.moments[op] = Some(this.order.len());
                this.order.push(op);
                stack.push((computation, k + 1));
            }
        }
        this
    }

    /// How many instructions run.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// When an instruction runs, if it does.
    pub(crate) fn moment(&self, op: OpId) -> Option<usize> {
        self.moments[op]
    }

    /// When the instructions of its computation run: from the first of them to one past the last.
    pub(crate) fn span(&self, computation: ComputationId) -> Range<usize> {
        self.spans[computation].clone()
    }

    /// How long what an instruction puts in a place of its own lasts: that of a root until its computation ends.
    pub(crate) fn end(&self, graph: &Graph<'_>, op: OpId) -> Option<usize> {
        let moment = self.moment(op)?;
        let instruction = &graph.ops[op];
        Some(if instruction.is_root { self.spans[instruction.computation].end } else { moment })
    }

    /// The start whose asynchronous computation this is in, if it is in one.
    pub(crate) fn start_around(&self, computation: ComputationId) -> Option<OpId> {
        self.starts[computation]
    }
}
