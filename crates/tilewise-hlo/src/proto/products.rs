//! The attributes of convolutions and dots as XLA prints them (`window_util::ToString` in xla/window_util.cc,
//! `ConvolutionDimensionNumbersToString` and `DotDimensionNumbersToString` in xla/hlo/ir/hlo_instruction.cc).

use std::fmt::Write as _;

use prost::Message;

use super::messages::{ConvolutionDimensionNumbers, DotDimensionNumbers, HloInstructionProto, Window, WindowDimension};
use super::text::{Braced, Text};
use super::undecodable;
use crate::error::Error;

/// Writes which dimensions of a dot meet.
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

/// Writes the window of a convolution, and which dimensions it runs over.
pub(super) fn convolution(instruction: &HloInstructionProto, out: &mut Text) -> Result<(), Error> {
    let window = Window::decode(instruction.window.clone()).map_err(|error| undecodable(&error))?;
    if !window.dimensions.is_empty() {
        self::window(&window.dimensions, out)?;
    }
    let numbers = instruction.convolution_dimension_numbers.clone();
    let numbers = ConvolutionDimensionNumbers::decode(numbers).map_err(|error| undecodable(&error))?;
    let input = labels(&numbers.input_spatial, (numbers.input_batch, 'b'), (numbers.input_feature, 'f'));
    let kernel =
        labels(&numbers.kernel_spatial, (numbers.kernel_input_feature, 'i'), (numbers.kernel_output_feature, 'o'));
    let output = labels(&numbers.output_spatial, (numbers.output_batch, 'b'), (numbers.output_feature, 'f'));
    write!(out, ", dim_labels={input}_{kernel}->{output}")?;
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
    Ok(out.write_str("}")?)
}

/// A letter for each dimension: the number of a spatial one, or what it is.
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
