//! Axes: that they are what operations pass on, whatever is said later.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use tilewise_hlo::{
    Instruction, Module, Opcode,
    dataflow::{AxisId, Dataflow, EventKind, FactorKind, Factors},
    read,
};
use tilewise_testing::programs;

fn of(text: &str) -> Dataflow {
    Dataflow::new(&Module::parse(text).unwrap())
}

fn named<'f>(flow: &'f Dataflow, name: &str) -> Instruction<'f> {
    flow.module().instructions().find(|at| at.name() == name).unwrap()
}

/// The axes of an instruction's first array, those of a dimension together.
fn axes(flow: &Dataflow, name: &str) -> Vec<Vec<AxisId>> {
    flow.axes().of_array(&named(flow, name), 0).map(<[AxisId]>::to_vec).collect()
}

fn all() -> impl Iterator<Item = (String, Module)> {
    programs::all().into_iter().filter_map(|path| Some((path.display().to_string(), read(&path).ok()?)))
}

/// The array of an operand or of the result that factors speak of.
fn array<'m>(at: &Instruction<'m>, factors: &Factors, number: usize) -> (Instruction<'m>, usize) {
    match number.checked_sub(factors.operand_count()) {
        Some(leaf) => (*at, leaf),
        None => (at.operands().nth(number).unwrap().instruction().unwrap(), 0),
    }
}

#[test]
fn dimensions_of_one_factor_are_of_the_same_axes() {
    let (mut count, mut exceptions) = (0, Vec::new());
    for (name, module) in all() {
        let flow = Dataflow::new(&module);
        for at in module.instructions() {
            let moves_bytes = at.joins_slices() || at.opcode() == Opcode::Bitcast && at.shape_text().starts_with("s8[");
            let Some(factors) = Factors::of(&at).filter(|_| !moves_bytes) else { continue };
            for factor in 0..factors.factors().len() {
                let whole = factors.places().iter().filter(|place| {
                    place.factor == factor && factors.of_dimension(place.array, place.dimension).count() == 1
                });
                let mut lists = whole.map(|place| {
                    let (of, leaf) = array(&at, &factors, place.array);
                    flow.axes().of_dimension(&of, leaf, place.dimension).to_vec()
                });
                let Some(first) = lists.next() else { continue };
                let size = |list: &[AxisId]| list.iter().map(|axis| flow.axes().all()[*axis].size).product::<u64>();
                assert_eq!(size(&first), factors.factors()[factor].size, "{name}: {}", at.name());
                for other in lists {
                    count += 1;
                    if other != first {
                        exceptions.push(format!("{name}: {} {factors}", at.name()));
                    }
                }
            }
        }
    }
    assert!(count > 2000 && exceptions.is_empty(), "{count}\n{}", exceptions.join("\n"));
}

#[test]
fn loops_calls_and_branches_pass_axes_on() {
    let flow = of("
body {
  c = (s32[], f32[8,16], f32[12,8,16]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[8,16] get-tuple-element(c), index=1
  kept = f32[12,8,16] get-tuple-element(c), index=2
  y = f32[8,16] tanh(x)
  one = f32[1,8,16] reshape(y)
  zero = s32[] constant(0)
  all = f32[12,8,16] dynamic-update-slice(kept, one, i, zero, zero)
  ROOT t = (s32[], f32[8,16], f32[12,8,16]) tuple(i, y, all)
}
condition {
  d = (s32[], f32[8,16], f32[12,8,16]) parameter(0)
  ROOT p = pred[] constant(true)
}
twice {
  a = f32[8,16] parameter(0)
  ROOT b = f32[8,16] add(a, a)
}
ENTRY main {
  start = f32[8,16] parameter(0)
  zeros = f32[12,8,16] parameter(1)
  n = s32[] constant(0)
  begun = (s32[], f32[8,16], f32[12,8,16]) tuple(n, start, zeros)
  done = (s32[], f32[8,16], f32[12,8,16]) while(begun), condition=condition, body=body
  last = f32[8,16] get-tuple-element(done), index=1
  stacked = f32[12,8,16] get-tuple-element(done), index=2
  called = f32[8,16] call(last), to_apply=twice
  which = pred[] constant(true)
  ROOT chosen = f32[8,16] conditional(which, called, last), true_computation=twice, false_computation=twice
}");
    let start = axes(&flow, "start");
    assert!(["y", "b", "chosen"].iter().all(|name| axes(&flow, name) == start));
    assert_eq!(axes(&flow, "stacked")[1..], start);
    assert_eq!(axes(&flow, "zeros"), axes(&flow, "all"));
    // The update that fills an axis with steps has its event.
    let steps = axes(&flow, "stacked")[0][0];
    let mixed: Vec<_> = flow.axes().events(steps).iter().filter(|event| event.kind == EventKind::Mixed).collect();
    assert_eq!(flow.module().instruction(mixed[0].instruction).unwrap().name(), "all");
    assert!(mixed.len() == 1 && flow.axes().events(start[0][0]).iter().all(|event| event.kind != EventKind::Mixed));
}

#[test]
fn asynchronous_pairs_pass_axes_on() {
    let flow = of("
gathers {
  table = f32[100,8] parameter(0)
  rows = s32[64] parameter(1)
  ROOT taken = f32[64,8] gather(table, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}
}
ENTRY main {
  t = f32[100,8] parameter(0)
  i = s32[64] parameter(1)
  started = ((), (), (s32[4])) custom-call-start(), custom_call_target=\"offload\", called_computations={gathers}
  handed = ((f32[100,8], s32[64]), f32[64,8], (s32[4])) custom-call-update(started, t, i)
  done = f32[64,8] custom-call-done(handed)
  copying = (f32[64,8], f32[64,8], u32[]) copy-start(done)
  copied = f32[64,8] copy-done(copying)
  begun = ((f32[64,8]), f32[16,8], u32[]) slice-start(copied), slice={[0:16], [0:8]}
  ROOT part = f32[16,8] slice-done(begun)
}");
    assert_eq!(axes(&flow, "copied"), [axes(&flow, "i"), vec![axes(&flow, "t")[1].clone()]].concat());
    assert_eq!(axes(&flow, "part")[1], axes(&flow, "t")[1]);
    assert_ne!(axes(&flow, "part")[0], axes(&flow, "i")[0]);
}

/// As a TPU's compiler pads numbers of rows, and moves large arrays.
#[test]
fn what_is_padded_or_moved_in_slices_is_itself_again() {
    let flow = of("
ENTRY main {
  rows = s32[400] parameter(0)
  zero = s32[] constant(0)
  padded = s32[512] pad(rows, zero), padding=0_112
  other = s32[512] negate(padded)
  cut = s32[400] slice(other), slice={[0:400]}
  half = s32[200] slice(rows), slice={[0:200]}
  w = f32[64,128]{1,0:T(8,128)} parameter(1)
  bytes = s8[32768]{0:T(1024)} bitcast(w)
  first = ((s8[32768]{0:T(1024)}), s8[16384]{0:T(1024)}, u32[]) slice-start(bytes), slice={[0:16384]}
  first_done = s8[16384]{0:T(1024)} slice-done(first)
  second = ((s8[32768]{0:T(1024)}), s8[16384]{0:T(1024)}, u32[]) slice-start(bytes), slice={[16384:32768]}
  second_done = s8[16384]{0:T(1024)} slice-done(second)
  joined = f32[64,128]{1,0:T(8,128)} custom-call(first_done, second_done), custom_call_target=\"ConcatBitcast\"
  ROOT t = (s32[400], s32[200], f32[64,128]{1,0:T(8,128)}) tuple(cut, half, joined)
}");
    assert_eq!(axes(&flow, "cut"), axes(&flow, "rows"));
    assert_ne!(axes(&flow, "half"), axes(&flow, "rows"));
    assert_eq!(axes(&flow, "joined"), axes(&flow, "w"));
    assert!(axes(&flow, "w").iter().all(|parts| parts.len() == 1));
    let ended = flow
        .axes()
        .events(axes(&flow, "rows")[0][0])
        .iter()
        .any(|event| event.kind == EventKind::Ends(FactorKind::Mix));
    assert!(ended, "a half of the rows is a part of them");
}
