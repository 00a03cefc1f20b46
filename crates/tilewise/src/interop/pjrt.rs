//! PJRT's C API.

use super::{
    jax::{plain, signed, tiles_of_signed},
    modes::not_expressible,
};
use crate::{Error, Layout, Shape, Tiled};
use alloc::{format, vec::Vec};
use core::{fmt, str::FromStr};

/// The fields of `PJRT_Buffer_MemoryLayout_Tiled`; made by [`Tiled::pjrt`].
///
/// The other two forms of the C API are byte strides ([`Tiled::byte_strides`]) and serialized text, which is XLA's own
/// (`Layout`'s [`Display`](fmt::Display), and [`Layout::of_text`] to read it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PjrtTiled {
    /// `minor_to_major`.
    pub minor_to_major: Vec<i64>,
    /// `tile_dims`: the sizes of all tiles, one tile behind the other; XLA's `*` is −2^63.
    pub tile_dims: Vec<i64>,
    /// `tile_dim_sizes`: the number of sizes of each tile.
    pub tile_dim_sizes: Vec<usize>,
}

impl Tiled {
    /// The layout as PJRT's tiled memory layout.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) for `E`, `L`, `S` and `SC`, which only the serialized
    /// text has.
    ///
    /// ```
    /// let pjrt = tilewise::Tiled::new(&"bf16[8,128]{1,0:T(8,128)(2,1)}".parse()?)?.pjrt()?;
    /// assert_eq!((pjrt.tile_dims, pjrt.tile_dim_sizes), (vec![8, 128, 2, 1], vec![2, 2]));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn pjrt(&self) -> Result<PjrtTiled, Error> {
        let layout = plain(self.array(), "PJRT_Buffer_MemoryLayout_Tiled")?;
        if let Some(bits) = layout.element_size_in_bits() {
            return Err(not_expressible(format!("E({bits}): PJRT_Buffer_MemoryLayout_Tiled has no element size")));
        }
        if layout.memory_space() != 0 {
            let message = format!("S({}): a PJRT buffer's memory isn't part of its layout", layout.memory_space());
            return Err(not_expressible(message));
        }
        let tiles = signed(layout);
        Ok(PjrtTiled {
            minor_to_major: layout.minor_to_major().iter().map(|&d| i64::try_from(d).unwrap_or(i64::MAX)).collect(),
            tile_dims: tiles.concat(),
            tile_dim_sizes: tiles.iter().map(Vec::len).collect(),
        })
    }

    /// The layout as one stride in bytes a dimension: `PJRT_Buffer_MemoryLayout_Strides`, and NumPy's `strides`.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) if a tile cuts a dimension in two, or elements
    /// don't take whole bytes.
    ///
    /// ```
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{0,1}".parse()?)?;
    /// assert_eq!(tiled.byte_strides()?, [4, 12]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn byte_strides(&self) -> Result<Vec<u64>, Error> {
        let bits = self.stored_bits();
        if bits % 8 != 0 {
            return Err(not_expressible(format!("E({bits}): strides count whole bytes")));
        }
        let bytes = |stride: u64| {
            stride.checked_mul(bits / 8).ok_or_else(|| not_expressible("a stride is above 2^64 − 1 bytes"))
        };
        self.strides()?.strides.into_iter().map(bytes).collect()
    }
}

impl PjrtTiled {
    /// XLA's layout.
    ///
    /// # Errors
    /// [`ErrorKind::NotAPermutation`](crate::ErrorKind::NotAPermutation) and [`ErrorKind::InvalidTile`](crate::ErrorKind::InvalidTile),
    /// also where `tile_dim_sizes` don't add up to the number of `tile_dims`.
    pub fn layout(&self) -> Result<Layout, Error> {
        let mut rest = &self.tile_dims[..];
        let mut tiles = Vec::new();
        for &size in &self.tile_dim_sizes {
            let Some((tile, behind)) = rest.split_at_checked(size) else { break };
            tiles.push(tile.to_vec());
            rest = behind;
        }
        if !rest.is_empty() || tiles.len() != self.tile_dim_sizes.len() {
            let message = format!("tile_dim_sizes don't add up to the {} tile_dims", self.tile_dims.len());
            return Err(Error::new(crate::ErrorKind::InvalidTile, message));
        }
        let order = self.minor_to_major.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX));
        Layout::new(order)?.with_tiles(tiles_of_signed(&tiles)?)
    }
}

impl Layout {
    /// The layout of a text such as `{1,0:T(8,128)}`, PJRT's serialized layout, for an array of this shape.
    ///
    /// # Errors
    /// As for parsing a shape; the span is in `text`.
    ///
    /// ```
    /// use tilewise::{Layout, Shape};
    ///
    /// let shape: Shape = "f32[3,5]".parse()?;
    /// assert_eq!(Layout::of_text("{0,1:T(8,128)}", &shape)?.minor_to_major(), [0, 1]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn of_text(text: &str, shape: &Shape) -> Result<Self, Error> {
        let bounds = shape.without_layout();
        let before = format!("{bounds}").len();
        let whole = format!("{bounds}{text}");
        let parsed: Shape = whole.parse().map_err(|error: Error| error.unshifted(before, text.len()))?;
        parsed.layout().cloned().ok_or_else(|| not_expressible("only an array has a layout"))
    }
}

impl FromStr for PjrtTiled {
    type Err = Error;

    /// Reads the three fields, each as C initialises it.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) where one is missing.
    fn from_str(text: &str) -> Result<Self, Error> {
        let fields = || {
            Some(Self {
                minor_to_major: field(text, "minor_to_major")?,
                tile_dims: field(text, "tile_dims")?,
                tile_dim_sizes: field(text, "tile_dim_sizes")?,
            })
        };
        fields().ok_or_else(|| not_expressible("PJRT's tiled layout is minor_to_major, tile_dims and tile_dim_sizes"))
    }
}

/// The numbers of a field: `tile_dims = {8, 128}`.
pub(super) fn field<T: FromStr>(text: &str, name: &str) -> Option<Vec<T>> {
    let (_, behind) = text.split_once(&format!("{name} = {{"))?;
    super::numbers(behind.split_once('}')?.0)
}

impl fmt::Display for PjrtTiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "minor_to_major = {{{}}}, tile_dims = {{{}}}, tile_dim_sizes = {{{}}}",
            super::list(&self.minor_to_major),
            super::list(&self.tile_dims),
            super::list(&self.tile_dim_sizes)
        )
    }
}
