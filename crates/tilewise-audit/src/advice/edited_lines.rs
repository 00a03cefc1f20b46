//! The source lines to edit, seldom the one that makes the array: the call of a layer or of the gradient, the jitted function, or
//! the lines of a function that a rewrite takes apart.

use super::{
    call_stacks::{Calls, calls, innermost, is_shared, shared, shared_by},
    finding::{Finding, GradientSums, LogitsUse, RowOperation, RowsOfFew},
    program::ProgramModel,
    recommendation::EditedLines,
    rule::Proposal,
    taken_apart::taken_apart,
};
use crate::program::{
    SourceLine, bounds, elements, is_backward, is_forward, is_installed, is_of_directions, op_name, source_line,
    with_fused,
};
use foldhash::HashMap;
use std::{cell::OnceCell, collections::BTreeMap};
use tilewise_hlo::{Instruction, Module, Opcode, SourceLocation};

/// About the number of call stacks of a program to compare.
const LOOKED_AT: usize = 1024;

/// The call stack of one of many instructions.
struct Sampled<'m> {
    calls: Calls<'m>,
    /// Whether it is differentiated; `None` if it has no name.
    is_differentiated: Option<bool>,
}

/// Call stacks of a program, about [`LOOKED_AT`] of them, read when they are first asked for.
pub(super) struct Stacks<'m> {
    module: &'m Module,
    sampled: OnceCell<Vec<Sampled<'m>>>,
}

impl<'m> Stacks<'m> {
    pub(super) fn of(module: &'m Module) -> Self {
        Self { module, sampled: OnceCell::new() }
    }

    fn all(&self) -> &[Sampled<'m>] {
        self.sampled.get_or_init(|| {
            let step = (self.module.instructions().count() / LOOKED_AT).max(1);
            let sampled = |at: Instruction<'m>| {
                let is_differentiated = op_name(&at).map(|name| name.contains("jvp("));
                Sampled { calls: calls(&at), is_differentiated }
            };
            self.module.instructions().step_by(step).map(sampled).collect()
        })
    }
}

/// The lines to edit for a proposal; `None` if it is the array's own line, or unknown.
pub(super) fn edited_lines(
    program: &ProgramModel<'_>,
    stacks: &Stacks<'_>,
    proposal: &Proposal,
) -> Option<EditedLines> {
    let alone = |line: SourceLine| EditedLines { line, more: Vec::new(), around: Vec::new(), loss: None };
    match &proposal.finding {
        // A line that the whole program shares calls no layer.
        Finding::RepeatedLayers(found) => {
            found.layers.call.clone().filter(|call| shared_by_all(stacks).as_ref() != Some(call)).map(alone)
        }
        Finding::MappedCall(found) => Some(alone(found.line.clone())),
        Finding::RowsOfFew(RowsOfFew { operation: RowOperation::Product { rows, columns }, .. }) => {
            products(program, proposal, [*rows, *columns])
        }
        Finding::Blocks(found) if found.are_directions => directions(program).map(alone),
        Finding::Logits(found) if found.used == LogitsUse::Scores => {
            scores(program, proposal).or_else(|| taken_apart(program, proposal).ok().flatten())
        }
        finding if is_rewrite(finding) => taken_apart(program, proposal).ok().flatten(),
        Finding::LargeDimension(found) if found.gradients == GradientSums::Summed => gradient(stacks),
        Finding::UndonatedState(_) | Finding::LargeDimension(_) => function(program, stacks).map(alone),
        _ => None,
    }
}

/// The lines of all products of small matrices whose arrays change, if they are several.
fn products(program: &ProgramModel<'_>, proposal: &Proposal, matrix: [u64; 2]) -> Option<EditedLines> {
    let is_product = |at: &Instruction<'_>| {
        let is_small = || bounds(at).is_some_and(|bounds| matrix.iter().all(|size| bounds.contains(size)));
        matches!(at.opcode(), Opcode::Dot | Opcode::Convolution) && is_small()
    };
    let changed = program.temporaries().filter(|array| proposal.buffers.at_most.contains_key(&array.buffer));
    let of_products = changed.flat_map(|array| with_fused(array.instruction)).filter(is_product);
    let lines = of_products.filter_map(|at| source_line(&at)).collect();
    EditedLines::of(lines, Vec::new()).filter(|edited| !edited.more.is_empty())
}

/// The lines of the jitted function below which others make logits that no gradient goes through: the gradient's own logits may come
/// from a call of the same function.
fn scores(program: &ProgramModel<'_>, proposal: &Proposal) -> Option<EditedLines> {
    let changed = program.temporaries().filter(|array| proposal.buffers.at_most.contains_key(&array.buffer));
    let most = changed.map(|array| elements(&array.bounds)).max()?;
    let is_it = |at: &Instruction<'_>| {
        bounds(at).is_some_and(|bounds| elements(&bounds) == most)
            && op_name(at).is_some_and(|name| !is_forward(&name) && !is_backward(&name))
    };
    let call = |at: Instruction<'_>| {
        let calls = calls(&at);
        let own = calls.iter().position(|frame| is_jitted(program, frame) && !is_installed(&frame.file))?;
        calls[own + 1..].iter().any(|frame| !is_installed(&frame.file)).then(|| SourceLine::of(calls[own].clone()))
    };
    EditedLines::of(program.module.instructions().filter(is_it).filter_map(call).collect(), Vec::new())
}

/// The innermost line that all derivatives along directions share.
fn directions(program: &ProgramModel<'_>) -> Option<SourceLine> {
    let is_it = |at: &Instruction<'_>| op_name(at).is_some_and(|name| is_of_directions(&name));
    let all: Vec<Calls<'_>> = program.module.instructions().filter(is_it).map(|at| calls(&at)).collect();
    innermost(shared(all.iter()))
}

/// Whether a change takes apart a few lines of one function.
fn is_rewrite(finding: &Finding) -> bool {
    match finding {
        Finding::AllPairs(_) | Finding::Blocks(_) | Finding::Logits(_) | Finding::ClassLogits(_) => true,
        Finding::LargeDimension(found) => {
            found.gradients == GradientSums::OfEach || found.is_made || found.joint.is_some()
        }
        _ => false,
    }
}

/// The innermost line that nine in ten instructions of a program share.
fn shared_by_all(stacks: &Stacks<'_>) -> Option<SourceLine> {
    innermost(shared(stacks.all().iter().map(|sampled| &sampled.calls)))
}

/// The line that takes the gradient: where the call stacks of differentiated and other instructions diverge.
fn gradient(stacks: &Stacks<'_>) -> Option<EditedLines> {
    let of = |is: bool| {
        let sampled = stacks.all().iter().filter(move |sampled| sampled.is_differentiated == Some(is));
        sampled.map(|sampled| &sampled.calls)
    };
    // Functions that were traced before, such as a checkpointed scan's, have lost their callers.
    let within = shared_by(of(true), |count, all| count.saturating_mul(3) > all.saturating_mul(2));
    let mut parted: HashMap<usize, usize> = HashMap::default();
    for other in of(false).filter(|other| !other.is_empty()) {
        let together = within.iter().zip(other).take_while(|(one, other)| one == other).count();
        *parted.entry(together).or_default() += 1;
    }
    let parted = parted.into_iter().max_by_key(|(together, count)| (*count, *together));
    let shown = parted.map_or(within.len(), |(together, _)| (together + 1).min(within.len()));
    let line = innermost(within.get(..shown).unwrap_or_default())?;
    let loss = loss(of(true), &line);
    Some(EditedLines { line, more: Vec::new(), around: Vec::new(), loss })
}

/// The user's function that most differentiated operations have below the line that takes their gradient.
fn loss<'c, 'm: 'c>(calls: impl Iterator<Item = &'c Calls<'m>>, line: &SourceLine) -> Option<String> {
    let is_line = |frame: &SourceLocation<'_>| *frame.file == *line.file && frame.line == line.line;
    let mut names: HashMap<&str, usize> = HashMap::default();
    for calls in calls {
        let Some(at) = calls.iter().rposition(is_line) else { continue };
        let own = calls[at + 1..].iter().find(|frame| !is_installed(&frame.file));
        if let Some(name) = own.and_then(|frame| frame.function.as_deref()) {
            *names.entry(name).or_default() += 1;
        }
    }
    let all: usize = names.values().sum();
    let (name, _) = names.into_iter().find(|(_, count)| is_shared(*count, all))?;
    (!name.ends_with('>')).then(|| name.to_owned())
}

/// Whether a frame is of the jitted function, by its name.
fn is_jitted(program: &ProgramModel<'_>, frame: &SourceLocation<'_>) -> bool {
    frame.function.as_deref().and_then(|name| name.rsplit('.').next()) == Some(program.function())
}

/// The first line of the jitted function in the call stacks: of several of its name, of the one that most of them have.
fn function(program: &ProgramModel<'_>, stacks: &Stacks<'_>) -> Option<SourceLine> {
    let own = |frame: &SourceLocation<'_>| frame.function.as_deref().map(str::to_owned);
    let mut found: BTreeMap<(String, Option<String>), (usize, &SourceLocation<'_>)> = BTreeMap::new();
    for frame in stacks.all().iter().filter_map(|sampled| sampled.calls.iter().find(|frame| is_jitted(program, frame)))
    {
        let (count, first) = found.entry((frame.file.to_string(), own(frame))).or_insert((0, frame));
        *count += 1;
        if frame.line < first.line {
            *first = frame;
        }
    }
    let most = found.into_values().reduce(|best, other| if other.0 > best.0 { other } else { best });
    most.map(|(_, first)| SourceLine::of(first.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `main` calls `step`, which takes the gradient of `loss` and then updates.
    const TABLES: &str = r#"
FileNames
1 "train.py"

FunctionNames
1 "main"
2 "step"
3 "loss"

FileLocations
1 {file_name_id=1 function_name_id=1 line=40 end_line=40 column=1 end_column=2}
2 {file_name_id=1 function_name_id=2 line=31 end_line=31 column=1 end_column=2}
3 {file_name_id=1 function_name_id=3 line=12 end_line=12 column=1 end_column=2}
4 {file_name_id=1 function_name_id=2 line=33 end_line=33 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}
4 {file_location_id=4 parent_frame_id=2}
"#;

    fn module(operations: &[(&str, u32)]) -> Module {
        let instruction = |(at, (name, frame)): (usize, &(&str, u32))| {
            format!(
                "  x{at} = f32[8]{{0}} parameter({at}), metadata={{op_name=\"jit(step)/{name}\" stack_frame_id={frame}}}\n"
            )
        };
        let body: String = operations.iter().enumerate().map(instruction).collect();
        let text = format!("HloModule jit_step\n{TABLES}\nENTRY main {{\n{body}}}");
        Module::parse(text).expect("a program")
    }

    fn lines(operations: &[(&str, u32)]) -> [Option<u32>; 2] {
        let module = module(operations);
        let stacks = Stacks::of(&module);
        [gradient(&stacks).map(|edited| edited.line), shared_by_all(&stacks)].map(|line| line.map(|line| line.line))
    }

    #[test]
    fn call_stacks_part_where_the_gradient_is_taken() {
        let [gradient, shared] =
            lines(&[("jvp(loss)/dot", 3), ("transpose(jvp(loss))/dot", 3), ("add", 4), ("mul", 4)]);
        assert_eq!((gradient, shared), (Some(31), Some(40)));
    }

    /// The function below the gradient's line, if most operations of the gradient are in it.
    #[test]
    fn the_function_that_is_differentiated() {
        let loss = |operations: &[(&str, u32)]| gradient(&Stacks::of(&module(operations)))?.loss;
        let inside = ("jvp(loss)/dot", 3);
        assert_eq!(loss(&[inside, ("transpose(jvp(loss))/dot", 3), ("add", 4)]).as_deref(), Some("loss"));
        assert_eq!(loss(&[("jvp()/dot", 2), ("transpose(jvp())/dot", 2), ("add", 4)]), None);
    }

    /// Nothing parts the gradient from the rest: the innermost line that all of it shares.
    #[test]
    fn a_program_that_is_a_gradient_alone() {
        assert_eq!(lines(&[("jvp(loss)/dot", 3), ("jvp(loss)/add", 3)]), [Some(12), Some(12)]);
    }
}
