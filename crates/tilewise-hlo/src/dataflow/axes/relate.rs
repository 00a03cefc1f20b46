//! Finds axes: unites the dimensions that operations, loops, calls and fusions pass from array to array.

use foldhash::{HashMap, HashSet};
use std::{ops::Range, rc::Rc};

use tilewise::Shape;

use crate::{
    CallRole, Computation, Instruction, Module, Opcode,
    dataflow::{
        AxisId,
        classes::Classes,
        events::EventKind,
        factors::{Array, FactorKind, Factors, add_factors},
        pieces::Pieces,
        reach::Edges,
    },
    steps,
};

use super::{Axes, Axis, Event, Form, number};

/// The axes of a module; arrays of instructions that are apart have axes of their own at each reader.
pub(super) fn axes(module: &Module, is_apart: &dyn Fn(usize) -> bool) -> Axes {
    let mut builder = Builder::new(module, is_apart);
    for instruction in module.instructions() {
        builder.relate(&instruction);
    }
    std::mem::take(&mut builder.pieces).unite(&mut builder.classes, &mut builder.events);
    builder.interface();
    builder.finish()
}

/// The parameters of a computation by number, and its root, by their indices.
type Ends = (Vec<usize>, Option<usize>);

struct Builder<'m, 'a> {
    module: &'m Module,
    is_apart: &'a dyn Fn(usize) -> bool,
    axes: Axes,
    classes: Classes,
    /// The events along each node's class.
    events: Vec<(u32, usize, EventKind)>,
    computations: HashMap<usize, Rc<Ends>>,
    /// The start of each step of an asynchronous chain; `handed` has, for each start, its operands so far and their
    /// number of leaves.
    starts: HashMap<usize, usize>,
    handed: HashMap<usize, (Vec<Option<usize>>, usize)>,
    pieces: Pieces,
    factors: Factors,
    edges: Vec<(u32, u32)>,
    /// Tuples that are read whole.
    read: HashSet<usize>,
}

impl<'m, 'a> Builder<'m, 'a> {
    fn new(module: &'m Module, is_apart: &'a dyn Fn(usize) -> bool) -> Self {
        let (mut axes, mut classes) = (Axes::default(), Classes::default());
        let mut known: HashMap<&'m str, u32> = HashMap::default();
        for instruction in module.instructions() {
            let form = *known.entry(instruction.shape_text()).or_insert_with(|| {
                // A shape that can't be read has no dimensions to relate.
                let form = instruction.shape().map_or_else(|_| Form::of(&Shape::tuple([])), |shape| Form::of(&shape));
                axes.forms.push(form);
                number(axes.forms.len() - 1)
            });
            axes.instructions.push((number(classes.len()), form));
            for size in axes.forms[form as usize].leaves.iter().flat_map(|leaf| &leaf.bounds) {
                classes.add(*size);
            }
        }
        axes.edges = Edges::new(axes.instructions.iter().map(|(_, form)| axes.forms[*form as usize].leaves.len()));
        let (events, computations, starts, handed, pieces, factors, edges, read) = Default::default();
        Self { module, is_apart, axes, classes, events, computations, starts, handed, pieces, factors, edges, read }
    }

    fn form(&self, instruction: usize) -> &Form {
        &self.axes.forms[self.axes.instructions[instruction].1 as usize]
    }

    /// The node of the first dimension of a leaf.
    fn slot(&self, instruction: usize, leaf: usize) -> u32 {
        self.axes.instructions[instruction].0 + self.form(instruction).slots_before[leaf]
    }

    /// The node of the first dimension of a leaf, as a reader of it has it.
    fn slot_read(&mut self, instruction: usize, leaf: usize, is_operand: bool) -> u32 {
        if !is_operand || !(self.is_apart)(instruction) {
            return self.slot(instruction, leaf);
        }
        let sizes = self.form(instruction).leaves[leaf].bounds.clone();
        let first = number(self.classes.len());
        sizes.iter().for_each(|size| _ = self.classes.add(*size));
        first
    }

    /// Relates `count` leaves of one instruction, from `from` on, to those of another, from `to` on, which follow from
    /// them.
    fn same(&mut self, (one, from): (usize, usize), (other, to): (usize, usize), count: usize) {
        for k in 0..count {
            steps::take(1);
            let bounds = |at: usize, leaf: usize| self.form(at).leaves.get(leaf).map(|array| &array.bounds);
            let (Some(left), Some(right)) = (bounds(one, from + k), bounds(other, to + k)) else { return };
            let edge = (self.axes.edges.leaf(one, from + k), self.axes.edges.leaf(other, to + k));
            let is_alike = left == right;
            let sizes = left.clone();
            self.edges.push(edge);
            if !is_alike || (self.is_apart)(one) {
                continue;
            }
            let (left, right) = (self.slot(one, from + k), self.slot(other, to + k));
            for (dimension, _) in sizes.iter().enumerate().filter(|(_, size)| **size > 1) {
                self.classes.unite(&[left + number(dimension)], &[right + number(dimension)]);
            }
        }
    }

    fn same_all(&mut self, one: usize, other: usize) {
        let count = self.form(one).leaves.len().min(self.form(other).leaves.len());
        self.same((one, 0), (other, 0), count);
    }

    /// Relates leaves of an operand to the leaves of the result that they are.
    fn pass(&mut self, at: &Instruction<'_>, operand: Option<usize>, leaves: &[(usize, usize)]) {
        let Some(operand) = operand else { return };
        for (from, to) in leaves {
            self.same((operand, *from), (at.index(), *to), 1);
        }
    }

    fn relate(&mut self, at: &Instruction<'m>) {
        use Opcode::*;
        let this = at.index();
        let operand = |number: usize| at.operand_indices().nth(number).flatten();
        match at.opcode() {
            Parameter | AfterAll | Infeed | Outfeed => {}
            // An array that is moved as bytes is itself again once its slices are joined; between, tiles would cut its
            // dimensions.
            Bitcast if at.reads_bytes() => {}
            Tuple => {
                for (element, operand) in at.operand_indices().enumerate() {
                    if let (Some(operand), Some(to)) = (operand, self.form(this).element(element)) {
                        self.same((operand, 0), (this, to.start), to.len());
                    }
                }
            }
            GetTupleElement => {
                let Some(tuple) = operand(0) else { return };
                let from = at.tuple_index().and_then(|number| self.form(tuple).element(number));
                if let Some(from) = from {
                    self.same((tuple, from.start), (this, 0), from.len());
                }
            }
            Fusion | Call => {
                let operands: Vec<Option<usize>> = at.operand_indices().collect();
                if let Some(callee) = callee(at, &[CallRole::Calls, CallRole::ToApply]) {
                    self.call(&callee, &operands, this);
                }
            }
            While => {
                let Some(carried) = operand(0) else { return };
                self.same_all(carried, this);
                for call in at.calls().filter(|call| matches!(call.role, CallRole::Body | CallRole::Condition)) {
                    let Some(callee) = call.computation() else { continue };
                    let ends = self.ends(&callee);
                    ends.0.first().into_iter().for_each(|parameter| self.same_all(this, *parameter));
                    ends.1
                        .filter(|_| call.role == CallRole::Body)
                        .into_iter()
                        .for_each(|root| self.same_all(root, this));
                }
            }
            Conditional => {
                let is_branch = |role| matches!(role, CallRole::Branch | CallRole::True | CallRole::False);
                for (number, branch) in at.calls().filter(|call| is_branch(call.role)).enumerate() {
                    let argument = operand(number + 1);
                    if let Some(callee) = branch.computation() {
                        self.call(&callee, &[argument], this);
                    }
                }
            }
            AsyncStart | AsyncUpdate | AsyncDone => self.asynchronous(at),
            OptimizationBarrier | Domain | AddDependency | AllReduceDone => {
                operand(0).into_iter().for_each(|operand| self.same_all(operand, this));
            }
            AllReduceStart => {
                let operands = at.operand_indices().collect::<Vec<_>>();
                for (number, operand) in operands.into_iter().enumerate() {
                    self.pass(at, operand, &[(0, number)]);
                }
            }
            // (copy, operand, context)
            CopyStart => self.pass(at, operand(0), &[(0, 0), (0, 1)]),
            CopyDone | Send | RecvDone => self.pass(at, operand(0), &[(0, 0)]),
            // (operand, result, …), or ((operands), (results), …)
            CollectivePermuteStart => {
                let operands: Vec<Option<usize>> = at.operand_indices().collect();
                let count = if self.form(this).ends.first() == Some(&1) { 1 } else { operands.len() };
                for (number, operand) in operands.into_iter().take(count).enumerate() {
                    self.pass(at, operand, &[(0, number), (0, count + number)]);
                }
            }
            CollectivePermuteDone | AllGatherDone => {
                let Some(start) = operand(0) else { return };
                if let Some(results) = self.form(start).element(1) {
                    self.same((start, results.start), (this, 0), results.len());
                }
            }
            AllGatherStart => {
                let operands: Vec<Option<usize>> = at.operand_indices().collect();
                if let Some(results) = self.form(this).element(1) {
                    self.operate(at, AllGather, &operands, (this, results));
                }
            }
            CustomCall if at.joins_slices() => {
                let whole = self.sliced(at);
                whole.into_iter().for_each(|whole| self.same_all(whole, this));
            }
            opcode => {
                self.note_pieces(at);
                let operands: Vec<Option<usize>> = at.operand_indices().collect();
                let leaves = 0..self.form(this).leaves.len();
                self.operate(at, opcode, &operands, (this, leaves));
            }
        }
    }

    /// Relates the dimensions of an operation's operands, which must be arrays, and of its results.
    fn operate(
        &mut self,
        at: &Instruction<'_>,
        opcode: Opcode,
        operands: &[Option<usize>],
        (result, leaves): (usize, Range<usize>),
    ) {
        let made = self.axes.edges.made(result);
        for operand in operands.iter().flatten() {
            let read = self.axes.edges.read(*operand);
            self.edges.push((read, made));
            let leaves = self.form(*operand).leaves.len();
            if leaves != 1 && self.read.insert(*operand) {
                self.edges.extend((0..leaves).map(|leaf| (self.axes.edges.leaf(*operand, leaf), read)));
            }
        }
        self.edges.extend(
            leaves.clone().map(|leaf| (made, self.axes.edges.leaf(result, leaf))).filter(|(from, to)| from != to),
        );
        if opcode == Opcode::Sort {
            self.axes.edges.sort(operands, result, &mut self.edges);
        }
        let mut arrays: Vec<(usize, usize)> = Vec::with_capacity(operands.len() + 1);
        for operand in operands {
            let Some(operand) = operand.filter(|operand| self.form(*operand).leaves.len() == 1) else { return };
            arrays.push((operand, 0));
        }
        arrays.extend(leaves.map(|leaf| (result, leaf)));
        let slots: Vec<u32> = arrays.iter().map(|(at, leaf)| self.slot_read(*at, *leaf, *at != result)).collect();
        let mut factors = std::mem::take(&mut self.factors);
        let of_arrays: Vec<&Array> = arrays.iter().map(|(at, leaf)| &self.form(*at).leaves[*leaf]).collect();
        add_factors(at, opcode, &of_arrays, operands.len(), &mut factors);
        self.apply(at.index(), &slots, &factors);
        self.factors = factors;
    }

    fn apply(&mut self, instruction: usize, slots: &[u32], factors: &Factors) {
        let mut nodes: Vec<Option<u32>> = vec![None; factors.factors().len()];
        for places in
            factors.places().chunk_by(|one, other| (one.array, one.dimension) == (other.array, other.dimension))
        {
            steps::take(1);
            let Some(first) = places.first() else { continue };
            let slot = slots[first.array] + number(first.dimension);
            let united = if let [place] = places {
                match nodes[place.factor] {
                    Some(node) => self.classes.unite(&[slot], &[node]),
                    None => {
                        nodes[place.factor] = Some(slot);
                        continue;
                    }
                }
            } else {
                let of_places = places.iter().map(|place| {
                    *nodes[place.factor].get_or_insert_with(|| self.classes.add(factors.factors()[place.factor].size))
                });
                let product: Vec<u32> = of_places.collect();
                self.classes.unite(&[slot], &product)
            };
            // A dimension that is the product of other axes elsewhere isn't one of these.
            let is_operand = first.array < factors.operand_count();
            let kind = if is_operand { EventKind::Ends } else { EventKind::Made };
            self.events.extend(united.apart.into_iter().map(|node| (node, instruction, kind(FactorKind::Mix))));
        }
        let mut sides = vec![(false, false); nodes.len()];
        for place in factors.places() {
            let (in_operands, in_results) = &mut sides[place.factor];
            *if place.array < factors.operand_count() { in_operands } else { in_results } = true;
        }
        for ((node, factor), sides) in nodes.into_iter().zip(factors.factors()).zip(sides) {
            let kind = match (factor.kind, sides) {
                (FactorKind::Pass, _) => continue,
                (kind, (false, _)) => EventKind::Made(kind),
                (kind, (_, false)) => EventKind::Ends(kind),
                _ => EventKind::Mixed,
            };
            self.events.extend(node.map(|node| (node, instruction, kind)));
        }
    }

    /// Relates operands to a computation's parameters, and its root to the caller's result.
    fn call(&mut self, callee: &Computation<'m>, operands: &[Option<usize>], result: usize) {
        let ends = self.ends(callee);
        for (parameter, operand) in ends.0.iter().zip(operands) {
            operand.iter().for_each(|operand| self.same_all(*operand, *parameter));
        }
        ends.1.into_iter().for_each(|root| self.same_all(root, result));
    }

    fn ends(&mut self, callee: &Computation<'m>) -> Rc<Ends> {
        let known = self.computations.entry(callee.index()).or_insert_with(|| {
            let mut parameters: Vec<(usize, usize)> =
                callee.instructions().filter_map(|at| Some((at.parameter_number()?, at.index()))).collect();
            parameters.sort_unstable();
            Rc::new((parameters.into_iter().map(|(_, index)| index).collect(), callee.root().map(|root| root.index())))
        });
        Rc::clone(known)
    }

    /// Relates a step of an asynchronous chain: ((operands), (results), …). The operands of the start and the updates
    /// go to its computation, whose result is that of the last step.
    fn asynchronous(&mut self, at: &Instruction<'m>) {
        let this = at.index();
        let operands: Vec<Option<usize>> = at.operand_indices().collect();
        let (start, own) = if at.opcode() == Opcode::AsyncStart {
            (this, &operands[..])
        } else {
            let Some((Some(before), own)) = operands.split_first().map(|(before, own)| (*before, own)) else { return };
            let Some(start) = self.starts.get(&before).copied() else { return };
            let (done, from, to) = (at.opcode() == Opcode::AsyncDone, before, self.form(before).element(1));
            match to {
                Some(made) if done => self.same((from, made.start), (this, 0), made.len()),
                _ => self.same_all(before, this),
            }
            (start, own)
        };
        self.starts.insert(this, start);
        // Some chains name their computation at the start alone.
        let first = self.module.instruction(start).unwrap_or(*at);
        let callee = callee(&first, &[CallRole::Calls, CallRole::ToApply, CallRole::Called]);
        let callee = callee.map(|callee| self.ends(&callee));
        for operand in own {
            let count = operand.map_or(0, |operand| self.form(operand).leaves.len());
            let (handed, leaf) = self.handed.entry(start).or_default();
            let (number, first) = (handed.len(), *leaf);
            handed.push(*operand);
            *leaf += count;
            let Some(operand) = *operand else { continue };
            self.same((operand, 0), (this, first), count);
            if let Some(parameter) = callee.as_ref().and_then(|ends| ends.0.get(number)) {
                self.same_all(operand, *parameter);
            }
        }
        // The result is made once all operands are there: by the done, or else by the steps that the text has.
        let results = if at.opcode() == Opcode::AsyncDone {
            0..self.form(this).leaves.len()
        } else {
            self.form(this).element(1).unwrap_or_default()
        };
        if let Some(ends) = callee {
            ends.1.into_iter().for_each(|root| self.same((root, 0), (this, results.start), results.len()));
        } else if let Some(wrapped) = at.wrapped_opcode().filter(|_| at.opcode() == Opcode::AsyncDone) {
            let (handed, _) = self.handed.remove(&start).unwrap_or_default();
            self.operate(&first, wrapped, &handed, (this, results));
        }
    }

    /// Notes the parts of dimensions that a `pad` or a `slice` has.
    fn note_pieces(&mut self, at: &Instruction<'_>) {
        let (this, operand) = (at.index(), at.operand_indices().next().flatten());
        let Some(operand) = operand.filter(|operand| !(self.is_apart)(*operand)) else { return };
        if [operand, this].iter().any(|at| self.form(*at).leaves.len() != 1) {
            return;
        }
        let [from, to] = [operand, this].map(|at| self.slot(at, 0));
        let rank = self.form(this).leaves[0].bounds.len().min(self.form(operand).leaves[0].bounds.len());
        for dimension in 0..rank {
            let [from, to] = [from, to].map(|first| first + number(dimension));
            self.pieces.note(at, dimension, (from, to), &self.classes);
        }
    }

    /// The array whose slices an instruction joins again: each is copied by an asynchronous pair, of bytes perhaps.
    fn sliced(&self, join: &Instruction<'m>) -> Option<usize> {
        let operand = |at: usize| self.module.instruction(at)?.operand_indices().next().flatten();
        let whole = operand(operand(operand(join.index())?)?)?;
        let is_bytes = self.module.instruction(whole).is_some_and(|at| at.reads_bytes());
        if is_bytes { operand(whole) } else { Some(whole) }
    }

    /// Notes the program's arguments and results.
    fn interface(&mut self) {
        let Some(entry) = self.module.entry() else { return };
        let ends = self.ends(&entry);
        let arguments = ends.0.iter().map(|at| (*at, EventKind::Argument as fn(usize, usize) -> EventKind));
        let results = ends.1.iter().map(|at| (*at, EventKind::Result as fn(usize, usize) -> EventKind));
        for (at, kind) in arguments.chain(results) {
            for leaf in 0..self.form(at).leaves.len() {
                let slot = self.slot(at, leaf);
                for dimension in 0..self.form(at).leaves[leaf].bounds.len() {
                    self.events.push((slot + number(dimension), at, kind(leaf, dimension)));
                }
            }
        }
    }

    fn finish(self) -> Axes {
        let Self { mut axes, mut classes, events, edges, .. } = self;
        axes.edges.fill(&edges);
        let slots = axes.instructions.iter().map(|(_, form)| axes.forms[*form as usize].slots as usize).sum::<usize>();
        // The axis of each class, by the node that stands for it.
        let mut numbers: Vec<Option<AxisId>> = vec![None; classes.len()];
        let mut parts = Vec::new();
        let mut found = |axes: &mut Axes, classes: &mut Classes, node: usize, of_node: &mut Vec<AxisId>| {
            parts.clear();
            classes.parts(number(node), &mut parts);
            for part in parts.iter().filter(|part| classes.size(**part) > 1) {
                let axis = Axis { size: classes.size(*part), events: (0, 0) };
                of_node.push(*numbers[*part as usize].get_or_insert_with(|| axes.axes.push(axis)));
            }
        };
        let mut all = Vec::with_capacity(slots);
        axes.slots.reserve(slots + 1);
        for slot in 0..slots {
            axes.slots.push(number(all.len()));
            found(&mut axes, &mut classes, slot, &mut all);
        }
        axes.slots.push(number(all.len()));
        axes.parts = all;
        let mut of_node = Vec::new();
        for (node, instruction, kind) in events {
            of_node.clear();
            found(&mut axes, &mut classes, node as usize, &mut of_node);
            axes.events.extend(of_node.iter().map(|axis| Event { axis: *axis, instruction, kind }));
        }
        axes.events.sort_by_key(|event| (event.axis, event.instruction));
        let mut start = 0;
        for events in axes.events.chunk_by(|one, other| one.axis == other.axis) {
            let end = start + events.len();
            let axis = events[0].axis;
            axes.axes[axis].events = (number(start), number(end));
            start = end;
        }
        axes
    }
}

/// The computation that an instruction calls in one of these roles.
fn callee<'m>(at: &Instruction<'m>, roles: &[CallRole]) -> Option<Computation<'m>> {
    at.calls().find(|call| roles.contains(&call.role)).and_then(|call| call.computation())
}
