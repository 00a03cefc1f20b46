//! The source lines of instructions.

use super::{carry::body, operations::passes_on};
use foldhash::{HashMap, HashSet};
use std::{borrow::Cow, iter};
use tilewise_hlo::{
    Computation, Instruction, Module, Opcode, SourceLocation,
    dataflow::{Dataflow, OpId, REACH},
};

/// A line of the user's program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SourceLine {
    /// The file, as given to the compiler.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function, if the text has it.
    pub function: Option<String>,
    /// The line of an installed package that it leads to, such as a model's: in the user's program, a whole network may
    /// be one line. Lines of frameworks, such as Flax, are left out: they say less than the user's.
    pub library: Option<Box<SourceLine>>,
}

impl SourceLine {
    /// The file and the line, and those of the library.
    pub(crate) fn place(&self) -> (&str, u32, Option<(&str, u32)>) {
        (&self.file, self.line, self.library.as_deref().map(|line| (line.file.as_str(), line.line)))
    }

    /// Whether it is of an installed package, not of the user's code.
    #[must_use]
    pub fn is_installed(&self) -> bool {
        is_installed(&self.file)
    }
}

/// Packages whose lines show the computation, not its purpose.
const FRAMEWORKS: &[&str] = &["equinox", "flax", "haiku", "jax", "jaxlib", "keras", "numpy"];
/// The name that the standard library has here.
const PYTHON: &str = "python";
/// Other installed packages, whose paths may lack their start (`jax_hlo_source_file_canonicalization_regex`).
const LIBRARIES: &[&str] = &[
    "blackjax",
    "brax",
    "chex",
    "diffrax",
    "diffusers",
    "distrax",
    "flowjax",
    "jax_md",
    "jraph",
    "mctx",
    "numpyro",
    "optax",
    "transformers",
];

/// Python's file name for `python -c`, which may start a library's program: it has no line to look up.
const COMMAND: &str = "<string>";

impl SourceLine {
    pub(crate) fn new(file: impl Into<String>, line: u32) -> Self {
        Self { file: file.into(), line, function: None, library: None }
    }

    pub(crate) fn of(location: SourceLocation<'_>) -> Self {
        let function = location.function.map(|function| function.into_owned());
        Self { function, ..Self::new(location.file, location.line) }
    }
}

pub(crate) fn op_name<'m>(instruction: &Instruction<'m>) -> Option<Cow<'m, str>> {
    instruction.metadata()?.op_name()
}

/// The loops of the source, by their indices. Compilers make loops of gathers, scatters, copies and distributed products, too: those
/// have other names, or none. One of the source may lose its name; what it does is then still named as of a loop's body.
pub(crate) fn own_loops(module: &Module) -> HashSet<usize> {
    let is_own = |name: &str| name.rsplit(['/', '(']).next().is_some_and(|operation| operation.starts_with("while"));
    let loops = || module.instructions().filter(|at| at.opcode() == Opcode::While);
    let unnamed: Vec<Instruction<'_>> = loops().filter(|at| op_name(at).is_none()).collect();
    let has_names = unnamed.is_empty() || module.instructions().any(|at| op_name(&at).is_some());
    let around: HashSet<usize> = unnamed.iter().map(|at| at.computation().index()).collect();
    let depths = module.computations().filter(|of| around.contains(&of.index())).map(|of| (of.index(), depth(&of)));
    let depths: HashMap<usize, usize> = depths.collect();
    let is_inner = |at: &Instruction<'_>| {
        body(at).is_some_and(|body| depths.get(&at.computation().index()).is_some_and(|around| depth(&body) > *around))
    };
    let own = loops().filter(|at| op_name(at).map_or_else(|| !has_names || is_inner(at), |name| is_own(&name)));
    own.map(|at| at.index()).collect()
}

/// Loops around most of a computation's operations, by their names.
fn depth(computation: &Computation<'_>) -> usize {
    let names = computation.instructions().filter_map(|at| op_name(&at).map(|name| name.matches("/body/").count()));
    let mut depths: Vec<usize> = names.collect();
    depths.sort_unstable();
    depths.get(depths.len() / 2).copied().unwrap_or_default()
}

/// The innermost line outside installed packages, which a user can't change; a package's line only if there is no
/// other.
pub(crate) fn source_line(instruction: &Instruction<'_>) -> Option<SourceLine> {
    let innermost = instruction.source()?;
    if package(&innermost.file).is_none() {
        return Some(SourceLine::of(innermost));
    }
    innermost_own(|| instruction.frames()).or_else(|| Some(SourceLine::of(innermost)))
}

/// [`source_line`] of a call stack, the innermost call first.
pub(crate) fn innermost_own<'m, I: Iterator<Item = SourceLocation<'m>>>(frames: impl Fn() -> I) -> Option<SourceLine> {
    let says_more = |frame: &SourceLocation<'_>| {
        package(&frame.file).is_some_and(|name| !FRAMEWORKS.contains(&name) && name != PYTHON)
    };
    let library = frames().take_while(|frame| package(&frame.file).is_some()).find(says_more).map(SourceLine::of);
    let is_own = |frame: &SourceLocation<'_>| package(&frame.file).is_none() && frame.file != COMMAND;
    let Some(own) = frames().find(is_own) else {
        return library.or_else(|| frames().find(|frame| frame.file == COMMAND).map(SourceLine::of));
    };
    let library = library.map(Box::new);
    Some(SourceLine { library, ..SourceLine::of(own) })
}

/// The calls that led to an instruction, the innermost first.
pub(crate) fn call_stack(instruction: &Instruction<'_>) -> Vec<SourceLine> {
    let frames: Vec<SourceLine> = instruction.frames().map(SourceLine::of).collect();
    if frames.is_empty() { instruction.source().map(SourceLine::of).into_iter().collect() } else { frames }
}

/// Whether a file is of an installed package.
pub(crate) fn is_installed(file: &str) -> bool {
    package(file).is_some()
}

/// The installed package of a file, or [`PYTHON`]; `None` for other files.
fn package(file: &str) -> Option<&str> {
    let installed = ["site-packages/", "dist-packages/"].iter().find_map(|folder| file.rsplit_once(folder));
    let is_of_version = |path: &str| path.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('/');
    if installed.is_none() && file.split_once("/lib/python3.").is_some_and(|(_, path)| is_of_version(path)) {
        return Some(PYTHON);
    }
    let path = installed.map_or(file, |(_, path)| path);
    let name = path.split('/').next()?;
    (installed.is_some() || FRAMEWORKS.contains(&name) || LIBRARIES.contains(&name)).then_some(name)
}

/// The name and line of an instruction, or of what it copies: copies that the compiler adds have none. An argument has
/// a name, but maybe no line.
pub(crate) fn traced(flow: &Dataflow, instruction: &Instruction<'_>) -> Traced {
    let mut name = op_name(instruction).map(Cow::into_owned);
    if let Some(source) = source_line(instruction) {
        return (name, Some(source));
    }
    let copied = |op: &OpId| {
        let is_copy = flow.instruction(*op).is_some_and(|at| {
            passes_on(&at) || matches!(at.opcode(), Opcode::Convert | Opcode::Reshape | Opcode::Transpose)
        });
        flow.operands(*op).first().filter(|_| is_copy).copied()
    };
    let way = iter::successors(flow.op(instruction), copied).skip(1).take(REACH);
    for at in way.filter_map(|op| flow.instruction(op)) {
        name = name.or_else(|| op_name(&at).map(Cow::into_owned));
        if let Some(source) = source_line(&at) {
            return (name, Some(source));
        }
    }
    (name, None)
}

/// The framework's name and the source line, if any.
pub(crate) type Traced = (Option<String>, Option<SourceLine>);

/// The names and lines of instructions, each read once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracer(HashMap<OpId, Option<Traced>>);

impl Tracer {
    /// Maximum number of readers or callers that are searched.
    const NEAR: usize = 16;

    /// As [`traced`]; an instruction with neither name nor line gets those of its first reader that has any, or else of
    /// a caller of its computation, such as the loop that carries it.
    pub(crate) fn traced(&mut self, flow: &Dataflow, instruction: &Instruction<'_>) -> Traced {
        let found = traced(flow, instruction);
        let op = flow.op(instruction).filter(|_| found.0.is_none() && found.1.is_none());
        let Some(op) = op else { return found };
        let users = |op: OpId| flow.users(op).iter().take(Self::NEAR).map(|user| user.op).collect::<Vec<_>>();
        let readers = flow.reached(users(op), users);
        let callers = iter::successors(flow.caller(op), |caller| flow.caller(*caller));
        // The value of a parameter comes from the caller.
        let said = match instruction.opcode() {
            Opcode::Parameter => self.first(flow, callers).or_else(|| self.first(flow, readers)),
            _ => self.first(flow, readers).or_else(|| self.first(flow, callers)),
        };
        said.unwrap_or(found)
    }

    fn first(&mut self, flow: &Dataflow, mut ops: impl Iterator<Item = OpId>) -> Option<Traced> {
        ops.by_ref().take(Self::NEAR).find_map(|op| self.of(flow, op))
    }

    fn of(&mut self, flow: &Dataflow, op: OpId) -> Option<Traced> {
        let read = || {
            let at = flow.instruction(op)?;
            let (name, source) = (op_name(&at).map(Cow::into_owned), source_line(&at));
            (name.is_some() || source.is_some()).then_some((name, source))
        };
        self.0.entry(op).or_insert_with(read).clone()
    }
}
