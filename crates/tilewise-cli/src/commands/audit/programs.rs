//! From a path to the programs in it, and whether they are what was asked for.

use crate::{failure::Failure, input::read_bytes};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tilewise_hlo::{BufferAssignment, DECOMPRESSION_LIMIT, Document, Module, WarningKind};

/// A file to audit, and of a dump the file with the compiler's own plan of the same program.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) buffer_assignment: Option<PathBuf>,
}

/// What a file holds.
pub(super) enum Content {
    Program(Program),
    /// The compiler's plan, without its program.
    BufferAssignment(BufferAssignment),
}

/// A program, where it came from, and the compiler's own plan of it.
pub(super) struct Program {
    pub(super) source: String,
    pub(super) module: Module,
    pub(super) buffer_assignment: Option<BufferAssignment>,
}

impl Input {
    /// Bytes of the file.
    pub(super) fn size(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |file| file.len())
    }

    /// What is in the file: at least one program or plan, or an error, which names the file first.
    pub(super) fn contents(&self) -> Vec<Result<Content, Failure>> {
        let Document { text, mut buffer_assignment, .. } = match read(&self.path) {
            Ok(document) => document,
            Err(failure) => return vec![Err(failure)],
        };
        let in_file = |failure: Failure| failure.in_file(&self.path);
        if BufferAssignment::is_text(&text) {
            let assignment = BufferAssignment::parse(&text).map(Content::BufferAssignment);
            return vec![assignment.map_err(|error| in_file(error.into()))];
        }
        if let Some(path) = &self.buffer_assignment {
            match read_buffer_assignment(path) {
                Ok(read) => buffer_assignment = read,
                Err(failure) => return vec![Err(failure)],
            }
        }
        let source = self.path.to_string_lossy();
        let modules = Module::parse_all(text).into_iter().map(|module| {
            let module = whole(module?)?;
            let buffer_assignment = buffer_assignment.take();
            Ok(Content::Program(Program { source: source.clone().into_owned(), module, buffer_assignment }))
        });
        modules.map(|content| content.map_err(in_file)).collect()
    }
}

pub(super) fn read(path: &Path) -> Result<Document, Failure> {
    let document = Document::decode(read_bytes(path)?, DECOMPRESSION_LIMIT);
    document.map_err(|error| Failure::from(error).in_file(path))
}

/// The buffer assignment in a file, as text or with a program's proto.
pub(super) fn read_buffer_assignment(path: &Path) -> Result<Option<BufferAssignment>, Failure> {
    let Document { text, buffer_assignment, .. } = read(path)?;
    if !BufferAssignment::is_text(&text) {
        return Ok(buffer_assignment);
    }
    BufferAssignment::parse(&text).map(Some).map_err(|error| Failure::from(error).in_file(path))
}

/// The module, unless it is cut off: it would be audited as if the rest held nothing.
fn whole(module: Module) -> Result<Module, Failure> {
    if !module.is_truncated() {
        return Ok(module);
    }
    let lines = module.source().lines().count();
    let open = module.warnings().iter().find(|warning| warning.kind() == WarningKind::UnterminatedComputation);
    let place = match open.and_then(|warning| module.source().get(warning.span())) {
        Some(computation) => format!("within computation `{computation}`"),
        None => "before the entry computation".to_owned(),
    };
    let message = format!("the HLO text is cut off: it ends in line {lines}, {place}");
    Err(Failure::new("truncated", message).with_help("dump or copy the module again, whole"))
}

impl Program {
    /// Refuses a program that was never laid out for a TPU: its sizes would be those of rows without padding.
    pub(super) fn for_tpu(self) -> Result<Self, Failure> {
        match self.not_tpu() {
            Some(reason) => {
                let message = format!("{}: {reason}", self.source);
                Err(Failure::new("not_tpu", message).with_help(HOW_TO_COMPILE))
            }
            None => Ok(self),
        }
    }

    /// Why this is no program for a TPU, if it isn't.
    pub(super) fn not_tpu(&self) -> Option<String> {
        let state = if self.module.is_scheduled() {
            "it was compiled for a CPU or a GPU"
        } else {
            "it was compiled for another machine, or its layouts are not assigned yet"
        };
        let reason =
            || format!("not compiled for a TPU: no array lies in tiles, so {state}, and sizes on a TPU differ");
        (!self.module.has_tiles()).then(reason)
    }
}

/// How to get a program that is compiled for a TPU.
const HOW_TO_COMPILE: &str = "\
no TPU is needed to compile for one: pip install jax libtpu, then with TPU_SKIP_MDS_QUERY=1 JAX_PLATFORMS=cpu
from jax.experimental import topologies
device = topologies.get_topology_desc(topology_name=\"v5e:2x2\", platform=\"tpu\").devices[0]
x = jax.ShapeDtypeStruct(shape, dtype, sharding=jax.sharding.SingleDeviceSharding(device))
print(jax.jit(f).lower(x).compile().as_text())";
