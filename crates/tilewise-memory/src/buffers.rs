//! Buffers: values that must share memory, and their live ranges.

use foldhash::HashSet;

use tilewise_hlo::{
    CallRole, InputOutputAlias, Opcode,
    dataflow::{Dataflow, Id, Op, OpId, Position, Table, Value, ValueId},
};

use crate::{Error, ErrorKind, in_place::InPlace, storage::Storages, timeline::Timeline};

/// The logical times of a value's life, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiveRange {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl LiveRange {
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// The marker of a [`BufferId`]: values that share memory.
#[derive(Debug)]
pub(crate) enum Buffer {}

pub(crate) type BufferId = Id<Buffer>;

/// The buffers of a module: sets of values that share memory, as in `HloAliasAnalysis`.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// The values of each buffer, by rank.
    pub(crate) members: Table<Buffer, Vec<ValueId>>,
    of: Table<Value, Option<BufferId>>,
    pub(crate) ranges: Table<Value, LiveRange>,
    /// Tie-break order of values.
    pub(crate) ranks: Table<Value, u32>,
    /// The last position that holds each value, with its end time: the defining position or a later one.
    last_seen: Table<Value, (usize, Position)>,
    /// The positions of donated arguments.
    pub(crate) donated: HashSet<Position>,
    /// Those that the text doesn't donate: it doesn't say either what may take their place.
    pub(crate) donated_beside: HashSet<Position>,
}

impl Buffers {
    /// The buffers of a module with these aliases of results and arguments beside its own.
    pub(crate) fn new(
        flow: &Dataflow,
        timeline: &Timeline,
        ranks: Table<Value, u32>,
        aliases: &[InputOutputAlias],
    ) -> Result<Self, Error> {
        let mut union = Union::new(flow);
        let in_place = InPlace::new(flow)?;
        for &op in &timeline.order {
            for (operand, result) in in_place.positions(op)? {
                union.join(operand, result);
            }
            union.join_callees(op);
        }
        let mut donated = HashSet::default();
        let further = positions(flow, aliases)?;
        for (parameter, output) in donations(flow)?.into_iter().chain(further.iter().copied()) {
            donated.insert(parameter);
            union.join(output, parameter);
        }
        let mut this = Self {
            members: Table::new(),
            of: Table::filled(flow.values().len(), None),
            ranges: Table::filled(flow.values().len(), LiveRange::default()),
            last_seen: flow.values().iter().map(|(_, definition)| (0, *definition)).collect::<Vec<_>>().into(),
            ranks,
            donated,
            donated_beside: further.into_iter().map(|(parameter, _)| parameter).collect(),
        };
        let mut of_root: Table<Value, Option<BufferId>> = Table::filled(flow.values().len(), None);
        let mut values: Vec<ValueId> = flow.values().ids().collect();
        values.sort_unstable_by_key(|value| this.ranks[*value]);
        for value in values {
            if timeline.logical_time(flow.op_at(flow.values()[value])).is_some() {
                let root = union.find(value);
                let buffer = *of_root[root].get_or_insert_with(|| this.members.push(Vec::new()));
                this.members[buffer].push(value);
                this.of[value] = Some(buffer);
            }
        }
        this.find_ranges(flow, timeline);
        Ok(this)
    }

    /// The buffer of a value, if the value's instruction runs.
    pub(crate) fn of(&self, value: ValueId) -> Option<BufferId> {
        self.of[value]
    }

    /// The last position that holds a value.
    pub(crate) fn last_seen(&self, value: ValueId) -> Position {
        self.last_seen[value].1
    }

    /// Bytes of the buffer's largest value.
    pub(crate) fn bytes(&self, flow: &Dataflow, storages: &Storages, buffer: BufferId) -> u64 {
        let sizes = self.members[buffer].iter().map(|value| storages[flow.values()[*value]].bytes);
        sizes.max().unwrap_or(0)
    }

    /// The buffer of the value at a position, if the position's instruction runs.
    pub(crate) fn at(&self, flow: &Dataflow, position: Position) -> Option<BufferId> {
        self.of(flow.value_at(position)?)
    }

    /// Computes live ranges as `HloLiveRange::ComputeBufferLiveRanges` does (xla/hlo/utils/hlo_live_range.cc).
    fn find_ranges(&mut self, flow: &Dataflow, timeline: &Timeline) {
        for (value, &definition) in flow.values().iter() {
            let op = flow.op_at(definition);
            let (Some(time), Some(mut end)) = (timeline.logical_time(op), timeline.end(flow, op)) else { continue };
            self.last_seen[value].0 = end;
            let body = flow[op].body;
            let span = timeline.span(body);
            let is_parameter = flow[op].opcode == Opcode::Parameter;
            if let Some(start) = timeline.start_around(body) {
                let done = flow.chain(start).and_then(|chain| timeline.logical_time(chain.done?));
                end = end.max(done.unwrap_or(span.end));
            }
            if is_parameter && Some(body) == flow.entry() && !self.donated.contains(&definition) {
                end = timeline.len();
            }
            self.ranges[value] = LiveRange { start: if is_parameter { span.start } else { time }, end };
        }
        let mut extend = |value: ValueId, end: usize| {
            let range = &mut self.ranges[value];
            range.end = range.end.max(end);
        };
        // The last read of each whole result, kept per instruction: a wide tuple may have many readers.
        let mut last_reads: Table<Op, Option<usize>> = Table::filled(flow.ops().len(), None);
        for &op in &timeline.order {
            if let Some(end) = timeline.end(flow, op) {
                for position in flow.positions(op) {
                    let Some(value) = flow.value_at(position) else { continue };
                    extend(value, end);
                    if end > self.last_seen[value].0 {
                        self.last_seen[value] = (end, position);
                    }
                }
            }
            let Some((time, reads_all)) = reads(flow, timeline, op) else { continue };
            for &operand in flow.operands(op) {
                if reads_all {
                    last_reads[operand] = last_reads[operand].max(Some(time));
                } else if let Some(value) = flow.value_at(flow[operand].position) {
                    extend(value, time);
                }
            }
        }
        for (op, time) in last_reads.iter().filter_map(|(op, time)| Some((op, (*time)?))) {
            for value in flow.positions(op).filter_map(|position| flow.value_at(position)) {
                extend(value, time);
            }
        }
        for members in self.members.ids() {
            let mut sorted = self.members[members].clone();
            sort_by_range(&mut sorted, &self.ranges, &self.ranks);
            for pair in sorted.windows(2) {
                let (before, after) = (self.ranges[pair[0]], self.ranges[pair[1]]);
                self.ranges[pair[1]].end = before.end.max(after.end);
                self.ranges[pair[0]].end = before.end.min(after.start);
            }
        }
    }
}

/// Positions of donated arguments, each with the result that takes it over (`input_output_alias`).
pub(crate) fn donations(flow: &Dataflow) -> Result<Vec<(Position, Position)>, Error> {
    positions(flow, &flow.module().input_output_aliases()?)
}

/// The positions of aliases: of an argument, and of the result that takes it over.
fn positions(flow: &Dataflow, aliases: &[InputOutputAlias]) -> Result<Vec<(Position, Position)>, Error> {
    let entry = flow.entry().ok_or(ErrorKind::NoEntry)?;
    let parameters = &flow[entry].parameters;
    let pairs = aliases.iter().filter_map(|alias| {
        let parameter = parameters.binary_search_by_key(&alias.parameter_number, |op| flow[*op].number).ok()?;
        let parameter = flow.at(flow[parameters[parameter]].position, &alias.parameter_index)?;
        Some((parameter, flow.at(flow.result(entry), &alias.output_index)?))
    });
    Ok(pairs.collect())
}

/// Sorts values by start, then end, then rank.
pub(crate) fn sort_by_range(values: &mut [ValueId], ranges: &Table<Value, LiveRange>, ranks: &Table<Value, u32>) {
    values.sort_by_cached_key(|value| (ranges[*value].start, ranges[*value].end, ranks[*value]));
}

/// When an instruction reads its operands, and whether it reads all their positions or only the outermost ones. `None`
/// if it reads none or doesn't run.
fn reads(flow: &Dataflow, timeline: &Timeline, op: OpId) -> Option<(usize, bool)> {
    let reader = match flow[op].opcode {
        Opcode::Tuple | Opcode::Domain | Opcode::Call => return None,
        Opcode::While => {
            let body = flow.callee(op, CallRole::Body);
            body.and_then(|body| flow[body].parameters.first().copied()).unwrap_or(op)
        }
        _ => op,
    };
    Some((timeline.logical_time(reader)?, !matches!(flow[op].opcode, Opcode::GetTupleElement | Opcode::Copy)))
}

/// Disjoint sets of values.
struct Union<'f> {
    flow: &'f Dataflow,
    parents: Table<Value, ValueId>,
}

impl<'f> Union<'f> {
    fn new(flow: &'f Dataflow) -> Self {
        Self { flow, parents: flow.values().ids().collect::<Vec<_>>().into() }
    }

    fn find(&mut self, mut value: ValueId) -> ValueId {
        while self.parents[value] != value {
            self.parents[value] = self.parents[self.parents[value]];
            value = self.parents[value];
        }
        value
    }

    fn join(&mut self, a: Position, b: Position) {
        if let (Some(a), Some(b)) = (self.flow.value_at(a), self.flow.value_at(b)) {
            let (a, b) = (self.find(a), self.find(b));
            self.parents[a.max(b)] = a.min(b);
        }
    }

    fn join_nodes(&mut self, a: Position, b: Position) {
        for k in 0..self.flow.extent(a).min(self.flow.extent(b)) {
            self.join(a.plus(k), b.plus(k));
        }
    }

    /// Joins a loop's carry throughout, and the results of branches with that of their conditional.
    fn join_callees(&mut self, op: OpId) {
        let flow = self.flow;
        let result = flow[op].position;
        match flow[op].opcode {
            Opcode::While => {
                let parameters = flow.calls(op).iter().filter_map(|call| flow[call.1].parameters.first());
                for parameter in parameters {
                    self.join_nodes(result, flow[*parameter].position);
                }
                let round = flow.callee(op, CallRole::Body).map(|body| flow.result(body));
                for position in flow.operand(op, 0).into_iter().chain(round) {
                    self.join_nodes(result, position);
                }
            }
            Opcode::Conditional => {
                for (_, branch) in flow.calls(op) {
                    self.join_nodes(result, flow.result(*branch));
                }
            }
            _ => {}
        }
    }
}
