//! Findings of a check, bit by bit: a flipped bit of an element is that element, a flipped bit of padding is nothing.

use tilewise::{Shape, Tiled};
use tilewise_relayout::{ErrorKind, Plan};
use tilewise_testing::Random;

/// Transposed, tiled, tiled again, merged, packed, widened, wider than any register, empty.
const PAIRS: [(&str, &str); 18] = [
    ("f32[]", "f32[]{:T(2,2)}"),
    ("u16[13]", "u16[13]{0:T(4)L(32)}"),
    ("f32[3,5]", "f32[3,5]{1,0:T(2,2)}"),
    ("f32[3,5]{1,0:T(2,2)}", "f32[3,5]{0,1:T(4,2)}"),
    ("bf16[5,9]{0,1}", "bf16[5,9]{1,0:T(4,4)(2,1)}"),
    ("s8[2,3,4,5]", "s8[2,3,4,5]{1,3,0,2:T(2,4)(4,1)}"),
    ("f64[7,1,3]{0,2,1}", "f64[7,1,3]{2,1,0:T(4)}"),
    ("c128[2,3]", "c128[2,3]{0,1}"),
    ("s16[3,5]{1,0:T(*,4)}", "s16[3,5]"),
    ("s16[3,5]{1,0:T(4)}", "s16[3,5]{0,1:T(*,4)(3)}"),
    ("s4[3,9]", "s4[3,9]{1,0:E(4)}"),
    ("s4[3,9]{1,0:E(4)}", "s4[3,9]{0,1}"),
    ("s4[3,9]{1,0:E(5)}", "s4[3,9]{1,0:T(2,4)E(11)}"),
    ("u2[40]{0:E(2)}", "u2[40]{0:T(8)E(130)}"),
    ("s2[5]", "s2[5]{0:E(70)}"),
    ("pred[17]", "pred[17]{0:E(1)}"),
    ("f32[5]{0:E(90)}", "f32[5]{0:T(2)E(90)}"),
    ("f32[0,5]", "f32[0,5]{0,1:T(8,128)}"),
];

fn width(tiled: &Tiled) -> u64 {
    let given = tiled.array().layout().and_then(|layout| layout.element_size_in_bits());
    given.unwrap_or(u64::from(tiled.array().element_type().natural_bits()))
}

#[test]
fn every_bit_of_every_element_counts_and_no_other() {
    let mut random = Random::new(0x1234_5678_9ABC_DEF1);
    for (from, to) in PAIRS {
        let plan = Plan::new(&from.parse().expect("a shape"), &to.parse().expect("a shape")).expect("a plan");
        let source = random.bytes(plan.source_bytes());
        let mut destination = vec![0; usize::try_from(plan.destination_bytes()).expect("small")];
        plan.run(&source, &mut destination).expect("lengths are right");
        for threads in [1, 3] {
            let found = plan.find_difference(&source, &destination, threads, |_| ()).expect("lengths are right");
            assert_eq!(found, None, "{from} -> {to}");
        }
        let tiled = Tiled::new(plan.to()).expect("a layout");
        for bit in 0..8 * plan.destination_bytes() {
            let at = usize::try_from(bit / 8).expect("small");
            destination[at] ^= 1 << (bit % 8);
            let element = bit / width(&tiled);
            let expected = (element < tiled.physical_elements()).then(|| tiled.index_of(element).expect("inside"));
            let found = plan.find_difference(&source, &destination, 1, |_| ()).expect("lengths are right");
            assert_eq!(found, expected.flatten(), "{from} -> {to}, bit {bit}");
            destination[at] ^= 1 << (bit % 8);
        }
    }
}

/// Boxes cover arrays that are long along one dimension, two, or none, each element once.
#[test]
fn large_arrays_are_walked_once() {
    for (from, to) in [
        ("u8[300000]", "u8[300000]{0:T(1024)}"),
        ("u8[70001,2,2]", "u8[70001,2,2]{0,2,1:T(2,128)}"),
        ("u8[3,70001,2]{1,0,2}", "u8[3,70001,2]{1,2,0}"),
        ("u8[300,1000]", "u8[300,1000]{0,1}"),
        ("u8[40,50,60,7]{0,3,1,2}", "u8[40,50,60,7]{1,2,3,0:T(8,128)}"),
        ("u8[300,1000]{1,0:T(7)}", "u8[300,1000]{1,0:T(*,5)(3)}"),
    ] {
        let (from, to): (Shape, Shape) = (from.parse().expect("a shape"), to.parse().expect("a shape"));
        let plan = Plan::new(&from, &to).expect("a plan");
        let source = Random::new(7).bytes(plan.source_bytes());
        let mut destination = vec![0; usize::try_from(plan.destination_bytes()).expect("small")];
        plan.run(&source, &mut destination).expect("lengths are right");
        let elements: u64 = from.dimensions().iter().filter_map(|dimension| dimension.bound()).product();
        let last: Vec<u64> = from.dimensions().iter().filter_map(|d| d.bound()).map(|bound| bound - 1).collect();
        for threads in [1, 2] {
            let seen = std::sync::atomic::AtomicU64::new(0);
            let count = |n| {
                seen.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
            };
            assert_eq!(plan.find_difference(&source, &destination, threads, count), Ok(None), "{from} -> {to}");
            assert_eq!(seen.into_inner(), elements, "{from} -> {to}");
        }
        let offset = Tiled::new(&to).expect("a layout").offset_of(&last).expect("inside");
        destination[usize::try_from(offset).expect("small")] ^= 0x80;
        assert_eq!(plan.find_difference(&source, &destination, 2, |_| ()), Ok(Some(last)), "{from} -> {to}");
    }
}

#[test]
fn wrong_lengths_are_errors() {
    let plan = Plan::new(&"f32[3,5]".parse().expect("a shape"), &"f32[3,5]{1,0:T(2,2)}".parse().expect("a shape"));
    let plan = plan.expect("a plan");
    for (source, destination) in [(59, 96), (60, 97)] {
        let error = plan.find_difference(&vec![0; source], &vec![0; destination], 1, |_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BufferLengthMismatch);
    }
}
