//! Bytes → message → shape, checked as a text is.

use super::{LayoutProto, ShapeProto, kind};
use crate::{
    ArrayShape, Dimension, ElementType, Error, ErrorKind, Layout, Shape, SplitConfig, Tile, TileDimension,
    array::rank_mismatch,
    dimension::bound_of_signed,
    element_type::sparse_type_error,
    inline::InlineVec,
    layout::{self, first_not_in_permutation, not_a_permutation, physical_shape_not_allowed},
    shape::{MAX_NESTING, Node, invalid_buffer, nesting_too_deep},
};
use alloc::{borrow::Cow, format, string::String, vec::Vec};
use prost::{Message, bytes::Bytes};

impl Shape {
    /// Reads XLA's message of a shape, as the [module](crate::proto) describes.
    ///
    /// # Errors
    /// The error of a text with the same fault, without [`Error::span`]; [`ErrorKind::InvalidProto`] for faults that no
    /// text has.
    ///
    /// ```
    /// use tilewise::{ErrorKind, Shape, proto::ShapeProto};
    ///
    /// let mut proto = ShapeProto { element_type: 11, dimensions: vec![2, 3], ..ShapeProto::default() };
    /// assert_eq!(Shape::from_proto(&proto)?.to_string(), "f32[2,3]");
    /// proto.is_dynamic_dimension = vec![true];
    /// assert_eq!(Shape::from_proto(&proto).unwrap_err().kind(), ErrorKind::InvalidProto);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn from_proto(proto: &ShapeProto) -> Result<Self, Error> {
        read(proto, |proto| Ok((Cow::Borrowed(proto), proto.tuple_shapes.iter().collect())))
    }

    /// Reads the bytes of XLA's message of a shape, however deep its tuples nest.
    ///
    /// # Errors
    /// As for [`from_proto`](Self::from_proto), and [`ErrorKind::InvalidProto`] for bytes that are no such message.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let shape = Shape::decode_proto(b"\x10\x0b\x1a\x01\x02\x2a\x06\x0a\x01\x00\x80\x01\x01\x32\x01\x00")?;
    /// assert_eq!(shape.to_string(), "f32[2]{0}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn decode_proto(bytes: &[u8]) -> Result<Self, Error> {
        read(Bytes::copy_from_slice(bytes), |bytes| {
            let message = OneLevel::decode(bytes).map_err(|error| invalid(format!("{error}")))?;
            Ok(message.split())
        })
    }
}

impl Layout {
    /// Reads the bytes of XLA's message of a layout, for an array of the rank that it orders.
    ///
    /// # Errors
    /// As for [`Shape::decode_proto`].
    ///
    /// ```
    /// use tilewise::Layout;
    ///
    /// assert_eq!(Layout::decode_proto(b"\x0a\x02\x00\x01")?.to_string(), "{0,1}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn decode_proto(bytes: &[u8]) -> Result<Self, Error> {
        let proto = LayoutProto::decode(bytes).map_err(|error| invalid(format!("{error}")))?;
        read_layout(&proto, proto.minor_to_major.len())
    }
}

/// [`ShapeProto`] with its elements still bytes, which look the same on the wire: decoding it does not recurse.
#[derive(Clone, PartialEq, Message)]
struct OneLevel {
    #[prost(int32, tag = "2")]
    element_type: i32,
    #[prost(int64, repeated, tag = "3")]
    dimensions: Vec<i64>,
    #[prost(bytes = "bytes", repeated, tag = "4")]
    tuple_shapes: Vec<Bytes>,
    #[prost(message, optional, tag = "5")]
    layout: Option<LayoutProto>,
    #[prost(bool, repeated, tag = "6")]
    is_dynamic_dimension: Vec<bool>,
}

impl OneLevel {
    fn split(self) -> (Cow<'static, ShapeProto>, Vec<Bytes>) {
        let Self { element_type, dimensions, tuple_shapes, layout, is_dynamic_dimension } = self;
        let proto = ShapeProto { element_type, dimensions, layout, is_dynamic_dimension, tuple_shapes: Vec::new() };
        (Cow::Owned(proto), tuple_shapes)
    }
}

/// Walks a tree of messages without recursion. `open` gives a message and its elements; its own `tuple_shapes` are not looked at.
fn read<'a, M>(root: M, open: impl Fn(M) -> Result<(Cow<'a, ShapeProto>, Vec<M>), Error>) -> Result<Shape, Error> {
    let mut nodes = Vec::new();
    // For each open tuple, its place among the nodes and the elements still to come.
    let mut tuples = Vec::new();
    let mut next = root;
    loop {
        let (proto, elements) = open(next)?;
        nodes.push(match proto.element_type {
            kind::TUPLE | kind::BUFFER if tuples.len() == MAX_NESTING => return Err(nesting_too_deep()),
            kind::TUPLE => {
                check_bare(&proto, "tuple")?;
                tuples.push((nodes.len(), elements.into_iter()));
                Node::Tuple(0)
            }
            kind::BUFFER => {
                check_bare(&proto, "buffer")?;
                let [inner] = <[M; 1]>::try_from(elements).map_err(|_| invalid_buffer())?;
                let (inner, elements) = open(inner)?;
                let element_type = ElementType::from_proto_number(inner.element_type).ok_or_else(invalid_buffer)?;
                Node::Buffer(array(element_type, &inner, &elements)?)
            }
            kind::TOKEN => leaf(&proto, &elements, "token", Node::Token)?,
            kind::OPAQUE => leaf(&proto, &elements, "opaque", Node::Opaque)?,
            number => match ElementType::from_proto_number(number) {
                Some(element_type) => Node::Array(array(element_type, &proto, &elements)?),
                None => return Err(invalid(format!("{number} is not the number of a shape type"))),
            },
        });
        // A shape is complete: close the tuples that end here.
        loop {
            let Some((tuple, elements)) = tuples.last_mut() else { return Ok(Shape::of_nodes(nodes)) };
            if let Some(element) = elements.next() {
                next = element;
                break;
            }
            nodes[*tuple] = Node::Tuple(nodes.len() - *tuple - 1);
            tuples.pop();
        }
    }
}

fn leaf<M>(proto: &ShapeProto, elements: &[M], name: &str, node: Node) -> Result<Node, Error> {
    check_bare(proto, name)?;
    check_no_elements(elements)?;
    Ok(node)
}

/// Only arrays have dimensions and layouts.
fn check_bare(proto: &ShapeProto, name: &str) -> Result<(), Error> {
    if !dimensions(proto)?.is_empty() {
        return Err(Error::new(ErrorKind::DimensionsNotAllowed, format!("`{name}` has no dimensions")));
    }
    if proto.layout.is_some() {
        return Err(Error::new(ErrorKind::LayoutNotAllowed, format!("`{name}` has no layout")));
    }
    Ok(())
}

fn check_no_elements<M>(elements: &[M]) -> Result<(), Error> {
    if elements.is_empty() { Ok(()) } else { Err(invalid("only tuples and buffers have `tuple_shapes`")) }
}

fn array<M>(element_type: ElementType, proto: &ShapeProto, elements: &[M]) -> Result<ArrayShape, Error> {
    check_no_elements(elements)?;
    let dimensions = dimensions(proto)?;
    let layout = proto.layout.as_ref().map(|layout| read_layout(layout, dimensions.len())).transpose()?;
    ArrayShape::new(element_type, dimensions, layout)
}

fn dimensions(proto: &ShapeProto) -> Result<InlineVec<Dimension, 6>, Error> {
    let (bounds, flags) = (&proto.dimensions, &proto.is_dynamic_dimension);
    if !flags.is_empty() && flags.len() != bounds.len() {
        return Err(invalid(format!(
            "`is_dynamic_dimension` has {} entries, `dimensions` {}",
            flags.len(),
            bounds.len()
        )));
    }
    let flags = flags.iter().copied().chain(core::iter::repeat(false));
    let dimension = |(&bound, dynamic)| match (bound, dynamic) {
        (i64::MIN, true) => Ok(Dimension::UNBOUNDED),
        (_, true) => Dimension::bounded(bound_of_signed(bound)?),
        (_, false) => Dimension::fixed(bound_of_signed(bound)?),
    };
    bounds.iter().zip(flags).map(dimension).collect()
}

/// The properties are checked in the order of the text; checks that need the bounds are left to [`ArrayShape::new`].
pub(super) fn read_layout(proto: &LayoutProto, rank: usize) -> Result<Layout, Error> {
    let mut layout = Layout::of_order(order(&proto.minor_to_major, rank)?);
    for tile in &proto.tiles {
        let dimensions: Result<_, Error> = tile.dimensions.iter().map(|&d| TileDimension::of_signed(d)).collect();
        layout.tiles.push(Tile::of(dimensions?)?);
    }
    // In proto3 a field that was not written is 0.
    let alignment = proto.tail_padding_alignment_in_elements;
    layout.tail_padding_alignment = layout::tail_padding_alignment(if alignment == 0 { 1 } else { alignment.into() })?;
    layout.index_primitive_type = sparse_type(proto.index_primitive_type, false)?;
    layout.pointer_primitive_type = sparse_type(proto.pointer_primitive_type, true)?;
    layout.element_size_in_bits = layout::element_size_in_bits(proto.element_size_in_bits.into())?;
    layout.memory_space = layout::memory_space(proto.memory_space.into())?;
    let splits = proto.split_configs.iter();
    layout.split_configs = splits.map(|s| SplitConfig::of_signed(s.dimension, &s.split_indices)).collect();
    if proto.physical_shape.is_some() {
        return Err(physical_shape_not_allowed());
    }
    let prefix = proto.dynamic_shape_metadata_prefix_bytes;
    layout.dynamic_shape_metadata_prefix_bytes = layout::metadata_prefix_bytes(prefix.into())?;
    Ok(layout)
}

fn order(minor_to_major: &[i64], rank: usize) -> Result<InlineVec<usize, 6>, Error> {
    if minor_to_major.len() != rank {
        return Err(rank_mismatch(minor_to_major.len(), rank));
    }
    // A number that can't be a dimension's stays out of range, and is reported below.
    let order: InlineVec<usize, 6> = minor_to_major.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect();
    match first_not_in_permutation(&order) {
        Some(at) => Err(not_a_permutation(&format!("{}", minor_to_major[at]), order[at] < rank, rank)),
        None => Ok(order),
    }
}

/// An index or pointer type; `None` for 0.
fn sparse_type(number: i32, pointer: bool) -> Result<Option<ElementType>, Error> {
    match ElementType::from_proto_number(number) {
        Some(named) if named.is_index_type() => Ok(Some(named)),
        Some(named) => Err(sparse_type_error(pointer, named)),
        None if number == 0 => Ok(None),
        None => Err(sparse_type_error(pointer, format!("type number {number}"))),
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidProto, message)
}
