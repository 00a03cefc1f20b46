//! The source and the readers of a value, through all instructions that only pass it on.

use foldhash::HashSet;
use std::{collections::VecDeque, iter, mem};

use crate::{CallRole, Instruction, Opcode};

use super::{Body, BodyId, Dataflow, OpId, Position, Slot, Table};

/// Maximum number of positions, or instructions, that one query looks at: the one limit on how far values are followed.
/// [`Dataflow::origin`] and [`Dataflow::executions`], which are computed for all at once, have no limit.
pub const REACH: usize = 256;

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The position of the same value: this is another name of it, or it is in a tuple.
    Passed(Position),
    /// The position of the same bytes, read as another array.
    Bitcast(Position),
    /// The instruction that copies it, and the position it copies from.
    Copied(OpId, Position),
}

impl Source {
    /// The position of the source.
    #[must_use]
    pub fn position(self) -> Position {
        match self {
            Self::Passed(position) | Self::Bitcast(position) | Self::Copied(_, position) => position,
        }
    }
}

/// A use of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Use {
    /// It has another name at this position, or is in a tuple.
    Passed(Position),
    /// Its bytes are read as another array at this position.
    Bitcast(Position),
    /// This instruction copies it, to this position.
    Copied(OpId, Position),
    /// It is a result of the program, at this position of the entry's root.
    Result(Position),
    /// This instruction makes something of it.
    Read(OpId),
    /// There are more uses than [`REACH`], which aren't looked at.
    More,
}

/// The caller of each computation, the first of several.
#[derive(Debug)]
pub(super) struct Callers(Table<Body, Option<Caller>>);

#[derive(Clone, Copy, Debug)]
struct Caller {
    op: OpId,
    role: CallRole,
    /// Its number among those that the instruction calls.
    number: usize,
}

impl Callers {
    pub(super) fn new(flow: &Dataflow) -> Self {
        let mut callers = Table::filled(flow.bodies().len(), None);
        for op in flow.ops().ids().filter(|op| flow[*op].opcode != Opcode::Fusion) {
            for (number, (role, body)) in flow.calls(op).iter().enumerate() {
                callers[*body].get_or_insert(Caller { op, role: *role, number });
            }
        }
        Self(callers)
    }
}

/// The origin of each value.
#[derive(Debug)]
pub(super) struct Origins(Table<Slot, Position>);

impl Origins {
    pub(super) fn new(flow: &Dataflow) -> Self {
        let mut origins: Table<Slot, Option<Position>> = Table::filled(flow.all_positions().len(), None);
        let mut way = Vec::new();
        for position in flow.all_positions().ids() {
            let mut at = position;
            let end = loop {
                // Known, or already on this path: a cycle, which no compiler prints.
                if let Some(end) = origins[at] {
                    break end;
                }
                origins[at] = Some(at);
                way.push(at);
                match flow.source(at) {
                    Some(source) => at = source.position(),
                    None => break at,
                }
            };
            way.drain(..).for_each(|at| origins[at] = Some(end));
        }
        Self(origins.iter().map(|(position, origin)| origin.unwrap_or(position)).collect::<Vec<_>>().into())
    }
}

/// Sources of values.
impl Dataflow {
    /// The source of the value at a position, one step back; `None` if it is made there, or joins several. An
    /// asynchronous pair makes and reads values itself: it has the framework's name, and its computation mostly has
    /// none.
    #[must_use]
    pub fn source(&self, position: Position) -> Option<Source> {
        let op = self.op_at(position);
        let copied = || Some(Source::Copied(op, self.operand(op, 0)?));
        match self[op].opcode {
            Opcode::Bitcast => self.passed(position).map(Source::Bitcast),
            Opcode::Copy if self[op].position == position => copied(),
            Opcode::CopyStart if self.element(self[op].position, 0) == Some(position) => copied(),
            _ => self.passed(position).map(Source::Passed),
        }
    }

    /// The sources step by step, the nearest first, as far as [`REACH`].
    pub fn sources(&self, position: Position) -> impl Iterator<Item = Source> {
        iter::successors(self.source(position), |source| self.source(source.position())).take(REACH)
    }

    /// The position whose value this one has.
    fn passed(&self, position: Position) -> Option<Position> {
        let op = self.op_at(position);
        let offset = position.since(self[op].position);
        let operand = |number, offset| self.inside(self.operand(op, number)?, offset);
        let element = |number, offset| self.inside(self.element(self.operand(op, 0)?, number)?, offset);
        match self[op].opcode {
            Opcode::Bitcast
            | Opcode::Domain
            | Opcode::OptimizationBarrier
            | Opcode::AddDependency
            | Opcode::AllReduceDone => operand(0, offset),
            Opcode::Tuple => {
                let (number, element) = self.element_around(self[op].position, offset)?;
                operand(number, position.since(element))
            }
            Opcode::GetTupleElement => element(self[op].number, offset),
            Opcode::Copy if offset > 0 => operand(0, offset),
            Opcode::CopyStart if self.element(self[op].position, 1) == Some(position) => operand(0, 0),
            Opcode::CopyDone => element(0, offset),
            // Only for an array: a tuple's attributes would be read for each of its elements.
            Opcode::CustomCall if !self.is_tuple(self[op].position) => self.sliced(op),
            Opcode::While => self.same(position, operand(0, offset)?),
            Opcode::Conditional => self.same(position, self.inside(self.result(self.calls(op).first()?.1), offset)?),
            Opcode::Call => {
                let callee = self.calls(op).first()?.1;
                self.same(position, self.inside(self.result(callee), offset)?)
            }
            Opcode::Parameter => self.same(position, self.inside(self.argument(op)?, offset)?),
            _ => None,
        }
    }

    /// Another position, if it is known to hold the same value, and the text has its instruction.
    fn same(&self, position: Position, other: Position) -> Option<Position> {
        let is_same = self.value_at(position).is_some_and(|value| self.value_at(other) == Some(value));
        (is_same && !self[self.op_at(other)].is_hidden).then_some(other)
    }

    fn inside(&self, position: Position, offset: usize) -> Option<Position> {
        (offset < self.extent(position)).then(|| position.plus(offset))
    }

    /// The caller's argument for a parameter; for a loop's parameter, the loop's initial value.
    fn argument(&self, parameter: OpId) -> Option<Position> {
        let caller = self.all_callers().0[self[parameter].body]?;
        let number = self[parameter].number;
        match self[caller.op].opcode {
            Opcode::While => self.operand(caller.op, 0),
            // The first operand selects the branch.
            Opcode::Conditional => self.operand(caller.op, caller.number + 1),
            Opcode::AsyncStart => Some(self[*self.chain(caller.op)?.operands().get(number)?].position),
            _ => self.operand(caller.op, number),
        }
    }

    /// The parameter of this number, unless the text leaves it out.
    fn parameter(&self, body: BodyId, number: usize) -> Option<Position> {
        let parameters = &self[body].parameters;
        let at = parameters.binary_search_by_key(&number, |parameter| self[*parameter].number).ok()?;
        let parameter = &self[parameters[at]];
        (!parameter.is_hidden).then_some(parameter.position)
    }

    /// The caller of an instruction's computation; `None` in the entry.
    #[must_use]
    pub fn caller(&self, op: OpId) -> Option<OpId> {
        self.all_callers().0[self[op].body].map(|caller| caller.op)
    }

    /// The loop whose carry a parameter is.
    #[must_use]
    pub fn loop_around(&self, parameter: OpId) -> Option<OpId> {
        let caller = self.all_callers().0[self[parameter].body]?;
        (self[parameter].opcode == Opcode::Parameter && self[caller.op].opcode == Opcode::While).then_some(caller.op)
    }

    /// The origin of a value, through other names, bitcasts, loops, calls and copies.
    ///
    /// ```
    /// use tilewise_hlo::{Module, dataflow::Dataflow};
    ///
    /// let module = Module::parse("\
    /// ENTRY main {
    ///   x = f32[8] parameter(0)
    ///   t = (f32[8], f32[8]) tuple(x, x)
    ///   e = f32[8] get-tuple-element(t), index=1
    ///   c = f32[8] copy(e)
    ///   ROOT b = f32[2,4] bitcast(c)
    /// }")?;
    /// let flow = Dataflow::new(&module);
    /// let origin = flow.origin(flow.result(flow.entry().unwrap()));
    /// assert_eq!(flow.instruction(flow.op_at(origin)).unwrap().name(), "x");
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn origin(&self, position: Position) -> Position {
        self.all_origins().0[position]
    }
}

/// Uses of values.
impl Dataflow {
    /// All uses of the value at a position.
    #[must_use]
    pub fn uses(&self, position: Position) -> Vec<Use> {
        let op = self.op_at(position);
        let mut uses = Vec::new();
        let (mut before, mut joined, mut is_joined) = (None, None, false);
        for user in self.users(op) {
            let is_new = before.replace(user.op) != Some(user.op);
            match self[user.op].opcode {
                Opcode::Tuple => self.put_into_tuple(position, user.op, user.operand, &mut uses),
                Opcode::Conditional => self.branch(position, user.op, user.operand, &mut uses),
                // The slices are all one use.
                Opcode::AsyncStart if joined.get_or_insert_with(|| self.joined(op)).is_some() => {
                    let whole = joined.flatten().filter(|_| !mem::replace(&mut is_joined, true));
                    uses.extend(whole.map(|whole| Use::Passed(self[whole].position)));
                }
                _ if is_new => self.use_once(position, user.op, user.operand, &mut uses),
                _ => {}
            }
        }
        self.leave(position, &mut uses);
        uses
    }

    fn use_once(&self, position: Position, user: OpId, operand: usize, uses: &mut Vec<Use>) {
        let op = self.op_at(position);
        let (offset, result) = (position.since(self[op].position), self[user].position);
        match self[user].opcode {
            Opcode::GetTupleElement => {
                let element = self.element(self[op].position, self[user].number);
                let inside = element.filter(|element| {
                    (element.index()..element.index() + self.extent(*element)).contains(&position.index())
                });
                uses.extend(inside.map(|element| Use::Passed(result.plus(position.since(element)))));
            }
            Opcode::While => self.enter_loop(position, user, uses),
            Opcode::OptimizationBarrier | Opcode::Domain | Opcode::AddDependency if operand == 0 => {
                uses.extend(self.inside(result, offset).map(Use::Passed));
            }
            Opcode::AddDependency => {}
            Opcode::Bitcast => match self.joined(user).filter(|_| self.is_bytes(user)) {
                Some(whole) => uses.push(Use::Passed(self[whole].position)),
                None => uses.push(Use::Bitcast(result)),
            },
            Opcode::Call => {
                let parameter = self.calls(user).first().and_then(|(_, callee)| self.parameter(*callee, operand));
                let inside = parameter.and_then(|parameter| self.inside(parameter, offset));
                uses.push(inside.map_or(Use::Read(user), Use::Passed));
            }
            Opcode::AsyncUpdate if operand == 0 => uses.extend(self.inside(result, offset).map(Use::Passed)),
            Opcode::AsyncDone => {
                let inside =
                    self.element(self[op].position, 1).and_then(|made| position.index().checked_sub(made.index()));
                uses.extend(inside.and_then(|offset| self.inside(result, offset)).map(Use::Passed));
            }
            Opcode::Copy => uses.push(Use::Copied(user, result)),
            Opcode::CopyStart => {
                let copy = self.element(result, 0).filter(|_| !self.users(user).is_empty());
                uses.push(copy.map_or(Use::Read(user), |copy| Use::Copied(user, copy)));
            }
            // The context and the copied value end here.
            Opcode::CopyDone => {
                let is_copy = self.element(self[op].position, 0) == Some(position);
                uses.extend(is_copy.then_some(Use::Passed(result)));
            }
            _ => uses.push(Use::Read(user)),
        }
    }

    fn put_into_tuple(&self, position: Position, tuple: OpId, operand: usize, uses: &mut Vec<Use>) {
        let Some(element) = self.element(self[tuple].position, operand) else { return };
        let offset = position.since(self[self.op_at(position)].position);
        uses.extend(self.inside(element, offset).map(Use::Passed));
    }

    /// A loop with the same value in every turn passes it on; any other makes something of it.
    fn enter_loop(&self, position: Position, around: OpId, uses: &mut Vec<Use>) {
        let offset = position.since(self[self.op_at(position)].position);
        let after = self.inside(self[around].position, offset);
        let Some(after) = after.filter(|after| self.same(*after, position).is_some()) else {
            uses.push(Use::Read(around));
            return;
        };
        for (_, callee) in self.calls(around) {
            let parameter = self.parameter(*callee, 0);
            uses.extend(parameter.and_then(|parameter| self.inside(parameter, offset)).map(Use::Passed));
        }
        uses.push(Use::Passed(after));
    }

    fn branch(&self, position: Position, around: OpId, operand: usize, uses: &mut Vec<Use>) {
        let offset = position.since(self[self.op_at(position)].position);
        let branch = operand.checked_sub(1).and_then(|number| self.calls(around).get(number));
        let parameter = branch.and_then(|(_, branch)| self.parameter(*branch, 0));
        let inside = parameter.and_then(|parameter| self.inside(parameter, offset));
        uses.push(inside.map_or(Use::Read(around), Use::Passed));
    }

    /// Adds the uses of a computation's result.
    fn leave(&self, position: Position, uses: &mut Vec<Use>) {
        let op = self.op_at(position);
        if !self[op].is_root {
            return;
        }
        let body = self[op].body;
        if self.entry() == Some(body) {
            uses.push(Use::Result(position));
            return;
        }
        let Some(caller) = self.all_callers().0[body] else { return };
        let offset = position.since(self[op].position);
        let result = self.inside(self[caller.op].position, offset);
        match caller.role {
            CallRole::Condition => {}
            CallRole::Body => {
                // A value that every turn passes on unchanged leaves where it came in.
                if result.is_none_or(|result| self.same(position, result).is_none()) {
                    uses.push(Use::Read(caller.op));
                }
            }
            _ if self[caller.op].opcode == Opcode::AsyncStart => {
                let done = self.chain(caller.op).and_then(|chain| chain.done);
                uses.extend(done.and_then(|done| self.inside(self[done].position, offset)).map(Use::Passed));
            }
            _ => uses.extend(result.map(Use::Passed)),
        }
    }

    /// All uses that make something of a value, through other names, bitcasts and copies, in the order in which they
    /// are found.
    pub fn readers(&self, position: Position) -> impl Iterator<Item = Use> {
        let (mut waiting, mut seen) = (vec![position], HashSet::default());
        let mut found = VecDeque::new();
        let mut last = None;
        iter::from_fn(move || {
            loop {
                while let Some(next) = found.pop_front() {
                    if last.replace(next) != Some(next) {
                        return Some(next);
                    }
                }
                let at = waiting.pop()?;
                if !seen.insert(at) {
                    continue;
                }
                if seen.len() > REACH {
                    waiting.clear();
                    return Some(Use::More);
                }
                for found_here in self.uses(at) {
                    match found_here {
                        Use::Passed(next) | Use::Bitcast(next) | Use::Copied(_, next) => waiting.push(next),
                        _ => found.push_back(found_here),
                    }
                }
            }
        })
    }

    /// These instructions and those that `next` leads to from them, each once, the nearest first, as far as [`REACH`].
    pub fn reached<I: IntoIterator<Item = OpId>>(
        &self,
        from: impl IntoIterator<Item = OpId>,
        next: impl Fn(OpId) -> I,
    ) -> impl Iterator<Item = OpId> {
        let mut seen = HashSet::default();
        let mut waiting: VecDeque<OpId> = from.into_iter().collect();
        let reached = iter::from_fn(move || {
            loop {
                let at = waiting.pop_front()?;
                if seen.insert(at) {
                    waiting.extend(next(at));
                    return Some(at);
                }
            }
        });
        reached.take(REACH)
    }
}

impl Instruction<'_> {
    /// Whether this joins slices of an array again that a TPU's compiler copies one by one.
    #[must_use]
    pub fn joins_slices(&self) -> bool {
        self.opcode() == Opcode::CustomCall && self.custom_call_target().is_some_and(|target| target.contains("Concat"))
    }

    /// Whether this reads an array as bytes, to move it.
    pub(super) fn reads_bytes(&self) -> bool {
        self.opcode() == Opcode::Bitcast && self.shape_text().starts_with("s8[")
    }
}

/// Arrays that are copied in slices: each slice has an asynchronous pair, and a `custom-call` joins them again.
impl Dataflow {
    fn joins_slices(&self, op: OpId) -> bool {
        self[op].opcode == Opcode::CustomCall && self.instruction(op).is_some_and(|call| call.joins_slices())
    }

    /// The array whose slices an instruction joins.
    fn sliced(&self, op: OpId) -> Option<Position> {
        let operand = |op: OpId| self.operands(op).first().copied();
        let whole = operand(operand(operand(op).filter(|_| self.joins_slices(op))?)?)?;
        Some(self[if self.is_bytes(whole) { operand(whole)? } else { whole }].position)
    }

    /// The instruction that joins all slices of an array again.
    fn joined(&self, sliced: OpId) -> Option<OpId> {
        let next = |op: OpId| self.users(op).first().map(|user| user.op);
        let starts = self.users(sliced).iter().filter(|user| self[user.op].opcode == Opcode::AsyncStart);
        let mut joined = starts.map(|start| next(next(start.op)?).filter(|op| self.joins_slices(*op)));
        let first = joined.next()??;
        joined.all(|other| other == Some(first)).then_some(first)
    }

    /// Whether an instruction reads an array as bytes, to move it.
    fn is_bytes(&self, op: OpId) -> bool {
        self.instruction(op).is_some_and(|at| at.reads_bytes())
    }
}
