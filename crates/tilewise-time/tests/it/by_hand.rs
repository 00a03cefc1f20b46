//! Small programs, worked out by hand.

use crate::{priced, time};
use tilewise::tpu::Generation;
use tilewise_hlo::{Module, dataflow::Dataflow};
use tilewise_time::{Basis, Cores, Estimate, Kind, Time};

const MIB_4: &str = "f32[1024,1024]{1,0:T(8,128)}";

fn close(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 1e-9
}

/// A loop of 12 turns around one operation of 15,000 cycles.
fn looped(condition: &str) -> String {
    let carry = format!("(s32[]{{:T(128)}}, {MIB_4})");
    format!(
        "HloModule m, is_scheduled=true
body {{
  p = {carry} parameter(0)
  i = s32[]{{:T(128)}} get-tuple-element(p), index=0
  x = {MIB_4} get-tuple-element(p), index=1
  one = s32[]{{:T(128)}} constant(1)
  next = s32[]{{:T(128)}} add(i, one)
{}  ROOT t = {carry} tuple(next, y)
}}
condition {{
  p = {carry} parameter(0)
  i = s32[]{{:T(128)}} get-tuple-element(p), index=0
  n = s32[]{{:T(128)}} {condition}
  ROOT less = pred[] compare(i, n), direction=LT
}}
ENTRY main {{
  x = {MIB_4} parameter(0)
  zero = s32[]{{:T(128)}} constant(0)
  start = {carry} tuple(zero, x)
  ROOT loop = {carry} while(start), condition=condition, body=body
}}",
        priced("y", "x", "15000")
    )
}

#[test]
fn loops_count_times_their_trips() {
    let known = time(&looped("constant(12)"), Generation::V5e).unwrap();
    assert_eq!((known.cycles(), known.is_at_least, known.loops[0].trips), (12 * 15_000, false, Some(12)));
    let row = known.rows.iter().find(|row| row.cycles.is_some()).unwrap();
    assert_eq!((row.executions, row.kind, row.basis), (12, Kind::Elementwise, Basis::Cycles));
    // 1.5 GHz.
    assert!(close(row.each.compiler, 1e-5));
    let unknown = time(&looped("custom-call(), custom_call_target=\"n\""), Generation::V5e).unwrap();
    assert_eq!((unknown.cycles(), unknown.is_at_least, unknown.loops[0].trips), (15_000, true, None));
}

#[test]
fn three_figures_of_narrow_and_wide_types() {
    // 64 Mi elements, read and written; figures of a v6e from copies of each type.
    let copy = |shape: &str, cycles: u64| {
        let text = format!(
            "HloModule m, is_scheduled=true\nENTRY main {{\n  x = {shape} parameter(0)\n  ROOT y = {shape} copy(x), \
             backend_config={{\"window_config\":{{\"estimated_cycles\":\"{cycles}\"}}}}\n}}"
        );
        time(&text, Generation::V6e).unwrap().total
    };
    let wide = copy("f32[8192,8192]{1,0:T(8,128)}", 709_504);
    let narrow = copy("bf16[8192,8192]{1,0:T(8,128)(2,1)}", 709_760);
    assert!(close(wide.floor, 2.0 * f64::from(1 << 28) / 1640e9));
    assert!(close(wide.compiler, 709_504.0 / 1.75e9));
    assert!(close(wide.estimate, wide.compiler), "four bytes are what the compiler charges");
    assert!(close(narrow.floor, wide.floor / 2.0));
    // Half of the bytes, and 1.5 µs to start.
    assert!(close(narrow.estimate, narrow.compiler / 2.0 + 1.5e-6));
}

#[test]
fn copies_hide_behind_what_runs_meanwhile() {
    let text = |cycles: &str| {
        format!(
            "HloModule m, is_scheduled=true
ENTRY main {{
  x = {MIB_4} parameter(0)
  s = ({MIB_4}, {MIB_4}, u32[]{{:S(2)}}) copy-start(x)
{}  d = {MIB_4} copy-done(s)
  ROOT t = ({MIB_4}, {MIB_4}) tuple(y, d)
}}",
            priced("y", "x", cycles)
        )
    };
    // 4 MiB are read and written at 819 GB/s.
    let copied = 2.0 * f64::from(4 << 20) / 819e9;
    let hidden = time(&text("150000"), Generation::V5e).unwrap();
    assert!(hidden.rows.iter().all(|row| row.kind != Kind::DmaWait || row.each.compiler == 0.0));
    let exposed = time(&text("1500"), Generation::V5e).unwrap();
    let wait = exposed.rows.iter().find(|row| row.kind == Kind::DmaWait).unwrap();
    assert_eq!(wait.basis, Basis::Wait);
    assert!(close(wait.each.compiler, copied - 1e-6));
    assert!(close(exposed.total.compiler, copied));
    assert!(!exposed.is_at_least, "a copy's time is known");
}

/// XLA prints an asynchronous slice in one line, or, before code generation, with the computation that it runs.
#[test]
fn a_slice_takes_what_it_moves() {
    let whole = "f32[16384,1024]{1,0:T(8,128)}";
    let started = format!("s = (({whole}), {MIB_4}, s32[]{{:S(2)}})");
    let text = |before: &str, start: &str, done: &str| {
        format!(
            "HloModule m, is_scheduled=true\n{before}ENTRY main {{\n  x = {whole} parameter(0)\n  {started} {start}\n  ROOT d = {MIB_4} {done}\n}}"
        )
    };
    let slice = "slice={[0:1024], [0:1024]}";
    let short = text("", &format!("slice-start(x), {slice}"), "slice-done(s)");
    let inner = format!("c {{\n  p = {whole} parameter(0)\n  ROOT r = {MIB_4} slice(p), {slice}\n}}\n");
    let long = text(&inner, "async-start(x), calls=c", "async-done(s)");
    let [short, long] = [short, long].map(|text| {
        let module = Module::parse(text).unwrap();
        Time::floor_of(&Dataflow::new(&module), Generation::V5e).unwrap()
    });
    assert!(close(short, 2.0 * f64::from(4 << 20) / 819e9), "{short}");
    assert!(close(long, short), "{long} is not {short}");
}

#[test]
fn conditionals_are_their_slowest_branch() {
    let branch = |name: &str, cycles: &str| {
        format!("{name} {{\n  p = {MIB_4} parameter(0)\n{}}}\n", priced("ROOT y", "p", cycles))
    };
    let text = format!(
        "HloModule m, is_scheduled=true\n{}{}ENTRY main {{
  x = {MIB_4} parameter(0)
  which = s32[] parameter(1)
  ROOT c = {MIB_4} conditional(which, x, x), branch_computations={{low, high}}
}}",
        branch("low", "20000"),
        branch("high", "70000")
    );
    let time = time(&text, Generation::V5e).unwrap();
    assert_eq!((time.cycles(), time.conditionals, time.rows.len()), (70_000, 1, 1));
}

#[test]
fn what_has_no_cycles_is_bounded() {
    let text = format!(
        "HloModule m, is_scheduled=true, num_partitions=4
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY main {{
  x = {MIB_4} parameter(0)
{}  s = {MIB_4} sort(y), dimensions={{1}}, to_apply=sum
  ROOT r = {MIB_4} all-reduce(s), replica_groups={{{{0,1,2,3}}}}, to_apply=sum
}}",
        priced("y", "x", "15000")
    );
    let time = time(&text, Generation::V5e).unwrap();
    assert!(time.is_at_least);
    let seconds = |kind| time.unpriced().into_iter().find(|row| row.kind == kind).unwrap().seconds;
    assert!(close(seconds(Kind::GatherScatterSort), 2.0 * f64::from(4 << 20) / 819e9));
    // Each device sends three quarters twice, over a link of 45 GB/s.
    assert!(close(seconds(Kind::Collective), 1.5 * f64::from(4 << 20) / 45e9));
    assert!(time.bound_share() > 0.5);
}

#[test]
fn cores_are_told_and_halve_what_a_chip_has() {
    let text = |config: &str| {
        format!(
            "HloModule m, is_scheduled=true\nENTRY main {{\n  x = {MIB_4} parameter(0)\n{}}}",
            priced("ROOT y", "x", config)
        )
    };
    let one = time(&text("10500"), Generation::V4).unwrap();
    let both = time(&text("10500\"},\"megacore_config\":{\"megacore_split_dim\":\"0"), Generation::V4).unwrap();
    assert_eq!((one.cores, both.cores), (Cores::One, Cores::Both));
    assert!(close(one.total.floor, 2.0 * both.total.floor));
    assert!(close(one.total.compiler, both.total.compiler), "cycles are of the device, whatever its cores");
}

#[test]
fn figures_add_up_each_by_itself() {
    let (one, other) = (Estimate::of(2.0), Estimate { floor: 1.0, estimate: 3.0, compiler: 4.0 });
    assert_eq!(one.max(other), Estimate { floor: 2.0, estimate: 3.0, compiler: 4.0 });
    assert_eq!(other.since(one), Estimate { floor: 0.0, estimate: 1.0, compiler: 2.0 });
    assert_eq!((one + other).times(2), Estimate { floor: 6.0, estimate: 10.0, compiler: 12.0 });
}
