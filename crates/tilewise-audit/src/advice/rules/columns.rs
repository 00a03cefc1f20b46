//! Arguments and results of a few columns, padded in the default order: kept flat if all their readers are elementwise,
//! such as an optimizer's state; otherwise one array per column.

use crate::advice::{
    change::Target,
    evidence::{ArrayFact, Evidence, default_bytes},
    finding::{ColumnsWay, Finding, PaddedColumns},
    rule::{Proposal, Rule},
};
use tilewise::tpu;
use tilewise_memory::Role;

/// A last dimension of this size fills the lanes.
const LANES: u64 = 128;
/// Maximum number of columns to pass as arrays; more are an embedding.
const FEW: u64 = 16;

pub(crate) struct PaddedArguments;

impl Rule for PaddedArguments {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let mut groups: Vec<Vec<&dyn ArrayFact>> = Vec::new();
        let interface = evidence.arguments().into_iter().chain(evidence.results());
        for array in interface.filter(|array| is_padded(evidence, *array)) {
            let is_alike =
                |group: &&mut Vec<&dyn ArrayFact>| group.iter().any(|other| other.bounds() == array.bounds());
            match groups.iter_mut().find(is_alike) {
                Some(group) => group.push(array),
                None => groups.push(vec![array]),
            }
        }
        groups.iter().filter_map(|group| proposal(evidence, group)).collect()
    }
}

fn proposal(evidence: &dyn Evidence, group: &[&dyn ArrayFact]) -> Option<Proposal> {
    let arguments = group.iter().filter(|array| array.live().is_none_or(|array| array.is_parameter()));
    let largest = *arguments.rev().max_by_key(|array| array.bytes())?;
    let (columns, rows) = largest.bounds().split_last()?;
    // A message doesn't show the readers of an array: none is kept flat.
    let is_read_elementwise = |array: &&dyn ArrayFact| {
        array
            .live()
            .zip(evidence.program())
            .is_some_and(|(array, program)| !array.is_parameter() || program.is_elementwise_to_the_end(array))
    };
    // The replacement of one array: its form, the number of arrays, and the elements of each.
    let (way, arrays, elements) = if group.iter().all(is_read_elementwise) {
        let (elements, element_type) = (largest.elements(), largest.element_type());
        (ColumnsWay::Flat { elements, element_type }, 1, elements)
    } else if *columns <= FEW && rows.len() == 1 {
        (ColumnsWay::Apart { columns: *columns, rows: rows.to_vec() }, *columns, rows[0])
    } else {
        return None;
    };
    let after = |array: &dyn ArrayFact| default_bytes(evidence, array, &[elements])?.checked_mul(arrays);
    let is_known = evidence.program().is_some();
    let finding = PaddedColumns {
        name: largest.name(),
        others: group.iter().filter(|array| array.buffer() != largest.buffer()).count(),
        way,
        is_known,
    };
    let target = if largest.role() == Role::Argument { Target::Argument } else { Target::Result };
    let proposal = Proposal::new(Finding::PaddedColumns(finding), target, largest.advised(evidence))
        .at_most(group.iter().filter_map(|array| Some((array.buffer(), after(*array)?))));
    Some(if is_known { proposal } else { proposal.bound() })
}

/// Whether an array is padded, in the default order, with a last dimension too short for the lanes.
fn is_padded(evidence: &dyn Evidence, array: &dyn ArrayFact) -> bool {
    let padding = array.bytes().saturating_sub(array.logical_bytes());
    let bounds = array.bounds();
    let is_short = bounds.len() >= 2 && bounds.last().is_some_and(|columns| (2..LANES).contains(columns));
    let default = || tpu::default_layout(array.element_type(), bounds, evidence.generation_of(array.shape())).ok();
    padding > array.bytes() / 16
        && is_short
        && default().is_some_and(|default| default.layout() == array.shape().layout())
}
