//! Shape → message → bytes.

use super::{LayoutProto, ShapeProto, SplitConfigProto, TileProto, kind};
use crate::{ArrayShape, Dimension, Layout, Shape, SplitConfig, Tile, TileDimension, shape::Node};
use alloc::{vec, vec::Vec};
use prost::Message;

impl Shape {
    /// The shape as XLA's message, with the fields that XLA writes.
    ///
    /// The message is a tree as deep as the shape, and prost's own functions on it recurse; [`encode_proto`](Self::encode_proto)
    /// gives the same bytes without.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let proto = "bf16[<=6,?]".parse::<Shape>()?.to_proto();
    /// assert_eq!((proto.element_type, proto.dimensions.as_slice()), (16, &[6, i64::MIN][..]));
    /// assert_eq!(proto.is_dynamic_dimension, [true, true]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn to_proto(&self) -> ShapeProto {
        let nodes = self.nodes();
        // From the back, a tuple finds its elements complete, the first on top.
        let mut complete: Vec<ShapeProto> = Vec::new();
        for (at, node) in nodes.iter().enumerate().rev() {
            let mut proto = without_elements(node);
            let elements = element_positions(nodes, at).filter_map(|_| complete.pop());
            proto.tuple_shapes.extend(elements);
            complete.push(proto);
        }
        complete.pop().unwrap_or_default()
    }

    /// The bytes XLA's `ShapeProto::SerializeAsString` gives for the shape.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// assert_eq!("(token[])".parse::<Shape>()?.encode_proto(), [0x10, 13, 0x22, 2, 0x10, 17]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn encode_proto(&self) -> Vec<u8> {
        // A tuple's own fields come before its elements, so a message is its own bytes, then its elements' messages.
        const TUPLE_SHAPES: u8 = 4 << 3 | 2;
        let nodes = self.nodes();
        let own: Vec<Vec<u8>> = nodes.iter().map(|node| without_elements(node).encode_to_vec()).collect();
        let mut lengths: Vec<usize> = own.iter().map(Vec::len).collect();
        for at in (0..nodes.len()).rev() {
            let fields = element_positions(nodes, at).map(|e| 1 + prost::length_delimiter_len(lengths[e]) + lengths[e]);
            lengths[at] += fields.sum::<usize>();
        }
        let mut bytes = Vec::with_capacity(lengths[0]);
        for (at, own) in own.iter().enumerate() {
            if at > 0 {
                bytes.push(TUPLE_SHAPES);
                // Writing to a vector can't fail.
                let _ = prost::encode_length_delimiter(lengths[at], &mut bytes);
            }
            bytes.extend_from_slice(own);
        }
        bytes
    }
}

impl Layout {
    /// The bytes XLA's `LayoutProto::SerializeAsString` gives for the layout.
    ///
    /// ```
    /// use tilewise::Layout;
    ///
    /// let layout: Layout = "{0,1}".parse()?;
    /// assert_eq!(layout.encode_proto(), b"\x0a\x02\x00\x01\x80\x01\x01");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn encode_proto(&self) -> Vec<u8> {
        layout_proto(self).encode_to_vec()
    }
}

/// The start of each element of the tuple at this place; empty for any other node.
fn element_positions(nodes: &[Node], tuple: usize) -> impl Iterator<Item = usize> {
    let (mut next, end) = (tuple + 1, tuple + nodes[tuple].extent());
    core::iter::from_fn(move || {
        let element = (next < end).then_some(next)?;
        next += nodes[element].extent();
        Some(element)
    })
}

pub(super) fn without_elements(node: &Node) -> ShapeProto {
    let of_kind = |element_type| ShapeProto { element_type, ..ShapeProto::default() };
    match node {
        Node::Tuple(_) => of_kind(kind::TUPLE),
        Node::Token => of_kind(kind::TOKEN),
        Node::Opaque => of_kind(kind::OPAQUE),
        Node::Array(array) => array_proto(array),
        Node::Buffer(array) => ShapeProto { tuple_shapes: vec![array_proto(array)], ..of_kind(kind::BUFFER) },
    }
}

fn array_proto(array: &ArrayShape) -> ShapeProto {
    let dimensions = array.dimensions();
    ShapeProto {
        element_type: array.element_type().proto_number(),
        dimensions: dimensions.iter().map(|d| d.bound().map_or(i64::MIN, int64)).collect(),
        tuple_shapes: Vec::new(),
        layout: array.layout().map(layout_proto),
        // XLA writes the flags even if all of them are false.
        is_dynamic_dimension: dimensions.iter().copied().map(Dimension::is_dynamic).collect(),
    }
}

pub(super) fn layout_proto(layout: &Layout) -> LayoutProto {
    let type_number = |t: Option<crate::ElementType>| t.map_or(0, crate::ElementType::proto_number);
    LayoutProto {
        minor_to_major: layout.minor_to_major().iter().map(|&d| int64(d)).collect(),
        tiles: layout.tiles().iter().map(tile_proto).collect(),
        element_size_in_bits: layout.element_size_in_bits().map_or(0, int64),
        memory_space: layout.memory_space().into(),
        index_primitive_type: type_number(layout.index_primitive_type()),
        pointer_primitive_type: type_number(layout.pointer_primitive_type()),
        dynamic_shape_metadata_prefix_bytes: int64(layout.dynamic_shape_metadata_prefix_bytes()),
        tail_padding_alignment_in_elements: int64(layout.tail_padding_alignment()),
        split_configs: layout.split_configs().iter().map(split_proto).collect(),
        ..LayoutProto::default()
    }
}

fn tile_proto(tile: &Tile) -> TileProto {
    let signed = |d: &TileDimension| d.size().map_or(i64::MIN, int64);
    TileProto { dimensions: tile.dimensions().iter().map(signed).collect() }
}

fn split_proto(config: &SplitConfig) -> SplitConfigProto {
    SplitConfigProto {
        dimension: int64(config.dimension),
        split_indices: config.split_indices.iter().map(|&i| int64(i)).collect(),
    }
}

/// No number in a shape is above [`MAX_SIZE`](crate::MAX_SIZE), so none is clamped here.
fn int64(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
