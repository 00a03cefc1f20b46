//! Reading pictures back.

#![allow(dead_code, reason = "each test uses a part")]

use roxmltree::{Document, Node};
use tilewise::Tiled;

pub(crate) fn tiled(text: &str) -> Tiled {
    Tiled::new(&text.parse().expect(text)).expect(text)
}

/// A cell as the SVG has it.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) class: String,
    pub(crate) index: Option<Vec<u64>>,
    pub(crate) offset: Option<u64>,
    /// Where it starts, in bits.
    pub(crate) bit: Option<u128>,
    pub(crate) tile: Option<u64>,
    pub(crate) padding: Option<String>,
    pub(crate) hatched: bool,
    pub(crate) text: String,
    pub(crate) corner: (f64, f64),
    pub(crate) size: (f64, f64),
}

/// The cells of the panels of that name, row by row.
pub(crate) fn cells(document: &Document<'_>, panel: &str) -> Vec<Cell> {
    let panels = document.descendants().filter(|node| node.attribute("data-panel") == Some(panel));
    panels.flat_map(cells_of).collect()
}

/// The cells of a panel.
pub(crate) fn cells_of(panel: Node<'_, '_>) -> Vec<Cell> {
    panel.children().filter(|node| is_cell(*node)).map(cell).collect()
}

pub(crate) fn is_cell(node: Node<'_, '_>) -> bool {
    node.attribute("class").is_some_and(|class| class.split(' ').any(|class| class == "tw-c"))
}

fn cell(node: Node<'_, '_>) -> Cell {
    let number = |name: &str| node.attribute(name).expect("a measure").parse::<f64>().expect("a number");
    let numbers = |text: &str| match text {
        "" => Vec::new(),
        text => text.split(',').map(|number| number.parse().expect("a number")).collect(),
    };
    let next = node.next_sibling_element();
    let own = next.filter(|node| node.attribute("class").is_some_and(|class| class.starts_with("tw-cell")));
    Cell {
        class: node.attribute("class").unwrap_or_default().to_owned(),
        index: node.attribute("data-index").map(numbers),
        offset: node.attribute("data-offset").map(|offset| offset.parse().expect("a number")),
        bit: node.attribute("data-byte").map(|byte| {
            let bit = node.attribute("data-bit").map_or(0, |bit| bit.parse().expect("a number"));
            byte.parse::<u128>().expect("a number") * 8 + bit
        }),
        tile: node.attribute("data-tile").map(|tile| tile.parse().expect("a number")),
        padding: node.attribute("data-padding").map(str::to_owned),
        hatched: node.attribute("class").is_some_and(|class| class.ends_with(" tw-pad")),
        text: own.and_then(|node| node.text()).unwrap_or_default().to_owned(),
        corner: (number("x"), number("y")),
        size: (number("width"), number("height")),
    }
}
