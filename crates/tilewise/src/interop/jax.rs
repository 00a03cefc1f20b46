//! JAX's `Layout` and `Format`.

use super::modes::not_expressible;
use crate::{ArrayShape, ElementKind, Error, Layout, Tile, TileDimension, Tiled};
use alloc::{format, string::String, vec::Vec};
use core::{fmt, str::FromStr};

/// `jax.experimental.layout.Layout`: printed as the expression that makes it; made by [`Tiled::jax`].
///
/// The memory space (`S`) is no part of it but of the sharding beside it, in a `Format(layout, sharding)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JaxLayout {
    /// Dimension numbers from the slowest-varying to the fastest.
    pub major_to_minor: Vec<usize>,
    /// The tiles; XLA's `*` is −2^63. `None` is not printed.
    pub tiling: Option<Vec<Vec<i64>>>,
    /// XLA's `E`; 0 if the layout has no `E`.
    pub sub_byte_element_size_in_bits: u64,
}

impl Tiled {
    /// The layout in JAX's words.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) for `L`, `SC`, and tiles of 1- to 7-bit integers without
    /// `E`: where there are tiles, JAX packs them.
    ///
    /// ```
    /// let tiled = tilewise::Tiled::new(&"bf16[8,128]{0,1:T(8,128)(2,1)}".parse()?)?;
    /// assert_eq!(tiled.jax()?.to_string(), "Layout(major_to_minor=(1, 0), tiling=((8, 128), (2, 1)))");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn jax(&self) -> Result<JaxLayout, Error> {
        let array = self.array();
        let layout = plain(array, "JAX's Layout")?;
        let element_type = array.element_type();
        let bits = layout.element_size_in_bits();
        let is_integer = matches!(element_type.kind(), ElementKind::Signed | ElementKind::Unsigned);
        if bits.is_none() && !layout.tiles().is_empty() && is_integer && element_type.bits() < 8 {
            let bits = element_type.bits();
            return Err(not_expressible(format!("JAX packs tiles of {element_type}: its Layout means E({bits})")));
        }
        let tiling = (!layout.tiles().is_empty() || bits.is_some()).then(|| signed(layout));
        Ok(JaxLayout {
            major_to_minor: array.major_to_minor().collect(),
            tiling,
            sub_byte_element_size_in_bits: bits.unwrap_or(0),
        })
    }
}

/// The array's layout; an error if it is missing, or has `L` or `SC`.
pub(super) fn plain<'a>(array: &'a ArrayShape, notation: &str) -> Result<&'a Layout, Error> {
    let layout = array.layout().ok_or_else(|| not_expressible("the shape has no layout"))?;
    if layout.tail_padding_alignment() != 1 {
        let message =
            format!("L({}): {notation} has no padding behind the last element", layout.tail_padding_alignment());
        return Err(not_expressible(message));
    }
    if !layout.split_configs().is_empty() {
        return Err(not_expressible(format!("SC: {notation} has no splits between memories")));
    }
    Ok(layout)
}

/// XLA's tiles as it holds them: `*` is −2^63.
pub(super) fn signed(layout: &Layout) -> Vec<Vec<i64>> {
    let size =
        |dimension: &TileDimension| dimension.size().map_or(i64::MIN, |size| i64::try_from(size).unwrap_or(i64::MAX));
    layout.tiles().iter().map(|tile| tile.dimensions().iter().map(size).collect()).collect()
}

pub(super) fn tiles_of_signed(sizes: &[Vec<i64>]) -> Result<Vec<Tile>, Error> {
    let tile = |sizes: &Vec<i64>| {
        let dimensions = sizes.iter().map(|&size| TileDimension::of_signed(size)).collect::<Result<Vec<_>, _>>()?;
        Tile::from_dimensions(dimensions)
    };
    sizes.iter().map(tile).collect()
}

impl JaxLayout {
    /// XLA's layout.
    ///
    /// # Errors
    /// [`ErrorKind::NotAPermutation`](crate::ErrorKind::NotAPermutation) and [`ErrorKind::InvalidTile`](crate::ErrorKind::InvalidTile).
    ///
    /// ```
    /// use tilewise::interop::JaxLayout;
    ///
    /// let jax = JaxLayout {
    ///     major_to_minor: vec![1, 0],
    ///     tiling: Some(vec![vec![8, 128]]),
    ///     sub_byte_element_size_in_bits: 0,
    /// };
    /// assert_eq!(jax.layout()?.to_string(), "{0,1:T(8,128)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn layout(&self) -> Result<Layout, Error> {
        let layout = Layout::new(self.major_to_minor.iter().rev().copied())?;
        match &self.tiling {
            None => Ok(layout),
            Some(tiling) => layout
                .with_tiles(tiles_of_signed(tiling)?)?
                .with_element_size_in_bits(self.sub_byte_element_size_in_bits),
        }
    }
}

impl FromStr for JaxLayout {
    type Err = Error;

    /// Reads the expression that makes it, with these arguments by name and in this order.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) for anything else.
    fn from_str(text: &str) -> Result<Self, Error> {
        parse(&text.split_whitespace().collect::<String>()).ok_or_else(|| {
            not_expressible("JAX's layout is written such as Layout(major_to_minor=(0, 1), tiling=((8, 128),))")
        })
    }
}

fn parse(text: &str) -> Option<JaxLayout> {
    let (order, mut rest) = text.strip_prefix("Layout(major_to_minor=(")?.strip_suffix(')')?.split_once(')')?;
    let mut jax = JaxLayout { major_to_minor: super::numbers(order)?, tiling: None, sub_byte_element_size_in_bits: 0 };
    if let Some(tiles) = rest.strip_prefix(",tiling=(") {
        let mut tiling = Vec::new();
        rest = tiles;
        while let Some(tile) = rest.strip_prefix('(') {
            let (sizes, behind) = tile.split_once(')')?;
            tiling.push(super::numbers(sizes)?);
            rest = behind.strip_prefix(',').unwrap_or(behind);
        }
        rest = rest.strip_prefix(')')?;
        jax.tiling = Some(tiling);
    } else {
        rest = rest.strip_prefix(",tiling=None").unwrap_or(rest);
    }
    if let Some(bits) = rest.strip_prefix(",sub_byte_element_size_in_bits=") {
        jax.sub_byte_element_size_in_bits = bits.parse().ok()?;
        rest = "";
    }
    rest.is_empty().then_some(jax)
}

impl fmt::Display for JaxLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout(major_to_minor={}", super::tuple(&self.major_to_minor))?;
        if let Some(tiling) = &self.tiling {
            let tiles: Vec<String> = tiling.iter().map(|tile| super::tuple(tile)).collect();
            let separator = if tiles.len() == 1 { "," } else { "" };
            write!(f, ", tiling=({}{separator})", tiles.join(", "))?;
        }
        if self.sub_byte_element_size_in_bits != 0 {
            write!(f, ", sub_byte_element_size_in_bits={}", self.sub_byte_element_size_in_bits)?;
        }
        f.write_str(")")
    }
}
