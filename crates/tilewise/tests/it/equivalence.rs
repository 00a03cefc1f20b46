//! Relations between layouts against brute force over the document's definition, and against the TPU compiler's bitcasts.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use proptest::{prelude::*, test_runner::TestRunner};
use std::{
    cell::RefCell,
    collections::{BTreeMap, HashSet},
};
use tilewise::{BitcastAs, ErrorKind, Layout, Mismatch, Relation, Shape, Tile, Tiled};
use tilewise_testing::{
    Random, cases,
    cells::{memory, ravel, unravel},
    shapes::small_arrays,
};

/// One side by the definition.
struct Side {
    bounds: Vec<usize>,
    physical: Vec<usize>,
    bits: u64,
    /// Cells in the buffer.
    size: usize,
    padding_bytes: usize,
    /// The offset of each element, in row-major order.
    offsets: Vec<usize>,
}

impl Side {
    fn of(shape: &Shape) -> Self {
        let array = shape.as_array().expect("an array");
        let bounds: Vec<usize> = array.dimensions().iter().map(|d| d.bound().expect("a bound") as usize).collect();
        let memory = memory(&bounds, array.layout().expect("a layout"));
        let mut offsets = vec![0; bounds.iter().product()];
        for (offset, cell) in memory.cells.iter().enumerate() {
            if let Some(position) = cell {
                offsets[*position] = offset;
            }
        }
        let padding_bytes = Tiled::of_array(array).expect("small").padding_bytes() as usize;
        Self {
            bounds,
            padding_bytes,
            bits: array.stored_bits(),
            size: memory.cells.len(),
            physical: memory.bounds,
            offsets,
        }
    }

    fn offset(&self, index: &[usize]) -> usize {
        self.offsets[ravel(index, &self.bounds)]
    }

    /// The offset of each bit of each element.
    fn bit_offsets(&self) -> Vec<u64> {
        self.offsets.iter().flat_map(|&offset| (0..self.bits).map(move |bit| offset as u64 * self.bits + bit)).collect()
    }

    /// The offsets row by row after a transpose.
    fn transposed(&self, permutation: &[usize]) -> Vec<usize> {
        let bounds: Vec<usize> = permutation.iter().map(|&d| self.bounds[d]).collect();
        let offset = |position| {
            let mut index = vec![0; bounds.len()];
            permutation.iter().zip(unravel(position, &bounds)).for_each(|(&d, i)| index[d] = i);
            self.offset(&index)
        };
        (0..self.offsets.len()).map(offset).collect()
    }
}

/// All permutations in dictionary order.
fn permutations(rank: usize) -> Vec<Vec<usize>> {
    if rank == 0 {
        return vec![vec![]];
    }
    let mut all: Vec<Vec<usize>> = Vec::new();
    for shorter in permutations(rank - 1) {
        for place in 0..rank {
            let mut longer = shorter.clone();
            longer.insert(place, rank - 1);
            all.push(longer);
        }
    }
    all.sort();
    all
}

/// Every index below the bounds.
fn indices(bounds: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..bounds.iter().product()).map(|position| unravel(position, bounds))
}

/// As one reshape, each element the bits it is made of; or the bytes of a buffer.
fn bits_by_brute_force(from: &Side, to: &Side) -> Found {
    let bits = |side: &Side| side.size as u64 * side.bits;
    if bits(from) == bits(to) && from.bit_offsets() == to.bit_offsets() {
        return ("reshape", None, None);
    }
    let is_bytes = |side: &Side| side.bits == 8 && side.size == side.offsets.len();
    let [from_bytes, to_bytes] = [from, to].map(|side| bits(side).div_ceil(8) as usize);
    match from_bytes == to_bytes {
        true if is_bytes(to) => ("exposes_padding", None, Some((from.padding_bytes, 0))),
        true if is_bytes(from) => ("exposes_padding", None, Some((0, to.padding_bytes))),
        _ => ("none", None, None),
    }
}

/// A relation's name, its permutation if there is only one to choose, and how many elements it exposes and hides.
type Found = (&'static str, Option<Vec<usize>>, Option<(usize, usize)>);

fn by_brute_force(from: &Side, to: &Side) -> Found {
    if from.bits != to.bits {
        return bits_by_brute_force(from, to);
    }
    let same_size = from.size == to.size;
    let same_count = from.offsets.len() == to.offsets.len();
    if same_size && from.offsets == to.offsets {
        return (if from.bounds == to.bounds { "identical" } else { "reshape" }, None, None);
    }
    if same_size && same_count {
        let fits: Vec<_> =
            permutations(from.bounds.len()).into_iter().filter(|p| from.transposed(p) == to.offsets).collect();
        let bounds = |p: &Vec<usize>| p.iter().map(|&d| from.bounds[d]).collect::<Vec<_>>();
        if let Some(permutation) = fits.iter().find(|p| bounds(p) == to.bounds) {
            return ("transpose", Some(permutation.clone()), None);
        }
        if let Some(permutation) = fits.into_iter().next() {
            return ("transpose_reshape", Some(permutation), None);
        }
        // With a second transpose, preferably without the first.
        let others: HashSet<_> = permutations(to.bounds.len()).into_iter().map(|p| to.transposed(&p)).collect();
        if let Some(permutation) =
            permutations(from.bounds.len()).into_iter().find(|p| others.contains(&from.transposed(p)))
        {
            return ("transpose_reshape", permutation.is_sorted().then_some(permutation), None);
        }
    }
    if same_size && from.physical == to.physical && from.bounds.len() == to.bounds.len() {
        let common: Vec<usize> = from.bounds.iter().zip(&to.bounds).map(|(a, b)| *a.min(b)).collect();
        if indices(&common).all(|index| from.offset(&index) == to.offset(&index)) {
            let common = common.iter().product::<usize>();
            return ("exposes_padding", None, Some((to.offsets.len() - common, from.offsets.len() - common)));
        }
    }
    ("none", None, None)
}

/// A second array to compare with: other dimensions of as many elements, the dimensions in another order, bounds one up or down, other
/// tiles, elements taken apart, and often nothing of that.
fn relative(shape: &Shape, random: &mut Random) -> Option<Shape> {
    let array = shape.as_array()?;
    let layout = array.layout()?;
    let mut bounds: Vec<u64> = array.dimensions().iter().map(|d| d.bound().expect("a bound")).collect();
    let mut order = layout.minor_to_major().to_vec();
    let mut tiles = layout.tiles().to_vec();
    // A transpose of the dimensions that memory doesn't notice.
    let transpose = |bounds: &mut Vec<u64>, order: &mut Vec<usize>, random: &mut Random| {
        let mut permutation: Vec<usize> = (0..bounds.len()).collect();
        random.shuffle(&mut permutation);
        *bounds = permutation.iter().map(|&d| bounds[d]).collect();
        let place = |d: usize| permutation.iter().position(|&p| p == d).expect("a permutation");
        order.iter_mut().for_each(|d| *d = place(*d));
    };
    if random.percent(40) {
        transpose(&mut bounds, &mut order, random);
    }
    while random.percent(40) {
        // A dimension cut in two, or two made one, where they are.
        let rank = bounds.len();
        if random.percent(50) && rank > 0 && rank < 5 {
            let cut = random.below(rank);
            let parts: Vec<u64> = (1..=bounds[cut]).filter(|part| bounds[cut] % part == 0).collect();
            let Some(part) = (!parts.is_empty()).then(|| random.choose(&parts)) else { continue };
            bounds[cut] /= part;
            bounds.insert(cut + 1, part);
            order.iter_mut().filter(|d| **d > cut).for_each(|d| *d += 1);
            let place = order.iter().position(|&d| d == cut).expect("a permutation");
            order.insert(place, cut + 1);
        } else if rank >= 2 {
            let low = random.below(rank - 1);
            bounds[low] *= bounds.remove(low + 1);
            order.retain(|&d| d != low + 1);
            order.iter_mut().filter(|d| **d > low).for_each(|d| *d -= 1);
        }
    }
    if random.percent(30) {
        transpose(&mut bounds, &mut order, random);
    }
    if random.percent(15) {
        random.shuffle(&mut order);
    }
    if random.percent(15) && !bounds.is_empty() {
        let dimension = random.below(bounds.len());
        bounds[dimension] = (bounds[dimension] + random.below(3_u64)).saturating_sub(1);
    }
    match random.below(8_u32) {
        0 => drop(tiles.pop()),
        1 => tiles.push(Tile::new([random.below(3_u64) + 1]).ok()?),
        2 => tiles.insert(0, Tile::new([random.below(3_u64) + 1, random.below(5_u64) + 1]).ok()?),
        _ => {}
    }
    let mut bits = array.stored_bits();
    if random.percent(10) {
        let part = random.choose(&[1, 4, 8, 16]);
        if bits % part == 0 && bits > part {
            // An element's parts become a dimension.
            order.insert(0, bounds.len());
            bounds.push(bits / part);
            bits = part;
        }
    }
    let tail = if random.percent(90) { array.layout()?.tail_padding_alignment() } else { 3 };
    let layout = Layout::new(order).ok()?.with_tiles(tiles).ok()?;
    let layout = layout.with_tail_padding_alignment(tail).ok()?.with_element_size_in_bits(bits).ok()?;
    let shape = Shape::array(array.element_type(), bounds).ok()?.with_layout(layout).ok()?;
    (Tiled::new(&shape).ok()?.physical_elements() <= 4000).then_some(shape)
}

fn wide(index: &[usize]) -> Vec<u64> {
    index.iter().map(|&i| i as u64).collect()
}

/// Every answer about the two, against brute force; the relation's name.
fn agrees_with_brute_force(first: &Shape, second: &Shape) -> Result<&'static str, TestCaseError> {
    let (from, to) = (Side::of(first), Side::of(second));
    let (name, permutation, padding) = by_brute_force(&from, &to);

    let any = match first.bitcast(second, BitcastAs::Any) {
        Err(error) if error.kind() == ErrorKind::Undecided => {
            prop_assert!(from.bits != to.bits && from.offsets.len() as u64 * from.bits > 4096, "{} {}", first, second);
            return Ok("undecided");
        }
        answer => answer?,
    };
    prop_assert_eq!(any.as_str(), name, "{} {}: {:?}", first, second, any);
    if let Relation::TransposeReshape { permutation, bounds, then } = &any {
        let bounds: Vec<usize> = bounds.iter().map(|&bound| bound as usize).collect();
        let reshaped = Side { offsets: from.transposed(permutation), bounds, physical: Vec::new(), ..from };
        prop_assert_eq!(reshaped.transposed(then), &*to.offsets, "{} {}: {:?}", first, second, any);
        prop_assert!(then.iter().map(|&d| reshaped.bounds[d]).eq(to.bounds.iter().copied()));
    }
    let one_of_two = name == "transpose_reshape" && permutation.is_none();
    prop_assert!(one_of_two || any.permutation() == permutation.as_deref(), "{} {}: {:?}", first, second, any);
    if let (Relation::ExposesPadding { exposed, hidden }, Some(padding)) = (&any, padding) {
        prop_assert_eq!((*exposed as usize, *hidden as usize), padding, "{} {}", first, second);
    }
    prop_assert_eq!(first.same_bytes(second)?, name == "identical");

    // As a reshape, and the first element that lies elsewhere.
    let reshape = first.bitcast(second, BitcastAs::Reshape)?;
    let is_reshape =
        if from.bits == to.bits { from.size == to.size && from.offsets == to.offsets } else { name == "reshape" };
    prop_assert_eq!(reshape.is_bitcast(), is_reshape);
    let differs = |offsets: &[usize]| {
        (0..offsets.len())
            .find(|&p| from.bits == to.bits && offsets.len() == to.offsets.len() && offsets[p] != to.offsets[p])
    };
    let expected = differs(&from.offsets);
    for relation in [&reshape, &any] {
        let found = relation.counterexample();
        prop_assert_eq!(found.is_some(), !relation.is_bitcast() && expected.is_some(), "{} {}", first, second);
        if let (Some(found), Some(position)) = (found, expected) {
            prop_assert_eq!(&found.index, &wide(&unravel(position, &from.bounds)), "{} {}", first, second);
            prop_assert_eq!(&found.to_index, &wide(&unravel(position, &to.bounds)));
            prop_assert_eq!(found.from_offset as usize, from.offsets[position]);
            prop_assert_eq!(found.to_offset as usize, to.offsets[position]);
        }
    }

    // As a transpose.
    let transpose = first.bitcast(second, BitcastAs::Transpose)?;
    if from.bits != to.bits {
        prop_assert!(!transpose.is_bitcast());
        return Ok(name);
    }
    let gives_bounds = |p: &Vec<usize>| p.iter().map(|&d| from.bounds[d]).eq(to.bounds.iter().copied());
    let fitting: Vec<_> = permutations(from.bounds.len()).into_iter().filter(gives_bounds).collect();
    let free = fitting.iter().find(|p| from.size == to.size && from.transposed(p) == to.offsets);
    match (&transpose, free) {
        (Relation::Identical, Some(found)) => prop_assert!(found.is_sorted(), "{} {}", first, second),
        (Relation::Transpose { permutation }, Some(found)) => prop_assert_eq!(permutation, found),
        (Relation::None { reason, .. }, None) => {
            prop_assert_eq!(*reason == Mismatch::Dimensions, fitting.is_empty(), "{} {}", first, second);
            if let (Some(found), Some(smallest)) = (transpose.counterexample(), fitting.first()) {
                let to_index = |index: &[usize]| smallest.iter().map(|&d| index[d]).collect::<Vec<_>>();
                let index = indices(&from.bounds).find(|i| from.offset(i) != to.offset(&to_index(i)));
                let expected = index.map(|index| wide(&index));
                prop_assert_eq!(Some(&found.index), expected.as_ref(), "{} {}", first, second);
            }
        }
        (found, expected) => prop_assert!(false, "{} {}: {:?}, not {:?}", first, second, found, expected),
    }
    Ok(if one_of_two { "one of two transposes around a reshape" } else { name })
}

/// The special features of one of the two, or of both.
fn features(pair: [&Shape; 2]) -> impl Iterator<Item = &'static str> {
    let has = |feature: fn(&Tiled, &[Tile]) -> bool| {
        pair.iter().any(|shape| feature(&Tiled::new(shape).expect("small"), shape.layout().expect("a layout").tiles()))
    };
    let is_ragged = has(|tiled, _| tiled.padding_bytes() > 0);
    let is_multi_level = has(|_, tiles| tiles.len() > 1);
    let is_combined = has(|_, tiles| tiles.iter().flat_map(Tile::dimensions).any(|size| size.size().is_none()));
    let is_nested = has(|tiled, _| !tiled.nested_axes().is_empty());
    let bits = pair.map(|shape| shape.as_array().map(|array| array.stored_bits()));
    let widths_differ = bits[0] != bits[1];
    let features = [
        ("ragged", is_ragged),
        ("multi-level", is_multi_level),
        ("*", is_combined),
        ("nested", is_nested),
        ("widths", widths_differ),
    ];
    features.into_iter().filter_map(|(name, is)| is.then_some(name))
}

/// `PROPTEST_CASES` is how many pairs; `--nocapture` shows how many there were of each sort.
#[test]
fn relations_agree_with_brute_force() {
    let pairs = (small_arrays(), any::<u64>());
    let pairs = pairs.prop_filter_map("too large for the oracle", |(first, seed)| {
        let second = relative(&first, &mut Random::new(seed))?;
        Some(if seed % 2 == 0 { (first, second) } else { (second, first) })
    });
    let counts = RefCell::new(BTreeMap::<&str, u32>::new());
    let compared = TestRunner::new(cases(6000)).run(&pairs, |(first, second)| {
        let relation = agrees_with_brute_force(&first, &second)?;
        for sort in features([&first, &second]).chain([relation]) {
            *counts.borrow_mut().entry(sort).or_default() += 1;
        }
        Ok(())
    });
    compared.unwrap_or_else(|error| panic!("{error}"));
    let counts = counts.into_inner();
    println!("{counts:?}");
    assert!(counts.len() >= 7 + 5, "{counts:?}");
}

/// Physically [4, 6·2, 16, 8] read as [4, 3·4, 16, 8]: one bitcast to the TPU compiler.
#[test]
fn transposes_around_a_reshape_are_found() {
    let relation = |from: &str, to: &str| {
        let [from, to] = [from, to].map(|text| text.parse::<Shape>().expect(text));
        from.bitcast(&to, BitcastAs::Any).expect("decided")
    };
    let around = relation("f32[4,8,6,2,16]{1,4,3,2,0:T(8,128)}", "f32[3,4,8,4,16]{2,4,3,0,1:T(8,128)}");
    let (permutation, bounds, then) = (vec![0, 1, 2, 3, 4], vec![4, 8, 3, 4, 16], vec![2, 0, 1, 3, 4]);
    assert_eq!(around, Relation::TransposeReshape { permutation, bounds, then });

    // One transpose is enough in front of the reshape, or behind it, but not always.
    let both = relation("f32[2,5,6]{2,0,1}", "f32[4,5,3]{2,0,1}");
    let (permutation, bounds, then) = (vec![1, 0, 2], vec![5, 4, 3], vec![1, 0, 2]);
    assert_eq!(both, Relation::TransposeReshape { permutation, bounds, then });
    let before = relation("f32[6,4]{0,1}", "f32[8,3]{1,0}");
    let then = vec![0, 1];
    assert_eq!(before, Relation::TransposeReshape { permutation: vec![1, 0], bounds: vec![8, 3], then });
    let behind = relation("f32[8,3]{1,0}", "f32[6,4]{0,1}");
    let then = vec![1, 0];
    assert_eq!(behind, Relation::TransposeReshape { permutation: vec![0, 1], bounds: vec![4, 6], then });

    // The 12 are cut at 4 · 3 on one side, and are apart on the other.
    assert!(!relation("f32[4,8,3,16]{1,3,2,0:T(8,128)}", "f32[12,8,16]{1,2,0:T(8,64)}").is_bitcast());
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn free_layouts_are_those_that_a_search_finds(shape in small_arrays(), seed in 0..u64::MAX) {
        let Some(wanted) = relative(&shape, &mut Random::new(seed)) else { return Ok(()) };
        let bounds: Vec<u64> = wanted.dimensions().iter().map(|d| d.bound().expect("a bound")).collect();
        let from = Side::of(&shape);
        if from.offsets.len() as u64 != bounds.iter().product::<u64>() {
            let error = shape.free_reshape(&bounds).expect_err("another number of elements");
            prop_assert_eq!(error.kind(), ErrorKind::BufferLengthMismatch);
            return Ok(());
        }
        let found = shape.free_reshape(&bounds)?;
        for free in &found.layouts {
            let to = Side::of(free);
            prop_assert!(from.size == to.size && from.offsets == to.offsets, "{} {}", shape, free);
        }
        prop_assert!(found.layouts.is_empty() || found.obstacles.is_empty());
        let tiles = shape.layout().expect("a layout").tiles();
        let relaid = |order: Vec<usize>| {
            let layout = Layout::new(order).ok()?.with_tiles(tiles.iter().cloned()).ok()?;
            let layout = layout.with_tail_padding_alignment(shape.layout()?.tail_padding_alignment()).ok()?;
            let relaid = Shape::array(shape.element_type()?, bounds.iter().copied()).ok()?.with_layout(layout).ok()?;
            (Tiled::new(&relaid).ok()?.physical_elements() as usize == from.size).then_some(relaid)
        };
        let by_search = permutations(bounds.len()).into_iter().filter_map(relaid);
        let by_search = by_search.filter(|relaid| Side::of(relaid).offsets == from.offsets).count();
        prop_assert!(by_search == 0 || !found.layouts.is_empty(), "{} to {:?}", shape, bounds);
    }

    #[test]
    fn free_transposes_are(shape in small_arrays(), seed in 0..u64::MAX) {
        let mut permutation: Vec<usize> = (0..shape.dimensions().len()).collect();
        Random::new(seed).shuffle(&mut permutation);
        let to = Side::of(&shape.free_transpose(&permutation)?);
        prop_assert_eq!(Side::of(&shape).transposed(&permutation), to.offsets);
        prop_assert_eq!(Side::of(&shape).size, to.size);
    }
}

#[test]
fn obstacles_are_named() {
    let obstacles = |shape: &str, bounds: &[u64]| -> Vec<String> {
        let found = shape.parse::<Shape>().and_then(|shape| shape.free_reshape(bounds)).expect("an answer");
        assert!(found.layouts.is_empty(), "{shape} to {bounds:?}: {:?}", found.layouts);
        found.obstacles.iter().map(ToString::to_string).collect()
    };
    assert_eq!(obstacles("f32[320,256]{1,0:T(8,128)}", &[80, 4, 256]), ["splitting dimension 0 by 4 cuts a tile of 8"]);
    assert_eq!(
        obstacles("f32[512,1280]{1,0:T(8,128)}", &[512, 32, 40]),
        ["splitting dimension 1 by 40 cuts a tile of 128"]
    );
    assert_eq!(
        obstacles("f32[512,1280]{1,0:T(8,128)}", &[512, 10, 128]),
        ["splitting dimension 1 by 128: tiles of another dimension lie between the parts"]
    );
    assert_eq!(
        obstacles("f32[16,1000]{1,0:T(8,128)}", &[16000]),
        ["merging dimensions 0 and 1: dimension 1 (size 1000) is padded to 1024, between rows"]
    );
    assert_eq!(
        obstacles("f32[16,1024]{1,0:T(8,128)}", &[16384]),
        ["merging dimensions 0 and 1: a tile takes 8 rows of dimension 0 before the rest of a row"]
    );
    assert_eq!(
        obstacles("f32[16,16,128]{2,0,1:T(8,128)}", &[256, 128]),
        ["merging dimensions 0 and 1: they are not adjacent in memory"]
    );
}

#[test]
fn free_layouts_of_programs() {
    let layouts = |shape: &str, bounds: &[u64]| -> Vec<String> {
        let found = shape.parse::<Shape>().and_then(|shape| shape.free_reshape(bounds)).expect("an answer");
        found.layouts.iter().map(ToString::to_string).collect()
    };
    assert_eq!(layouts("f32[8,128]{1,0:T(8,128)}", &[1024])[0], "f32[1024]{0:T(1024)}");
    assert_eq!(layouts("f32[16,256,128]{2,1,0:T(8,128)}", &[4096, 128])[0], "f32[4096,128]{1,0:T(8,128)}");
    assert_eq!(layouts("f32[8,128]{1,0:T(8,128)}", &[2, 4, 128])[0], "f32[2,4,128]{2,1,0:T(4,128)}");
    // Bitcasts of libtpu 0.0.52: `conformance/tpu/reshapes.py` compiles such pairs.
    for (from, to) in [
        ("f32[1024]{0:T(1024)}", "f32[4,2,128]{2,1,0:T(2,128)}"),
        ("f32[1536]{0:T(1024)}", "f32[12,128]{1,0:T(8,128)}"),
        ("s8[2,128]{1,0:T(4,128)(4,1)}", "s8[256]{0:T(512)(128)(4,1)}"),
        ("bf16[12800]{0:T(1024)(128)(2,1)}", "bf16[100,128]{1,0:T(8,128)(2,1)}"),
        ("s32[192]{0:T(256)}", "s32[192,1]{0,1:T(1,128)}"),
        ("s32[49,1]{0,1:T(1,128)}", "s32[49]{0:T(128)}"),
        ("f32[100,1,64]{0,1,2:T(1,128)}", "f32[100,8,8]{0,2,1:T(8,128)}"),
    ] {
        let bounds =
            to.parse::<Shape>().expect("a shape").dimensions().iter().filter_map(|d| d.bound()).collect::<Vec<_>>();
        let found = layouts(from, &bounds);
        assert!(found.iter().any(|free| free == to), "{from} as {to}: {found:?}");
    }
}

fn relation(from: &str, to: &str, reading: BitcastAs) -> Relation {
    let [from, to] = [from, to].map(|text| text.parse::<Shape>().expect("a shape"));
    from.bitcast(&to, reading).expect("an answer")
}

#[test]
fn large_arrays_are_compared_by_their_digits() {
    let any = |from: &str, to: &str| relation(from, to, BitcastAs::Any);
    let square = "f32[1000000,1000000]{1,0:T(8,128)}";
    assert_eq!(any(square, "f32[1000,1000,1000000]{2,1,0:T(8,128)}"), Relation::Reshape);
    assert_eq!(any(square, "f32[1000000,1000000]{1,0:T(8,128)(1,128)}"), Relation::Identical);
    assert_eq!(any(square, "f32[1000000,1,1000,1000]{3,2,0,1:T(8,128)}").as_str(), "none");
    // A million columns end in a tile that is half full, and the next row of tiles starts behind it.
    let found = any("f32[1000000000,1000]{1,0}", "f32[1000000,1000000]{1,0:T(1,128)}");
    let found = found.counterexample().expect("another cell");
    assert_eq!((&found.index[..], found.from_offset, found.to_offset), (&[1000, 0][..], 1_000_000, 1_000_064));
    // Threes across the end of a tile of five; rows merged, and cut across.
    let threes = ["f32[2000000000]{0:T(5)(3)}", "f32[2,1000000000]{1,0:T(5)(3)}", "f32[1999999999]{0:T(5)(3)}"];
    assert_eq!(any(threes[0], threes[1]), Relation::Reshape);
    assert_eq!(any(threes[0], threes[2]), Relation::ExposesPadding { exposed: 0, hidden: 1 });
    let merged = any("f32[1000000,1000000]{1,0:T(*,7)(3)}", "f32[1000000000000]{0:T(7)(3)}");
    assert_eq!(merged, Relation::Reshape);
    let found = any("f32[1000000,1000000]{1,0:T(*,7)}", "f32[1000000,1000000]{1,0:T(7)}");
    let found = found.counterexample().expect("another cell");
    assert_eq!((&found.index[..], found.from_offset, found.to_offset), (&[1, 0][..], 1_000_000, 1_000_006));
    // Entangled digits that are equal need no counting.
    let combined = "f32[100000,100000,7]{2,1,0:T(*,3,2)}";
    assert_eq!(any(combined, combined), Relation::Identical);
}

#[test]
fn padding_is_exposed_both_ways() {
    let found = |from, to| relation(from, to, BitcastAs::Any);
    let (short, long) = ("f32[8,1000]{1,0:T(8,128)}", "f32[8,1024]{1,0:T(8,128)}");
    assert_eq!(found(short, long), Relation::ExposesPadding { exposed: 192, hidden: 0 });
    assert_eq!(found(long, short), Relation::ExposesPadding { exposed: 0, hidden: 192 });
    // The TPU compiler moves arrays in pieces as the bytes of their buffers (libtpu 0.0.51, gnn_large on v6e).
    let (array, bytes) = ("f32[100000,12]{0,1:T(8,128)}", "s8[6406144]{0:T(1024)(128)(4,1)}");
    assert_eq!(found(array, bytes), Relation::ExposesPadding { exposed: 1_606_144, hidden: 0 });
    assert_eq!(found(bytes, array), Relation::ExposesPadding { exposed: 0, hidden: 1_606_144 });
}

#[test]
fn elements_of_other_widths_are_their_bits() {
    let reshape = |from, to| relation(from, to, BitcastAs::Reshape);
    assert_eq!(reshape("f32[3,4]", "f32[3,4]{1,0:S(1)}"), Relation::Identical);
    assert_eq!(reshape("f32[3,4]", "s32[3,4]"), Relation::Identical);
    // XLA's bitcast-convert adds a minor dimension of halves.
    assert_eq!(reshape("f32[3,4]", "bf16[3,4,2]"), Relation::Reshape);
    assert_eq!(reshape("s4[3,4]{1,0:E(4)}", "u8[6]"), Relation::Reshape);
    let interleaved = relation("f32[8,128]{1,0:T(8,128)}", "bf16[8,128,2]{1,2,0:T(2,128)(2,1)}", BitcastAs::Any);
    assert_eq!(interleaved, Relation::Reshape, "halves of a word lie in one row each");
    let other = reshape("s4[3,4]", "s4[3,4]{1,0:E(4)}");
    let reason = Mismatch::ElementBits { from: 8, to: 4 };
    assert_eq!(other, Relation::None { reason, counterexample: None });
    assert_eq!(relation("f32[4]", "s8[16]", BitcastAs::Transpose).as_str(), "none");
}

#[test]
fn what_is_not_known_is_an_error() {
    // Rows and columns merged column by column, and one side has the columns in tens.
    let [from, to]: [Shape; 2] =
        ["f32[1000,1000]{0,1:T(*,7)}", "f32[1000,100,10]{0,2,1:T(*,*,7)}"].map(|text| text.parse().expect("a shape"));
    let error = from.bitcast(&to, BitcastAs::Any).expect_err("more than is counted");
    assert_eq!(error.kind(), ErrorKind::Undecided);
    let few = relation("f32[10,100]{0,1:T(*,7)}", "f32[10,10,10]{0,2,1:T(*,*,7)}", BitcastAs::Any);
    assert_eq!(few, Relation::Reshape);
    let not_an_array = Shape::token().bitcast(&from, BitcastAs::Any).expect_err("a token");
    assert_eq!(not_an_array.kind(), ErrorKind::NotAnArray);
}
