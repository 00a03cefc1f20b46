//! Texts that no compiler printed: an answer or an error, never a panic, in time that the text accounts for.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use std::fmt::Write;

use tilewise::tpu::Generation;
use tilewise_hlo::Module;
use tilewise_memory::{Error, ErrorKind, MemoryPlan, PlanOptions};
use tilewise_testing::programs;

fn plan(text: &str) -> Result<MemoryPlan, Error> {
    MemoryPlan::new(&Module::parse(text).unwrap(), &PlanOptions::new(Generation::V5e))
}

#[test]
fn what_is_missing_is_named() {
    let error = plan("HloModule m, is_scheduled=true\nENTRY e {\n  ROOT x = f32[8] negate(y)\n}\n").unwrap_err();
    assert_eq!(error.to_string(), "`x` reads `y`, which isn't defined before it");
    let error = plan("HloModule m, is_scheduled=true\nENTRY e {\n  ROOT x = f33[8] parameter(0)\n}\n").unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidShape, "the shape of `x` isn't valid"));
    let huge = "s8[2147483648,2147483648]{1,0:T(8,128)(4,1)}";
    let lines: String = (0..5).map(|k| format!("  x{k} = {huge} parameter({k})\n")).collect();
    let error = plan(&format!("HloModule m, is_scheduled=true\nENTRY e {{\n{lines}}}\n"));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Overflow);
}

#[test]
fn programs_with_lines_left_out_or_repeated() {
    let mut planned = 0;
    for name in ["host_weights_scan.v5e.hlo", "ragged_all_to_all.v5p.hlo", "pallas_prefetch_alias.v7x.hlo"] {
        let text = programs::text(name);
        let lines: Vec<&str> = text.lines().collect();
        for at in 1..lines.len() {
            let without = [&lines[..at], &lines[at + 1..]].concat().join("\n");
            let twice = [&lines[..=at], &lines[at..]].concat().join("\n");
            let other = [&lines[..at], &[lines[lines.len() - at]], &lines[at..]].concat().join("\n");
            for text in [without, twice, other] {
                if let Ok(module) = Module::parse(text) {
                    planned += usize::from(MemoryPlan::new(&module, &PlanOptions::new(Generation::V7x)).is_ok());
                }
            }
        }
    }
    assert!(planned > 100, "{planned}");
}

#[test]
fn operands_of_other_shapes_than_their_users_expect() {
    for line in [
        "ROOT y = f32[8] get-tuple-element(x), index=99",
        "ROOT y = (f32[8], f32[8]) tuple(x)",
        "ROOT y = f32[8] while(x), condition=e, body=e",
        "ROOT y = f32[8] while(x), condition=no, body=no",
        "ROOT y = f32[8] conditional(x), branch_computations={e}",
        "ROOT y = f32[8] call(), to_apply=f",
        "ROOT y = f32[8] fusion(x), calls=e",
        "ROOT y = f32[8] async-done(x)",
        "ROOT y = f32[8] async-update(x), calls=f",
        "ROOT y = f32[8] slice-start(x)",
        "ROOT y = f32[8] copy-done(x)",
        "ROOT y = f32[8] collective-permute-start(x, x, x, x)",
        "ROOT y = f32[8] all-gather-done(x)",
        "ROOT y = f32[8] scatter(x)",
        "ROOT y = f32[8] dynamic-update-slice()",
        "ROOT y = (f32[8], ()) send()",
    ] {
        let text = format!(
            "HloModule m, is_scheduled=true\nf {{\n  ROOT p = f32[8] parameter(7)\n}}\nENTRY e {{\n  x = (f32[8], (f32[8])) parameter(0)\n  {line}\n}}\n"
        );
        let _ = plan(&text);
    }
}

#[test]
fn long_chains_and_deep_nests_neither_recurse_nor_take_long() {
    let mut text = "HloModule m, is_scheduled=true\n".to_owned();
    let depth = 3000;
    for k in 0..depth {
        let inner = if k == 0 { "negate(p)".to_owned() } else { format!("while(p), condition=c, body=b{}", k - 1) };
        writeln!(text, "b{k} {{\n  p = f32[8]{{0:T(256)}} parameter(0)\n  ROOT r = f32[8]{{0:T(256)}} {inner}\n}}")
            .unwrap();
    }
    text += "c {\n  q = f32[8]{0:T(256)} parameter(0)\n  ROOT t = pred[]{:T(512)} constant(true)\n}\n";
    writeln!(text, "ENTRY e {{\n  x0 = f32[8]{{0:T(256)}} parameter(0)").unwrap();
    writeln!(text, "  x1 = f32[8]{{0:T(256)}} while(x0), condition=c, body=b{}", depth - 1).unwrap();
    for k in 1..20_000 {
        writeln!(text, "  x{} = f32[8]{{0:T(256)}} add(x{k}, x{})", k + 1, k / 2).unwrap();
    }
    text += "}\n";
    plan(&text).unwrap();
}

#[test]
fn a_wide_tuple_taken_apart() {
    let wide = 20_000;
    let shape = vec!["f32[8]{0:T(256)}"; wide].join(", ");
    let mut text = format!("HloModule m, is_scheduled=true\nENTRY e {{\n  p = ({shape}) parameter(0)\n");
    for k in 0..wide {
        writeln!(text, "  g{k} = f32[8]{{0:T(256)}} get-tuple-element(p), index={k}").unwrap();
    }
    text += "}\n";
    assert_eq!(plan(&text).unwrap().argument_bytes, 20_000 * 1024 + (4 * 20_000_u64).next_multiple_of(512));
}

#[test]
fn hidden_computations_do_not_multiply_their_operands() {
    let shape = vec!["f32[8]"; 2000].join(", ");
    let operands = vec!["p"; 2000].join(", ");
    let text = format!(
        "HloModule m, is_scheduled=true\nENTRY e {{\n  p = ({shape}) parameter(0)\n  ROOT s = ((f32[8]), f32[8]) slice-start({operands})\n}}\n"
    );
    assert_eq!(plan(&text).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn a_long_chain_of_updates_in_one_place() {
    let mut text = "HloModule m, is_scheduled=true\nENTRY e {\n  x = f32[8]{0:T(256)} parameter(0)\n".to_owned();
    text += "  d0 = f32[8]{0:T(256)} negate(x)\n";
    let count = 100_000;
    for k in 0..count {
        writeln!(text, "  d{} = f32[8]{{0:T(256)}} dynamic-update-slice(d{k}, x, x)", k + 1).unwrap();
    }
    writeln!(text, "  ROOT r = f32[8]{{0:T(256)}} negate(d{count})\n}}").unwrap();
    let plan = plan(&text).unwrap();
    assert_eq!((plan.temporary_bytes(), plan.space(0).unwrap().peak_temporary_live_bytes), (16384, 1024));
}
