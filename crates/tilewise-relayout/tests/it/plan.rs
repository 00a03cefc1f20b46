//! The promises of plans besides moving bytes.

use tilewise::Shape;
use tilewise_relayout::{ErrorKind, Padding, Plan, tile, untile};

fn plan(from: &str, to: &str) -> Result<Plan, tilewise_relayout::Error> {
    Plan::new(&from.parse().expect("a shape"), &to.parse().expect("a shape"))
}

#[test]
fn refuses_by_name() {
    let kind = |from: &str, to: &str| plan(from, to).map(|plan| plan.to_string()).unwrap_err().kind();
    assert_eq!(kind("f32[3,5]", "f32[5,3]"), ErrorKind::ShapeMismatch);
    assert_eq!(kind("f32[3,5]", "s32[3,5]"), ErrorKind::ShapeMismatch);
    assert_eq!(kind("f32[8]", "f32[8]{0:E(16)}"), ErrorKind::UnsupportedElementSize);
    assert_eq!(kind("s4[8]{0:E(2)}", "s4[8]"), ErrorKind::UnsupportedElementSize);
    assert_eq!(kind("f32[?]", "f32[8]"), ErrorKind::Layout(tilewise::ErrorKind::UnboundedDimension));
    assert_eq!(kind("token[]", "f32[8]").as_str(), "not_an_array");
}

#[test]
fn wrong_lengths_name_both_numbers_and_write_nothing() {
    let plan = plan("f32[3,5]", "f32[3,5]{1,0:T(2,2)}").expect("a plan");
    let mut destination = [7; 96];
    for source in [0, 59, 61, 96] {
        let error = plan.run(&vec![1; source], &mut destination).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BufferLengthMismatch);
        assert!(error.to_string().contains(&source.to_string()) && error.to_string().contains("60"), "{error}");
    }
    let error = plan.run(&[1; 60], &mut destination[1..]).unwrap_err();
    assert_eq!(error.to_string(), "the destination has 95 bytes, its layout takes 96");
    assert_eq!(destination, [7; 96]);
}

#[test]
fn odd_arrays() {
    for (from, to) in [
        ("f32[]", "f32[]{:T(8,128)}"),
        ("f32[0,5]", "f32[0,5]{0,1:T(8,128)}"),
        ("f32[1,1,1]", "f32[1,1,1]{0,1,2:T(8,128)}"),
        ("f32[<=3,5]", "f32[3,5]{0,1}"),
        ("pred[1]", "pred[1]{0:E(1)}"),
    ] {
        let plan = plan(from, to).expect("a plan");
        let source = vec![1; usize::try_from(plan.source_bytes()).expect("small")];
        let mut destination = vec![9; usize::try_from(plan.destination_bytes()).expect("small")];
        plan.run(&source, &mut destination).expect("lengths are right");
        assert_eq!(destination.iter().map(|&byte| usize::from(byte)).sum::<usize>(), source.len(), "{from} -> {to}");
    }
    // Larger than any buffer, but not than any plan.
    let huge = plan("u8[4611686018427387904,1]", "u8[4611686018427387904,1]{0,1}").expect("a plan");
    assert_eq!(huge.source_bytes(), 1 << 62);
    assert!(huge.run(&[], &mut []).is_err());
}

#[test]
fn round_trip_restores_every_element() {
    let shape: Shape = "bf16[37,301]{1,0:T(8,128)(2,1)}".parse().expect("a shape");
    let array: Vec<u8> = (0..37 * 301 * 2_u32).map(|i| u8::try_from(i * 7 % 251).expect("small")).collect();
    let tiled = tile(&array, &shape).expect("a tiling");
    assert_eq!(tiled.len(), 40 * 384 * 2);
    assert_eq!(untile(&tiled, &shape).expect("an array"), array);
    assert_eq!(untile(&tiled[1..], &shape).unwrap_err().kind(), ErrorKind::BufferLengthMismatch);
}

#[test]
fn padding_can_be_left() {
    let (from, to) = ("s8[3]".parse().expect("a shape"), "s8[3]{0:T(4)L(8)}".parse().expect("a shape"));
    let plan = Plan::new(&from, &to).expect("a plan").with_padding(Padding::Leave);
    let mut destination = [9; 8];
    plan.run(&[1, 2, 3], &mut destination).expect("lengths are right");
    assert_eq!(destination, [1, 2, 3, 9, 9, 9, 9, 9]);
}

#[test]
fn words() {
    let text = |from: &str, to: &str| plan(from, to).expect("a plan").to_string();
    let pack = text("bf16[4096,8192]", "bf16[4096,8192]{1,0:T(8,128)(2,1)}");
    assert!(pack.ends_with("interleave 2 rows of 128 units of 2 bytes"), "{pack}");
    let unpack = text("bf16[4096,8192]{1,0:T(8,128)(2,1)}", "bf16[4096,8192]");
    assert!(unpack.contains("take 2 rows of 8192 apart"), "{unpack}");
    let transpose = text("f32[4096,4096]", "f32[4096,4096]{0,1}");
    assert!(transpose.ends_with("transpose 4096 × 4096 units of 4 bytes"), "{transpose}");
    let bits = text("s4[8192,8192]", "s4[8192,8192]{1,0:T(8,128)(8,1)E(4)}");
    assert!(bits.contains("each packed from 2 rows of 4 bits"), "{bits}");
    let bits = text("s4[8192,8192]{1,0:T(8,128)(8,1)E(4)}", "s4[8192,8192]");
    assert!(bits.ends_with("units of 1 bytes, each unpacked into 2 rows, from 4 bits"), "{bits}");
    let bits = text("s4[8192,8192]{1,0:T(8,128)(2,1)E(4)}", "s4[8192,8192]");
    assert!(bits.ends_with("unpack 128 bytes into 2 rows, 8192 bytes apart, from 4 bits each"), "{bits}");
}

#[test]
fn plans_can_be_shared() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Plan>();
}

/// More threads than any system has must not be tried: the work is divided into pieces that are worth one.
#[test]
fn any_number_of_threads() {
    let plan = plan("f32[300,500]", "f32[300,500]{0,1}").expect("a plan");
    let source: Vec<u8> = (0..600_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    let (mut one, mut many) = (vec![0; source.len()], vec![0; source.len()]);
    plan.run(&source, &mut one).expect("lengths");
    plan.run_with_threads(&source, &mut many, usize::MAX).expect("lengths");
    assert!(one == many);
    plan.run_with_threads(&source, &mut many, 0).expect("lengths");
    assert!(one == many);
}
