//! Dimensions: static, bounded dynamic and unbounded dynamic.

use crate::{Error, ErrorKind, MAX_SIZE};
use alloc::format;
use core::fmt;

/// One dimension of an array: `5`, `<=5` (dynamic, at most 5) or `?` (dynamic, unbounded).
///
/// ```
/// use tilewise::Dimension;
///
/// assert_eq!(Dimension::bounded(5)?.to_string(), "<=5");
/// assert_eq!((Dimension::bounded(5)?.bound(), Dimension::UNBOUNDED.bound()), (Some(5), None));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Dimension {
    /// Below 2^63, or [`NO_BOUND`].
    bound: u64,
    dynamic: bool,
}

const NO_BOUND: u64 = u64::MAX;

impl Dimension {
    /// `?`: dynamic, without a bound.
    pub const UNBOUNDED: Self = Self { bound: NO_BOUND, dynamic: true };

    /// A dimension of exactly this size; 0 is legal.
    ///
    /// # Errors
    /// [`ErrorKind::Overflow`] above 2^63 − 1.
    #[inline]
    pub fn fixed(size: u64) -> Result<Self, Error> {
        if size <= MAX_SIZE { Ok(Self { bound: size, dynamic: false }) } else { Err(overflow(size)) }
    }

    /// A dynamic dimension of at most this size, `<=n`. All arithmetic uses the bound.
    ///
    /// # Errors
    /// [`ErrorKind::Overflow`] above 2^63 − 1.
    #[inline]
    pub fn bounded(bound: u64) -> Result<Self, Error> {
        if bound <= MAX_SIZE { Ok(Self { bound, dynamic: true }) } else { Err(overflow(bound)) }
    }

    /// The size, or the bound of a bounded dynamic dimension; `None` for `?`.
    #[must_use]
    pub const fn bound(self) -> Option<u64> {
        if self.is_unbounded() { None } else { Some(self.bound) }
    }

    /// Whether the size is known only at run time: `<=n` or `?`.
    #[must_use]
    pub const fn is_dynamic(self) -> bool {
        self.dynamic
    }

    /// Whether this is `?`.
    #[must_use]
    pub const fn is_unbounded(self) -> bool {
        self.bound == NO_BOUND
    }
}

/// A bound from the signed number of a text or proto.
#[inline]
pub(crate) fn bound_of_signed(value: i64) -> Result<u64, Error> {
    let negative = |_| Error::new(ErrorKind::InvalidDimension, format!("a dimension can't be negative: {value}"));
    u64::try_from(value).map_err(negative)
}

fn overflow(size: u64) -> Error {
    Error::new(ErrorKind::Overflow, format!("a dimension must be below 2^63, not {size}"))
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bound() {
            None => f.write_str("?"),
            Some(bound) if self.is_dynamic() => write!(f, "<={bound}"),
            Some(size) => size.fmt(f),
        }
    }
}

impl fmt::Debug for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
