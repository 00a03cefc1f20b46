//! Layouts in other systems' notations and back, against this crate's offsets and against what the libraries made of them.

use proptest::prelude::*;
use tilewise::{
    ErrorKind, Layout, Shape, Tiled,
    interop::{
        CuTe, JaxLayout, Notation, PjrtTiled, Strides, TpuTiled, TpuVpad, layout_of_affine_map, layout_of_rearrange,
    },
};
use tilewise_testing::{cells::unravel, shapes::small_arrays};

fn tiled(text: &str) -> Tiled {
    Tiled::new(&Shape::parse_any(text).expect(text)).expect(text)
}

fn bounds(tiled: &Tiled) -> Vec<usize> {
    tiled.logical_dimensions().iter().map(|&bound| usize::try_from(bound).expect("small")).collect()
}

fn indices(tiled: &Tiled) -> impl Iterator<Item = Vec<u64>> {
    let bounds = bounds(tiled);
    (0..bounds.iter().product()).map(move |at| unravel(at, &bounds).iter().map(|&i| i as u64).collect())
}

/// CuTe's definition: a coordinate of a nested mode is counted colexicographically, each part times its stride.
fn cute_offset(cute: &CuTe, index: &[u64]) -> u64 {
    let dimension = |(modes, &index): (&Vec<tilewise::interop::Mode>, &u64)| {
        let (mut rest, mut offset) = (index, 0);
        for mode in modes {
            offset += rest % mode.count * mode.stride;
            rest /= mode.count;
        }
        assert_eq!(rest, 0);
        offset
    };
    cute.modes.iter().zip(index).map(dimension).sum()
}

/// The layout that came back puts every element where the first does.
fn same_cells(tiled: &Tiled, layout: Layout) {
    let shape = Shape::from(tiled.array().clone());
    let again = Tiled::new(&shape.with_layout(layout).expect("it fits")).expect("small");
    for index in indices(tiled) {
        assert_eq!(again.offset_of(&index), tiled.offset_of(&index), "{shape} → {:?}", again.array());
    }
}

/// Checks the layout read from strides. Without elements, strides say nothing; merged tiles, and tiles that pad inside
/// tiles, can leave strides that no tiles without merging have.
fn comes_back(tiled: &Tiled, layout: Result<Layout, tilewise::Error>) {
    let tiles = tiled.array().layout().map_or(&[][..], Layout::tiles);
    let is_plain =
        tiles.len() <= 1 && tiles.iter().flat_map(|tile| tile.dimensions()).all(|size| size.size().is_some());
    match layout {
        _ if tiled.physical_elements() == 0 => {}
        Ok(layout) => same_cells(tiled, layout),
        Err(error) => assert!(!is_plain && error.kind() == ErrorKind::NotExpressible, "{:?}: {error}", tiled.array()),
    }
}

fn unless_not_expressible<T>(result: Result<T, tilewise::Error>) -> Option<T> {
    result.map_err(|error| assert_eq!(error.kind(), ErrorKind::NotExpressible, "{error}")).ok()
}

proptest! {
    #![proptest_config(tilewise_testing::cases(2000))]

    #[test]
    fn notations_say_the_layout_and_bring_it_back(shape in small_arrays()) {
        let tiled = Tiled::new(&shape).expect("small");
        let has_elements = tiled.logical_dimensions().iter().all(|&bound| bound > 0);
        if let Some(cute) = unless_not_expressible(tiled.cute()) {
            prop_assert_eq!(&cute.to_string().parse::<CuTe>(), &Ok(cute.clone()));
            for index in indices(&tiled) {
                prop_assert_eq!(cute_offset(&cute, &index), tiled.offset_of(&index)?, "{}", shape);
            }
            comes_back(&tiled, cute.layout());
            prop_assert!(tiled.as_strided().is_ok());
        } else {
            prop_assert!(!tiled.nested_axes().is_empty(), "{}", shape);
        }
        if let Some(strides) = unless_not_expressible(tiled.strides()) {
            for index in indices(&tiled) {
                let offset: u64 = strides.strides.iter().zip(&index).map(|(stride, i)| stride * i).sum();
                prop_assert_eq!(offset, tiled.offset_of(&index)?, "{}", shape);
            }
            comes_back(&tiled, strides.layout());
        }
        let map = tiled.affine_map().expect("short").to_string();
        // A map doesn't say how long its axes are; without padding that follows from the bounds.
        let elements: u64 = tiled.logical_dimensions().iter().product();
        let is_dense = has_elements && tiled.physical_elements() == elements;
        if let Some(layout) = unless_not_expressible(layout_of_affine_map(&map)).filter(|_| is_dense) {
            same_cells(&tiled, layout);
        }
        let layout = shape.layout().expect("a layout");
        let without_space = layout.clone().with_memory_space(0)?;
        if let Some(jax) = unless_not_expressible(tiled.jax()) {
            prop_assert_eq!(&jax.layout()?, &without_space);
        }
        if let Some(pjrt) = unless_not_expressible(tiled.pjrt()) {
            prop_assert_eq!(&pjrt.layout()?, layout);
        }
        prop_assert_eq!(&Layout::of_text(&layout.to_string(), &shape)?, layout);
        for &notation in Notation::ALL {
            there_and_back(&tiled, notation);
        }
        if let Some(mosaic) = unless_not_expressible(tiled.mosaic()) {
            prop_assert_eq!(&mosaic.to_string().parse::<TpuTiled>(), &Ok(mosaic.clone()));
            let again = mosaic.layout(tiled.logical_dimensions())?;
            prop_assert_eq!(again.tiles(), layout.tiles());
        }
    }

    /// No text breaks a reader.
    #[test]
    fn readers_refuse_what_is_no_notation(text in "[(),:_0-9d floringmt#u.v<>\"{}*=x'>-]{0,40}") {
        let shape = Shape::array(tilewise::ElementType::F32, [3, 5])?;
        let whole = [
            "", "affine_map<(d0, d1) -> (", "memref<3x5x", "#tpu.tiled<(", "as_strided(x, (", "shape = {3, 5}, strides = {", "(d f) l -> ",
            "Layout(major_to_minor=(", "minor_to_major = {1, 0}, tile_dims = {", "rearrange(x, '(d f) l -> ",
        ];
        for (notation, start) in Notation::ALL.iter().flat_map(|notation| whole.map(|start| (notation, start))) {
            let _ = notation.read(&format!("{start}{text}"), &shape);
        }
    }

    #[test]
    fn strides_of_any_size_are_no_panic(dimensions in prop::collection::vec(any::<u64>(), 0..4), strides in prop::collection::vec(any::<u64>(), 0..4)) {
        if let Ok(strides) = Strides::new(dimensions, strides) {
            let _ = strides.layout();
        }
    }
}

#[test]
fn named_tiles_come_back_from_their_strides() {
    for format in tilewise::TileFormat::all() {
        let name = format.name();
        let fits = |shape: &&str| format.apply(&Shape::parse_as_written(shape).ok()?).ok();
        let shape = ["s8[100,70]", "s8[20,36,2,3]", "pred[100,70]"].iter().find_map(fits).expect(name);
        let tiled = Tiled::new(&shape).expect("small");
        let layout = tiled.cute().and_then(|cute| cute.to_string().parse::<CuTe>()?.layout());
        same_cells(&tiled, layout.expect(name));
    }
    let again = |text: &str| tiled(text).cute().and_then(|cute| cute.layout()).map(|layout| layout.to_string());
    // Gaps are padding: behind a dimension's end, or of a dimension that a tile prepends.
    let gap = |text: &str| text.parse::<CuTe>().and_then(|cute| cute.layout()).map(|layout| layout.to_string());
    assert_eq!(gap("(3,5):(8,1)").as_deref(), Ok("{1,0:T(8)}"));
    assert_eq!(gap("(5):(2)").as_deref(), Ok("{0:T(2,1)}"));
    assert_eq!(again("bf16[64,512]{1,0:T(8,128)(2,1)}").as_deref(), Ok("{1,0:T(8,128)(2,1)}"));
    assert_eq!(again("f32[64,64]@tt-tile").as_deref(), Ok("{1,0:T(32,32)(16,16)}"));
    assert_eq!(again("u8[256,8]@nvidia-scale-128x4").as_deref(), Ok("{1,0:T(128,4)(32,4)(4,1,1,4)}"));
}

/// A shape's layout, written in a notation and read back: the layout, or why there isn't one.
fn there_and_back(tiled: &Tiled, notation: Notation) -> String {
    let text = match notation.write(tiled) {
        Ok(text) => text,
        Err(error) => return format!("unsaid: {error}"),
    };
    let array = Shape::from(tiled.array().clone());
    let own = array.layout().expect("a layout");
    let plain = Layout::row_major(bounds(tiled).len())
        .with_memory_space(own.memory_space())
        .and_then(|layout| layout.with_element_size_in_bits(own.element_size_in_bits().unwrap_or(0)));
    let plain = array.clone().with_layout(plain.expect("as before")).expect("as before");
    match notation.read(&text, &plain) {
        Err(error) => format!("unread: {error}"),
        Ok(again) if again == array => "=".into(),
        Ok(again) => {
            let layout = again.layout().expect("a layout").clone();
            let text = layout.to_string();
            same_cells(tiled, layout);
            text
        }
    }
}

/// A shape, and what each notation brings back of it: `=` is the same layout, another one has the same cells.
const THERE_AND_BACK: &str = "\
f32[3,5]{1,0}
  pjrt      =
  jax       =
  mlir      =
  memref    =
  mosaic    =
  numpy     =
  dlpack    =
  cute      =
  einops    =
f32[3,5]{0,1:S(1)}
  pjrt      =
  jax       =
  mlir      =
  memref    =
  mosaic    unsaid: {0,1:S(1)}: a Mosaic memref is row-major
  numpy     =
  dlpack    =
  cute      =
  einops    =
bf16[64,512]{1,0:T(8,128)(2,1)}
  pjrt      =
  jax       =
  mlir      =
  memref    =
  mosaic    =
  numpy     =
  dlpack    unsaid: tiles cut dimension 0 in 3 parts, each with its stride
  cute      =
  einops    =
f32[3,5]{0,1:T(2,2)}
  pjrt      =
  jax       =
  mlir      =
  memref    =
  mosaic    unsaid: {0,1:T(2,2)}: a Mosaic memref is row-major
  numpy     =
  dlpack    unsaid: tiles cut dimension 0 in 2 parts, each with its stride
  cute      =
  einops    unread: several patterns with padding between them don't describe one layout
f32[7,3,5]{2,1,0:T(8,128)}
  pjrt      =
  jax       =
  mlir      =
  memref    =
  mosaic    =
  numpy     =
  dlpack    =
  cute      =
  einops    unread: the program pads further than to the lengths of its pattern
s4[3,5]{1,0:T(8,128)E(4)}
  pjrt      =
  jax       =
  mlir      {1,0:T(128)E(4)}
  memref    unsaid: E(4): a memref's elements take their type's whole bytes
  mosaic    =
  numpy     {1,0:T(128)E(4)}
  dlpack    {1,0:T(128)E(4)}
  cute      {1,0:T(128)E(4)}
  einops    unread: the program pads further than to the lengths of its pattern
f32[3,5]{1,0:T(*,2)}
  pjrt      =
  jax       =
  mlir      {1,0}
  memref    {1,0}
  mosaic    unsaid: (*,2): Mosaic's tiles have no `*`
  numpy     unsaid: tiles cut dimension 0 in pieces that no stride joins
  dlpack    unsaid: tiles cut dimension 0 in pieces that no stride joins
  cute      unsaid: tiles cut dimension 0 in pieces that no stride joins
  einops    {1,0}
f32[15,15]{1,0:T(*,4)(3)}
  pjrt      =
  jax       =
  mlir      unread: `((d0 * 15 + d1) floordiv 4) * 6 + (d0 * 15 + d1) mod 4` has a part of a sum, which no stride has
  memref    unread: `((d0 * 15 + d1) floordiv 4) * 6 + (d0 * 15 + d1) mod 4` has a part of a sum, which no stride has
  mosaic    unsaid: (*,4): Mosaic's tiles have no `*`
  numpy     unsaid: tiles cut dimension 0 in pieces that no stride joins
  dlpack    unsaid: tiles cut dimension 0 in pieces that no stride joins
  cute      unsaid: tiles cut dimension 0 in pieces that no stride joins
  einops    unread: several patterns with padding between them don't describe one layout
f32[3,5]{1,0:L(8)}
  pjrt      =
  jax       unsaid: L(8): JAX's Layout has no padding behind the last element
  mlir      {1,0}
  memref    {1,0}
  mosaic    unsaid: L(8): #tpu.tiled has no padding behind the last element
  numpy     {1,0}
  dlpack    {1,0}
  cute      {1,0}
  einops    {1,0}
f32[40,33]@onednn-BA16a16b2a
  pjrt      =
  jax       =
  mlir      {0,1:T(16,64)(16,2)}
  memref    {0,1:T(16,64)(16,2)}
  mosaic    unsaid: {0,1:T(16,32)(16,2)}: a Mosaic memref is row-major
  numpy     {0,1:T(16,64)(16,2)}
  dlpack    unsaid: tiles cut dimension 0 in 2 parts, each with its stride
  cute      {0,1:T(16,64)(16,2)}
  einops    unread: several patterns with padding between them don't describe one layout
f32[]
  pjrt      =
  jax       =
  mlir      =
  memref    =
  mosaic    =
  numpy     =
  dlpack    =
  cute      =
  einops    =
";

#[test]
fn each_notation_comes_back_or_says_why_not() {
    let mut shape = "";
    for line in THERE_AND_BACK.lines() {
        match line.trim_start().split_once("  ") {
            None => shape = line,
            Some((name, expected)) => {
                let notation: Notation = name.parse().expect(name);
                assert_eq!(there_and_back(&tiled(shape), notation), expected.trim(), "{shape} {name}");
            }
        }
    }
    assert_eq!("fortran".parse::<Notation>().unwrap_err().kind(), ErrorKind::UnknownNotation);
}

#[test]
fn what_a_notation_cannot_say_has_a_reason() {
    let reason = |error: tilewise::Error| {
        assert_eq!(error.kind(), ErrorKind::NotExpressible);
        error.to_string()
    };
    let has = |text: String, part: &str| assert!(text.contains(part), "{text}");
    has(reason(tiled("f32[3,5]{1,0:T(2,2)}").strides().unwrap_err()), "cut dimension 0 in 2 parts");
    has(reason(tiled("f32[15,15]{1,0:T(*,4)(3)}").cute().unwrap_err()), "no stride joins");
    has(reason(tiled("s4[3,5]{1,0:E(4)}").byte_strides().unwrap_err()), "E(4)");
    has(reason(tiled("s4[3,5]{1,0:E(4)}").memref().unwrap_err()), "E(4)");
    has(reason(tiled("s4[3,5]{1,0:E(4)}").pjrt().unwrap_err()), "E(4)");
    has(reason(tiled("f32[3,5]{1,0:S(1)}").pjrt().unwrap_err()), "S(1)");
    has(reason(tiled("f32[3,5]{1,0:L(8)}").pjrt().unwrap_err()), "L(8)");
    has(reason(tiled("f32[3,5]{1,0:L(8)}").jax().unwrap_err()), "L(8)");
    has(reason(tiled("s4[3,5]{1,0:T(8,128)}").jax().unwrap_err()), "E(4)");
    has(reason(tiled("f32[3,5]{0,1:T(8,128)}").mosaic().unwrap_err()), "row-major");
    has(reason(tiled("f32[3,5]{1,0:T(*,128)}").mosaic().unwrap_err()), "`*`");
    has(reason(tiled("f32[3,5]{1,0:T(2,2)(3,1,1)}").mosaic().unwrap_err()), "out of the first");
    has(reason(tiled("f32[5]{0:T(8,128)}").mosaic().unwrap_err()), "longer than the rank");
    has(reason(tiled("f32[3,5]{1,0:T(2,2)(2,1)}").mosaic().unwrap().vpad(32).unwrap_err()), "packed to 32 bits");
    let cute = |text: &str| reason(text.parse::<CuTe>().and_then(|cute| cute.layout()).unwrap_err());
    has(cute("(3,5):(0,1)"), "stride 0 repeats");
    has(cute("((2,2),5):((1,3),6)"), "gap inside dimension 0");
    has(cute("(3,5):(3,1)"), "stride 3");
    has(cute("((2,2),5):(1,2,3)"), "same form");
    has(cute("(3,5"), "shape:stride");
    let map = |text: &str| reason(layout_of_affine_map(text).unwrap_err());
    has(map("affine_map<(d0, d1) -> (d0 + d1)>"), "part of one dimension");
    has(map("affine_map<(d0, d1) -> (d0 floordiv 8, d1, d0 mod 4)>"), "join to the whole");
    has(map("affine_map<(d0, d1) -> (d0)>"), "join to the whole");
    let rearrange = |pattern: &str| reason(layout_of_rearrange(pattern, &[("x1", 2)]).unwrap_err());
    has(rearrange("y ... -> ... y"), "a list of names");
    has(rearrange("y x -> y"), "once on either side");
    has(rearrange("(y y1) x -> y x y1"), "length of `y1`");
    let vpad = |text: &str| reason(text.parse::<TpuVpad>().and_then(|vpad| vpad.layout(2)).unwrap_err());
    has(vpad("#tpu.vpad<\"32,{*,128},(8,128)\">"), "repeats");
    has(vpad("#tpu.vpad<\"32,{0,128},(8,128)\">"), "start inside a tile");
    has(vpad("#tpu.vpad<\"32,{0,0},(8,128),-2\">"), "implicit");
    has(vpad("#tpu.vpad<32>"), "is written such as");
    let slice: TpuTiled = "#tpu.tiled<(8,128),[4,1]>".parse().unwrap();
    has(reason(slice.layout(&[16, 256]).unwrap_err()), "without gaps");
}

#[test]
fn fields_that_contradict_each_other_are_refused() {
    let pjrt = |dims: &[i64], sizes: &[usize]| {
        PjrtTiled { minor_to_major: vec![1, 0], tile_dims: dims.to_vec(), tile_dim_sizes: sizes.to_vec() }.layout()
    };
    assert_eq!(pjrt(&[8, 128, i64::MIN, 2], &[2, 2]).unwrap().to_string(), "{1,0:T(8,128)(*,2)}");
    for (dims, sizes) in [(&[8, 128][..], &[1][..]), (&[8], &[2]), (&[0], &[1]), (&[8, -2], &[2]), (&[8], &[1, 0])] {
        assert_eq!(pjrt(dims, sizes).unwrap_err().kind(), ErrorKind::InvalidTile, "{dims:?} {sizes:?}");
    }
    let jax = JaxLayout { major_to_minor: vec![0, 0], tiling: None, sub_byte_element_size_in_bits: 0 };
    assert_eq!(jax.layout().unwrap_err().kind(), ErrorKind::NotAPermutation);
}

#[test]
fn patterns_and_maps_name_the_tiles() {
    let layout = |pattern: &str, lengths: &[(&str, u64)]| layout_of_rearrange(pattern, lengths).unwrap().to_string();
    assert_eq!(layout("y x -> x y", &[]), "{0,1}");
    assert_eq!(layout("(y y1 y2) (x x1) -> y x y1 x1 y2", &[("y1", 4), ("y2", 2), ("x1", 128)]), "{1,0:T(8,128)(2,1)}");
    assert_eq!(layout("b (c c1) h w -> b c h w c1", &[("c1", 16)]), "{3,2,1,0:T(16,1,1)}");
    let map = |text: &str| layout_of_affine_map(text).unwrap().to_string();
    let printed = tiled("s8[64,64]@cublaslt-col32").affine_map().unwrap().to_string();
    assert_eq!(map(&printed), "{0,1:T(32,1)}");
    assert_eq!(
        map("(d0, d1) -> (d0 floordiv 8, d1 floordiv 128, (d0 mod 8) floordiv 2, d1 mod 128, d0 mod 2)"),
        "{1,0:T(8,128)(2,1)}"
    );
}

/// `conformance/notations/record.py` had the texts read by the libraries whose notation they are.
#[test]
fn libraries_read_the_texts_as_meant() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/facts/notations.csv");
    let mut rows = 0;
    for row in csv::Reader::from_path(path).expect("facts").records() {
        let row = row.expect("a row");
        let [shape, notation, text, layout, positions, offsets] = [0, 1, 2, 3, 4, 5].map(|column| &row[column]);
        rows += 1;
        let tiled = tiled(shape);
        let name: Notation = notation.parse().expect(notation);
        assert_eq!(name.write(&tiled).as_deref(), Ok(text), "{shape}");
        if !layout.is_empty() {
            assert_eq!(tiled.array().layout().expect("a layout").to_string(), layout, "{notation}");
        }
        if positions.is_empty() {
            continue;
        }
        let bounds = bounds(&tiled);
        for (position, offset) in positions.split(' ').zip(offsets.split(' ')) {
            let index = unravel(position.parse().expect("a position"), &bounds);
            let index: Vec<u64> = index.iter().map(|&i| i as u64).collect();
            assert_eq!(tiled.offset_of(&index).expect("inside").to_string(), offset, "{shape} {notation} {index:?}");
        }
    }
    assert!(rows > 140, "{rows}");
}
