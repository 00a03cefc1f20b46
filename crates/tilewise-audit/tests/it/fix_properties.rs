//! What holds of every fix of every array.

use proptest::prelude::*;
use tilewise::{
    ArrayShape, ElementType, Layout, Shape, Tiled,
    tpu::{self, Generation},
};
use tilewise_audit::fix::{self, Fix, FixKind};

/// Bounds at and around the sizes of tiles.
fn bound() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 1u64..20,
        2 => (0u64..5, 0u64..3).prop_map(|(tiles, off)| (128 * tiles + off).saturating_sub(1)),
        2 => 1u64..3000,
        1 => 1u64..2_000_000,
    ]
}

fn element_type() -> impl Strategy<Value = ElementType> {
    prop::sample::select(ElementType::ALL)
}

/// An array in a random order, with the tiles a TPU gives it.
fn laid_out() -> impl Strategy<Value = (Shape, Generation)> {
    let bounds = prop::collection::vec(bound(), 0..7);
    let ordered = bounds.prop_flat_map(|bounds| {
        let row_major: Vec<usize> = (0..bounds.len()).rev().collect();
        (Just(bounds), prop_oneof![Just(row_major.clone()), Just(row_major).prop_shuffle()])
    });
    (element_type(), ordered, prop::sample::select(Generation::ALL)).prop_filter_map(
        "a layout",
        |(element_type, (bounds, order), generation)| {
            Some((tpu::layout_for_order(element_type, &bounds, &order, generation).ok()?, generation))
        },
    )
}

fn elements(array: &ArrayShape) -> u64 {
    array.dimensions().iter().filter_map(|d| d.bound()).product()
}

/// The fix says what the layouts say, and the layouts are those a TPU gives.
fn check(shape: &Shape, generation: Generation, fix: &Fix) -> Result<(), TestCaseError> {
    let now = Tiled::new(shape).expect("priced");
    prop_assert_eq!(fix.bytes_before, now.physical_bytes());
    prop_assert!(fix.bytes_after < fix.bytes_before);
    prop_assert_eq!(fix.bytes_saved() + fix.bytes_after, fix.bytes_before);
    prop_assert!(fix.expansion() >= 1.0, "{}", fix.expansion());

    let (mut physical, mut logical, mut count) = (0, 0, 0);
    for new in &fix.arrays {
        let array = new.shape.as_array().expect("an array");
        let bounds: Vec<u64> = array.dimensions().iter().filter_map(|d| d.bound()).collect();
        let open = tpu::default_layout(array.element_type(), &bounds, generation).expect("a layout");
        let ordered = tpu::predict(&new.shape, generation).expect("a layout").shape;
        let default = matches!(fix.kind, FixKind::Order | FixKind::Transpose | FixKind::Reshape | FixKind::Batch);
        prop_assert_eq!(&new.shape, if default { &open } else { &ordered });
        let tiled = Tiled::new(&new.shape).expect("priced");
        physical += tiled.physical_bytes() * new.count;
        logical += tiled.logical_bytes() * new.count;
        count += elements(array) * new.count;
    }
    prop_assert_eq!(fix.bytes_after, physical.div_ceil(fix.replaced));
    prop_assert_eq!(fix.logical_bytes_after, if fix.replaced > 1 { now.logical_bytes() } else { logical });
    prop_assert_eq!(fix.replaced > 1, fix.kind == FixKind::Batch);
    prop_assert_eq!(fix.changes_values, matches!(fix.kind, FixKind::Resize | FixKind::Narrow));
    if fix.kind != FixKind::Resize {
        prop_assert_eq!(count, elements(now.array()) * fix.replaced);
    }
    prop_assert!(!fix.sentence.is_empty() && !fix.sentence.ends_with('.') && fix.jax.contains("  # "));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn fixes_save_what_they_say((shape, generation) in laid_out()) {
        let fixes = fix::suggest(&shape, Some(generation));
        prop_assert_eq!(fixes.list.is_empty(), fixes.no_fix.is_some());
        prop_assert!(fixes.list.len() <= fix::MAX_FIXES);
        let mut kinds: Vec<FixKind> = fixes.list.iter().map(|fix| fix.kind).collect();
        for fix in &fixes.list {
            check(&shape, generation, fix)?;
        }
        kinds.sort_unstable();
        kinds.dedup();
        prop_assert_eq!(kinds.len(), fixes.list.len(), "one of a kind");
    }

    /// Following the first fix of one array leads to an array that needs none, or less.
    #[test]
    fn fixes_come_to_an_end((shape, generation) in laid_out()) {
        let (mut shape, mut bytes) = (shape, u64::MAX);
        for _ in 0..64 {
            let fixes = fix::suggest(&shape, Some(generation));
            let Some(fix) = fixes.list.into_iter().find(|fix| !fix.changes_values && fix.replaced == 1) else {
                return Ok(());
            };
            prop_assert!(fix.bytes_after < bytes);
            bytes = fix.bytes_after;
            shape = fix.arrays[0].shape.clone();
        }
        prop_assert!(false, "still fixing");
    }

    /// Why no fix pads a dimension to a larger size: nothing can be gained by it, but for 1- and 2-bit types.
    #[test]
    fn larger_bounds_take_no_less(
        (shape, generation) in laid_out(),
        at in any::<prop::sample::Index>(),
        more in prop_oneof![1u64..40, 1u64..400],
    ) {
        let array = shape.as_array().expect("an array");
        let mut bounds: Vec<u64> = array.dimensions().iter().filter_map(|d| d.bound()).collect();
        if bounds.is_empty() || matches!(array.element_type().name(), "s1" | "u1" | "s2" | "u2") {
            return Ok(());
        }
        let bytes = |bounds: &[u64], order: Option<&[usize]>| {
            let shape = match order {
                Some(order) => tpu::layout_for_order(array.element_type(), bounds, order, generation),
                None => tpu::default_layout(array.element_type(), bounds, generation),
            };
            shape.and_then(|shape| Tiled::new(&shape)).map_or(u64::MAX, |tiled| tiled.physical_bytes())
        };
        let order = array.layout().map(|layout| layout.minor_to_major());
        let before = (bytes(&bounds, None), bytes(&bounds, order));
        let at = at.index(bounds.len());
        bounds[at] += more;
        prop_assert!(bytes(&bounds, None) >= before.0 && bytes(&bounds, order) >= before.1);
    }

    /// Layouts that no TPU gives, dynamic dimensions, huge bounds: an answer, whatever it is.
    #[test]
    fn anything_is_answered(
        element_type in element_type(),
        bounds in prop::collection::vec(prop_oneof![0u64..300, any::<u64>().prop_map(|b| b >> 1), Just(1)], 0..12),
        tile in prop::collection::vec(1u64..300, 0..4),
        space in 0u8..8,
        bits in prop_oneof![Just(0u64), 1u64..70],
        generation in prop::option::of(prop::sample::select(Generation::ALL)),
    ) {
        let Ok(shape) = Shape::array(element_type, bounds.iter().copied()) else { return Ok(()) };
        let layout = Layout::row_major(bounds.len()).with_memory_space(space).and_then(|l| l.with_element_size_in_bits(bits));
        let mut layout = layout.expect("a layout");
        if !tile.is_empty() {
            layout = layout.with_tiles([tilewise::Tile::new(tile).expect("a tile")]).expect("tiles");
        }
        let shape = shape.with_layout(layout).expect("a shape");
        let fixes = fix::suggest(&shape, generation);
        prop_assert_eq!(fixes.list.is_empty(), fixes.no_fix.is_some());
    }
}

#[test]
fn high_ranks_are_answered_in_time() {
    let ones = Shape::array(ElementType::F32, vec![1; 2000]).expect("a shape");
    let twos = Shape::array(ElementType::U8, vec![2; 60]).expect("a shape");
    let ends = (0..2000).map(|d| if d % 1999 == 0 { 300 } else { 1 });
    let ends = Shape::array(ElementType::Bf16, ends).expect("a shape");
    let start = std::time::Instant::now();
    for shape in [ones, twos, ends] {
        let rank = shape.dimensions().len();
        let tiled = Layout::new(0..rank).and_then(|l| l.with_tiles([[8, 128]])).expect("a layout");
        let _ = fix::suggest(&shape, None);
        let _ = fix::suggest(&shape.with_layout(tiled).expect("a shape"), None);
    }
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
