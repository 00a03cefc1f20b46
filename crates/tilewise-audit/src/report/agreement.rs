//! Compares the plan with the compiler's own.

use super::{
    plan_row::PlanRow,
    rows::{Agreement, PlacedElsewhere},
    sections::Report,
};
use crate::dump;
use foldhash::HashMap;
use tilewise::ShapeKind;
use tilewise_hlo::{AssignedBuffer, BufferAssignment};
use tilewise_memory::Role;

/// The plan's values, by instruction and index path in its result.
type Planned<'a> = HashMap<(&'a str, Vec<usize>), PlanRow<'a>>;

impl Report {
    /// Compares the offsets of temporaries, relative to the start of each of the compiler's allocations. Tuples'
    /// tables, which lie apart in no fixed order, and instructions that the text leaves out aren't compared. `None`
    /// without a plan.
    #[must_use]
    pub fn agreement(&self, assignment: &BufferAssignment) -> Option<Agreement> {
        self.plan().ok()?;
        let planned: Planned<'_> =
            self.plan_rows().map(|row| ((row.instruction.name(), row.value.shape_index()), row)).collect();
        let planned_bytes = self.memory_bounds.temporary_bytes.unwrap_or_default();
        let temporary_bytes = self.temporary_bytes_of(assignment, &planned, planned_bytes);
        let mut agreement =
            Agreement { temporary_bytes, planned_bytes, is_whole: assignment.is_whole(), ..Agreement::default() };
        for allocation in assignment.allocations().iter().filter(|allocation| allocation.is_temporary()) {
            let mut base = None;
            for value in allocation.values.iter().filter(|value| value.size > 0) {
                let name = value.instruction.as_str();
                let row = planned.get(&(name, value.shape_index.clone()));
                let row = row.filter(|row| row.value.role == Role::Temporary && !row.value.is_hidden);
                let Some(offset) = row.and_then(|row| row.value.offset) else { continue };
                agreement.values += 1;
                let here = i128::from(offset) - i128::from(value.offset);
                let expected = *base.get_or_insert(here);
                if here != expected {
                    let instruction = name.to_owned();
                    let compilers = i128::from(value.offset) + expected;
                    agreement.differences.push(PlacedElsewhere { instruction, offset, compilers });
                }
            }
        }
        Some(agreement)
    }

    /// Bytes of the compiler's temporaries: the planned bytes, if they lie between the extent of its arrays and the
    /// size of its allocations, which include tuples' tables and on a TPU are rounded up; else the nearer bound.
    fn temporary_bytes_of(&self, assignment: &BufferAssignment, planned: &Planned<'_>, planned_bytes: u64) -> u64 {
        let is_table = |value: &AssignedBuffer| {
            let row = planned.get(&(value.instruction.as_str(), value.shape_index.clone()));
            row.and_then(PlanRow::shape).is_some_and(|shape| matches!(shape.kind(), ShapeKind::Tuple))
        };
        let held = assignment.allocations().iter();
        let held = held.filter(|allocation| allocation.is_temporary() && allocation.memory_space == 0);
        let (mut least, mut most) = (0u64, 0u64);
        for allocation in held {
            let arrays = || allocation.values.iter().filter(|value| !is_table(value));
            let end = arrays().map(|value| value.offset.saturating_add(value.size)).max();
            let start = arrays().map(|value| value.offset).min();
            least = least.saturating_add(end.zip(start).map_or(0, |(end, start)| end - start));
            most = most.saturating_add(allocation.size.saturating_add(self.machine.temporary_alignment() - 1));
        }
        // If the text may lack its end, so may the allocations.
        let most = if assignment.is_whole() { most } else { u64::MAX };
        planned_bytes.clamp(least, most.max(least))
    }

    /// Compares with the compiler's own plan, for [`compiler_plan`](Self::compiler_plan), if it [is of this
    /// program](dump::is_plan_of); returns whether it is.
    pub fn take_plan(&mut self, assignment: &BufferAssignment) -> bool {
        let is_ours = dump::is_plan_of(assignment, &self.planned.module);
        if is_ours {
            self.compare_with(assignment);
        }
        is_ours
    }

    /// Sets [`compiler_plan`](Self::compiler_plan). If the sizes of temporaries differ, the compiler's bytes count.
    pub(super) fn compare_with(&mut self, assignment: &BufferAssignment) {
        self.compiler_plan = self.agreement(assignment);
        let Some(agreement) = self.compiler_plan.as_ref().filter(|agreement| !agreement.has_equal_bytes()) else {
            return;
        };
        let (planned, compilers) = (agreement.planned_bytes, agreement.temporary_bytes);
        let bounds = &mut self.memory_bounds;
        bounds.temporary_bytes = Some(compilers);
        bounds.at_most_bytes = bounds.at_most_bytes.saturating_sub(planned).saturating_add(compilers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_lies_elsewhere_is_named() {
        let text = "HloModule m, is_scheduled=true\nENTRY e {\n  x = f32[8]{0:T(128)} parameter(0)\n  \
                    a = f32[8]{0:T(128)} negate(x)\n  b = f32[8]{0:T(128)} negate(x)\n  \
                    ROOT c = f32[8]{0:T(128)} add(a, b)\n}\n";
        let mut report = crate::audit(&tilewise_hlo::Module::parse(text).expect("a module"));
        let mut dump = |first: &str, offset: u64| {
            let text = format!(
                "BufferAssignment:\nallocation 0: size 32768, page 0, preallocated-temp:\n \
                 value: <1 {first} @0> (size=512,offset=512): f32[8]{{0:T(128)}}\n \
                 value: <2 b @0> (size=512,offset={offset}): f32[8]{{0:T(128)}}\n"
            );
            let is_ours = report.take_plan(&BufferAssignment::parse(&text).expect("an assignment"));
            (is_ours, report.compiler_plan.clone().unwrap_or_default())
        };
        assert_eq!(dump("of_another", 1024), (false, Agreement::default()));
        let agreement = Agreement { values: 2, temporary_bytes: 32768, planned_bytes: 32768, ..Agreement::default() };
        assert_eq!(dump("a", 512 + 16384), (true, agreement));
        let elsewhere = PlacedElsewhere { instruction: "b".to_owned(), offset: 16384, compilers: 512 };
        assert_eq!(dump("a", 1024).1.differences, [elsewhere]);
    }

    #[test]
    fn bytes_of_the_compilers_plan_count_where_it_takes_more() {
        let text = "HloModule m, is_scheduled=true\nENTRY e {\n  x = f32[8]{0:T(128)} parameter(0)\n  \
                    a = f32[8]{0:T(128)} negate(x)\n  ROOT c = f32[8]{0:T(128)} add(a, a)\n}\n";
        let taken = |size: u64, array: u64| {
            let mut report = crate::audit(&tilewise_hlo::Module::parse(text).expect("a module"));
            let plan = format!(
                "BufferAssignment:\nallocation 0: size {size}, page 0, preallocated-temp:\n \
                 value: <1 a @0> (size={array},offset=0): f32[8]{{0:T(128)}}\n"
            );
            assert!(report.take_plan(&BufferAssignment::parse(&plan).expect("an assignment")));
            (report.memory_bounds.temporary_bytes, report.memory_bounds.at_most_bytes)
        };
        let planned = taken(512, 512);
        assert_eq!(planned.0, Some(16384));
        // Room for tables doesn't count as more bytes.
        assert_eq!(taken(3 * 16384, 512), planned);
        assert_eq!(taken(3 * 16384, 2 * 16384), (Some(2 * 16384), planned.1 + 16384));
    }

    #[test]
    fn a_plan_that_may_lack_its_end_makes_nothing_smaller() {
        let text = "HloModule m, is_scheduled=true\nENTRY e {\n  x = f32[65536]{0:T(1024)} parameter(0)\n  \
                    a = f32[65536]{0:T(1024)} negate(x)\n  ROOT c = f32[65536]{0:T(1024)} add(a, a)\n}\n";
        let taken = |end: &str| {
            let mut report = crate::audit(&tilewise_hlo::Module::parse(text).expect("a module"));
            let plan = format!(
                "BufferAssignment:\nallocation 0: size 512, page 0, preallocated-temp:\n \
                 value: <1 a @0> (size=512,offset=0): f32[65536]{{0:T(1024)}}\n{end}"
            );
            assert!(report.take_plan(&BufferAssignment::parse(&plan).expect("an assignment")));
            report.memory_bounds.temporary_bytes
        };
        assert_eq!(taken(""), Some(4 * 65536));
        assert_eq!(taken("Total bytes used: 512 (512B)\n"), Some(16384 + 511));
    }
}
