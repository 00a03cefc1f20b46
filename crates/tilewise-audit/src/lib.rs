//! Finds padding waste in compiled TPU programs.
//!
//! [`audit`] reads every buffer that a module defines, asks the layout what it takes, and totals by memory space.
//! The sum over all buffers is what a program *defines*; buffers that never live at once share memory, so it is not what the
//! program holds.
//!
//! ```
//! let text = "
//! ENTRY main {
//!   x = f32[400000,12]{1,0:T(8,128)} parameter(0)
//!   ROOT y = f32[400000,12]{1,0:T(8,128)} negate(x)
//! }";
//! let module = tilewise_hlo::Module::parse(text)?;
//! let report = tilewise_audit::audit(&module);
//!
//! let worst = report.largest_padding().next().expect("two buffers");
//! assert_eq!((worst.logical_bytes, worst.physical_bytes), (19_200_000, 204_800_000));
//! assert_eq!(worst.causes, ["dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used"]);
//! # Ok::<(), tilewise_hlo::Error>(())
//! ```

#![forbid(unsafe_code)]

mod cause;
mod explain;
pub mod fix;
mod report;
mod sizes;

pub use cause::causes;
pub use explain::{Allocation, Explanation, explain};
pub use report::{BufferRow, CopyRow, Held, Report, SourceLine, SpaceTotal, Warning};

use sizes::Sizes;
use std::collections::HashMap;
use tilewise::{Shape, ShapeKind};
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
    let held = held(module, &buffers, &mut auditor);
    Report::new(module, buffers, copies, held, auditor.warnings)
}

/// Sizes shapes, each distinct one once: a program repeats a few hundred over and over.
#[derive(Default)]
struct Auditor {
    sizes: HashMap<Shape, Sizes>,
    /// Per kind of error: how many buffers it kept from being sized, and the first of them.
    unsized_buffers: Vec<(tilewise::Error, String, usize)>,
    warnings: Vec<Warning>,
}

impl Auditor {
    fn sizes(&mut self, shape: &Shape) -> Result<Sizes, tilewise::Error> {
        if let Some(known) = self.sizes.get(shape) {
            return Ok(known.clone());
        }
        let sizes = Sizes::of(shape)?;
        self.sizes.insert(shape.clone(), sizes.clone());
        Ok(sizes)
    }

    fn row(&mut self, buffer: &Buffer<'_>) -> Option<BufferRow> {
        let sizes = match self.sizes(&buffer.shape) {
            Ok(sizes) => sizes,
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
            logical_bytes: sizes.logical,
            physical_bytes: sizes.physical,
            causes: sizes.causes,
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
fn held(module: &Module, buffers: &[BufferRow], auditor: &mut Auditor) -> Held {
    let mut held = Held::default();
    let Some(entry) = module.entry() else { return held };
    for buffer in buffers.iter().filter(|buffer| buffer.memory_space == 0) {
        held.at_most_bytes = held.at_most_bytes.saturating_add(buffer.physical_bytes);
        if buffer.opcode == "parameter" && buffer.computation == entry.name() {
            held.argument_bytes = held.argument_bytes.saturating_add(buffer.physical_bytes);
        }
    }
    let Some(Ok(result)) = entry.root().map(|root| root.shape()) else { return held };
    let donated: Vec<Vec<usize>> =
        module.input_output_aliases().unwrap_or_default().into_iter().map(|alias| alias.output_index).collect();
    for (path, leaf) in result.leaves().filter(|(_, leaf)| memory_space(leaf) == 0) {
        let bytes = auditor.sizes(&leaf).map_or(0, |sizes| sizes.physical);
        held.output_bytes = held.output_bytes.saturating_add(bytes);
        if donated.iter().any(|donated| path.starts_with(donated)) {
            held.alias_bytes = held.alias_bytes.saturating_add(bytes);
        }
    }
    held.at_most_bytes = held.at_most_bytes.saturating_sub(held.alias_bytes);
    held
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
        let mut physical = |shape: &Shape| auditor.sizes(shape).ok().map(|sizes| sizes.physical);
        let (Some(read), Some(written)) = (physical(&from), physical(&to)) else { continue };
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
