//! Layouts: how an array's elements lie in memory.

use crate::{ElementType, Error, ErrorKind, MAX_SIZE, Tile, element_type::sparse_type_error, inline::InlineVec};
use alloc::{format, vec::Vec};
use core::{
    cmp::Ordering,
    hash::{Hash, Hasher},
    num::NonZeroU64,
};

/// A split of one *physical* dimension between memories, `SC(dimension:indices)`.
///
/// It moves no element; it makes XLA's `ArraySize` count only the largest part of that dimension.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SplitConfig {
    /// The physical dimension, 0 = most major.
    pub dimension: usize,
    /// The dimension is cut before each of these positions; strictly increasing, positive, below the bound.
    pub split_indices: Vec<u64>,
}

impl SplitConfig {
    /// A split from the signed numbers of a text or proto. Negative ones become invalid: a missing dimension, and the
    /// index 0.
    pub(crate) fn of_signed(dimension: i64, split_indices: &[i64]) -> Self {
        Self {
            dimension: usize::try_from(dimension).unwrap_or(usize::MAX),
            split_indices: split_indices.iter().map(|&i| u64::try_from(i).unwrap_or(0)).collect(),
        }
    }
}

/// An array's layout in memory: the order of its dimensions, its tiles, and everything else XLA writes between braces.
///
/// Built by [`Layout::new`] and the `with_…` calls, or parsed as part of a [`Shape`](crate::Shape). Equality, order and hash are
/// XLA's `Layout::operator==`: the dynamic shape metadata prefix is never compared.
///
/// ```
/// use tilewise::{ElementType, Layout, Shape};
///
/// let layout = Layout::new([1, 0])?.with_tiles([[8, 128], [2, 1]])?.with_memory_space(1)?;
/// let shape = Shape::array(ElementType::Bf16, [16, 256])?.with_layout(layout)?;
/// assert_eq!(shape.to_string(), "bf16[16,256]{1,0:T(8,128)(2,1)S(1)}");
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) minor_to_major: InlineVec<usize, 6>,
    pub(crate) tiles: InlineVec<Tile, 3>,
    pub(crate) tail_padding_alignment: NonZeroU64,
    pub(crate) index_primitive_type: Option<ElementType>,
    pub(crate) pointer_primitive_type: Option<ElementType>,
    pub(crate) element_size_in_bits: Option<NonZeroU64>,
    pub(crate) memory_space: u8,
    pub(crate) split_configs: Vec<SplitConfig>,
    pub(crate) dynamic_shape_metadata_prefix_bytes: u64,
}

impl Layout {
    /// A layout with this order of dimensions, the fastest-varying first, and nothing else.
    ///
    /// # Errors
    /// [`ErrorKind::NotAPermutation`] unless each of 0 … N−1 is named once.
    #[doc(alias = "MakeLayout")]
    pub fn new(minor_to_major: impl IntoIterator<Item = usize>) -> Result<Self, Error> {
        let minor_to_major: InlineVec<usize, 6> = minor_to_major.into_iter().collect();
        if let Some(at) = first_not_in_permutation(&minor_to_major) {
            let (number, rank) = (minor_to_major[at], minor_to_major.len());
            return Err(not_a_permutation(&format!("{number}"), number < rank, rank));
        }
        Ok(Self::of_order(minor_to_major))
    }

    /// XLA's default layout of that rank: major to minor, `{N-1,…,0}` (`LayoutUtil::GetDefaultLayoutForRank`).
    ///
    /// ```
    /// assert_eq!(tilewise::Layout::row_major(3).minor_to_major(), [2, 1, 0]);
    /// ```
    #[doc(alias = "GetDefaultLayoutForShape")]
    #[doc(alias = "GetDefaultLayoutForRank")]
    #[doc(alias = "MakeDescendingLayout")]
    #[must_use]
    pub fn row_major(rank: usize) -> Self {
        Self::of_order((0..rank).rev().collect())
    }

    /// The layout of that rank whose dimensions descend from minor to major, `{N-1,…,0}`: [`row_major`](Self::row_major) under XLA's other name.
    ///
    /// ```
    /// assert_eq!(tilewise::Layout::descending(3).to_string(), "{2,1,0}");
    /// ```
    #[must_use]
    pub fn descending(rank: usize) -> Self {
        Self::row_major(rank)
    }

    /// The layout of that rank whose dimensions ascend from minor to major, `{0,…,N-1}`: column-major.
    ///
    /// ```
    /// assert_eq!(tilewise::Layout::ascending(3).to_string(), "{0,1,2}");
    /// ```
    #[doc(alias = "MakeAscendingLayout")]
    #[must_use]
    pub fn ascending(rank: usize) -> Self {
        Self::of_order((0..rank).collect())
    }

    /// A layout with this order of dimensions, the slowest-varying first, and nothing else.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    ///
    /// ```
    /// assert_eq!(tilewise::Layout::from_major_to_minor([1, 0, 2])?.to_string(), "{2,0,1}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "MakeLayoutFromMajorToMinor")]
    pub fn from_major_to_minor(major_to_minor: impl IntoIterator<Item = usize>) -> Result<Self, Error> {
        let mut order: Vec<usize> = major_to_minor.into_iter().collect();
        order.reverse();
        Self::new(order)
    }

    pub(crate) fn of_order(minor_to_major: InlineVec<usize, 6>) -> Self {
        Self {
            minor_to_major,
            tiles: InlineVec::new(),
            tail_padding_alignment: NonZeroU64::MIN,
            index_primitive_type: None,
            pointer_primitive_type: None,
            element_size_in_bits: None,
            memory_space: 0,
            split_configs: Vec::new(),
            dynamic_shape_metadata_prefix_bytes: 0,
        }
    }

    /// The layout with these tiles, each applied to the result of the one before. Takes [`Tile`]s or arrays of sizes.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidTile`] from an array of sizes that is no tile.
    pub fn with_tiles<T>(mut self, tiles: impl IntoIterator<Item = T>) -> Result<Self, Error>
    where
        T: TryInto<Tile>,
        Error: From<T::Error>,
    {
        let mut list = InlineVec::new();
        for tile in tiles {
            list.push(tile.try_into()?);
        }
        self.tiles = list;
        Ok(self)
    }

    /// The layout with padding after the last element up to a multiple of this many elements, `L(n)`; 1 means no
    /// padding.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidTailPadding`] for 0 or more than 2^63 − 1.
    pub fn with_tail_padding_alignment(mut self, elements: u64) -> Result<Self, Error> {
        self.tail_padding_alignment = tail_padding_alignment(elements.into())?;
        Ok(self)
    }

    /// The layout with elements of this many bits, packed back to back, `E(n)`; 0 is the type's natural storage.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidElementSize`] for more than 2^63 − 1.
    pub fn with_element_size_in_bits(mut self, bits: u64) -> Result<Self, Error> {
        self.element_size_in_bits = element_size_in_bits(bits.into())?;
        Ok(self)
    }

    /// The layout in this memory space, `S(n)`; 0 is the device's default memory.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidMemorySpace`] above 127: XLA keeps eight bits with a sign, and would wrap silently.
    pub fn with_memory_space(mut self, space: u8) -> Result<Self, Error> {
        self.memory_space = memory_space(space.into())?;
        Ok(self)
    }

    /// The layout with these splits of physical dimensions, `SC(…)`. They are checked against the bounds of a shape
    /// with the layout.
    #[must_use]
    pub fn with_split_configs(mut self, configs: impl IntoIterator<Item = SplitConfig>) -> Self {
        self.split_configs = configs.into_iter().collect();
        self
    }

    /// The layout with this many bytes of run-time dimension sizes in front of the data, `M(n)`. No size counts them.
    #[must_use]
    pub fn with_dynamic_shape_metadata_prefix_bytes(mut self, bytes: u64) -> Self {
        self.dynamic_shape_metadata_prefix_bytes = bytes.min(MAX_SIZE);
        self
    }

    /// The layout with this type of a sparse array's indices, `#(t)`. XLA prints it, and no computation uses it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidIndexType`] unless it is u8, u16, u32 or u64.
    ///
    /// ```
    /// use tilewise::{ElementType, Layout};
    ///
    /// assert_eq!(Layout::row_major(1).with_index_primitive_type(Some(ElementType::U32))?.to_string(), "{0:#(u32)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "set_index_primitive_type")]
    pub fn with_index_primitive_type(mut self, element_type: Option<ElementType>) -> Result<Self, Error> {
        self.index_primitive_type = checked_sparse_type(element_type, false)?;
        Ok(self)
    }

    /// The layout with this type of a sparse array's pointers, `*(t)`. XLA prints it, and no computation uses it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPointerType`] unless it is u8, u16, u32 or u64.
    #[doc(alias = "set_pointer_primitive_type")]
    pub fn with_pointer_primitive_type(mut self, element_type: Option<ElementType>) -> Result<Self, Error> {
        self.pointer_primitive_type = checked_sparse_type(element_type, true)?;
        Ok(self)
    }

    /// The position of each dimension in memory, 0 the most major: the inverse of the order from major to minor.
    ///
    /// ```
    /// let layout: tilewise::Layout = "{0,2,1}".parse()?;
    /// assert_eq!(layout.logical_to_physical(), [2, 0, 1]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "MakeLogicalToPhysical")]
    #[must_use]
    pub fn logical_to_physical(&self) -> Vec<usize> {
        let mut places = alloc::vec![0; self.minor_to_major.len()];
        for (place, &dimension) in self.minor_to_major.iter().rev().enumerate() {
            places[dimension] = place;
        }
        places
    }

    /// Whether these dimensions are neighbours in memory, in any order; true for one alone, or none. False if a number
    /// is no dimension, which XLA takes for one more major than all others.
    ///
    /// ```
    /// let layout: tilewise::Layout = "{0,2,1}".parse()?;
    /// assert!(layout.are_dimensions_consecutive(&[0, 2]) && !layout.are_dimensions_consecutive(&[0, 1]));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "AreDimensionsConsecutive")]
    #[must_use]
    pub fn are_dimensions_consecutive(&self, dimensions: &[usize]) -> bool {
        let place = |dimension: &usize| self.minor_to_major.iter().position(|other| other == dimension);
        let Some(mut places) = dimensions.iter().map(place).collect::<Option<Vec<usize>>>() else { return false };
        places.sort_unstable();
        places.windows(2).all(|pair| pair[0] + 1 == pair[1])
    }

    /// Dimension numbers from the fastest-varying to the slowest, a permutation of 0 … N−1.
    #[doc(alias = "Minor")]
    #[doc(alias = "Major")]
    #[must_use]
    pub fn minor_to_major(&self) -> &[usize] {
        &self.minor_to_major
    }

    /// The tiles, in the order in which they are applied.
    #[must_use]
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// The element count is padded to a multiple of this, in elements; 1 means no tail padding.
    #[must_use]
    pub fn tail_padding_alignment(&self) -> u64 {
        self.tail_padding_alignment.get()
    }

    /// Bits per stored element, if the layout has `E(n)`; `None` is the type's natural storage.
    #[must_use]
    pub fn element_size_in_bits(&self) -> Option<u64> {
        self.element_size_in_bits.map(NonZeroU64::get)
    }

    /// The memory space, 0 … 127; [`memory_space_name`](crate::tpu::memory_space_name) names it.
    #[doc(alias = "MemorySpace")]
    #[must_use]
    pub fn memory_space(&self) -> u8 {
        self.memory_space
    }

    /// The splits between memories.
    #[must_use]
    pub fn split_configs(&self) -> &[SplitConfig] {
        &self.split_configs
    }

    /// The index type of a sparse array, `#(t)`: parsed and printed, refused by XLA's `ValidateShape`.
    #[must_use]
    pub fn index_primitive_type(&self) -> Option<ElementType> {
        self.index_primitive_type
    }

    /// The pointer type of a sparse array, `*(t)`: parsed and printed, refused by XLA's `ValidateShape`.
    #[must_use]
    pub fn pointer_primitive_type(&self) -> Option<ElementType> {
        self.pointer_primitive_type
    }

    /// Bytes of run-time dimension sizes in front of the data. No size counts them, and they are never compared.
    #[must_use]
    pub fn dynamic_shape_metadata_prefix_bytes(&self) -> u64 {
        self.dynamic_shape_metadata_prefix_bytes
    }

    /// The name of the order of dimensions, if it has one: `row-major` from the last dimension to the first, the
    /// documents' "dim 0 is major"; `column-major` from the first to the last, "dim 0 is minor".
    ///
    /// ```
    /// # use tilewise::Layout;
    /// assert_eq!(Layout::new([2, 1, 0])?.order_name(), Some("row-major"));
    /// assert_eq!(Layout::new([0, 1, 2])?.order_name(), Some("column-major"));
    /// assert_eq!(Layout::new([0, 2, 1])?.order_name(), None);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "IsMonotonicWithDim0Major")]
    #[doc(alias = "IsMonotonicWithDim0Minor")]
    #[must_use]
    pub fn order_name(&self) -> Option<&'static str> {
        let order = self.minor_to_major();
        if order.iter().rev().copied().eq(0..order.len()) {
            Some("row-major")
        } else if order.iter().copied().eq(0..order.len()) {
            Some("column-major")
        } else {
            None
        }
    }

    fn key(&self) -> impl Ord + Hash + '_ {
        // Every field but the metadata prefix: XLA never compares it.
        (
            &self.minor_to_major,
            &self.tiles,
            self.tail_padding_alignment,
            (self.index_primitive_type, self.pointer_primitive_type),
            (self.element_size_in_bits, self.memory_space),
            &self.split_configs,
        )
    }
}

// The checks on single properties. Their numbers come as u64 from callers and as i64 from texts and protos; i128 holds both.

/// The number, if it is neither negative nor above [`MAX_SIZE`].
fn natural(value: i128) -> Option<u64> {
    u64::try_from(value).ok().filter(|&n| n <= MAX_SIZE)
}

pub(crate) fn tail_padding_alignment(elements: i128) -> Result<NonZeroU64, Error> {
    natural(elements).and_then(NonZeroU64::new).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidTailPadding,
            format!("the tail padding alignment must be 1 … 2^63 − 1 elements, not {elements}"),
        )
    })
}

pub(crate) fn element_size_in_bits(bits: i128) -> Result<Option<NonZeroU64>, Error> {
    natural(bits).map(NonZeroU64::new).ok_or_else(|| {
        Error::new(ErrorKind::InvalidElementSize, format!("the element size must be 0 … 2^63 − 1 bits, not {bits}"))
    })
}

/// XLA keeps the memory space in a signed byte.
pub(crate) fn memory_space(space: i128) -> Result<u8, Error> {
    u8::try_from(space).ok().filter(|&s| s <= 127).ok_or_else(|| {
        Error::new(ErrorKind::InvalidMemorySpace, format!("a memory space is a number from 0 to 127, not {space}"))
            .with_help("XLA silently truncates the number to eight bits")
    })
}

pub(crate) fn metadata_prefix_bytes(bytes: i128) -> Result<u64, Error> {
    natural(bytes).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidMetadataPrefix,
            format!("the number of metadata prefix bytes must be 0 … 2^63 − 1, not {bytes}"),
        )
    })
}

fn checked_sparse_type(element_type: Option<ElementType>, pointer: bool) -> Result<Option<ElementType>, Error> {
    match element_type.filter(|element_type| !element_type.is_index_type()) {
        Some(other) => Err(sparse_type_error(pointer, other)),
        None => Ok(element_type),
    }
}

pub(crate) fn physical_shape_not_allowed() -> Error {
    Error::new(ErrorKind::PhysicalShapeNotAllowed, "XLA refuses a physical shape on every array")
}

/// The first place at which the list stops being a permutation of 0 … N−1.
pub(crate) fn first_not_in_permutation(list: &[usize]) -> Option<usize> {
    if list.len() <= 64 {
        let mut seen = 0u64;
        return list.iter().position(|&d| {
            let repeated = d >= list.len() || seen & (1 << d) != 0;
            seen |= if repeated { 0 } else { 1 << d };
            repeated
        });
    }
    let mut seen = alloc::vec![false; list.len()];
    list.iter().position(|&d| match seen.get_mut(d) {
        Some(seen) => core::mem::replace(seen, true),
        None => true,
    })
}

pub(crate) fn not_a_permutation(number: &str, repeated: bool, rank: usize) -> Error {
    let message = if repeated {
        format!("dimension {number} is named twice in minor-to-major")
    } else {
        format!("there is no dimension {number} in an array of rank {rank}")
    };
    let error = Error::new(ErrorKind::NotAPermutation, message);
    match rank.checked_sub(1) {
        Some(last) => error.with_help(format!("name each of 0 … {last} once, the fastest-varying first")),
        None => error,
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Layout {}

impl PartialOrd for Layout {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Layout {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Layout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
