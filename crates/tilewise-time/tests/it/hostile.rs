//! Texts that no compiler prints.

use crate::{priced, time};
use std::fmt::Write;
use tilewise::tpu::Generation;
use tilewise_time::{Basis, NoTime, Time};

const SHAPE: &str = "f32[1024,1024]{1,0:T(8,128)}";

fn program(instructions: &str) -> String {
    format!("HloModule m, is_scheduled=true\nENTRY main {{\n  x = {SHAPE} parameter(0)\n{instructions}}}")
}

#[test]
fn an_unknown_figure_enters_no_sum() {
    let unknown = priced("y", "x", "9223372036854775807") + &priced("ROOT z", "y", "15000");
    let time = time(&program(&unknown), Generation::V5e).unwrap();
    assert_eq!((time.cycles(), time.is_at_least), (15_000, true));
    assert_eq!(time.rows[0].basis, Basis::Unknown);
    assert!(time.total.compiler < 1.0);
}

#[test]
fn sums_of_huge_figures_stand_at_the_largest_number() {
    let huge = (0..8).map(|k| priced(&format!("y{k}"), "x", "9223372036854775806")).collect::<String>();
    let time = time(&program(&huge), Generation::V5e).unwrap();
    assert_eq!(time.cycles(), u64::MAX);
    assert!(time.total.compiler.is_finite());
}

/// Each computation calls the one before twice: 2^200 executions of the first, and 2^2000, which no float holds.
#[test]
fn calls_that_double_are_walked_once_each() {
    let deep = calls_that_double(2000);
    let total = deep.total;
    assert!(total.estimate.is_finite() && total.since(total).is_zero() && deep.bound_share().is_finite());
    let time = calls_that_double(200);
    assert_eq!((time.cycles(), time.rows[0].executions), (u64::MAX, u64::MAX));
    assert!(time.total.estimate.is_finite() && time.total.estimate > 1e50);
}

fn calls_that_double(times: usize) -> Time {
    let mut text = String::from("HloModule m, is_scheduled=true\n");
    let body = |name: &str, lines: &str| format!("{name} {{\n  x = {SHAPE} parameter(0)\n{lines}}}\n");
    text += &body("f0", &priced("ROOT y", "x", "15000"));
    for k in 1..=times {
        let call = |name: &str, operand: &str| format!("  {name} = {SHAPE} call({operand}), to_apply=f{}\n", k - 1);
        let name = if k == times { format!("ENTRY f{k}") } else { format!("f{k}") };
        text += &body(&name, &(call("y", "x") + &call("ROOT z", "y")));
    }
    time(&text, Generation::V5e).unwrap()
}

#[test]
fn deep_nesting_takes_no_stack() {
    const DEPTH: usize = 100_000;
    let mut text = String::from("HloModule m, is_scheduled=true\n");
    for k in 0..=DEPTH {
        let entry = if k == DEPTH { "ENTRY " } else { "" };
        let line = match k {
            0 => priced("ROOT y", "x", "15000"),
            _ => format!("  ROOT y = {SHAPE} call(x), to_apply=f{}\n", k - 1),
        };
        let _ = write!(text, "{entry}f{k} {{\n  x = {SHAPE} parameter(0)\n{line}}}\n");
    }
    assert_eq!(time(&text, Generation::V5e).unwrap().cycles(), 15_000);
    // As fusions.
    let fused = text.replace("call(x), to_apply=", "fusion(x), kind=kLoop, calls=");
    assert_eq!(time(&fused, Generation::V5e).unwrap_err(), NoTime::BeforeCodeGeneration);
}

/// Each fusion fuses the one before twice: 2^1000 products, counted once each.
#[test]
fn fusions_that_double_are_looked_at_once_each() {
    let product = format!("  ROOT y = {SHAPE} dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n");
    let mut text = format!("HloModule m, is_scheduled=true\nf0 {{\n  x = {SHAPE} parameter(0)\n{product}}}\n");
    for k in 1..=1000 {
        let fusion =
            |name: &str, operand: &str| format!("  {name} = {SHAPE} fusion({operand}), kind=kLoop, calls=f{}\n", k - 1);
        let _ = write!(text, "f{k} {{\n  x = {SHAPE} parameter(0)\n{}{}}}\n", fusion("y", "x"), fusion("ROOT z", "y"));
    }
    let fused = priced("ROOT y", "x", "15000").replace("negate(x),", "fusion(x), kind=kLoop, calls=f1000,");
    let _ = write!(text, "ENTRY main {{\n  x = {SHAPE} parameter(0)\n{fused}}}\n");
    let time = time(&text, Generation::V5e).unwrap();
    assert_eq!((time.rows[0].flops, time.cycles()), (u64::MAX, 15_000));
}

/// A loop's body that runs the loop, by itself or through another's.
#[test]
fn loops_that_run_each_other_are_refused() {
    let body = |name: &str, inner: &str| {
        format!(
            "{name} {{\n  x = {SHAPE} parameter(0)\n{}  ROOT z = {SHAPE} while(y), condition=c, body={inner}\n}}\n",
            priced("y", "x", "15000")
        )
    };
    let condition = format!("c {{\n  x = {SHAPE} parameter(0)\n  ROOT p = pred[]{{:T(512)}} custom-call(x)\n}}\n");
    for bodies in [body("a", "a"), body("a", "b") + &body("b", "a")] {
        let entry = body("ENTRY main", "a");
        let refused = time(&format!("HloModule m, is_scheduled=true\n{condition}{bodies}{entry}"), Generation::V5e);
        assert_eq!(refused.map(|time| time.cycles()).unwrap_err(), NoTime::Circle);
    }
}

#[test]
fn circles_are_refused() {
    let text = format!(
        "HloModule m, is_scheduled=true\nENTRY main {{\n  x = {SHAPE} parameter(0)\n  ROOT y = {SHAPE} call(x), to_apply=main\n}}"
    );
    let refused = time(&text, Generation::V5e).map(|time| time.cycles());
    assert!(matches!(refused, Err(NoTime::Circle | NoTime::NothingPriced)), "{refused:?}");
}

#[test]
fn texts_that_tell_nothing_are_refused() {
    let unpriced = format!("  ROOT y = {SHAPE} negate(x)\n");
    assert_eq!(time(&program(&unpriced), Generation::V5e).unwrap_err(), NoTime::NothingPriced);
    let unscheduled = program(&priced("ROOT y", "x", "15000")).replace(", is_scheduled=true", "");
    assert_eq!(time(&unscheduled, Generation::V5e).unwrap_err(), NoTime::Unscheduled);
    let reason = NoTime::BeforeCodeGeneration.to_string();
    assert!(reason.contains("as_text()") && reason.contains("after_codegen.txt"), "{reason}");
}

/// A program cut at every line is refused or priced, and ends.
#[test]
fn cut_texts_do_no_harm() {
    let text = tilewise_testing::programs::text("sampler_loop.v6e.hlo");
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    for end in ends.iter().step_by(7) {
        if let Ok(module) = tilewise_hlo::Module::parse(&text[..*end]) {
            let _ = tilewise_time::Time::of(&tilewise_hlo::dataflow::Dataflow::new(&module), Generation::V6e);
        }
    }
}
