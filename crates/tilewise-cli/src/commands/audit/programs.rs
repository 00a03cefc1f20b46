//! From a path to the programs in it, and whether they are what was asked for.

use crate::{failure::Failure, input::read_document};
use std::path::Path;
use tilewise_hlo::Module;

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

/// The programs in a file, each of several modules one.
pub(super) fn of(path: &Path) -> Vec<(String, Result<Program, Failure>)> {
    let source = path.to_string_lossy().into_owned();
    let modules = match read_document(path).and_then(|text| Ok(Module::parse_all(text)?)) {
        Ok(modules) => modules,
        Err(failure) => return vec![(source, Err(failure))],
    };
    modules.into_iter().map(|module| (source.clone(), whole(source.clone(), module))).collect()
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
