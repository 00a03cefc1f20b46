//! A PNG shows what the SVG of the same scene says, pixel by pixel where that is certain.

#![cfg(feature = "png")]

use crate::support::{Cell, cells_of, tiled};
use proptest::prelude::*;
use roxmltree::{Document, Node};
use std::collections::HashMap;
use tilewise::Tiled;
use tilewise_draw::{Options, Scene, Theme, View};
use tilewise_testing::shapes::small_arrays;

/// Pixels for each unit.
const SCALE: usize = 2;

type Rgb = [u8; 3];

struct Image {
    width: usize,
    /// Red, green, blue and alpha.
    pixels: Vec<[u8; 4]>,
}

impl Image {
    fn of(scene: &Scene) -> Self {
        Self::read(&scene.to_png(SCALE as f32).expect("a picture of usual size"))
    }

    fn read(bytes: &[u8]) -> Self {
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
        let mut data = vec![0; reader.output_buffer_size().expect("a small image")];
        let info = reader.next_frame(&mut data).expect("an image");
        assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgba, png::BitDepth::Eight));
        Self { width: info.width as usize, pixels: data.as_chunks().0.to_vec() }
    }

    fn rgb(&self, (x, y): (usize, usize)) -> Rgb {
        let [red, green, blue, alpha] = self.pixels[y * self.width + x];
        assert_eq!(alpha, u8::MAX);
        [red, green, blue]
    }
}

/// The pixel to the right of and below a point.
fn pixel((x, y): (f64, f64)) -> (usize, usize) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "inside a picture")]
    let place = |at: f64| (at * SCALE as f64).round() as usize;
    (place(x), place(y))
}

/// The colour that the style sheet has for a class.
fn color(svg: &str, rule: &str) -> Rgb {
    let (_, rest) = svg.split_once(&format!("{rule}:#")).expect(rule);
    [0, 2, 4].map(|at| u8::from_str_radix(&rest[at..at + 2], 16).expect("a hexadecimal number"))
}

fn distance(a: Rgb, b: Rgb) -> u32 {
    a.into_iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(b))).sum()
}

/// The part of a cell that borders, and marks of corners, take.
const MARGIN: f64 = 2.0;
/// The part that a double border takes, whose lines reach 2.6 into it.
const MARGIN_OF_JOINED: f64 = 3.0;

/// The inside of a cell.
fn inside(cell: &Cell, (left, top): (f64, f64), margin: f64) -> Vec<(usize, usize)> {
    let (x, y) = pixel((left + cell.corner.0 + margin, top + cell.corner.1 + margin));
    let (right, bottom) =
        pixel((left + cell.corner.0 + cell.size.0 - margin, top + cell.corner.1 + cell.size.1 - margin));
    (y..bottom).flat_map(|y| (x..right).map(move |x| (x, y))).collect()
}

fn check(scene: &Scene) {
    let svg = scene.to_svg();
    let document = Document::parse(&svg).expect("well-formed");
    let image = Image::of(scene);
    let size = |name: &str| document.root_element().attribute(name).and_then(|text| text.parse().ok());
    assert_eq!(size("width"), Some(image.width / SCALE));
    assert_eq!(size("height"), Some(image.pixels.len() / image.width / SCALE));
    // The picture's corners are round and transparent.
    for corner in [0, image.width - 1, image.pixels.len() - image.width, image.pixels.len() - 1] {
        assert_eq!(image.pixels[corner], [0; 4]);
    }
    for panel in document.descendants().filter(|node| node.has_attribute("data-panel")) {
        let place = panel.attribute("transform").and_then(|text| text.strip_prefix("translate(")?.strip_suffix(')'));
        let (x, y) = place.and_then(|text| text.split_once(' ')).expect("a place");
        let corner = (x.parse().expect("a number"), y.parse().expect("a number"));
        check_cells(&svg, &image, panel, corner);
        check_borders(&svg, &image, panel, corner);
    }
}

fn check_cells(svg: &str, image: &Image, panel: Node<'_, '_>, corner: (f64, f64)) {
    // The shape of each text: the pixels nearer to its colour than to the background's.
    let mut looks: HashMap<String, Vec<bool>> = HashMap::new();
    let is_joined = panel.children().any(|node| node.attribute("class") == Some("tw-joined"));
    let margin = if is_joined { MARGIN_OF_JOINED } else { MARGIN };
    for cell in cells_of(panel) {
        let pixels: Vec<Rgb> = inside(&cell, corner, margin).into_iter().map(|at| image.rgb(at)).collect();
        if cell.hatched {
            check_hatched(svg, &cell, &pixels);
            continue;
        }
        let ground = color(svg, &format!(".{}{{fill", cell.class.split(' ').nth(1).expect("the class of a tile")));
        let ink = color(svg, ".tw-cell{fill");
        assert_eq!(pixels[0], ground, "{cell:?}");
        let look: Vec<bool> = pixels.iter().map(|&rgb| distance(rgb, ink) < distance(rgb, ground)).collect();
        assert_eq!(look.contains(&true), !cell.text.is_empty(), "{cell:?}");
        // Notes say more than the text.
        if cell.size.1 < 31.0 {
            let known = looks.entry(cell.text.clone()).or_insert_with(|| look.clone());
            assert!(*known == look, "{} looks like another {}", cell.text, cell.text);
        }
    }
    let mut different: Vec<&Vec<bool>> = looks.values().collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), looks.len(), "two texts look the same");
}

/// Padding is hatched: a fifth of its pixels are lines.
fn check_hatched(svg: &str, cell: &Cell, pixels: &[Rgb]) {
    if !cell.text.is_empty() {
        return;
    }
    let (ground, line) = (color(svg, ".tw-blank{fill"), color(svg, ".tw-hatch{stroke"));
    assert!(pixels.contains(&ground) && pixels.contains(&line), "{cell:?}");
    let all = pixels.len() as f64 * f64::from(distance(ground, line));
    let drawn: u32 = pixels.iter().map(|&rgb| distance(rgb, ground)).sum();
    assert!((0.17..0.23).contains(&(f64::from(drawn) / all)), "{cell:?}");
}

/// The middle of each line is its colour.
fn check_borders(svg: &str, image: &Image, panel: Node<'_, '_>, (left, top): (f64, f64)) {
    for class in ["tw-tile", "tw-inner"] {
        let ink = color(svg, &format!(".{class}{{stroke"));
        let path = panel.children().find(|node| node.attribute("class") == Some(class));
        for line in path.and_then(|path| path.attribute("d")).unwrap_or_default().split('M').skip(1) {
            let (start, length) = line.split_once(['h', 'v']).expect("a line");
            let (x, y) = start.split_once(' ').expect("a point");
            let [x, y, length] = [x, y, length].map(|number| number.parse::<f64>().expect("a number"));
            let middle = if line.contains('h') { (x + length / 2.0, y) } else { (x, y + length / 2.0) };
            let rgb = image.rgb(pixel((left + middle.0, top + middle.1)));
            assert_eq!(rgb, ink, "{class} at {start}");
        }
    }
}

fn draw(shape: &str, view: View, theme: Theme) -> Scene {
    Scene::of(&tiled(shape), &Options::new().with_view(view).with_theme(theme)).expect(shape)
}

#[test]
fn layouts_of_tpus_and_documents() {
    check(&draw("f32[8,128]{1,0:T(8,128)}", View::Both, Theme::Light));
    check(&draw("bf16[16,256]{1,0:T(8,128)(2,1)}", View::Logical, Theme::Dark));
    check(&draw("s4[64,256]{1,0:T(8,128)(8,1)E(4)}", View::Word, Theme::Light));
    check(&draw("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", View::Both, Theme::Dark));
    check(&draw("f32[2,3,4,5,6]{1,3,0,4,2}", View::Memory, Theme::Auto));
    check(&draw("f32[3,9]{1,0:T(2,4)(2,2,1)}", View::Both, Theme::Light));
    check(&draw("f32[2]{0:T(1)(*,*,*,3)}", View::Both, Theme::Dark));
    let other = View::Compare(Box::new(tiled("f32[4,6]{0,1:T(2,2)}")));
    check(&draw("f32[4,6]{1,0}", other, Theme::Light));
    check(&Scene::steps(&tiled("f32[3,5]{1,0:T(2,2)}"), &Options::new().with_theme(Theme::Dark)).expect("no index"));
}

/// A highlighted cell has a ring in the accent colour on each side.
#[test]
fn highlights() {
    let options = Options::new().with_theme(Theme::Light).with_highlight([2, 3]);
    let scene = Scene::of(&tiled("f32[3,5]{1,0:T(2,2)}"), &options).expect("inside");
    let (svg, image) = (scene.to_svg(), Image::of(&scene));
    let accent = color(&svg, ".tw-ring{stroke");
    let document = Document::parse(&svg).expect("well-formed");
    for name in ["array", "memory"] {
        let panel = document.descendants().find(|node| node.attribute("data-panel") == Some(name)).expect(name);
        let cell = cells_of(panel).into_iter().find(|cell| cell.index == Some(vec![2, 3])).expect("drawn");
        let place = panel.attribute("transform").expect("a place").replace("translate(", "").replace(')', "");
        let (left, top) = place.split_once(' ').expect("two numbers");
        let (x, y): (f64, f64) = (left.parse().expect("a number"), top.parse().expect("a number"));
        let (x, y) = (x + cell.corner.0, y + cell.corner.1);
        let (wide, high) = cell.size;
        for at in [(x + wide / 2.0, y), (x + wide / 2.0, y + high), (x, y + high / 2.0), (x + wide, y + high / 2.0)] {
            assert_eq!(image.rgb(pixel(at)), accent);
        }
    }
}

/// Each allocation has its owner's colour below its padding, and the padding is striped with the background.
#[test]
fn plans() {
    for theme in [Theme::Light, Theme::Dark] {
        let (picture, options) = (crate::plan::small(), Options::new().with_theme(theme));
        let svg = picture.to_svg(&options);
        let image = Image::read(&picture.to_png(&options, SCALE as f32).expect("a picture of usual size"));
        let document = Document::parse(&svg).expect("well-formed");
        let panel = document.descendants().find(|node| node.attribute("data-panel") == Some("addresses"));
        let panel = panel.expect("allocations");
        let place = panel.attribute("transform").and_then(|text| text.strip_prefix("translate(")?.strip_suffix(')'));
        let (x, y) = place.and_then(|text| text.split_once(' ')).expect("a place");
        let corner: (f64, f64) = (x.parse().expect("a number"), y.parse().expect("a number"));
        let cells = cells_of(panel);
        assert_eq!(cells.len(), 3);
        for cell in cells {
            let ground = color(&svg, &format!(".{}{{fill", cell.class.split(' ').nth(1).expect("an owner's class")));
            let pixels = inside(&cell, corner, MARGIN);
            assert_eq!(image.rgb(pixels[pixels.len() - 1]), ground, "{cell:?}");
        }
        let stripes = panel.children().find(|node| node.attribute("class") == Some("tw-padded")).expect("padding");
        let at = |name: &str| stripes.attribute(name).and_then(|text| text.parse::<f64>().ok()).expect("a number");
        let (left, top) = pixel((corner.0 + at("x") + 2.0, corner.1 + at("y") + 2.0));
        let (right, bottom) = pixel((corner.0 + at("x") + at("width") / 2.5, corner.1 + at("y") + at("height") - 2.0));
        let (ground, line) = (color(&svg, ".tw-0{fill"), color(&svg, ".tw-background{fill"));
        let pixels = (top..bottom).flat_map(|y| (left..right).map(move |x| (x, y)));
        let striped = pixels.map(|at| f64::from(distance(image.rgb(at), ground)) / f64::from(distance(line, ground)));
        let (sum, count) = striped.fold((0.0, 0.0), |(sum, count), share| (sum + share, count + 1.0));
        assert!((0.37..0.43).contains(&(sum / count)), "{}", sum / count);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8) })]

    #[test]
    fn random_layouts(shape in small_arrays()) {
        check(&Scene::of(&Tiled::new(&shape).expect("small"), &Options::new()).expect("no index"));
    }
}
