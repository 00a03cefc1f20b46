//! Explanations beside a picture's cells: maps to scale, brackets, hints, open tiles; and that they share a page.

use crate::support::{cells, is_cell, tiled};
use roxmltree::Document;
use std::collections::BTreeSet;
use tilewise::{Shape, Tiled};
use tilewise_draw::{ErrorKind, Options, Scene, Theme, View};

fn svg(shape: &str, options: &Options) -> String {
    Scene::of(&tiled(shape), options).expect(shape).to_svg()
}

fn texts<'a>(document: &'a Document<'_>) -> Vec<&'a str> {
    document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect()
}

/// The selectors of all rules, those for dark viewers too.
fn selectors(css: &str) -> impl Iterator<Item = &str> {
    let css = css.split(['{', '}']).filter(|part| !part.contains(':') || part.starts_with("@media"));
    css.filter(|part| !part.is_empty() && !part.starts_with("@media")).flat_map(|part| part.split(','))
}

#[test]
fn pictures_on_one_page_do_not_affect_each_other() {
    let plan = crate::plan::small();
    let pictures = [
        svg("f32[3,5]{1,0:T(2,2)}", &Options::new()),
        svg("f32[3,5]{1,0:T(2,2)}", &Options::new().with_theme(Theme::Light)),
        svg("f32[3,5]{1,0:T(2,2)}", &Options::new().with_theme(Theme::Dark)),
        svg("f32[3,5]{1,0:T(2,2)}", &Options::new().with_highlight([2, 3])),
        svg("f32[3,6]{1,0:T(2,2)}", &Options::new()),
        plan.to_svg(&Options::new()),
    ];
    let mut all = BTreeSet::new();
    for svg in &pictures {
        let document = Document::parse(svg).expect("well-formed");
        let root = document.root_element().attribute("id").expect("an id");
        for id in document.descendants().filter_map(|node| node.attribute("id")) {
            assert!(id.starts_with(root) && all.insert(id.to_owned()), "{id}");
        }
        let style = document.descendants().find(|node| node.has_tag_name("style")).and_then(|node| node.text());
        let style = style.expect("a style sheet");
        for selector in selectors(style) {
            let own = selector.strip_prefix(&format!("#{root}"));
            assert!(own.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')), "{selector}");
        }
        let references: Vec<&str> = svg.split("url(#").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(!references.is_empty() && references.iter().all(|id| all.contains(*id) && id.starts_with(root)));
    }
    assert_eq!(pictures[0], svg("f32[3,5]{1,0:T(2,2)}", &Options::new()));
}

/// 12 of 128 lanes look like 12 of 128, and what is drawn whole has no map.
#[test]
fn maps_are_to_scale() {
    for (shape, [columns, rows]) in [
        ("f32[400000,12]{1,0:T(8,128)}", [(12, 128), (400_000, 400_000)]),
        ("bf16[300,500]{1,0:T(8,128)(2,1)}", [(500, 512), (300, 304)]),
        ("f32[1000000,12]{0,1:T(8,128)}", [(12, 16), (1_000_000, 1_000_064)]),
        ("s8[33,1000]{1,0:T(32,128)(4,1)}", [(1000, 1024), (33, 64)]),
    ] {
        let svg = svg(shape, &Options::new().with_view(View::Logical));
        let document = Document::parse(&svg).expect("well-formed");
        let map = document.descendants().find(|node| node.attribute("data-panel") == Some("map")).expect(shape);
        let side = |class: &str, name: &str| {
            let rect = map.children().find(|node| node.attribute("class") == Some(class)).expect(class);
            rect.attribute(name).and_then(|text| text.parse::<f64>().ok()).expect("a number")
        };
        for (name, (data, whole)) in [("width", columns), ("height", rows)] {
            let share = side("tw-extent", name) / side("tw-outline", name);
            assert!((share - f64::from(data) / f64::from(whole)).abs() < 0.005, "{shape}: {name} {share}");
        }
    }
    for shape in ["f32[3,5]{1,0:T(2,2)}", "f32[]", "f32[12]{0}"] {
        assert!(!svg(shape, &Options::new()).contains("data-panel=\"map\""), "{shape}");
    }
}

/// A register is 8 sublanes of 128 lanes of 32 bits, 4 KiB; shorter and packed tiles are parts of one.
#[test]
fn tiles_of_tpus_are_bracketed() {
    for (shape, across, down) in [
        ("f32[16,256]{1,0:T(8,128)}", "one vreg (4 KiB): 128 lanes →", "← 8 sublanes"),
        ("f32[1000,12]{0,1:T(8,128)}", "one vreg (4 KiB): 8 sublanes →", "← 128 lanes"),
        ("bf16[16,256]{1,0:T(8,128)(2,1)}", "half a vreg (2 KiB): 128 lanes →", "← 8 rows = 4 sublanes × 2"),
        ("s8[64,256]{1,0:T(32,128)(4,1)}", "one vreg (4 KiB): 128 lanes →", "← 32 rows = 8 sublanes × 4"),
        ("f32[1,256]{1,0:T(1,128)}", "an eighth of a vreg (512 B): 128 lanes →, ↓ 1 sublane", ""),
        ("f32[3000]{0:T(1024)}", "one vreg (4 KiB): 8 sublanes × 128 lanes →", ""),
        ("bf16[3000]{0:T(1024)(128)(2,1)}", "half a vreg (2 KiB): 4 sublanes × 2 × 128 lanes →", ""),
    ] {
        let svg = svg(shape, &Options::new().with_view(View::Logical));
        let document = Document::parse(&svg).expect("well-formed");
        let texts = texts(&document);
        assert!(texts.contains(&across), "{shape}: {texts:?}");
        assert!(down.is_empty() || texts.contains(&down), "{shape}: {texts:?}");
    }
    for shape in ["f32[3,5]{1,0:T(2,2)}", "bf16[16,256]{1,0:T(8,128)}", "f64[8,128]{1,0:T(8,128)}", "f32[8,128]{1,0}"] {
        assert!(!svg(shape, &Options::new()).contains("vreg"), "{shape}");
    }
}

#[test]
fn cells_say_what_and_where_they_are() {
    let hints = |shape: &str| -> Vec<String> {
        let svg = svg(shape, &Options::new().with_view(View::Logical));
        let document = Document::parse(&svg).expect("well-formed");
        let cells = document.descendants().filter(|node| is_cell(*node));
        cells
            .map(|cell| cell.first_element_child().and_then(|title| title.text()).expect("a title").to_owned())
            .collect()
    };
    let figure = hints("f32[3,5]{1,0:T(2,2)}");
    assert_eq!(figure[2 * 6 + 3], "(2,3) · offset 17 · byte 68 · tile 4");
    assert_eq!(figure[5], "padding · offset 9 · byte 36 · tile 2");
    assert_eq!(hints("s4[2,3]{1,0:E(4)}")[4], "(1,1) · offset 4 · byte 2");
    assert_eq!(hints("s4[2,3]{1,0:E(4)}")[5], "(1,2) · offset 5 · byte 2, bit 4");
}

/// Tiles whose elements all lie in the plane have closed borders, others open ones.
#[test]
fn tiles_that_go_on_are_open() {
    let borders = |shape: &str| {
        let svg = svg(shape, &Options::new().with_view(View::Logical));
        let document = Document::parse(&svg).expect("well-formed");
        ["tw-tile", "tw-open"].map(|class| {
            document.descendants().any(|node| node.has_tag_name("path") && node.attribute("class") == Some(class))
        })
    };
    assert_eq!(borders("f32[4,4,4]{2,1,0:T(2,2)}"), [true, false]);
    assert_eq!(borders("f32[4,4,4]{2,1,0:T(2,2,2)}"), [false, true]);
    assert_eq!(borders("f32[2,2,4]{2,1,0:T(*,2,2)}"), [true, false]);
    // Merged with the dimension in front, the last of three rows shares its tile with the first one of the next plane.
    assert_eq!(borders("f32[2,3,4]{2,1,0:T(*,2,2)}"), [true, true]);
}

#[test]
fn legends_say_when_colours_repeat() {
    let repeats = |shape: &str| svg(shape, &Options::new()).contains("repeating after 8");
    assert!(repeats("f32[6,6]{1,0:T(2,2)}"), "nine tiles");
    assert!(!repeats("f32[4,8]{1,0:T(2,2)}"), "eight tiles");
}

#[test]
fn tuples_have_a_figure_each() {
    let arrays = |text: &str| -> Vec<(Vec<usize>, Tiled)> {
        let shape: Shape = text.parse().expect(text);
        shape.leaves().map(|(path, leaf)| (path, Tiled::new(&leaf).expect("an array"))).collect()
    };
    let pair = arrays("(f32[3,5]{1,0:T(2,2)}, (s4[2,3]{1,0:E(4)}))");
    let scene = Scene::of_tuple(&pair, &Options::new()).expect("no index");
    let svg = scene.to_svg();
    let document = Document::parse(&svg).expect("well-formed");
    assert_eq!(cells(&document, "array").len(), 4 * 6 + 2 * 3);
    let titles: Vec<&str> = texts(&document).into_iter().filter(|text| text.starts_with('{')).collect();
    assert_eq!(titles, ["{0}: f32[3,5]{1,0:T(2,2)}", "{1,0}: s4[2,3]{1,0:E(4)}"]);
    assert!(scene.to_terminal(80).contains("\n\n\n{1,0}: s4[2,3]{1,0:E(4)}\n"));

    let many = arrays(&format!("({})", ["f32[1]{0}"; 20].join(", ")));
    let text = Scene::of_tuple(&many, &Options::new()).expect("no index").to_terminal(80);
    assert!(
        text.contains("{15}: ") && !text.contains("{16}: ") && text.contains("… 4 more arrays not drawn."),
        "{text}"
    );
    let compared = Options::new().with_view(View::Compare(Box::new(tiled("f32[1]{0}"))));
    assert_eq!(Scene::of_tuple(&many, &compared).expect_err("no arrays").kind(), ErrorKind::ShapeMismatch);
}
