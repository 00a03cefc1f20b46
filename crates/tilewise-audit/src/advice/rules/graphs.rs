//! Batched graphs: the graphs are a batch, but neither their edges nor their nodes are, since the sum at a node depends
//! on all of its edges.

use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{BatchedGraphs, Finding},
        parts::{LEAST, bytes_of_part, leading_sizes},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{any_fused, is_input, name},
};
use foldhash::HashSet;
use tilewise_hlo::{Instruction, Opcode, dataflow::OpId};

pub(crate) struct GraphsOfABatch;

impl Rule for GraphsOfABatch {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>) -> Option<Proposal> {
    let leading = leading_sizes(program);
    let largest = program.peak_temporaries().max_by_key(|array| (array.bytes, array.bounds.len()))?;
    let edges = *largest.bounds.iter().find(|size| leading.contains_key(size))?;
    let nodes = nodes_of(program, edges)?;
    let (graphs, names) = graphs(program, edges, &nodes)?;
    let place = |array: &LiveArray<'m>| array.bounds.iter().position(|size| *size == edges || nodes.contains(size));
    let half = |array: &LiveArray<'m>| Some((array.buffer, bytes_of_part(program, array, place(array)?, 2)?));
    let finding = BatchedGraphs { graphs, names, edges, has_gradient: program.has_gradient };
    let proposal = Proposal::new(Finding::BatchedGraphs(finding), Target::Value, program.advised(largest)).bound();
    Some(Proposal { parts: Some(2), ..proposal.at_most(program.temporaries().filter_map(half)) })
}

/// The number of graphs, and the inputs with a row for each: several inputs begin with that dimension, which is smaller
/// than that of the nodes.
fn graphs(program: &ProgramModel<'_>, edges: u64, nodes: &HashSet<u64>) -> Option<(u64, Vec<String>)> {
    let most = *nodes.iter().max()?.min(&edges);
    let mut found: Vec<(u64, Vec<String>)> = Vec::new();
    for parameter in program.parameters() {
        let name = name(&parameter);
        let first = parameter.shape().ok().and_then(|shape| shape.dimensions().first()?.bound());
        let Some(size) = first.filter(|size| (LEAST..most).contains(size) && is_input(&name)) else { continue };
        match found.iter_mut().find(|(known, _)| *known == size) {
            Some((_, names)) => names.push(name),
            None => found.push((size, vec![name])),
        }
    }
    found.into_iter().filter(|(_, names)| names.len() > 1).max_by_key(|(_, names)| names.len())
}

/// The numbers of nodes: rows of arrays to which `size` rows are added by index, if the results are gathered again, as
/// for a graph's edges: each edge then depends on all. `None` for others, such as a table's gradient, which is
/// scattered, too, but not gathered afterwards.
pub(super) fn nodes_of(program: &ProgramModel<'_>, size: u64) -> Option<HashSet<u64>> {
    let flow = program.flow;
    let rows = |at: Option<Instruction<'_>>| at?.shape().ok()?.dimensions().first()?.bound();
    let is_of_size = |at: Option<Instruction<'_>>| rows(at) == Some(size);
    let adds_up = |at: &Instruction<'_>| {
        at.opcode() == Opcode::Scatter
            && !is_of_size(Some(*at))
            && is_of_size(at.operands().nth(2).and_then(|operand| operand.instruction()))
    };
    let gathers = |at: &Instruction<'_>| {
        at.opcode() == Opcode::Gather
            && is_of_size(Some(*at))
            && !is_of_size(at.operands().next().and_then(|operand| operand.instruction()))
    };
    let does =
        |op: OpId, is: &dyn Fn(&Instruction<'_>) -> bool| flow.instruction(op).is_some_and(|at| any_fused(&at, is));
    let mut waiting: Vec<OpId> = flow.ops().ids().filter(|op| does(*op, &adds_up)).collect();
    let nodes = waiting.iter().filter_map(|op| rows(flow.instruction(*op))).collect();
    let mut seen: HashSet<OpId> = waiting.iter().copied().collect();
    while let Some(op) = waiting.pop() {
        for user in flow.users(op) {
            if seen.insert(user.op) {
                if does(user.op, &gathers) {
                    return Some(nodes);
                }
                waiting.push(user.op);
            }
        }
    }
    None
}
