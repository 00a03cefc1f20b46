//! Shapes in all forms in which tools print shapes alone.

use crate::{Error, Shape};
use alloc::string::ToString;

impl Shape {
    /// Reads a shape in any of these forms: XLA's text as [`str::parse`] does; with the feature `notations`, `SHAPE@NAME` with a
    /// [`TileFormat`](crate::TileFormat); with the feature `proto`, a `ShapeProto` in protobuf's text format. A missing
    /// layout becomes the default, major to minor; but a message's stays missing, as in XLA.
    ///
    /// # Errors
    /// The errors of the form that the text begins like, with the span.
    ///
    /// ```
    /// use tilewise::{ErrorKind, Shape};
    ///
    /// # #[cfg(feature = "notations")] {
    /// let shape = Shape::parse_any("s8[64,96]@cublaslt-col32")?;
    /// assert_eq!(shape.to_string(), "s8[64,96]{0,1:T(32,1)}");
    ///
    /// let error = Shape::parse_any("s8[64,96]@swizzle-128b").unwrap_err();
    /// assert_eq!((error.kind(), error.span()), (ErrorKind::UnsupportedTileFormat, Some(10..22)));
    /// # }
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn parse_any(text: &str) -> Result<Self, Error> {
        text.parse().or_else(|error| match other_form(text, error)? {
            (shape, true) => Ok(shape),
            (shape, false) => shape.to_string().parse(),
        })
    }

    /// As [`parse_any`](Self::parse_any), but leaves a missing layout missing.
    ///
    /// # Errors
    /// As for [`parse_any`](Self::parse_any).
    pub fn parse_any_as_written(text: &str) -> Result<Self, Error> {
        Self::parse_as_written(text).or_else(|error| Ok(other_form(text, error)?.0))
    }
}

/// Reads another form of a text that XLA's parser of shapes refused with `error`, and tells whether it is a message. Not
/// before: the text's comments may contain `@`.
#[cfg_attr(
    not(any(feature = "notations", feature = "proto")),
    expect(unused_variables, reason = "features add the other forms")
)]
fn other_form(text: &str, error: Error) -> Result<(Shape, bool), Error> {
    #[cfg(feature = "proto")]
    if Shape::begins_like_text_proto(text) {
        return Ok((Shape::from_text_proto(text)?, true));
    }
    #[cfg(feature = "notations")]
    if let Some(read) = Shape::parse_with_tile_format(text) {
        return Ok((read?, false));
    }
    Err(error)
}
