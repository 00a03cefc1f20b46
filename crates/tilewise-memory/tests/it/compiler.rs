//! Plans against libtpu's own figures for the programs in `testing/programs`.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use std::collections::HashMap;

use tilewise::tpu::Generation;
use tilewise_hlo::Module;
use tilewise_memory::{AssignedValue, MemoryPlan, PlanOptions, Planner, Role};
use tilewise_testing::programs;

fn plans() -> impl Iterator<Item = (Vec<String>, Module, MemoryPlan)> {
    programs::table("sizes.csv").into_iter().map(|row| {
        let module = tilewise_hlo::read(programs::path(&row[0])).unwrap();
        let plan = MemoryPlan::new(&module, &PlanOptions::new(row[1].parse::<Generation>().unwrap())).unwrap();
        (row, module, plan)
    })
}

#[test]
fn totals_are_the_compilers() {
    for (row, _, plan) in plans() {
        let found = [plan.argument_bytes, plan.output_bytes, plan.alias_bytes, plan.temporary_bytes()];
        assert_eq!(found.map(|bytes| bytes.to_string()), row[2..6], "{}", row[0]);
    }
}

#[test]
fn offsets_are_the_compilers() {
    let mut checked = 0;
    let expected = programs::table("offsets.csv");
    for (row, module, plan) in plans() {
        let mut found = HashMap::new();
        for allocation in plan.spaces.iter().flat_map(|space| &space.values) {
            let name = module.instruction(allocation.instruction).unwrap().name();
            let path: Vec<String> = allocation.shape_index().iter().map(usize::to_string).collect();
            found.insert((name, path.join(".")), allocation.offset);
        }
        // Each of the compiler's allocations starts somewhere; within it, offsets are to agree.
        let mut bases: HashMap<&str, i128> = HashMap::new();
        for value in expected.iter().filter(|value| value[0] == row[0]) {
            let offset = found.get(&(value[1].as_str(), value[2].clone())).copied().flatten();
            let offset = offset.unwrap_or_else(|| panic!("{}: {} has no offset", row[0], value[1]));
            let base = i128::from(offset) - value[4].parse::<i128>().unwrap();
            assert_eq!(*bases.entry(&value[3]).or_insert(base), base, "{}: {}", row[0], value[1]);
            checked += 1;
        }
    }
    assert_eq!(checked, expected.len());
}

#[test]
fn what_lives_at_one_time_lies_apart() {
    // Values that touch in time may share a piece, so only overlaps in the open interval count.
    let overlap = |a: &AssignedValue, b: &AssignedValue| {
        let (Some(at), Some(bt)) = (a.offset, b.offset) else { return false };
        a.first < b.last && b.first < a.last && at < bt + b.bytes && bt < at + a.bytes
    };
    for (row, _, plan) in plans() {
        let heap = &plan.space(0).unwrap().values;
        let heap: Vec<&AssignedValue> = heap.iter().filter(|a| a.role == Role::Temporary && a.first < a.last).collect();
        for (k, a) in heap.iter().enumerate() {
            let clash = heap[..k].iter().find(|b| b.buffer != a.buffer && b.offset != a.offset && overlap(a, b));
            assert!(clash.is_none(), "{}: {a:?} and {clash:?}", row[0]);
        }
    }
}

#[test]
fn the_peak_is_the_sum_of_what_is_alive() {
    for (row, _, plan) in plans() {
        for space in &plan.spaces {
            let Some(peak) = &space.peak else { continue };
            let sum: u64 = peak.live.iter().map(|piece| piece.bytes).sum();
            assert_eq!(sum, space.peak_live_bytes(), "{}, space {}", row[0], space.memory_space);
            assert!(space.peak_temporary_live_bytes <= space.layout_bytes, "{}", row[0]);
        }
    }
}

/// The total alone is that of the plan, whatever the sizes of buffers.
#[test]
fn a_total_is_its_plans() {
    for (row, module, plan) in plans() {
        let planner = Planner::new(&module, PlanOptions::new(row[1].parse::<Generation>().unwrap())).unwrap();
        for part in 1..4 {
            let bytes = |buffer: usize, bytes: u64| (buffer % 3 < part).then_some(bytes / part as u64);
            let resized = planner.plan_resized(plan.packing, bytes).unwrap();
            assert_eq!(planner.total_resized(plan.packing, bytes).unwrap(), resized.total_bytes(), "{}", row[0]);
        }
    }
}
