//! XLA's two pages as they are typed: pieces of them in five languages, whole paragraphs, and whatever becomes of them when they are cut.

use tilewise_report::{Answer, Equation, Part, PartOfShape, Prose, Reader, Shown, WriteText, parse_shape};

/// The worked example of the tiled-layout page as its editions print it: with line ends, tags, LaTeX, other digits, translated names.
const EXAMPLES: &[&str] = &[
    "linear_index_with_tile((2,3), (3,5), (2,2))\n= linear_index((1,1,0,1), (2,3,2,2))\n= linear_index((1,1), (2,3)) ∙ 2 ∙ 2 + \
     linear_index((0,1), (2,2))\n= (1 ∙ 3 + 1) ∙ 2 ∙ 2 + (0 ∙ 2 + 1)\n= 17.",
    "linear_index_with_tile((2,3), (3,5), (2,2)) <br/>= linear_index((1,1,0,1), (2,3,2,2))<br>= 17。",
    r"\text{linear\_index\_with\_tile}((2,3), (3,5), (2,2)) \\ &= (1 \cdot 3 + 1) \cdot 2 \cdot 2 + (0 \cdot 2 + 1) \\ &= 17",
    "LinearIndexWithTile((2,3), (3,5), (2,2)) = LinearIndex((1,1,0,1), (2,3,2,2)) = 17",
    "линейный_индекс_с_плиткой((2,3), (3,5), (2,2)) = линейный_индекс((1,1,0,1), (2,3,2,2)) = (1 · 3 + 1) · 2 · 2 + (0 · 2 + 1) = 17.",
    "রৈখিক_সূচক((১,১,০,১), (২,৩,২,২)) = (১ ∙ ৩ + ১) ∙ ২ ∙ ২ + (০ ∙ ২ + ১) = ১৭।",
    "লিনিয়ার_ইনডেক্স_উইথ_টাইল((2,3), (3,5), (2,2)) = লিনিয়ার_ইনডেক্স((1,1,0,1), (2,3,2,2)) = 17",
    "linear_index（（1，1，0，1）， （2，3，2，2）） ＝ 17",
    "= linear_index((1,1), (2,3)) ∙ 2 ∙ 2 + linear_index((0,1), (2,2))",
    "linear_index((⌊(2,3)/(2,2)⌋, (2,3) mod (2,2)), (⌈(3,5)/(2,2)⌉, (2,2)))",
    "linear_index((⌊2/2⌋, ⌊3/2⌋, 2 mod 2, 3 mod 2), (⌈3/2⌉, ⌈5/2⌉, 2, 2)) = 17",
    "linear_index_with_tile(\u{a0}(2,3),\u{200b} (3,5), (2,2))",
];

#[test]
fn the_worked_example_in_every_edition() {
    for text in EXAMPLES {
        let equation = Equation::read(text).unwrap_or_else(|failure| panic!("{text}: {failure:?}"));
        assert!(Equation::begins(text) && equation.holds(), "{text}");
        assert!(equation.to_text(200).contains("17"), "{text}");
    }
}

#[test]
fn members_that_differ_are_named() {
    for (text, wrong) in [
        ("linear_index((2,3), (3,5)) = 14", &["14 is wrong: it is 13"][..]),
        ("17 = 17 = 18 = 19", &["18 is wrong: it is 17", "19 is wrong: it is 17"]),
        ("linear_index((1,1), (2,3)) = (1 · 3 + 1) · 1 + 1", &["(1 · 3 + 1) · 1 + 1 is 5, not 4"]),
        ("(1,2) = (1,2)", &[]),
    ] {
        let equation = Equation::read(text).expect(text);
        assert_eq!(equation.wrong_members(), wrong, "{text}");
        assert_eq!(equation.holds(), wrong.is_empty(), "{text}");
    }
}

/// Tiles with `∗` and of several levels, letters, bounds without elements: the offsets are those of the layout.
#[test]
fn functions_are_the_layouts() {
    for (text, shape, offset) in [
        (
            "linear_index_with_tile((1,6,7,10,9), (2,7,8,11,10), (∗,∗,2,∗,3))",
            "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
            12430,
        ),
        ("linear_index_with_tile((1,0), (4,8), (2,4)(2,1))", "f32[4,8]{1,0:T(2,4)(2,1)}", 1),
        ("linear_index_with_tile((1,0), (4,8), ((2,4), (2,1)))", "f32[4,8]{1,0:T(2,4)(2,1)}", 1),
        (" linear_index( (2, 3) , (3,5) ) ", "f32[3,5]{1,0}", 13),
        ("linear_index((), ())", "f32[]", 0),
        ("linear_index_with_tile((y=2, x=3), (3,5), (2,2))", "f32[3,5]{1,0:T(2,2)}", 17),
        ("linear_index((x=3,z=1,y=2), (4,3,5))", "f32[4,3,5]{2,1,0}", 28),
    ] {
        let json = serde_json::to_value(Equation::read(text).expect(text)).expect("JSON");
        assert_eq!((json["shape"].as_str(), json["linear_index"].as_u64()), (Some(shape), Some(offset)), "{text}");
    }
}

/// Errors point at their bytes in the text as it was typed.
#[test]
fn errors_point_into_the_text() {
    for (text, kind, wrong) in [
        ("linear_index", "syntax", "linear_index"),
        ("linear_index((2,3))", "syntax", ")"),
        ("linear_index((2,3), (3,5), (2,2))", "syntax", "(2,2)"),
        ("linear_index_with_tile((2,3), (3,5), (2,2)) what", "syntax", "what"),
        ("linear_index_with_tile((২,৩), (৩,৫), (২,what))", "syntax", "what"),
        ("linear_index((z=1,x=2), (3,5))", "syntax", "z=1"),
        ("linear_index((x=2), (3,5))", "index_rank_mismatch", "(x=2)"),
        ("linear_index((2,3), (3,5)", "syntax", ""),
        ("1 + 9223372036854775808", "overflow", "9223372036854775808"),
        ("9223372036854775807 · 2", "overflow", "9223372036854775807 · 2"),
        ("linear_index((5), (5))", "index_out_of_bounds", "linear_index((5), (5))"),
        ("linear_index_with_tile((1), (5), (0))", "invalid_tile", "(0)"),
        ("3 mod 0 = 1", "syntax", "3 mod 0"),
        ("7/2 = 3", "syntax", "7/2"),
        ("sum((2,3), (3,5)) = 13", "syntax", "sum"),
    ] {
        let failure = Equation::read(text).expect_err(text);
        let span = failure.span.clone().expect(text);
        assert_eq!((failure.kind, text[span].trim()), (kind, wrong), "{text}: {failure:?}");
    }
    let deep = format!("{}1{} = 1", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(Equation::read(&deep).expect_err("deep").kind, "nesting_too_deep");
    for many in
        [format!("1{}", "+1".repeat(100_000)), format!("1 = 1{}", " · 1".repeat(100_000)), "en".repeat(100_000) + "+e1"]
    {
        assert!(Equation::read(&many).is_err(), "{}", &many[..9]);
    }
    let signs = format!("{}1 = 1", "-".repeat(100_000));
    assert_eq!(Equation::read(&signs).expect_err("signs").kind, "nesting_too_deep");
}

#[test]
fn symbols_hold_in_general() {
    for text in [
        "linear_index(e, d)",
        "linear_index_with_tile(e, d, t)\n= linear_index((⌊e/t⌋, e mod t), (⌈d/t⌉, t)) (arithmetic is elementwise, (a,b) is concatenation)",
        "= e_{n}d_{n-1}...d_{1} + e_{n-1}d_{n-2}...d_{1} + ... + e_{1}",
        "e=(e_n, e_{n-1}, ... , e_1)",
        "линейный_индекс(e, d) = e<sub>n</sub>d<sub>n-1</sub>...d<sub>1</sub>",
    ] {
        assert!(Equation::begins(text), "{text}");
        let equation = Equation::read(text).unwrap_or_else(|failure| panic!("{text}: {failure:?}"));
        let json = serde_json::to_value(&equation).expect("JSON");
        assert!(json["holds"].is_null() && equation.to_text(80).contains("with numbers"), "{text}");
    }
}

/// The lists of "Linear index formulas" and "Tiling as pad-reshape-transpose" with what they are, and their numbers in the page's example,
/// element (2,3) of F32[3,5]{1,0:T(2,2)}.
#[test]
fn lists_of_symbols_have_a_meaning() {
    for (text, meaning, numbers) in [
        ("(⌊en/tn⌋, ... , ⌊e1/t1⌋)", "tile index", "(1,1)"),
        ("(e_{n} mod t_{n}, ... , e_{1} mod t_{1})", "within-tile index", "(0,1)"),
        ("(⌈d<sub>n</sub>/t<sub>n</sub>⌉, ... , ⌈d<sub>1</sub>/t<sub>1</sub>⌉)", "number of tiles", "(2,3)"),
        ("(⌈dn/tn⌉∙tn, ... ,\n⌈d1/t1⌉∙t1)", "step 1, pad", "(4,6)"),
        ("(⌈di/ti⌉, ti)", "step 2, reshape", "(2,2)"),
        ("(⌈dn/tn⌉, tn, ... , ⌈d1/t1⌉, t1)", "bitcast", "(2,2,3,2)"),
        ("(⌈d n /t n ⌉, ... , ⌈d 1 /t 1 ⌉, t n , ... , t 1 )", "step 3, transpose", "(2,3,2,2)"),
        ("(⌊e/t⌋, e mod t)", "index in memory", "(1,1,0,1)"),
        ("(tn, tn-1, ... , t1)", "a tile's sizes", "(2,2)"),
    ] {
        assert!(Equation::begins(text), "{text}");
        let said = Equation::read(text).expect(text).to_text(1000);
        assert!(said.contains(meaning) && said.contains(&format!("{numbers} for (2,3)")), "{text}: {said}");
    }
    for (text, meaning) in [
        ("tntn-1...t1", "the number of elements in a tile"),
        ("d_{i}d_{i-1}", "took in the next more major one"),
        ("endn-1...d1 + en-1dn-2...d1 + ... + e1", "each index times all more minor bounds, added"),
        ("d1", "the most minor"),
    ] {
        let said = Equation::read(text).expect(text).to_text(1000);
        assert!(Equation::begins(text) && said.contains(meaning), "{text}: {said}");
    }
    // Words that aren't the documents' aren't taken for theirs.
    for text in ["s1", "e4m3", "end", "ten", "d1.5", "t1 = f32[2] add(a, b)", "edit", "in"] {
        assert!(!Equation::begins(text), "{text}");
    }
}

#[test]
fn parts_alone_have_a_meaning() {
    for (text, words) in [
        ("(2,4)(2,1)", &["tile", "2 rows are interleaved"][..]),
        ("(২,৪)(২,১)", &["tile", "2 rows are interleaved"]),
        ("T(8,128)(2,1)", &["tpu-16bit", "one word"]),
        ("(8,128)(4,1)", &["tpu-8bit", "four rows of a column in one word"]),
        ("8x128", &["T(8,128)", "tpu-8x128", "f32[8,128]"]),
        ("2 × 2", &["T(2,2)", "f32[2,2]"]),
        ("(∗,∗,2,∗,3)", &["3 dimensions are merged", "f32[2,3,4,5,6]{4,3,2,1,0:T(*,*,2,*,3)}"]),
        ("(1,1,0,1)", &["element of an array with 4 dimensions"]),
        ("S(1)", &["vmem"]),
        ("S(n)", &["S(1)", "vmem", "S(5)", "host"]),
        ("L(n)", &["tail_padding_alignment_in_elements"]),
        ("bf16", &["16 bits"]),
        ("`F32`", &["32 bits"]),
        ("[0, 1]", &["column-major", "f32[0,1]"]),
        ("[1, 0]", &["row-major", "{1,0}"]),
        ("[3, 5]", &["dimension 1 (x) has size 5"]),
        ("minor_to_major", &["fastest"]),
        ("minor_to_major [0, 1]", &["{0,1}", "column-major"]),
        ("minor_to_major: {1, 0}", &["row-major"]),
        ("layout { minor_to_major: [0, 1] }", &["column-major"]),
        ("tail_padding_alignment_in_elements: 16", &["L(16)", "minor_to_major, the one required field"]),
        (
            "message LayoutProto {\n  repeated int64 minor_to_major = 1;\n  int64 tail_padding_alignment_in_elements = 16;\n}",
            &["fastest", "L(n)"],
        ),
        ("{A, B, C, D}", &["dimension 3 (x) has size D", "f32[A,B,C,D]{3,2,1,0}"]),
        ("[A x B x C]", &["dimension 0 (z) has size A", "−2 B"]),
        ("[N-1, ..., 0]", &["row-major", "XLA's default"]),
        ("{0, …, N−1}", &["column-major"]),
        ("dim 0 is minor", &["{0,…,N−1}"]),
        ("S(0)", &["hbm"]),
        ("Figure 1", &["f32[3,5]{1,0:T(2,2)}"]),
        ("ShapeUtil::MakeShape(F32, {A, B, C, D})", &["f32[2,3,4,5]"]),
        ("-1", &["last dimension"]),
        ("−1", &["last dimension"]),
        ("N-1", &["last dimension"]),
        ("dimension 1: x", &["x of an array with 2"]),
        ("измерение 0: y", &["y of an array with 2"]),
        ("0 维: z", &["z of an array with 3"]),
        ("بعد -1", &["last dimension"]),
        ("линейный_индекс", &["linear_index_with_tile"]),
        ("(۲،۴)(۲،۱)", &["2 rows are interleaved"]),
        ("The most-minor dimension", &["fastest"]),
        ("0 up to N-1", &["column-major"]),
        ("add", &["operation"]),
        ("exponential.183, broadcast.3115", &["2 arguments"]),
        ("TPU 1 bit tile format", &["4 bytes", "T(32,128)(32,1)E(1)"]),
        ("Compact 2nd Minor Layout", &["tpu-compact-2nd-minor"]),
        ("PRED", &["T(8,128)E(32)", "4 bytes"]),
        ("(2,2,8,128,2,1,1,1)", &["in short (2,2,8,128,2)"]),
        ("a d 0 b e 0 c f 0 0 0 0 0 0 0", &["f32[2,3]{0,1:T(5,3)}", "3 rows of 5"]),
        ("a b c 0 0\nd e f 0 0\n0 0 0 0 0", &["f32[2,3]{1,0:T(3,5)}"]),
        ("add.936", &["operation"]),
        ("kind=kCustom", &["fusion"]),
        ("HBM", &["S(0)"]),
        ("row-major", &["f32[2,3]{1,0}"]),
        ("linear_index_with_tile", &["⌊e/t⌋"]),
        ("a d b e c f", &["column-major", "f32[2,3]{0,1}"]),
        ("a b c d e f", &["row-major"]),
        ("a b c\nd e f", &["2 rows of 3 elements"]),
        ("a d 0 b e 0 c f 0 0 0 0 0 0 0", &["column-major", "0 is padding"]),
        ("(e_n, e_{n-1}, ..., e_1)", &["major to minor"]),
        ("[2 х 3]", &["f32[2,3]"]),
        ("d", &["bounds"]),
        ("LayoutProto", &["minor_to_major"]),
        ("pad        [3,5] → [4,6]          moves bytes  T(2,2)", &["[4,6]"]),
    ] {
        let shown =
            Shown::read(text, &mut Reader::with_notes()).unwrap_or_else(|failure| panic!("{text}: {failure:?}"));
        let said = shown.to_text(1000);
        assert!(words.iter().all(|words| said.contains(words)), "{text}: {said}");
        assert!(parse_shape(text).is_err(), "a program wants a shape: {text}");
    }
    for text in ["garbage", "", "f33[2]", "1.5", "hello, world", "(", "x = y"] {
        assert!(Part::read(text).is_none(), "{text}");
    }
}

/// Characters of pages: people get a note, programs an error that names what can't be seen.
#[test]
fn pages_characters_are_for_people() {
    for (text, shape) in [
        ("f32[2]\u{feff}", "f32[2]{0}"),
        ("f32[2,3]\u{a0}{0,1}", "f32[2,3]{0,1}"),
        ("`F32[3,5]{1,0:T(2,2)}`。", "f32[3,5]{1,0:T(2,2)}"),
        ("f32［2，3］{1，0}", "f32[2,3]{1,0}"),
        ("F32[৩,৫]{১,০:T(২,২)}", "f32[3,5]{1,0:T(2,2)}"),
        ("linear_index_with_tile((2,3), (3,5), (2,2))", "f32[3,5]{1,0:T(2,2)}"),
    ] {
        let mut reader = Reader::with_notes();
        assert_eq!(reader.shape(text).map(|shape| shape.to_string()).as_deref(), Ok(shape), "{text}");
        assert_eq!(reader.take_notes().len(), 1, "{text}");
        assert!(Reader::without_notes().shape(text).is_err(), "{text}");
    }
    let named = |text: &str| parse_shape(text).expect_err(text).message;
    assert!(named("f32[\u{feff}2]").ends_with("there is U+FEFF"), "{}", named("f32[\u{feff}2]"));
    assert!(named("f32[\u{a0}2]").ends_with("there is U+00A0"));
}

/// A paragraph in each language; the rest is passed over.
#[test]
fn prose_is_searched() {
    let page = "Figure 1 shows how an array F32[3,5] is laid out with 2x2 tiling, as F32[3,5]{1,0:T(2,2)}.\n\
        Element (2,3) is at linear_index_with_tile((2,3), (3,5), (2,2)) <br> = 17. For a formula linear_index(e, d) see above.\n\
        На рисунке 1 массив F32[3,5]{1,0:T(2,2)}: линейный_индекс((1,1,0,1), (2,3,2,2)) = 17. Форма bf16[8,128]{1,0:T(8,128)(2,1)}.\n\
        চিত্র ১: রৈখিক_সূচক((১,১), (২,৩)) = ৪।\n\
        add.936 = bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)} add(exponential.183, broadcast.3115)\n\
        (2,4)(2,1) 和 {0,1}，ShapeUtil::MakeShape(F32, {3, 4})。";
    let json = serde_json::to_value(Prose::read(page)).expect("JSON");
    let pieces: Vec<(u64, &str, &str)> = json["pieces"]
        .as_array()
        .expect("pieces")
        .iter()
        .map(|piece| {
            (
                piece["line"].as_u64().expect("a line"),
                piece["kind"].as_str().expect("a kind"),
                piece["text"].as_str().expect("a text"),
            )
        })
        .collect();
    for wanted in [
        (1, "shape", "f32[3,5]"),
        (1, "shape", "f32[3,5]{1,0:T(2,2)}"),
        (2, "equation", "linear_index_with_tile((2,3), (3,5), (2,2)) = 17"),
        (2, "equation", "linear_index(e, d)"),
        (3, "equation", "линейный_индекс((1,1,0,1), (2,3,2,2)) = 17"),
        (3, "shape", "bf16[8,128]{1,0:T(8,128)(2,1)}"),
        (4, "equation", "রৈখিক_সূচক((1,1), (2,3)) = 4"),
        (5, "operation", "add.936 = bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)} add(exponential.183, broadcast.3115)"),
        (6, "part", "(2,4)(2,1)"),
        (6, "layout", "{0,1}"),
        (6, "shape", "f32[3,4]"),
    ] {
        assert!(pieces.contains(&wanted), "{wanted:?} is not among {pieces:#?}");
    }
    // Chinese has no blanks; a word in front of a list calls nothing.
    let chinese = Prose::read("数组F32[3,5]的图块索引(0,1)，位置为linear_index((0,1), (2,2))。");
    let chinese = serde_json::to_value(chinese).expect("JSON");
    let texts = chinese["pieces"].as_array().expect("pieces").iter().filter_map(|piece| piece["text"].as_str());
    assert_eq!(texts.collect::<Vec<_>>(), ["f32[3,5]", "linear_index((0,1), (2,2))"]);
    assert!(Prose::read("Nothing (of it) is here: x = 3, and so on.").is_empty());
}

/// Whatever help offers is read: by `show` for people, if it is a text in backquotes that looks like a part of the notation.
#[test]
fn what_is_offered_is_read() {
    let mut offered = 0;
    for text in texts() {
        let Err(failure) = parse_shape(&text) else { continue };
        let Some(help) = failure.help else { continue };
        for quoted in help.split('`').skip(1).step_by(2).chain(help.split('\'').skip(1).step_by(2)) {
            if quoted.contains(['[', '{']) && !quoted.starts_with("tilewise ") {
                offered += 1;
                let read = Shown::read(quoted, &mut Reader::with_notes());
                assert!(read.is_ok(), "of {text:?} `{quoted}` is offered: {read:?}");
            }
        }
    }
    assert!(offered > 1000, "{offered}");
    for text in ["(২,৪)(২,১)", "S(n)", "(1,1,0,1)", "S(1)", "(∗,∗,2,∗,3)", "(f32[2],)", "[1, 0]"] {
        let part = PartOfShape::read(text).map(|part| part.to_text(1000)).unwrap_or_default();
        for example in part.split("such as ").skip(1) {
            let example = example.split_whitespace().next().unwrap_or_default();
            assert!(parse_shape(example).is_ok(), "{text}: {example}");
        }
    }
}

/// Texts cut at every character, and with a character put in: an answer or an error that points into them, and no panic.
#[test]
fn every_text_is_answered() {
    for text in texts() {
        let mut spans = Vec::new();
        spans.extend(Equation::read(&text).err());
        spans.extend(Answer::read(&text, true, &mut Reader::with_notes()).err());
        spans.extend(Shown::read(&text, &mut Reader::with_notes()).err());
        for failure in spans {
            let span = failure.span.clone().unwrap_or_default();
            assert!(text.get(span).is_some(), "{text:?}: {failure:?}");
        }
        let _ = Prose::read(&text).to_text(80);
    }
}

fn texts() -> Vec<String> {
    let whole: Vec<&str> = EXAMPLES
        .iter()
        .copied()
        .chain([
            "F32[4,8] (2,4)(2,1)",
            "F32[2,3] minor_to_major [0, 1]",
            "[1, 0]",
            "(f32[2],)",
            "T(8,128)(2,1)S(1)",
            "(∗,∗,2,∗,3)",
            "layout { minor_to_major: [0, 1] }",
            "ShapeUtil::MakeShape(F32, {3, 5}, {1, 0})",
            "a:f32[10]{0:T(8)}",
            "%f = bf16[8]{0:T(8)} fusion(bf16[8] %x), kind=kLoop",
            "e_{n}d_{n-1}...d_{1} + e_{1}",
            r"\left\lfloor e/t \right\rfloor",
        ])
        .collect();
    let mut texts = Vec::new();
    for text in whole {
        for (at, c) in text.char_indices() {
            texts.push(text[..at].to_owned());
            texts.push(format!("{}{}", &text[..at], &text[at + c.len_utf8()..]));
            for put in
                ["(", ")", "[", "{", "=", "∙", "-", "_", "\\", "<", "9999999999999999999", "\u{200b}", "x", "…", "*"]
            {
                texts.push(format!("{}{put}{}", &text[..at], &text[at..]));
            }
        }
    }
    texts
}
