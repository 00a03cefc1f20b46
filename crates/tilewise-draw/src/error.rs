//! The one error type of this crate.

tilewise::error_type! {
    /// Why there is no picture.
    ///
    /// Match on its [`kind`](Error::kind); its display is a message that names the problem and its place. Its `source` is
    /// the error of [`tilewise`], if any.
    ///
    /// ```
    /// use tilewise_draw::{ErrorKind, Options, Scene};
    ///
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let error = Scene::of(&tiled, &Options::new().with_highlight([3, 0])).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::IndexOutOfBounds);
    /// assert_eq!(error.to_string(), "index 3 is outside dimension 0, which has bound 3");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
}

/// An index that the core refuses.
impl From<tilewise::Error> for Error {
    fn from(error: tilewise::Error) -> Self {
        let kind = match error.kind() {
            tilewise::ErrorKind::IndexRankMismatch => ErrorKind::IndexRankMismatch,
            _ => ErrorKind::IndexOutOfBounds,
        };
        Self::new(kind, error.to_string()).caused_by(error)
    }
}

/// The kinds of [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A highlighted or sliced index at or past its bound, or the number of a dimension that the array doesn't have.
    IndexOutOfBounds,
    /// A highlighted index with more or fewer components than dimensions.
    IndexRankMismatch,
    /// One dimension sliced at two indices.
    InvalidSlice,
    /// The two layouts to compare are of different arrays.
    ShapeMismatch,
    /// A PNG scale that isn't a positive number.
    InvalidScale,
    /// A PNG of more pixels than the limit.
    ImageTooLarge,
    /// The image can't be encoded.
    Rendering,
}

impl ErrorKind {
    /// A stable name in snake case, for machines.
    ///
    /// ```
    /// assert_eq!(tilewise_draw::ErrorKind::InvalidSlice.as_str(), "invalid_slice");
    /// ```
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IndexOutOfBounds => "index_out_of_bounds",
            Self::IndexRankMismatch => "index_rank_mismatch",
            Self::InvalidSlice => "invalid_slice",
            Self::ShapeMismatch => "shape_mismatch",
            Self::InvalidScale => "invalid_scale",
            Self::ImageTooLarge => "image_too_large",
            Self::Rendering => "rendering",
        }
    }
}
