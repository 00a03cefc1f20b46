//! The audit of a module: its buffers sized, its copies listed, its memory bounded.

use crate::{
    causes,
    report::{BufferRow, CopyRow, MemoryBounds, Report, SourceLine, Warning},
};
use std::collections::HashMap;
use tilewise::{Shape, ShapeKind, Sizes, Tiled};
use tilewise_hlo::{Buffer, Instruction, Module};

/// Every buffer of the module with what it holds and takes, and the totals by memory space.
///
/// What can't be sized, because it has no layout or no bound, is a warning and no row.
#[must_use]
pub fn audit(module: &Module) -> Report {
    let mut auditor = Auditor::default();
    auditor.warnings.extend(module.warnings().iter().map(|warning| Warning {
        kind: warning.kind().as_str(),
        message: warning.to_string(),
        span: Some(warning.span()),
    }));
    let mut buffers = Vec::new();
    for buffer in module.buffers() {
        match buffer {
            Ok(buffer) => buffers.extend(auditor.row(&buffer)),
            Err(error) => auditor.warnings.push(Warning {
                kind: error.kind().as_str(),
                message: error.to_string(),
                span: error.span(),
            }),
        }
    }
    auditor.report_unsized();
    let copies = copies(module, &mut auditor);
    let memory_bounds = memory_bounds(module, &buffers, &mut auditor);
    Report::new(module, buffers, copies, memory_bounds, auditor.warnings)
}

/// What an array holds and takes, and why.
#[derive(Clone, Debug)]
struct Sizing {
    sizes: Sizes,
    causes: Vec<String>,
}

/// Sizes shapes, each distinct one once: a program repeats a few hundred over and over.
#[derive(Default)]
struct Auditor {
    known: HashMap<Shape, Sizing>,
    /// Per kind of error: how many buffers it kept from being sized, and the first of them.
    unsized_buffers: Vec<(tilewise::Error, String, usize)>,
    warnings: Vec<Warning>,
}

impl Auditor {
    fn sizing(&mut self, shape: &Shape) -> Result<&Sizing, tilewise::Error> {
        if !self.known.contains_key(shape) {
            let tiled = Tiled::new(shape)?;
            self.known.insert(shape.clone(), Sizing { sizes: tiled.sizes(), causes: causes(&tiled) });
        }
        Ok(&self.known[shape])
    }

    /// Bytes a shape takes, if that can be told.
    fn physical_bytes(&mut self, shape: &Shape) -> Option<u64> {
        self.sizing(shape).ok().map(|sizing| sizing.sizes.physical_bytes)
    }

    fn row(&mut self, buffer: &Buffer<'_>) -> Option<BufferRow> {
        let Sizing { sizes, causes } = match self.sizing(&buffer.shape) {
            Ok(sizing) => sizing.clone(),
            Err(error) => {
                self.note_unsized(error, buffer.instruction.name());
                return None;
            }
        };
        let instruction = &buffer.instruction;
        Some(BufferRow {
            instruction: instruction.name().to_owned(),
            computation: instruction.computation().name().to_owned(),
            opcode: instruction.opcode().to_owned(),
            shape: buffer.shape.clone(),
            shape_index: buffer.shape_index.clone(),
            memory_space: memory_space(&buffer.shape),
            sizes,
            causes,
            op_name: op_name(instruction),
            source: source_line(instruction),
        })
    }

    fn note_unsized(&mut self, error: tilewise::Error, instruction: &str) {
        match self.unsized_buffers.iter_mut().find(|(known, _, _)| known.kind() == error.kind()) {
            Some((_, _, count)) => *count += 1,
            None => self.unsized_buffers.push((error, instruction.to_owned(), 1)),
        }
    }

    fn report_unsized(&mut self) {
        for (error, first, count) in self.unsized_buffers.drain(..) {
            let others = if count > 1 { format!(" and {} others", count - 1) } else { String::new() };
            self.warnings.push(Warning {
                kind: error.kind().as_str(),
                message: format!("`{first}`{others} can't be sized: {error}"),
                span: None,
            });
        }
    }
}

/// The bounds of what the program holds in the default memory.
fn memory_bounds(module: &Module, buffers: &[BufferRow], auditor: &mut Auditor) -> MemoryBounds {
    let mut bounds = MemoryBounds::default();
    let Some(entry) = module.entry() else { return bounds };
    for buffer in buffers.iter().filter(|buffer| buffer.memory_space == 0) {
        bounds.at_most_bytes = bounds.at_most_bytes.saturating_add(buffer.sizes.physical_bytes);
        if buffer.opcode == "parameter" && buffer.computation == entry.name() {
            bounds.argument_bytes = bounds.argument_bytes.saturating_add(buffer.sizes.physical_bytes);
        }
    }
    let Some(Ok(result)) = entry.root().map(|root| root.shape()) else { return bounds };
    let donated: Vec<Vec<usize>> =
        module.input_output_aliases().unwrap_or_default().into_iter().map(|alias| alias.output_index).collect();
    for (path, leaf) in result.leaves().filter(|(_, leaf)| memory_space(leaf) == 0) {
        let bytes = auditor.physical_bytes(&leaf).unwrap_or(0);
        bounds.output_bytes = bounds.output_bytes.saturating_add(bytes);
        if donated.iter().any(|donated| path.starts_with(donated)) {
            bounds.alias_bytes = bounds.alias_bytes.saturating_add(bytes);
        }
    }
    bounds.at_most_bytes = bounds.at_most_bytes.saturating_sub(bounds.alias_bytes);
    bounds
}

/// Every `copy` between two layouts, in computations that own buffers.
fn copies(module: &Module, auditor: &mut Auditor) -> Vec<CopyRow> {
    let owning = module.computations().filter(|computation| computation.owns_buffers());
    let copies = owning.flat_map(|computation| computation.instructions()).filter(|i| i.opcode() == "copy");
    let mut rows = Vec::new();
    for copy in copies {
        let operand = copy.operands().next();
        let from = operand.and_then(|operand| match operand.shape_text() {
            Some(text) => Shape::parse_as_written(text).ok(),
            None => operand.instruction()?.shape().ok(),
        });
        let (Some(from), Ok(to)) = (from, copy.shape()) else { continue };
        let (read, written) = (auditor.physical_bytes(&from), auditor.physical_bytes(&to));
        let (Some(read), Some(written)) = (read, written) else { continue };
        rows.push(CopyRow {
            instruction: copy.name().to_owned(),
            computation: copy.computation().name().to_owned(),
            read_bytes: read,
            written_bytes: written,
            op_name: op_name(&copy),
            source: source_line(&copy),
            from,
            to,
        });
    }
    rows
}

fn memory_space(shape: &Shape) -> u8 {
    match shape.kind() {
        ShapeKind::Array(array) => array.memory_space(),
        _ => 0,
    }
}

fn op_name(instruction: &Instruction<'_>) -> Option<String> {
    Some(instruction.metadata()?.op_name()?.into_owned())
}

fn source_line(instruction: &Instruction<'_>) -> Option<SourceLine> {
    let source = instruction.source()?;
    Some(SourceLine {
        file: source.file.into_owned(),
        line: source.line,
        function: source.function.map(|function| function.into_owned()),
    })
}
