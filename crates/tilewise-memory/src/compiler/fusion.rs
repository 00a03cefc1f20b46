//! Results of a fusion that may take the place of an operand, by the operand's uses in the fusion's body.

use foldhash::HashMap;
use std::collections::BTreeSet;

use tilewise::Shape;
use tilewise_hlo::{
    Computation, Opcode,
    dataflow::{Dataflow, OpId, Position},
};

use crate::sharing::{fused_computation, same_shape};

/// Fusions with more operands share none; compilers make no such fusion (`MaxOperandsAndOutputsPerFusion` is 96).
const MOST_OPERANDS: usize = 512;

/// The bodies of a program's fusions, by computation.
#[derive(Debug, Default)]
pub(super) struct Fusions {
    bodies: HashMap<usize, FusedBody>,
}

/// The instructions of a fusion's body, each known by its index.
#[derive(Debug)]
struct FusedBody {
    instructions: Vec<Fused>,
    /// The index of each parameter, by number.
    parameters: Vec<usize>,
    root: usize,
}

#[derive(Debug)]
struct Fused {
    opcode: Opcode,
    operands: Vec<usize>,
    /// The instruction's users, each once, in text order.
    users: Vec<usize>,
    shape: Option<Shape>,
}

impl Fused {
    /// Bits of an element.
    fn bits(&self) -> Option<u32> {
        Some(self.shape.as_ref()?.element_type()?.bits())
    }
}

impl Fusions {
    pub(super) fn new(flow: &Dataflow) -> Self {
        let computations: Vec<Computation<'_>> = flow.module().computations().collect();
        let mut this = Self::default();
        for op in flow.ops().ids().filter(|op| flow[*op].opcode == Opcode::Fusion) {
            let Some(index) = fused_computation(flow, op) else { continue };
            if let Some(computation) = computations.get(index) {
                this.bodies.entry(index).or_insert_with(|| FusedBody::new(computation));
            }
        }
        this
    }

    /// The body of a fusion, and the parameter that stands for an operand.
    fn parameter(&self, flow: &Dataflow, fusion: OpId, operand: OpId) -> Option<(&FusedBody, usize)> {
        let operands = flow.operands(fusion);
        let number = operands.iter().position(|other| *other == operand)?;
        let body = self.bodies.get(&fused_computation(flow, fusion)?)?;
        (operands.len() <= MOST_OPERANDS).then_some((body, *body.parameters.get(number)?))
    }

    /// On a CPU: whether all uses of an operand are elementwise, or the fusion adds it to a product. Only loops may
    /// have several results (`HloDataflowAnalysis::CanShareOperandBufferWithUser`).
    pub(super) fn is_elementwise_on(&self, flow: &Dataflow, fusion: OpId, operand: OpId) -> bool {
        let Some((body, parameter)) = self.parameter(flow, fusion, operand) else { return false };
        match kind(flow, fusion) {
            "kOutput" if body.instructions[body.root].opcode == Opcode::Add => body.adds_to_product(parameter),
            kind => body.is_elementwise_on(parameter, matches!(kind, "kLoop" | "kInput")),
        }
    }

    /// On a GPU: whether each element of a result is written only after all other results have read the operand's
    /// element in that place (`FusionCanShareBufferHint` in xla/service/gpu/alias_info.cc).
    pub(super) fn writes_in_order(&self, flow: &Dataflow, result: Position, operand: OpId) -> bool {
        let fusion = flow.op_at(result);
        let from = flow[operand].position;
        let elements = |position: Position| {
            let shape = flow.shape(position)?;
            let array = shape.as_array()?;
            let bounds = array.dimensions().iter().map(|dimension| dimension.bound());
            Some((
                bounds.collect::<Option<Vec<_>>>()?.into_iter().try_fold(1, u64::checked_mul)?,
                array.element_type().bits(),
            ))
        };
        let is_alike = || elements(result).is_some_and(|of_result| elements(from) == Some(of_result));
        if !same_shape(flow, result, from) && !is_alike() {
            return false;
        }
        let Some((body, parameter)) = self.parameter(flow, fusion, operand) else { return false };
        body.writes_in_order(parameter, &flow.shape_index(result), kind(flow, fusion) == "kInput")
    }
}

fn kind(flow: &Dataflow, fusion: OpId) -> &str {
    flow.instruction(fusion).and_then(|instruction| instruction.attribute("kind")).unwrap_or_default()
}

impl FusedBody {
    fn new(computation: &Computation<'_>) -> Self {
        let first = computation.instructions().next().map_or(0, |first| first.index());
        let place = |index: usize| index.checked_sub(first);
        let mut instructions: Vec<Fused> = Vec::new();
        let mut parameters = Vec::new();
        for (at, instruction) in computation.instructions().enumerate() {
            if let Some(number) = instruction.parameter_number() {
                parameters.push((number, at));
            }
            let operands = instruction.operands().filter_map(|operand| place(operand.instruction()?.index()));
            let operands: Vec<usize> = operands.filter(|operand| *operand < at).collect();
            for operand in &operands {
                let users = &mut instructions[*operand].users;
                if users.last() != Some(&at) {
                    users.push(at);
                }
            }
            let shape = instruction.shape().ok();
            instructions.push(Fused { opcode: instruction.opcode(), operands, users: Vec::new(), shape });
        }
        parameters.sort_unstable();
        let root = computation.root().and_then(|root| place(root.index())).unwrap_or(0);
        Self { instructions, parameters: parameters.into_iter().map(|(_, at)| at).collect(), root }
    }

    /// Whether `user` is elementwise in `operand`.
    fn is_elementwise_step(&self, user: usize, operand: usize) -> bool {
        let Fused { opcode, operands, .. } = &self.instructions[user];
        match opcode {
            Opcode::DynamicUpdateSlice => operands.first() == Some(&operand),
            Opcode::BitcastConvert => self.instructions[user].bits() == self.instructions[operand].bits(),
            opcode => opcode.is_elementwise(),
        }
    }

    /// Whether all transitive uses are elementwise, or tuples if those are allowed.
    fn is_elementwise_on(&self, parameter: usize, allows_tuples: bool) -> bool {
        let mut seen = BTreeSet::from([parameter]);
        let mut waiting = vec![parameter];
        while let Some(at) = waiting.pop() {
            for &user in &self.instructions[at].users {
                let is_tuple = self.instructions[user].opcode == Opcode::Tuple;
                if !(is_tuple && allows_tuples || self.is_elementwise_step(user, at)) {
                    return false;
                }
                if seen.insert(user) {
                    waiting.push(user);
                }
            }
        }
        true
    }

    /// Whether the body's result is a product plus the parameter, which nothing else reads.
    fn adds_to_product(&self, parameter: usize) -> bool {
        let root = &self.instructions[self.root];
        let is_product = |at: &usize| matches!(self.instructions[*at].opcode, Opcode::Dot | Opcode::Convolution);
        let Some(product) = root.operands.iter().position(is_product) else { return false };
        let is_other = matches!(root.operands[..], [a, b] if [a, b][1 - product] == parameter && a != b);
        is_other && self.instructions[parameter].users == [self.root]
    }

    fn outputs(&self) -> &[usize] {
        let root = &self.instructions[self.root];
        if root.opcode == Opcode::Tuple { &root.operands } else { std::slice::from_ref(&self.root) }
    }

    /// The opcode of the heavy instruction behind an output: back over elementwise steps and bitcasts with just one
    /// source that isn't cheap.
    fn hero(&self, output: usize) -> Opcode {
        self.instructions[self.hero_at(output)].opcode
    }

    fn hero_at(&self, output: usize) -> usize {
        let is_cheap = |at: &&usize| {
            use Opcode::{Broadcast, Constant, Iota, Parameter};
            matches!(self.instructions[**at].opcode, Parameter | Constant | Broadcast | Iota)
        };
        let mut at = output;
        loop {
            let Fused { opcode, operands, .. } = &self.instructions[at];
            if !opcode.is_elementwise() && *opcode != Opcode::Bitcast {
                return at;
            }
            let mut sources = operands.iter().filter(|operand| !is_cheap(operand));
            match (sources.next(), sources.next()) {
                (Some(source), None) => at = *source,
                _ => return output,
            }
        }
    }

    fn writes_in_order(&self, parameter: usize, path: &[usize], is_reduction: bool) -> bool {
        let instruction = |at: usize| &self.instructions[at];
        let mut output = self.root;
        for element in path {
            match instruction(output) {
                Fused { opcode: Opcode::Tuple, operands, .. } => match operands.get(*element) {
                    Some(operand) => output = *operand,
                    None => return false,
                },
                _ => break,
            }
        }
        let writer = match instruction(output) {
            Fused { opcode: Opcode::Bitcast, operands, .. } => operands.first().copied().unwrap_or(output),
            _ => output,
        };
        let heroes = || self.outputs().iter().map(|output| self.hero_at(*output));
        let reduction =
            if is_reduction { heroes().find(|hero| instruction(*hero).opcode == Opcode::Reduce) } else { None };
        let mut seen = vec![false; self.instructions.len()];
        seen[parameter] = true;
        let mut waiting = vec![parameter];
        while let Some(at) = waiting.pop() {
            if Some(at) == reduction {
                continue;
            }
            for &user in &instruction(at).users {
                if !std::mem::replace(&mut seen[user], true) {
                    waiting.push(user);
                }
                match self.step(at, user, writer, path) {
                    Step::On => {}
                    Step::Other if Some(user) == reduction => {}
                    Step::No | Step::Other => return false,
                }
            }
        }
        let others = || self.outputs().iter().filter(|other| seen[**other]);
        if instruction(self.root).opcode == Opcode::Tuple && others().any(|other| *other != output) {
            let moves = |other: &usize| matches!(self.hero(*other), Opcode::Transpose | Opcode::Copy);
            if !instruction(writer).opcode.is_elementwise() || others().any(moves) {
                return false;
            }
        }
        seen[output]
    }

    /// Classifies the read of `at`, which derives from the operand, by `user`.
    fn step(&self, at: usize, user: usize, writer: usize, path: &[usize]) -> Step {
        let (Fused { opcode, operands, shape, .. }, write) = (&self.instructions[user], &self.instructions[writer]);
        let number = operands.iter().position(|operand| *operand == at).unwrap_or(0);
        let reads_once = || operands.iter().filter(|operand| **operand == at).count() == 1;
        let go = |may: bool, otherwise: Step| if may { Step::On } else { otherwise };
        match opcode {
            Opcode::Scatter if user == writer && number < operands.len().saturating_sub(1) / 2 && reads_once() => {
                Step::On
            }
            Opcode::Sort if user == writer && reads_once() => go(path == [number], Step::No),
            Opcode::DynamicSlice if self.slices_what_is_written(user, writer) => {
                let is_one = shape
                    .as_ref()
                    .is_some_and(|shape| shape.dimensions().iter().all(|dimension| dimension.bound() == Some(1)));
                go(is_one || operands.get(1..) == write.operands.get(2..), Step::No)
            }
            Opcode::DynamicUpdateSlice if user == writer && number == 1 => Step::On,
            Opcode::Bitcast | Opcode::Tuple => Step::On,
            Opcode::Copy => Step::Other,
            _ => go(self.is_elementwise_step(user, at), Step::Other),
        }
    }

    /// Whether a slice of the updated array has the shape of the update.
    fn slices_what_is_written(&self, slice: usize, writer: usize) -> bool {
        let (slice, write) = (&self.instructions[slice], &self.instructions[writer]);
        let update = write.operands.get(1).map(|update| &self.instructions[*update].shape);
        write.opcode == Opcode::DynamicUpdateSlice
            && slice.operands.first() == write.operands.first()
            && slice.shape.is_some()
            && update == Some(&slice.shape)
    }
}

enum Step {
    /// Elements are read in the order in which they are written.
    On,
    No,
    /// No, unless it is the reduction of the fusion.
    Other,
}
