//! An argument or a result in an order that the caller pins, where the default order takes less.

use crate::{
    advice::{
        change::Target,
        evidence::{ArrayFact, Evidence},
        finding::{Finding, PinnedOrder},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{does, is_elementwise},
};
use foldhash::{HashMap, HashSet};
use tilewise::{Shape, tpu};
use tilewise_hlo::{Instruction, Opcode, dataflow::OpId};
use tilewise_memory::Role;

pub(crate) struct PinnedOrders;

impl Rule for PinnedOrders {
    /// Arrays of one role and bounds change together: a program that reads two of them would relayout one like the
    /// other.
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let mut seen = HashSet::default();
        let mut groups: Vec<Vec<Pinned<'_>>> = Vec::new();
        for array in evidence.arguments().into_iter().chain(evidence.results()) {
            let Some(pinned) = pinned(evidence, array) else { continue };
            if !seen.insert(array.buffer()) {
                continue;
            }
            let is_alike = |group: &&mut Vec<Pinned<'_>>| {
                group
                    .first()
                    .is_some_and(|first| first.array.role() == array.role() && first.array.bounds() == array.bounds())
            };
            match groups.iter_mut().find(is_alike) {
                Some(group) => group.push(pinned),
                None => groups.push(vec![pinned]),
            }
        }
        groups.iter().filter_map(|group| proposal(evidence, group)).collect()
    }
}

/// An array, its default layout, and its bytes in that layout.
struct Pinned<'a> {
    array: &'a dyn ArrayFact,
    default: Shape,
    bytes: u64,
}

/// The array, if it isn't in the default order, and takes less in that.
fn pinned<'a>(evidence: &dyn Evidence, array: &'a dyn ArrayFact) -> Option<Pinned<'a>> {
    let default = default_order(evidence, array.shape())?;
    let bytes = default.as_array()?.sizes().ok()?.physical_bytes;
    (bytes < array.bytes()).then_some(Pinned { array, default, bytes })
}

fn proposal(evidence: &dyn Evidence, group: &[Pinned<'_>]) -> Option<Proposal> {
    let about = group.first()?.array;
    let target = if about.role() == Role::Argument { Target::Argument } else { Target::Result };
    let finding = PinnedOrder {
        arrays: group.iter().map(|pinned| (pinned.array.name(), major_to_minor(&pinned.default))).collect(),
        order: about.minor_to_major().to_vec(),
        function: evidence.program().map(|program| program.function().to_owned()),
        may_be_needed: evidence.program().is_none(),
    };
    let mut proposal = Proposal::new(Finding::PinnedOrder(finding), target, about.advised(evidence))
        .at_most(group.iter().map(|pinned| (pinned.array.buffer(), pinned.bytes)));
    if let (Some(program), Target::Argument) = (evidence.program(), target) {
        let live = group.iter().filter_map(|pinned| pinned.array.live());
        proposal = proposal.at_most(live.flat_map(|array| copies(program, array)));
    }
    Some(proposal)
}

/// The order of a shape's dimensions, major-to-minor.
fn major_to_minor(shape: &Shape) -> Vec<usize> {
    shape.as_array().map(|array| array.major_to_minor().collect()).unwrap_or_default()
}

/// The shape in its default layout, if it is in another order.
fn default_order(evidence: &dyn Evidence, shape: &Shape) -> Option<Shape> {
    let array = shape.as_array()?;
    let bounds: Vec<u64> = array.bounds()?;
    let default = tpu::default_layout(array.element_type(), &bounds, evidence.generation_of(shape)).ok()?;
    (default.layout()?.minor_to_major() != array.layout()?.minor_to_major()).then_some(default)
}

/// Buffers of padded arrays made by moving an argument's elements, each with its bytes in the default order: they have
/// the argument's order because of it.
fn copies(program: &ProgramModel<'_>, argument: &LiveArray<'_>) -> HashMap<usize, u64> {
    let moves_elements = |op: &OpId| program.flow.instruction(*op).is_some_and(|at| moves_elements(&at));
    let next = |op: OpId| program.flow.users(op).iter().map(|user| user.op).filter(moves_elements);
    let made: HashSet<OpId> = program.flow.reached([argument.op], next).collect();
    let padded = program.temporaries().filter(|array| made.contains(&array.op));
    let padded = padded.filter(|array| array.bytes >= array.logical_bytes().saturating_mul(2));
    let bytes = |array: &LiveArray<'_>| {
        let default = default_order(program, &array.shape)?;
        Some((array.buffer, default.as_array()?.sizes().ok()?.physical_bytes))
    };
    padded.filter_map(bytes).collect()
}

fn moves_elements(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.opcode(),
        Opcode::Copy | Opcode::Slice | Opcode::Bitcast | Opcode::GetTupleElement | Opcode::Transpose | Opcode::Reshape
    ) || instruction.opcode() == Opcode::Fusion && (does(instruction, Opcode::Slice) || is_elementwise(instruction))
}
