//! The messages, field for field.

use alloc::{boxed::Box, string::String, vec::Vec};

/// A shape: an array, a tuple, a token, an opaque value or a buffer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ShapeProto {
    /// The number of the element type in `PrimitiveType` ([`ElementType::proto_number`](crate::ElementType::proto_number)), or 13
    /// for a tuple, 14 opaque, 17 token, 34 buffer.
    #[prost(int32, tag = "2")]
    pub element_type: i32,
    /// The bounds of an array's dimensions, 0 … N−1; −2^63 for an unbounded one.
    #[prost(int64, repeated, tag = "3")]
    pub dimensions: Vec<i64>,
    /// A tuple's elements, or a buffer's one array.
    #[prost(message, repeated, tag = "4")]
    pub tuple_shapes: Vec<ShapeProto>,
    /// An array's layout.
    #[prost(message, optional, tag = "5")]
    pub layout: Option<LayoutProto>,
    /// For each dimension, whether its size is known only at run time. Empty if all are static.
    #[prost(bool, repeated, tag = "6")]
    pub is_dynamic_dimension: Vec<bool>,
}

/// An array's layout in memory; the parts are those of [`Layout`](crate::Layout).
#[derive(Clone, PartialEq, prost::Message)]
pub struct LayoutProto {
    /// Dimension numbers from the fastest-varying to the slowest.
    #[prost(int64, repeated, tag = "1")]
    pub minor_to_major: Vec<i64>,
    /// The tiles, in the order in which they are applied.
    #[prost(message, repeated, tag = "6")]
    pub tiles: Vec<TileProto>,
    /// Bits per stored element; 0 is the type's natural storage.
    #[prost(int64, tag = "7")]
    pub element_size_in_bits: i64,
    /// The memory space; 0 is the device's default memory.
    #[prost(int64, tag = "8")]
    pub memory_space: i64,
    /// `DimLevelType` of each dimension of a sparse array. XLA drops it, and so does this crate.
    #[prost(int32, repeated, tag = "9")]
    pub dim_level_types: Vec<i32>,
    /// The physical shape of a sparse array. XLA refuses it on every array, and so does this crate.
    #[prost(message, optional, boxed, tag = "10")]
    pub physical_shape: Option<Box<ShapeProto>>,
    /// The index type of a sparse array, a number in `PrimitiveType`; 0 if it has no such type.
    #[prost(int32, tag = "11")]
    pub index_primitive_type: i32,
    /// The pointer type of a sparse array, a number in `PrimitiveType`; 0 if it has no such type.
    #[prost(int32, tag = "12")]
    pub pointer_primitive_type: i32,
    /// Whether each dimension of a sparse array is unique. XLA drops it, and so does this crate.
    #[prost(bool, repeated, tag = "13")]
    pub dim_unique: Vec<bool>,
    /// Whether each dimension of a sparse array is ordered. XLA drops it, and so does this crate.
    #[prost(bool, repeated, tag = "14")]
    pub dim_ordered: Vec<bool>,
    /// Bytes of run-time dimension sizes in front of the data.
    #[prost(int64, tag = "15")]
    pub dynamic_shape_metadata_prefix_bytes: i64,
    /// The element count is padded to a multiple of this, in elements. XLA always writes it, 1 included; 0 is read as 1.
    #[prost(int64, tag = "16")]
    pub tail_padding_alignment_in_elements: i64,
    /// Splits of physical dimensions between memories.
    #[prost(message, repeated, tag = "17")]
    pub split_configs: Vec<SplitConfigProto>,
}

/// A tile.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct TileProto {
    /// The sizes in elements, major to minor; −2^63 for `*`.
    #[prost(int64, repeated, tag = "1")]
    pub dimensions: Vec<i64>,
}

/// A split of one physical dimension between memories.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct SplitConfigProto {
    /// The physical dimension, 0 = most major.
    #[prost(int64, tag = "1")]
    pub dimension: i64,
    /// The dimension is cut before each of these positions.
    #[prost(int64, repeated, tag = "2")]
    pub split_indices: Vec<i64>,
}

/// The shapes of a computation's parameters and result.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProgramShapeProto {
    /// The parameters' shapes, in order.
    #[prost(message, repeated, tag = "1")]
    pub parameters: Vec<ShapeProto>,
    /// The result's shape.
    #[prost(message, optional, tag = "2")]
    pub result: Option<ShapeProto>,
    /// The parameters' names, in order.
    #[prost(string, repeated, tag = "3")]
    pub parameter_names: Vec<String>,
}
