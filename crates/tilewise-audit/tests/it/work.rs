//! Operations and bytes of collectives, times the trip counts of loops.

use tilewise_audit::{Sent, audit};
use tilewise_hlo::Module;

const PROGRAM: &str = "HloModule m, is_scheduled=true

fused {
  a = bf16[4,8,64,1024]{3,2,1,0} parameter(0)
  b = bf16[4,1024,8,64]{3,2,1,0} parameter(1)
  ROOT c = bf16[4,8,1024,1024]{3,2,1,0} convolution(b, a), window={size=4x8 stride=3x7 pad=0_0x0_0 lhs_dilate=4x8}, dim_labels=0b1f_01io->01bf
}

body {
  p = (s32[], f32[256,512]{1,0:T(8,128)}, f32[512,128]{1,0:T(8,128)}, f32[256,128]{1,0:T(8,128)}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[256,512]{1,0:T(8,128)} get-tuple-element(p), index=1
  w = f32[512,128]{1,0:T(8,128)} get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[256,128]{1,0:T(8,128)} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[256,128]{1,0:T(8,128)} all-reduce(y), to_apply=sum
  ROOT t = (s32[], f32[256,512]{1,0:T(8,128)}, f32[512,128]{1,0:T(8,128)}, f32[256,128]{1,0:T(8,128)}) tuple(next, x, w, z)
}

condition {
  p = (s32[], f32[256,512]{1,0:T(8,128)}, f32[512,128]{1,0:T(8,128)}, f32[256,128]{1,0:T(8,128)}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(12)
  ROOT less = pred[] compare(i, n), direction=LT
}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  a = bf16[4,8,64,1024]{3,2,1,0} parameter(0)
  b = bf16[4,1024,8,64]{3,2,1,0} parameter(1)
  x = f32[256,512]{1,0:T(8,128)} parameter(2)
  w = f32[512,128]{1,0:T(8,128)} parameter(3)
  zero = s32[] constant(0)
  y = f32[256,128]{1,0:T(8,128)} parameter(4)
  start = (s32[], f32[256,512]{1,0:T(8,128)}, f32[512,128]{1,0:T(8,128)}, f32[256,128]{1,0:T(8,128)}) tuple(zero, x, w, y)
  loop = (s32[], f32[256,512]{1,0:T(8,128)}, f32[512,128]{1,0:T(8,128)}, f32[256,128]{1,0:T(8,128)}) while(start), condition=condition, body=body
  ROOT c = bf16[4,8,1024,1024]{3,2,1,0} fusion(a, b), kind=kOutput, calls=fused
}";

#[test]
fn loops_count_times_their_trips() {
    let work = audit(&Module::parse(PROGRAM).expect("a module")).work();
    // 12 products of [256,512] and [512,128]; 4 x 8 of [1024,64] and [64,1024], as one convolution.
    let expected = 12 * 2 * 256 * 512 * 128 + 2 * 4 * 8 * 1024 * 1024 * 64;
    assert_eq!(work.flops, expected);
    assert_eq!(work.collectives.len(), 1);
    let Sent { count, bytes } = work.collectives["all-reduce"];
    assert_eq!((count, bytes, work.recomputed), (1, 12 * 256 * 128 * 4, 0));
}

/// Each computation fuses the one before twice: after n doublings the first runs 2^n times, saturating.
#[test]
fn fusions_of_fusions_are_counted_once_each() {
    const SHAPE: &str = "f32[128,128]{1,0:T(8,128)}";
    let product = "dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let of = |doublings: usize| {
        let mut text = format!(
            "HloModule m, is_scheduled=true\n\nf0 {{\n  x = {SHAPE} parameter(0)\n  ROOT y = {SHAPE} {product}\n}}\n"
        );
        for k in 1..=doublings {
            let fusion = |operand: &str| format!("{SHAPE} fusion({operand}), kind=kLoop, calls=f{}", k - 1);
            text += &format!(
                "f{k} {{\n  x = {SHAPE} parameter(0)\n  y = {}\n  ROOT z = {}\n}}\n",
                fusion("x"),
                fusion("y")
            );
        }
        text += &format!(
            "ENTRY main {{\n  x = {SHAPE} parameter(0)\n  ROOT y = {SHAPE} fusion(x), kind=kLoop, calls=f{doublings}\n}}\n"
        );
        audit(&Module::parse(text).expect("a module")).work().flops
    };
    let one = 2 * 128 * 128 * 128;
    assert_eq!([of(0), of(1), of(5), of(1000)], [one, 2 * one, 32 * one, u64::MAX]);
    // Fusions in a circle end, too.
    let circle = format!(
        "HloModule m, is_scheduled=true\n\nf {{\n  x = {SHAPE} parameter(0)\n  ROOT y = {SHAPE} fusion(x), kind=kLoop, calls=f\n}}\n\
         ENTRY main {{\n  x = {SHAPE} parameter(0)\n  ROOT y = {SHAPE} fusion(x), kind=kLoop, calls=f\n}}\n"
    );
    if let Ok(module) = Module::parse(circle) {
        assert_eq!(audit(&module).work().flops, 0);
    }
}
