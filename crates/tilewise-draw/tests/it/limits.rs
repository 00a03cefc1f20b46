//! A picture of any layout is small and well-formed; none panics.

use crate::support::{is_cell, tiled};
use roxmltree::Document;
use tilewise_draw::{ColorMode, ErrorKind, Options, Scene, Theme, View};

const MOST_CELLS: usize = 1500;

fn draw_all(shape: &str) {
    let tiled = tiled(shape);
    let last: Vec<u64> = tiled.logical_dimensions().iter().map(|bound| bound.saturating_sub(1)).collect();
    let highlights: &[Option<Vec<u64>>] =
        if tiled.tiled_elements() == 0 { &[None] } else { &[None, Some(vec![0; last.len()]), Some(last)] };
    for highlight in highlights {
        let other = View::Compare(Box::new(tiled.clone()));
        for view in [View::Logical, View::Memory, View::Both, View::Word, other] {
            let mut options = Options::new().with_view(view);
            if let Some(index) = highlight {
                options = options.with_highlight(index.clone());
            }
            check(&Scene::of(&tiled, &options).expect(shape));
            check(&Scene::steps(&tiled, &options).expect(shape));
        }
    }
}

fn check(scene: &Scene) {
    let svg = scene.to_svg();
    let document = Document::parse(&svg).expect("well-formed");
    assert!(document.descendants().filter(|node| is_cell(*node)).count() <= MOST_CELLS);
    for width in [0, 1, 20, 80] {
        assert!(scene.to_terminal(width).ends_with('\n'));
    }
}

#[test]
fn huge_bounds() {
    draw_all("u8[9223372036854775807]{0}");
    draw_all("s4[4611686018427387904]{0:E(4)}");
    draw_all("u8[3037000499,3037000499]{0,1}");
    draw_all("u8[2147483648,2147483648]{1,0:T(8,128)(4,1)}");
    draw_all("u8[1000003,1000033]{1,0:T(*,7)(5)L(4096)}");
    draw_all("f32[1]{0:T(1000000007)}");
    draw_all("f32[3,5]{1,0:T(1000000007,3)}");
    draw_all("f32[7]{0:L(1000000007)}");
    draw_all("f32[1,1]{1,0:T(4611686018427387904,1)E(1)}");
}

#[test]
fn many_dimensions_and_many_tiles() {
    let list = |items: Vec<String>| items.join(",");
    let ones = list(vec!["1".to_owned(); 98]);
    let order = list((0..100).rev().map(|d| d.to_string()).collect());
    draw_all(&format!("f32[{ones},3,5]{{{order}:T(2,2)}}"));
    let twos = list((0..100).map(|d| if d % 3 == 0 && d < 90 { "2" } else { "1" }.to_owned()).collect());
    let scattered = list((0..100).map(|d| ((d * 37) % 100).to_string()).collect());
    draw_all(&format!("f32[{twos}]{{{scattered}}}"));
    draw_all(&format!("f32[4,8]{{1,0:T{}}}", "(2,2)".repeat(40)));
    draw_all(&format!("f32[4,8]{{1,0:T({}2)}}", "*,".repeat(60)));
    draw_all(&format!("f32[4]{{0:T({}2)}}", "1,".repeat(60)));
}

#[test]
fn nothing_and_next_to_nothing() {
    for shape in [
        "f32[]",
        "f32[]{:T(128)}",
        "f32[0]",
        "f32[0,4]{1,0:T(8,128)}",
        "f32[4,0,3]{0,2,1:T(2,2)L(8)}",
        "pred[]{:T(2,2)L(7)E(1)}",
    ] {
        draw_all(shape);
    }
    draw_all("f32[0,4611686018427387904,4]");
    draw_all("s4[5,3]{1,0:E(6)}");
    draw_all("f32[5,3]{1,0:E(1000)}");
    draw_all("f32[<=5,3]{1,0:T(2,2)}");
    draw_all("f32[2,3]{1,0:E(9223372036854775807)}".replace("9223372036854775807", "1000000000000000000").as_str());
}

#[test]
fn wrong_indices_are_errors() {
    let tiled = tiled("f32[2,3,5]{2,1,0:T(2,2)}");
    let kind = |options: Options| Scene::of(&tiled, &options).expect_err("wrong").kind();
    let outside = Scene::of(&tiled, &Options::new().with_highlight([0, 0, 5])).expect_err("wrong");
    assert_eq!(std::error::Error::source(&outside).map(ToString::to_string), Some(outside.to_string()));
    assert_eq!(kind(Options::new().with_highlight([0, 0, 5])), ErrorKind::IndexOutOfBounds);
    assert_eq!(kind(Options::new().with_highlight([0, 0])), ErrorKind::IndexRankMismatch);
    assert_eq!(kind(Options::new().with_slice(0, 2)), ErrorKind::IndexOutOfBounds);
    assert_eq!(kind(Options::new().with_slice(3, 0)), ErrorKind::IndexOutOfBounds);
    assert_eq!(kind(Options::new().with_slice(-4, 0)), ErrorKind::IndexOutOfBounds);
    assert_eq!(kind(Options::new().with_slice(i64::MIN, 0)), ErrorKind::IndexOutOfBounds);
    assert_eq!(kind(Options::new().with_slice(-1, 0).with_slice(2, 1)), ErrorKind::InvalidSlice);
    let other = crate::support::tiled("f32[2,5,3]{2,1,0}");
    assert_eq!(kind(Options::new().with_view(View::Compare(Box::new(other)))), ErrorKind::ShapeMismatch);
}

#[test]
fn every_slice_can_be_drawn() {
    let tiled = tiled("f32[2,3,5]{0,2,1:T(2,2)}");
    for slices in [vec![], vec![(-1, 4)], vec![(0, 1), (-2, 2)], vec![(0, 1), (1, 2), (2, 3)], vec![(1, 1), (1, 1)]] {
        let options = slices.into_iter().fold(Options::new(), |options, (d, i)| options.with_slice(d, i));
        check(&Scene::of(&tiled, &options).expect("inside"));
    }
    let outside = Options::new().with_slice(1, 2).with_highlight([1, 0, 4]);
    let text = Scene::of(&tiled, &outside).expect("inside").to_terminal(80);
    assert!(text.contains("This element lies outside the slice that is drawn."), "{text}");
}

#[test]
fn colors_and_themes() {
    let tiled = tiled("f32[3,5]{1,0:T(2,2)}");
    let draw = |options: Options| Scene::of(&tiled, &options).expect("no index");
    assert!(draw(Options::new()).to_svg().contains("prefers-color-scheme:dark"));
    assert!(!draw(Options::new().with_theme(Theme::Dark)).to_svg().contains("prefers-color-scheme"));
    assert!(draw(Options::new().with_color(ColorMode::TrueColor)).to_terminal(80).contains("\x1b[48;2;140;188;237;"));
    assert!(draw(Options::new().with_color(ColorMode::Palette256)).to_terminal(80).contains("\x1b[48;5;"));
}

#[cfg(feature = "png")]
#[test]
fn png_sizes_are_checked() {
    let scene = Scene::of(&tiled("f32[3,5]{1,0:T(2,2)}"), &Options::new()).expect("no index");
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        assert_eq!(scene.to_png(scale).expect_err("no scale").kind(), ErrorKind::InvalidScale);
    }
    for scale in [1e9, 1e30, f32::MAX] {
        assert_eq!(scene.to_png(scale).expect_err("too large").kind(), ErrorKind::ImageTooLarge);
    }
    for theme in [Theme::Auto, Theme::Light, Theme::Dark] {
        let scene = Scene::of(&tiled("f32[3,5]{1,0:T(2,2)}"), &Options::new().with_theme(theme)).expect("no index");
        assert!(scene.to_png(0.5).expect("small").starts_with(b"\x89PNG\r\n"));
    }
    assert!(scene.to_png(1e-6).is_ok());
}
