//! Every numeric example of XLA's "tiled layout" and "shapes and layout" documents, and of XLA's own unit tests, by name.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use tilewise::{ElementType, Error, ErrorKind, Layout, Shape, Tile, Tiled};

fn tiled(text: &str) -> Tiled {
    Tiled::new(&text.parse().expect(text)).expect(text)
}

/// Offsets of a rank-2 array, row by row.
fn grid(text: &str) -> Vec<Vec<u64>> {
    let tiled = tiled(text);
    let [rows, columns] = tiled.logical_dimensions() else { panic!("{text} has rank 2") };
    let row = |y| (0..*columns).map(|x| tiled.offset_of(&[y, x]).expect("inside")).collect();
    (0..*rows).map(row).collect()
}

#[track_caller]
fn assert_offsets(text: &str, expected: &[(&[u64], u64)]) {
    let tiled = tiled(text);
    for (index, offset) in expected {
        assert_eq!(tiled.offset_of(index), Ok(*offset), "{text} at {index:?}");
        assert_eq!(tiled.index_of(*offset), Ok(Some(index.to_vec())), "{text} @{offset}");
    }
}

#[track_caller]
fn assert_bytes(text: &str, logical: u64, physical: u64) {
    let tiled = tiled(text);
    assert_eq!((tiled.logical_bytes(), tiled.physical_bytes()), (logical, physical), "{text}");
}

#[test]
fn figure_1() {
    let text = "F32[3,5]{1,0:T(2,2)}";
    assert_eq!(grid(text), [[0, 1, 4, 5, 8], [2, 3, 6, 7, 10], [12, 13, 16, 17, 20]]);
    assert_eq!(tiled(text).physical_dimensions(), [2, 3, 2, 2]);
    assert_eq!(tiled(text).physical_elements(), 24);
    assert_bytes(text, 60, 96);
    let memory: String = (0..24)
        .map(|offset| match tiled(text).index_of(offset).expect("inside").as_deref() {
            Some([y, x]) => format!("{y}{x} "),
            _ => ". ".to_owned(),
        })
        .collect();
    assert_eq!(memory.trim_end(), "00 01 10 11 02 03 12 13 04 . 14 . 20 21 . . 22 23 . . 24 . . .");
}

#[test]
fn element_2_3_of_figure_1_is_at_17() {
    assert_eq!(tiled("f32[3,5]{1,0:T(2,2)}").offset_of(&[2, 3]), Ok(17));
    assert_eq!(tiled("f32[3,5]{1,0:T(2,2)}").physical_index_of(17), Ok(Some(vec![1, 1, 0, 1])));
}

#[test]
fn figure_2_repeated_tiles() {
    let text = "f32[4,8]{1,0:T(2,4)(2,1)}";
    assert_eq!(
        grid(text),
        [
            [0, 2, 4, 6, 8, 10, 12, 14],
            [1, 3, 5, 7, 9, 11, 13, 15],
            [16, 18, 20, 22, 24, 26, 28, 30],
            [17, 19, 21, 23, 25, 27, 29, 31]
        ]
    );
    assert_eq!(tiled(text).physical_dimensions(), [2, 2, 1, 4, 2, 1]);
}

#[test]
fn minor_to_major_of_two_by_three() {
    let in_memory = |layout: &str| -> String {
        let tiled = tiled(&format!("f32[2,3]{layout}"));
        let letter = |offset| match tiled.index_of(offset).expect("inside").as_deref() {
            Some([y, x]) => b"abcdef"[(y * 3 + x) as usize] as char,
            _ => '.',
        };
        (0..6).map(letter).collect()
    };
    assert_eq!(in_memory("{0,1}"), "adbecf");
    assert_eq!(in_memory("{1,0}"), "abcdef");
}

#[test]
fn combined_dimensions_become_112_by_110() {
    let text = "F32[2,7,8,11,10]{4,3,2,1,0:T(∗,∗,2,∗,3)}";
    assert_eq!(tiled(text).physical_dimensions(), [56, 37, 2, 3]);
    assert_eq!(tiled(text).physical_elements(), 12_432);
    assert_bytes(text, 49_280, 49_728);
    assert_bytes("f32[112,110]{1,0:T(2,3)}", 49_280, 49_728);
    assert_offsets(
        text,
        &[(&[0, 0, 1, 0, 0], 3), (&[0, 0, 2, 0, 0], 222), (&[1, 2, 3, 4, 5], 8307), (&[1, 6, 7, 10, 9], 12_430)],
    );
}

#[test]
fn combined_dimensions_elsewhere() {
    assert_eq!(tiled("f32[4,8]{1,0:T(2,4)(*,2)}").physical_dimensions(), [2, 2, 4, 2]);
    assert_eq!(tiled("f32[5,6]{1,0:T(8,*,128)}").physical_dimensions(), [1, 1, 8, 128]);
}

#[test]
fn add_936() {
    let text = "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}";
    assert_eq!(tiled(text).physical_dimensions(), [1, 8, 160, 128, 4, 128, 2, 1]);
    assert_bytes(text, 335_544_320, 335_544_320);
    assert_offsets(text, &[(&[0, 0, 0, 1], 2), (&[0, 0, 1, 0], 1), (&[0, 0, 2, 0], 256), (&[1, 0, 0, 0], 20_971_520)]);
}

#[test]
fn fusion_3_in_vmem() {
    for (text, bytes) in [
        ("bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)}", 8_388_608),
        ("bf16[32,32,8192]{2,1,0:T(8,128)(2,1)S(1)}", 16_777_216),
    ] {
        assert_bytes(text, bytes, bytes);
        let shape: Shape = text.parse().expect(text);
        assert_eq!(shape.layout().map(Layout::memory_space), Some(1));
    }
}

#[test]
fn tpu_formats() {
    assert_bytes("f32[1,128]{1,0:T(8,128)}", 512, 4096);
    assert_bytes("f32[1,128]{1,0:T(2,128)}", 512, 1024);
    assert_bytes("f32[3,128]{1,0:T(4,128)}", 1536, 2048);
    assert_bytes("bf16[3,5]{1,0:T(8,128)(2,1)}", 30, 2048);
    assert_bytes("s8[33,130]{1,0:T(8,128)(4,1)}", 4290, 10_240);
    assert_bytes("pred[40,130]{1,0:T(32,128)(32,1)E(1)}", 650, 2048);
    assert_eq!(tiled("pred[40,130]{1,0:T(32,128)(32,1)E(1)}").physical_elements(), 16_384);
    // The tile alone only reorders bytes: without E(1) a predicate still takes one.
    assert_bytes("pred[40,130]{1,0:T(32,128)(32,1)}", 5200, 16_384);
}

#[test]
fn tiles_longer_than_the_rank() {
    assert_eq!(tiled("f32[7]{0:T(8,128)}").physical_dimensions(), [1, 1, 8, 128]);
    assert_bytes("f32[7]{0:T(8,128)}", 28, 4096);
    assert_eq!(tiled("f32[]{:T(128)}").physical_dimensions(), [1, 128]);
    assert_bytes("f32[]{:T(128)}", 4, 512);
}

#[test]
fn later_tiles_that_pad() {
    assert_eq!(tiled("f32[7]{0:T(4)(3)}").physical_dimensions(), [2, 2, 3]);
    assert_offsets("f32[7]{0:T(4)(3)}", &[(&[6], 8)]);
    assert_eq!(tiled("f32[5,7]{1,0:T(4,4)(3,1)}").physical_elements(), 96);
    assert_offsets("f32[5,7]{1,0:T(4,4)(3,1)}", &[(&[4, 6], 78)]);
}

#[test]
fn tail_padding() {
    assert_bytes("f32[7]{0:L(4)}", 28, 32);
    assert_eq!(tiled("f32[3,5]{1,0:T(2,2)L(32)}").physical_elements(), 32);
    assert_eq!(tiled("f32[7]{0:T(4)L(3)}").physical_elements(), 9);
    assert_eq!(tiled("f32[7]{0:L(4)}").index_of(7), Ok(None));
}

#[test]
fn sub_byte_elements_are_packed_only_on_request() {
    assert_bytes("s4[5]{0}", 5, 5);
    assert_bytes("s4[5]{0:E(4)}", 3, 3);
}

#[test]
fn xlas_unit_tests_of_linear_index() {
    assert_offsets("bf16[2048]{0:T(1024)(128)(2,1)}", &[(&[0], 0), (&[128], 1), (&[1], 2)]);
    assert_offsets("bf16[2,8,128]{2,1,0:T(8,128)(2,1)}", &[(&[0, 2, 0], 256)]);
    assert_offsets("f32[8,4]{1,0:T(2,2)}", &[(&[3, 1], 11)]);
    assert_offsets("f32[8,4]{1,0}", &[(&[3, 1], 13)]);
    assert_offsets("f32[8]{0:T(2,2)}", &[(&[5], 9)]);
    assert_offsets("f32[3]{0:T(8,128)}", &[(&[2], 2)]);
    assert_offsets("u32[]{:T(128)}", &[(&[], 0)]);
}

#[test]
fn sizes_of_zero_hold_nothing() {
    for text in ["f32[0]{0}", "f32[0,5]{1,0:T(8,128)}", "s4[0,4]{1,0:E(4)}", "f32[3,0]{1,0:T(*,128)L(1024)}"] {
        assert_bytes(text, 0, 0);
        assert_eq!(tiled(text).index_of(0).unwrap_err().kind(), ErrorKind::OffsetOutOfRange);
    }
}

#[test]
fn conventions() -> Result<(), Error> {
    let shape = Shape::array(ElementType::F32, [4, 1, 6])?;
    assert_eq!(shape.to_string(), "f32[4,1,6]{2,1,0}", "the default is major to minor");
    let array = shape.as_array().expect("an array");
    assert_eq!(array.true_rank(), 2);
    assert_eq!((0..3).map(|d| array.dimension_letter(d)).collect::<Vec<_>>(), [Some('z'), Some('y'), Some('x')]);
    assert_eq!(shape.dimension(-1)?.bound(), Some(6));
    assert_eq!(shape.dimension(-2)?.bound(), Some(1));
    assert_eq!(shape.dimension(-4).unwrap_err().kind(), ErrorKind::IndexOutOfBounds);
    let unknown: Shape = "f32[2]{0:S(99)}".parse()?;
    assert_eq!(unknown.to_string(), "f32[2]{0:S(99)}", "unknown memory spaces are kept");
    Ok(())
}

/// "dim 0 is minor" and "dim 0 is major" are said of orders from one end to the other, of any number of dimensions.
#[test]
fn orders_have_names_of_any_rank() -> Result<(), Error> {
    for (layout, name) in [
        ("f32[2,3]{0,1}", Some("column-major")),
        ("f32[4,4,4]{0,1,2}", Some("column-major")),
        ("f32[4,4,4]{2,1,0}", Some("row-major")),
        ("f32[4,4,4]{0,2,1}", None),
        ("f32[4,4,4,4]{3,2,0,1}", None),
    ] {
        let shape: Shape = layout.parse()?;
        assert_eq!(shape.layout().expect("a layout").order_name(), name, "{layout}");
        let words = &shape.as_array().expect("an array").layout_in_words()[0].meaning;
        let said = match name {
            Some("column-major") => "column-major (dim 0 is minor): dimension 0 varies fastest",
            Some(_) => "row-major (dim 0 is major): dimension",
            None => "dimension",
        };
        assert!(words.starts_with(said), "{layout}: {words}");
    }
    Ok(())
}

/// "Layout (with Tiling): `3,2,0,1:T(8,128)(2,1)`", as the documents take an operation apart.
#[test]
fn a_layout_alone_is_read() -> Result<(), Error> {
    for text in ["3,2,0,1:T(8,128)(2,1)", "{3,2,0,1:T(8,128)(2,1)}", " { 3,2,0,1 : T(8,128)(2,1) } "] {
        let layout: Layout = text.parse()?;
        assert_eq!(layout.to_string(), "{3,2,0,1:T(8,128)(2,1)}", "{text}");
        let words: Vec<String> = layout.in_words().into_iter().map(|part| part.meaning).collect();
        assert_eq!(words[0], "dimension 3 (x) varies fastest, then 2 (y), 0 (p), 1 (z)");
        assert_eq!(words[2], "2 rows are interleaved: each column of 2 rows lies together");
    }
    for (text, layout) in [("{1,0}", "{1,0}"), ("0", "{0}"), ("{:T(128)}", "{:T(128)}"), ("{1,0:S(1)}", "{1,0:S(1)}")] {
        assert_eq!(text.parse::<Layout>()?.to_string(), layout, "{text}");
    }
    for (text, span) in [("{1,1}", 3..4), ("1,0:T(0)", 6..7), ("{1,0", 4..4), ("", 0..0), ("f32", 0..0)] {
        let error = text.parse::<Layout>().expect_err(text);
        assert!(error.span().is_some_and(|span| span.end <= text.len()), "{text}: {error:?}");
        if text.contains(',') {
            assert_eq!(error.span(), Some(span), "{text}: {error:?}");
        }
    }
    Ok(())
}

/// How people write what the documents say in words: sizes with times signs, an order in brackets.
#[test]
fn near_misses_say_what_to_write() {
    for (text, help) in [
        ("f32[2 x 3]", "separate sizes by commas"),
        ("f32[2x3]", "separate sizes by commas"),
        ("f32[2 × 3]", "separate sizes by commas"),
        ("f32[3,5]{1,0:T(2x2)}", "separate sizes by commas"),
        ("f32[3,5]{1,0:T(2 x 2)}", "separate sizes by commas"),
        ("f32[2,3]{[0,1]}", "in braces alone"),
    ] {
        let error = text.parse::<Shape>().expect_err(text);
        assert!(error.help().is_some_and(|found| found.contains(help)), "{text}: {error:?}");
    }
}

#[test]
fn equality_is_xlas() -> Result<(), Error> {
    let parse = |text: &str| text.parse::<Shape>();
    for (a, b) in [
        ("f32[2]{0:E(32)}", "f32[2]{0}"),
        ("f32[]{:T(1)}", "f32[]"),
        ("f32[<=2]", "f32[2]"),
        ("f32[?]", "f32[<=2]"),
        ("f32[1,2]{1,0}", "f32[1,2]{0,1}"),
        ("b(f32[2])", "f32[2]"),
        ("(f32[2])", "f32[2]"),
        ("token[]", "opaque[]"),
        ("f32[4]{0:T(2)}", "f32[4]{0:T(2)(1)}"),
    ] {
        assert_ne!(parse(a)?, parse(b)?, "{a} and {b}");
        assert!(parse(a)?.cmp(&parse(b)?).is_ne(), "order agrees");
    }
    for (a, b) in [("f32[2]{0:M(8)}", "f32[2]{0}"), ("f32[2]{0:L(1)}", "f32[2]{0}")] {
        assert_eq!(parse(a)?, parse(b)?, "{a} and {b}");
    }
    assert!(!parse("f32[2]{0:M(8)}")?.identical(&parse("f32[2]")?));
    Ok(())
}

#[test]
fn shapes_are_built_as_they_are_written() -> Result<(), Error> {
    let layout = Layout::new([1, 0])?.with_tiles([Tile::new([2, 2])?])?.with_memory_space(1)?;
    let shape = Shape::array(ElementType::F32, [3, 5])?.with_layout(layout)?;
    assert_eq!(shape, "f32[3,5]{1,0:T(2,2)S(1)}".parse()?);
    let nested = Shape::tuple([Shape::tuple([]), shape.clone(), Shape::token(), Shape::buffer(shape.clone())?]);
    assert_eq!(nested.to_string(), format!("((), {shape}, token[], b({shape}))"));
    assert_eq!(nested, nested.to_string().parse()?);
    assert_eq!(Shape::tuple(nested.elements()), nested);
    Ok(())
}

#[test]
fn tuples_number_every_fifth_element() {
    let text = "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[])";
    assert_eq!(text.parse::<Shape>().expect(text).to_string(), text);
}
