//! The figures in the tree are what the crate draws, and what the tiled-layout document describes.
//!
//! `TILEWISE_UPDATE_FIGURES=1 cargo test -p tilewise-draw figures` writes them anew.

use crate::support::{cells, tiled};
use tilewise_draw::{Options, Scene, View};

fn check(file: &str, shape: &str, options: &Options) -> String {
    let svg = Scene::of(&tiled(shape), options).expect(shape).to_svg();
    let path = format!("{}/figures/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("TILEWISE_UPDATE_FIGURES").is_some() {
        std::fs::write(&path, &svg).expect("the figure is written");
    }
    let figure = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(figure == svg, "figures/{file} is not what is drawn; set TILEWISE_UPDATE_FIGURES=1 to write it anew");
    svg
}

/// Figure 1: a 3 × 5 array in 2 × 2 tiles, and the linear order beside it with the padding white.
#[test]
fn figure_1() {
    let svg = check("figure-1.svg", "f32[3,5]{1,0:T(2,2)}", &Options::new().with_highlight([2, 3]));
    let document = roxmltree::Document::parse(&svg).expect("well-formed");

    let array = cells(&document, "array");
    let offsets: Vec<u64> = array.iter().filter_map(|cell| cell.offset).collect();
    let rows = [[0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11], [12, 13, 16, 17, 20, 21], [14, 15, 18, 19, 22, 23]];
    assert_eq!(offsets, rows.concat());
    // Elements of one tile have one colour, and no other tile has it.
    for a in array.iter().filter(|cell| cell.index.is_some()) {
        for b in array.iter().filter(|cell| cell.index.is_some()) {
            let (Some(i), Some(j)) = (&a.index, &b.index) else { continue };
            let same_tile = (i[0] / 2, i[1] / 2) == (j[0] / 2, j[1] / 2);
            assert_eq!(a.class == b.class, same_tile, "{i:?} and {j:?}");
        }
    }

    let memory = cells(&document, "memory");
    let texts: Vec<&str> = memory.iter().map(|cell| cell.text.as_str()).collect();
    let line = "0,0 0,1 1,0 1,1 0,2 0,3 1,2 1,3 0,4 . 1,4 . 2,0 2,1 . . 2,2 2,3 . . 2,4 . . .";
    assert_eq!(texts, line.split(' ').map(|text| text.trim_matches('.')).collect::<Vec<_>>());
    // Colours are the same in both.
    for cell in memory.iter().filter(|cell| cell.index.is_some()) {
        assert!(array.iter().any(|other| (&other.index, &other.class) == (&cell.index, &cell.class)));
    }
    assert!(svg.contains("linear_index = (1·3 + 1)·2·2 + (0·2 + 1) = 17."));
}

/// Figure 2: a 4 × 8 array in 2 × 4 tiles, each cut into 2 × 1 tiles.
#[test]
fn figure_2() {
    let svg = check("figure-2.svg", "f32[4,8]{1,0:T(2,4)(2,1)}", &Options::new().with_view(View::Logical));
    let document = roxmltree::Document::parse(&svg).expect("well-formed");
    let offsets: Vec<u64> = cells(&document, "array").iter().filter_map(|cell| cell.offset).collect();
    let row = |first: u64| (0..8).map(move |column| first + 2 * column);
    assert_eq!(offsets, [row(0), row(1), row(16), row(17)].into_iter().flatten().collect::<Vec<_>>());

    let borders = |class: &str| {
        let path = document.descendants().find(|node| node.attribute("class") == Some(class));
        let data = path.and_then(|node| node.attribute("d")).unwrap_or_default();
        data.split('M').skip(1).count()
    };
    // Around four tiles: 3 lines of 8 cells across, 3 lines of 4 cells down. Within: 6 lines of 4 cells down, none
    // across.
    assert_eq!((borders("tw-tile"), borders("tw-inner")), (3 * 8 + 3 * 4, 6 * 4));
}

/// Two bf16 rows in each 32-bit word.
#[test]
fn words() {
    let options = Options::new().with_view(View::Word);
    let svg = check("words.svg", "bf16[16,256]{1,0:T(8,128)(2,1)}", &options);
    let document = roxmltree::Document::parse(&svg).expect("well-formed");
    let words = cells(&document, "words");
    assert_eq!(words[0].index, Some(vec![0, 0]));
    assert_eq!(words[1].index, Some(vec![1, 0]));
    assert_eq!(words[0].class, words[1].class);
    assert_ne!(words[1].class, words[2].class);
    for cell in cells(&document, "array") {
        assert_eq!(cell.text.parse(), Ok(cell.offset.expect("an offset") / 2));
    }
}

/// The document's derivation of Figure 1.
#[test]
fn steps() {
    let strip = Scene::steps(&tiled("f32[3,5]{1,0:T(2,2)}"), &Options::new()).expect("no index is given").to_svg();
    let document = roxmltree::Document::parse(&strip).expect("well-formed");
    let headings: Vec<&str> = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("tw-heading"))
        .filter_map(|node| node.text())
        .collect();
    assert_eq!(
        headings,
        [
            "0. the array [3,5]",
            "1. pad [3,5] → [4,6] = ceil(d/t)·t",
            "2. reshape [4,6] → [2,2,3,2] =",
            "(ceil(d/t), t) of each",
            "3. transpose [2,2,3,2] → [2,3,2,2]",
            "= (ceil(d/t)…, t…)",
            "4. reshape [2,3,2,2] → [24]",
        ]
    );
}

/// Figure 4: an 8 × 8 array in 2 × 4 tiles, of which (2,1,1,1) pairs those one below the other. The element with the red dot, (6,5), is
/// at 51.
#[test]
fn figure_4() {
    let scene = Scene::of(&tiled("f32[8,8]{1,0:T(2,4)(2,1,1,1)}"), &Options::new().with_highlight([6, 5]));
    let scene = scene.expect("an index inside");
    let svg = scene.to_svg();
    assert!(svg.contains("= 51.") && svg.contains("2 tiles along dimension 0 (y) joined by (2,1,1,1)"));
    let array = "\
  ╔═══════════════════╦═══════════════════╗
0 ║  0    2    4    6 ║ 16   18   20   22 ║
1 ║  8   10   12   14 ║ 24   26   28   30 ║
  ╟───────────────────╫───────────────────╢
2 ║  1    3    5    7 ║ 17   19   21   23 ║
3 ║  9   11   13   15 ║ 25   27   29   31 ║
  ╠═══════════════════╬═══════════════════╣
4 ║ 32   34   36   38 ║ 48   50   52   54 ║
5 ║ 40   42   44   46 ║ 56   58   60   62 ║
  ╟───────────────────╫───────────────────╢
6 ║ 33   35   37   39 ║ 49  [51]  53   55 ║
7 ║ 41   43   45   47 ║ 57   59   61   63 ║
  ╚═══════════════════╩═══════════════════╝";
    let drawn = scene.to_terminal(80);
    assert!(drawn.contains(array), "{drawn}");
}

/// A later tile that reaches the numbers of tiles joins some: a double border is around those, and the legend names every tile.
#[test]
fn joined_tiles_have_a_border() {
    let drawn = |shape: &str| Scene::of(&tiled(shape), &Options::new()).expect(shape).to_terminal(200);
    for (shape, lines) in [
        (
            "f32[4,8]{1,0:T(2,4)(2,2,1)}",
            &[
                "  ╔═══════════╤═══════════╗",
                "0 ║ 0┊ 4┊ 8┊12│ 2┊ 6┊10┊14║",
                "  ╠═══════════╪═══════════╣",
                " 0 ║0,0 1,0 0,4 1,4┊0,1 1,1 0,5 1,5┊0,2 1,2 0,6 1,6┊0,3 1,3 0,7 1,7║",
                "│ tile (2,4)   ║ 2 tiles along dimension 1 (x) joined by (2,2,1)   ┊ part of a tile (2,2,1)",
            ][..],
        ),
        (
            "f32[8,8]{1,0:T(2,4)(4,2,2,4)}",
            &[
                "  ╟───────────┼───────────╢",
                " 0 ║0,0 0,1 0,2 0,3 1,0 1,1 1,2 1,3│0,4 0,5 0,6 0,7 1,4 1,5 1,6 1,7║",
                "│ tile (2,4)   ║ 8 tiles along dimension 0 (y) and dimension 1 (x) joined by (4,2,2,4)",
            ],
        ),
        (
            "f32[4,8]{1,0:T(2,4)(2,2,1,1)}",
            &[
                "0 ║ 0  4  8 12│ 1  5  9 13║",
                "  ╟───────────┼───────────╢",
                " 0 ║0,0 0,4 2,0 2,4┊0,1 0,5 2,1 2,5┊0,2 0,6 2,2 2,6┊0,3 0,7 2,3 2,7║",
            ],
        ),
        (
            "f32[4,8]{1,0:T(2,4)(*,4,1)}",
            &[
                "0 ║ 0┊ 4┊ 8┊12│ 2┊ 6┊10┊14║",
                "│ tile (2,4)   ║ 2 tiles along dimension 1 (x) joined by (*,4,1)   ┊ part of a tile (*,4,1)",
            ],
        ),
        (
            "f32[8,8]{1,0:T(2,4)(*,2,2,4)}",
            &["  ╠═══════════╪═══════════╣", "│ tile (2,4)   ║ 2 tiles along dimension 1 (x) joined by (*,2,2,4)"],
        ),
        ("f32[4,8]{1,0:T(2,4)(*,2,1,1)}", &[" 0 ║0,0 0,4┊0,1 0,5┊0,2 0,6┊0,3 0,7┊1,0 1,4┊1,1 1,5┊1,2 1,6┊1,3 1,7║"]),
        // Three tiles that are no rectangle, and one more with padding.
        (
            "f32[4,8]{1,0:T(2,4)(*,3,1,1)}",
            &["  ╟───────────╬═══════════╣", "24 ║2,4┊  ╱   ╱┊2,5┊  ╱   ╱┊2,6┊  ╱   ╱┊2,7┊  ╱   ╱║"],
        ),
        // Tiles that end inside another join none; those that cut single elements have a name and no border.
        ("f32[4,8]{1,0:T(2,4)(*,3,1)}", &["│ tile (2,4)   ┊ tile (*,3,1)"]),
        ("f32[4,8]{1,0:T(2,4)(1,1)}", &["│ tile (2,4)   then (1,1), without a border here"]),
    ] {
        let drawn = drawn(shape);
        for line in lines {
            assert!(drawn.contains(line), "{shape}: {line}\n{drawn}");
        }
    }
}

/// `*` merges dimensions: beside the array is the merged one, with the page's sizes, in which the followed element has one offset.
#[test]
fn merged_arrays() {
    let options = Options::new().with_highlight([1, 6, 7, 10, 9]);
    let scene = Scene::of(&tiled("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}"), &options).expect("an element");
    let svg = scene.to_svg();
    let document = roxmltree::Document::parse(&svg).expect("well-formed");
    let merged = cells(&document, "merged");
    assert_eq!(merged.iter().filter(|cell| cell.offset == Some(12430)).count(), 1);
    assert!(svg.contains("Merged by * to 2 dimensions: [112,110]"));
    for shape in ["f32[3,5]{1,0:T(2,2)}", "f32[3,5]"] {
        let drawn = Scene::of(&tiled(shape), &Options::new()).expect(shape).to_terminal(80);
        assert!(!drawn.contains("Merged"), "{shape}");
    }
}

/// Each level of tiles has a frame of its own, and a tile its index, ⌊e/t⌋, in its corner.
#[test]
fn frames_and_tile_indices() {
    let svg = |shape: &str| Scene::of(&tiled(shape), &Options::new()).expect(shape).to_svg();
    let three = svg("f32[8,16]{1,0:T(8,8)(4,4)(2,2)}");
    assert!(three.contains("class=\"tw-inner\"") && three.contains("class=\"tw-deepest\""));
    assert!(three.contains("tile (4,4) inside it") && three.contains("tile (2,2) inside that"));
    let figure_1 = svg("f32[3,5]{1,0:T(2,2)}");
    assert!(!figure_1.contains("class=\"tw-deepest\""));
    for index in ["(0,0)", "(0,2)", "(1,1)", "(1,2)"] {
        assert_eq!(figure_1.matches(&format!(">{index}<")).count(), 1, "{index}");
    }
}

/// An element followed through the steps is at the document's combined index, and at its offset.
#[test]
fn steps_follow_an_element() {
    let options = Options::new().with_highlight([2, 3]);
    let strip = Scene::steps(&tiled("f32[3,5]{1,0:T(2,2)}"), &options).expect("an element").to_terminal(120);
    for heading in [
        "2. reshape [4,6] → [2,2,3,2] = (ceil(d/t), t) of each: (2,3) at (1,0,1,1)",
        "(2,3) at (1,1,0,1)",
        "(2,3) at (17)",
    ] {
        assert!(strip.contains(heading), "{heading}: {strip}");
    }
    assert!(!strip.contains("without a border"));
}
