//! Signs in a program by which the axes of its arrays are named.

use super::{body, elements, op_name, own_loops};
use foldhash::{HashMap, HashSet};
use tilewise::{ElementKind, Shape};
use tilewise_hlo::{
    Computation, Instruction, Opcode,
    dataflow::{AxisId, Dataflow},
};

/// Whether a mixing operation is one of the user's program. Kernels are unknown, counters and constants aren't samples,
/// and a compiler sorts, pads and looks up rows to gather and scatter them.
pub(super) fn tells_places_apart(at: &Instruction<'_>) -> bool {
    let name = op_name(at).unwrap_or_default();
    let operation = name.rsplit('/').next().unwrap_or_default();
    match at.opcode() {
        Opcode::Constant | Opcode::CustomCall | Opcode::Iota => false,
        Opcode::Scatter => true,
        Opcode::Gather => !operation.starts_with("scatter"),
        _ => !is_of_compiler(at),
    }
}

/// Axes that occur in two dimensions of one array.
pub(super) fn paired(flow: &Dataflow) -> HashSet<AxisId> {
    let arrays = flow.module().instructions().filter(|at| at.opcode() != Opcode::Tuple);
    arrays.flat_map(|at| twice(flow.axes().in_array(&at, 0))).collect()
}

/// Those of an array's axes that it has twice: along two dimensions, or both in one.
pub(crate) fn twice(axes: &[AxisId]) -> impl Iterator<Item = AxisId> {
    axes.iter().enumerate().filter(|(at, axis)| axes[..*at].contains(axis)).map(|(_, axis)| *axis)
}

/// A dot's axes that only one operand has.
pub(super) fn multiplied(flow: &Dataflow) -> HashSet<AxisId> {
    let products = flow.module().instructions();
    let products = products.filter(|at| matches!(at.opcode(), Opcode::Dot | Opcode::Convolution));
    let mut multiplied = HashSet::default();
    for product in products {
        let axes = |at: &Instruction<'_>| flow.axes().in_array(at, 0).iter().copied().collect::<HashSet<AxisId>>();
        let mut operands = product.operands().filter_map(|operand| operand.instruction()).map(|operand| axes(&operand));
        let (Some(left), Some(right)) = (operands.next(), operands.next()) else { continue };
        multiplied.extend(axes(&product).into_iter().filter(|axis| left.contains(axis) != right.contains(axis)));
    }
    multiplied
}

/// Axes of exponentials.
pub(super) fn of_exponentials(flow: &Dataflow) -> HashSet<AxisId> {
    let exponentials = flow.module().instructions().filter(|at| at.opcode() == Opcode::Exponential);
    exponentials.flat_map(|at| flow.axes().in_array(&at, 0)).copied().collect()
}

/// Whether an instruction reduces each of several rows: of a whole array, a maximum is its scale.
pub(super) fn reduces_rows(at: &Instruction<'_>) -> bool {
    let is_of_several =
        |shape: Shape| shape.leaves().any(|(_, leaf)| leaf.bounds().is_some_and(|of| elements(&of) > 1));
    at.opcode() == Opcode::Reduce && at.shape().is_ok_and(is_of_several)
}

/// Whether a weight is named like one of a vocabulary.
pub(super) fn is_of_words(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["embed", "lm_head", "vocab", "wte"].iter().any(|word| name.contains(word))
}

pub(super) fn is_whole(array: &Shape) -> bool {
    array.element_type().is_some_and(|of| matches!(of.kind(), ElementKind::Signed | ElementKind::Unsigned))
}

pub(super) fn takes_maximum(at: &Instruction<'_>) -> bool {
    let root = at.calls().find_map(|call| call.computation()?.root());
    root.is_some_and(|root| root.opcode() == Opcode::Maximum)
}

/// A loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Around {
    /// Its trip count.
    pub(super) trips: u64,
    /// Its body, by its index.
    pub(super) body: usize,
}

/// Whether the compiler made an instruction for a gather or a scatter.
fn is_of_compiler(at: &Instruction<'_>) -> bool {
    let name = op_name(at).unwrap_or_default();
    let operation = name.rsplit('/').next().unwrap_or_default();
    operation.starts_with("scatter") || operation.starts_with("gather")
}

/// The innermost loop of the source around each computation.
pub(super) fn loops(flow: &Dataflow) -> HashMap<usize, Around> {
    let mut loops = HashMap::default();
    let own = own_loops(flow.module());
    let bodies = flow.ops().ids().filter_map(|op| {
        let at = flow.instruction(op).filter(|at| own.contains(&at.index()))?;
        Some((body(&at)?, flow.trip_count(op)?))
    });
    // Inner loops come before those around them.
    for (body, trips) in bodies {
        let mut waiting: Vec<Computation<'_>> = vec![body];
        while let Some(computation) = waiting.pop() {
            if loops.contains_key(&computation.index()) {
                continue;
            }
            loops.insert(computation.index(), Around { trips, body: body.index() });
            let inner = computation.instructions().filter(|at| matches!(at.opcode(), Opcode::Fusion | Opcode::Call));
            waiting.extend(inner.flat_map(|at| at.calls().filter_map(|call| call.computation()).collect::<Vec<_>>()));
        }
    }
    loops
}
