//! The one place where tiles are interpreted.

use crate::{
    ArrayShape, Digit, DigitSource, Error, ErrorKind, Layout, NestedAxis, Shape, Sizes, TileDimension, checked,
    digits::{Builder, Mixed},
};
use alloc::{format, vec, vec::Vec};
use core::ops::Range;

/// The resolved layout of an array: a function from a logical index to an offset, and the sizes that follow from it.
///
/// Every number about tiles comes from here. Construction applies the tiles in order (pad, reshape, transpose, as the
/// tiled-layout document defines them), with all arithmetic checked.
///
/// ```
/// use tilewise::Tiled;
///
/// let tiled = Tiled::new(&"bf16[300,500]{1,0:T(8,128)(2,1)}".parse()?)?;
/// assert_eq!(tiled.physical_dimensions(), [38, 4, 4, 128, 2, 1]);
/// assert_eq!(tiled.offset_of(&[1, 0])?, 1); // rows 0 and 1 share 32-bit words
/// assert_eq!((tiled.logical_bytes(), tiled.physical_bytes()), (300_000, 311_296));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tiled {
    pub(crate) array: ArrayShape,
    /// The bound of each axis. The first are the logical dimensions; tiles add theirs behind.
    pub(crate) bounds: Vec<u64>,
    /// The steps by which tiles make axes out of axes, in order.
    pub(crate) steps: Vec<Step>,
    /// The end of each tile's steps in [`Tiled::steps`].
    pub(crate) tile_ends: Vec<usize>,
    /// The axes of memory, major → minor.
    pub(crate) physical_axes: Vec<Axis>,
    physical_dimensions: Vec<u64>,
    tiled_elements: u64,
    sizes: Sizes,
    digits: Vec<Digit>,
    nested_axes: Vec<NestedAxis>,
}

/// The index of an axis in [`Tiled::bounds`].
pub(crate) type Axis = usize;

/// One step of a tile on axes.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A tile longer than the rank adds this axis, whose index is always 0.
    Prepend { axis: Axis },
    /// `*`: these axes, major → minor, become one.
    Merge { parts: Vec<Axis>, merged: Axis },
    /// The axis is padded to a multiple of `tile` and becomes (axis div tile, axis mod tile).
    Split { axis: Axis, tile: u64, outer: Axis, inner: Axis },
}

impl Tiled {
    /// Works out the layout of an array, or of a buffer's array.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], [`ErrorKind::MissingLayout`], [`ErrorKind::UnboundedDimension`], and [`ErrorKind::Overflow`]
    /// where the physical element count, a size in bytes or a merged bound is above 2^63 − 1.
    pub fn new(shape: &Shape) -> Result<Self, Error> {
        Self::of_array(shape.array_or_error()?)
    }

    /// [`Tiled::new`] for the array itself.
    ///
    /// # Errors
    /// As for [`Tiled::new`], but for [`ErrorKind::NotAnArray`].
    pub fn of_array(array: &ArrayShape) -> Result<Self, Error> {
        let mut tile_ends = Vec::new();
        let tiling = Tiling::of(array, |steps| tile_ends.push(steps))?;
        let tiled_elements = tiling.elements().ok_or_else(too_large)?;
        let sizes = tiling.sizes(array).ok_or_else(too_large)?;
        let Tiling { bounds, steps, axes: physical_axes } = tiling;
        let physical_dimensions = physical_axes.iter().map(|&axis| bounds[axis]).collect();
        let (digits, nested_axes) = if tiled_elements == 0 {
            // No index exists, and the bounds of a merge may multiply to anything.
            (Vec::new(), Vec::new())
        } else {
            closed_form(array.rank(), &bounds, &steps, &physical_axes)
        };
        Ok(Self {
            array: array.clone(),
            bounds,
            steps,
            tile_ends,
            physical_axes,
            physical_dimensions,
            tiled_elements,
            sizes,
            digits,
            nested_axes,
        })
    }

    /// The array the layout belongs to.
    #[must_use]
    pub fn array(&self) -> &ArrayShape {
        &self.array
    }

    /// The logical bounds, by dimension number; a bounded dynamic dimension counts with its bound.
    #[must_use]
    pub fn logical_dimensions(&self) -> &[u64] {
        &self.bounds[..self.array.rank()]
    }

    /// The bounds of memory after all tiles, major → minor: `[2, 3, 2, 2]` for `f32[3,5]{1,0:T(2,2)}`. Tail padding comes on top.
    #[must_use]
    pub fn physical_dimensions(&self) -> &[u64] {
        &self.physical_dimensions
    }

    /// Elements with the tiles' padding and without the tail's: the product of the physical dimensions.
    #[must_use]
    pub fn tiled_elements(&self) -> u64 {
        self.tiled_elements
    }

    /// Elements the buffer holds, all padding included.
    #[must_use]
    pub fn physical_elements(&self) -> u64 {
        self.sizes.physical_elements
    }

    /// Bits each element takes in memory; [`ArrayShape::stored_bits`].
    #[must_use]
    pub fn stored_bits(&self) -> u64 {
        self.array.stored_bits()
    }

    /// The number of dimensions that no tile touches: the most major ones in memory.
    pub(crate) fn untiled_dimensions(&self) -> usize {
        self.physical_axes.iter().filter(|&&axis| axis < self.array.rank()).count()
    }

    /// The sizes of the array, with and without padding.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The layout as a sum: offset = Σ ((source div divisor) mod count) · stride, in elements.
    ///
    /// The sum is canonical: digits that are always 0 are dropped, neighbours whose strides continue each other are one, and the
    /// order is by source and divisor. Without nested axes, two layouts of the same bounds put every element at the same offset
    /// exactly if their digits are equal. Empty for an array without elements.
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let strides: Vec<_> = tiled.digits().iter().map(|d| (d.divisor, d.count, d.stride)).collect();
    /// assert_eq!(strides, [(1, 2, 2), (2, 2, 12), (1, 2, 1), (2, 3, 4)]); // y mod 2, y div 2, x mod 2, x div 2
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn digits(&self) -> &[Digit] {
        &self.digits
    }

    /// The digits of [`Tiled::digits`] that are cut from one logical dimension, by rising divisor.
    #[must_use]
    pub fn digits_of(&self, dimension: usize) -> &[Digit] {
        let source = DigitSource::Dimension(dimension);
        let start = self.digits.partition_point(|digit| digit.source < source);
        let count = self.digits[start..].partition_point(|digit| digit.source == source);
        &self.digits[start..start + count]
    }

    /// Whether a logical dimension has a part in a [nested axis](Tiled::nested_axes), so that its digits alone don't
    /// give the offset.
    #[must_use]
    pub fn is_nested(&self, dimension: usize) -> bool {
        let source = DigitSource::Dimension(dimension);
        self.nested_axes.iter().any(|axis| axis.digits.iter().any(|digit| digit.source == source))
    }

    /// The merged values that digits can't express, in the order in which they build on each other; empty for nearly every layout.
    #[must_use]
    pub fn nested_axes(&self) -> &[NestedAxis] {
        &self.nested_axes
    }

    /// The index along each axis of memory as a sum of digits, in the form of [`Tiled::digits`] and over the same nested axes.
    #[cfg(feature = "notations")]
    pub(crate) fn physical_digits(&self) -> Vec<Vec<Digit>> {
        if self.tiled_elements == 0 {
            return vec![Vec::new(); self.physical_axes.len()];
        }
        let (builder, mut axes) = digits_of_axes(self.array.rank(), &self.bounds, &self.steps);
        let digits = |&axis: &Axis| builder.canonical(core::mem::take(&mut axes[axis]), &self.bounds);
        self.physical_axes.iter().map(digits).collect()
    }
}

pub(crate) fn too_large() -> Error {
    Error::new(ErrorKind::Overflow, "with its padding the array is larger than 2^63 − 1")
}

fn unbounded(number: usize) -> Error {
    Error::new(
        ErrorKind::UnboundedDimension,
        format!("dimension {number} is `?`: without a bound there is no size and no offset"),
    )
    .with_help("write a bound, such as `<=1024`")
}

/// The axes of memory while tiles are applied.
pub(crate) struct Tiling {
    bounds: Vec<u64>,
    steps: Vec<Step>,
    /// The axes so far, major → minor.
    axes: Vec<Axis>,
}

impl Tiling {
    /// Applies every tile of the layout; `after_tile` is called behind each with the number of steps so far.
    pub(crate) fn of(array: &ArrayShape, mut after_tile: impl FnMut(usize)) -> Result<Self, Error> {
        let Some(layout) = array.layout() else {
            return Err(Error::new(
                ErrorKind::MissingLayout,
                "the shape was written without a layout, so its size in memory is not known",
            )
            .with_help("write the layout, such as `{1,0:T(8,128)}`"));
        };
        let mut bounds = Vec::with_capacity(4 * array.rank());
        for (number, dimension) in array.dimensions().iter().enumerate() {
            bounds.push(dimension.bound().ok_or_else(|| unbounded(number))?);
        }
        let mut tiling = Self { bounds, steps: Vec::new(), axes: array.major_to_minor().collect() };
        for tile in layout.tiles() {
            tiling.apply(tile.dimensions())?;
            after_tile(tiling.steps.len());
        }
        Ok(tiling)
    }

    /// Elements in memory without the tail padding; `None` above 2^63 − 1.
    fn elements(&self) -> Option<u64> {
        checked::product(self.axes.iter().map(|&axis| self.bounds[axis]))
    }

    /// Elements of the array these tiles were applied to; `None` above 2^63 − 1.
    pub(crate) fn logical_elements(&self, array: &ArrayShape) -> Option<u64> {
        checked::product(self.bounds[..array.rank()].iter().copied())
    }

    /// The sizes of the array these tiles were applied to; `None` above 2^63 − 1.
    pub(crate) fn sizes(&self, array: &ArrayShape) -> Option<Sizes> {
        let logical_elements = self.logical_elements(array)?;
        let alignment = array.layout().map_or(1, Layout::tail_padding_alignment);
        let physical_elements = checked::round_up(self.elements()?, alignment)?;
        Some(Sizes {
            physical_elements,
            logical_bytes: checked::bytes(logical_elements, array.logical_bits_per_element())?,
            physical_bytes: checked::bytes(physical_elements, array.stored_bits())?,
        })
    }

    fn axis(&mut self, bound: u64) -> Axis {
        self.bounds.push(bound);
        self.bounds.len() - 1
    }

    /// One tile, as the tiled-layout document defines it: longer tile, combine, pad, reshape, transpose.
    fn apply(&mut self, tile: &[TileDimension]) -> Result<(), Error> {
        let missing = tile.len().saturating_sub(self.axes.len());
        let prepended = self.bounds.len()..self.bounds.len() + missing;
        self.bounds.resize(prepended.end, 1);
        self.steps.extend(prepended.clone().map(|axis| Step::Prepend { axis }));
        self.axes.splice(0..0, prepended);
        // In place: the tile's axes become the quotients, fewer where some are merged, and the remainders follow behind.
        let end = self.axes.len();
        let start = end - tile.len();
        let (mut quotients, mut merging) = (start, start);
        for (at, dimension) in (start..end).zip(tile) {
            let TileDimension::Size(tile) = *dimension else { continue };
            let axis = self.merge(merging..at + 1)?;
            merging = at + 1;
            let tile = tile.get();
            let outer = self.axis(self.bounds[axis].div_ceil(tile));
            let inner = self.axis(tile);
            self.steps.push(Step::Split { axis, tile, outer, inner });
            self.axes[quotients] = outer;
            quotients += 1;
            self.axes.push(inner);
        }
        self.axes.drain(quotients..end);
        Ok(())
    }

    /// Merges the axes at these places of [`axes`](Self::axes).
    fn merge(&mut self, places: Range<usize>) -> Result<Axis, Error> {
        let parts = &self.axes[places];
        if let [axis] = *parts {
            return Ok(axis);
        }
        let parts = parts.to_vec();
        let bound = checked::product(parts.iter().map(|&part| self.bounds[part])).ok_or_else(|| {
            Error::new(ErrorKind::Overflow, "the dimensions `*` merges multiply to more than 2^63 − 1")
        })?;
        let merged = self.axis(bound);
        self.steps.push(Step::Merge { parts, merged });
        Ok(merged)
    }
}

/// Follows every logical dimension through the steps to its digits in the offset.
fn closed_form(rank: usize, bounds: &[u64], steps: &[Step], physical_axes: &[Axis]) -> (Vec<Digit>, Vec<NestedAxis>) {
    let (builder, axes) = digits_of_axes(rank, bounds, steps);
    let offset = Builder::merge(physical_axes.iter().map(|&axis| (&axes[axis], bounds[axis])));
    (builder.canonical(offset, bounds), builder.nested)
}

/// Each axis that no step consumes, as a sum of digits of the logical dimensions.
fn digits_of_axes(rank: usize, bounds: &[u64], steps: &[Step]) -> (Builder, Vec<Mixed>) {
    let mut builder = Builder::default();
    let mut axes: Vec<Mixed> = vec![Mixed::new(); bounds.len()];
    for (number, axis) in axes[..rank].iter_mut().enumerate() {
        *axis = Builder::dimension(number, bounds[number]);
    }
    for step in steps {
        match step {
            Step::Prepend { .. } => {}
            Step::Merge { parts, merged } => {
                axes[*merged] = Builder::merge(parts.iter().map(|&part| (&axes[part], bounds[part])));
            }
            Step::Split { axis, tile, outer, inner } => {
                let whole = core::mem::take(&mut axes[*axis]);
                (axes[*outer], axes[*inner]) = builder.split(whole, bounds[*axis], *tile);
            }
        }
    }
    (builder, axes)
}
