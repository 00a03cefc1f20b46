//! Edits of layouts alone: the dimensions of arrays stay.

use super::{is_packed, no_dimension};
use crate::{ArrayShape, Error, Layout, Shape, SplitConfig, inline::InlineVec, shape::Node};
use core::num::NonZeroU64;

impl Shape {
    /// The shape without its layouts, leaves of tuples included; [`without_layout`](Self::without_layout) prints it so.
    ///
    /// ```
    /// let shape: tilewise::Shape = "(f32[3,5]{0,1:T(2,2)}, token[])".parse()?;
    /// assert_eq!(shape.clear_layout().to_string(), "(f32[3,5], token[])");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ClearLayout")]
    #[must_use]
    pub fn clear_layout(&self) -> Self {
        self.each_array_unchecked(|array| array.layout = None)
    }

    /// The shape with the default order of dimensions, major to minor, leaves of tuples included; as in XLA, everything else of its layouts
    /// stays.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSplitConfig`](crate::ErrorKind::InvalidSplitConfig) where a split, which numbers dimensions of memory, does not fit the new order.
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,5]{0,1:T(2,2)}".parse()?;
    /// assert_eq!(shape.with_default_layout()?.to_string(), "f32[3,5]{1,0:T(2,2)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "GetWithDefaultLayout")]
    #[doc(alias = "SetToDefaultLayout")]
    pub fn with_default_layout(&self) -> Result<Self, Error> {
        let nodes = self.nodes().iter().map(|node| {
            let mut node = node.clone();
            if let Node::Array(array) | Node::Buffer(array) = &mut node {
                let default = Layout::row_major(array.rank());
                let own = array.layout.take().unwrap_or_else(|| default.clone());
                let layout = Layout { minor_to_major: default.minor_to_major, ..own };
                *array = ArrayShape::new(array.element_type, array.dimensions.clone(), Some(layout))?;
            }
            Ok(node)
        });
        Ok(Self::of_nodes(nodes.collect::<Result<_, Error>>()?))
    }

    /// The shape without tiles, leaves of tuples included; everything else of its layouts stays.
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,5]{0,1:T(2,2)S(1)}".parse()?;
    /// assert_eq!(shape.clear_tiles().to_string(), "f32[3,5]{0,1:S(1)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ClearTiles")]
    #[must_use]
    pub fn clear_tiles(&self) -> Self {
        self.each_layout(|layout, _| layout.tiles = InlineVec::new())
    }

    /// The shape as a host has it, leaves of tuples included: without tiles, `L(n)`, `E(n)`, `S(n)` and `M(n)`. Orders and splits stay.
    ///
    /// ```
    /// let shape: tilewise::Shape = "bf16[16,256]{0,1:T(8,128)(2,1)S(1)}".parse()?;
    /// assert_eq!(shape.device_shape_to_host_shape().to_string(), "bf16[16,256]{0,1}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "DeviceShapeToHostShape")]
    #[doc(alias = "DeviceShapeIsHostShape")]
    #[must_use]
    pub fn device_shape_to_host_shape(&self) -> Self {
        self.each_layout(|layout, _| {
            layout.tiles = InlineVec::new();
            layout.tail_padding_alignment = NonZeroU64::MIN;
            layout.element_size_in_bits = None;
            layout.memory_space = 0;
            layout.dynamic_shape_metadata_prefix_bytes = 0;
        })
    }

    /// The shape with `E(n)` for types below 8 bits but `pred`, or without any, leaves of tuples included.
    ///
    /// ```
    /// let shape: tilewise::Shape = "(s4[8], f32[8]{0:E(32)})".parse()?;
    /// assert_eq!(shape.update_element_size_in_bits(true).to_string(), "(s4[8]{0:E(4)}, f32[8]{0})");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "UpdateElementSizeInBits")]
    #[must_use]
    pub fn update_element_size_in_bits(&self, pack_subbyte_types: bool) -> Self {
        self.each_layout(|layout, element_type| {
            let bits = u64::from(element_type.bits());
            let is_packed = pack_subbyte_types && is_packed(element_type);
            layout.element_size_in_bits = NonZeroU64::new(bits).filter(|_| is_packed);
        })
    }
}

impl Layout {
    /// The layout with this dimension the most major; everything else stays.
    ///
    /// # Errors
    /// [`ErrorKind::IndexOutOfBounds`](crate::ErrorKind::IndexOutOfBounds).
    ///
    /// ```
    /// let layout: tilewise::Layout = "{2,1,0:T(2,2)}".parse()?;
    /// assert_eq!(layout.move_dim_to_major(2)?.to_string(), "{1,0,2:T(2,2)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "MoveDimToMajor")]
    pub fn move_dim_to_major(&self, dimension: usize) -> Result<Self, Error> {
        let others = self.dimensions_but(dimension)?;
        Ok(Self { minor_to_major: others.chain([dimension]).collect(), ..self.clone() })
    }

    /// The layout with this dimension the most minor; everything else stays.
    ///
    /// # Errors
    /// [`ErrorKind::IndexOutOfBounds`](crate::ErrorKind::IndexOutOfBounds).
    ///
    /// ```
    /// let layout: tilewise::Layout = "{2,1,0:T(2,2)}".parse()?;
    /// assert_eq!(layout.move_dim_to_minor(0)?.to_string(), "{0,2,1:T(2,2)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "MoveDimToMinor")]
    pub fn move_dim_to_minor(&self, dimension: usize) -> Result<Self, Error> {
        let others = self.dimensions_but(dimension)?;
        Ok(Self { minor_to_major: [dimension].into_iter().chain(others).collect(), ..self.clone() })
    }

    /// The other dimensions, minor to major.
    fn dimensions_but(&self, dimension: usize) -> Result<impl Iterator<Item = usize>, Error> {
        let rank = self.minor_to_major.len();
        if dimension >= rank {
            return Err(no_dimension(dimension, rank));
        }
        Ok(self.minor_to_major.iter().copied().filter(move |&other| other != dimension))
    }

    /// The layout with each dimension renumbered, or dropped together with its split: splits number dimensions of
    /// memory.
    pub(super) fn renumbered(&self, numbers: &[Option<usize>]) -> Self {
        let rank = self.minor_to_major.len();
        let physical = |number: usize| self.minor_to_major[rank - 1 - number];
        let is_kept = |number: usize| number < rank && numbers[physical(number)].is_some();
        let splits = self.split_configs.iter().filter(|split| is_kept(split.dimension));
        let split_configs = splits.map(|split| SplitConfig {
            dimension: (0..split.dimension).filter(|&number| is_kept(number)).count(),
            split_indices: split.split_indices.clone(),
        });
        Self {
            minor_to_major: self.minor_to_major.iter().filter_map(|&dimension| numbers[dimension]).collect(),
            split_configs: split_configs.collect(),
            ..self.clone()
        }
    }
}
