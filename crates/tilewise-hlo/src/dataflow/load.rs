//! From a module's text to the graph.

use foldhash::HashMap;
use std::collections::hash_map::Entry;

use crate::{CallRole, Computation, Instruction, Module, Opcode};

use super::{
    BodyId, NodeId, OpId, Position,
    graph::{Body, Gap, Graph, Op},
};

/// The index of an operand that the text doesn't have.
const MISSING: u32 = u32::MAX;

pub(super) fn load(module: &Module) -> Graph {
    let mut loader = Loader {
        module,
        graph: Graph::default(),
        shapes: HashMap::default(),
        missing: Vec::new(),
        // Every node of a shape takes a byte of text; hidden computations repeat their operands'.
        most_positions: module.source().len().saturating_mul(2).min(MISSING as usize - 1),
    };
    let ran: Vec<Computation<'_>> = module.computations().filter(Computation::owns_buffers).collect();
    let (ran, empty): (Vec<_>, Vec<_>) = ran.into_iter().partition(|computation| computation.root().is_some());
    let of_computation = &mut loader.graph.of_computation;
    of_computation.resize(module.computations().len(), None);
    for (at, computation) in ran.iter().enumerate() {
        of_computation[computation.index()] = Some(BodyId::new(at));
    }
    loader.graph.entry = module.entry().and_then(|entry| of_computation[entry.index()]);
    if loader.graph.entry.is_none() || !empty.is_empty() {
        loader.note(|| Gap::NoEntry);
    }
    for computation in ran {
        loader.load(computation, true);
    }
    loader.unhide();
    loader.load_fused();
    loader.add_missing();
    loader.graph
}

/// An asynchronous start with its updates and its done.
struct Link {
    operands: Vec<OpId>,
    /// The result, which is empty in a start whose operands come later: `((), (), …) call-start()`.
    result: Option<Position>,
}

struct Loader<'m> {
    module: &'m Module,
    graph: Graph,
    /// The first node of each distinct text of a shape.
    shapes: HashMap<&'m str, NodeId>,
    /// The operands that the text doesn't have.
    missing: Vec<usize>,
    most_positions: usize,
}

impl<'m> Loader<'m> {
    /// Notes a gap; only the first is kept.
    fn note(&mut self, gap: impl FnOnce() -> Gap) {
        self.graph.gap.get_or_insert_with(gap);
    }

    fn load(&mut self, computation: Computation<'m>, runs: bool) {
        let instructions = computation.instructions();
        let root = computation.root();
        let id = self.graph.bodies.next_id();
        let first_instruction = instructions.clone().next().map_or(0, |first| first.index());
        let mut parameters = Vec::new();
        let first = self.graph.ops.next_id();
        for instruction in instructions {
            let op = self.graph.ops.next_id();
            let opcode = instruction.opcode();
            let operands = self.graph.operands.len();
            for (number, index) in instruction.operand_indices().enumerate() {
                let found = index.and_then(|index| index.checked_sub(first_instruction));
                if found.is_none() {
                    self.missing.push(self.graph.operands.len());
                    self.note(|| {
                        let operand = instruction.operand_names().nth(number).unwrap_or_default();
                        Gap::Operand { instruction: instruction.name().into(), operand: operand.into() }
                    });
                }
                self.graph.operands.push(found.map_or(op, |offset| first.plus(offset)));
            }
            let opcode = match opcode {
                Opcode::AllReduceDone | Opcode::CollectivePermuteDone if self.is_started_by_wrapping(operands, op) => {
                    Opcode::AsyncDone
                }
                opcode => opcode,
            };
            let number = match opcode {
                Opcode::Parameter => instruction.parameter_number(),
                Opcode::GetTupleElement => instruction.tuple_index(),
                _ => None,
            };
            if opcode == Opcode::Parameter {
                parameters.push((number.unwrap_or(usize::MAX), op));
            }
            let position = self.add_positions(op, &instruction);
            self.graph.ops.push(Op {
                opcode,
                body: id,
                is_root: Some(instruction) == root,
                is_hidden: false,
                number: number.unwrap_or(usize::MAX),
                position,
                instruction: number_of(instruction.index()),
                operands: number_of(operands)..number_of(self.graph.operands.len()),
                calls: 0..0,
            });
        }
        parameters.sort_unstable();
        let parameters = parameters.into_iter().map(|(_, op)| op).collect();
        let root = root.map_or(first, |root| first.plus(root.index() - first_instruction));
        let ops = number_of(first.index())..number_of(self.graph.ops.len());
        self.graph.bodies.push(Body { ops, root, parameters, runs, first_instruction });
        if runs {
            self.add_calls(id);
        }
    }

    /// Whether the operand at this place is an `async-start`, of the instructions before this one.
    fn is_started_by_wrapping(&self, operand: usize, before: OpId) -> bool {
        let start = self.graph.operands.get(operand).filter(|start| **start < before);
        start.is_some_and(|start| self.graph.ops[*start].opcode == Opcode::AsyncStart)
    }

    /// Adds one instruction for all operands that the text doesn't have, in a computation that isn't called.
    fn add_missing(&mut self) {
        if self.missing.is_empty() {
            return;
        }
        let (body, op) = (self.graph.bodies.next_id(), self.graph.ops.next_id());
        let node = self.graph.shapes.add_unknown();
        let position = self.graph.positions.push((op, node));
        self.graph.ops.push(Op {
            opcode: Opcode::Unknown,
            body,
            is_root: true,
            is_hidden: true,
            number: usize::MAX,
            position,
            instruction: MISSING,
            operands: 0..0,
            calls: 0..0,
        });
        let ops = number_of(op.index())..number_of(op.index() + 1);
        self.graph.bodies.push(Body {
            ops,
            root: op,
            parameters: Vec::new(),
            runs: false,
            first_instruction: usize::MAX,
        });
        for at in self.missing.drain(..) {
            self.graph.operands[at] = op;
        }
    }

    /// Notes the loaded computations that the instructions of one call.
    fn add_calls(&mut self, body: BodyId) {
        for op in self.graph.bodies[body].ops() {
            let Some(instruction) = self.instruction(op).filter(Instruction::runs_callees) else { continue };
            // In the order in which they run.
            let roles: &[CallRole] = match instruction.wrapped_opcode().unwrap_or(instruction.opcode()) {
                Opcode::While => &[CallRole::Condition, CallRole::Body],
                Opcode::Conditional => &[CallRole::Branch, CallRole::True, CallRole::False],
                Opcode::Call => &[CallRole::ToApply, CallRole::Calls],
                _ => &[CallRole::Calls, CallRole::ToApply],
            };
            let first = self.graph.calls.len();
            let called: Vec<_> = instruction.calls().collect();
            for call in roles.iter().flat_map(|role| called.iter().filter(move |call| call.role == *role)) {
                let callee = call.computation().and_then(|callee| self.graph.of_computation[callee.index()]);
                self.graph.calls.extend(callee.map(|callee| (call.role, callee)));
            }
            self.graph.ops[op].calls = number_of(first)..number_of(self.graph.calls.len());
        }
    }

    fn instruction(&self, op: OpId) -> Option<Instruction<'m>> {
        self.module.instruction(self.graph.ops[op].instruction as usize)
    }

    fn add_positions(&mut self, op: OpId, instruction: &Instruction<'m>) -> Position {
        let shapes = &mut self.graph.shapes;
        let first = match self.shapes.entry(instruction.shape_text()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let node = if let Ok(shape) = instruction.shape() {
                    shapes.add(shape)
                } else {
                    let gap = || Gap::Shape { instruction: instruction.name().to_owned() };
                    self.graph.gap.get_or_insert_with(gap);
                    shapes.add_unknown()
                };
                *new.insert(node)
            }
        };
        self.push_positions(op, first)
    }

    fn push_positions(&mut self, op: OpId, first: NodeId) -> Position {
        let position = self.graph.positions.next_id();
        for k in 0..self.graph.shapes.nodes[first].extent() {
            self.graph.positions.push((op, first.plus(k)));
        }
        position
    }

    /// Repeats the positions from one on, for an instruction that is about to be added. `None` where that is too much.
    fn copy_positions(&mut self, from: Position) -> Option<Position> {
        let (_, node) = self.graph.positions[from];
        if self.graph.positions.len() + self.graph.shapes.nodes[node].extent() > self.most_positions {
            self.note(|| Gap::TooLarge);
            return None;
        }
        Some(self.push_positions(self.graph.ops.next_id(), node))
    }

    /// Gives `slice-start(…)` and the like the computation that the text leaves out: one instruction on parameters.
    fn unhide(&mut self) {
        let mut links = self.links();
        for start in self.graph.ops.ids() {
            let Some(link) = links.remove(&start) else { continue };
            let Some(wrapped) = self.instruction(start).and_then(|instruction| instruction.wrapped_opcode()) else {
                continue;
            };
            if self.unhide_one(start, wrapped, &link).is_none() {
                return;
            }
        }
    }

    /// For each asynchronous start, the operands that it and its updates pass on, and the position of the result.
    fn links(&self) -> HashMap<OpId, Link> {
        let mut links: HashMap<OpId, Link> = HashMap::default();
        // The start of each update.
        let mut starts: HashMap<OpId, OpId> = HashMap::default();
        for op in self.graph.ops.ids() {
            let Op { opcode, position, ref operands, .. } = self.graph.ops[op];
            let operands: Vec<OpId> = operands.clone().map(|at| self.graph.operands[at as usize]).collect();
            let result = || {
                let (_, tuple) = self.graph.positions[position];
                let element = self.graph.shapes.elements(tuple).get(1).copied();
                element.map(|element| position.plus(element as usize))
            };
            match opcode {
                Opcode::AsyncStart => {
                    starts.insert(op, op);
                    links.insert(op, Link { operands, result: result() });
                }
                Opcode::AsyncUpdate | Opcode::AsyncDone => {
                    let Some((before, passed)) = operands.split_first() else { continue };
                    let Some(&start) = starts.get(before) else { continue };
                    let Some(link) = links.get_mut(&start) else { continue };
                    link.operands.extend(passed);
                    if opcode == Opcode::AsyncUpdate {
                        starts.insert(op, start);
                        link.result = result();
                    } else {
                        link.result = Some(position);
                    }
                }
                _ => {}
            }
        }
        links
    }

    fn unhide_one(&mut self, start: OpId, wrapped: Opcode, link: &Link) -> Option<()> {
        let Op { instruction, calls, .. } = self.graph.ops[start].clone();
        let Some(result) = link.result else { return Some(()) };
        let (body, first) = (self.graph.bodies.next_id(), self.graph.ops.next_id());
        let hidden = |opcode, number, position, operands, calls| Op {
            opcode,
            body,
            is_root: opcode != Opcode::Parameter,
            is_hidden: true,
            number,
            position,
            instruction,
            operands,
            calls,
        };
        let mut parameters = Vec::new();
        for (number, &operand) in link.operands.iter().enumerate() {
            let position = self.copy_positions(self.graph.ops[operand].position)?;
            parameters.push(self.graph.ops.push(hidden(Opcode::Parameter, number, position, 0..0, 0..0)));
        }
        let position = self.copy_positions(result)?;
        let operands = self.graph.operands.len();
        self.graph.operands.extend(&parameters);
        let operands = number_of(operands)..number_of(self.graph.operands.len());
        // The start's callees are called by the instruction it wraps.
        let root = self.graph.ops.push(hidden(wrapped, usize::MAX, position, operands, calls));
        let calls = number_of(self.graph.calls.len());
        self.graph.calls.push((CallRole::Calls, body));
        self.graph.ops[start].calls = calls..calls + 1;
        let ops = number_of(first.index())..number_of(self.graph.ops.len());
        self.graph.bodies.push(Body { ops, root, parameters, runs: true, first_instruction: usize::MAX });
        Some(())
    }

    /// The bodies of fusions whose root may write into an operand, and of those in them.
    fn load_fused(&mut self) {
        let mut at = 0;
        while at < self.graph.ops.len() {
            let op = OpId::new(at);
            at += 1;
            if self.graph.ops[op].opcode != Opcode::Fusion {
                continue;
            }
            let Some(instruction) = self.instruction(op) else { continue };
            let Some(called) = instruction.calls().find(|call| call.role == CallRole::Calls) else { continue };
            let Some(computation) = called.computation() else { continue };
            let id = match self.graph.of_computation[computation.index()] {
                Some(known) => known,
                None => {
                    if !computation.root().is_some_and(|root| may_write_in_place(root.opcode())) {
                        continue;
                    }
                    let id = self.graph.bodies.next_id();
                    self.graph.of_computation[computation.index()] = Some(id);
                    self.load(computation, false);
                    id
                }
            };
            let calls = number_of(self.graph.calls.len());
            self.graph.calls.push((CallRole::Calls, id));
            self.graph.ops[op].calls = calls..calls + 1;
        }
    }
}

/// Whether a fusion with such a root may leave its result in an operand: an operation in place, or one behind which
/// there may be such.
fn may_write_in_place(root: Opcode) -> bool {
    matches!(
        root,
        Opcode::Bitcast
            | Opcode::CollectivePermute
            | Opcode::CustomCall
            | Opcode::DynamicUpdateSlice
            | Opcode::Fusion
            | Opcode::GetTupleElement
            | Opcode::RaggedAllToAll
            | Opcode::Scatter
            | Opcode::SetDimensionSize
            | Opcode::Tuple
    )
}

/// No count here is more than twice the length of the text, which is below 2^32 bytes.
fn number_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(MISSING)
}
