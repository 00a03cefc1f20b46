//! The plan's allocations as rows.

use crate::{Report, SourceLine, origin::traced};
use tilewise::Tiled;
use tilewise_hlo::Instruction;
use tilewise_memory::{Allocation, Role};

/// A value in memory: where it lies, and when.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PlanRow<'a> {
    /// The instruction that makes it; for one that the text leaves out, the start that it belongs to.
    pub instruction: Instruction<'a>,
    /// What the plan says of it.
    pub allocation: &'a Allocation,
    /// The memory space's number.
    pub memory_space: u8,
}

impl PlanRow<'_> {
    /// Bytes of data in it; what it takes where it is no array.
    #[must_use]
    pub fn logical_bytes(&self) -> u64 {
        let taken = self.allocation.bytes;
        let shape = self.instruction.shape().ok();
        let path = &self.allocation.shape_index;
        let leaf = shape.and_then(|shape| path.iter().try_fold(shape, |shape, k| shape.elements().nth(*k)));
        leaf.and_then(|leaf| Tiled::new(&leaf).ok()).map_or(taken, |tiled| tiled.sizes().logical_bytes.min(taken))
    }

    /// The framework's name of the operation and the line of the user's program; those of what it copies, for a copy
    /// that the compiler added.
    #[must_use]
    pub fn origin(&self) -> (Option<String>, Option<SourceLine>) {
        traced(&self.instruction)
    }
}

impl Report {
    /// Every value that the plan places, by memory space and moment; none without a plan.
    pub fn plan_rows(&self) -> impl Iterator<Item = PlanRow<'_>> {
        self.plan.iter().flat_map(|plan| &plan.spaces).flat_map(|space| {
            space.allocations.iter().filter_map(|allocation| {
                let instruction = self.text.instruction(allocation.instruction)?;
                Some(PlanRow { instruction, allocation, memory_space: space.memory_space })
            })
        })
    }

    /// Those that are temporaries, tuples' tables included.
    pub fn temporary_rows(&self) -> impl Iterator<Item = PlanRow<'_>> {
        self.plan_rows().filter(|row| matches!(row.allocation.role, Role::Temporary | Role::Table))
    }

    /// The names of the instructions that run, by moment; none without a plan.
    pub fn order(&self) -> impl Iterator<Item = &str> {
        let order = self.plan.iter().flat_map(|plan| plan.order());
        order.map(|at| self.text.instruction(at).map_or("", |instruction| instruction.name()))
    }
}
