//! Checks that positions with one value have one shape, and that results have the shapes that follow from their
//! operands.
//!
//! The rules are those of `ShapeVerifier` (xla/service/hlo_verifier.cc) as far as a plan of memory depends on them.
//! XLA's parser doesn't check them, so texts that no compiler printed may break them: memory would then be counted by
//! the smaller of two shapes.

use foldhash::HashMap;
use std::fmt;

use tilewise::{Dimension, ElementKind, Shape, Tiled};

use crate::{
    CallRole, Instruction, Opcode,
    infer::{Operation, infer},
};

use super::{Dataflow, NodeId, OpId, Position};

/// Two instructions with contradictory shapes: one must have the other's shape, or the shape that follows from it, and
/// doesn't.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The instruction.
    pub instruction: String,
    /// Its operand, or the parameter or root of its callee.
    pub other: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instruction, other } = self;
        write!(f, "`{instruction}` can't have its shape, as `{other}` has another: no compiler printed this")
    }
}

impl Dataflow {
    /// The first two instructions whose shapes contradict each other: an operand that is passed on, a parameter or root and
    /// its call, a loop's carry, a result that lies in an operand, a result of other bounds than its operands make.
    ///
    /// `None` for programs that a compiler printed, and for texts with a [gap](Self::gap).
    #[must_use]
    pub fn mismatch(&self) -> Option<Mismatch> {
        if self.gap().is_some() {
            return None;
        }
        let mut check = Check {
            flow: self,
            arrays: HashMap::default(),
            wholes: HashMap::default(),
            bounds: HashMap::default(),
            parameters: HashMap::default(),
        };
        let found = check.values().or_else(|| self.ops().ids().find_map(|op| check.op(op)));
        let name = |op| self.instruction(op).map_or_else(String::new, |instruction| instruction.name().to_owned());
        match found? {
            Found::Ops(op, other) => Some(Mismatch { instruction: name(op), other: name(other) }),
            Found::Names(mismatch) => Some(mismatch),
        }
    }
}

enum Found {
    Ops(OpId, OpId),
    Names(Mismatch),
}

/// The common properties of two arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alike {
    Nothing,
    Bounds,
    BoundsAndType,
}

/// Maximum bytes of text of a shape whose bounds are computed: each of its users reads it again.
const LONGEST_SHAPE: usize = 4096;

struct Check<'f> {
    flow: &'f Dataflow,
    /// The results of comparisons: programs repeat a few shapes.
    arrays: HashMap<(NodeId, NodeId), bool>,
    /// The results of comparisons with all positions within.
    wholes: HashMap<(NodeId, NodeId), bool>,
    bounds: HashMap<(NodeId, NodeId), Alike>,
    /// The parameters of fusions' bodies, by the index of the body.
    parameters: HashMap<usize, Vec<Instruction<'f>>>,
}

impl<'f> Check<'f> {
    /// Checks that every position has the shape in which its value was made.
    fn values(&mut self) -> Option<Found> {
        let flow = self.flow;
        flow.all_positions().ids().find_map(|position| {
            let definition = flow.values()[flow.value_at(position)?];
            let found = || Found::Ops(flow.op_at(position), flow.op_at(definition));
            (!self.is_one(position, definition) && !self.lacks_tiles(position, definition)).then(found)
        })
    }

    /// Whether two positions differ in tiles alone, which one of them lacks: then its size is in doubt, but it is the
    /// same array.
    fn lacks_tiles(&self, position: Position, definition: Position) -> bool {
        let flow = self.flow;
        let (Some(one), Some(other)) = (flow.shape(position), flow.shape(definition)) else { return false };
        let is_untiled = |shape: &Shape| shape.layout().is_some_and(|layout| layout.tiles().is_empty());
        is_untiled(&one) != is_untiled(&other)
            && one.element_type() == other.element_type()
            && elements(one.dimensions()).is_some_and(|count| elements(other.dimensions()) == Some(count))
    }

    /// Checks an instruction against its operands and its callees, beyond the values that it passes on.
    fn op(&mut self, op: OpId) -> Option<Found> {
        let flow = self.flow;
        let operand = |number: usize| flow.operands(op).get(number).copied();
        match flow[op].opcode {
            _ if !flow[flow[op].body].runs => None,
            Opcode::Fusion => self.fusion(op).or_else(|| self.aliases(op)),
            Opcode::While => {
                let parameters = flow.calls(op).iter().filter_map(|call| flow[call.1].parameters.first().copied());
                let round = flow.callee(op, CallRole::Body).map(|body| flow[body].root);
                let carriers: Vec<OpId> = parameters.chain(round).chain(operand(0)).collect();
                carriers.into_iter().find_map(|carrier| self.differs(op, carrier))
            }
            Opcode::Conditional | Opcode::Call => {
                let passed = if flow[op].opcode == Opcode::Call { flow.operands(op).len() } else { 1 };
                flow.calls(op).iter().find_map(|call| {
                    let callee = &flow[call.1];
                    let takes_all = callee.parameters.len() == passed;
                    self.differs(op, callee.root).or_else(|| (!takes_all).then_some(Found::Ops(op, callee.root)))
                })
            }
            Opcode::CustomCall | Opcode::AsyncStart => self.aliases(op),
            Opcode::DynamicUpdateSlice | Opcode::SetDimensionSize => self.differs(op, operand(0)?),
            Opcode::RaggedAllToAll => self.differs(op, operand(1)?),
            _ => self.result(op),
        }
    }

    /// Checks that two instructions have one shape.
    fn differs(&mut self, op: OpId, other: OpId) -> Option<Found> {
        let positions = (self.flow[op].position, self.flow[other].position);
        (!self.are_one(positions.0, positions.1)).then_some(Found::Ops(op, other))
    }

    /// Checks that a fusion's operands have the shapes of its body's parameters, and its result that of the body's
    /// root.
    fn fusion(&mut self, op: OpId) -> Option<Found> {
        let flow = self.flow;
        let instruction = flow.instruction(op).filter(|_| !flow[op].is_hidden)?;
        let callee = instruction.calls().find(|call| call.role == CallRole::Calls)?.computation()?;
        let found = |other: Instruction<'_>| {
            let names = (instruction.name().to_owned(), other.name().to_owned());
            Some(Found::Names(Mismatch { instruction: names.0, other: names.1 }))
        };
        let root = callee.root()?;
        if !have_one_shape(instruction, root) {
            return found(root);
        }
        let operands: Vec<_> = instruction.operands().map(|operand| operand.instruction()).collect();
        let parameters = self.parameters.entry(callee.index()).or_insert_with(|| {
            callee.instructions().filter(|instruction| instruction.opcode() == Opcode::Parameter).collect()
        });
        for &parameter in parameters.iter() {
            let operand = parameter.parameter_number().and_then(|number| *operands.get(number)?);
            if !operand.is_some_and(|operand| have_one_shape(parameter, operand)) {
                return found(parameter);
            }
        }
        if parameters.len() == operands.len() { None } else { found(root) }
    }

    /// Checks that a result that lies in an operand has its shape (`output_to_operand_aliasing`).
    fn aliases(&mut self, op: OpId) -> Option<Found> {
        let flow = self.flow;
        let aliases = flow.instruction(op)?.output_to_operand_aliasing().unwrap_or_default();
        // A start's aliases also cover the operands that its updates bind, and `{}` is the whole result of its
        // computation.
        let chain = flow.chain(op).filter(|chain| chain.start == op);
        let operands = chain.map_or(flow.operands(op), |chain| chain.operands());
        aliases.into_iter().find_map(|alias| {
            let Some(&operand) = operands.get(alias.operand_number) else { return Some(Found::Ops(op, op)) };
            let from = flow.at(flow[operand].position, &alias.operand_index);
            let wrapped = chain.and_then(|chain| chain.wrapped).filter(|_| alias.output_index.is_empty());
            let result = wrapped.map_or(flow[op].position, |wrapped| flow.result(wrapped));
            let to = flow.at(result, &alias.output_index);
            let is_one = from.zip(to).is_some_and(|(from, to)| self.are_one(from, to));
            (!is_one).then_some(Found::Ops(op, operand))
        })
    }

    /// Checks the result's bounds, if they follow from the operands.
    fn result(&mut self, op: OpId) -> Option<Found> {
        let flow = self.flow;
        let opcode = flow[op].opcode;
        let (result, operands) = (flow[op].position, flow.operands(op));
        let operand = match form(opcode) {
            Form::OfOperand(number) | Form::BoundsOf(number) => *operands.get(number)?,
            Form::OfEach => return self.each(op),
            Form::Other => return self.inferred(op),
        };
        let needed = if matches!(form(opcode), Form::BoundsOf(_)) { Alike::Bounds } else { Alike::BoundsAndType };
        if self.alike(result, flow[operand].position) < needed {
            return Some(Found::Ops(op, operand));
        }
        // The two operands of an elementwise operation have one type.
        match operands {
            &[one, other] if opcode.is_elementwise() && opcode != Opcode::StochasticConvert => {
                let are_alike = self.alike(flow[one].position, flow[other].position) == Alike::BoundsAndType;
                (!are_alike).then_some(Found::Ops(op, other))
            }
            _ => None,
        }
    }

    /// Checks that there is one result for each of the first operands.
    fn each(&mut self, op: OpId) -> Option<Found> {
        let flow = self.flow;
        let (result, operands) = (flow[op].position, flow.operands(op));
        let count = match flow[op].opcode {
            Opcode::Scatter => operands.len().saturating_sub(1) / 2,
            Opcode::CollectivePermute if operands.len() == 4 => return None,
            _ => operands.len(),
        };
        let is_list = count != 1 && flow.is_tuple(result);
        let results: Vec<Position> = if is_list { flow.elements(result).collect() } else { vec![result] };
        let mut pairs = results.iter().zip(operands);
        let unlike = pairs.find(|(result, operand)| {
            let (one, other) = (**result, flow[**operand].position);
            flow.extent(one) != flow.extent(other) || self.alike(one, other) < Alike::BoundsAndType
        });
        match unlike {
            Some((_, operand)) => Some(Found::Ops(op, *operand)),
            None => (results.len() != count).then_some(Found::Ops(op, op)),
        }
    }

    /// Checks the result of instructions whose bounds follow from their attributes.
    fn inferred(&mut self, op: OpId) -> Option<Found> {
        use Opcode::{Concatenate, Dot, Pad, Reduce, Transpose};
        let flow = self.flow;
        let instruction = flow.instruction(op)?;
        let first = *flow.operands(op).first()?;
        let is_long = |op: &OpId| flow.instruction(*op).is_some_and(|it| it.shape_text().len() > LONGEST_SHAPE);
        if tells_bounds(flow[op].opcode) && flow.operands(op).iter().chain([&op]).any(is_long) {
            return Some(Found::Ops(op, first));
        }
        let shape = |op: OpId| flow.shape(flow[op].position);
        // The value that pads an array, or that a sum begins with, has the array's type.
        let operands = flow.operands(op);
        let starts = match flow[op].opcode {
            Pad => operands.len().min(1),
            Reduce | Opcode::ReduceWindow => operands.len() / 2,
            _ => 0,
        };
        let unlike = operands.iter().zip(operands.iter().skip(starts)).take(starts).find(|(operand, start)| {
            !shape(**operand).zip(shape(**start)).is_some_and(|(operand, start)| has_type_of(&operand, &start))
        });
        if let Some((_, start)) = unlike {
            return Some(Found::Ops(op, *start));
        }
        let is_sound = match flow[op].opcode {
            // The text may leave dimension numbers out.
            Dot if instruction.dot_dimensions().is_none() => true,
            Concatenate | Dot | Pad | Reduce | Transpose => {
                let operands = instruction.operands().filter_map(|operand| operand.instruction());
                let operands = operands.map(|operand| operand.shape_text()).collect();
                let (opcode, attributes) = (instruction.opcode(), instruction.attributes_text());
                let operation = Operation { opcode, operands, attributes, element: &|_| None, result_of: &|_| None };
                // A result that can't be inferred passes.
                infer(&operation)
                    .and_then(|text| Shape::parse_as_written(&text).ok())
                    .is_none_or(|inferred| shape(op).is_some_and(|result| has_bounds_of(&result, &inferred)))
            }
            Opcode::Reshape => {
                let count = |shape: Shape| elements(shape.dimensions());
                has_type_of(&shape(op)?, &shape(first)?) && shape(op).and_then(count) == shape(first).and_then(count)
            }
            Opcode::Broadcast => {
                let (result, operand) = (shape(op)?, shape(first)?);
                let numbers = instruction.dimensions()?;
                let mut pairs = numbers.iter().zip(operand.dimensions());
                numbers.len() == operand.dimensions().len()
                    && has_type_of(&result, &operand)
                    && pairs.all(|(at, dimension)| {
                        result.dimensions().get(*at).map(|it| it.bound()) == Some(dimension.bound())
                    })
            }
            Opcode::DynamicSlice => {
                let (result, operand) = (shape(op)?, shape(first)?);
                let sizes = instruction.dynamic_slice_sizes()?;
                has_type_of(&result, &operand)
                    && result.dimensions().iter().map(|it| it.bound()).eq(sizes.into_iter().map(Some))
            }
            Opcode::Slice => {
                let (result, operand) = (shape(op)?, shape(first)?);
                let limits = instruction.slice_limits()?;
                has_type_of(&result, &operand)
                    && result
                        .dimensions()
                        .iter()
                        .map(|it| it.bound())
                        .eq(limits.iter().map(|limits| Some(limits.size())))
            }
            _ => true,
        };
        (!is_sound).then_some(Found::Ops(op, first))
    }

    /// Whether two positions, and those within them, hold the same arrays.
    fn are_one(&mut self, one: Position, other: Position) -> bool {
        let flow = self.flow;
        let extent = flow.extent(one);
        let nodes = (flow.node(one), flow.node(other));
        if nodes.0 == nodes.1 {
            return true;
        }
        if let Some(known) = self.wholes.get(&nodes) {
            return *known;
        }
        let are_one = extent == flow.extent(other) && (0..extent).all(|k| self.is_one(one.plus(k), other.plus(k)));
        self.wholes.insert(nodes, are_one);
        are_one
    }

    fn is_one(&mut self, one: Position, other: Position) -> bool {
        let flow = self.flow;
        let nodes = (flow.node(one), flow.node(other));
        nodes.0 == nodes.1
            || *self.arrays.entry(nodes).or_insert_with(|| {
                let tuples = [one, other].map(|position| flow.is_tuple(position));
                match tuples {
                    [false, false] => {
                        flow.shape(one).zip(flow.shape(other)).is_some_and(|(one, other)| are_one(&one, &other))
                    }
                    [true, true] => flow.extent(one) == flow.extent(other),
                    _ => false,
                }
            })
    }

    /// The common properties of two arrays, or of two lists of the same length, apart from their layouts.
    fn alike(&mut self, one: Position, other: Position) -> Alike {
        let flow = self.flow;
        let nodes = (flow.node(one), flow.node(other));
        if nodes.0 == nodes.1 {
            return Alike::BoundsAndType;
        }
        *self.bounds.entry(nodes).or_insert_with(|| {
            let Some((one, other)) = flow.shape(one).zip(flow.shape(other)) else { return Alike::Nothing };
            let pairs: Vec<_> = one.leaves().zip(other.leaves()).collect();
            let are_all =
                |alike: fn(&Shape, &Shape) -> bool| pairs.iter().all(|((_, one), (_, other))| alike(one, other));
            match () {
                () if one.leaves().count() != other.leaves().count() => Alike::Nothing,
                () if !are_all(has_dimensions_of) => Alike::Nothing,
                () if are_all(has_bounds_of) => Alike::BoundsAndType,
                () => Alike::Bounds,
            }
        })
    }
}

/// The way in which a result's bounds follow from its operands'.
#[derive(Clone, Copy)]
enum Form {
    /// The bounds and the type of this operand.
    OfOperand(usize),
    /// The bounds of this one.
    BoundsOf(usize),
    /// A result for each operand.
    OfEach,
    Other,
}

fn form(opcode: Opcode) -> Form {
    use Opcode::*;
    match opcode {
        AllReduce | AllReduceStart | CollectivePermute | Scatter | Sort => Form::OfEach,
        Clamp | Select | TriangularSolve => Form::OfOperand(1),
        Abs | Complex | Compare | Convert | Imag | IsFinite | Real | StochasticConvert => Form::BoundsOf(0),
        BitcastConvert => Form::Other,
        Cholesky | Reverse => Form::OfOperand(0),
        opcode if opcode.is_elementwise() => Form::OfOperand(0),
        _ => Form::Other,
    }
}

/// Whether operands and attributes of such an instruction determine the bounds of its result.
fn tells_bounds(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(opcode, Broadcast | Concatenate | Dot | DynamicSlice | Pad | Reduce | Reshape | Slice | Transpose)
}

/// Whether two instructions have one shape, but for layouts, which a fusion's code chooses.
fn have_one_shape(one: Instruction<'_>, other: Instruction<'_>) -> bool {
    if one.shape_text() == other.shape_text() {
        return true;
    }
    let Some((one, other)) = one.shape().ok().zip(other.shape().ok()) else { return false };
    one.leaves().count() == other.leaves().count()
        && one
            .leaves()
            .zip(other.leaves())
            .all(|((path, one), (other_path, other))| path == other_path && has_bounds_of(&one, &other))
}

/// Whether two leaves take the same memory: a bitcast may give an array other bounds.
fn are_one(one: &Shape, other: &Shape) -> bool {
    if one == other {
        return true;
    }
    let (Some(one), Some(other)) = (one.as_array(), other.as_array()) else { return false };
    let bytes = |array| Tiled::of_array(array).map(|tiled| tiled.sizes().physical_bytes).ok();
    one.memory_space() == other.memory_space() && bytes(one) == bytes(other)
}

fn has_dimensions_of(one: &Shape, other: &Shape) -> bool {
    let bounds = |shape: &Shape| shape.dimensions().iter().map(|it| it.bound()).collect::<Vec<_>>();
    one.as_array().is_some() == other.as_array().is_some() && bounds(one) == bounds(other)
}

/// XLA accepts floats of several widths, and a TPU's compiler makes a conversion a part of its user.
fn has_bounds_of(one: &Shape, other: &Shape) -> bool {
    has_dimensions_of(one, other) && has_type_of(one, other)
}

fn has_type_of(one: &Shape, other: &Shape) -> bool {
    let types = [one, other].map(Shape::element_type);
    let are_floats = || types.iter().all(|it| it.is_some_and(|it| it.kind() == ElementKind::Float));
    types[0] == types[1] || are_floats()
}

fn elements(dimensions: &[Dimension]) -> Option<u64> {
    dimensions.iter().try_fold(1_u64, |product, dimension| product.checked_mul(dimension.bound()?))
}
