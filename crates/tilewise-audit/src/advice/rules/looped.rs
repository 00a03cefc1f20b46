//! The text of a loop, for the tests of rules that read one.

use crate::{Audit, Program, Recommendation};
use tilewise::tpu::Generation;
use tilewise_memory::Machine;

/// A loop of `steps` turns over a matrix and an array `ALL` of one for each turn, in lines of HLO text. `turn` makes `y`, the next
/// matrix, and `kept`, the next array, out of `x` and `stack`; `start` is the first array; `end` is made of `w`, the loop's tuple,
/// and `e`, its array. A matrix's shape replaces `ONE`.
pub(super) struct Looped<'a> {
    pub(super) steps: u64,
    pub(super) matrix: &'a str,
    pub(super) turn: &'a str,
    pub(super) start: &'a str,
    pub(super) end: &'a str,
}

/// A turn that writes its matrix into the array.
pub(super) const STACKS: &str = "y = ONE negate(x)
  row = ROW bitcast(y)
  kept = ALL dynamic-update-slice(stack, row, i, zero, zero)";

/// A turn that reads its matrix from the array.
pub(super) const READS: &str = "row = ROW dynamic-slice(stack, i, zero, zero), dynamic_slice_sizes={1,MATRIX}
  of = ONE bitcast(row)
  y = ONE add(x, of)
  kept = ALL get-tuple-element(c), index=2";

const TEXT: &str = r#"HloModule jit_f, is_scheduled=true

drawn {
  k = u32[STEPS]{0:T(128)} parameter(0)
  all = u32[STEPS,MATRIX]{2,1,0:T(8,128)} broadcast(k), dimensions={0}
  place = u32[STEPS,MATRIX]{2,1,0:T(8,128)} iota(), iota_dimension=2
  bits = u32[STEPS,MATRIX]{2,1,0:T(8,128)} xor(all, place)
  ROOT n = ALL convert(bits)
}

written {
  of = ALL parameter(0)
  z = u8[MATRIX]{1,0:T(8,128)(4,1)} parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  wide = ONE convert(z)
  row = ROW bitcast(wide)
  ROOT r = ALL dynamic-update-slice(of, row, i, zero, zero)
}

most { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b) }

sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }

powers {
  of = ALL parameter(0)
  m = ONE parameter(1)
  zero = f32[] constant(0)
  wide = ALL broadcast(m), dimensions={1,2}
  less = ALL subtract(of, wide)
  power = ALL exponential(less)
  ROOT s = ONE reduce(power, zero), dimensions={0}, to_apply=sum
}

squares {
  of = ALL parameter(0)
  m = ONE parameter(1)
  zero = f32[] constant(0)
  wide = ALL broadcast(m), dimensions={1,2}
  less = ALL subtract(of, wide)
  square = ALL multiply(less, less)
  ROOT s = ONE reduce(square, zero), dimensions={0}, to_apply=sum
}

cond {
  c = (s32[], ONE, ALL) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(STEPS)
  ROOT r = pred[] compare(i, n), direction=LT
}

body {
  c = (s32[], ONE, ALL) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = ONE get-tuple-element(c), index=1
  stack = ALL get-tuple-element(c), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  TURN
  ROOT t = (s32[], ONE, ALL) tuple(next, y, kept)
}

ENTRY main {
  x.1 = ONE parameter(0), metadata={op_name="x"}
  key.1 = u32[STEPS]{0:T(128)} parameter(1), metadata={op_name="key"}
  noise.1 = ALL parameter(2), metadata={op_name="noise"}
  zero.1 = s32[] constant(0)
  b = START
  s = (s32[], ONE, ALL) tuple(zero.1, x.1, b)
  w = (s32[], ONE, ALL) while(s), condition=cond, body=body, metadata={op_name="jit(f)/while"}
  e = ALL get-tuple-element(w), index=2
  END
}"#;

impl Looped<'_> {
    /// The advice for a v5e with 64 MiB.
    pub(super) fn advice(&self) -> Vec<Recommendation> {
        let Self { steps, matrix, turn, start, end } = self;
        let (steps, shape) = (steps.to_string(), |rows: &str| format!("f32[{rows}{matrix}]"));
        let with = [("TURN", *turn), ("START", *start), ("END", *end)];
        let text = with.iter().fold(TEXT.to_owned(), |text, (name, with)| text.replace(name, with));
        let text =
            text.replace("ROW", &(shape("1,") + "{2,1,0:T(8,128)}")).replace("ONE", &(shape("") + "{1,0:T(8,128)}"));
        let text = text.replace("ALL", &(shape("STEPS,") + "{2,1,0:T(8,128)}"));
        let text = text.replace("STEPS", &steps).replace("MATRIX", matrix);
        let program = Program::parse(&text).expect("a module");
        let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(64 << 20).run();
        report.advice().to_vec()
    }
}
