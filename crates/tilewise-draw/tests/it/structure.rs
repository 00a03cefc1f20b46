//! Pictures of random layouts, parsed and compared with the core.

use crate::support::{Cell, cells};
use proptest::prelude::*;
use roxmltree::Document;
use tilewise::{Shape, Tiled};
use tilewise_draw::{Options, Scene, View};
use tilewise_testing::{cells::memory, shapes::small_arrays};

const PANELS: [&str; 5] = ["array", "memory", "words", "array-after", "strips"];

/// Every cell agrees with the core: the offset of its element, and what is padding.
fn check(tiled: &Tiled, cell: &Cell) {
    let offset = cell.offset.expect("an offset");
    assert_eq!(cell.bit, Some(u128::from(offset) * u128::from(tiled.stored_bits())));
    let levels = tiled.tile_levels();
    assert!(cell.tile.is_some() != levels.is_empty() || cell.index.is_none(), "{cell:?}");
    // Memory is one tile after the other; more tiles can put padding into one.
    if let (Some(tile), [level]) = (cell.tile, &levels[..]) {
        assert_eq!(tile, offset / level.block_elements(), "{cell:?}");
    }
    match &cell.index {
        Some(index) => {
            assert_eq!(tiled.offset_of(index).expect("inside"), offset);
            assert!(cell.padding.is_none() && !cell.hatched, "{cell:?}");
        }
        None => {
            assert_eq!(tiled.index_of(offset).expect("inside the buffer"), None);
            let kind = if offset < tiled.tiled_elements() { "tile" } else { "tail" };
            assert_eq!(cell.padding.as_deref(), Some(kind));
            assert!(cell.hatched, "{cell:?}");
        }
    }
}

/// No two cells of a panel overlap.
fn check_apart(cells: &[Cell]) {
    let mut corners: Vec<(i64, i64)> = Vec::new();
    for cell in cells {
        #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
        let corner = ((cell.corner.0 * 10.0).round() as i64, (cell.corner.1 * 10.0).round() as i64);
        corners.push(corner);
        assert_eq!(cell.size, cells[0].size);
    }
    let count = corners.len();
    corners.sort_unstable();
    corners.dedup();
    assert_eq!(corners.len(), count);
}

fn drawn(tiled: &Tiled, options: &Options) -> String {
    Scene::of(tiled, options).expect("no wrong index").to_svg()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn every_cell_is_where_the_layout_puts_it(shape in small_arrays(), at in any::<u64>()) {
        let tiled = Tiled::new(&shape).expect("small");
        let elements: u64 = tiled.logical_dimensions().iter().product();
        let highlight = if elements == 0 { None } else {
            let mut rest = at % elements;
            let mut index: Vec<u64> = tiled.logical_dimensions().iter().rev().map(|&bound| {
                let i = rest % bound;
                rest /= bound;
                i
            }).collect();
            index.reverse();
            Some(index)
        };
        let mut options = Options::new();
        if let Some(index) = &highlight {
            options = options.with_highlight(index.clone());
        }
        for view in [View::Both, View::Word] {
            let svg = drawn(&tiled, &options.clone().with_view(view));
            let document = Document::parse(&svg).expect("well-formed");
            for panel in PANELS {
                let cells = cells(&document, panel);
                cells.iter().for_each(|cell| check(&tiled, cell));
                check_apart(&cells);
            }
            // The followed element is drawn.
            let array = cells(&document, "array");
            prop_assert!(array.is_empty() == (elements == 0));
            if highlight.is_some() {
                prop_assert!(array.iter().any(|cell| cell.index == highlight));
            }
        }
    }

    /// The memory view of the naive definition: pad, reshape, transpose, cell by cell.
    #[test]
    fn memory_is_what_the_document_defines(shape in small_arrays()) {
        let tiled = Tiled::new(&shape).expect("small");
        let bounds: Vec<usize> = tiled.logical_dimensions().iter().map(|&n| usize::try_from(n).expect("small")).collect();
        let naive = memory(&bounds, shape.layout().expect("a layout"));
        let svg = drawn(&tiled, &Options::new().with_view(View::Memory));
        for cell in cells(&Document::parse(&svg).expect("well-formed"), "memory") {
            let offset = usize::try_from(cell.offset.expect("an offset")).expect("small");
            let position = cell.index.map(|index| {
                let index: Vec<usize> = index.into_iter().map(|i| usize::try_from(i).expect("small")).collect();
                tilewise_testing::cells::ravel(&index, &bounds)
            });
            prop_assert_eq!(position, naive.cells[offset]);
        }
    }

    /// A plane small enough is drawn whole, each element once, with its offset written in it.
    #[test]
    fn nothing_small_is_left_out(shape in small_arrays()) {
        let tiled = Tiled::new(&shape).expect("small");
        let mut options = Options::new().with_view(View::Logical);
        let rank = tiled.logical_dimensions().len();
        for dimension in 0..rank.saturating_sub(2) {
            options = options.with_slice(i64::try_from(dimension).expect("small"), 0);
        }
        prop_assume!(tiled.tiled_elements() > 0 && tiled.physical_elements() < 10_000);
        let svg = drawn(&tiled, &options);
        let cells = cells(&Document::parse(&svg).expect("well-formed"), "array");
        let mut offsets: Vec<u64> = cells.iter().filter_map(|cell| cell.offset).collect();
        prop_assert!(cells.iter().all(|cell| cell.text == cell.offset.expect("an offset").to_string()));
        offsets.sort_unstable();
        offsets.dedup();
        prop_assert_eq!(offsets.len(), cells.len());
        let plane: u64 = tiled.logical_dimensions().iter().rev().take(2).product();
        prop_assert_eq!(cells.iter().filter(|cell| cell.index.is_some()).count() as u64, plane);
    }

    /// Two layouts of one array: what is marked as moved has moved.
    #[test]
    fn comparisons_tell_what_moved(from in small_arrays(), order in Just((0..5).collect::<Vec<usize>>()).prop_shuffle()) {
        let rank = from.dimensions().len();
        let order: Vec<usize> = order.into_iter().filter(|&dimension| dimension < rank).collect();
        let to: Shape = from.with_layout(tilewise::Layout::new(order).expect("a permutation")).expect("of that rank");
        let (from, to) = (Tiled::new(&from).expect("small"), Tiled::new(&to).expect("small"));
        let svg = drawn(&from, &Options::new().with_view(View::Compare(Box::new(to.clone()))));
        let document = Document::parse(&svg).expect("well-formed");
        cells(&document, "array").iter().for_each(|cell| check(&from, cell));
        cells(&document, "array-after").iter().for_each(|cell| check(&to, cell));
        for panel in document.descendants().filter(|node| node.attribute("data-panel") == Some("array-after")) {
            let cells = panel.children().filter(|node| crate::support::is_cell(*node));
            for cell in cells {
                let Some(index) = cell.attribute("data-index") else { continue };
                let index: Vec<u64> = index.split(',').filter(|i| !i.is_empty()).map(|i| i.parse().expect("a number")).collect();
                let note = cell.next_siblings().skip(1).filter(|node| node.is_element()).nth(1);
                let note = note.filter(|node| node.attribute("class").is_some_and(|class| class.starts_with("tw-note")));
                let old = from.offset_of(&index).expect("inside");
                let moved = old != to.offset_of(&index).expect("inside");
                let told = note.and_then(|node| node.text()).map(str::to_owned);
                prop_assert_eq!(told, moved.then(|| format!("was {old}")));
            }
        }
    }

    /// Terminal text keeps to its width where cells allow it, and has no escape sequence unless asked.
    #[test]
    fn terminal_text_is_plain_and_narrow(shape in small_arrays(), width in 40..120usize) {
        let tiled = Tiled::new(&shape).expect("small");
        for view in [View::Both, View::Word] {
            let scene = Scene::of(&tiled, &Options::new().with_view(view.clone())).expect("no index");
            let text = scene.to_terminal(width);
            prop_assert!(text.lines().all(|line| line.chars().count() <= width), "{}", text);
            prop_assert!(!text.contains('\x1b') && text.lines().all(|line| line == line.trim_end()));
            let ascii = Scene::of(&tiled, &Options::new().with_view(view).with_ascii(true)).expect("no index");
            prop_assert!(ascii.to_terminal(width).is_ascii());
        }
    }
}
