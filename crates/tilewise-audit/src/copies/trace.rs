//! Where a value comes from, and who reads it: through all that only passes it on.

use crate::flow::{Flow, READERS, is_concatenation};
use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
};
use tilewise::Shape;
use tilewise_hlo::{CallRole, Instruction, Module, Opcode};

/// Longer chains aren't followed.
const STEPS: usize = 64;

/// A value: a part of an instruction's result.
#[derive(Clone, Debug)]
pub(crate) struct Place<'m> {
    pub(crate) instruction: Instruction<'m>,
    /// The way to it within tuples.
    pub(crate) path: Vec<usize>,
}

impl<'m> Place<'m> {
    pub(crate) fn new(instruction: Instruction<'m>) -> Self {
        Self { instruction, path: Vec::new() }
    }

    fn at(instruction: Instruction<'m>, path: &[usize]) -> Self {
        Self { instruction, path: path.to_vec() }
    }

    /// Its shape, if it is an array.
    pub(crate) fn shape(&self) -> Option<Shape> {
        let shape = self.instruction.shape().ok()?;
        let shape = self.path.iter().try_fold(shape, |shape, at| shape.elements().nth(*at))?;
        shape.as_array().is_some().then_some(shape)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.instruction.index() == other.instruction.index() && self.path == other.path
    }
}

/// What is done with a value.
#[derive(Clone, Debug)]
pub(crate) enum Use<'m> {
    /// It has another name, or stands in a tuple.
    Passed(Place<'m>),
    /// Its bytes are read as another array.
    Bitcast(Place<'m>),
    /// It is copied, in one instruction or two, to here.
    Copied(Instruction<'m>, Place<'m>),
    /// It is a result of the program, at this path.
    Result(Vec<usize>),
    /// Something is made of it.
    Read(Instruction<'m>),
}

/// Follows values, also into loops.
pub(crate) struct Tracer<'m> {
    flow: Flow<'m>,
    /// The loop that a computation belongs to.
    loops: HashMap<usize, Instruction<'m>>,
    /// By loop, the elements of its tuple that every turn passes on as they are.
    constant: HashMap<usize, HashSet<usize>>,
    /// The conditional that a computation is a branch of, and which operand is handed to it.
    branches: HashMap<usize, (Instruction<'m>, usize)>,
    /// The operands of tuples, which may have thousands.
    tuples: RefCell<HashMap<usize, Tuple<'m>>>,
}

type Tuple<'m> = Rc<Vec<Option<Instruction<'m>>>>;

impl<'m> Tracer<'m> {
    pub(crate) fn new(module: &'m Module) -> Self {
        let (flow, loops, constant) = (Flow::new(module), HashMap::new(), HashMap::new());
        let branches = HashMap::new();
        let mut tracer = Self { flow, loops, constant, branches, tuples: RefCell::default() };
        for instruction in module.instructions().filter(|instruction| instruction.opcode() == Opcode::Conditional) {
            // The first operand says which branch.
            let branches = instruction.calls().filter_map(|call| call.computation()).enumerate();
            tracer.branches.extend(branches.map(|(at, branch)| (branch.index(), (instruction, at + 1))));
        }
        // Loops inside come first in the text, so that they are known when those around them are looked at.
        for instruction in module.instructions().filter(|instruction| instruction.opcode() == Opcode::While) {
            for call in instruction.calls() {
                let computation = call.computation();
                tracer.loops.extend(computation.map(|computation| (computation.index(), instruction)));
            }
            let constant = tracer.constant_elements(&instruction);
            tracer.constant.insert(instruction.index(), constant);
        }
        tracer
    }

    fn constant_elements(&self, instruction: &Instruction<'m>) -> HashSet<usize> {
        let body = instruction.calls().find(|call| call.role == CallRole::Body).and_then(|call| call.computation());
        let Some(root) = body.and_then(|body| body.root()).filter(|root| root.opcode() == Opcode::Tuple) else {
            return HashSet::new();
        };
        let is_constant = |element: usize, operand: Instruction<'m>| {
            let mut at = Place::new(operand);
            for _ in 0..STEPS {
                if at.instruction.opcode() == Opcode::Parameter {
                    return at.path == [element];
                }
                match self.source(&at).filter(|_| at.instruction.opcode() != Opcode::Bitcast) {
                    Some(source) => at = source,
                    None => return false,
                }
            }
            false
        };
        let operands = root.operands().enumerate().filter_map(|(at, operand)| Some((at, operand.instruction()?)));
        operands.filter(|(element, operand)| is_constant(*element, *operand)).map(|(element, _)| element).collect()
    }

    fn operands(&self, tuple: &Instruction<'m>) -> Tuple<'m> {
        let operands = || Rc::new(tuple.operands().map(|operand| operand.instruction()).collect());
        Rc::clone(self.tuples.borrow_mut().entry(tuple.index()).or_insert_with(operands))
    }

    fn is_constant(&self, instruction: &Instruction<'m>, path: &[usize]) -> bool {
        let constant = self.constant.get(&instruction.index());
        constant.zip(path.first()).is_some_and(|(constant, element)| constant.contains(element))
    }

    /// The value that this one is, under another name or read as another array; `None` where it is made, copied, or handed
    /// over.
    pub(crate) fn source(&self, place: &Place<'m>) -> Option<Place<'m>> {
        let (instruction, path) = (&place.instruction, &place.path[..]);
        let operand = |at: usize| instruction.operands().nth(at)?.instruction();
        match instruction.opcode() {
            Opcode::Bitcast | Opcode::OptimizationBarrier => Some(Place::at(operand(0)?, path)),
            Opcode::Tuple => {
                let (first, rest) = path.split_first()?;
                Some(Place::at((*self.operands(instruction).get(*first)?)?, rest))
            }
            Opcode::CustomCall if is_concatenation(instruction) => {
                let start = operand(0)?.operands().next()?.instruction()?;
                let whole = start.operands().next()?.instruction()?;
                // Moved as bytes.
                let is_bytes = whole.opcode() == Opcode::Bitcast && whole.shape_text().starts_with("s8[");
                Some(Place::new(if is_bytes { whole.operands().next()?.instruction()? } else { whole }))
            }
            Opcode::GetTupleElement => {
                let mut path = path.to_vec();
                path.insert(0, element(instruction)?);
                Some(Place { instruction: operand(0)?, path })
            }
            Opcode::While if self.is_constant(instruction, path) => Some(Place::at(operand(0)?, path)),
            Opcode::Parameter if self.branches.contains_key(&instruction.computation().index()) => {
                let (around, at) = self.branches.get(&instruction.computation().index())?;
                Some(Place::at(around.operands().nth(*at)?.instruction()?, path))
            }
            Opcode::Parameter => {
                let around = self.loops.get(&instruction.computation().index())?;
                self.is_constant(around, path)
                    .then(|| Some(Place::at(around.operands().next()?.instruction()?, path)))?
            }
            _ => None,
        }
    }

    /// The loop whose carry a parameter is.
    pub(crate) fn around(&self, instruction: &Instruction<'m>) -> Option<Instruction<'m>> {
        let is_parameter = instruction.opcode() == Opcode::Parameter;
        self.loops.get(&instruction.computation().index()).filter(|_| is_parameter).copied()
    }

    /// The copy that makes a value, and what it copies.
    pub(crate) fn copied(&self, place: &Place<'m>) -> Option<(Instruction<'m>, Place<'m>)> {
        let operand = |instruction: &Instruction<'m>| instruction.operands().next()?.instruction();
        let copy = match place.instruction.opcode() {
            Opcode::Copy => place.instruction,
            Opcode::CopyDone => operand(&place.instruction).filter(|start| start.opcode() == Opcode::CopyStart)?,
            _ => return None,
        };
        Some((copy, Place::new(operand(&copy)?)))
    }

    /// The end of a copy that runs beside other instructions.
    pub(crate) fn done(&self, start: &Instruction<'m>) -> Option<Instruction<'m>> {
        self.flow.users(start).into_iter().find(|user| matches!(user.opcode(), Opcode::CopyDone | Opcode::AsyncDone))
    }

    /// Where a value comes from in the end, past all copies.
    pub(crate) fn origin(&self, place: &Place<'m>) -> Place<'m> {
        let mut at = place.clone();
        for _ in 0..STEPS {
            match self.source(&at).or_else(|| Some(self.copied(&at)?.1)) {
                Some(source) => at = source,
                None => break,
            }
        }
        at
    }

    /// All that is done with a value; `None` where that is too much to look at.
    pub(crate) fn uses(&self, place: &Place<'m>) -> Option<Vec<Use<'m>>> {
        let (instruction, path) = (&place.instruction, &place.path[..]);
        let users = self.flow.users(instruction);
        if users.len() >= READERS {
            return None;
        }
        let mut uses = Vec::new();
        let mut seen = HashSet::new();
        for user in users {
            if !seen.insert(user.index()) {
                continue;
            }
            match user.opcode() {
                Opcode::GetTupleElement => {
                    if let Some(rest) = path.split_first().filter(|(first, _)| Some(**first) == element(&user)) {
                        uses.push(Use::Passed(Place::at(user, rest.1)));
                    }
                }
                Opcode::Tuple => self.put_into_tuple(place, user, &mut uses),
                Opcode::While => self.enter(&user, path, &mut uses),
                Opcode::Conditional => self.branch(&user, place, &mut uses),
                Opcode::OptimizationBarrier => uses.push(Use::Passed(Place::at(user, path))),
                Opcode::Bitcast => match self.whole(&user).filter(|_| user.shape_text().starts_with("s8[")) {
                    Some(whole) => uses.push(Use::Passed(Place::new(whole))),
                    None => uses.push(Use::Bitcast(Place::new(user))),
                },
                Opcode::AsyncStart => match self.whole(instruction) {
                    Some(whole) if !seen.insert(whole.index()) => {}
                    Some(whole) => uses.push(Use::Passed(Place::new(whole))),
                    None => uses.push(Use::Read(user)),
                },
                Opcode::Copy => uses.push(Use::Copied(user, Place::new(user))),
                Opcode::CopyStart => {
                    uses.push(self.done(&user).map_or(Use::Read(user), |done| Use::Copied(user, Place::new(done))));
                }
                _ => uses.push(Use::Read(user)),
            }
        }
        let computation = instruction.computation();
        if instruction.is_root() && computation.is_entry() {
            uses.push(Use::Result(path.to_vec()));
        } else if let Some((around, _)) = self.branches.get(&computation.index()).filter(|_| instruction.is_root()) {
            uses.push(Use::Passed(Place::at(*around, path)));
        }
        Some(uses)
    }

    /// Where all the slices of a value are put together again in another memory.
    fn whole(&self, sliced: &Instruction<'m>) -> Option<Instruction<'m>> {
        let next = |at: &Instruction<'m>| self.flow.users(at).into_iter().next();
        let starts = self.flow.users(sliced).into_iter();
        let starts = starts.filter(|user| user.opcode() == Opcode::AsyncStart);
        let mut whole = starts.map(|start| next(&next(&start)?).filter(is_concatenation));
        let first = whole.next()??;
        whole.all(|other| other.is_some_and(|other| other.index() == first.index())).then_some(first)
    }

    fn put_into_tuple(&self, place: &Place<'m>, tuple: Instruction<'m>, uses: &mut Vec<Use<'m>>) {
        let around = self.loops.get(&tuple.computation().index()).filter(|_| tuple.is_root());
        for (at, operand) in self.operands(&tuple).iter().enumerate() {
            if operand.is_none_or(|operand| operand.index() != place.instruction.index()) {
                continue;
            }
            match around {
                Some(around) if self.is_constant(around, &[at]) => {}
                Some(around) => uses.push(Use::Read(*around)),
                None => {
                    let mut path = place.path.clone();
                    path.insert(0, at);
                    uses.push(Use::Passed(Place { instruction: tuple, path }));
                }
            }
        }
    }

    fn enter(&self, around: &Instruction<'m>, path: &[usize], uses: &mut Vec<Use<'m>>) {
        if !self.is_constant(around, path) {
            uses.push(Use::Read(*around));
            return;
        }
        for computation in around.calls().filter_map(|call| call.computation()) {
            let parameter = computation.instructions().find(|instruction| instruction.opcode() == Opcode::Parameter);
            uses.extend(parameter.map(|parameter| Use::Passed(Place::at(parameter, path))));
        }
        uses.push(Use::Passed(Place::at(*around, path)));
    }

    fn branch(&self, around: &Instruction<'m>, place: &Place<'m>, uses: &mut Vec<Use<'m>>) {
        for (at, operand) in around.operands().enumerate() {
            if operand.instruction().is_none_or(|operand| operand.index() != place.instruction.index()) {
                continue;
            }
            let called = || around.calls().filter_map(|call| call.computation()).nth(at.checked_sub(1)?);
            let parameter =
                called().and_then(|branch| branch.instructions().find(|inner| inner.opcode() == Opcode::Parameter));
            uses.push(parameter.map_or(Use::Read(*around), |parameter| Use::Passed(Place::at(parameter, &place.path))));
        }
    }

    /// All that make something of a value, seen past all copies; those that are found first come first.
    pub(crate) fn readers(&self, place: &Place<'m>) -> Vec<Use<'m>> {
        let (mut readers, mut seen): (Vec<Use<'m>>, Vec<Place<'m>>) = (Vec::new(), Vec::new());
        let mut waiting = vec![place.clone()];
        while let Some(at) = waiting.pop() {
            if seen.len() > STEPS || seen.iter().any(|seen| seen.is_same(&at)) {
                continue;
            }
            for found in self.uses(&at).unwrap_or_default() {
                match found {
                    Use::Passed(next) | Use::Bitcast(next) | Use::Copied(_, next) => waiting.push(next),
                    Use::Result(_) | Use::Read(_) => readers.push(found),
                }
            }
            seen.push(at);
        }
        readers.dedup_by(
            |one, other| matches!((one, other), (Use::Read(one), Use::Read(other)) if one.index() == other.index()),
        );
        readers
    }
}

/// The index of a `get-tuple-element`.
fn element(instruction: &Instruction<'_>) -> Option<usize> {
    instruction.attribute("index")?.parse().ok()
}
