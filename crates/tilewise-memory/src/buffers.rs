//! Values that must lie together, and when each lives.

use std::collections::HashSet;

use tilewise_hlo::CallRole;

use crate::{
    Error,
    chains::Chains,
    graph::Graph,
    in_place::InPlace,
    index::{BufferId, Key, OpId, PlaceId, Table, ValueId},
    opcode::Opcode,
    timeline::Timeline,
    values::Values,
};

/// From its first moment to its last, both included.
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

/// The buffers of a module: sets of values that lie in one place, as of `HloAliasAnalysis`.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// The values of each, by number.
    pub(crate) members: Table<BufferId, Vec<ValueId>>,
    of: Table<ValueId, Option<BufferId>>,
    pub(crate) ranges: Table<ValueId, LiveRange>,
    /// The places of arguments that a result may take over.
    pub(crate) donated: HashSet<PlaceId>,
}

impl Buffers {
    pub(crate) fn new(graph: &Graph<'_>, chains: &Chains, values: &Values, timeline: &Timeline) -> Result<Self, Error> {
        let mut union = Union::new(values);
        let in_place = InPlace::new(graph, chains)?;
        for &op in &timeline.order {
            for (operand, result) in in_place.places(op)? {
                union.join(operand, result);
            }
            union.join_callees(graph, op);
        }
        let mut donated = HashSet::new();
        for alias in graph.module.input_output_aliases()? {
            let parameters = &graph.bodies[graph.entry].parameters;
            let parameter = parameters.iter().find(|op| graph.ops[**op].number == alias.parameter_number);
            let parameter = parameter.and_then(|op| graph.at(graph.ops[*op].place, &alias.parameter_index));
            let output = graph.at(graph.root_place(graph.entry), &alias.output_index);
            if let (Some(parameter), Some(output)) = (parameter, output) {
                donated.insert(parameter);
                union.join(output, parameter);
            }
        }
        let mut this = Self {
            members: Table::new(),
            of: Table::filled(values.values.len(), None),
            ranges: Table::filled(values.values.len(), LiveRange::default()),
            donated,
        };
        let mut of_root: Table<ValueId, Option<BufferId>> = Table::filled(values.values.len(), None);
        for (value, data) in values.values.iter() {
            if timeline.moment(graph.places[data.place].op).is_some() {
                let root = union.find(value);
                let buffer = *of_root[root].get_or_insert_with(|| this.members.push(Vec::new()));
                this.members[buffer].push(value);
                this.of[value] = Some(buffer);
            }
        }
        this.find_ranges(graph, chains, values, timeline);
        Ok(this)
    }

    /// The buffer of a value, if the value's instruction runs.
    pub(crate) fn of(&self, value: ValueId) -> Option<BufferId> {
        self.of[value]
    }

    /// Bytes of the largest of its values.
    pub(crate) fn bytes(&self, graph: &Graph<'_>, values: &Values, buffer: BufferId) -> u64 {
        let sizes = self.members[buffer].iter().map(|value| graph.places[values.values[*value].place].bytes);
        sizes.max().unwrap_or(0)
    }

    /// The buffer of the value at a place, if the place's instruction runs.
    pub(crate) fn at(&self, values: &Values, place: PlaceId) -> Option<BufferId> {
        self.of(values.at(place)?)
    }

    /// By `HloLiveRange::ComputeBufferLiveRanges` (xla/hlo/utils/hlo_live_range.cc).
    fn find_ranges(&mut self, graph: &Graph<'_>, chains: &Chains, values: &Values, timeline: &Timeline) {
        for (value, data) in values.values.iter() {
            let op = graph.places[data.place].op;
            let (Some(moment), Some(mut end)) = (timeline.moment(op), timeline.end(graph, op)) else { continue };
            let instruction = &graph.ops[op];
            let span = timeline.span(instruction.computation);
            let is_parameter = instruction.opcode == Opcode::Parameter;
            if let Some(start) = timeline.start_around(instruction.computation) {
                let done = chains.of(start).and_then(|chain| timeline.moment(chain.done?));
                end = end.max(done.unwrap_or(span.end));
            }
            if is_parameter && instruction.computation == graph.entry && !self.donated.contains(&data.place) {
                end = timeline.len();
            }
            self.ranges[value] = LiveRange { start: if is_parameter { span.start } else { moment }, end };
        }
        let mut extend = |value: ValueId, end: usize| {
            let range = &mut self.ranges[value];
            range.end = range.end.max(end);
        };
        for &op in &timeline.order {
            if let Some(end) = timeline.end(graph, op) {
                for value in graph.places_of(op).filter_map(|place| values.at(place)) {
                    extend(value, end);
                }
            }
            for (place, moment) in uses(graph, timeline, op) {
                if let Some(value) = values.at(place) {
                    extend(value, moment);
                }
            }
        }
        for members in self.members.keys() {
            let mut sorted = self.members[members].clone();
            sort_by_range(&mut sorted, &self.ranges);
            for pair in sorted.windows(2) {
                let (before, after) = (self.ranges[pair[0]], self.ranges[pair[1]]);
                self.ranges[pair[1]].end = before.end.max(after.end);
                self.ranges[pair[0]].end = before.end.min(after.start);
            }
        }
    }
}

/// Those that live first, and of those the ones that end first, come first.
pub(crate) fn sort_by_range(values: &mut [ValueId], ranges: &Table<ValueId, LiveRange>) {
    values.sort_by_cached_key(|value| (ranges[*value].start, ranges[*value].end, value.at()));
}

/// The places of its operands that an instruction reads, and when.
fn uses<'a>(
    graph: &'a Graph<'_>,
    timeline: &'a Timeline,
    op: OpId,
) -> impl Iterator<Item = (PlaceId, usize)> + use<'a> {
    let reads_all = !matches!(graph.ops[op].opcode, Opcode::GetTupleElement | Opcode::Copy);
    let reader = match graph.ops[op].opcode {
        Opcode::Tuple | Opcode::Domain | Opcode::Call => None,
        Opcode::While => {
            let body = graph.callee(op, CallRole::Body);
            body.and_then(|body| graph.bodies[body].parameters.first().copied()).or(Some(op))
        }
        _ => Some(op),
    };
    let moment = reader.and_then(|reader| timeline.moment(reader));
    moment.into_iter().flat_map(move |moment| {
        let operands = graph.operands(op).iter();
        operands.flat_map(move |operand| {
            let places = graph.places_of(*operand).take(if reads_all { usize::MAX } else { 1 });
            places.map(move |place| (place, moment))
        })
    })
}

/// Disjoint sets of values.
struct Union<'v> {
    values: &'v Values,
    parents: Table<ValueId, ValueId>,
}

impl<'v> Union<'v> {
    fn new(values: &'v Values) -> Self {
        Self { values, parents: values.values.keys().collect::<Vec<_>>().into() }
    }

    fn find(&mut self, mut value: ValueId) -> ValueId {
        while self.parents[value] != value {
            self.parents[value] = self.parents[self.parents[value]];
            value = self.parents[value];
        }
        value
    }

    fn join(&mut self, a: PlaceId, b: PlaceId) {
        if let (Some(a), Some(b)) = (self.values.at(a), self.values.at(b)) {
            let (a, b) = (self.find(a), self.find(b));
            self.parents[a.max(b)] = a.min(b);
        }
    }

    fn join_nodes(&mut self, graph: &Graph<'_>, a: PlaceId, b: PlaceId) {
        for k in 0..graph.extent(a).min(graph.extent(b)) {
            self.join(a.plus(k), b.plus(k));
        }
    }

    /// A loop's carry lies in one place throughout, and the results of branches in that of the conditional.
    fn join_callees(&mut self, graph: &Graph<'_>, op: OpId) {
        let result = graph.ops[op].place;
        match graph.ops[op].opcode {
            Opcode::While => {
                let callees = graph.callees(op, &[CallRole::Condition, CallRole::Body]);
                let parameters = callees.filter_map(|callee| graph.bodies[callee].parameters.first());
                for parameter in parameters {
                    self.join_nodes(graph, result, graph.ops[*parameter].place);
                }
                let round = graph.callee(op, CallRole::Body).map(|body| graph.root_place(body));
                for place in graph.operand(op, 0).into_iter().chain(round) {
                    self.join_nodes(graph, result, place);
                }
            }
            Opcode::Conditional => {
                for branch in graph.branches(op) {
                    self.join_nodes(graph, result, graph.root_place(branch));
                }
            }
            _ => {}
        }
    }
}
