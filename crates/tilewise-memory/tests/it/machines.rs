//! Plans against XLA's own figures for the programs of GPUs and CPUs in `testing/programs`.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use std::collections::HashMap;

use tilewise_hlo::Module;
use tilewise_memory::{Machine, MemoryPlan, PlanOptions, SpacePlan};
use tilewise_testing::programs;

/// Each row of `machines.csv` with its program, which has the row's name, and its plan.
fn plans() -> impl Iterator<Item = (Vec<String>, Module, MemoryPlan)> {
    let text = tilewise_hlo::read_text(programs::path("machines.hlo.gz")).unwrap();
    let (modules, rows) = (Module::parse_all(text), programs::table("machines.csv"));
    assert_eq!(modules.len(), rows.len());
    rows.into_iter().zip(modules).map(|(row, module)| {
        let (module, machine) = (module.unwrap(), row[1].parse::<Machine>().unwrap());
        assert_eq!(module.name(), row[0]);
        let plan = MemoryPlan::new(&module, &PlanOptions::new(machine)).unwrap();
        (row, module, plan)
    })
}

#[test]
fn totals_are_the_compilers() {
    for (row, _, plan) in plans() {
        let host = plan.space(5).map_or(0, |space| space.temporary_bytes);
        let found = [plan.argument_bytes, plan.output_bytes, plan.alias_bytes, plan.temporary_bytes(), host];
        assert_eq!(found.map(|bytes| bytes.to_string()), row[3..8], "{}", row[0]);
    }
}

/// But for programs in which equal values that live equally long trade places, which the table leaves out.
#[test]
fn offsets_are_the_compilers() {
    let mut expected: HashMap<String, Vec<Vec<String>>> = HashMap::new();
    for row in programs::table("machine_offsets.csv") {
        expected.entry(row[0].clone()).or_default().push(row);
    }
    let mut programs_checked = 0;
    for (row, module, plan) in plans() {
        let mut found = HashMap::new();
        for value in plan.spaces.iter().flat_map(|space: &SpacePlan| &space.values).filter(|value| !value.is_hidden) {
            let name = module.instruction(value.instruction).unwrap().name();
            let path: Vec<String> = value.shape_index().iter().map(usize::to_string).collect();
            found.insert((name, path.join(".")), value.offset);
        }
        let Some(values) = expected.get(&row[0]) else { continue };
        programs_checked += 1;
        for value in values {
            let offset = found.get(&(value[1].as_str(), value[2].clone())).copied().flatten();
            assert_eq!(offset, Some(value[3].parse().unwrap()), "{value:?}");
        }
    }
    assert_eq!(programs_checked, expected.len());
}

#[test]
fn a_cpus_custom_fusion_lies_where_it_is_elementwise() {
    let temporaries = |kind: &str, root: &str| {
        let text = format!(
            "HloModule m, is_scheduled=true

%fused (p0: f32[64,64], p1: f32[64,64]) -> f32[64,64] {{
  %p0 = f32[64,64]{{1,0}} parameter(0)
  %p1 = f32[64,64]{{1,0}} parameter(1)
  %d = f32[64,64]{{1,0}} dot(%p0, %p0)
  ROOT %s = f32[64,64]{{1,0}} {root}
}}

ENTRY %e (x: f32[64,64]) -> f32[64,64] {{
  %x = f32[64,64]{{1,0}} parameter(0)
  %a = f32[64,64]{{1,0}} negate(%x)
  %b = f32[64,64]{{1,0}} exponential(%x)
  %f = f32[64,64]{{1,0}} fusion(%a, %b), kind={kind}, calls=%fused
  ROOT %r = f32[64,64]{{1,0}} dot(%f, %f)
}}
"
        );
        let plan = MemoryPlan::new(&Module::parse(text).unwrap(), &PlanOptions::new(Machine::Cpu)).unwrap();
        plan.temporary_bytes() / (64 * 64 * 4)
    };
    // `a` lies where the result will. `f` takes the place of `b`, of which each element is read where it is written.
    assert_eq!(["kCustom", "kOutput", "kLoop"].map(|kind| temporaries(kind, "multiply(%d, %p1)")), [1; 3]);
    assert_eq!(["kCustom", "kOutput", "kLoop"].map(|kind| temporaries(kind, "dot(%d, %p1)")), [2; 3]);
    // A sum with a product is looked at by itself: what it adds is read nowhere else.
    assert_eq!(["kOutput", "kCustom"].map(|kind| temporaries(kind, "add(%d, %p1)")), [1; 2]);
    assert_eq!(["kOutput", "kCustom"].map(|kind| temporaries(kind, "add(%p1, %p1)")), [2, 1]);
}
