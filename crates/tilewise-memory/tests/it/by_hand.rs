//! Small programs, worked out by hand.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use tilewise::tpu::Generation;
use tilewise_hlo::Module;
use tilewise_memory::{ErrorKind, MemoryPlan, Packing, PlanOptions, Role};

const MIB: u64 = 1 << 20;

fn plan(text: &str) -> MemoryPlan {
    MemoryPlan::new(&Module::parse(text).unwrap(), &PlanOptions::new(Generation::V5e)).unwrap()
}

/// `A` stands for 1 MiB of f32.
fn program(text: &str) -> String {
    format!("HloModule m, is_scheduled=true\n\n{}", text.replace('A', "f32[512,512]{1,0:T(8,128)}"))
}

/// Offsets of all temporaries in MiB, by name.
fn offsets(text: &str) -> Vec<(String, u64)> {
    let module = Module::parse(text).unwrap();
    let plan = MemoryPlan::new(&module, &PlanOptions::new(Generation::V5e)).unwrap();
    let allocations = plan.space(0).unwrap().values.iter().filter(|a| a.role == Role::Temporary);
    let named = allocations.map(|a| (module.instruction(a.instruction).unwrap().name().to_owned(), a.offset));
    named.map(|(name, offset)| (name, offset.expect("a temporary of HBM has an offset") / MIB)).collect()
}

fn named(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(name, offset)| ((*name).to_owned(), *offset)).collect()
}

#[test]
fn what_is_dead_gives_its_place_to_others() {
    // a lives to c, b to c; d comes when both are gone.
    let text = program(
        "ENTRY e (x: f32[512,512]) -> f32[512,512] {
  x = A parameter(0)
  a = A negate(x)
  b = A negate(x)
  c = A add(a, b)
  d = A negate(c)
  ROOT r = A negate(d)
}",
    );
    assert_eq!(offsets(&text), named(&[("a", 0), ("b", 1), ("c", 2), ("d", 0)]));
    let plan = plan(&text);
    assert_eq!((plan.argument_bytes, plan.output_bytes, plan.temporary_bytes()), (MIB, MIB, 3 * MIB));
    let hbm = plan.space(0).unwrap();
    assert_eq!((hbm.peak_temporary_live_bytes, hbm.peak_live_bytes()), (3 * MIB, 5 * MIB));
    assert_eq!(hbm.peak.as_ref().unwrap().logical_time, 3);
}

#[test]
fn an_operand_that_ends_is_shared_where_the_compiler_says_so() {
    let hint = "backend_config={\"aliasing_operands\":{\"lists\":[{\"indices\":[\"0\",\"1\"]}]}}";
    let text = program(&format!(
        "ENTRY e (x: f32[512,512]) -> f32[512,512] {{
  x = A parameter(0)
  a = A negate(x)
  b = A negate(a), {hint}
  ROOT r = A negate(b)
}}"
    ));
    assert_eq!(offsets(&text), named(&[("a", 0), ("b", 0)]));
    assert_eq!(offsets(&text.replace(&format!(", {hint}"), "")), named(&[("a", 0), ("b", 1)]));
}

#[test]
fn a_loop_carries_in_one_place() {
    let text = program(
        "cond {
  cp = (A, s32[]{:T(128)}) parameter(0)
  ci = s32[]{:T(128)} get-tuple-element(cp), index=1
  ROOT lt = pred[]{:T(512)} compare(ci, ci), direction=LT
}

body {
  bp = (A, s32[]{:T(128)}) parameter(0)
  v = A get-tuple-element(bp), index=0
  i = s32[]{:T(128)} get-tuple-element(bp), index=1
  w = A negate(v)
  u = A negate(w)
  ROOT t = (A, s32[]{:T(128)}) tuple(u, i)
}

ENTRY e (x: f32[512,512], n: s32[]) -> f32[512,512] {
  x = A parameter(0)
  n = s32[]{:T(128)} parameter(1)
  a = A negate(x)
  init = (A, s32[]{:T(128)}) tuple(a, n)
  loop = (A, s32[]{:T(128)}) while(init), condition=cond, body=body
  g = A get-tuple-element(loop), index=0
  ROOT r = A negate(g)
}",
    );
    let module = Module::parse(&*text).unwrap();
    let plan = MemoryPlan::new(&module, &PlanOptions::new(Generation::V5e)).unwrap();
    let space = plan.space(0).unwrap();
    let of = |name: &str, path: &[usize]| {
        let mut all = space.values.iter();
        all.find(|a| module.instruction(a.instruction).unwrap().name() == name && a.shape_index() == path).unwrap()
    };
    // A loop's inputs, carried values and results lie together; the loop's own value beside them.
    assert_eq!(of("a", &[]).buffer, of("u", &[]).buffer);
    assert_eq!(of("bp", &[0]).buffer, of("u", &[]).buffer);
    assert_eq!(of("loop", &[0]).offset, of("a", &[]).offset);
    assert_ne!(of("w", &[]).offset, of("a", &[]).offset);
    // The counter isn't changed: it is the argument all along, and takes nothing.
    assert!(!space.values.iter().any(|a| a.shape_index() == [1] && a.role == Role::Temporary));
    // Two arrays and the carry's table, each of which begins at a multiple of 16384.
    assert_eq!(plan.temporary_bytes(), 2 * MIB + 16384);
    let names: Vec<&str> = plan.order().map(|at| module.instruction(at).unwrap().name()).collect();
    assert_eq!(names[..6], ["x", "n", "a", "init", "cp", "ci"]);
    assert_eq!(names[names.len() - 3..], ["loop", "g", "r"]);
}

#[test]
fn donated_arguments_hold_results() {
    let text = program(
        "ENTRY e (x: f32[512,512]) -> f32[512,512] {
  x = A parameter(0)
  ROOT r = A negate(x)
}",
    );
    let donated = text.replace("is_scheduled=true", "is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }");
    for (text, alias, alive) in [(&text, 0, 2 * MIB), (&donated, MIB, MIB)] {
        let plan = plan(text);
        assert_eq!((plan.argument_bytes, plan.output_bytes, plan.alias_bytes), (MIB, MIB, alias));
        assert_eq!(plan.space(0).unwrap().peak_live_bytes(), alive);
        assert_eq!(plan.total_bytes(), alive);
    }
}

#[test]
fn an_update_in_a_fusion_stays_in_place() {
    let text = program(
        "%fused {
  p0 = A parameter(0)
  p1 = f32[8,512]{1,0:T(8,128)} parameter(1)
  z = s32[]{:T(128)} constant(0)
  ROOT u = A dynamic-update-slice(p0, p1, z, z)
}

ENTRY e (x: f32[512,512], y: f32[8,512]) -> f32[512,512] {
  x = A parameter(0)
  y = f32[8,512]{1,0:T(8,128)} parameter(1)
  a = A negate(x)
  f = A fusion(a, y), kind=kLoop, calls=%fused
  ROOT r = A negate(f)
}",
    );
    assert_eq!(offsets(&text), named(&[("a", 0), ("f", 0)]));
    assert_eq!(plan(&text).temporary_bytes(), MIB);
    // XLA writes names with and without `%`.
    assert_eq!(offsets(&text.replace('%', "")), named(&[("a", 0), ("f", 0)]));
}

#[test]
fn the_result_of_a_slice_start_is_alive_until_its_done() {
    let text = program(
        "ENTRY e (x: f32[512,512]) -> f32[512,512] {
  x = A parameter(0)
  s = ((A), A, u32[]{:S(2)}) slice-start(x), slice={[0:512], [0:512]}
  a = A negate(x)
  d = A slice-done(s)
  ROOT r = A add(a, d)
}",
    );
    let module = Module::parse(&*text).unwrap();
    let plan = MemoryPlan::new(&module, &PlanOptions::new(Generation::V5e)).unwrap();
    let hidden = plan.space(0).unwrap().values.iter().find(|a| a.is_hidden).unwrap();
    assert_eq!((module.instruction(hidden.instruction).unwrap().name(), &hidden.shape_index()[..]), ("s", &[1][..]));
    assert_eq!(offsets(&text).into_iter().map(|(_, offset)| offset).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn scalars_in_registers_need_no_memory() {
    let text = program(
        "ENTRY e (n: s32[]) -> s32[] {
  n = s32[]{:T(128)} parameter(0)
  a = s32[]{:T(128)} add(n, n)
  ROOT r = s32[]{:T(128)} add(a, n)
}",
    );
    assert_eq!(plan(&text).temporary_bytes(), 0);
    // So do arrays of one element, of whatever rank and type.
    for (shape, opcode) in [("bf16[1,1]{1,0:T(2,128)(2,1)}", "add"), ("s8[1]{0:T(512)(128)(4,1)}", "maximum")] {
        let text = text.replace("s32[]{:T(128)}", shape).replace("add(n", &format!("{opcode}(n"));
        assert_eq!(plan(&text).temporary_bytes(), 0, "{text}");
    }
    // A fusion's scalar lies in memory.
    let fused = text.replace("a = s32[]{:T(128)} add(n, n)", "a = s32[]{:T(128)} fusion(n), kind=kLoop, calls=f");
    assert_eq!(plan(&fused).temporary_bytes(), 16384);
}

#[test]
fn near_the_limit_the_lower_packing_counts() {
    // By definition b (1) goes below c (2), and d (3) finds no gap; the largest first leaves none.
    let text = program(
        "ENTRY e (x: f32[512,512]) -> f32[512,512] {
  x = A parameter(0)
  a = A negate(x)
  b = A negate(a)
  c = A negate(b)
  d = f32[1024,512]{1,0:T(8,128)} fusion(c), kind=kLoop, calls=g
  ROOT r = A fusion(d, c), kind=kLoop, calls=h
}",
    );
    let module = Module::parse(&*text).unwrap();
    let far = PlanOptions::new(Generation::V5e).with_hbm_limit(16 << 30);
    let near = PlanOptions::new(Generation::V5e).with_hbm_limit(1 << 30);
    let usual = MemoryPlan::new(&module, &far).unwrap();
    assert!(usual.other_packing.is_none() && usual.packing == Packing::FastMerge);
    let tried = MemoryPlan::new(&module, &near).unwrap();
    let (other, bytes) = tried.other_packing.expect("both were tried");
    assert_ne!(tried.packing, other);
    assert!(tried.temporary_bytes() <= bytes && tried.temporary_bytes() <= usual.temporary_bytes());
}

#[test]
fn an_unscheduled_module_has_no_plan() {
    let module = Module::parse("HloModule m\nENTRY e {\n  ROOT x = f32[8] parameter(0)\n}\n").unwrap();
    let error = MemoryPlan::new(&module, &PlanOptions::new(Generation::V5e)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unscheduled);
}
