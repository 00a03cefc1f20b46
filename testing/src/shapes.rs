//! Random shapes, as strategies of proptest.

use proptest::{prelude::*, test_runner::contextualize_config};
use tilewise::{ElementType, Layout, Shape, Tile, TileDimension};

/// Runs `cases` cases of a property, or the number in `PROPTEST_CASES`; writes no files into the tree.
#[must_use]
pub fn cases(cases: u32) -> ProptestConfig {
    let config =
        ProptestConfig { cases, failure_persistence: None, max_local_rejects: u32::MAX, ..ProptestConfig::default() };
    contextualize_config(config)
}

/// A tile of one to four dimensions, `*` among them.
fn tile() -> impl Strategy<Value = Tile> {
    let size = prop_oneof![4 => (1..6u64).prop_map(Some), 1 => Just(Some(8)), 2 => Just(None)];
    (prop::collection::vec(size, 0..4), 1..6u64).prop_map(|(major, minor)| {
        let dimension = |size: Option<u64>| match size {
            Some(size) => Tile::new([size]).expect("a size").dimensions()[0],
            None => TileDimension::Combined,
        };
        let dimensions = major.into_iter().chain([Some(minor)]).map(dimension);
        Tile::from_dimensions(dimensions).expect("ends in a size")
    })
}

/// Small arrays with every kind of layout: any order, up to four tiles (ragged, longer than the rank, merging and
/// merging again), tail padding, element sizes; a few thousand cells at most.
pub fn small_arrays() -> impl Strategy<Value = Shape> {
    let types = prop::sample::select(vec![ElementType::F32, ElementType::Bf16, ElementType::S4, ElementType::Pred]);
    let bounds = prop::collection::vec(prop_oneof![20 => 1..8u64, 1 => Just(0)], 0..5);
    let order = bounds.clone().prop_flat_map(|bounds| {
        let order: Vec<usize> = (0..bounds.len()).collect();
        (Just(bounds), Just(order).prop_shuffle())
    });
    let tiles = prop::collection::vec(tile(), 0..5);
    let tail = prop_oneof![3 => Just(1u64), 1 => 1..20u64];
    let bits = prop::sample::select(vec![0u64, 0, 0, 1, 4, 16, 32, 37]);
    (types, order, tiles, tail, bits).prop_filter_map(
        "too large for the oracle",
        |(element, order, tiles, tail, bits)| {
            let (bounds, order) = order;
            let layout = Layout::new(order).ok()?.with_tiles(tiles).ok()?;
            let layout = layout.with_tail_padding_alignment(tail).ok()?.with_element_size_in_bits(bits).ok()?;
            let shape = Shape::array(element, bounds).ok()?.with_layout(layout).ok()?;
            let elements = tilewise::Tiled::new(&shape).ok()?.physical_elements();
            (elements <= 4000).then_some(shape)
        },
    )
}
