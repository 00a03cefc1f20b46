//! Arrays: an element type, dimensions, and usually a layout.

use crate::{Dimension, ElementType, Error, ErrorKind, Layout, SplitConfig, checked, inline::InlineVec};
use alloc::vec::Vec;
use alloc::{collections::BTreeSet, format};

/// An array's shape: element type, dimensions, and a layout unless the shape was read without inventing one.
///
/// Reached through [`Shape::as_array`](crate::Shape::as_array); built by [`Shape::array`](crate::Shape::array).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayShape {
    pub(crate) element_type: ElementType,
    pub(crate) dimensions: InlineVec<Dimension, 6>,
    pub(crate) layout: Option<Layout>,
}

impl ArrayShape {
    /// Checks the element count, and the layout against the dimensions.
    pub(crate) fn new(
        element_type: ElementType,
        dimensions: InlineVec<Dimension, 6>,
        layout: Option<Layout>,
    ) -> Result<Self, Error> {
        if let Some(layout) = &layout {
            if layout.minor_to_major.len() != dimensions.len() {
                return Err(rank_mismatch(layout.minor_to_major.len(), dimensions.len()));
            }
            let mut split = BTreeSet::new();
            for config in &layout.split_configs {
                check_split(config, &mut split, &layout.minor_to_major, &dimensions)?;
            }
        }
        let array = Self { element_type, dimensions, layout };
        array.check_size()?;
        Ok(array)
    }

    /// Checks that elements and bytes are at most 2^63 − 1, as XLA's `ValidateShape` does and its text parser doesn't.
    /// An unbounded dimension counts 1.
    pub(crate) fn check_size(&self) -> Result<(), Error> {
        let elements = checked::product(self.dimensions.iter().map(|d| d.bound().unwrap_or(1)));
        let fits = elements.is_some_and(|n| checked::bytes(n, self.logical_bits_per_element()).is_some());
        if fits {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Overflow, "the array's size is above 2^63 − 1, XLA's limit for elements and bytes"))
    }

    /// The element type.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// The dimensions, numbered 0 … N−1 as written between brackets.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The bounds of all dimensions, in elements; `None` if a dimension is unbounded.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let shape: Shape = "f32[<=3,4]".parse()?;
    /// assert_eq!(shape.bounds(), Some(vec![3, 4]));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn bounds(&self) -> Option<Vec<u64>> {
        self.dimensions.iter().map(|dimension| dimension.bound()).collect()
    }

    /// The number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.dimensions.len()
    }

    /// The dimension that a number means, 0 … N−1; negative ones count from the end, −1 being the last.
    ///
    /// # Errors
    /// [`ErrorKind::IndexOutOfBounds`] outside −N … N−1 (XLA aborts there).
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,5]".parse()?;
    /// assert_eq!(shape.as_array().expect("an array").dimension_number(-1)?, 1);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn dimension_number(&self, number: i64) -> Result<usize, Error> {
        let rank = self.rank();
        let from_end = |n: i64| usize::try_from(n.unsigned_abs()).ok().and_then(|n| rank.checked_sub(n));
        let position = if number < 0 { from_end(number) } else { usize::try_from(number).ok() };
        position.filter(|&position| position < rank).ok_or_else(|| {
            let message = format!("there is no dimension {number} in an array of rank {rank}");
            Error::new(ErrorKind::IndexOutOfBounds, message)
        })
    }

    /// The layout; `None` where the shape was read without inventing one.
    #[must_use]
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// The memory space the layout names; 0, the device's default memory, without a layout.
    #[must_use]
    pub fn memory_space(&self) -> u8 {
        self.layout.as_ref().map_or(0, Layout::memory_space)
    }

    /// Dimension numbers from the slowest-varying to the fastest; empty without a layout.
    pub fn major_to_minor(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + '_ {
        self.layout.as_ref().map_or(&[][..], |l| l.minor_to_major()).iter().rev().copied()
    }

    /// The number of dimensions whose size isn't 1 (`ShapeUtil::TrueNumDimensions`): one of size 0 counts, as in XLA,
    /// and an unbounded one.
    #[doc(alias = "TrueNumDimensions")]
    #[must_use]
    pub fn true_rank(&self) -> usize {
        self.dimensions.iter().filter(|dimension| dimension.bound() != Some(1)).count()
    }

    /// The documents' letter for a dimension: rank 2 is y, x; rank 3 z, y, x; rank 4 p, z, y, x.
    #[must_use]
    pub fn dimension_letter(&self, dimension: usize) -> Option<char> {
        letter(self.rank(), dimension)
    }

    /// Bits each element takes in memory: the layout's `E(n)`, or the type's natural storage size
    /// ([`ElementType::natural_bits`]).
    ///
    /// ```
    /// let stored_bits = |text: &str| {
    ///     let shape: tilewise::Shape = text.parse()?;
    ///     Ok::<_, tilewise::Error>(shape.as_array().map(tilewise::ArrayShape::stored_bits))
    /// };
    /// assert_eq!(stored_bits("s4[8]{0}")?, Some(8));
    /// assert_eq!(stored_bits("s4[8]{0:E(4)}")?, Some(4));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn stored_bits(&self) -> u64 {
        self.element_size_in_bits().unwrap_or(u64::from(self.element_type.natural_bits()))
    }

    /// Bits one element needs without padding: the smaller of its natural storage and the layout's element size.
    pub(crate) fn logical_bits_per_element(&self) -> u64 {
        let natural = u64::from(self.element_type.natural_bits());
        self.stored_bits().min(natural)
    }

    /// The layout's element size in bits, if it has one.
    pub(crate) fn element_size_in_bits(&self) -> Option<u64> {
        self.layout.as_ref().and_then(Layout::element_size_in_bits)
    }
}

/// The documents' letter for a dimension of an array of that rank.
pub(crate) fn letter(rank: usize, dimension: usize) -> Option<char> {
    let letters: &[char] = match rank {
        2 => &['y', 'x'],
        3 => &['z', 'y', 'x'],
        4 => &['p', 'z', 'y', 'x'],
        _ => &[],
    };
    letters.get(dimension).copied()
}

pub(crate) fn rank_mismatch(named: usize, rank: usize) -> Error {
    let error = Error::new(
        ErrorKind::LayoutRankMismatch,
        format!("the layout orders {named} dimensions, the array has {rank}"),
    );
    error.with_help(format!("the default layout of rank {rank} is {{{}}}", {
        let mut order = alloc::string::String::new();
        // Writing to a string can't fail.
        let _ = crate::text::join(&mut order, &(0..rank).rev().take(64).collect::<alloc::vec::Vec<_>>());
        order
    }))
}

/// Checks a split config as XLA's `LayoutUtil::ValidateLayoutForShape` does: invalid ones parse, and would be ignored
/// or divide wrongly.
pub(crate) fn check_split(
    config: &SplitConfig,
    split: &mut BTreeSet<usize>,
    minor_to_major: &[usize],
    dimensions: &[Dimension],
) -> Result<(), Error> {
    let invalid = |message| Err(Error::new(ErrorKind::InvalidSplitConfig, message));
    let rank = dimensions.len();
    if config.dimension >= rank {
        return invalid(format!("there is no physical dimension {} in an array of rank {rank}", config.dimension));
    }
    if !split.insert(config.dimension) {
        return invalid(format!("physical dimension {} is split twice", config.dimension));
    }
    let bound = match dimensions[minor_to_major[rank - 1 - config.dimension]].bound() {
        Some(bound) => bound,
        None if config.split_indices.is_empty() => return Ok(()),
        None => return invalid(format!("physical dimension {} has no bound to split below", config.dimension)),
    };
    let mut least = 1;
    for &index in &config.split_indices {
        if index < least || index >= bound {
            return invalid(format!(
                "split indices must rise and lie between 0 and the bound {bound} of physical dimension {}; {index} does not",
                config.dimension
            ));
        }
        least = index + 1;
    }
    Ok(())
}
