//! A program of a set, and its bytes with another number of pages.

use super::{
    Member,
    argument::{Argument, NewResult, arguments, new_results},
    error,
    growth::Growth,
};
use crate::{
    failure::Failure,
    report::{PlanRow, Report},
};
use foldhash::HashMap;
use std::cell::RefCell;
use tilewise_memory::{Machine, MemoryPlan, Role, SpacePlan};

pub(super) struct Loaded<'a> {
    pub(super) name: String,
    pub(super) report: &'a Report,
    pub(super) plan: &'a MemoryPlan,
    pub(super) arguments: Vec<Argument>,
    pub(super) results: Vec<NewResult>,
    pub(super) code_bytes: Option<u64>,
    /// Its own bytes by the number of pages, cached: planning is slow.
    planned: RefCell<HashMap<u64, OwnBytes>>,
}

/// Bytes of a program beside its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnBytes {
    pub(super) temporaries: u64,
    /// Bytes of results that lie in no argument.
    pub(super) results: u64,
}

impl<'a> Loaded<'a> {
    pub(super) fn new(member: &Member<'a>, name: String, machine: Machine) -> Result<Self, Failure> {
        let report = member.report;
        let plan = report.plan().map_err(|error| error::no_plan(&name, error))?;
        if !report.memory_bounds.is_complete {
            return Err(error::incomplete(&name));
        }
        if report.machine != machine {
            return Err(error::other_machine(&name, report.machine, machine));
        }
        let (arguments, results) = (arguments(report), new_results(report));
        let planned = RefCell::default();
        Ok(Self { name, report, plan, arguments, results, code_bytes: member.code_bytes, planned })
    }

    /// Bytes of its temporaries that nothing uses at its peak.
    pub(super) fn fragmentation_bytes(&self) -> u64 {
        self.plan.space(0).map_or(0, SpacePlan::fragmentation_bytes)
    }

    /// Bytes of new results with the tables of their tuples.
    fn result_bytes(plan: &MemoryPlan) -> u64 {
        plan.output_bytes.saturating_sub(plan.alias_bytes)
    }

    /// Its own bytes with this number of pages, planned again; without a number, as compiled.
    pub(super) fn own(&self, pages: Option<(&Growth, u64)>) -> OwnBytes {
        let now = OwnBytes { temporaries: self.plan.temporary_bytes(), results: Self::result_bytes(self.plan) };
        let Some((growth, count)) = pages.filter(|(growth, count)| *count != growth.count) else { return now };
        if let Some(known) = self.planned.borrow().get(&count) {
            return *known;
        }
        let own = self.resized(growth, count).unwrap_or(now);
        self.planned.borrow_mut().insert(count, own);
        own
    }

    fn resized(&self, growth: &Growth, count: u64) -> Option<OwnBytes> {
        let grows = |row: &PlanRow<'_>| matches!(row.value.role, Role::Temporary | Role::Output);
        let sizes: HashMap<usize, (u64, u64)> = self
            .report
            .plan_rows()
            .filter(grows)
            .filter_map(|row| Some((row.value.buffer, (row.value.bytes, growth.resized(&row.shape()?, count)?))))
            .collect();
        if sizes.is_empty() {
            return None;
        }
        let planner = self.report.planned.planner.as_ref()?;
        let plan = planner.plan_resized(self.plan.packing, |buffer, bytes| {
            sizes.get(&buffer).filter(|(before, _)| *before == bytes).map(|(_, after)| *after)
        });
        let plan = plan.ok()?;
        // Results in donated arguments aren't among these, before or after.
        let results = self.results.iter().map(|result| {
            let after = growth.resized(&result.shape, count).unwrap_or(result.bytes);
            i128::from(after) - i128::from(result.bytes)
        });
        let grown = i128::from(Self::result_bytes(self.plan)) + results.sum::<i128>();
        Some(OwnBytes { temporaries: plan.temporary_bytes(), results: u64::try_from(grown).ok()? })
    }
}
