//! The line of a call of `jax.vmap`, and what is below it.
//!
//! JAX names each operation under a `vmap`, and gives its call stack, but not the call's own line: that is the outermost one below
//! which all operations are mapped.

use super::super::{
    call_stacks::{self, Calls},
    program::ProgramModel,
};
use crate::program::{SourceLine, is_installed, op_name, passes_on};
use foldhash::{HashMap, HashSet};
use tilewise_hlo::{Instruction, Opcode, SourceLocation, dataflow::REACH};

/// The name that JAX gives to what is under a `vmap`.
pub(super) const MAP: &str = "vmap(";
/// At most this part of the operations that a line adds may lack the name: the compiler merges operations.
const MERGED: usize = 16;

/// The instructions below a line.
pub(super) struct Below {
    pub(super) line: SourceLine,
    /// Whether instructions are below it, by their indices; those whose place is unknown aren't there.
    places: HashMap<usize, bool>,
    /// The operands of fusions, by the parameters of what they call.
    passed: HashMap<usize, usize>,
}

impl Below {
    /// The line of the call that an instruction is under; `None` if no line is, or if that is all of the program.
    pub(super) fn of(program: &ProgramModel<'_>, at: &Instruction<'_>) -> Option<Self> {
        let stack = calls(at);
        let line = line_of_call(program, &stack)?;
        let is_line = |frame: &SourceLocation<'_>| *frame.file == *line.file && frame.line == line.line;
        let (depth, first) = (stack.iter().position(is_line)?, stack.first()?);
        let is_below = |at: &Instruction<'_>| {
            let calls = calls(at);
            // Functions that were traced before have lost their callers.
            let has_lost = !is_same(calls.first()?, first);
            let is_mapped = || op_name(at).is_some_and(|name| name.contains(MAP));
            Some(calls.get(depth).is_some_and(is_line) || has_lost && is_mapped())
        };
        let mut passed = HashMap::default();
        for fusion in program.module.instructions().filter(|at| at.opcode() == Opcode::Fusion) {
            let operands: Vec<Option<usize>> = fusion.operand_indices().collect();
            let inner = fusion.calls().filter_map(|call| call.computation()).flat_map(|called| called.instructions());
            let parameters = inner.filter(|at| at.opcode() == Opcode::Parameter);
            passed.extend(parameters.filter_map(|at| Some((at.index(), (*operands.get(at.parameter_number()?)?)?))));
        }
        let mut below = Self { line: line.clone(), places: HashMap::default(), passed };
        // Callers come after what they call.
        for computation in program.module.computations().rev() {
            for at in computation.instructions() {
                let place = is_below(&at).or_else(|| below.place_of_operands(&at));
                below.places.extend(place.map(|place| (at.index(), place)));
            }
        }
        Some(below)
    }

    /// Whether an instruction is below the line; `None` if that is unknown.
    pub(super) fn has(&self, at: usize) -> Option<bool> {
        self.places.get(&at).copied()
    }

    /// The place of what the compiler added: it follows from nothing above the line, or else is above it.
    fn place_of_operands(&self, at: &Instruction<'_>) -> Option<bool> {
        let operands = self.passed.get(&at.index()).copied().into_iter().chain(at.operand_indices().flatten());
        operands.filter_map(|of| self.has(of)).reduce(|one, other| one && other)
    }

    /// The instructions below the line whose values something above it reads.
    pub(super) fn left(&self, program: &ProgramModel<'_>) -> HashSet<usize> {
        let module = program.module;
        let is_reader = |at: &Instruction<'_>| self.has(at.index()) == Some(false) && at.opcode() != Opcode::Fusion;
        let origin = |mut at: usize| {
            for _ in 0..REACH {
                let Some(instruction) = module.instruction(at) else { break };
                let of_copy = || instruction.operand_indices().next().flatten().filter(|_| passes_on(&instruction));
                match self.passed.get(&at).copied().or_else(of_copy) {
                    Some(of) => at = of,
                    None => break,
                }
            }
            at
        };
        let read =
            module.instructions().filter(is_reader).flat_map(|at| at.operand_indices().flatten().collect::<Vec<_>>());
        read.map(origin).filter(|of| self.has(*of) == Some(true)).collect()
    }
}

/// The call stack of an instruction, without what repeats: functions that JAX traces on their own, such as a loop's body, have their
/// callers twice, once for the loop and once for the operation in it.
fn calls<'m>(instruction: &Instruction<'m>) -> Calls<'m> {
    let mut calls: Calls<'m> = Vec::new();
    for frame in call_stacks::calls(instruction) {
        if let Some(at) = calls.iter().position(|before| is_same(before, &frame)) {
            calls.truncate(at);
        }
        calls.push(frame);
    }
    calls
}

fn is_same(one: &SourceLocation<'_>, other: &SourceLocation<'_>) -> bool {
    one.file == other.file && one.line == other.line
}

/// The outermost line of a call stack below which all operations are mapped; `None` if that is all of the program.
fn line_of_call(program: &ProgramModel<'_>, stack: &Calls<'_>) -> Option<SourceLine> {
    /// Operations below a line, and those that aren't mapped.
    #[derive(Clone, Copy, Default)]
    struct Count {
        all: usize,
        others: usize,
    }
    let mut counts = vec![Count::default(); stack.len()];
    for at in program.module.instructions() {
        let Some(name) = op_name(&at).filter(|name| name.contains('/')) else { continue };
        let others = usize::from(!name.contains(MAP));
        let calls = calls(&at);
        let shared = stack.iter().zip(&calls).take_while(|(one, other)| is_same(one, other)).count();
        // The line's own operations aren't below it.
        let inner = if shared == calls.len() { shared.saturating_sub(1) } else { shared };
        for count in &mut counts[..inner] {
            count.all += 1;
            count.others += others;
        }
    }
    // From the innermost line on, until what a line adds isn't mapped.
    let (mut within, mut found) = (Count::default(), None);
    for (at, count) in counts.into_iter().enumerate().rev() {
        if count.others - within.others > (count.all - within.all) / MERGED {
            let frame = found.and_then(|at: usize| stack.get(at)).filter(|frame| !is_installed(&frame.file));
            return frame.cloned().map(SourceLine::of);
        }
        (within, found) = (count, Some(at).filter(|_| count.all > 0));
    }
    None
}
