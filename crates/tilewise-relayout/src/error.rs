//! The one error type of this crate.

tilewise::error_type! {
    /// Why two layouts make no plan, or a plan does not run on two buffers. Its `source` is the core's error, of
    /// [`ErrorKind::Layout`].
    ///
    /// ```
    /// use tilewise_relayout::{ErrorKind, Plan};
    ///
    /// let plan = Plan::new(&"f32[3,5]".parse()?, &"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let error = plan.run(&[0; 59], &mut [0; 96]).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::BufferLengthMismatch);
    /// assert_eq!(error.to_string(), "the source has 59 bytes, its layout takes 60");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
}

impl From<tilewise::Error> for Error {
    fn from(error: tilewise::Error) -> Self {
        let message = match error.help() {
            Some(help) => format!("{error}; {help}"),
            None => error.to_string(),
        };
        Self::new(ErrorKind::Layout(error.kind()), message).caused_by(error)
    }
}

/// The kind of an error, with a stable name.
///
/// New kinds may be added; match with a wildcard arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The two shapes differ in their dimensions or in their element type.
    ShapeMismatch,
    /// A buffer of another length than the layout takes.
    BufferLengthMismatch,
    /// A layout's `E(n)` has fewer bits than the element type.
    UnsupportedElementSize,
    /// One of the shapes has no usable layout, or is larger than XLA allows: the core's error.
    Layout(tilewise::ErrorKind),
}

impl ErrorKind {
    /// The kind's name in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ShapeMismatch => "shape_mismatch",
            Self::BufferLengthMismatch => "buffer_length_mismatch",
            Self::UnsupportedElementSize => "unsupported_element_size",
            Self::Layout(kind) => kind.as_str(),
        }
    }
}
