//! Protos: XLA's recorded bytes, round trips, and malformed bytes.

#![cfg(feature = "proto")]

use proptest::prelude::*;
use prost::Message;
use std::{collections::HashMap, path::Path};
use tilewise::{
    Dimension, ElementType, Error, ErrorKind, Layout, MAX_NESTING, Shape, SplitConfig,
    proto::{LayoutProto, ProgramShapeProto, ShapeProto, SplitConfigProto, TileProto},
};
use tilewise_testing::shapes::small_arrays;

fn rows() -> Vec<HashMap<String, String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/facts/shape_vectors.csv");
    let mut reader = csv::Reader::from_path(path).expect("the facts are in the tree");
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

fn from_hex(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn shape(text: &str) -> Shape {
    text.parse().expect(text)
}

/// Decodes, and compares with what goes through messages.
fn decode(bytes: &[u8]) -> Result<Shape, Error> {
    let decoded = Shape::decode_proto(bytes);
    if let Ok(proto) = ShapeProto::decode(bytes) {
        assert_eq!(Shape::from_proto(&proto), decoded, "{bytes:02x?}");
    }
    decoded
}

#[track_caller]
fn assert_same(decoded: &Shape, shape: &Shape) {
    assert!(decoded.identical(shape), "{decoded} is not {shape}");
}

#[track_caller]
fn assert_refused(proto: &ShapeProto, kind: ErrorKind) {
    let error = decode(&proto.encode_to_vec()).expect_err("a fault");
    assert_eq!((error.kind(), error.span()), (kind, None), "{error}");
}

#[test]
fn bytes_are_xlas() {
    let mut checked = 0;
    for row in rows().iter().filter(|row| !row["proto_hex"].is_empty()) {
        let bytes = from_hex(&row["proto_hex"]);
        if row["strict"].starts_with("ok") && row["strict_canonical"] == row["canonical"] {
            checked += 1;
            let shape = shape(&row["canonical"]);
            assert_eq!(shape.encode_proto(), bytes, "{shape}");
            assert_eq!(shape.to_proto().encode_to_vec(), bytes, "{shape}");
            assert_same(&decode(&bytes).expect("XLA wrote it"), &shape);
        } else if let Err(error) = decode(&bytes) {
            // Shapes that XLA should not have accepted are refused, where its message still shows it.
            let kinds = ["any", error.kind().as_str()];
            assert!(row["strict"].split('|').any(|kind| kinds.contains(&kind)), "{}: {error:?}", row["text"]);
        }
    }
    assert!(checked > 300, "{checked} rows");
}

#[test]
fn messages_hold_what_xla_writes() {
    let proto = shape("bf16[<=6,?,4]{2,0,1:T(*,8)(2)L(3)#(u32)*(u64)E(16)S(5)SC(2:1,3)M(8)}").to_proto();
    let expected = ShapeProto {
        element_type: 16,
        dimensions: vec![6, i64::MIN, 4],
        tuple_shapes: vec![],
        layout: Some(LayoutProto {
            minor_to_major: vec![2, 0, 1],
            tiles: vec![TileProto { dimensions: vec![i64::MIN, 8] }, TileProto { dimensions: vec![2] }],
            element_size_in_bits: 16,
            memory_space: 5,
            index_primitive_type: 8,
            pointer_primitive_type: 9,
            dynamic_shape_metadata_prefix_bytes: 8,
            tail_padding_alignment_in_elements: 3,
            split_configs: vec![SplitConfigProto { dimension: 2, split_indices: vec![1, 3] }],
            ..LayoutProto::default()
        }),
        is_dynamic_dimension: vec![true, true, false],
    };
    assert_eq!(proto, expected);
}

#[test]
fn program_shapes_are_messages_too() {
    let program = ProgramShapeProto {
        parameters: vec![shape("f32[2]").to_proto()],
        result: Some(shape("token[]").to_proto()),
        parameter_names: vec!["x".to_owned()],
    };
    let bytes = program.encode_to_vec();
    assert_eq!(bytes, from_hex("0a10100b1a01022a060a0100800101320100120210111a0178"));
    assert_eq!(ProgramShapeProto::decode(&*bytes), Ok(program));
}

#[test]
fn what_xla_leaves_out_has_its_meaning() {
    let array = |layout| ShapeProto { element_type: 11, dimensions: vec![2], layout, ..ShapeProto::default() };
    let read = |layout| Shape::from_proto(&array(layout)).expect("a shape");
    assert_same(&read(None), &Shape::parse_as_written("f32[2]").expect("a shape"));
    // No field 16: no tail padding. Remains of sparse arrays are dropped.
    let layout = LayoutProto {
        minor_to_major: vec![0],
        dim_level_types: vec![1],
        dim_unique: vec![true],
        dim_ordered: vec![false],
        ..LayoutProto::default()
    };
    assert_same(&read(Some(layout.clone())), &shape("f32[2]{0}"));
    // Both spellings of `*`.
    for star in [-1, i64::MIN] {
        let tiles = vec![TileProto { dimensions: vec![star, 2] }];
        assert_same(&read(Some(LayoutProto { tiles, ..layout.clone() })), &shape("f32[2]{0:T(*,2)}"));
    }
    // Fields of other numbers, and of a newer XLA, are skipped.
    assert_same(&decode(b"\x08\x01\x10\x0d\xfa\x01\x03abc").expect("a tuple"), &shape("()"));
}

#[test]
fn repeated_numbers_may_be_unpacked() {
    assert_same(
        &decode(&from_hex("100b180318052a0408010800300030 01".replace(' ', "").as_str())).expect("a shape"),
        &{ shape("f32[3,<=5]{1,0}") },
    );
}

#[test]
fn fields_may_come_in_any_order() {
    // The element type last: until then, nothing says that the message is a tuple.
    assert_same(
        &decode(&[0x22, 2, 0x10, 17, 0x22, 2, 0x10, 14, 0x10, 13]).expect("a tuple"),
        &shape("(token[], opaque[])"),
    );
}

/// An array that is right, for one thing to be made wrong.
fn with_layout(change: impl FnOnce(&mut LayoutProto)) -> ShapeProto {
    let mut proto = shape("f32[3,5]").to_proto();
    change(proto.layout.as_mut().expect("a layout"));
    proto
}

#[test]
fn faults_have_the_names_they_have_in_texts() {
    use ErrorKind as Kind;
    type Change = fn(&mut LayoutProto);
    let tile = |d: &[i64]| vec![TileProto { dimensions: vec![8, 128] }, TileProto { dimensions: d.to_vec() }];
    for bad in [&[][..], &[0], &[2, 0], &[-2, 2], &[2, -1], &[i64::MIN]] {
        assert_refused(&with_layout(|l| l.tiles = tile(bad)), Kind::InvalidTile);
    }
    for (dimension, indices) in [(2, &[1][..]), (-1, &[1]), (0, &[3]), (0, &[0]), (0, &[-1]), (1, &[2, 2])] {
        let config = SplitConfigProto { dimension, split_indices: indices.to_vec() };
        assert_refused(&with_layout(|l| l.split_configs = vec![config]), Kind::InvalidSplitConfig);
    }
    // A dimension without a bound has nothing to split below, to XLA too; a split at no index is one.
    let mut unbounded = shape("f32[?]{0:SC(0:)}").to_proto();
    unbounded.layout.as_mut().expect("a layout").split_configs[0].split_indices.push(1);
    assert_refused(&unbounded, Kind::InvalidSplitConfig);
    let changes: &[(Change, Kind)] = &[
        (|l| l.minor_to_major = vec![0], Kind::LayoutRankMismatch),
        (|l| l.minor_to_major = vec![], Kind::LayoutRankMismatch),
        (|l| l.minor_to_major = vec![1, 1], Kind::NotAPermutation),
        (|l| l.minor_to_major = vec![1, -1], Kind::NotAPermutation),
        (|l| l.minor_to_major = vec![2, 1], Kind::NotAPermutation),
        (|l| l.tail_padding_alignment_in_elements = -1, Kind::InvalidTailPadding),
        (|l| l.element_size_in_bits = -1, Kind::InvalidElementSize),
        (|l| l.memory_space = 128, Kind::InvalidMemorySpace),
        (|l| l.memory_space = 256, Kind::InvalidMemorySpace),
        (|l| l.memory_space = -1, Kind::InvalidMemorySpace),
        (|l| l.memory_space = i64::MIN, Kind::InvalidMemorySpace),
        (|l| l.index_primitive_type = 11, Kind::InvalidIndexType),
        (|l| l.index_primitive_type = 99, Kind::InvalidIndexType),
        (|l| l.pointer_primitive_type = 4, Kind::InvalidPointerType),
        (|l| l.pointer_primitive_type = -1, Kind::InvalidPointerType),
        (|l| l.physical_shape = Some(Box::default()), Kind::PhysicalShapeNotAllowed),
        (|l| l.dynamic_shape_metadata_prefix_bytes = -1, Kind::InvalidMetadataPrefix),
    ];
    for (change, kind) in changes {
        assert_refused(&with_layout(change), *kind);
    }
}

#[test]
fn every_kind_of_shape_has_its_own_fields() {
    use ErrorKind as Kind;
    let of_kind = |element_type| ShapeProto { element_type, ..ShapeProto::default() };
    let array = shape("f32[2]").to_proto();
    let with = |element_type, tuple_shapes| ShapeProto { tuple_shapes, ..of_kind(element_type) };
    for impossible in [0, -1, 37, 99, i32::MIN, i32::MAX] {
        assert_refused(&of_kind(impossible), Kind::InvalidProto);
        assert_refused(&with(13, vec![array.clone(), of_kind(impossible)]), Kind::InvalidProto);
    }
    for bare in [13, 14, 17, 34] {
        assert_refused(&ShapeProto { dimensions: vec![1], ..of_kind(bare) }, Kind::DimensionsNotAllowed);
        assert_refused(&ShapeProto { layout: array.layout.clone(), ..of_kind(bare) }, Kind::LayoutNotAllowed);
        assert_refused(&ShapeProto { is_dynamic_dimension: vec![false], ..of_kind(bare) }, Kind::InvalidProto);
    }
    for leaf in [14, 17, 11] {
        assert_refused(&with(leaf, vec![array.clone()]), Kind::InvalidProto);
    }
    for inner in
        [vec![], vec![array.clone(); 2], vec![of_kind(17)], vec![of_kind(13)], vec![with(34, vec![array.clone()])]]
    {
        assert_refused(&with(34, inner), Kind::InvalidBuffer);
    }
    let dimensions = |dimensions: &[i64], dynamic: &[bool]| ShapeProto {
        dimensions: dimensions.to_vec(),
        is_dynamic_dimension: dynamic.to_vec(),
        ..of_kind(11)
    };
    assert_refused(&dimensions(&[2, 3], &[true]), Kind::InvalidProto);
    assert_refused(&dimensions(&[2], &[true, false]), Kind::InvalidProto);
    assert_refused(&dimensions(&[-1], &[]), Kind::InvalidDimension);
    assert_refused(&dimensions(&[i64::MIN], &[false]), Kind::InvalidDimension);
    assert_refused(&dimensions(&[-1], &[true]), Kind::InvalidDimension);
    assert_refused(&dimensions(&[i64::MAX], &[]), Kind::Overflow);
    assert_refused(&dimensions(&[1 << 40, 1 << 40], &[]), Kind::Overflow);
}

/// A message wrapped in fields, each opened by these bytes and its length, the innermost first.
fn wrapped<'a>(innermost: &[u8], openings: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut reversed: Vec<u8> = innermost.iter().rev().copied().collect();
    for opening in openings {
        let mut length = vec![];
        prost::encode_length_delimiter(reversed.len(), &mut length).expect("room");
        reversed.extend(length.iter().rev().chain(opening.iter().rev()));
    }
    reversed.reverse();
    reversed
}

/// A tuple in a tuple in a tuple …, this often, as bytes.
fn nested(levels: usize) -> Vec<u8> {
    wrapped(&[0x10, 13], std::iter::repeat_n(&[0x10, 13, 0x22][..], levels - 1))
}

#[test]
fn tuples_nest_as_deep_as_in_texts() {
    let text = "(".repeat(MAX_NESTING) + &")".repeat(MAX_NESTING);
    let deepest = shape(&text);
    assert_eq!(deepest.encode_proto(), nested(MAX_NESTING));
    assert_same(&Shape::decode_proto(&nested(MAX_NESTING)).expect("deep enough"), &deepest);
    for levels in [MAX_NESTING + 1, 20_000, 200_000] {
        let error = Shape::decode_proto(&nested(levels)).expect_err("too deep");
        assert_eq!(error.kind(), ErrorKind::NestingTooDeep);
    }
    // Built step by step, a shape may be deeper than can be read; it can still be written.
    let deeper = Shape::tuple([deepest]);
    assert_eq!(deeper.encode_proto(), nested(MAX_NESTING + 1));
    let error = Shape::from_proto(&deeper.to_proto()).expect_err("too deep");
    assert_eq!(error.kind(), ErrorKind::NestingTooDeep);
}

#[test]
fn a_buffer_counts_as_a_level() {
    let text = |levels| "(".repeat(levels) + "b(f32[])" + &")".repeat(levels);
    let deepest = shape(&text(MAX_NESTING - 1));
    assert_same(&Shape::decode_proto(&deepest.encode_proto()).expect("deep enough"), &deepest);
    let deeper = Shape::tuple([deepest]);
    assert_eq!(text(MAX_NESTING).parse::<Shape>().expect_err("too deep").kind(), ErrorKind::NestingTooDeep);
    assert_eq!(Shape::decode_proto(&deeper.encode_proto()).expect_err("too deep").kind(), ErrorKind::NestingTooDeep);
}

/// Whatever was read is written and read again alike.
fn check_malformed(bytes: &[u8]) {
    if let Ok(shape) = decode(bytes) {
        assert_same(&Shape::decode_proto(&shape.encode_proto()).expect("it was just written"), &shape);
    }
}

#[test]
fn cut_bytes_are_no_shape_or_another() {
    for row in rows().iter().filter(|row| !row["proto_hex"].is_empty()).step_by(7) {
        let bytes = from_hex(&row["proto_hex"]);
        for length in 0..bytes.len() {
            check_malformed(&bytes[..length]);
        }
    }
    for garbage in
        [&b""[..], b"\x10", b"\x0b\x0c", b"\x2a\x05\x0a", b"\x12\x00", b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"]
    {
        assert_eq!(decode(garbage).expect_err("no shape").kind(), ErrorKind::InvalidProto);
    }
    // Messages nested deeper than prost reads: physical shapes in layouts, and groups, which it skips.
    let physical_shapes = std::iter::repeat_n([&[0x52][..], &[0x2a]], 10_000).flatten();
    assert_eq!(decode(&wrapped(b"", physical_shapes)).expect_err("no shape").kind(), ErrorKind::InvalidProto);
    assert_eq!(decode(&[0x0b; 100_000]).expect_err("no shape").kind(), ErrorKind::InvalidProto);
}

/// Arrays as the generator makes them, with what it leaves out.
fn arrays() -> impl Strategy<Value = Shape> {
    let dynamic = prop::collection::vec(0..6u8, 5);
    let types = prop::sample::select(ElementType::ALL);
    let extras = (prop_oneof![Just(0u8), 0..128u8], prop_oneof![Just(0u64), 0..u64::MAX], any::<bool>());
    (small_arrays(), types, dynamic, extras).prop_map(|(array, element_type, dynamic, (space, prefix, split))| {
        let dimension = |(d, dynamic): (&Dimension, u8)| match (dynamic, d.bound()) {
            (4, _) => Dimension::UNBOUNDED,
            (5, Some(bound)) => Dimension::bounded(bound).expect("small"),
            _ => *d,
        };
        let dimensions: Vec<_> = array.dimensions().iter().zip(dynamic).map(dimension).collect();
        let mut layout = array.layout().expect("a layout").clone();
        layout = layout.with_memory_space(space).expect("small").with_dynamic_shape_metadata_prefix_bytes(prefix);
        if split {
            let order = layout.minor_to_major().iter().rev().map(|&d| dimensions[d].bound().unwrap_or(0));
            let configs: Vec<_> = order
                .enumerate()
                .filter(|(_, bound)| *bound > 2)
                .map(|(dimension, bound)| SplitConfig { dimension, split_indices: (1..bound).step_by(2).collect() })
                .collect();
            layout = layout.with_split_configs(configs);
        }
        let shape = Shape::dynamic_array(element_type, dimensions).expect("small");
        shape.with_layout(layout).expect("it fits")
    })
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        6 => arrays(),
        1 => arrays().prop_map(|a| Shape::parse_as_written(&a.without_layout().to_string()).expect("a text")),
        1 => arrays().prop_map(|a| Shape::buffer(a).expect("an array")),
        1 => Just(Shape::token()),
        1 => Just(Shape::opaque()),
    ];
    leaf.prop_recursive(4, 24, 6, |element| prop::collection::vec(element, 0..7).prop_map(Shape::tuple))
}

/// [`ShapeProto`] as an old writer without packing would write it.
#[derive(Clone, PartialEq, prost::Message)]
struct Unpacked {
    #[prost(bool, repeated, packed = "false", tag = "6")]
    is_dynamic_dimension: Vec<bool>,
    #[prost(message, optional, tag = "5")]
    layout: Option<UnpackedLayout>,
    #[prost(int64, repeated, packed = "false", tag = "3")]
    dimensions: Vec<i64>,
    #[prost(int32, tag = "2")]
    element_type: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct UnpackedLayout {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    minor_to_major: Vec<i64>,
    #[prost(message, repeated, tag = "6")]
    tiles: Vec<UnpackedTile>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct UnpackedTile {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    dimensions: Vec<i64>,
}

/// As `DebugString` prints it, and as people write it.
#[test]
fn texts_are_protobufs() {
    let text = "\
element_type: F32
dimensions: 3
dimensions: 5
layout {
  minor_to_major: 1
  minor_to_major: 0
  tiles {
    dimensions: 2
    dimensions: 2
  }
  tail_padding_alignment_in_elements: 1
}
is_dynamic_dimension: false
is_dynamic_dimension: false
";
    assert_eq!(shape("f32[3,5]{1,0:T(2,2)}").to_text_proto(), text);
    assert_eq!(
        shape("((), token[])").to_text_proto(),
        "element_type: TUPLE\ntuple_shapes {\n  element_type: TUPLE\n}\ntuple_shapes {\n  element_type: TOKEN\n}\n"
    );
    for (text, expected) in [
        ("element_type: F32 dimensions: [2, 3]", "f32[2,3]"),
        ("element_type: 11, dimensions: 2; dimensions: 3 # a comment", "f32[2,3]"),
        ("element_type:F32 dimensions:2 layout<minor_to_major:0 memory_space:1>", "f32[2]{0:S(1)}"),
        (
            "element_type: TUPLE tuple_shapes: { element_type: PRED } tuple_shapes {element_type: OPAQUE_TYPE}",
            "(pred[], opaque[])",
        ),
        ("element_type: BF16 dimensions: 6 is_dynamic_dimension: true", "bf16[<=6]"),
    ] {
        let read = Shape::from_text_proto(text).map(|shape| shape.to_string());
        assert_eq!(read.as_deref(), Ok(expected), "{text}");
    }
    for (text, span) in [
        ("element_type: F33", 14..15),
        ("element_tipe: F32", 0..12),
        ("element_type F32", 0..1),
        ("element_type: F32 layout { dimensions: 3 }", 27..37),
        ("element_type: F32 }", 18..19),
        ("element_type: TUPLE tuple_shapes { element_type: F32", 52..52),
    ] {
        let error = Shape::from_text_proto(text).expect_err(text);
        assert_eq!((error.kind(), error.span()), (ErrorKind::InvalidProto, Some(span)), "{text}");
    }
    // As deep as elsewhere, and no deeper.
    let nested = |levels: usize| {
        format!("{}element_type: TUPLE{}", "element_type: TUPLE tuple_shapes {".repeat(levels), "}".repeat(levels))
    };
    assert!(Shape::from_text_proto(&nested(MAX_NESTING - 1)).is_ok());
    for levels in [MAX_NESTING, 100_000] {
        assert_eq!(Shape::from_text_proto(&nested(levels)).expect_err("deep").kind(), ErrorKind::NestingTooDeep);
    }
}

proptest! {
    #![proptest_config(tilewise_testing::cases(3000))]

    #[test]
    fn shapes_come_back(shape in shapes()) {
        let bytes = shape.encode_proto();
        prop_assert_eq!(&shape.to_proto().encode_to_vec(), &bytes);
        assert_same(&decode(&bytes)?, &shape);
    }

    #[test]
    fn shapes_come_back_as_texts(shape in shapes()) {
        let text = shape.to_text_proto();
        assert_same(&Shape::from_text_proto(&text)?, &shape);
        if let Some(layout) = shape.layout() {
            prop_assert_eq!(&Layout::from_text_proto(&layout.to_text_proto())?, layout);
        }
        // However it is wrapped.
        assert_same(&Shape::from_text_proto(&text.replace('\n', " "))?, &shape);
    }

    #[test]
    fn no_text_does_harm(text in "[a-z_0-9:{}<>\\[\\],#\n-]{0,60}", cut in any::<prop::sample::Index>(), shape in shapes()) {
        let whole = shape.to_text_proto();
        for text in [&text, &whole[..cut.index(whole.len())]] {
            if let Err(error) = Shape::from_text_proto(text) {
                prop_assert!(error.span().is_none_or(|span| text.get(span).is_some()), "{}: {:?}", text, error);
            }
        }
    }

    #[test]
    fn packing_makes_no_difference(shape in small_arrays()) {
        let proto = shape.to_proto();
        let layout = proto.layout.expect("a layout");
        let tiles = layout.tiles.into_iter().map(|tile| UnpackedTile { dimensions: tile.dimensions }).collect();
        let unpacked = Unpacked {
            element_type: proto.element_type,
            dimensions: proto.dimensions,
            layout: Some(UnpackedLayout { minor_to_major: layout.minor_to_major, tiles }),
            is_dynamic_dimension: proto.is_dynamic_dimension,
        };
        let plain = Layout::new(shape.layout().expect("a layout").minor_to_major().iter().copied())?;
        let plain = plain.with_tiles(shape.layout().expect("a layout").tiles().iter().cloned())?;
        assert_same(&decode(&unpacked.encode_to_vec())?, &shape.with_layout(plain)?);
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..40u8], 0..60)) {
        check_malformed(&bytes);
    }

    #[test]
    fn no_slip_does_harm(shape in shapes(), slips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = shape.encode_proto();
        for (at, byte) in slips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_malformed(&bytes);
    }
}
