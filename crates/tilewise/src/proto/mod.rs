//! XLA's protobuf messages of shapes, `xla_data.proto`, byte for byte. Needs the feature `proto`.
//!
//! [`Shape::encode_proto`](crate::Shape::encode_proto) and [`Shape::decode_proto`](crate::Shape::decode_proto) go between shapes
//! and bytes; [`Shape::to_proto`](crate::Shape::to_proto) and [`Shape::from_proto`](crate::Shape::from_proto) stop at the messages,
//! for programs that find a [`ShapeProto`] inside a larger message. The messages implement [`prost::Message`].
//!
//! ```
//! use tilewise::Shape;
//!
//! let shape: Shape = "f32[3,5]{1,0:T(2,2)}".parse()?;
//! let bytes = shape.encode_proto();
//! assert_eq!(bytes, *b"\x10\x0b\x1a\x02\x03\x05\x2a\x0d\x0a\x02\x01\x00\x32\x04\x0a\x02\x02\x02\x80\x01\x01\x32\x02\x00\x00");
//! assert_eq!(Shape::decode_proto(&bytes)?, shape);
//! # Ok::<(), tilewise::Error>(())
//! ```
//!
//! Both also go to protobuf's text format and back: [`Shape::to_text_proto`](crate::Shape::to_text_proto),
//! [`Shape::from_text_proto`](crate::Shape::from_text_proto), and [`Layout`](crate::Layout)'s functions of these names.
//!
//! # Reading
//!
//! Messages are read like texts, with the same checks and the same [`ErrorKind`](crate::ErrorKind)s. Beyond those,
//! compared with XLA's `Shape::FromProto` and `Layout::FromProto`:
//!
//! | field | read as |
//! |---|---|
//! | repeated numbers | packed or not |
//! | `layout` absent | no layout, [`Shape::layout`](crate::Shape::layout) is `None`, also for a scalar |
//! | `dimensions` | −2^63 with the dynamic flag is `?` |
//! | `is_dynamic_dimension` | absent, or one entry for each dimension, else `invalid_proto` |
//! | tile `dimensions` | −2^63 (XLA's) and −1 (the documents') are `*`; XLA refuses both, and so can't read what it wrote |
//! | `tail_padding_alignment_in_elements` | 0 is read as 1, no tail padding |
//! | `memory_space` | 0 … 127; XLA silently truncates other numbers to eight bits |
//! | `physical_shape` | `physical_shape_not_allowed` |
//! | `dim_level_types`, `dim_unique`, `dim_ordered` | dropped: remains of sparse arrays that XLA drops as well |
//! | fields of other numbers | dropped, as everywhere in protobuf |
//!
//! # Nesting
//!
//! `encode_proto` and `decode_proto` do not recurse, and tuples nest up to [`MAX_NESTING`](crate::MAX_NESTING) deep. Decoding a
//! [`ShapeProto`] itself is prost's work, which gives up at 100 nested messages (its feature `no-recursion-limit` takes that limit
//! away, and with it the protection of the stack). A larger message that needs more can declare its shapes as `bytes`, which look
//! the same on the wire, and give those to `decode_proto`.

mod messages;
mod read;
mod text;
mod write;

pub use messages::{LayoutProto, ProgramShapeProto, ShapeProto, SplitConfigProto, TileProto};

/// The numbers of `PrimitiveType` that are shapes but no [`ElementType`](crate::ElementType).
mod kind {
    pub(super) const TUPLE: i32 = 13;
    pub(super) const OPAQUE: i32 = 14;
    pub(super) const TOKEN: i32 = 17;
    pub(super) const BUFFER: i32 = 34;
}
