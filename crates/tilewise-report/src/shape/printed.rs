//! Shapes as programs print them.

use tilewise::{Error, Shape};
use tilewise_hlo::OperationLine;

/// A shape in a form that [`Shape::parse_any_as_written`] reads, or the result of a line of HLO text.
///
/// # Errors
/// Those of the form that the text begins like, with the span.
pub(crate) fn printed_shape(text: &str) -> Result<Shape, Error> {
    Shape::parse_any_as_written(text).or_else(|error| {
        let is_line = OperationLine::begins(text) && !Shape::begins_like_text_proto(text);
        if is_line { text.parse().map(|line: OperationLine| line.result) } else { Err(error) }
    })
}
