//! Tiles: the blocks a layout cuts the most minor physical dimensions into.

use crate::{Error, ErrorKind, Layout, MAX_SIZE, inline::InlineVec};
use core::{fmt, num::NonZeroU64, str::FromStr};

/// One dimension of a [`Tile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TileDimension {
    /// `*`: the dimension is merged into the next more minor one before tiling (the documents' −1, XLA's `kCombineDimension`).
    Combined,
    /// The tile's extent along the dimension, in elements; 1 … 2^63 − 1.
    Size(NonZeroU64),
}

impl TileDimension {
    /// A tile's dimension from the signed number of a text or proto: the documents write `*` as −1, XLA as the least
    /// int64.
    #[inline]
    pub(crate) fn of_signed(value: i64) -> Result<Self, Error> {
        if value == -1 || value == i64::MIN {
            return Ok(Self::Combined);
        }
        u64::try_from(value).ok().and_then(NonZeroU64::new).map(Self::Size).ok_or_else(|| {
            invalid(alloc::format!("a tile size must be at least 1, not {value}"))
                .with_help("write `*` to merge a dimension into the next more minor one")
        })
    }

    /// The extent in elements, or `None` for `*`.
    #[must_use]
    pub const fn size(self) -> Option<u64> {
        match self {
            Self::Size(size) => Some(size.get()),
            Self::Combined => None,
        }
    }
}

impl TryFrom<i64> for TileDimension {
    type Error = Error;

    /// The documents write `*` as −1, XLA holds it as the least int64.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidTile`] for 0 and for any other negative number.
    fn try_from(value: i64) -> Result<Self, Error> {
        Self::of_signed(value)
    }
}

impl TryFrom<u64> for TileDimension {
    type Error = Error;

    /// # Errors
    /// [`ErrorKind::InvalidTile`] for 0 and above 2^63 − 1.
    fn try_from(size: u64) -> Result<Self, Error> {
        match NonZeroU64::new(size) {
            Some(nonzero) if size <= MAX_SIZE => Ok(Self::Size(nonzero)),
            _ => Err(invalid(alloc::format!("a tile size must be 1 … 2^63 − 1, not {size}"))),
        }
    }
}

impl Default for TileDimension {
    fn default() -> Self {
        Self::Size(NonZeroU64::MIN)
    }
}

impl fmt::Display for TileDimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Combined => f.write_str("*"),
            Self::Size(size) => size.fmt(f),
        }
    }
}

/// A tile such as `(8,128)` or `(*,*,2,*,3)`: sizes from major to minor, for the most minor physical dimensions.
///
/// A tile shorter than what it is applied to leaves the leading dimensions alone; for a longer one, missing major
/// dimensions have size 1 (the tiled-layout document).
///
/// ```
/// use tilewise::{Tile, TileDimension};
///
/// assert_eq!(Tile::new([8, 128])?.to_string(), "(8,128)");
/// let flat = Tile::from_dimensions([TileDimension::Combined, TileDimension::try_from(6_u64)?])?;
/// assert_eq!(flat, "(*,6)".parse()?);
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tile {
    dimensions: InlineVec<TileDimension, 2>,
}

impl Tile {
    /// A tile of these sizes in elements, major to minor.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidTile`] if there are none, or one is 0 or above 2^63 − 1.
    pub fn new(sizes: impl IntoIterator<Item = u64>) -> Result<Self, Error> {
        let mut dimensions = InlineVec::new();
        for size in sizes {
            dimensions.push(TileDimension::try_from(size)?);
        }
        Self::of(dimensions)
    }

    /// A tile of these dimensions, `*` among them, major to minor.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidTile`] if there are none, or the last is `*`: it has nothing more minor to merge into.
    pub fn from_dimensions(dimensions: impl IntoIterator<Item = TileDimension>) -> Result<Self, Error> {
        Self::of(dimensions.into_iter().collect())
    }

    #[inline]
    pub(crate) fn of(dimensions: InlineVec<TileDimension, 2>) -> Result<Self, Error> {
        match dimensions.last() {
            None => Err(invalid("a tile needs at least one size")),
            Some(TileDimension::Combined) => {
                Err(invalid("`*` merges a dimension into the next more minor one, and the last has none"))
            }
            Some(TileDimension::Size(_)) => Ok(Self { dimensions }),
        }
    }

    /// The tile's dimensions, major to minor; never empty.
    #[must_use]
    pub fn dimensions(&self) -> &[TileDimension] {
        &self.dimensions
    }
}

fn invalid(message: impl Into<alloc::string::String>) -> Error {
    Error::new(ErrorKind::InvalidTile, message)
}

impl<const N: usize> TryFrom<[u64; N]> for Tile {
    type Error = Error;

    fn try_from(sizes: [u64; N]) -> Result<Self, Error> {
        Self::new(sizes)
    }
}

impl FromStr for Tile {
    type Err = Error;

    /// Reads a tile as it stands behind `T` in XLA's text of a layout: `(8,128)`.
    ///
    /// # Errors
    /// As for the text of a shape, with the span.
    ///
    /// ```
    /// use tilewise::Tile;
    ///
    /// assert_eq!("(8,128)".parse(), Tile::new([8, 128]));
    /// assert!("(8,128)(2,1)".parse::<Tile>().is_err());
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, Error> {
        const BEFORE: &str = "{:T";
        let whole = alloc::format!("{BEFORE}{text}}}");
        let layout: Layout = whole.parse().map_err(|error: Error| {
            // An error at the added brace, or behind it, is one at the text's end: take that of the text without the
            // brace.
            let end = BEFORE.len() + text.len();
            let is_behind = error.span().is_some_and(|span| span.start >= end);
            let at_end = whole[..end].parse::<Layout>().err().filter(|_| is_behind);
            at_end.unwrap_or(error).unshifted(BEFORE.len(), text.len())
        })?;
        // Further tiles, and other parts of a layout, are no part of a tile.
        match layout.tiles() {
            [tile] if layout == Layout::row_major(0).with_tiles([tile.clone()])? => Ok(tile.clone()),
            _ => Err(Error::new(ErrorKind::TrailingInput, "this is more than one tile").at(0..text.len())),
        }
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        crate::text::join(f, &self.dimensions)?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_has_no_meaning() {
        for bad in [Tile::new([]), Tile::new([0]), Tile::new([2, 0]), Tile::new([1 << 63])] {
            assert_eq!(bad.unwrap_err().kind(), ErrorKind::InvalidTile);
        }
        assert!(Tile::from_dimensions([TileDimension::default(), TileDimension::Combined]).is_err());
    }
}
