//! The attributes of dimension numbers, as XLA prints them (`window_util::ToString` in xla/window_util.cc,
//! `ConvolutionDimensionNumbersToString` and `DotDimensionNumbersToString` in xla/hlo/ir/hlo_instruction.cc,
//! `PaddingConfigToString` and those of gathers and scatters in xla/hlo/ir/hlo_instructions.cc).

use std::fmt::Write as _;

use prost::{Message, bytes::Bytes};

use super::messages::{
    ConvolutionDimensionNumbers, DotDimensionNumbers, HloInstructionProto, IndexedDimensionNumbers, PaddingConfig,
    Window, WindowDimension,
};
use super::text::{Braced, Text};
use super::undecodable;
use crate::error::Error;

/// Writes the batch and contracting dimensions of a dot.
pub(super) fn dot(instruction: &HloInstructionProto, out: &mut Text) -> Result<(), Error> {
    let numbers = instruction.dot_dimension_numbers.clone();
    let numbers = DotDimensionNumbers::decode(numbers).map_err(|error| undecodable(&error))?;
    let DotDimensionNumbers { lhs_contracting, rhs_contracting, lhs_batch, rhs_batch } = numbers;
    let all = [
        ("lhs_batch_dims", lhs_batch),
        ("lhs_contracting_dims", lhs_contracting),
        ("rhs_batch_dims", rhs_batch),
        ("rhs_contracting_dims", rhs_contracting),
    ];
    for (name, dimensions) in all.iter().filter(|(name, of)| name.contains("contracting") || !of.is_empty()) {
        write!(out, ", {name}={}", Braced(dimensions))?;
    }
    Ok(())
}

/// Writes the dimension numbers and slice sizes of a gather.
pub(super) fn gather(instruction: &HloInstructionProto, out: &mut Text) -> Result<(), Error> {
    let names = [
        "offset_dims",
        "collapsed_slice_dims",
        "start_index_map",
        "operand_batching_dims",
        "start_indices_batching_dims",
    ];
    indexed(instruction.gather_dimension_numbers.clone(), names, out)?;
    Ok(write!(out, ", slice_sizes={}", Braced(&instruction.gather_slice_sizes))?)
}

/// Writes the dimension numbers of a scatter.
pub(super) fn scatter(instruction: &HloInstructionProto, out: &mut Text) -> Result<(), Error> {
    let names = [
        "update_window_dims",
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
    ];
    indexed(instruction.scatter_dimension_numbers.clone(), names, out)
}

fn indexed(numbers: Bytes, names: [&str; 5], out: &mut Text) -> Result<(), Error> {
    let numbers = IndexedDimensionNumbers::decode(numbers).map_err(|error| undecodable(&error))?;
    let IndexedDimensionNumbers { offset, collapsed, indexed, index_vector, operand_batch, indices_batch } = numbers;
    let all = names.into_iter().zip([offset, collapsed, indexed, operand_batch, indices_batch]);
    for (name, dimensions) in all.filter(|(name, of)| !name.contains("batching") || !of.is_empty()) {
        write!(out, ", {name}={}", Braced(&dimensions))?;
    }
    Ok(write!(out, ", index_vector_dim={index_vector}")?)
}

/// Writes the padding of a pad, by dimension.
pub(super) fn padding(instruction: &HloInstructionProto, out: &mut Text) -> Result<(), Error> {
    let config = PaddingConfig::decode(instruction.padding_config.clone()).map_err(|error| undecodable(&error))?;
    for (number, along) in config.dimensions.iter().enumerate() {
        let before = if number == 0 { ", padding=" } else { "x" };
        write!(out, "{before}{}_{}", along.low, along.high)?;
        if along.interior != 0 {
            write!(out, "_{}", along.interior)?;
        }
    }
    Ok(())
}

/// Writes the window of a `reduce-window` or `select-and-scatter`, if it has one.
pub(super) fn sliding(instruction: &HloInstructionProto, out: &mut Text) -> Result<(), Error> {
    let window = Window::decode(instruction.window.clone()).map_err(|error| undecodable(&error))?;
    if window.dimensions.is_empty() { Ok(()) } else { self::window(&window.dimensions, out) }
}

/// Writes the window, the dimension labels and the groups of a convolution.
pub(super) fn convolution(instruction: &HloInstructionProto, out: &mut Text) -> Result<(), Error> {
    sliding(instruction, out)?;
    let numbers = instruction.convolution_dimension_numbers.clone();
    let numbers = ConvolutionDimensionNumbers::decode(numbers).map_err(|error| undecodable(&error))?;
    let input = labels(&numbers.input_spatial, (numbers.input_batch, 'b'), (numbers.input_feature, 'f'));
    let kernel =
        labels(&numbers.kernel_spatial, (numbers.kernel_input_feature, 'i'), (numbers.kernel_output_feature, 'o'));
    let output = labels(&numbers.output_spatial, (numbers.output_batch, 'b'), (numbers.output_feature, 'f'));
    write!(out, ", dim_labels={input}_{kernel}->{output}")?;
    if instruction.feature_group_count > 1 {
        write!(out, ", feature_group_count={}", instruction.feature_group_count)?;
    }
    if instruction.batch_group_count > 1 {
        write!(out, ", batch_group_count={}", instruction.batch_group_count)?;
    }
    Ok(())
}

fn window(dimensions: &[WindowDimension], out: &mut Text) -> Result<(), Error> {
    let joined = |of: &dyn Fn(&WindowDimension) -> String| dimensions.iter().map(of).collect::<Vec<_>>().join("x");
    write!(out, ", window={{size={}", joined(&|at| at.size.to_string()))?;
    if dimensions.iter().any(|at| at.stride != 1) {
        write!(out, " stride={}", joined(&|at| at.stride.to_string()))?;
    }
    if dimensions.iter().any(|at| at.padding_low != 0 || at.padding_high != 0) {
        write!(out, " pad={}", joined(&|at| format!("{}_{}", at.padding_low, at.padding_high)))?;
    }
    if dimensions.iter().any(|at| at.base_dilation != 1) {
        write!(out, " lhs_dilate={}", joined(&|at| at.base_dilation.to_string()))?;
    }
    if dimensions.iter().any(|at| at.window_dilation != 1) {
        write!(out, " rhs_dilate={}", joined(&|at| at.window_dilation.to_string()))?;
    }
    if dimensions.iter().any(|at| at.window_reversal) {
        write!(out, " rhs_reversal={}", joined(&|at| i32::from(at.window_reversal).to_string()))?;
    }
    Ok(out.write_str("}")?)
}

/// A letter for each dimension: the number of a spatial one, or the letter of its role.
fn labels(spatial: &[i64], first: (i64, char), second: (i64, char)) -> String {
    let mut all = vec!['?'; spatial.len() + 2];
    let numbered = (0..).zip(spatial).map(|(number, at)| (*at, char::from_digit(number, 10).unwrap_or('?')));
    for (at, letter) in numbered.chain([first, second]) {
        if let Some(place) = usize::try_from(at).ok().and_then(|at| all.get_mut(at)) {
            *place = letter;
        }
    }
    all.into_iter().collect()
}
