//! The lines of source that a rewrite takes apart.

use super::{
    call_stacks::{Calls, calls, places, shared_by},
    finding::Finding,
    program::{LiveArray, ProgramModel},
    recommendation::EditedLines,
    rule::Proposal,
};
use crate::program::{SourceLine, bounds, elements, is_installed, with_fused};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;
use tilewise_hlo::{Instruction, Opcode, SourceLocation, dataflow::Use};

/// Arrays of less than this part of the largest one's bytes follow from it.
const SMALL: u64 = 8;

/// More lines are a program of their own.
const MOST: usize = 12;

/// A function in call stacks.
#[derive(Default)]
struct Passed<'c, 'm> {
    /// Stacks that have it.
    stacks: usize,
    /// Its greatest depth in them.
    depth: usize,
    /// Its lines in them.
    lines: BTreeMap<u32, &'c SourceLocation<'m>>,
}

/// The lines of one function that make or read the largest arrays which a change makes smaller, up to where its parts are joined;
/// `None` if there are too many, or none.
pub(super) fn taken_apart(program: &ProgramModel<'_>, proposal: &Proposal) -> Option<EditedLines> {
    let stacks = stacks(program, proposal)?;
    // The innermost function that all of it goes through, by whichever call: arrays that it returned would stay whole.
    let mut functions: HashMap<(&str, &str), Passed<'_, '_>> = HashMap::default();
    for calls in &stacks {
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for (depth, frame) in calls.iter().enumerate().rev().filter(|(_, frame)| !is_installed(&frame.file)) {
            let function = (&*frame.file, frame.function.as_deref().unwrap_or_default());
            if !seen.contains(&function) {
                seen.push(function);
                let passed = functions.entry(function).or_default();
                passed.stacks += 1;
                passed.depth = depth.max(passed.depth);
                passed.lines.insert(frame.line, frame);
            }
        }
    }
    let shared = functions.into_values().filter(|passed| passed.stacks == stacks.len());
    let Passed { lines, .. } = shared.max_by_key(|passed| (passed.depth, passed.lines.len()))?;
    if lines.len() > MOST {
        return None;
    }
    let mut all = lines.into_values();
    let line = SourceLine::of(all.next()?.clone());
    let around = shared_by(stacks.iter(), |count, all| count == all).iter().filter(|frame| !is_installed(&frame.file));
    let around = around.cloned().map(SourceLine::of).collect();
    Some(EditedLines { line, more: all.map(|frame| frame.line).collect(), around, loss: None })
}

/// Whether one of these lines calls a function that both makes the arrays and joins their positions, such as a solver: in parts, the
/// line would compute something else.
pub(super) fn is_joined_in_a_call(program: &ProgramModel<'_>, proposal: &Proposal) -> bool {
    let joints = proposal.joint.iter().chain(&proposal.apart).filter_map(|at| program.module.instruction(*at));
    let joints: Vec<Calls<'_>> = joints.map(|at| calls(&at)).collect();
    if joints.is_empty() {
        return false;
    }
    let Some(edited) = taken_apart(program, proposal) else { return false };
    let is_line = |frame: &SourceLocation<'_>| {
        *frame.file == *edited.line.file
            && frame.function.as_deref() == edited.line.function.as_deref()
            && (frame.line == edited.line.line || edited.more.contains(&frame.line))
    };
    let called = |calls: &Calls<'_>| {
        let at = calls.iter().position(is_line)?;
        let next = calls[at + 1..].iter().find(|frame| !is_installed(&frame.file))?;
        Some((calls[at].line, next.file.to_string(), next.function.as_deref()?.to_owned()))
    };
    let made = stacks(program, proposal).into_iter().flatten();
    let made = made.filter(|calls| !joints.iter().any(|joint| places(calls).eq(places(joint))));
    let made: HashSet<_> = made.filter_map(|calls| called(&calls)).collect();
    joints.iter().filter_map(called).any(|of_joint| made.contains(&of_joint))
}

/// The call stacks of what makes or reads these arrays, each once.
fn stacks<'m>(program: &ProgramModel<'m>, proposal: &Proposal) -> Option<Vec<Calls<'m>>> {
    let changed = &proposal.buffers.at_most;
    let shrunk: Vec<&LiveArray<'m>> = program
        .temporaries()
        .filter(|array| changed.get(&array.buffer).is_some_and(|bytes| *bytes < array.bytes))
        .collect();
    let most = shrunk.iter().map(|array| array.bytes).max()?;
    let joint = proposal.joint.and_then(|at| program.module.instruction(at));
    let mut seen: HashSet<(usize, u64)> = HashSet::default();
    let mut found: Vec<Calls<'m>> = joint.iter().map(calls).filter(|calls| !calls.is_empty()).collect();
    for array in shrunk.into_iter().filter(|array| array.bytes >= most / SMALL) {
        let count = elements(&array.bounds);
        let is_it = |at: &Instruction<'_>| bounds(at).is_some_and(|bounds| elements(&bounds) == count);
        // Readers of blocks that are put together again take the whole; sums and picked elements are of each block.
        let is_own = |at: &Instruction<'_>| {
            !matches!(proposal.finding, Finding::Blocks(_))
                || matches!(at.opcode(), Opcode::Reduce | Opcode::Dot | Opcode::Convolution | Opcode::Gather)
        };
        let reads_it = |at: &Instruction<'_>| {
            is_own(at) && at.operands().filter_map(|operand| operand.instruction()).any(|of| is_it(&of))
        };
        let readers = program.flow.readers(array.position).filter_map(|found| match found {
            Use::Read(op) => program.module.instruction(program.flow.instruction(op)?.index()),
            _ => None,
        });
        // One fusion may make or read many of the arrays.
        for at in readers.chain([array.instruction]).filter(|at| seen.insert((at.index(), count))) {
            found.extend(with_fused(at).filter(|at| is_it(at) || reads_it(at)).map(|at| calls(&at)));
        }
    }
    found.sort_by(|one, other| places(one).cmp(places(other)));
    found.dedup_by(|one, other| places(one).eq(places(other)));
    // A stack that ends on another one's way is of a value whose own line is lost.
    let mut all: Vec<Calls<'m>> = Vec::new();
    for calls in found {
        if all.last().is_some_and(|before| places(&calls).take(before.len()).eq(places(before))) {
            all.pop();
        }
        all.push(calls);
    }
    Some(all)
}
