//! The one error type of this crate.

use alloc::{boxed::Box, string::String};
use core::{fmt, ops::Range};

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// The kind of an error, with a stable name.
        ///
        /// New kinds may be added; match with a wildcard arm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $variant,)+
        }

        impl ErrorKind {
            /// The kind's name in snake case, as the command line's JSON prints it.
            ///
            /// ```
            /// # use tilewise::Shape;
            /// let error = "f33[2]".parse::<Shape>().unwrap_err();
            /// assert_eq!(error.kind().as_str(), "unknown_element_type");
            /// ```
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

error_kinds! {
    /// Only white space and comments.
    EmptyInput = "empty_input",
    /// A token that cannot come here, a missing bracket, a bad character, an open comment, a malformed number.
    Syntax = "syntax",
    /// A complete shape, then more text.
    TrailingInput = "trailing_input",
    /// An identifier in the place of an element type that names none.
    UnknownElementType = "unknown_element_type",
    /// A negative bound.
    InvalidDimension = "invalid_dimension",
    /// A number or a size above 2^63 − 1.
    Overflow = "overflow",
    /// Dimensions on `token` or `opaque`.
    DimensionsNotAllowed = "dimensions_not_allowed",
    /// A layout on `token` or `opaque`, or on a tuple.
    LayoutNotAllowed = "layout_not_allowed",
    /// `b(…)` around anything but one array.
    InvalidBuffer = "invalid_buffer",
    /// A minor-to-major order with more or fewer entries than dimensions.
    LayoutRankMismatch = "layout_rank_mismatch",
    /// A dimension number out of range or named twice in minor-to-major.
    NotAPermutation = "not_a_permutation",
    /// An empty tile, a size of 0, a negative size, or `*` in the last place.
    InvalidTile = "invalid_tile",
    /// A tail padding alignment below 1.
    InvalidTailPadding = "invalid_tail_padding",
    /// A negative element size.
    InvalidElementSize = "invalid_element_size",
    /// A memory space outside 0…127.
    InvalidMemorySpace = "invalid_memory_space",
    /// `#(t)` with a type other than u8, u16, u32 or u64.
    InvalidIndexType = "invalid_index_type",
    /// `*(t)` with a type other than u8, u16, u32 or u64.
    InvalidPointerType = "invalid_pointer_type",
    /// `SC(…)` with a dimension out of range or named twice, or indices that do not rise inside the bound.
    InvalidSplitConfig = "invalid_split_config",
    /// A sharding that XLA doesn't know, that contradicts itself, or that doesn't fit its array.
    InvalidSharding = "invalid_sharding",
    /// A negative number of dynamic shape metadata prefix bytes.
    InvalidMetadataPrefix = "invalid_metadata_prefix",
    /// `P(…)`: XLA refuses a physical shape on every array.
    PhysicalShapeNotAllowed = "physical_shape_not_allowed",
    /// `D(…)`: dimension level types of sparse arrays, which XLA drops.
    SparseUnsupported = "sparse_unsupported",
    /// A layout property repeated or out of XLA's order.
    AttributeOrder = "attribute_order",
    /// Tuples nested deeper than [`MAX_NESTING`](crate::MAX_NESTING).
    NestingTooDeep = "nesting_too_deep",
    /// A size or index question about a shape with `?`.
    UnboundedDimension = "unbounded_dimension",
    /// A size or index question about a tuple, token or opaque.
    NotAnArray = "not_an_array",
    /// A size or index question about a shape read without inventing a layout.
    MissingLayout = "missing_layout",
    /// An index component at or past its bound.
    IndexOutOfBounds = "index_out_of_bounds",
    /// An index with more or fewer components than dimensions.
    IndexRankMismatch = "index_rank_mismatch",
    /// An offset at or past the physical element count.
    OffsetOutOfRange = "offset_out_of_range",
    /// A buffer of another length than the call needs.
    BufferLengthMismatch = "buffer_length_mismatch",
    /// Bytes that are no protobuf message, a type number that names no shape, or fields that contradict each other.
    InvalidProto = "invalid_proto",
    /// A name that isn't a TPU generation with known layouts.
    UnknownGeneration = "unknown_generation",
    /// Layouts whose tiles do not nest, of more elements than are compared one by one.
    Undecided = "undecided",
    /// An element type that the system asked about does not take.
    UnsupportedElementType = "unsupported_element_type",
    /// A name that isn't a [`TileFormat`](crate::TileFormat).
    UnknownTileFormat = "unknown_tile_format",
    /// The name of a format that tiles can't express.
    UnsupportedTileFormat = "unsupported_tile_format",
    /// A tile format for a shape whose own layout contradicts it.
    TileFormatConflict = "tile_format_conflict",
    /// A layout that another system's notation can't express, or the reverse.
    NotExpressible = "not_expressible",
    /// A name that isn't a [`Notation`](crate::interop::Notation).
    UnknownNotation = "unknown_notation",
    /// A Pallas kernel's description that contradicts itself, such as a block of another rank than its array.
    InvalidKernel = "invalid_kernel",
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error type of a crate that builds on this one: a kind of its `ErrorKind`, a message, and the error of this crate
/// that it comes from, if any. No part of the interface.
#[doc(hidden)]
#[macro_export]
macro_rules! error_type {
    ($(#[$doc:meta])*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Error {
            kind: ErrorKind,
            message: ::std::string::String,
            source: ::core::option::Option<$crate::Error>,
        }

        impl Error {
            pub(crate) fn new(kind: ErrorKind, message: impl Into<::std::string::String>) -> Self {
                Self { kind, message: message.into(), source: None }
            }

            /// The error that this one comes from.
            pub(crate) fn caused_by(self, source: $crate::Error) -> Self {
                Self { source: Some(source), ..self }
            }

            /// The error's kind.
            #[must_use]
            pub fn kind(&self) -> ErrorKind {
                self.kind
            }
        }

        impl ::core::fmt::Display for Error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(&self.message)
            }
        }

        impl ::core::error::Error for Error {
            fn source(&self) -> ::core::option::Option<&(dyn ::core::error::Error + 'static)> {
                self.source.as_ref().map(|error| error as _)
            }
        }

        impl ::core::fmt::Display for ErrorKind {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// An error: its kind, its place in the text, and a suggestion.
///
/// `Display` gives the message alone. Ask [`kind`](Error::kind) for a name to match on, [`span`](Error::span) for the
/// byte span in the text, and [`help`](Error::help) for a suggestion.
///
/// ```
/// use tilewise::{ErrorKind, Shape};
///
/// let error = "b16[2,3]".parse::<Shape>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::UnknownElementType);
/// assert_eq!(error.span(), Some(0..3));
/// assert_eq!(error.to_string(), "`b16` is not an element type");
/// assert_eq!(error.help(), Some("did you mean `bf16`?"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    span: Option<Range<usize>>,
    message: String,
    help: Option<String>,
}

impl Error {
    /// An error of this kind, for readers of texts that have shapes inside of them: they return the errors of those
    /// shapes beside their own.
    ///
    /// ```
    /// use tilewise::{Error, ErrorKind, Shape};
    ///
    /// /// Reads `SHAPE at ADDRESS`.
    /// fn shape_at(text: &str) -> Result<(Shape, u64), Error> {
    ///     let (shape, length) = Shape::parse_prefix(text)?;
    ///     let address = text[length..].strip_prefix(" at ").and_then(|address| address.parse().ok());
    ///     let error = || Error::new(ErrorKind::Syntax, "expected ` at ` and an address").at(length..text.len());
    ///     Ok((shape, address.ok_or_else(error)?))
    /// }
    /// assert_eq!(shape_at("f32[8] at 64")?.1, 64);
    /// assert_eq!(shape_at("f32[8] on 64").unwrap_err().span(), Some(6..12));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, span: None, message: message.into(), help: None }))
    }

    /// Sets the span, in bytes of the parsed text, unless it has one.
    #[must_use]
    pub fn at(mut self, span: Range<usize>) -> Self {
        self.0.span.get_or_insert(span);
        self
    }

    /// Shifts the span by `by` bytes: the parsed text starts there in a larger one.
    #[must_use]
    pub fn shifted(mut self, by: usize) -> Self {
        self.0.span = self.0.span.map(|span| span.start + by..span.end + by);
        self
    }

    /// Shifts the span back by `start` bytes, into a part of the parsed text of `length` bytes.
    #[must_use]
    pub(crate) fn unshifted(mut self, start: usize, length: usize) -> Self {
        let place = |at: usize| at.saturating_sub(start).min(length);
        self.0.span = self.0.span.map(|span| place(span.start)..place(span.end));
        self
    }

    /// Sets the help: a suggestion to write or ask something else.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// The error's name.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The byte span of the error in the parsed text; `None` if the error is not about a text.
    #[must_use]
    pub fn span(&self) -> Option<Range<usize>> {
        self.0.span.clone()
    }

    /// A suggestion to write or ask something else, if there is one.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("span", &self.0.span)
            .field("message", &self.0.message)
            .field("help", &self.0.help)
            .finish()
    }
}

impl core::error::Error for Error {}

impl From<core::convert::Infallible> for Error {
    fn from(never: core::convert::Infallible) -> Self {
        match never {}
    }
}
