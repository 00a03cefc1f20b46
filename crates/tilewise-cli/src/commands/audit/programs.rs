//! From a path to the programs in it, and whether they are what was asked for.

use crate::{failure::Failure, input::read_document};
use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
};
use tilewise_hlo::{BufferAssignment, Module};

/// A program, and where it came from.
pub(super) struct Program {
    pub(super) source: String,
    pub(super) module: Module,
}

/// How to get a program that is compiled for a TPU.
const HOW_TO_COMPILE: &str = "compile for a TPU, which takes none: `pip install jax libtpu`, then \
    `topologies.get_topology_desc(platform=\"tpu\", topology_name=\"v5e:2x2\")` (jax.experimental) names devices for \
    shardings of `jax.jit(f).lower(…).compile().as_text()`; or dump one with XLA_FLAGS=--xla_dump_to=DIR and pass its \
    after_optimizations file";

/// A file to audit, of a dump with the compiler's own plan beside it.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) path: PathBuf,
    buffer_assignment: Option<PathBuf>,
}

/// The files in what was asked for: of a folder, its compiled programs, one for each module. What was taken and left is
/// said.
pub(super) fn inputs(paths: &[PathBuf]) -> Vec<Result<Input, (String, Failure)>> {
    let mut inputs = Vec::new();
    for path in paths {
        if path.is_dir() {
            inputs.extend(dump(path));
        } else {
            inputs.push(Ok(Input { path: path.clone(), buffer_assignment: None }));
        }
    }
    inputs
}

/// What a file of a dump is, by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Program,
    BufferAssignment,
    Other,
}

/// The compiled programs of a dump. Files of one module share what is before its stage in their names; of its text and
/// its message the text is taken.
fn dump(folder: &Path) -> Vec<Result<Input, (String, Failure)>> {
    let named = folder.to_string_lossy().into_owned();
    let failed = |failure: Failure| vec![Err((named.clone(), failure))];
    let mut files: Vec<PathBuf> = match fs::read_dir(folder) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect(),
        Err(error) => return failed(Failure::new("io", format!("{named}: can't read the folder: {error}"))),
    };
    files.sort();
    let mut modules: BTreeMap<String, (Option<PathBuf>, Option<PathBuf>)> = BTreeMap::new();
    let mut left = 0;
    for path in files {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let module = name.split(".after_optimizations").next().unwrap_or_default().to_owned();
        match kind(&path) {
            Kind::Program => {
                let (program, _) = modules.entry(module).or_default();
                match program {
                    // Texts come after messages: `.txt` after `.hlo.pb`.
                    Some(taken) if is_text(taken) || !is_text(&path) => left += 1,
                    Some(taken) => {
                        *taken = path;
                        left += 1;
                    }
                    None => *program = Some(path),
                }
            }
            Kind::BufferAssignment => modules.entry(module).or_default().1 = Some(path),
            Kind::Other => left += 1,
        }
    }
    let inputs: Vec<Result<Input, _>> = modules
        .into_values()
        .filter_map(|(program, buffer_assignment)| Some(Ok(Input { path: program?, buffer_assignment })))
        .collect();
    if inputs.is_empty() {
        let message = format!("{named}: the folder has no compiled program");
        let help =
            "dump with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\"; the file after_optimizations is it";
        return failed(Failure::new("not_hlo", message).with_help(help));
    }
    let (count, other) = (inputs.len(), if left == 1 { "file" } else { "files" });
    let programs = if count == 1 { "program" } else { "programs" };
    anstream::eprintln!("{named}: {count} compiled {programs}; left {left} other {other}");
    inputs
}

fn is_text(path: &Path) -> bool {
    !path.to_string_lossy().ends_with(".pb")
}

/// By what is in the file: a program is compiled if it is scheduled.
fn kind(path: &Path) -> Kind {
    let Ok(text) = tilewise_hlo::read_text(path) else { return Kind::Other };
    if BufferAssignment::is_one(&text) {
        return Kind::BufferAssignment;
    }
    let header = text.trim_start().strip_prefix("HloModule ").and_then(|rest| rest.lines().next());
    match header {
        Some(header) if header.contains("is_scheduled=true") => Kind::Program,
        _ => Kind::Other,
    }
}

/// The programs in a file, each of several modules one.
pub(super) fn of(input: &Input) -> Vec<(String, Result<Program, Failure>)> {
    let source = input.source();
    let text = match read_document(&input.path) {
        Ok(text) => text,
        // What can't be opened says which file already.
        Err(failure) if failure.has_span() || !failure.names(&source) => {
            return vec![(source, Err(failure.in_file(&input.path)))];
        }
        Err(failure) => return vec![(source, Err(failure))],
    };
    match Module::parse_all(text) {
        Ok(modules) => modules.into_iter().map(|module| (source.clone(), whole(source.clone(), module))).collect(),
        Err(error) => vec![(source, Err(Failure::from(error).in_file(&input.path)))],
    }
}

impl Input {
    /// The file's own buffer assignment, if it is one.
    pub(super) fn as_buffer_assignment(&self) -> Option<BufferAssignment> {
        let mut start = [0; 64];
        let count = fs::File::open(&self.path).and_then(|mut file| file.read(&mut start)).ok()?;
        let start = String::from_utf8_lossy(start.get(..count)?);
        if !BufferAssignment::is_one(&start) {
            return None;
        }
        BufferAssignment::parse(&tilewise_hlo::read_text(&self.path).ok()?).ok()
    }

    /// The file, as reports name it.
    pub(super) fn source(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Bytes of the file.
    pub(super) fn size(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |file| file.len())
    }

    /// The compiler's own plan, if the dump has it.
    pub(super) fn buffer_assignment(&self) -> Option<BufferAssignment> {
        let text = tilewise_hlo::read_text(self.buffer_assignment.as_ref()?).ok()?;
        BufferAssignment::parse(&text).ok()
    }
}

/// A part of a program would be audited as if the rest held nothing.
fn whole(source: String, module: Module) -> Result<Program, Failure> {
    if module.is_truncated() {
        let at = module.warnings().iter().map(|warning| warning.span().start).min().unwrap_or(0);
        let message = format!("{source}: the text is truncated: it ends within a computation (from byte {at})");
        return Err(Failure::new("truncated", message).with_help("dump or copy the module again, whole"));
    }
    Ok(Program { source, module })
}

impl Program {
    /// Refuses a program that was never laid out for a TPU: its sizes would be those of rows without padding.
    pub(super) fn for_tpu(self) -> Result<Self, Failure> {
        match self.not_tpu() {
            Some(message) => Err(Failure::new("not_tpu", message).with_help(HOW_TO_COMPILE)),
            None => Ok(self),
        }
    }

    /// Why this is no program for a TPU, if it isn't.
    pub(super) fn not_tpu(&self) -> Option<String> {
        let Self { source, module } = self;
        (!module.has_tiles()).then(|| {
            format!("{source}: not compiled for a TPU: no layout has tiles, so padding and memory can't be told")
        })
    }
}
