//! The picture of a memory plan shows the numbers it was given, whatever they are and however many.

use proptest::prelude::*;
use roxmltree::{Document, Node};
use std::time::{Duration, Instant};
use tilewise_draw::{MemoryPicture, Options, Peak, Piece};

/// The heights of the two plots.
const PROFILE: f64 = 260.0;
const BLOCKS: f64 = 300.0;

/// Four moments: 100 bytes stand, and a moment holds 300, 400, 200 and 400 bytes.
///
/// ```text
/// 300 ┌───────────────┬───────┐
///     │       │ b     │ c     │
/// 200 ├───────┴───────┤       │
///     │ a     │       │       │
///   0 └───────┘       └───────┘
/// ```
pub(crate) fn small() -> MemoryPicture<'static> {
    let piece = |owner, name, (offset, bytes, padding_bytes), (first, last)| Piece {
        owner,
        name,
        offset: Some(offset),
        bytes,
        padding_bytes,
        first,
        last,
    };
    MemoryPicture {
        title: "a plan".into(),
        moments: 4,
        resident_bytes: 100,
        pieces: vec![
            piece(1, "a", (0, 200, 50), (0, 1)),
            piece(0, "b", (200, 100, 0), (1, 2)),
            piece(1, "c", (0, 300, 0), (3, 3)),
        ],
        owners: vec!["model.py:7 f".into(), "model.py:8 <g>".into()],
        limit: Some(500),
        held: None,
        peak: Some(Peak { moment: 1, instruction: "b".into(), bytes: 400 }),
    }
}

fn svg(picture: &MemoryPicture<'_>) -> String {
    picture.to_svg(&Options::new())
}

fn panel<'a>(document: &'a Document<'a>, name: &str) -> Node<'a, 'a> {
    document.descendants().find(|node| node.attribute("data-panel") == Some(name)).expect(name)
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).expect(name).parse().expect("a number")
}

/// The paths of a class.
fn paths(panel: Node<'_, '_>, class: &str) -> String {
    let paths = panel.children().filter(|node| node.has_tag_name("path") && node.attribute("class") == Some(class));
    paths.filter_map(|node| node.attribute("d")).collect()
}

/// The width of the plots.
fn wide(panel: Node<'_, '_>) -> f64 {
    let grid = paths(panel, "tw-rail");
    let (_, rest) = grid.split_once('h').expect("a line across");
    rest[..rest.find('M').unwrap_or(rest.len())].parse().expect("a number")
}

/// The points of polygons whose sides run across and down.
fn polygons(data: &str) -> Vec<Vec<(f64, f64)>> {
    let polygon = |text: &str| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut rest = text.trim_end_matches('z');
        while !rest.is_empty() {
            let end = rest[1..].find(['H', 'V', 'L']).map_or(rest.len(), |at| at + 1);
            let (step, after) = rest.split_at(end);
            let before = points.last().copied().unwrap_or_default();
            let value = |text: &str| text.parse::<f64>().expect("a number");
            points.push(match step.split_at(1) {
                ("H", x) => (value(x), before.1),
                ("V", y) => (before.0, value(y)),
                (_, both) => both.split_once(' ').map(|(x, y)| (value(x), value(y))).expect("a point"),
            });
            rest = after;
        }
        points
    };
    data.split('M').skip(1).map(|text| polygon(&format!("M{text}"))).collect()
}

/// Twice what a polygon covers is the sum of these products along its sides.
fn covered(polygons: &[Vec<(f64, f64)>]) -> f64 {
    let twice = |points: &Vec<(f64, f64)>| {
        let next = points.iter().cycle().skip(1);
        points.iter().zip(next).map(|((x, y), (nx, ny))| x * ny - nx * y).sum::<f64>().abs()
    };
    polygons.iter().map(twice).sum::<f64>() / 2.0
}

#[test]
fn areas_are_bytes_times_moments() {
    let svg = svg(&small());
    let document = Document::parse(&svg).expect("well-formed");
    let profile = panel(&document, "profile");
    // The limit, 500 bytes, is the top of the plot.
    let (moment, byte) = (wide(profile) / 4.0, PROFILE / 500.0);
    let bytes_of = |class: &str| covered(&polygons(&paths(profile, class))) / moment / byte;
    let near = |is: f64, should_be: f64| assert!((is - should_be).abs() < 2.0, "{is} is not {should_be}");
    near(bytes_of("tw-0"), 2.0 * 200.0 + 300.0);
    near(bytes_of("tw-1"), 2.0 * 100.0);
    near(bytes_of("tw-padded"), 2.0 * 50.0);

    // The first owner is the one with more at the peak: on the floor of 100 bytes, up to 300 and in the end 400.
    let first = polygons(&paths(profile, "tw-0"));
    let y = |bytes: f64| PROFILE - bytes * byte;
    let corners = |points: &[(f64, f64)]| {
        let (xs, ys) = (points.iter().map(|point| point.0), points.iter().map(|point| point.1));
        [
            xs.clone().fold(f64::MAX, f64::min),
            xs.fold(0.0, f64::max),
            ys.clone().fold(f64::MAX, f64::min),
            ys.fold(0.0, f64::max),
        ]
    };
    assert_eq!(first.len(), 2);
    let same = |is: [f64; 4], should_be: [f64; 4]| {
        assert!(is.iter().zip(should_be).all(|(is, should_be)| (is - should_be).abs() < 0.11), "{is:?} {should_be:?}");
    };
    same(corners(&first[0]), [0.0, 2.0 * moment, y(300.0), y(100.0)]);
    same(corners(&first[1]), [3.0 * moment, 4.0 * moment, y(400.0), y(100.0)]);
    // The floor, the limit and the peak.
    let floor = profile.children().find(|node| node.attribute("class") == Some("tw-resident")).expect("a floor");
    same(
        [number(floor, "x"), number(floor, "width"), number(floor, "y"), number(floor, "height")],
        [0.0, 4.0 * moment, y(100.0), 100.0 * byte],
    );
    assert!(paths(profile, "tw-limit").starts_with("M0 0h"));
    assert!(paths(profile, "tw-peak").starts_with(&format!("M{} ", (moment * 15.0).round() / 10.0)));
}

#[test]
fn rectangles_are_allocations() {
    let svg = svg(&small());
    let document = Document::parse(&svg).expect("well-formed");
    let addresses = panel(&document, "addresses");
    let (moment, byte) = (wide(addresses) / 4.0, BLOCKS / 300.0);
    let mut drawn = Vec::new();
    for (hint, class, [first, moments, end, bytes]) in [
        ("c: 300 B; steps 4 to 4; at byte 0; model.py:8 <g>", "tw-c tw-0", [3.0, 1.0, 300.0, 300.0]),
        (
            "a: 200 B, 50 B of it padding; steps 1 to 2; at byte 0; model.py:8 <g>",
            "tw-c tw-0",
            [0.0, 2.0, 200.0, 200.0],
        ),
        ("b: 100 B; steps 2 to 3; at byte 200; model.py:7 f", "tw-c tw-1", [1.0, 2.0, 300.0, 100.0]),
    ] {
        let title = addresses.descendants().find(|node| node.has_tag_name("title") && node.text() == Some(hint));
        let rect = title.and_then(|title| title.parent()).expect(hint);
        assert_eq!(rect.attribute("class"), Some(class));
        let should_be = [first * moment, (300.0 - end) * byte, moments * moment, bytes * byte];
        for (name, should_be) in ["x", "y", "width", "height"].into_iter().zip(should_be) {
            assert!((number(rect, name) - should_be).abs() < 0.11, "{name} of {hint}");
        }
        drawn.push(hint);
    }
    assert_eq!(addresses.descendants().filter(|node| node.has_tag_name("title")).count(), drawn.len());
    // A quarter of `a` is padding.
    let padded = addresses.children().find(|node| node.attribute("class") == Some("tw-padded")).expect("padding");
    assert!((number(padded, "y") + number(padded, "height") - (300.0 - 150.0) * byte).abs() < 0.11);
    let text = "400 B at most, at b, step 2 of 4: 100 B arguments and outputs, 300 B temporaries (50 B padding).";
    assert!(document.descendants().any(|node| node.has_tag_name("desc") && node.text() == Some(text)));
}

/// A thousandth on top of arguments and outputs is seen as well as the rest, and the cut is told.
#[test]
fn what_stands_does_not_hide_the_rise_and_fall() {
    let picture = MemoryPicture {
        resident_bytes: 300_000,
        limit: Some(1 << 40),
        peak: Some(Peak { moment: 1, instruction: "b".into(), bytes: 300_300 }),
        ..small()
    };
    let svg = svg(&picture);
    let document = Document::parse(&svg).expect("well-formed");
    let profile = panel(&document, "profile");
    // 85 % of the plot are for the 300 bytes of the peak, and of moment 3.
    let (moment, byte) = (wide(profile) / 4.0, PROFILE * 0.85 / 300.0);
    let bytes_of = |class: &str| covered(&polygons(&paths(profile, class))) / moment / byte;
    assert!((bytes_of("tw-0") - 700.0).abs() < 2.0 && (bytes_of("tw-1") - 200.0).abs() < 2.0);
    let rect = |class| profile.children().find(|node| node.attribute("class") == Some(class)).expect(class);
    let (floor, gap) = (rect("tw-resident"), rect("tw-background"));
    assert_eq!((number(floor, "y"), number(floor, "height")), (221.0, 39.0));
    assert!(number(gap, "y") > 221.0 && number(gap, "y") + number(gap, "height") < PROFILE);
    let texts = document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text());
    let texts: Vec<&str> = texts.collect();
    assert!(texts.contains(&"292.97 KiB") && texts.contains(&"+256 B"), "{texts:?}");
    assert_eq!(texts.iter().filter(|text| text.contains("is cut")).count(), 1, "{texts:?}");
    // A limit in reach is drawn to scale instead.
    let near = MemoryPicture { limit: Some(310_000), ..picture }.to_svg(&Options::new());
    assert!(near.contains("limit 302.73 KiB") && !near.contains("is cut"));
}

/// Colours go to who holds the most at the peak, not to who holds something for long.
#[test]
fn the_legend_has_the_largest_at_the_peak() {
    let at_peak = |owner| Piece { owner, bytes: 10 * (owner as u64 + 1), first: 5, last: 5, ..Piece::default() };
    let mut pieces: Vec<Piece<'_>> = (0..10).map(at_peak).collect();
    pieces.push(Piece { owner: 1, bytes: 500, first: 6, last: 1000, ..Piece::default() });
    let picture = MemoryPicture {
        moments: 1001,
        pieces,
        owners: (0..10).map(|owner| format!("model.py:{owner}")).collect(),
        peak: Some(Peak { moment: 5, instruction: "p".into(), bytes: 550 }),
        ..MemoryPicture::default()
    };
    let svg = svg(&picture);
    let document = Document::parse(&svg).expect("well-formed");
    let texts = document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text());
    let legend: Vec<&str> = texts.skip_while(|text| *text != "At the peak").skip(1).collect();
    let mut expected: Vec<String> =
        (2..10).rev().flat_map(|owner| [format!("{} B", 10 * (owner + 1)), format!("model.py:{owner}")]).collect();
    expected.extend(["30 B".to_owned(), "2 other owners".to_owned()]);
    expected.push("Where the allocations lie isn't known.".to_owned());
    assert_eq!(legend, expected);
}

/// The program's bytes are the first number, and fragmentation the part of them that nothing uses.
#[test]
fn fragmentation_is_told_where_there_is_some() {
    let described = |held: Option<u64>| {
        let svg = svg(&MemoryPicture { held, ..small() });
        let document = Document::parse(&svg).expect("well-formed");
        let description = document.descendants().find(|node| node.has_tag_name("desc")).and_then(|node| node.text());
        description.expect("a sentence").to_owned()
    };
    assert!(described(Some(400)).starts_with("400 B at most, at b"));
    assert!(described(Some(403)).starts_with("403 B at most, 400 B of it in use at b"));
    let fragmented = described(Some(450));
    assert!(fragmented.starts_with("450 B at most, 400 B of it in use at b"), "{fragmented}");
    assert!(fragmented.ends_with(", 50 B fragmentation."), "{fragmented}");
}

/// A moment among a hundred thousand is not lost between columns.
#[test]
fn a_peak_of_one_moment_is_the_highest_column() {
    let spike = Piece { bytes: 900, first: 77_777, last: 77_777, ..Piece::default() };
    let always = Piece { bytes: 100, last: 99_999, ..Piece::default() };
    let picture = MemoryPicture {
        moments: 100_000,
        pieces: vec![always, spike],
        owners: vec!["f".into()],
        peak: Some(Peak { moment: 77_777, instruction: "spike".into(), bytes: 1000 }),
        ..MemoryPicture::default()
    };
    let svg = svg(&picture);
    let document = Document::parse(&svg).expect("well-formed");
    let profile = panel(&document, "profile");
    let peak: f64 = paths(profile, "tw-peak")[1..].split(' ').next().and_then(|x| x.parse().ok()).expect("a number");
    assert!((peak / wide(profile) - 0.777_77).abs() < 0.002);
    let under: Vec<(f64, f64)> = polygons(&paths(profile, "tw-0"))
        .concat()
        .into_iter()
        .filter(|(x, y)| *y == 0.0 && (x - peak).abs() < 1.0)
        .collect();
    assert!(under.len() == 2 && under[0].0 < peak && peak < under[1].0, "{under:?} {peak}");

    let text = picture.to_terminal(&Options::new(), 80);
    let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let mark = lines[1].iter().position(|c| *c == '▲').expect("a mark");
    assert_eq!(lines[0].iter().position(|c| *c == '█'), Some(mark));
    assert_eq!(mark, 77_777 * 80 / 100_000);
}

/// Longer than any picture shows.
const LONG_NAME: &str = concat!(
    "fusion.clone.clone.clone.clone.clone.clone.clone.clone.clone.clone.clone.clone.clone.clone",
    "fusion.clone.clone.clone.clone.clone.clone.clone.clone.clone.clone.clone.clone.clone.clone"
);

/// Allocations without order or sense.
fn many(count: usize, moments: usize, longest: usize) -> MemoryPicture<'static> {
    let mut random = tilewise_testing::Random::new(7);
    let mut below = |bound: usize| usize::try_from(random.below(bound as u64)).expect("small");
    let mut pieces = Vec::with_capacity(count);
    for _ in 0..count {
        let first = below(moments);
        let bytes = 1 + below(1 << 20) as u64;
        pieces.push(Piece {
            owner: below(40),
            name: LONG_NAME,
            offset: Some(below(1 << 34) as u64),
            bytes,
            padding_bytes: bytes / 2,
            first,
            last: first + below(longest),
        });
    }
    MemoryPicture { moments, pieces, owners: vec!["path/".repeat(1000); 40], ..MemoryPicture::default() }
}

#[test]
fn a_hundred_thousand_allocations_are_a_small_picture() {
    for (moments, longest) in [(200_000, 2_000), (200_000, 200_000), (500, 10), (100_000, 1)] {
        let picture = many(100_000, moments, longest);
        let start = Instant::now();
        let svg = svg(&picture);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        assert!(svg.len() < 1_000_000, "{} bytes with {longest} of {moments} moments", svg.len());
        let document = Document::parse(&svg).expect("well-formed");
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"32 other owners"), "{texts:?}");
    }
}

#[test]
fn numbers_without_sense_are_drawn_all_the_same() {
    let piece = |owner, offset, bytes, padding_bytes, first, last| Piece {
        owner,
        name: "\u{1b}[31m<&\"\0",
        offset,
        bytes,
        padding_bytes,
        first,
        last,
    };
    let most = u64::MAX;
    let pieces = [
        piece(0, Some(0), 0, 1, 0, 0),
        piece(usize::MAX, Some(most), most, most, 0, usize::MAX),
        piece(3, Some(most - 1), most, 0, usize::MAX, 0),
        piece(4, None, most, 5, 9, 3),
        piece(5, Some(1), 1, most, 5, 5),
    ];
    for moments in [0, 1, 2, 10, usize::MAX] {
        for resident_bytes in [0, 1, most] {
            for limit in [None, Some(0), Some(most)] {
                for pieces in [&pieces[..], &pieces[..1], &[]] {
                    let peak =
                        [None, Some(Peak { moment: usize::MAX, instruction: "\u{7f}\n<x>".into(), bytes: most })];
                    for peak in peak {
                        check(&MemoryPicture {
                            title: "]]>\u{1}\u{ffff}".into(),
                            moments,
                            resident_bytes,
                            pieces: pieces.to_vec(),
                            owners: vec!["a/very/long/path/".repeat(40)],
                            limit,
                            held: limit,
                            peak,
                        });
                    }
                }
            }
        }
    }
}

fn check(picture: &MemoryPicture<'_>) {
    let svg = svg(picture);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    Document::parse(&svg).expect("well-formed");
    for width in [0, 1, 2, 20, 80] {
        for ascii in [false, true] {
            let text = picture.to_terminal(&Options::new().with_ascii(ascii), width);
            assert!((2..=4).contains(&text.lines().count()) && text.ends_with('\n'), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= width.max(1)), "{text}");
            assert!(!text.contains('\u{1b}') && (!ascii || text.is_ascii()), "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Memory at each moment, added up one by one.
    #[test]
    fn the_highest_point_is_the_largest_sum(
        spans in prop::collection::vec((0..60usize, 0..30usize, 1..1000u64, 0..12usize), 1..40),
        moments in 1..50usize,
    ) {
        let pieces: Vec<Piece<'_>> = spans
            .into_iter()
            .map(|(first, longer, bytes, owner)| (first % moments, longer, bytes, owner))
            .map(|(first, longer, bytes, owner)| Piece { first, last: first + longer, bytes, owner, ..Piece::default() })
            .collect();
        let live = |moment: usize| -> u64 {
            pieces.iter().filter(|piece| piece.first <= moment && moment <= piece.last).map(|piece| piece.bytes).sum()
        };
        let sums: Vec<u64> = (0..moments).map(live).collect();
        let most = sums.iter().copied().max().expect("a moment");
        let picture = MemoryPicture { moments, pieces, ..MemoryPicture::default() };
        check(&picture);
        let svg = svg(&picture);
        let document = Document::parse(&svg).expect("well-formed");
        let profile = panel(&document, "profile");
        let moment = wide(profile) / moments as f64;
        let classes: Vec<String> = (0..8).map(|color| format!("tw-{color}")).chain(["tw-other".to_owned()]).collect();
        let bytes: f64 = classes.iter().map(|class| covered(&polygons(&paths(profile, class)))).sum::<f64>() / moment / (PROFILE / most as f64);
        let all: u64 = sums.iter().sum();
        // Positions are rounded to tenths.
        let error = 0.1 * most as f64 / PROFILE * moments as f64 * 9.0 + all as f64 * 0.05;
        prop_assert!((bytes - all as f64).abs() < error + 1.0, "{bytes} {all}");

        let levels = picture.to_terminal(&Options::new(), moments);
        for (drawn, sum) in levels.chars().zip(&sums) {
            prop_assert_eq!(drawn == '█', (7 * sum + most / 2) / most == 7, "{}", levels);
            prop_assert_eq!(drawn == '▁', *sum == 0);
        }
    }
}
