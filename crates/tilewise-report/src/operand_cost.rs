//! The cost of a Pallas kernel's operand in the layout of its producer.

use crate::{
    Reader, RemedyWords, Terminal, WriteText,
    findings::NO_VIEW,
    kernel::without_generation,
    shape::packing::Reading,
    style::{FAINT, STRONG, bytes, styled},
    text::write_wrapped,
};
use anstyle::Style;
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{
    Shape,
    tpu::{self, Generation},
};
use tilewise_audit::Failure;
use tilewise_kernel::Kernel;

/// The answer of `tilewise kernel --operand SHAPE`: whether XLA copies the array before each call, and how to avoid
/// that.
#[derive(Clone, Debug, Serialize)]
pub struct OperandCost {
    /// The array as its producer leaves it.
    from: String,
    /// The kernel's input: the first that transposes and reshapes can make of the array.
    to: String,
    /// Its number among the inputs.
    operand: usize,
    /// Bytes that are read and written before each call; 0 if the kernel reads it as it is.
    copied_bytes: u64,
    /// Views that the kernel can read instead, those that change the least of it first.
    views: Vec<RemedyWords>,
}

impl OperandCost {
    /// The cost of an array for a kernel.
    ///
    /// # Errors
    /// Those of parsing; without a generation; if no input of the kernel can be made of the array.
    pub fn of(
        kernel: &Kernel,
        operand: &str,
        generation: Option<Generation>,
        reader: &mut Reader,
    ) -> Result<Self, Failure> {
        let generation = generation.ok_or_else(without_generation)?;
        let from = reader.shape(operand)?;
        let inputs = kernel.operands.iter().filter(|input| !input.is_output).map(|input| &input.array);
        let found = inputs.enumerate().find_map(|(index, input)| {
            Some((index, input, Reading::likeliest(&from, input.element_type, &input.dimensions)?))
        });
        let Some((index, input, reading)) = found else {
            let failure = Failure::new("elements", "no input of the kernel holds the elements of this array");
            return Err(failure.within(0..operand.len()));
        };
        let order: Vec<usize> = (0..input.dimensions.len()).rev().collect();
        let to = tpu::layout_for_order(input.element_type, &input.dimensions, &order, generation)?;
        let size = |shape: &Shape| {
            shape.as_array().and_then(|array| array.sizes().ok()).map_or(0, |sizes| sizes.physical_bytes)
        };
        let is_free = reading.is_free(&from, generation);
        let copied_bytes = if is_free { 0 } else { size(&from).saturating_add(size(&to)) };
        Ok(Self {
            views: if is_free { Vec::new() } else { reading.views(&from, generation) },
            from: from.to_string(),
            to: to.to_string(),
            operand: index,
            copied_bytes,
        })
    }

    /// Bytes that are read and written before each call.
    #[must_use]
    pub const fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }
}

impl WriteText for OperandCost {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let Self { from, to, operand, copied_bytes, views } = self;
        writeln!(out, "in{operand}: {from} → {to}")?;
        if *copied_bytes == 0 {
            return writeln!(out, "  {}", styled(STRONG, "read as it is"));
        }
        writeln!(out, "  {}: {} in each call", styled(STRONG, "copied"), bytes(*copied_bytes))?;
        if views.is_empty() {
            writeln!(out, "  {NO_VIEW}")?;
        }
        for view in views.iter().take(1) {
            write_wrapped(&view.sentence, Style::new(), ["  → ", "    "], terminal.width, out)?;
            for line in view.code.iter().flat_map(|code| code.lines()) {
                writeln!(out, "      {}", styled(FAINT, line))?;
            }
        }
        Ok(())
    }
}
