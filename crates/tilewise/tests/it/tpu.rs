//! Layouts that TPUs choose, held against libtpu's: `conformance/facts`, whose README says where each row comes from.

use proptest::prelude::*;
use std::{collections::HashMap, path::Path};
use tilewise::{
    ElementType, ErrorKind, Shape, Tiled,
    tpu::{self, Generation, Policy, Prediction},
};

fn facts(file: &str) -> Vec<HashMap<String, String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/facts").join(file);
    let mut reader = csv::Reader::from_path(path).expect("the facts are in the tree");
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

fn numbers(list: &str) -> Vec<u64> {
    list.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().expect("a number")).collect()
}

fn predict(text: &str, generation: Generation) -> Prediction {
    tpu::predict(&Shape::parse_as_written(text).expect(text), generation).expect(text)
}

#[test]
fn default_layouts_are_libtpus() {
    let mut checked = 0;
    for row in facts("tpu_default_layouts.csv") {
        let dims = &row["dims"];
        // Every other column is headed by the generations it speaks for.
        let columns = row.iter().filter(|(head, _)| !["element_types", "dims"].contains(&head.as_str()));
        for (generations, layout) in columns {
            for generation in generations.split(' ').map(|name| name.parse().expect(name)) {
                for name in row["element_types"].split(' ') {
                    let element_type = name.parse().expect(name);
                    let shape = tpu::default_layout(element_type, &numbers(dims), generation).expect(dims);
                    assert_eq!(shape.to_string(), format!("{name}[{dims}]{layout}"), "{generation}");
                    let predicted = predict(&format!("{name}[{dims}]"), generation);
                    assert_eq!((predicted.shape, predicted.policy), (shape, Policy::Default));
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, 41_650);
}

#[test]
fn tiles_of_fixed_orders_are_libtpus() {
    let rows = facts("tpu_fixed_order_layouts.csv");
    assert_eq!(rows.len(), 481);
    for row in rows {
        let (generation, expected) = (row["tpu"].parse().expect("a generation"), &row["expected"]);
        let (ordered, _) = expected.split_once(':').expect("tiles");
        let predicted = predict(&format!("{ordered}}}"), generation);
        assert_eq!(predicted.policy, Policy::FixedOrder);
        assert_eq!(&predicted.shape.to_string(), expected, "{generation}");
        assert_eq!(predict(expected, generation), predicted, "tiles are replaced");
        let bytes = Tiled::new(&predicted.shape).expect(expected).physical_bytes();
        assert_eq!(bytes.to_string(), row["argument_size"], "{expected} on {generation}");
    }
}

#[test]
fn entry_layouts_of_programs_are_the_defaults() {
    let rows = facts("tpu_argument_sizes.csv");
    assert_eq!(rows.len(), 2615);
    for row in rows {
        let generation = row["tpu"].parse().expect("a generation");
        let (open, _) = row["shape"].split_once('{').expect("a layout");
        assert_eq!(predict(open, generation).shape.to_string(), row["shape"], "{generation}");
    }
}

/// Shapes and sizes of published out-of-memory messages: the tiles follow from the order, the sizes from the tiles.
#[test]
fn published_messages_are_explained() {
    const M: u64 = 1 << 20;
    for (text, logical, physical) in [
        ("s32[8388608,8,4]{2,1,0:T(8,128)}", 1024 * M, 32 * 1024 * M),
        ("bf16[2048,1,2048,128]{0,1,3,2:T(4,128)(2,1)}", 1024 * M, 4 * 1024 * M),
        ("s32[2048,1,128,128,4]{4,3,2,0,1:T(8,128)}", 512 * M, 16 * 1024 * M),
        ("u32[12582912,1]{1,0:T(8,128)}", 48 * M, 6 * 1024 * M),
        ("f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)}", 40 * M + M / 2, 512 * M),
        ("s32[29360128,10]{1,0:T(8,128)}", 1120 * M, 14 * 1024 * M),
    ] {
        // v3, whose bf16 tiles are at least 4 rows high.
        let shape = predict(text, Generation::V3).shape;
        assert_eq!(shape.to_string(), text);
        let tiled = Tiled::new(&shape).expect(text);
        assert_eq!((tiled.logical_bytes(), tiled.physical_bytes()), (logical, physical), "{text}");
    }
    // An old compiler kept predicates in 32 bits, which no generation does now.
    let old: Shape = "pred[64,512,2048]{2,1,0:T(8,128)E(32)}".parse().expect("a shape");
    let tiled = Tiled::new(&old).expect("an array");
    assert_eq!((tiled.logical_bytes(), tiled.physical_bytes()), (64 * M, 256 * M));
}

#[test]
fn scalars_and_arrays_without_elements() {
    let text = |text, generation| predict(text, generation).shape.to_string();
    assert_eq!(text("c64[]", Generation::V3), "c64[]{:T(256)}");
    let scalar = predict("c64[]", Generation::V3).shape;
    assert_eq!(Tiled::new(&scalar).expect("an array").physical_bytes(), 2048, "a granule for each plane");
    assert_eq!(text("s4[0,4]", Generation::V5e), "s4[0,4]{1,0:E(4)}");
    assert_eq!(text("s4[0,4]{0,1}", Generation::V5e), "s4[0,4]{0,1:E(4)}");
    assert_eq!(text("s4[0,4]", Generation::V2), "s4[0,4]{1,0}");
}

#[test]
fn keeps_what_the_rule_does_not_decide() {
    let text = |text| predict(text, Generation::V6e).shape.to_string();
    assert_eq!(text("f32[<=16,128]"), "f32[<=16,128]{1,0:T(8,128)}");
    assert_eq!(text("f32[16,128]{1,0:S(1)}"), "f32[16,128]{1,0:T(8,128)S(1)}");
    assert_eq!(text("f32[16,128]{0,1:T(2,2)L(8)E(8)}"), "f32[16,128]{0,1:T(8,128)}");
    assert_eq!(text("b(f32[16,128])"), "b(f32[16,128]{1,0:T(8,128)})");
}

/// PJRT's `get_default_layout` in libtpu 0.0.52, for JAX 0.12's `float6_e2m3fn` and `float6_e3m2fn`.
#[test]
fn six_bit_floats_take_a_byte() {
    for (bounds, layout) in [
        ("64,256", "{1,0:T(32,128)(4,1)}"),
        ("3,4,100", "{2,1,0:T(4,128)(4,1)}"),
        ("5", "{0:T(512)(128)(4,1)}"),
        ("", "{:T(512)}"),
    ] {
        for name in ["f6e2m3fn", "f6e3m2fn"] {
            let text = format!("{name}[{bounds}]");
            assert_eq!(predict(&text, Generation::V5e).shape.to_string(), format!("{text}{layout}"));
        }
    }
}

#[test]
fn refuses_by_name() {
    let kind = |text: &str| {
        let shape = Shape::parse_as_written(text).expect(text);
        tpu::predict(&shape, Generation::V5e).expect_err(text).kind()
    };
    assert_eq!(kind("(f32[2])"), ErrorKind::NotAnArray);
    assert_eq!(kind("f32[?,2]"), ErrorKind::UnboundedDimension);
    // Two bits an element fit; the type's own four bytes do not.
    assert_eq!(kind("f32[2305843009213693952]{0:E(2)}"), ErrorKind::Overflow);

    let ordered = |bounds: &[u64], order: &[usize]| {
        let shape = tpu::layout_for_order(ElementType::F32, bounds, order, Generation::V5e);
        shape.map(|shape| shape.to_string()).map_err(|error| error.kind())
    };
    assert_eq!(ordered(&[2, 3], &[0, 1]).as_deref(), Ok("f32[2,3]{0,1:T(4,128)}"));
    assert_eq!(ordered(&[2, 3], &[0]), Err(ErrorKind::LayoutRankMismatch));
    assert_eq!(ordered(&[2, 3], &[0, 0]), Err(ErrorKind::NotAPermutation));
    assert_eq!(ordered(&[1 << 40, 1 << 40], &[0, 1]), Err(ErrorKind::Overflow));
}

#[test]
fn any_rank_and_any_size_is_answered() {
    let mut bounds = vec![1; 20_000];
    bounds[7] = 1 << 59;
    bounds[9_000] = 8;
    for &generation in Generation::ALL {
        let shape = tpu::default_layout(ElementType::U1, &bounds, generation).expect("fits");
        assert_eq!(shape.layout().expect("a layout").minor_to_major()[0], 7);
        let largest = tpu::default_layout(ElementType::U8, &[1, (1 << 63) - 1], generation).expect("fits");
        assert_eq!(Tiled::new(&largest).expect_err("padding").kind(), ErrorKind::Overflow);
    }
}

/// The default order as the rule reads, pair by pair: what the library computes, without its shortcut for bounds of 1.
fn order_by_the_rule(old: bool, bits: u64, dims: &[u64]) -> Vec<usize> {
    let stored = if old { bits.max(8) } else { bits };
    let (granule, pack, want) = (if old { 1024 } else { 512 }, 32 / stored, 32 / bits);
    let height = |s: u64| {
        if !old && bits <= 8 && s % (8 * pack) == 0 {
            return 8 * pack;
        }
        let mut h = (granule * 8 / stored / 128).max(want);
        while h < 8 && h < s {
            h *= 2;
        }
        h
    };
    let mut best = None;
    for a in (0..dims.len()).rev() {
        for b in (0..dims.len()).rev().filter(|&b| b != a) {
            let h = height(dims[b]);
            let others: u64 = (0..dims.len()).filter(|&d| d != a && d != b).map(|d| dims[d]).product();
            let cost = dims[a].next_multiple_of(128) * dims[b].next_multiple_of(h.min(8)) * others;
            let key = (cost, bits < 4 && !(dims[a] % 128 == 0 && dims[b] % h == 0));
            if best.is_none_or(|(least, _, _)| key < least) {
                best = Some((key, a, b));
            }
        }
    }
    let (_, a, b) = best.expect("two dimensions");
    let others = (0..dims.len()).rev().filter(|&d| d != a && d != b);
    [a, b].into_iter().chain(others).collect()
}

proptest! {
    #[test]
    fn the_order_is_the_cheapest_pair_met_first(
        dims in prop::collection::vec(
            prop_oneof![3 => Just(1u64), 2 => 1..40u64, 2 => prop::sample::select(vec![8, 32, 127, 128, 129, 256])],
            2..8,
        ),
        (bits, name) in prop::sample::select(vec![(1, "s1"), (2, "u2"), (4, "s4"), (8, "pred"), (16, "bf16"), (32, "c64")]),
        generation in prop::sample::select(Generation::ALL),
    ) {
        let shape = tpu::default_layout(name.parse()?, &dims, generation)?;
        let old = matches!(generation, Generation::V2 | Generation::V3);
        prop_assert_eq!(shape.layout().expect("a layout").minor_to_major(), order_by_the_rule(old, bits, &dims), "{}", shape);
    }
}
