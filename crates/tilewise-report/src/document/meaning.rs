//! One thing that a part of the notation means.

use serde::Serialize;
use tilewise::{ElementType, Layout, Shape, TileFormat, tpu::memory_space_name};

/// One thing that a part means.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Meaning {
    pub(super) label: String,
    pub(super) meaning: String,
}

impl Meaning {
    pub(super) fn of(label: &str, meaning: impl Into<String>) -> Self {
        Self { label: label.to_owned(), meaning: meaning.into() }
    }
}

/// A format of tiles, and who uses it.
pub(super) fn format_in_words(format: &TileFormat) -> String {
    format!("{}, {}: {} ({})", format.name(), format.layout(), format.used_by(), format.source())
}

/// Sizes by name: the general statement.
pub(super) fn of_names(items: &[&str]) -> Vec<Meaning> {
    let rank = items.len();
    let array = Shape::array(ElementType::F32, (2..).take(rank)).ok();
    let letter = |number| array.as_ref().and_then(|shape| shape.as_array()?.dimension_letter(number));
    let dimensions: Vec<String> = items
        .iter()
        .enumerate()
        .map(|(number, name)| match letter(number) {
            Some(letter) => format!("dimension {number} ({letter}) has size {name}"),
            None => format!("dimension {number} has size {name}"),
        })
        .collect();
    let mut lines =
        vec![Meaning::of("sizes", format!("of any array with {rank} dimensions: {}", dimensions.join(", ")))];
    let order = Layout::row_major(rank).to_string();
    let last = items[rank - 1];
    let before = items[rank - 2];
    lines.push(Meaning::of(
        "written",
        format!("f32[{}]{order}, dimension −1 being {last}, the last, and −2 {before}", items.join(",")),
    ));
    lines.extend(array.map(|shape| Meaning::of("shape", format!("with numbers, such as {}", shape.without_layout()))));
    lines
}

/// A memory space in words, by its number.
pub(super) fn space_in_words(space: u8) -> String {
    let name = memory_space_name(space);
    if name.starts_with("space_") {
        format!("memory space {space}")
    } else {
        format!("memory space {space}, {name} on a TPU")
    }
}
