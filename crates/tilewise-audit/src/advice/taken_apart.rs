//! The lines of source that a rewrite takes apart.

use super::{
    call_stacks::{Calls, calls, places, shared_by},
    finding::Finding,
    program::{LiveArray, ProgramModel},
    recommendation::EditedLines,
    rule::Proposal,
};
use crate::program::{SourceLine, bounds, elements, is_installed, with_fused};
use foldhash::HashMap;
use std::{collections::BTreeMap, ops::Range};
use tilewise_hlo::{Instruction, Opcode, SourceLocation, dataflow::Use};

/// Arrays of less than this part of the largest one's bytes follow from it.
const SMALL: u64 = 8;

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

/// Why no line can be taken in parts: each calls a function that both makes the arrays and joins their positions, such as a
/// solver, so that in parts it would compute something else.
pub(super) struct Joined;

/// The lines that make or read the largest arrays which a change makes smaller, up to where its parts are joined: of one function,
/// and of functions that it calls where these join parts, too. `None` if there are too many, or none.
pub(super) fn taken_apart(program: &ProgramModel<'_>, proposal: &Proposal) -> Result<Option<EditedLines>, Joined> {
    let Some(arrays) = Shrunk::of(program, proposal) else { return Ok(None) };
    let stacks = arrays.stacks();
    let joints = proposal.joint.iter().chain(&proposal.apart).filter_map(|at| program.module.instruction(*at));
    let joints: Vec<Calls<'_>> = joints.map(|at| calls(&at)).collect();
    let lines = lines(&whole(&stacks), &whole(&joints))?;
    if arrays.are_between(&lines) {
        return Err(Joined);
    }
    let lines = lines.into_iter().map(|frame| SourceLine::of(frame.clone())).collect();
    let around = shared_by(stacks.iter(), |count, all| count == all).iter().filter(|frame| !is_installed(&frame.file));
    Ok(EditedLines::of(lines, around.cloned().map(SourceLine::of).collect()))
}

/// Whether no line can be taken in parts, since each calls what joins them.
pub(super) fn is_joined(program: &ProgramModel<'_>, proposal: &Proposal) -> bool {
    let may_be = proposal.joint.is_some() || !proposal.apart.is_empty();
    may_be && taken_apart(program, proposal).is_err()
}

fn whole<'c, 'm>(stacks: &'c [Calls<'m>]) -> Vec<&'c [SourceLocation<'m>]> {
    stacks.iter().map(Vec::as_slice).collect()
}

/// The lines of the innermost function that all stacks go through, by whichever call: arrays that it returned would stay whole. A
/// line whose call joins parts is replaced by lines of the function that it calls.
fn lines<'c, 'm>(
    stacks: &[&'c [SourceLocation<'m>]],
    joints: &[&'c [SourceLocation<'m>]],
) -> Result<Vec<&'c SourceLocation<'m>>, Joined> {
    let mut functions: HashMap<(&str, &str), Passed<'_, '_>> = HashMap::default();
    for calls in stacks {
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
    let shared = shared.max_by_key(|passed| (passed.depth, passed.lines.len()));
    let mut found = Vec::new();
    for line in shared.into_iter().flat_map(|passed| passed.lines.into_values()) {
        let is_joint = |calls: &&[SourceLocation<'_>]| joints.iter().any(|joint| places(calls).eq(places(joint)));
        let made = stacks.iter().filter(|calls| !is_joint(calls)).filter_map(|calls| called(calls, line));
        let made: Vec<(&str, &[SourceLocation<'m>])> = made.collect();
        let joined = joints.iter().filter_map(|calls| called(calls, line));
        let joined: Vec<_> = joined.filter(|(name, _)| made.iter().any(|(other, _)| other == name)).collect();
        if joined.is_empty() {
            found.push(line);
            continue;
        }
        let within = |all: &[(&str, &'c [SourceLocation<'m>])]| all.iter().map(|(_, calls)| *calls).collect::<Vec<_>>();
        let inside = lines(&within(&made), &within(&joined))?;
        // A call of the same function, or of none of the reader's, leads no further.
        if inside.is_empty() || inside.iter().any(|frame| frame.line == line.line && frame.file == line.file) {
            return Err(Joined);
        }
        found.extend(inside);
    }
    Ok(found)
}

/// The function that a line calls in a stack, by its name, and the stack within it.
fn called<'c, 'm>(
    calls: &&'c [SourceLocation<'m>],
    line: &SourceLocation<'_>,
) -> Option<(&'c str, &'c [SourceLocation<'m>])> {
    let is_line = |frame: &SourceLocation<'_>| {
        frame.file == line.file && frame.function == line.function && frame.line == line.line
    };
    let at = calls.iter().position(is_line)?;
    let within = &calls[at + 1..];
    let next = within.iter().find(|frame| !is_installed(&frame.file))?;
    Some((next.function.as_deref()?, within))
}

/// The largest arrays that a change makes smaller, and what makes or reads them.
struct Shrunk<'m> {
    /// Call stacks of instructions, and of what they fuse; those of a joint first.
    all: Vec<Calls<'m>>,
    /// By array, the stacks of each instruction that makes or reads it.
    arrays: Vec<Vec<Range<usize>>>,
}

impl<'m> Shrunk<'m> {
    fn of(program: &ProgramModel<'m>, proposal: &Proposal) -> Option<Self> {
        let changed = &proposal.buffers.at_most;
        let shrunk: Vec<&LiveArray<'m>> = program
            .temporaries()
            .filter(|array| changed.get(&array.buffer).is_some_and(|bytes| *bytes < array.bytes))
            .collect();
        let most = shrunk.iter().map(|array| array.bytes).max()?;
        let joint = proposal.joint.and_then(|at| program.module.instruction(at));
        let mut all: Vec<Calls<'m>> = joint.iter().map(calls).filter(|calls| !calls.is_empty()).collect();
        // One fusion may make or read many of the arrays.
        let mut known: HashMap<(usize, u64), Range<usize>> = HashMap::default();
        let (mut arrays, mut looked_for) = (Vec::new(), Vec::new());
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
            let own = readers.chain([array.instruction]).map(|at| {
                let stacks = known.entry((at.index(), count)).or_insert_with(|| {
                    let from = all.len();
                    all.extend(with_fused(at).filter(|at| is_it(at) || reads_it(at)).map(|at| calls(&at)));
                    from..all.len()
                });
                stacks.clone()
            });
            arrays.push(own.collect());
            // A compiler makes drawn numbers again inside of what reads them late.
            let is_made = matches!(&proposal.finding, Finding::LargeDimension(found) if found.is_made);
            if is_made && array.bytes == most && !looked_for.contains(&count) {
                looked_for.push(count);
                let again = program.module.instructions().filter(|at| is_it(at) || reads_it(at));
                all.extend(again.map(|at| calls(&at)).filter(|calls| !calls.is_empty()));
            }
        }
        Some(Self { all, arrays })
    }

    /// The call stacks, each once.
    fn stacks(&self) -> Vec<Calls<'m>> {
        let mut found = self.all.clone();
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
        all
    }

    /// Whether lines of several functions make and read one array, which would stay whole between them.
    fn are_between(&self, lines: &[&SourceLocation<'m>]) -> bool {
        let is_one = |function: &Option<&str>| *function == lines.first().and_then(|first| first.function.as_deref());
        if lines.iter().all(|line| is_one(&line.function.as_deref())) {
            return false;
        }
        let function = |calls: &Calls<'m>| {
            let line = calls.iter().rev().find(|frame| lines.contains(frame))?;
            lines.iter().position(|other| other.function == line.function)
        };
        let functions: Vec<Option<usize>> = self.all.iter().map(function).collect();
        self.arrays.iter().any(|array| {
            let mut own = array.iter().flat_map(|stacks| functions[stacks.clone()].iter().flatten());
            own.next().is_some_and(|first| own.any(|other| other != first))
        })
    }
}
