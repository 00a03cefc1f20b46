//! Which value each place holds: XLA's dataflow analysis.
//!
//! The rules are those of `HloDataflowAnalysis` (xla/hlo/analysis/hlo_dataflow_analysis.cc); values that join in loops
//! and conditionals are simplified as by `PhiGraph` (hlo_phi_graph.cc).

use tilewise_hlo::CallRole;

use crate::{
    chains::Chains,
    graph::Graph,
    index::{ComputationId, Key, OpId, PlaceId, Table, ValueId},
    opcode::Opcode,
};

/// A value: what an instruction puts in one place of its result.
///
/// Values are numbered as written, those of tables before their elements', then those that join; numbers break ties.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    /// The place that defines it.
    pub(crate) place: PlaceId,
}

/// The values of a module.
#[derive(Debug)]
pub(crate) struct Values {
    pub(crate) values: Table<ValueId, Value>,
    /// What each place holds; nothing where the instruction doesn't run.
    held: Table<PlaceId, Option<ValueId>>,
}

impl Values {
    pub(crate) fn new(graph: &Graph<'_>, chains: &Chains) -> Self {
        let mut flow = Flow {
            graph,
            chains,
            held: Table::filled(graph.places.len(), None),
            joins: Table::new(),
            sources: Vec::new(),
            is_done: Table::filled(graph.bodies.len(), false),
        };
        flow.run();
        flow.finish()
    }

    pub(crate) fn at(&self, place: PlaceId) -> Option<ValueId> {
        self.held[place]
    }
}

/// What a place holds while values flow: a value of its own, or one that joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Defined(PlaceId),
    Joined(JoinId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct JoinId(u32);

impl Key for JoinId {
    fn new(at: usize) -> Self {
        Self(u32::try_from(at).unwrap_or(u32::MAX))
    }

    fn at(self) -> usize {
        self.0 as usize
    }
}

/// A value that several may come to: of a loop, where it begins or comes round; of a conditional, by its branches.
#[derive(Clone, Copy, Debug)]
struct Join {
    place: PlaceId,
    /// Where in `sources` its own begin, and how many they are.
    sources: (u32, u32),
    /// What it turned out to be.
    is: Option<Source>,
}

struct Flow<'g, 'm> {
    graph: &'g Graph<'m>,
    chains: &'g Chains,
    held: Table<PlaceId, Option<Source>>,
    joins: Table<JoinId, Join>,
    sources: Vec<Source>,
    is_done: Table<ComputationId, bool>,
}

impl Flow<'_, '_> {
    /// Callees before their callers, on a stack of its own.
    fn run(&mut self) {
        self.is_done[self.graph.entry] = true;
        let mut stack = vec![(self.graph.entry, 0)];
        while let Some((computation, k)) = stack.pop() {
            let Some(op) = self.graph.bodies[computation].op(k) else { continue };
            match self.enter(op) {
                Some(callee) => stack.extend([(computation, k), (callee, 0)]),
                None => {
                    stack.push((computation, k + 1));
                    self.hold(op);
                }
            }
        }
    }

    /// The next callee whose values aren't known yet, its parameters bound.
    fn enter(&mut self, op: OpId) -> Option<ComputationId> {
        let (graph, chains) = (self.graph, self.chains);
        let operands = graph.operands(op);
        let fresh = |callee: &ComputationId| !self.is_done[*callee];
        let (callee, arguments) = match graph.ops[op].opcode {
            Opcode::Call => (graph.callees(op, &[CallRole::ToApply, CallRole::Calls]).next().filter(fresh)?, operands),
            Opcode::Conditional => {
                let (branch, callee) = graph.branches(op).enumerate().find(|(_, callee)| fresh(callee))?;
                (callee, operands.get(branch + 1..=branch + 1).unwrap_or_default())
            }
            Opcode::While => (graph.callees(op, &[CallRole::Condition, CallRole::Body]).find(fresh)?, &[][..]),
            Opcode::AsyncStart | Opcode::AsyncUpdate | Opcode::AsyncDone => {
                (chains.ready(graph, op).filter(fresh)?, chains.bound(op))
            }
            _ => return None,
        };
        self.is_done[callee] = true;
        for &parameter in &graph.bodies[callee].parameters {
            let (place, number) = (graph.ops[parameter].place, graph.ops[parameter].number);
            if graph.ops[op].opcode == Opcode::While {
                self.join(graph.nodes(place));
            } else if let Some(argument) = arguments.get(number) {
                self.forward(graph.ops[*argument].place, place);
            }
        }
        Some(callee)
    }

    /// Gives each of these places a value that joins; what it joins is said later.
    fn join(&mut self, places: impl Iterator<Item = PlaceId>) {
        for place in places {
            let join = self.joins.push(Join { place, sources: (0, 0), is: None });
            self.held[place] = Some(Source::Joined(join));
        }
    }

    fn join_sources(&mut self, place: PlaceId, sources: impl Iterator<Item = Option<Source>>) {
        let Some(Source::Joined(join)) = self.held[place] else { return };
        let first = self.sources.len();
        self.sources.extend(sources.flatten());
        let count = self.sources.len() - first;
        if let (Ok(first), Ok(count)) = (u32::try_from(first), u32::try_from(count)) {
            self.joins[join].sources = (first, count);
        }
    }

    /// `to` and what is in it holds what `from` does.
    fn forward(&mut self, from: PlaceId, to: PlaceId) {
        for k in 0..self.graph.extent(from).min(self.graph.extent(to)) {
            self.held[to.plus(k)] = self.held[from.plus(k)];
        }
    }

    fn forward_if(&mut self, from: Option<PlaceId>, to: Option<PlaceId>) {
        if let (Some(from), Some(to)) = (from, to) {
            self.forward(from, to);
        }
    }

    /// As [`Self::forward`], but for the tables.
    fn forward_leaves(&mut self, from: PlaceId, to: PlaceId) {
        for k in 0..self.graph.extent(from).min(self.graph.extent(to)) {
            if !self.graph.places[from.plus(k)].is_table {
                self.held[to.plus(k)] = self.held[from.plus(k)];
            }
        }
    }

    fn define(&mut self, place: PlaceId) {
        self.held[place] = Some(Source::Defined(place));
    }

    fn hold(&mut self, op: OpId) {
        let graph = self.graph;
        let place = graph.ops[op].place;
        let operand = |number| graph.operand(op, number);
        let element_of_operand = |number| operand(0).and_then(|tuple| graph.element(tuple, number));
        match graph.ops[op].opcode {
            Opcode::Bitcast | Opcode::Domain | Opcode::Forward => self.forward_if(operand(0), Some(place)),
            Opcode::Tuple => {
                for (element, operand) in graph.elements(place).zip(graph.operands(op)) {
                    self.forward(graph.ops[*operand].place, element);
                }
            }
            Opcode::GetTupleElement => self.forward_if(element_of_operand(graph.ops[op].number), Some(place)),
            Opcode::Copy => {
                self.forward_if(operand(0), Some(place));
                self.define(place);
            }
            Opcode::CopyStart => self.forward_if(operand(0), graph.element(place, 1)),
            Opcode::CopyDone => self.forward_if(element_of_operand(0), Some(place)),
            Opcode::AllGatherStart | Opcode::CollectivePermuteStart => self.hold_operands(op),
            Opcode::AllGatherDone | Opcode::CollectivePermuteDone => {
                self.forward_if(element_of_operand(1), Some(place));
                if graph.places[place].is_table {
                    self.define(place);
                }
            }
            Opcode::Send => self.forward_if(operand(0), graph.element(place, 0)),
            Opcode::RecvDone => self.forward_if(element_of_operand(0), graph.element(place, 0)),
            Opcode::AsyncStart | Opcode::AsyncUpdate | Opcode::AsyncDone => self.hold_async(op),
            Opcode::Call => {
                let callee = graph.callees(op, &[CallRole::ToApply, CallRole::Calls]).next();
                self.forward_if(callee.map(|callee| graph.root_place(callee)), Some(place));
            }
            Opcode::While => self.hold_while(op),
            Opcode::Conditional => {
                self.join(graph.places_of(op));
                for (k, place) in graph.places_of(op).enumerate() {
                    let sources = graph.branches(op).map(|branch| self.held_within(graph.root_place(branch), k));
                    let sources: Vec<_> = sources.collect();
                    self.join_sources(place, sources.into_iter());
                }
            }
            _ => {}
        }
        for place in graph.places_of(op) {
            if self.held[place].is_none() {
                self.define(place);
            }
        }
    }

    /// What the `k`th node of a place holds.
    fn held_within(&self, place: PlaceId, k: usize) -> Option<Source> {
        if k < self.graph.extent(place) { self.held[place.plus(k)] } else { None }
    }

    /// Element 0 of `all-gather-start` and `collective-permute-start`: the operands.
    fn hold_operands(&mut self, op: OpId) {
        let graph = self.graph;
        let Some(sources) = graph.element(graph.ops[op].place, 0) else { return };
        if !graph.places[sources].is_table {
            return self.forward_if(graph.operand(op, 0), Some(sources));
        }
        let is_permute = graph.ops[op].opcode == Opcode::CollectivePermuteStart;
        let tuple = graph.operand(op, 0).filter(|operand| is_permute && graph.places[*operand].is_table);
        match tuple {
            Some(tuple) => {
                self.forward(tuple, sources);
                self.define(sources);
            }
            None => {
                for (element, operand) in graph.elements(sources).zip(graph.operands(op)) {
                    self.forward(graph.ops[*operand].place, element);
                }
            }
        }
    }

    fn hold_while(&mut self, op: OpId) {
        let graph = self.graph;
        let begin = graph.operand(op, 0);
        let round = graph.callee(op, CallRole::Body).map(|body| graph.root_place(body));
        self.join(graph.places_of(op));
        let parameters = graph
            .callees(op, &[CallRole::Condition, CallRole::Body])
            .filter_map(|callee| graph.bodies[callee].parameters.first().copied());
        for carrier in parameters.chain([op]) {
            for (k, place) in graph.places_of(carrier).enumerate() {
                let sources = [begin, round].map(|place| self.held_within(place?, k));
                self.join_sources(place, sources.into_iter());
            }
        }
    }

    /// Tables are the instruction's own; {0} is the operands bound so far, {1} (all of a done) what the wrapped
    /// computation makes; contexts are handed on.
    fn hold_async(&mut self, op: OpId) {
        let (graph, chains) = (self.graph, self.chains);
        let (place, opcode) = (graph.ops[op].place, graph.ops[op].opcode);
        let is_done = opcode == Opcode::AsyncDone;
        if let Some(operands) = graph.element(place, 0).filter(|_| !is_done) {
            for (element, operand) in graph.elements(operands).zip(chains.bound(op)) {
                self.forward_leaves(graph.ops[*operand].place, element);
            }
        }
        let result = if is_done { Some(place) } else { graph.element(place, 1) };
        let wrapped = chains.of(op).and_then(|chain| chain.wrapped).filter(|wrapped| self.is_done[*wrapped]);
        if let (Some(wrapped), Some(result)) = (wrapped, result) {
            self.forward_leaves(graph.root_place(wrapped), result);
        }
        let before = graph.operand(op, 0).filter(|_| opcode != Opcode::AsyncStart);
        let before = if is_done { before.and_then(|tuple| graph.element(tuple, 1)) } else { before };
        let Some(before) = before else { return };
        // Contexts, from element 2 on, are each instruction's own.
        let contexts = graph.element(place, 2).filter(|_| !is_done).map_or(graph.extent(place), |at| at.since(place));
        for k in 0..contexts.min(graph.extent(before)) {
            let place = place.plus(k);
            if self.held[place].is_none() && !graph.places[place].is_table {
                self.held[place] = self.held[before.plus(k)];
            }
        }
    }

    fn finish(mut self) -> Values {
        self.simplify();
        let mut values = Table::new();
        let mut numbers: Table<PlaceId, Option<ValueId>> = Table::filled(self.held.len(), None);
        for place in self.held.keys() {
            if self.held[place] == Some(Source::Defined(place)) {
                numbers[place] = Some(values.push(Value { place }));
            }
        }
        let joined: Vec<Option<ValueId>> = self
            .joins
            .iter()
            .map(|(_, join)| join.is.is_none().then(|| values.push(Value { place: join.place })))
            .collect();
        let mut held = Table::filled(self.held.len(), None);
        for place in self.held.keys() {
            held[place] = self.held[place].and_then(|source| match self.resolve(source) {
                Source::Defined(place) => numbers[place],
                Source::Joined(join) => joined[join.at()],
            });
        }
        Values { values, held }
    }

    /// Follows a value that joins to what it turned out to be, and remembers that for all on the way.
    fn resolve(&mut self, source: Source) -> Source {
        let mut end = source;
        while let Source::Joined(join) = end {
            let Some(next) = self.joins[join].is else { break };
            end = next;
        }
        let mut at = source;
        while let Source::Joined(join) = at {
            let Some(next) = self.joins[join].is else { break };
            self.joins[join].is = Some(end);
            at = next;
        }
        end
    }

    fn sources_of(&self, join: JoinId) -> std::ops::Range<usize> {
        let (first, count) = self.joins[join].sources;
        first as usize..first as usize + count as usize
    }

    /// A value that joins one other only is that one; so are several that join each other and one other.
    fn simplify(&mut self) {
        let mut users: Table<JoinId, Vec<JoinId>> = Table::filled(self.joins.len(), Vec::new());
        for join in self.joins.keys() {
            for at in self.sources_of(join) {
                if let Source::Joined(source) = self.sources[at] {
                    users[source].push(join);
                }
            }
        }
        self.simplify_closed(&users);
        let mut waiting: Vec<JoinId> = self.joins.keys().rev().collect();
        while let Some(join) = waiting.pop() {
            if self.joins[join].is.is_some() {
                continue;
            }
            let mut only = None;
            let mut several = false;
            for at in self.sources_of(join) {
                let source = self.resolve(self.sources[at]);
                if source != Source::Joined(join) {
                    several |= only.is_some_and(|only| only != source);
                    only = Some(source);
                }
            }
            if let Some(source) = only.filter(|_| !several) {
                self.joins[join].is = Some(source);
                // Whoever joined this one now joins the other.
                let of_this = std::mem::take(&mut users[join]);
                waiting.extend(&of_this);
                if let Source::Joined(source) = source {
                    users[source].extend(of_this);
                }
            }
        }
    }

    /// Finds, for each value that joins, the ordinary values that come to it over any way: if it is one, it is that.
    fn simplify_closed(&mut self, users: &Table<JoinId, Vec<JoinId>>) {
        #[derive(Clone, Copy, PartialEq)]
        enum Reached {
            Nothing,
            One(PlaceId),
            Several,
        }
        let add = |reached: Reached, other: Reached| match (reached, other) {
            (Reached::Nothing, other) | (other, Reached::Nothing) => other,
            (Reached::One(a), Reached::One(b)) if a == b => reached,
            _ => Reached::Several,
        };
        let mut reached: Table<JoinId, Reached> = Table::filled(self.joins.len(), Reached::Nothing);
        for join in self.joins.keys() {
            for at in self.sources_of(join) {
                if let Source::Defined(place) = self.sources[at] {
                    reached[join] = add(reached[join], Reached::One(place));
                }
            }
        }
        // Each grows twice at most.
        let mut waiting: Vec<JoinId> = self.joins.keys().filter(|join| reached[*join] != Reached::Nothing).collect();
        while let Some(join) = waiting.pop() {
            for &user in &users[join] {
                let grown = add(reached[user], reached[join]);
                if grown != reached[user] {
                    reached[user] = grown;
                    waiting.push(user);
                }
            }
        }
        for join in self.joins.keys() {
            if let Reached::One(place) = reached[join] {
                self.joins[join].is = Some(Source::Defined(place));
            }
        }
    }
}
