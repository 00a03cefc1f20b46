//! The sizes of arrays, with and without padding, and the axes that are padded.

use crate::{
    ArrayShape, Error, MAX_SIZE, Tiled,
    checked::{bytes, product, round_up},
    tiled::{Step, Tiling, too_large},
};
use alloc::{vec, vec::Vec};
use core::fmt;

/// The sizes of an array, with and without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Sizes {
    /// Elements the buffer holds, all padding included.
    pub physical_elements: u64,
    /// Bytes the data needs without padding: elements × the smaller of the type's natural storage and the layout's element size,
    /// rounded up to whole bytes.
    pub logical_bytes: u64,
    /// Bytes the array takes in memory: physical elements × the stored element size, rounded up to whole bytes once.
    pub physical_bytes: u64,
}

impl Sizes {
    /// Bytes that hold no data: physical − logical.
    #[must_use]
    pub const fn padding_bytes(&self) -> u64 {
        self.physical_bytes.saturating_sub(self.logical_bytes)
    }

    /// The physical size divided by the logical one; 1 for an array without elements.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn expansion(&self) -> f64 {
        if self.logical_bytes == 0 { 1.0 } else { self.physical_bytes as f64 / self.logical_bytes as f64 }
    }
}

/// An axis that a tile had to pad: one cause of padding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaddedAxis {
    /// The logical dimensions the axis is made of: one, several where `*` merged them, none where the tile is longer than the rank.
    pub dimensions: Vec<usize>,
    /// The axis' bound before padding, in elements.
    pub bound: u64,
    /// The bound rounded up to the tile.
    pub padded: u64,
    /// The tile's extent along the axis, in elements.
    pub tile: u64,
    /// The number of more minor axes of the same tile: in a TPU's first tile, 0 lies on the lanes and 1 on the
    /// sublanes.
    pub from_minor: usize,
    /// The number of the tile in the layout, 0 the first.
    pub level: usize,
    /// Whether the axis numbers the blocks of the tile before, and their number isn't a multiple of those that this
    /// tile joins.
    pub is_across: bool,
}

impl PaddedAxis {
    /// The padded bound divided by the bound.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn expansion(&self) -> f64 {
        self.padded as f64 / self.bound as f64
    }
}

impl fmt::Display for PaddedAxis {
    /// One sentence: `dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, padded, tile, .. } = self;
        if self.dimensions.is_empty() && self.level == 0 {
            let unit = match self.from_minor {
                0 => "elements",
                1 => "rows",
                _ => "blocks",
            };
            return write!(f, "the array has fewer dimensions than its tile: {bound} of {tile} {unit} used");
        }
        if self.is_across {
            let blocks = if *bound == 1 { "tile" } else { "tiles" };
            write!(f, "the {bound} {blocks}")?;
            match self.dimensions[..] {
                [] => {}
                [dimension] => write!(f, " along dimension {dimension}")?,
                ref merged => {
                    f.write_str(" along dimensions ")?;
                    crate::text::join(f, merged)?;
                }
            }
            let are = if *bound == 1 { "is" } else { "are" };
            return write!(f, " {are} padded to {padded}, a multiple of the {tile} that a later tile joins");
        }
        match self.dimensions[..] {
            [] => write!(f, "a dimension added by the tile (size {bound})")?,
            [dimension] if self.level == 0 => write!(f, "dimension {dimension} (size {bound})")?,
            [dimension] => write!(f, "dimension {dimension} inside its tile (size {bound})")?,
            ref merged => {
                f.write_str("dimensions ")?;
                crate::text::join(f, merged)?;
                write!(f, " merged (size {bound})")?;
            }
        }
        // The vector registers of a TPU: 128 lanes, and under them 8 sublanes of 32 bits.
        let place = match (self.level, self.from_minor, tile) {
            (0, 0, 128) => "128 lanes",
            (0, 1, 2 | 4 | 8 | 16 | 32 | 64 | 128 | 256) => "rows of a tile",
            _ => "tile",
        };
        match place {
            "128 lanes" if padded == tile => write!(f, " lies on the 128 lanes: {bound} of 128 used"),
            "128 lanes" => write!(f, " lies on the 128 lanes: padded to {padded}"),
            "rows of a tile" if padded == tile => {
                write!(f, " lies on the {tile} rows of a tile: {bound} of {tile} used")
            }
            "rows of a tile" => write!(f, " lies on the {tile} rows of a tile: padded to {padded}"),
            _ => write!(f, " is padded to {padded}, a multiple of the tile's {tile}"),
        }
    }
}

impl Tiled {
    /// [`Sizes::logical_bytes`].
    #[doc(alias = "ByteSizeOfElements")]
    #[must_use]
    pub fn logical_bytes(&self) -> u64 {
        self.sizes().logical_bytes
    }

    /// [`Sizes::physical_bytes`].
    #[doc(alias = "ArraySize")]
    #[must_use]
    pub fn physical_bytes(&self) -> u64 {
        self.sizes().physical_bytes
    }

    /// [`Sizes::padding_bytes`].
    #[must_use]
    pub fn padding_bytes(&self) -> u64 {
        self.sizes().padding_bytes()
    }

    /// [`Sizes::expansion`].
    #[must_use]
    pub fn expansion(&self) -> f64 {
        self.sizes().expansion()
    }

    /// The axes that tiles had to pad, the largest expansion first. Tail padding and element sizes are not among them.
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[400000,12]{1,0:T(8,128)}".parse()?)?;
    /// let [padded] = &tiled.padded_axes()[..] else { panic!("one cause") };
    /// assert_eq!(padded.to_string(), "dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn padded_axes(&self) -> Vec<PaddedAxis> {
        let mut origins: Vec<Vec<usize>> = vec![Vec::new(); self.bounds.len()];
        for (number, origin) in origins[..self.array.rank()].iter_mut().enumerate() {
            origin.push(number);
        }
        let mut padded = Vec::new();
        // The tile inside whose blocks each axis lies.
        let mut inside = vec![None; self.bounds.len()];
        let mut start = 0;
        for (level, &end) in self.tile_ends.iter().enumerate() {
            let steps = &self.steps[start..end];
            start = end;
            let mut from_minor = steps.iter().filter(|step| matches!(step, Step::Split { .. })).count();
            for step in steps {
                match step {
                    Step::Prepend { .. } => {}
                    Step::Merge { parts, merged } => {
                        let mut dimensions: Vec<usize> = parts.iter().flat_map(|&part| origins[part].clone()).collect();
                        dimensions.sort_unstable();
                        dimensions.dedup();
                        origins[*merged] = dimensions;
                        inside[*merged] = parts.last().and_then(|&part| inside[part]);
                    }
                    &Step::Split { axis, tile, outer, inner } => {
                        from_minor -= 1;
                        let bound = self.bounds[axis];
                        let whole = self.bounds[outer].saturating_mul(tile);
                        if whole != bound {
                            let is_across = level > 0 && inside[axis] != Some(level - 1);
                            let dimensions = origins[axis].clone();
                            padded.push(PaddedAxis {
                                dimensions,
                                bound,
                                padded: whole,
                                tile,
                                from_minor,
                                level,
                                is_across,
                            });
                        }
                        inside[inner] = Some(level);
                        origins[outer] = origins[axis].clone();
                        origins[inner] = core::mem::take(&mut origins[axis]);
                    }
                }
            }
        }
        padded.sort_by(|a, b| b.expansion().total_cmp(&a.expansion()));
        padded
    }
}

impl ArrayShape {
    /// The sizes of the array, without the offsets of its elements: cheaper than [`Tiled::new`].
    ///
    /// # Errors
    /// As for [`Tiled::of_array`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[400000,12]{1,0:T(8,128)}".parse()?;
    /// let sizes = shape.as_array().expect("an array").sizes()?;
    /// assert_eq!((sizes.logical_bytes, sizes.physical_bytes), (19_200_000, 204_800_000));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn sizes(&self) -> Result<Sizes, Error> {
        Tiling::of(self, |_| ())?.sizes(self).ok_or_else(too_large)
    }

    /// The result of XLA's `ShapeUtil::ArraySize`, in bytes, for comparison.
    ///
    /// It looks at the first tile only, pads for `L` only if there is a tile, and counts only the largest part of a split
    /// dimension. `None` where it has no answer: `?`, `*` in the first tile, no layout, or a step outside 64 bits (where XLA wraps).
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[7]{0:T(4)(3)}".parse()?;
    /// let array = shape.as_array().expect("an array");
    /// assert_eq!(array.xla_array_size(), Some(32)); // 8 elements; the second tile pads to 12
    /// assert_eq!(tilewise::Tiled::new(&shape)?.physical_bytes(), 48);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn xla_array_size(&self) -> Option<u64> {
        let layout = self.layout()?;
        let bounds: Vec<u64> = self.dimensions().iter().map(|d| d.bound()).collect::<Option<_>>()?;
        let elements = match layout.tiles().first() {
            None => product(bounds.into_iter())?,
            Some(tile) => {
                let sizes: Vec<u64> = tile.dimensions().iter().rev().map(|d| d.size()).collect::<Option<_>>()?;
                let from_minor = |k: usize| match layout.minor_to_major().get(k) {
                    None => 1,
                    Some(&dimension) => {
                        let physical = bounds.len() - 1 - k;
                        let split = layout.split_configs().iter().find(|split| split.dimension == physical);
                        split.map_or(bounds[dimension], |split| largest_part(bounds[dimension], &split.split_indices))
                    }
                };
                let padded = (0..sizes.len().max(bounds.len())).map(|k| match sizes.get(k) {
                    Some(&size) => round_up(from_minor(k), size),
                    None => Some(from_minor(k)),
                });
                let padded: Vec<u64> = padded.collect::<Option<_>>()?;
                round_up(product(padded.into_iter())?, layout.tail_padding_alignment())?
            }
        };
        match self.element_size_in_bits() {
            // XLA rounds the bits up to bytes in 64 bits with a sign.
            Some(bits) => Some(elements.checked_mul(bits)?.checked_add(7).filter(|&n| n <= MAX_SIZE)? / 8),
            None => bytes(elements, u64::from(self.element_type().natural_bits())),
        }
    }
}

/// XLA's `LayoutUtil::MaxSplitSize`.
fn largest_part(bound: u64, indices: &[u64]) -> u64 {
    let ends = indices.iter().copied().chain([bound]);
    let starts = [0].into_iter().chain(indices.iter().copied());
    ends.zip(starts).map(|(end, start)| end - start).max().unwrap_or(bound)
}
