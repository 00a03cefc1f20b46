//! The value that each position holds: XLA's dataflow analysis.
//!
//! The rules are those of `HloDataflowAnalysis` (xla/hlo/analysis/hlo_dataflow_analysis.cc); values that join in loops
//! and conditionals are simplified as by `PhiGraph` (hlo_phi_graph.cc).

use crate::{CallRole, Opcode};

use super::{Body, BodyId, Dataflow, Id, OpId, Position, Slot, Table, ValueId};

/// The marker of a [`ValueId`]: an instruction makes a value at one position of its result.
#[derive(Debug)]
pub enum Value {}

/// The values of a module: XLA's `HloValue`s.
#[derive(Debug)]
pub(super) struct Values {
    definitions: Table<Value, Position>,
    /// The value that each position holds; `None` if the instruction doesn't run.
    held: Table<Slot, Option<ValueId>>,
}

impl Values {
    pub(super) fn new(flow: &Dataflow) -> Self {
        let mut analysis = Analysis {
            flow,
            held: Table::filled(flow.all_positions().len(), None),
            joins: Table::new(),
            sources: Vec::new(),
            is_done: Table::filled(flow.bodies().len(), false),
        };
        analysis.run();
        analysis.finish()
    }
}

/// Values.
impl Dataflow {
    /// The position that defines each value: the first of all that hold it.
    ///
    /// Values are numbered as written, those of tuples before their elements', then those that join.
    #[must_use]
    pub fn values(&self) -> &Table<Value, Position> {
        &self.analysed().definitions
    }

    /// The value that a position holds; `None` if its instruction doesn't run.
    #[must_use]
    pub fn value_at(&self, position: Position) -> Option<ValueId> {
        self.analysed().held[position]
    }
}

/// The source of a position's value during the analysis: a value of its own, or one that joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Defined(Position),
    Joined(JoinId),
}

type JoinId = Id<Join>;

/// A value that joins several: in a loop, the initial one and the next turn's; in a conditional, those of its branches.
#[derive(Clone, Copy, Debug)]
struct Join {
    position: Position,
    /// The start of its own in `sources`, and their number.
    sources: (u32, u32),
    /// The source that it turned out to be.
    is: Option<Source>,
}

struct Analysis<'f> {
    flow: &'f Dataflow,
    held: Table<Slot, Option<Source>>,
    joins: Table<Join, Join>,
    sources: Vec<Source>,
    is_done: Table<Body, bool>,
}

impl Analysis<'_> {
    /// Callees before their callers, on an explicit stack.
    fn run(&mut self) {
        let Some(entry) = self.flow.entry() else { return };
        self.is_done[entry] = true;
        // Each computation with its current instruction, and the number of the next callee of that.
        let mut stack = vec![(entry, 0, 0)];
        while let Some((body, k, call)) = stack.pop() {
            let Some(op) = self.flow[body].op(k) else { continue };
            match self.enter(op, call) {
                Some((call, callee)) => stack.extend([(body, k, call + 1), (callee, 0, 0)]),
                None => {
                    stack.push((body, k + 1, 0));
                    self.hold(op);
                }
            }
        }
    }

    /// Binds the parameters of the next callee, from this one on, whose values aren't known yet, and returns it.
    fn enter(&mut self, op: OpId, from: usize) -> Option<(usize, BodyId)> {
        let flow = self.flow;
        let operands = flow.operands(op);
        let fresh = |callee: &BodyId| !self.is_done[*callee];
        let (call, callee) = match flow[op].opcode {
            Opcode::While | Opcode::Conditional => {
                let calls = flow.calls(op).iter().enumerate().skip(from);
                calls.map(|(number, call)| (number, call.1)).find(|(_, callee)| fresh(callee))?
            }
            Opcode::Call => (0, flow.calls(op).first().map(|call| call.1).filter(fresh)?),
            opcode if opcode.is_async() => (0, flow.ready(op).filter(fresh)?),
            _ => return None,
        };
        let arguments = match flow[op].opcode {
            Opcode::While => &[],
            Opcode::Conditional => operands.get(call + 1..=call + 1).unwrap_or_default(),
            Opcode::Call => operands,
            _ => flow.bound(op),
        };
        self.is_done[callee] = true;
        for &parameter in &flow[callee].parameters {
            let (position, number) = (flow[parameter].position, flow[parameter].number);
            if flow[op].opcode == Opcode::While {
                self.join(flow.within(position));
            } else if let Some(argument) = arguments.get(number) {
                self.forward(flow[*argument].position, position);
            }
        }
        Some((call, callee))
    }

    /// Gives each of these positions a value that joins; its sources are set later.
    fn join(&mut self, positions: impl Iterator<Item = Position>) {
        for position in positions {
            let join = self.joins.push(Join { position, sources: (0, 0), is: None });
            self.held[position] = Some(Source::Joined(join));
        }
    }

    fn join_sources(&mut self, position: Position, sources: impl Iterator<Item = Option<Source>>) {
        let Some(Source::Joined(join)) = self.held[position] else { return };
        let first = self.sources.len();
        self.sources.extend(sources.flatten());
        let count = self.sources.len() - first;
        if let (Ok(first), Ok(count)) = (u32::try_from(first), u32::try_from(count)) {
            self.joins[join].sources = (first, count);
        }
    }

    /// Gives `to`, and the positions within it, the values of `from`.
    fn forward(&mut self, from: Position, to: Position) {
        for k in 0..self.flow.extent(from).min(self.flow.extent(to)) {
            self.held[to.plus(k)] = self.held[from.plus(k)];
        }
    }

    fn forward_if(&mut self, from: Option<Position>, to: Option<Position>) {
        if let (Some(from), Some(to)) = (from, to) {
            self.forward(from, to);
        }
    }

    /// As [`Self::forward`], but without the tables of tuples.
    fn forward_leaves(&mut self, from: Position, to: Position) {
        for k in 0..self.flow.extent(from).min(self.flow.extent(to)) {
            if !self.flow.is_tuple(from.plus(k)) {
                self.held[to.plus(k)] = self.held[from.plus(k)];
            }
        }
    }

    fn define(&mut self, position: Position) {
        self.held[position] = Some(Source::Defined(position));
    }

    fn hold(&mut self, op: OpId) {
        let flow = self.flow;
        let position = flow[op].position;
        let operand = |number| flow.operand(op, number);
        let element_of_operand = |number| operand(0).and_then(|tuple| flow.element(tuple, number));
        match flow[op].opcode {
            Opcode::Bitcast
            | Opcode::Domain
            | Opcode::OptimizationBarrier
            | Opcode::AddDependency
            | Opcode::AllReduceDone => self.forward_if(operand(0), Some(position)),
            Opcode::Tuple => {
                for (element, operand) in flow.elements(position).zip(flow.operands(op)) {
                    self.forward(flow[*operand].position, element);
                }
            }
            Opcode::GetTupleElement => self.forward_if(element_of_operand(flow[op].number), Some(position)),
            Opcode::Copy => {
                self.forward_if(operand(0), Some(position));
                self.define(position);
            }
            Opcode::CopyStart => self.forward_if(operand(0), flow.element(position, 1)),
            Opcode::CopyDone => self.forward_if(element_of_operand(0), Some(position)),
            Opcode::AllGatherStart | Opcode::CollectivePermuteStart => self.hold_operands(op),
            Opcode::AllGatherDone | Opcode::CollectivePermuteDone => {
                self.forward_if(element_of_operand(1), Some(position));
                if flow.is_tuple(position) {
                    self.define(position);
                }
            }
            Opcode::Send => self.forward_if(operand(0), flow.element(position, 0)),
            Opcode::RecvDone => self.forward_if(element_of_operand(0), flow.element(position, 0)),
            Opcode::AsyncStart | Opcode::AsyncUpdate | Opcode::AsyncDone => self.hold_async(op),
            Opcode::Call => {
                let callee = flow.calls(op).first();
                self.forward_if(callee.map(|call| flow.result(call.1)), Some(position));
            }
            Opcode::While => self.hold_while(op),
            Opcode::Conditional => {
                self.join(flow.positions(op));
                for (k, position) in flow.positions(op).enumerate() {
                    let sources = flow.calls(op).iter().map(|branch| self.held_within(flow.result(branch.1), k));
                    let sources: Vec<_> = sources.collect();
                    self.join_sources(position, sources.into_iter());
                }
            }
            _ => {}
        }
        let without = self.without_value(op);
        for position in flow.positions(op) {
            if self.held[position].is_none() && Some(position) != without {
                self.define(position);
            }
        }
    }

    /// The tuple of operands of a `collective-permute-start` with several: XLA's dataflow analysis has no value there.
    fn without_value(&self, op: OpId) -> Option<Position> {
        let flow = self.flow;
        let is_permute = flow[op].opcode == Opcode::CollectivePermuteStart;
        let sources = flow.element(flow[op].position, 0).filter(|sources| is_permute && flow.is_tuple(*sources))?;
        let takes_tuple = flow.operand(op, 0).is_some_and(|operand| flow.is_tuple(operand));
        (!takes_tuple).then_some(sources)
    }

    /// The source of the `k`th node of a position.
    fn held_within(&self, position: Position, k: usize) -> Option<Source> {
        if k < self.flow.extent(position) { self.held[position.plus(k)] } else { None }
    }

    /// Element 0 of `all-gather-start` and `collective-permute-start` holds the operands.
    fn hold_operands(&mut self, op: OpId) {
        let flow = self.flow;
        let Some(sources) = flow.element(flow[op].position, 0) else { return };
        if !flow.is_tuple(sources) {
            return self.forward_if(flow.operand(op, 0), Some(sources));
        }
        let is_permute = flow[op].opcode == Opcode::CollectivePermuteStart;
        let tuple = flow.operand(op, 0).filter(|operand| is_permute && flow.is_tuple(*operand));
        match tuple {
            Some(tuple) => {
                self.forward(tuple, sources);
                self.define(sources);
            }
            None => {
                for (element, operand) in flow.elements(sources).zip(flow.operands(op)) {
                    self.forward(flow[*operand].position, element);
                }
            }
        }
    }

    fn hold_while(&mut self, op: OpId) {
        let flow = self.flow;
        let begin = flow.operand(op, 0);
        let round = flow.callee(op, CallRole::Body).map(|body| flow.result(body));
        self.join(flow.positions(op));
        let parameters = flow.calls(op).iter().filter_map(|call| flow[call.1].parameters.first().copied());
        for carrier in parameters.chain([op]) {
            for (k, position) in flow.positions(carrier).enumerate() {
                let sources = [begin, round].map(|position| self.held_within(position?, k));
                self.join_sources(position, sources.into_iter());
            }
        }
    }

    /// Tables are the instruction's own; {0} holds the operands bound so far, {1} (all of a done) the result of the
    /// wrapped computation; contexts are each instruction's own.
    fn hold_async(&mut self, op: OpId) {
        let flow = self.flow;
        let (position, opcode) = (flow[op].position, flow[op].opcode);
        let is_done = opcode == Opcode::AsyncDone;
        if let Some(operands) = flow.element(position, 0).filter(|_| !is_done) {
            for (element, operand) in flow.elements(operands).zip(flow.bound(op)) {
                self.forward_leaves(flow[*operand].position, element);
            }
        }
        let result = if is_done { Some(position) } else { flow.element(position, 1) };
        let wrapped = flow.chain(op).and_then(|chain| chain.wrapped).filter(|wrapped| self.is_done[*wrapped]);
        if let (Some(wrapped), Some(result)) = (wrapped, result) {
            self.forward_leaves(flow.result(wrapped), result);
        }
        let before = flow.operand(op, 0).filter(|_| opcode != Opcode::AsyncStart);
        let before = if is_done { before.and_then(|tuple| flow.element(tuple, 1)) } else { before };
        let Some(before) = before else { return };
        // Contexts, from element 2 on, are each instruction's own.
        let contexts =
            flow.element(position, 2).filter(|_| !is_done).map_or(flow.extent(position), |at| at.since(position));
        for k in 0..contexts.min(flow.extent(before)) {
            let position = position.plus(k);
            if self.held[position].is_none() && !flow.is_tuple(position) {
                self.held[position] = self.held[before.plus(k)];
            }
        }
    }

    fn finish(mut self) -> Values {
        self.simplify();
        let mut values = Table::new();
        let mut numbers: Table<Slot, Option<ValueId>> = Table::filled(self.held.len(), None);
        for position in self.held.ids() {
            if self.held[position] == Some(Source::Defined(position)) {
                numbers[position] = Some(values.push(position));
            }
        }
        let joined: Vec<Option<ValueId>> =
            self.joins.iter().map(|(_, join)| join.is.is_none().then(|| values.push(join.position))).collect();
        let mut held = Table::filled(self.held.len(), None);
        for position in self.held.ids() {
            held[position] = self.held[position].and_then(|source| match self.resolve(source) {
                Source::Defined(position) => numbers[position],
                Source::Joined(join) => joined[join.index()],
            });
        }
        Values { definitions: values, held }
    }

    /// Follows a value that joins to the source it turned out to be, and stores that for all on the way.
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
        let mut users: Table<Join, Vec<JoinId>> = Table::filled(self.joins.len(), Vec::new());
        for join in self.joins.ids() {
            for at in self.sources_of(join) {
                if let Source::Joined(source) = self.sources[at] {
                    users[source].push(join);
                }
            }
        }
        self.simplify_closed(&users);
        let mut waiting: Vec<JoinId> = self.joins.ids().rev().collect();
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
                // Users that joined this one now join the other.
                let of_this = std::mem::take(&mut users[join]);
                waiting.extend(&of_this);
                if let Source::Joined(source) = source {
                    users[source].extend(of_this);
                }
            }
        }
    }

    /// Finds, for each value that joins, the ordinary values that reach it on any path: if there is only one, it is
    /// that.
    fn simplify_closed(&mut self, users: &Table<Join, Vec<JoinId>>) {
        #[derive(Clone, Copy, PartialEq)]
        enum Reached {
            Nothing,
            One(Position),
            Several,
        }
        let add = |reached: Reached, other: Reached| match (reached, other) {
            (Reached::Nothing, other) | (other, Reached::Nothing) => other,
            (Reached::One(a), Reached::One(b)) if a == b => reached,
            _ => Reached::Several,
        };
        let mut reached: Table<Join, Reached> = Table::filled(self.joins.len(), Reached::Nothing);
        for join in self.joins.ids() {
            for at in self.sources_of(join) {
                if let Source::Defined(position) = self.sources[at] {
                    reached[join] = add(reached[join], Reached::One(position));
                }
            }
        }
        // Each changes twice at most.
        let mut waiting: Vec<JoinId> = self.joins.ids().filter(|join| reached[*join] != Reached::Nothing).collect();
        while let Some(join) = waiting.pop() {
            for &user in &users[join] {
                let grown = add(reached[user], reached[join]);
                if grown != reached[user] {
                    reached[user] = grown;
                    waiting.push(user);
                }
            }
        }
        for join in self.joins.ids() {
            if let Reached::One(position) = reached[join] {
                self.joins[join].is = Some(Source::Defined(position));
            }
        }
    }
}
