//! Mosaic's TPU dialect: `#tpu.tiled` of memrefs and `#tpu.vpad` of vectors.

use super::{jax::plain, modes::not_expressible, numbers};
use crate::{ElementType, Error, Layout, Shape, Tile, TileDimension, Tiled};
use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::{fmt, str::FromStr};

/// `#tpu.tiled<(8,128)(2,1),[2,1]>`, the layout of a memref in Mosaic: tiles, and a stride in whole tiles for each
/// dimension; made by [`Tiled::mosaic`] or parsed. The memory space (`S`) stands beside it, in the memref's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TpuTiled {
    /// The tiles, all inside the first.
    pub tiles: Vec<Tile>,
    /// By dimension, in tiles of the first size; a dimension that no tile covers counts single elements.
    pub tile_strides: Vec<u64>,
}

/// `#tpu.vpad<"32,{*,128},(8,128)">`, the layout of a vector in registers: bits of an element, the sublane and lane where
/// the values start (`*`: they are repeated), and a tile; made by [`TpuTiled::vpad`] or parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpuVpad {
    /// Bits of an element.
    pub bitwidth: u64,
    /// The row and the column in the first tile at which the values start; `None` is `*`.
    pub offsets: [Option<u64>; 2],
    /// The tile, in rows and columns.
    pub tiling: [u64; 2],
    /// Dimensions of bound 1 that are added before tiling: `-1`, `-2`, or `-2,-1`.
    pub implicit_dim: Option<&'static str>,
}

const IMPLICIT: [&str; 3] = ["-2,-1", "-1", "-2"];

impl Tiled {
    /// The layout as Mosaic's `#tpu.tiled`.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) for an order that is not row-major, for `*`, tiles longer
    /// than the rank, tiles that reach out of the first, and for `E`, `L` and `SC`.
    ///
    /// ```
    /// let mosaic = tilewise::Tiled::new(&"bf16[16,256]{1,0:T(8,128)(2,1)}".parse()?)?.mosaic()?;
    /// assert_eq!(mosaic.to_string(), "#tpu.tiled<(8,128)(2,1),[2,1]>");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn mosaic(&self) -> Result<TpuTiled, Error> {
        let array = self.array();
        let layout = plain(array, "#tpu.tiled")?;
        if !array.major_to_minor().eq(0..array.rank()) {
            return Err(not_expressible(format!("{layout}: a Mosaic memref is row-major")));
        }
        if self.stored_bits() != u64::from(array.element_type().bits()) {
            let bits = self.stored_bits();
            let message =
                format!("{bits} bits an element: a Mosaic memref packs {} by its own bits", array.element_type());
            return Err(not_expressible(message));
        }
        Ok(TpuTiled { tiles: layout.tiles().to_vec(), tile_strides: tile_strides(self)? })
    }
}

/// The strides of tiles without gaps, after a check that Mosaic takes the tiles.
fn tile_strides(tiled: &Tiled) -> Result<Vec<u64>, Error> {
    let rank = tiled.logical_dimensions().len();
    let tiles = tiled.array().layout().map_or(&[][..], Layout::tiles);
    // The axes of memory that a tile may cut: the array's, then those inside the first tile, to which each tile adds
    // its own.
    let mut reach = rank;
    for (at, tile) in tiles.iter().enumerate() {
        let axes = tile.dimensions().len();
        if tile.dimensions().contains(&TileDimension::Combined) {
            return Err(not_expressible(format!("{tile}: Mosaic's tiles have no `*`")));
        }
        if axes > reach {
            let message = if at == 0 { "is longer than the rank" } else { "reaches out of the first tile" };
            return Err(not_expressible(format!("tile {tile} {message}; Mosaic takes none that does")));
        }
        reach = if at == 0 { axes } else { reach.saturating_add(axes) };
    }
    let levels = tiled.first_tile_levels(1);
    let tiles = levels.first().map_or(tiled.logical_dimensions(), |level| &level.physical_dimensions()[..rank]);
    let mut strides = vec![1; rank];
    for at in (1..rank).rev() {
        strides[at - 1] = tiles[at].saturating_mul(strides[at]);
    }
    Ok(strides)
}

impl TpuTiled {
    /// XLA's layout of an array with these bounds.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) where the tiles leave gaps (the memref is a slice of
    /// another), or are not Mosaic's; [`ErrorKind::Overflow`](crate::ErrorKind::Overflow) for more than 2^63 − 1 elements.
    ///
    /// ```
    /// let mosaic: tilewise::interop::TpuTiled = "#tpu.tiled<(8,128)(2,1),[2,1]>".parse()?;
    /// assert_eq!(mosaic.layout(&[16, 256])?.to_string(), "{1,0:T(8,128)(2,1)}");
    /// assert!(mosaic.layout(&[16, 512]).is_err()); // there a row of tiles has four
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn layout(&self, dimensions: &[u64]) -> Result<Layout, Error> {
        let layout = Layout::row_major(dimensions.len()).with_tiles(self.tiles.iter().cloned())?;
        // Tiles are counted in elements, whatever those are.
        let array = Shape::array(ElementType::U8, dimensions.iter().copied())?.with_layout(layout.clone())?;
        let expected = tile_strides(&Tiled::new(&array)?)?;
        if self.tile_strides != expected {
            let (given, expected) = (super::list(&self.tile_strides), super::list(&expected));
            let message = format!("strides of [{given}] tiles, and the array without gaps has [{expected}]");
            return Err(not_expressible(message).with_help("the memref is a slice; a layout is of a whole array"));
        }
        Ok(layout)
    }

    /// The registers that a load of whole tiles fills: `#tpu.vpad`, starting at the first element.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) unless the tile is of rows and columns, packed in pairs, fours or
    /// eights of rows to 32 bits.
    ///
    /// ```
    /// let mosaic = tilewise::Tiled::new(&"bf16[16,256]{1,0:T(8,128)(2,1)}".parse()?)?.mosaic()?;
    /// assert_eq!(mosaic.vpad(16)?.to_string(), "#tpu.vpad<\"16,{0,0},(8,128)\">");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn vpad(&self, bitwidth: u64) -> Result<TpuVpad, Error> {
        let sizes = |tile: &Tile| -> Vec<u64> { tile.dimensions().iter().filter_map(|d| d.size()).collect() };
        let mut tiles = self.tiles.iter().map(sizes);
        let tiling = tiles.next().and_then(|tile| <[u64; 2]>::try_from(tile).ok());
        let packing: Vec<Vec<u64>> = tiles.collect();
        let is_packed = match bitwidth {
            32 => packing.is_empty(),
            1..32 if 32 % bitwidth == 0 => packing == [[32 / bitwidth, 1]],
            _ => false,
        };
        match tiling.filter(|_| is_packed) {
            Some(tiling) => Ok(TpuVpad { bitwidth, offsets: [Some(0), Some(0)], tiling, implicit_dim: None }),
            None => {
                Err(not_expressible(format!("registers hold tiles of rows and columns packed to 32 bits, not {self}")))
            }
        }
    }
}

impl TpuVpad {
    /// The layout of an array in memory whose whole tiles fill such registers.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) for repeated values (`*`), values that start inside a tile,
    /// implicit dimensions, and a rank below 2.
    ///
    /// ```
    /// use tilewise::interop::TpuVpad;
    ///
    /// let vpad: TpuVpad = "#tpu.vpad<\"16,{0,0},(16,128)\">".parse()?;
    /// assert_eq!(vpad.layout(2)?.to_string(), "{1,0:T(16,128)(2,1)}");
    /// let repeated: TpuVpad = "#tpu.vpad<\"32,{*,128},(8,128)\">".parse()?;
    /// assert!(repeated.layout(2).is_err());
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn layout(&self, rank: usize) -> Result<Layout, Error> {
        let packing = 32_u64.checked_div(self.bitwidth).filter(|packing| *packing > 0 && packing * self.bitwidth == 32);
        let reason = match (self.offsets, self.implicit_dim, packing) {
            ([Some(0), Some(0)], None, Some(packing)) if rank >= 2 => {
                let mut tiles = vec![Tile::new(self.tiling)?];
                if packing > 1 {
                    tiles.push(Tile::new([packing, 1])?);
                }
                return Layout::row_major(rank).with_tiles(tiles);
            }
            ([None, _] | [_, None], ..) => "`*` repeats values, and a layout has each element once",
            (_, Some(_), _) => "an implicit dimension is none of the array's",
            (_, _, None) => "elements don't fill 32 bits",
            ([Some(0), Some(0)], ..) => "a vector of rows and columns has rank 2 or more",
            _ => "the values start inside a tile, and a layout starts at its first element",
        };
        Err(not_expressible(format!("{self}: {reason}")))
    }
}

impl fmt::Display for TpuTiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tiles: String = self.tiles.iter().map(Tile::to_string).collect();
        let strides: Vec<String> = self.tile_strides.iter().map(u64::to_string).collect();
        write!(f, "#tpu.tiled<{tiles},[{}]>", strides.join(","))
    }
}

impl fmt::Display for TpuVpad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = |offset: Option<u64>| offset.map_or("*".into(), |offset| offset.to_string());
        let [sublane, lane] = self.offsets.map(offset);
        let [rows, columns] = self.tiling;
        write!(f, "#tpu.vpad<\"{},{{{sublane},{lane}}},({rows},{columns})", self.bitwidth)?;
        if let Some(dimension) = self.implicit_dim {
            write!(f, ",{dimension}")?;
        }
        f.write_str("\">")
    }
}

impl FromStr for TpuTiled {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) unless the text is of the form `#tpu.tiled<(…)…,[…]>`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let malformed = || not_expressible("a tiled layout is written such as #tpu.tiled<(8,128)(2,1),[2,1]>");
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let inner = text.strip_prefix("#tpu.tiled<").and_then(|text| text.strip_suffix("]>")).ok_or_else(malformed)?;
        let (tiles, strides) =
            inner.split_once(",[").or_else(|| Some(("", inner.strip_prefix('[')?))).ok_or_else(malformed)?;
        let mut sizes = Vec::new();
        let mut rest = tiles;
        while !rest.is_empty() {
            let (tile, behind) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(malformed)?;
            sizes.push(Tile::new(numbers(tile).ok_or_else(malformed)?)?);
            rest = behind;
        }
        Ok(Self { tiles: sizes, tile_strides: numbers(strides).ok_or_else(malformed)? })
    }
}

impl FromStr for TpuVpad {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) unless the text is of the form
    /// `#tpu.vpad<"32,{*,128},(8,128)">`, with `,-1`, `,-2` or `,-2,-1` behind the tile where a dimension is implicit.
    fn from_str(text: &str) -> Result<Self, Error> {
        parse_vpad(text)
            .ok_or_else(|| not_expressible("a vector's layout is written such as #tpu.vpad<\"32,{*,128},(8,128)\">"))
    }
}

fn parse_vpad(text: &str) -> Option<TpuVpad> {
    let inner = text.trim().strip_prefix("#tpu.vpad<\"")?.strip_suffix("\">")?;
    let (bitwidth, rest) = inner.split_once(",{")?;
    let (offsets, rest) = rest.split_once("},(")?;
    let (tiling, rest) = rest.split_once(')')?;
    let (sublane, lane) = offsets.split_once(',')?;
    let offset = |text: &str| if text == "*" { Some(None) } else { text.parse().ok().map(Some) };
    Some(TpuVpad {
        bitwidth: bitwidth.parse().ok()?,
        offsets: [offset(sublane)?, offset(lane)?],
        tiling: numbers(tiling)?.try_into().ok()?,
        implicit_dim: match rest.strip_prefix(',') {
            Some(dimension) => Some(*IMPLICIT.iter().find(|known| **known == dimension)?),
            None if rest.is_empty() => None,
            None => return None,
        },
    })
}
