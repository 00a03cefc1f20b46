//! The instructions that run, and the places of their results.

use std::{collections::HashMap, ops::Range};

use tilewise::{Shape, ShapeKind, tpu::Generation};
use tilewise_hlo::{CallRole, Computation, Instruction, Module};

use crate::{
    Error,
    index::{ComputationId, Key, OpId, PlaceId, Table},
    opcode::Opcode,
    size,
};

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    /// Its place among the module's instructions; for one that the text leaves out, that of the start it belongs to.
    pub(crate) source: u32,
    pub(crate) opcode: Opcode,
    pub(crate) computation: ComputationId,
    pub(crate) is_root: bool,
    /// Whether the text leaves it out, as it does the computation of a `slice-start`.
    pub(crate) is_hidden: bool,
    /// A parameter's number, or the element that a `get-tuple-element` takes.
    pub(crate) number: usize,
    /// The first of its places, which follow one another.
    pub(crate) place: PlaceId,
    operands: Range<u32>,
    calls: Range<u32>,
}

/// A node of an instruction's shape, in pre-order: a tuple's table of pointers, or a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) op: OpId,
    /// Bytes it takes.
    pub(crate) bytes: u64,
    /// How many nodes it has, itself included.
    extent: u32,
    /// Nodes back to the tuple that it is an element of; 0 at the top.
    back: u32,
    /// Which element of that tuple it is.
    element: u32,
    /// Where in the graph's `elements` a tuple's own begin, and how many they are.
    elements: (u32, u32),
    pub(crate) memory_space: u8,
    pub(crate) is_table: bool,
    /// Whether it is an array of one element, which a register can hold.
    pub(crate) fits_register: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// Its instructions follow one another, in the order of the text.
    pub(crate) ops: Range<u32>,
    pub(crate) root: OpId,
    /// By number.
    pub(crate) parameters: Vec<OpId>,
    /// Whether it runs in memory of its own: the entry and what loops, conditionals, calls and asynchronous pairs run,
    /// but no fusion's body.
    pub(crate) runs: bool,
}

impl Body {
    pub(crate) fn ops(&self) -> impl DoubleEndedIterator<Item = OpId> + ExactSizeIterator + use<> {
        (self.ops.start as usize..self.ops.end as usize).map(OpId::new)
    }

    /// Its `k`th instruction.
    pub(crate) fn op(&self, k: usize) -> Option<OpId> {
        let at = self.ops.start as usize + k;
        (at < self.ops.end as usize).then(|| OpId::new(at))
    }
}

/// The part of a module that its memory depends on: what runs, then the bodies of fusions that may work in place.
#[derive(Debug)]
pub(crate) struct Graph<'m> {
    pub(crate) module: &'m Module,
    pub(crate) ops: Table<OpId, Op>,
    pub(crate) places: Table<PlaceId, Place>,
    pub(crate) bodies: Table<ComputationId, Body>,
    pub(crate) entry: ComputationId,
    operands: Vec<OpId>,
    calls: Vec<(CallRole, ComputationId)>,
    /// For each tuple of the distinct shapes, how many nodes after it each element lies.
    elements: Vec<u32>,
}

impl<'m> Graph<'m> {
    pub(crate) fn new(module: &'m Module, generation: Generation) -> Result<Self, Error> {
        let entry = module.entry().ok_or(Error::NoEntry)?;
        let mut running = vec![false; module.computations().len()];
        let mut waiting = vec![entry];
        while let Some(computation) = waiting.pop() {
            if !std::mem::replace(&mut running[computation.index()], true) {
                let callers = computation.instructions().filter(|instruction| runs_callees(instruction.opcode_text()));
                waiting.extend(callers.flat_map(|caller| caller.calls()).filter_map(|call| call.computation()));
            }
        }
        let mut loader = Loader {
            graph: Self {
                module,
                ops: Table::new(),
                places: Table::new(),
                bodies: Table::new(),
                entry: ComputationId::new(0),
                operands: Vec::new(),
                calls: Vec::new(),
                elements: Vec::new(),
            },
            generation,
            shapes: HashMap::new(),
            of_computation: vec![None; running.len()],
            // Every node of a shape takes a byte of text; hidden computations repeat their operands'.
            most_places: module.source().len().saturating_mul(2).min(u32::MAX as usize - 1),
        };
        let ran: Vec<Computation<'m>> = module.computations().filter(|c| running[c.index()]).collect();
        for (at, computation) in ran.iter().enumerate() {
            loader.of_computation[computation.index()] = Some(ComputationId::new(at));
        }
        loader.graph.entry = loader.of_computation[entry.index()].ok_or(Error::NoEntry)?;
        for computation in ran {
            loader.load(computation, true)?;
        }
        loader.unhide()?;
        loader.load_fused()?;
        Ok(loader.graph)
    }

    pub(crate) fn instruction(&self, op: OpId) -> Option<Instruction<'m>> {
        self.module.instruction(self.ops[op].source as usize)
    }

    pub(crate) fn attributes(&self, op: OpId) -> &'m str {
        self.instruction(op).map_or("", |instruction| instruction.attributes_text())
    }

    pub(crate) fn operands(&self, op: OpId) -> &[OpId] {
        let range = &self.ops[op].operands;
        &self.operands[range.start as usize..range.end as usize]
    }

    /// The first place of an operand's result.
    pub(crate) fn operand(&self, op: OpId, number: usize) -> Option<PlaceId> {
        self.operands(op).get(number).map(|operand| self.ops[*operand].place)
    }

    /// The computations that an instruction calls as one of these, in the order of the roles.
    pub(crate) fn callees(&self, op: OpId, roles: &[CallRole]) -> impl Iterator<Item = ComputationId> {
        let range = &self.ops[op].calls;
        let calls = &self.calls[range.start as usize..range.end as usize];
        roles.iter().flat_map(move |role| calls.iter().filter(move |call| call.0 == *role).map(|call| call.1))
    }

    pub(crate) fn callee(&self, op: OpId, role: CallRole) -> Option<ComputationId> {
        self.callees(op, &[role]).next()
    }

    /// The branches of a `conditional`, in order.
    pub(crate) fn branches(&self, op: OpId) -> impl Iterator<Item = ComputationId> {
        self.callees(op, &[CallRole::Branch, CallRole::True, CallRole::False])
    }

    /// The place of the root of a computation.
    pub(crate) fn root_place(&self, computation: ComputationId) -> PlaceId {
        self.ops[self.bodies[computation].root].place
    }

    /// All places of an instruction's result.
    pub(crate) fn places_of(&self, op: OpId) -> impl DoubleEndedIterator<Item = PlaceId> + ExactSizeIterator + use<> {
        self.nodes(self.ops[op].place)
    }

    /// A place and everything within it.
    pub(crate) fn nodes(&self, place: PlaceId) -> impl DoubleEndedIterator<Item = PlaceId> + ExactSizeIterator + use<> {
        (0..self.extent(place)).map(move |k| place.plus(k))
    }

    pub(crate) fn extent(&self, place: PlaceId) -> usize {
        self.places[place].extent as usize
    }

    pub(crate) fn is_top(&self, place: PlaceId) -> bool {
        self.places[place].back == 0
    }

    /// The elements of a tuple, in order.
    pub(crate) fn elements(&self, tuple: PlaceId) -> impl Iterator<Item = PlaceId> {
        let (first, count) = self.places[tuple].elements;
        let elements = &self.elements[first as usize..first as usize + count as usize];
        elements.iter().map(move |nodes| tuple.plus(*nodes as usize))
    }

    pub(crate) fn element(&self, tuple: PlaceId, number: usize) -> Option<PlaceId> {
        let (first, count) = self.places[tuple].elements;
        (number < count as usize).then(|| tuple.plus(self.elements[first as usize + number] as usize))
    }

    /// Which element of a tuple holds the node so many after it.
    pub(crate) fn element_around(&self, tuple: PlaceId, node: usize) -> Option<(usize, PlaceId)> {
        let (first, count) = self.places[tuple].elements;
        let elements = &self.elements[first as usize..first as usize + count as usize];
        let number = elements.partition_point(|start| *start as usize <= node).checked_sub(1)?;
        Some((number, tuple.plus(elements[number] as usize)))
    }

    /// The place at this path within another.
    pub(crate) fn at(&self, place: PlaceId, path: &[usize]) -> Option<PlaceId> {
        path.iter().try_fold(place, |place, element| self.element(place, *element))
    }

    /// The path to a place within its instruction's shape.
    pub(crate) fn path(&self, mut place: PlaceId) -> Vec<usize> {
        let mut path = Vec::new();
        while !self.is_top(place) {
            path.push(self.places[place].element as usize);
            place = PlaceId::new(place.at() - self.places[place].back as usize);
        }
        path.reverse();
        path
    }
}

fn runs_callees(opcode: &str) -> bool {
    matches!(opcode.strip_suffix("-start").unwrap_or(opcode), "while" | "conditional" | "call" | "async")
}

struct Loader<'m> {
    graph: Graph<'m>,
    generation: Generation,
    /// The nodes of each distinct text of a shape: programs repeat a few.
    shapes: HashMap<&'m str, Vec<Place>>,
    of_computation: Vec<Option<ComputationId>>,
    most_places: usize,
}

impl<'m> Loader<'m> {
    fn load(&mut self, computation: Computation<'m>, runs: bool) -> Result<(), Error> {
        let instructions = computation.instructions();
        let root = computation.root().ok_or(Error::NoEntry)?;
        let id = self.graph.bodies.next_key();
        let first = self.graph.ops.next_key();
        let mut by_name: HashMap<&str, OpId> = HashMap::with_capacity(instructions.len());
        let mut parameters = Vec::new();
        let mut root_op = first;
        for instruction in instructions {
            let op = self.graph.ops.next_key();
            let opcode = Opcode::of(instruction.opcode_text());
            let operands = self.graph.operands.len();
            for operand in instruction.operand_names() {
                let found = by_name.get(operand).ok_or_else(|| Error::UnknownOperand {
                    instruction: instruction.name().to_owned(),
                    operand: operand.to_owned(),
                })?;
                self.graph.operands.push(*found);
            }
            let number = match opcode {
                Opcode::Parameter => instruction.parameter_number(),
                Opcode::GetTupleElement => instruction.attribute("index").and_then(|index| index.parse().ok()),
                _ => None,
            };
            if opcode == Opcode::Parameter {
                parameters.push((number, op));
            }
            if instruction == root {
                root_op = op;
            }
            by_name.insert(instruction.name(), op);
            let place = self.add_places(op, &instruction)?;
            let is_new = self.graph.ops.push(Op {
                source: u32_of(instruction.index())?,
                opcode,
                computation: id,
                is_root: instruction == root,
                is_hidden: false,
                number: number.unwrap_or(usize::MAX),
                place,
                operands: u32_of(operands)?..u32_of(self.graph.operands.len())?,
                calls: 0..0,
            });
            debug_assert_eq!(is_new, op);
        }
        parameters.sort_unstable();
        let parameters = parameters.into_iter().map(|(_, op)| op).collect();
        let ops = u32_of(first.at())?..u32_of(self.graph.ops.len())?;
        self.graph.bodies.push(Body { ops, root: root_op, parameters, runs });
        if runs {
            self.add_calls(id)?;
        }
        Ok(())
    }

    /// Notes which computations the instructions of one call, those that are loaded.
    fn add_calls(&mut self, computation: ComputationId) -> Result<(), Error> {
        for op in self.graph.bodies[computation].ops() {
            let calls = match self.graph.ops[op].opcode {
                Opcode::While | Opcode::Conditional | Opcode::Call | Opcode::AsyncStart => self.graph.instruction(op),
                _ => None,
            };
            let first = self.graph.calls.len();
            for call in calls.into_iter().flat_map(|instruction| instruction.calls()) {
                let callee = call.computation().and_then(|callee| self.of_computation[callee.index()]);
                self.graph.calls.extend(callee.map(|callee| (call.role, callee)));
            }
            self.graph.ops[op].calls = u32_of(first)?..u32_of(self.graph.calls.len())?;
        }
        Ok(())
    }

    fn add_places(&mut self, op: OpId, instruction: &Instruction<'m>) -> Result<PlaceId, Error> {
        let first = self.graph.places.next_key();
        let text = instruction.shape_text();
        let nodes = match self.shapes.entry(text) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                let shape = instruction.shape();
                let shape = shape.map_err(|_| Error::InvalidShape(instruction.name().to_owned()))?;
                new.insert(nodes(shape, self.generation, &mut self.graph.elements)?)
            }
        };
        if self.graph.places.len() + nodes.len() > self.most_places {
            return Err(Error::TooLarge);
        }
        for node in nodes {
            self.graph.places.push(Place { op, ..*node });
        }
        if matches!(instruction.opcode_text(), "send" | "recv") {
            // The compiler keeps the context in scalar memory, whatever its layout says.
            if let Some(context) = self.graph.element(first, 1) {
                self.graph.places[context].memory_space = 2;
            }
        }
        Ok(first)
    }

    /// Repeats the nodes from a place on, for an instruction that is about to be added.
    fn copy_places(&mut self, from: PlaceId) -> Result<PlaceId, Error> {
        let (op, first) = (self.graph.ops.next_key(), self.graph.places.next_key());
        let nodes = self.graph.nodes(from);
        if self.graph.places.len() + nodes.len() > self.most_places {
            return Err(Error::TooLarge);
        }
        for node in nodes {
            let place = self.graph.places[node];
            let back = if node == from { 0 } else { place.back };
            self.graph.places.push(Place { op, back, ..place });
        }
        Ok(first)
    }

    /// Gives `slice-start(…)` and the like the computation that the text leaves out: one instruction on parameters.
    fn unhide(&mut self) -> Result<(), Error> {
        let starts: Vec<OpId> = self.graph.ops.keys().filter(|op| self.is_abbreviated(*op)).collect();
        for start in starts {
            let Some(result) = self.graph.element(self.graph.ops[start].place, 1) else { continue };
            let (computation, first) = (self.graph.bodies.next_key(), self.graph.ops.next_key());
            let source = self.graph.ops[start].source;
            let hidden = |opcode, number, place, operands| Op {
                source,
                opcode,
                computation,
                is_root: opcode != Opcode::Parameter,
                is_hidden: true,
                number,
                place,
                operands,
                calls: 0..0,
            };
            let mut parameters = Vec::new();
            for (number, operand) in self.graph.operands(start).to_vec().into_iter().enumerate() {
                let place = self.copy_places(self.graph.ops[operand].place)?;
                parameters.push(self.graph.ops.push(hidden(Opcode::Parameter, number, place, 0..0)));
            }
            let place = self.copy_places(result)?;
            let operands = self.graph.operands.len();
            self.graph.operands.extend(&parameters);
            let operands = u32_of(operands)?..u32_of(self.graph.operands.len())?;
            let name = self.graph.instruction(start).map_or("", |instruction| instruction.opcode_text());
            let opcode = Opcode::of(name.strip_suffix("-start").unwrap_or(name));
            let root = self.graph.ops.push(hidden(opcode, usize::MAX, place, operands));
            // What the start calls is called by the instruction it wraps.
            self.graph.ops[root].calls = self.graph.ops[start].calls.clone();
            let calls = self.graph.calls.len();
            self.graph.calls.push((CallRole::Calls, computation));
            self.graph.ops[start].calls = u32_of(calls)?..u32_of(calls + 1)?;
            let ops = u32_of(first.at())?..u32_of(self.graph.ops.len())?;
            self.graph.bodies.push(Body { ops, root, parameters, runs: true });
        }
        Ok(())
    }

    fn is_abbreviated(&self, op: OpId) -> bool {
        self.graph.ops[op].opcode == Opcode::AsyncStart
            && self.graph.instruction(op).is_some_and(|instruction| instruction.opcode_text() != "async-start")
    }

    /// The bodies of fusions whose root may write into an operand, and of those in them.
    fn load_fused(&mut self) -> Result<(), Error> {
        let mut at = 0;
        while at < self.graph.ops.len() {
            let op = OpId::new(at);
            at += 1;
            if self.graph.ops[op].opcode != Opcode::Fusion {
                continue;
            }
            let Some(instruction) = self.graph.instruction(op) else { continue };
            let Some(called) = instruction.calls().find(|call| call.role == CallRole::Calls) else { continue };
            let Some(body) = called.computation() else { continue };
            let known = self.of_computation[body.index()];
            let id = match known {
                Some(known) => known,
                None => {
                    let root = body.root().map_or("", |root| root.opcode_text());
                    if !may_write_in_place(Opcode::of(root)) {
                        continue;
                    }
                    let id = self.graph.bodies.next_key();
                    self.of_computation[body.index()] = Some(id);
                    self.load(body, false)?;
                    id
                }
            };
            let calls = self.graph.calls.len();
            self.graph.calls.push((CallRole::Calls, id));
            self.graph.ops[op].calls = u32_of(calls)?..u32_of(calls + 1)?;
        }
        Ok(())
    }
}

/// Whether a fusion with such a root may leave its result in an operand.
fn may_write_in_place(root: Opcode) -> bool {
    !matches!(root, Opcode::Scalar | Opcode::Other | Opcode::Copy | Opcode::Constant)
}

fn u32_of(number: usize) -> Result<u32, Error> {
    u32::try_from(number).map_err(|_| Error::TooLarge)
}

/// The nodes of a shape, in pre-order; the elements of its tuples go to `elements`.
fn nodes(shape: Shape, generation: Generation, elements: &mut Vec<u32>) -> Result<Vec<Place>, Error> {
    let mut nodes: Vec<Place> = Vec::new();
    // Each with the node of its tuple.
    let mut waiting = vec![(shape, None::<usize>, 0_u32)];
    while let Some((shape, parent, element)) = waiting.pop() {
        let at = nodes.len();
        let back = u32_of(parent.map_or(0, |parent| at - parent))?;
        if let Some(parent) = parent {
            elements[nodes[parent].elements.0 as usize + element as usize] = back;
        }
        let mut place = Place {
            op: OpId::new(0),
            bytes: 0,
            extent: 1,
            back,
            element,
            elements: (0, 0),
            memory_space: 0,
            is_table: matches!(shape.kind(), ShapeKind::Tuple),
            fits_register: false,
        };
        if place.is_table {
            let first = waiting.len();
            waiting.extend(shape.elements().zip(0..).map(|(shape, element)| (shape, Some(at), element)));
            waiting[first..].reverse();
            let count = waiting.len() - first;
            place.bytes = size::table(count, generation).ok_or(Error::Overflow)?;
            place.elements = (u32_of(elements.len())?, u32_of(count)?);
            elements.resize(elements.len() + count, 0);
        } else {
            place.bytes = size::leaf(&shape)?;
            if let Some(array) = shape.as_array() {
                place.memory_space = array.memory_space();
                place.fits_register = array.dimensions().iter().all(|dimension| dimension.bound() == Some(1));
            }
        }
        nodes.push(place);
    }
    for at in (1..nodes.len()).rev() {
        let parent = at - nodes[at].back as usize;
        nodes[parent].extent += nodes[at].extent;
    }
    Ok(nodes)
}
