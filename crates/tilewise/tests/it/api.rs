//! The faces of the public interface that the other tests pass by: what is refused, and in which words things are said.

use tilewise::{
    Dimension, ElementType, Error, ErrorKind, Layout, MAX_SIZE, PaddedAxis, Shape, ShapeKind, SplitConfig, Tile, Tiled,
};

fn tiled(text: &str) -> Tiled {
    Tiled::new(&text.parse().expect(text)).expect(text)
}

#[track_caller]
fn assert_kind<T>(result: Result<T, Error>, kind: ErrorKind) {
    assert_eq!(result.err().map(|error| error.kind()), Some(kind));
}

#[test]
fn causes_of_padding_in_words() {
    let words = |text: &str| tiled(text).padded_axes().iter().map(PaddedAxis::to_string).collect::<Vec<_>>();
    assert_eq!(words("f32[300,12]{1,0:T(8,128)}")[0], "dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used");
    assert_eq!(words("f32[8,130]{1,0:T(8,128)}"), ["dimension 1 (size 130) lies on the 128 lanes: padded to 256"]);
    assert_eq!(words("f32[3,128]{1,0:T(8,128)}"), ["dimension 0 (size 3) lies on the 8 rows of a tile: 3 of 8 used"]);
    assert_eq!(words("f32[9,128]{1,0:T(8,128)}"), ["dimension 0 (size 9) lies on the 8 rows of a tile: padded to 16"]);
    assert_eq!(words("f32[5]{0:T(4)}"), ["dimension 0 (size 5) is padded to 8, a multiple of the tile's 4"]);
    assert_eq!(
        words("f32[3,5]{1,0:T(*,4)}"),
        ["dimensions 0,1 merged (size 15) is padded to 16, a multiple of the tile's 4"]
    );
    assert_eq!(words("f32[128]{0:T(8,128)}"), ["the array has fewer dimensions than its tile: 1 of 8 rows used"]);
    assert_eq!(
        words("f32[4]{0:T(4)(3)}"),
        ["dimension 0 inside its tile (size 4) is padded to 6, a multiple of the tile's 3"]
    );
    assert!(words("f32[8,128]{1,0:T(8,128)}").is_empty());
}

#[test]
fn padded_axes_name_their_place() {
    let axes = tiled("f32[3,5]{1,0:T(2,2)}").padded_axes();
    let places: Vec<_> = axes.iter().map(|axis| (&axis.dimensions[..], axis.level, axis.from_minor)).collect();
    assert_eq!(places, [(&[0][..], 0, 1), (&[1][..], 0, 0)], "4/3 before 6/5");
    assert!((axes[0].expansion() - 4.0 / 3.0).abs() < 1e-12);
}

#[test]
fn expansion_is_physical_over_logical() {
    assert!((tiled("f32[400000,12]{1,0:T(8,128)}").expansion() - 128.0 / 12.0).abs() < 1e-12);
    assert!((tiled("f32[0,12]{1,0:T(8,128)}").expansion() - 1.0).abs() < 1e-12);
}

#[test]
fn xlas_array_size_has_no_answer_for_some() {
    let size = |text: &str| text.parse::<Shape>().expect(text).as_array().expect(text).xla_array_size();
    assert_eq!(size("f32[?]"), None);
    assert_eq!(size("f32[4,4]{1,0:T(*,4)}"), None);
    assert_eq!(size("f32[4]{0:T(4)SC(0:1)}"), Some(16), "the larger part of 1 and 3 is padded to 4");
    assert_eq!(size("f32[8]{0:T(4)SC(0:4)}"), Some(16), "only the largest part counts");
    assert_eq!(Shape::parse_as_written("f32[4]").expect("a shape").as_array().and_then(|a| a.xla_array_size()), None);
}

#[test]
fn leaves_and_elements() {
    let shape: Shape = "(f32[2], ((), (token[], s8[])), b(u8[4]))".parse().expect("a shape");
    let leaves: Vec<_> = shape.leaves().map(|(path, leaf)| (path, leaf.to_string())).collect();
    let expected =
        [(vec![0], "f32[2]{0}"), (vec![1, 1, 0], "token[]"), (vec![1, 1, 1], "s8[]"), (vec![2], "b(u8[4]{0})")];
    assert_eq!(leaves, expected.map(|(path, text)| (path, text.to_owned())));
    let elements: Vec<_> = shape.elements().collect();
    assert_eq!(elements[1].to_string(), "((), (token[], s8[]))");
    assert_eq!(elements[1].elements().nth(1).map(|e| e.leaves().count()), Some(2));
    assert_eq!(elements[0].elements().count(), 0);
    let single: Vec<_> = elements[0].leaves().collect();
    assert_eq!(single, [(vec![], elements[0].clone())]);
    let kinds: Vec<_> = elements.iter().map(|element| element.kind().name()).collect();
    assert_eq!(kinds, ["array", "tuple", "buffer"]);
    assert!(matches!(Shape::token().kind(), ShapeKind::Token) && matches!(Shape::opaque().kind(), ShapeKind::Opaque));
}

#[test]
fn questions_that_shapes_refuse() {
    let tuple = Shape::tuple([Shape::token()]);
    assert_kind(Tiled::new(&tuple), ErrorKind::NotAnArray);
    assert_kind(Tiled::new(&Shape::token()), ErrorKind::NotAnArray);
    assert_kind(tuple.dimension(0), ErrorKind::NotAnArray);
    assert_kind(tuple.with_layout(Layout::row_major(0)), ErrorKind::NotAnArray);
    assert_kind(Shape::buffer(Shape::token()), ErrorKind::InvalidBuffer);
    assert_kind(Tiled::new(&"f32[?]".parse().expect("a shape")), ErrorKind::UnboundedDimension);
    assert_eq!((tuple.element_type(), tuple.layout(), tuple.dimensions()), (None, None, &[][..]));
    let shape = Shape::array(ElementType::F32, [3, 5]).expect("a shape");
    assert_kind(shape.with_layout(Layout::row_major(3)), ErrorKind::LayoutRankMismatch);
    assert_kind(shape.dimension(i64::MIN), ErrorKind::IndexOutOfBounds);
    let split = |dimension, split_indices: &[u64]| SplitConfig { dimension, split_indices: split_indices.to_vec() };
    for configs in [vec![split(2, &[1])], vec![split(0, &[3])], vec![split(0, &[0])], vec![split(1, &[2, 2])]] {
        let layout = Layout::row_major(2).with_split_configs(configs);
        assert_kind(shape.with_layout(layout), ErrorKind::InvalidSplitConfig);
    }
    let twice = Layout::row_major(2).with_split_configs([split(0, &[1]), split(0, &[2])]);
    assert_kind(shape.with_layout(twice), ErrorKind::InvalidSplitConfig);
    let buffer = Shape::buffer(shape.clone()).expect("a buffer");
    let column_major = Layout::new([0, 1]).expect("an order");
    assert_eq!(buffer.with_layout(column_major).expect("a layout").to_string(), "b(f32[3,5]{0,1})");
}

#[test]
fn layouts_refuse_what_text_refuses() {
    assert_kind(Layout::new([0, 2]), ErrorKind::NotAPermutation);
    assert_kind(Layout::new([0, 0]), ErrorKind::NotAPermutation);
    assert_kind(Layout::new((0..100).map(|i| i % 99)), ErrorKind::NotAPermutation);
    assert!(Layout::new((0..100).rev()).is_ok());
    let layout = || Layout::row_major(2);
    assert_kind(layout().with_tiles([[0, 2]]), ErrorKind::InvalidTile);
    assert_kind(layout().with_tail_padding_alignment(0), ErrorKind::InvalidTailPadding);
    assert_kind(layout().with_element_size_in_bits(MAX_SIZE + 1), ErrorKind::InvalidElementSize);
    assert_kind(layout().with_memory_space(128), ErrorKind::InvalidMemorySpace);
    assert_kind(Dimension::fixed(MAX_SIZE + 1), ErrorKind::Overflow);
    assert_kind(Dimension::bounded(MAX_SIZE + 1), ErrorKind::Overflow);
}

#[test]
fn every_part_of_a_layout_can_be_asked_for() -> Result<(), Error> {
    let layout = Layout::new([1, 0])?
        .with_tiles([Tile::new([2, 2])?])?
        .with_tail_padding_alignment(32)?
        .with_element_size_in_bits(16)?
        .with_memory_space(3)?
        .with_split_configs([SplitConfig { dimension: 0, split_indices: vec![1] }])
        .with_dynamic_shape_metadata_prefix_bytes(8);
    let shape = Shape::array(ElementType::F32, [4, 4])?.with_layout(layout)?;
    assert_eq!(shape.to_string(), "f32[4,4]{1,0:T(2,2)L(32)E(16)S(3)SC(0:1)M(8)}");
    let read: Shape = "f32[4,4]{1,0:T(2,2)L(32)#(u32)*(u64)E(16)S(3)SC(0:1)M(8)}".parse()?;
    let layout = read.layout().expect("a layout");
    assert_eq!((layout.tail_padding_alignment(), layout.element_size_in_bits()), (32, Some(16)));
    assert_eq!(
        (layout.index_primitive_type(), layout.pointer_primitive_type()),
        (Some(ElementType::U32), Some(ElementType::U64))
    );
    assert_eq!((layout.memory_space(), layout.split_configs().len()), (3, 1));
    assert_eq!(layout.dynamic_shape_metadata_prefix_bytes(), 8);
    assert_eq!(tilewise::tpu::memory_space_name(layout.memory_space()), "cmem");
    Ok(())
}

#[test]
fn dynamic_dimensions_are_built_and_counted_with_their_bound() -> Result<(), Error> {
    let dimensions = [Dimension::bounded(4)?, Dimension::fixed(1)?, Dimension::UNBOUNDED];
    let shape = Shape::dynamic_array(ElementType::S8, dimensions)?;
    assert_eq!(shape.to_string(), "s8[<=4,1,?]{2,1,0}");
    let array = shape.as_array().expect("an array");
    assert_eq!((array.true_rank(), array.rank()), (2, 3));
    assert_eq!(array.dimensions().iter().map(|d| d.is_dynamic()).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(format!("{:?}", array.dimensions()), "[<=4, 1, ?]");
    assert_eq!(tiled("s8[<=4,2]").physical_elements(), 8);
    Ok(())
}

#[test]
fn indices_and_batches_refuse() {
    let tiled = tiled("f32[3,5]{1,0:T(2,2)}");
    assert_kind(tiled.offset_of(&[1]), ErrorKind::IndexRankMismatch);
    assert_kind(tiled.offset_of(&[3, 0]), ErrorKind::IndexOutOfBounds);
    assert_kind(tiled.physical_index_of(24), ErrorKind::OffsetOutOfRange);
    assert_kind(tiled.fill_offsets(&[0, 0, 1], &mut [0; 2]), ErrorKind::BufferLengthMismatch);
    assert_kind(tiled.fill_indices(&[0, 1], &mut [0; 3]), ErrorKind::BufferLengthMismatch);
    assert_kind(tiled.fill_indices(&[u64::MAX], &mut [0; 2]), ErrorKind::OffsetOutOfRange);
    let scalar = self::tiled("f32[]{:T(128)}");
    let mut offsets = [7; 3];
    assert_eq!(scalar.fill_offsets(&[], &mut offsets), Ok(()));
    assert_eq!(offsets, [0; 3]);
    assert_eq!(scalar.fill_indices(&[127], &mut []), Ok(()));
    assert_kind(scalar.fill_indices(&[0, 128], &mut []), ErrorKind::OffsetOutOfRange);
}

#[test]
fn errors_are_shown_whole() {
    let error = "b16[2]".parse::<Shape>().unwrap_err();
    let shown = format!("{error:?}");
    assert!(shown.contains("UnknownElementType") && shown.contains("0..3") && shown.contains("bf16"), "{shown}");
    assert_eq!(format!("{:>22}|", error.kind()), "  unknown_element_type|");
    assert_eq!(format!("{:?}", Shape::token()), "Shape(token[])");
}

#[test]
fn shapes_sort_and_hash_as_they_compare() {
    use std::collections::{BTreeSet, HashSet};
    let texts = ["f32[2]", "f32[2]{0:M(8)}", "f32[2]{0:L(1)}", "f32[3]", "s8[2]", "token[]", "(f32[2])"];
    let shapes: Vec<Shape> = texts.iter().map(|text| text.parse().expect(text)).collect();
    assert_eq!(shapes.iter().collect::<HashSet<_>>().len(), 5);
    assert_eq!(shapes.iter().collect::<BTreeSet<_>>().len(), 5);
}
