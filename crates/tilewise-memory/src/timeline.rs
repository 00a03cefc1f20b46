//! The order in which instructions run.

use std::ops::Range;

use tilewise_hlo::{
    Opcode,
    dataflow::{Body, BodyId, Dataflow, Op, OpId, Table},
};

/// The flattened schedule of the whole program: called computations run once, before their caller.
///
/// As in `HloLiveRange::FlattenSchedule` (xla/hlo/utils/hlo_live_range.cc).
#[derive(Debug)]
pub(crate) struct Timeline {
    /// The instruction at each logical time.
    pub(crate) order: Vec<OpId>,
    logical_times: Table<Op, Option<usize>>,
    spans: Table<Body, Range<usize>>,
    /// The asynchronous start around each computation, if any.
    starts: Table<Body, Option<OpId>>,
}

impl Timeline {
    pub(crate) fn new(flow: &Dataflow) -> Self {
        let mut this = Self {
            order: Vec::with_capacity(flow.ops().len()),
            logical_times: Table::filled(flow.ops().len(), None),
            spans: Table::filled(flow.bodies().len(), 0..0),
            starts: Table::filled(flow.bodies().len(), None),
        };
        let mut is_entered = Table::filled(flow.bodies().len(), false);
        // Each computation with the index of its current instruction, and of that instruction's next callee.
        let mut stack = Vec::new();
        if let Some(entry) = flow.entry() {
            is_entered[entry] = true;
            stack.push((entry, 0, 0));
        }
        while let Some((body, k, from)) = stack.pop() {
            let Some(op) = flow[body].op(k) else {
                this.spans[body].end = this.order.len();
                continue;
            };
            let mut start = this.starts[body];
            let is_new = |callee: &BodyId| !is_entered[*callee];
            let next = match flow[op].opcode {
                Opcode::Call | Opcode::Conditional | Opcode::While => {
                    let calls = flow.calls(op).iter().enumerate().skip(from);
                    calls.map(|(number, call)| (number, call.1)).find(|(_, callee)| is_new(callee))
                }
                opcode if opcode.is_async() => {
                    start = flow.chain(op).map(|chain| chain.start);
                    flow.ready(op).filter(is_new).map(|callee| (0, callee))
                }
                _ => None,
            };
            if let Some((number, callee)) = next {
                is_entered[callee] = true;
                this.starts[callee] = start;
                this.spans[callee] = this.order.len()..this.order.len();
                stack.extend([(body, k, number + 1), (callee, 0, 0)]);
            } else {
                this.logical_times[op] = Some(this.order.len());
                this.order.push(op);
                stack.push((body, k + 1, 0));
            }
        }
        this
    }

    /// The number of instructions that run.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// When an instruction runs, if it does.
    pub(crate) fn logical_time(&self, op: OpId) -> Option<usize> {
        self.logical_times[op]
    }

    /// The logical times of a computation: from its first instruction to one past its last.
    pub(crate) fn span(&self, body: BodyId) -> Range<usize> {
        self.spans[body].clone()
    }

    /// The end of a result that nothing reads: its instruction's own time, for a root the end of its computation.
    /// `None` if it doesn't run.
    pub(crate) fn end(&self, flow: &Dataflow, op: OpId) -> Option<usize> {
        let time = self.logical_time(op)?;
        Some(if flow[op].is_root { self.spans[flow[op].body].end } else { time })
    }

    /// The asynchronous start around a computation, if any.
    pub(crate) fn start_around(&self, body: BodyId) -> Option<OpId> {
        self.starts[body]
    }
}
