//! Shapes and layouts in protobuf's text format, as XLA's `DebugString` prints its messages.
//!
//! ```
//! use tilewise::Shape;
//!
//! let text = "element_type: F32 dimensions: [3, 5] layout { minor_to_major: 1 minor_to_major: 0 tiles { dimensions: [2, 2] } }";
//! let shape = Shape::from_text_proto(text)?;
//! assert_eq!(shape.to_string(), "f32[3,5]{1,0:T(2,2)}");
//! assert_eq!(Shape::from_text_proto(&shape.to_text_proto())?, shape);
//! # Ok::<(), tilewise::Error>(())
//! ```

use super::{LayoutProto, ShapeProto, SplitConfigProto, TileProto, kind, read::read_layout, write};
use crate::{ElementType, Error, ErrorKind, Layout, Shape, shape::MAX_NESTING};
use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::fmt::Write;

impl Shape {
    /// Reads a `ShapeProto` in protobuf's text format.
    ///
    /// # Errors
    /// As for [`from_proto`](Self::from_proto), and [`ErrorKind::InvalidProto`] with the span for a text in another
    /// format.
    pub fn from_text_proto(text: &str) -> Result<Self, Error> {
        match parse(text, Message::Shape(ShapeProto::default()))? {
            Message::Shape(proto) => Self::from_proto(&proto),
            _ => Err(unreadable(text, 0)),
        }
    }

    /// Whether a text begins with a field of a `ShapeProto`, as XLA's text of a shape never does.
    #[must_use]
    pub fn begins_like_text_proto(text: &str) -> bool {
        let text = text.trim_start();
        let fields = ["element_type", "dimensions", "tuple_shapes", "layout", "is_dynamic_dimension"];
        fields.iter().any(|field| {
            let rest = text.strip_prefix(field).map(str::trim_start);
            rest.is_some_and(|rest| rest.starts_with([':', '{', '<']))
        })
    }

    /// The shape as a `ShapeProto` in protobuf's text format, a field a line.
    #[must_use]
    pub fn to_text_proto(&self) -> String {
        let mut text = String::new();
        // The end of each open tuple.
        let mut ends: Vec<usize> = Vec::new();
        let nodes = self.nodes();
        for (at, node) in nodes.iter().enumerate() {
            close(&mut text, &mut ends, at);
            let depth = ends.len();
            if at > 0 {
                line(&mut text, depth - 1, format_args!("tuple_shapes {{"));
            }
            let proto = write::without_elements(node);
            shape_fields(&mut text, depth, &proto);
            for array in &proto.tuple_shapes {
                line(&mut text, depth, format_args!("tuple_shapes {{"));
                shape_fields(&mut text, depth + 1, array);
                line(&mut text, depth, format_args!("}}"));
            }
            if node.extent() > 1 || at == 0 {
                ends.push(at + node.extent());
            } else if at > 0 {
                line(&mut text, depth - 1, format_args!("}}"));
            }
        }
        // The root has no bracket of its own.
        let open = ends.len().saturating_sub(1);
        (0..open).rev().for_each(|depth| line(&mut text, depth, format_args!("}}")));
        text
    }
}

impl Layout {
    /// Reads a `LayoutProto` in protobuf's text format.
    ///
    /// # Errors
    /// As for [`Shape::from_text_proto`].
    ///
    /// ```
    /// use tilewise::Layout;
    ///
    /// let layout = Layout::from_text_proto("minor_to_major: [1, 0] tail_padding_alignment_in_elements: 16")?;
    /// assert_eq!(layout.to_string(), "{1,0:L(16)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn from_text_proto(text: &str) -> Result<Self, Error> {
        match parse(text, Message::Layout(LayoutProto::default()))? {
            Message::Layout(proto) => read_layout(&proto, proto.minor_to_major.len()),
            _ => Err(unreadable(text, 0)),
        }
    }

    /// The layout as a `LayoutProto` in protobuf's text format, a field a line.
    #[must_use]
    pub fn to_text_proto(&self) -> String {
        let mut text = String::new();
        layout_fields(&mut text, 0, &write::layout_proto(self));
        text
    }
}

/// Closes the tuples that end in front of a node.
fn close(text: &mut String, ends: &mut Vec<usize>, at: usize) {
    while ends.len() > 1 && ends.last() == Some(&at) {
        ends.pop();
        line(text, ends.len() - 1, format_args!("}}"));
    }
}

fn line(text: &mut String, depth: usize, content: core::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = writeln!(text, "{:1$}{content}", "", 2 * depth.min(MAX_NESTING));
}

fn numbers(text: &mut String, depth: usize, name: &str, values: &[i64]) {
    values.iter().for_each(|value| line(text, depth, format_args!("{name}: {value}")));
}

/// A single number is written unless it is 0.
fn number(text: &mut String, depth: usize, name: &str, value: i64) {
    numbers(text, depth, name, if value == 0 { &[] } else { core::slice::from_ref(&value) });
}

fn shape_fields(text: &mut String, depth: usize, proto: &ShapeProto) {
    line(text, depth, format_args!("element_type: {}", type_name(proto.element_type)));
    numbers(text, depth, "dimensions", &proto.dimensions);
    if let Some(layout) = &proto.layout {
        line(text, depth, format_args!("layout {{"));
        layout_fields(text, depth + 1, layout);
        line(text, depth, format_args!("}}"));
    }
    let flags = proto.is_dynamic_dimension.iter();
    flags.for_each(|flag| line(text, depth, format_args!("is_dynamic_dimension: {flag}")));
}

fn layout_fields(text: &mut String, depth: usize, proto: &LayoutProto) {
    numbers(text, depth, "minor_to_major", &proto.minor_to_major);
    for tile in &proto.tiles {
        line(text, depth, format_args!("tiles {{"));
        numbers(text, depth + 1, "dimensions", &tile.dimensions);
        line(text, depth, format_args!("}}"));
    }
    number(text, depth, "element_size_in_bits", proto.element_size_in_bits);
    number(text, depth, "memory_space", proto.memory_space);
    for (name, named) in
        [("index_primitive_type", proto.index_primitive_type), ("pointer_primitive_type", proto.pointer_primitive_type)]
    {
        if named != 0 {
            line(text, depth, format_args!("{name}: {}", type_name(named)));
        }
    }
    number(text, depth, "dynamic_shape_metadata_prefix_bytes", proto.dynamic_shape_metadata_prefix_bytes);
    number(text, depth, "tail_padding_alignment_in_elements", proto.tail_padding_alignment_in_elements);
    for split in &proto.split_configs {
        line(text, depth, format_args!("split_configs {{"));
        number(text, depth + 1, "dimension", split.dimension);
        numbers(text, depth + 1, "split_indices", &split.split_indices);
        line(text, depth, format_args!("}}"));
    }
}

const KINDS: [(i32, &str); 4] =
    [(kind::TUPLE, "TUPLE"), (kind::OPAQUE, "OPAQUE_TYPE"), (kind::TOKEN, "TOKEN"), (kind::BUFFER, "BUFFER")];

/// The name of a number of `PrimitiveType`.
fn type_name(number: i32) -> String {
    let known = KINDS.iter().find(|(known, _)| *known == number).map(|(_, name)| String::from(*name));
    let array = || Some(ElementType::from_proto_number(number)?.name().to_ascii_uppercase());
    known.or_else(array).unwrap_or_else(|| format!("{number}"))
}

/// A message that is being read.
enum Message {
    Shape(ShapeProto),
    Layout(LayoutProto),
    Tile(TileProto),
    Split(SplitConfigProto),
}

impl Message {
    /// The empty message of a field, if the field is a message.
    fn of_field(&self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Shape(_), "tuple_shapes") | (Self::Layout(_), "physical_shape") => {
                Some(Self::Shape(ShapeProto::default()))
            }
            (Self::Shape(_), "layout") => Some(Self::Layout(LayoutProto::default())),
            (Self::Layout(_), "tiles") => Some(Self::Tile(TileProto::default())),
            (Self::Layout(_), "split_configs") => Some(Self::Split(SplitConfigProto::default())),
            _ => None,
        }
    }

    fn take(&mut self, inner: Self) {
        match (self, inner) {
            (Self::Shape(shape), Self::Shape(inner)) => shape.tuple_shapes.push(inner),
            (Self::Shape(shape), Self::Layout(layout)) => shape.layout = Some(layout),
            (Self::Layout(layout), Self::Tile(tile)) => layout.tiles.push(tile),
            (Self::Layout(layout), Self::Split(split)) => layout.split_configs.push(split),
            (Self::Layout(layout), Self::Shape(shape)) => layout.physical_shape = Some(Box::new(shape)),
            _ => {}
        }
    }

    /// Sets a number, or adds one to a repeated field; false where the message has no such field.
    fn set(&mut self, name: &str, value: Value) -> bool {
        let (number, boolean) = (value.number, value.number != 0);
        let small = i32::try_from(number).unwrap_or(-1);
        match (self, name) {
            (Self::Shape(shape), "element_type") => shape.element_type = small,
            (Self::Shape(shape), "dimensions") => shape.dimensions.push(number),
            (Self::Shape(shape), "is_dynamic_dimension") => shape.is_dynamic_dimension.push(boolean),
            (Self::Layout(layout), "minor_to_major") => layout.minor_to_major.push(number),
            (Self::Layout(layout), "element_size_in_bits") => layout.element_size_in_bits = number,
            (Self::Layout(layout), "memory_space") => layout.memory_space = number,
            (Self::Layout(layout), "index_primitive_type") => layout.index_primitive_type = small,
            (Self::Layout(layout), "pointer_primitive_type") => layout.pointer_primitive_type = small,
            (Self::Layout(layout), "dynamic_shape_metadata_prefix_bytes") => {
                layout.dynamic_shape_metadata_prefix_bytes = number;
            }
            (Self::Layout(layout), "tail_padding_alignment_in_elements") => {
                layout.tail_padding_alignment_in_elements = number;
            }
            // Remains of sparse arrays, dropped.
            (Self::Layout(_), "dim_level_types" | "dim_unique" | "dim_ordered") => {}
            (Self::Tile(tile), "dimensions") => tile.dimensions.push(number),
            (Self::Split(split), "dimension") => split.dimension = number,
            (Self::Split(split), "split_indices") => split.split_indices.push(number),
            _ => return false,
        }
        true
    }
}

/// A number, a truth value, or the name of a type, as the number it stands for.
struct Value {
    number: i64,
}

/// Reads fields into messages, without recursion.
fn parse(text: &str, root: Message) -> Result<Message, Error> {
    let mut words = Words { text, at: 0 };
    let mut open: Vec<(Message, &str)> = Vec::new();
    let mut message = root;
    loop {
        let start = words.next_at();
        let word = words.next();
        match word {
            "" if open.is_empty() => return Ok(message),
            "}" | ">" => match open.pop() {
                Some((outer, closing)) if closing == word => {
                    let inner = core::mem::replace(&mut message, outer);
                    message.take(inner);
                }
                _ => return Err(unreadable(text, start)),
            },
            "," | ";" => {}
            name => {
                let has_colon = words.eat(":");
                let bracket = words.peek();
                if let Some(inner) = message.of_field(name).filter(|_| matches!(bracket, "{" | "<")) {
                    words.next();
                    if open.len() == MAX_NESTING {
                        return Err(crate::shape::nesting_too_deep().at(start..start + name.len()));
                    }
                    open.push((core::mem::replace(&mut message, inner), if bracket == "{" { "}" } else { ">" }));
                    continue;
                }
                if !has_colon {
                    return Err(unreadable(text, start));
                }
                let is_list = words.eat("[");
                while !(is_list && words.eat("]")) {
                    let at = words.next_at();
                    let value = value(words.next()).ok_or_else(|| unreadable(text, at))?;
                    if !message.set(name, value) {
                        let what = format!("there is no field `{}` here", name.chars().take(40).collect::<String>());
                        return Err(Error::new(ErrorKind::InvalidProto, what).at(start..start + name.len()));
                    }
                    if !is_list {
                        break;
                    }
                    words.eat(",");
                }
            }
        }
    }
}

fn value(word: &str) -> Option<Value> {
    let named = || {
        let kind = KINDS.iter().find(|(_, name)| *name == word).map(|(number, _)| *number);
        kind.or_else(|| ElementType::from_name(word).map(ElementType::proto_number)).map(i64::from)
    };
    let number = match word {
        "true" => Some(1),
        "false" | "PRIMITIVE_TYPE_INVALID" | "DIM_DENSE" => Some(0),
        "DIM_COMPRESSED" => Some(1),
        "DIM_SINGLETON" => Some(2),
        "DIM_LOOSE_COMPRESSED" => Some(3),
        _ => word.parse().ok().or_else(named),
    };
    Some(Value { number: number? })
}

fn unreadable(text: &str, at: usize) -> Error {
    let length = text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    let message = "this isn't a ShapeProto or LayoutProto in protobuf's text format";
    Error::new(ErrorKind::InvalidProto, message)
        .at(at..at + length)
        .with_help("such as `element_type: F32 dimensions: 3 dimensions: 5 layout { minor_to_major: [1, 0] }`")
}

/// Names, numbers and punctuation, between white space and comments.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    /// The start of the next word.
    fn next_at(&mut self) -> usize {
        loop {
            let rest = &self.text[self.at..];
            let inside = rest.trim_start();
            self.at += rest.len() - inside.len();
            if !inside.starts_with('#') {
                return self.at;
            }
            self.at += inside.find('\n').unwrap_or(inside.len());
        }
    }

    /// The next word; empty at the end.
    fn peek(&mut self) -> &'a str {
        let rest = &self.text[self.next_at()..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.');
        let length = match rest.find(|c| !is_part(c)) {
            Some(0) => rest.chars().next().map_or(0, char::len_utf8),
            Some(length) => length,
            None => rest.len(),
        };
        &rest[..length]
    }

    fn next(&mut self) -> &'a str {
        let word = self.peek();
        self.at += word.len();
        word
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.peek() == wanted;
        self.at += if found { wanted.len() } else { 0 };
        found
    }
}
