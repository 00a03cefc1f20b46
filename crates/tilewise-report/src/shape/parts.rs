//! The parts of a shape's text, and their meanings.

use serde::Serialize;
use tilewise::{LayoutPartKind, Shape};

/// A part of a shape's canonical text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NotationPart {
    /// Its start, in bytes; the text is ASCII.
    pub start: usize,
    /// Its end, in bytes.
    pub end: usize,
    /// `type`, `dimension`, `order`, `tile` or `attribute`.
    pub kind: &'static str,
    /// The number of its dimension or tile.
    pub number: Option<usize>,
    /// The number of elements in a tile; `None` if it merges dimensions, and for other parts.
    pub elements: Option<u64>,
    /// Its meaning.
    pub meaning: String,
}

/// The parts of an array's canonical text, in its order; empty if the shape isn't an array.
#[must_use]
pub fn notation_parts(shape: &Shape) -> Vec<NotationPart> {
    let Some(array) = shape.as_array() else { return Vec::new() };
    let text = shape.to_string();
    let mut parts = Vec::new();
    let mut at = 0;
    let tiles = array.layout().map_or(&[][..], |layout| layout.tiles());
    let mut find = |written: &str, kind, number: Option<usize>, meaning: String| {
        if let Some(start) = text.get(at..).and_then(|rest| rest.find(written)).map(|found| at + found) {
            at = start + written.len();
            let tile = number.filter(|_| kind == "tile").and_then(|number| tiles.get(number));
            let elements = tile.and_then(|tile| tile.dimensions().iter().map(|size| size.size()).product());
            parts.push(NotationPart { start, end: at, kind, number, elements, meaning });
        }
    };
    let bits = array.element_type().natural_bits();
    find(array.element_type().name(), "type", None, format!("element type, {bits} bits each"));
    for (number, dimension) in array.dimensions().iter().enumerate() {
        let letter = array.dimension_letter(number).map(|letter| format!(" ({letter})")).unwrap_or_default();
        let meaning = match dimension.bound() {
            Some(bound) if dimension.is_dynamic() => format!("dimension {number}{letter}: at most {bound}"),
            Some(bound) => format!("dimension {number}{letter}: {bound} elements"),
            None => format!("dimension {number}{letter}: known when the program runs"),
        };
        find(&dimension.to_string(), "dimension", Some(number), meaning);
    }
    let mut levels = 0..;
    for part in array.layout_in_words() {
        let (kind, number) = match part.kind {
            LayoutPartKind::Order => ("order", None),
            LayoutPartKind::Tile => ("tile", levels.next()),
            _ => ("attribute", None),
        };
        find(&part.text, kind, number, part.meaning);
    }
    parts
}
