//! Values that a forward pass keeps for the backward pass.

use super::program::{LiveArray, ProgramModel};
use crate::program::{is_forward, passes_on, runs_backward, traced};
use foldhash::HashMap;
use tilewise::Shape;
use tilewise_hlo::Opcode;

/// A value of the forward pass that lies in memory until the backward pass reads it.
pub(crate) struct Residual<'a, 'm> {
    pub(crate) array: &'a LiveArray<'m>,
    /// The framework's name of the operation that makes it.
    pub(crate) name: String,
    /// Time of the forward pass's last read; if there is no read, when it is made.
    pub(crate) last_forward: usize,
    /// Time of the backward pass's first read, or of the move to another memory before it.
    pub(crate) first_backward: usize,
}

impl<'m> ProgramModel<'m> {
    /// Values kept for the backward pass, in the order in which they are made; empty without a gradient.
    pub(crate) fn kept_values(&self) -> Vec<Residual<'_, 'm>> {
        if !self.has_gradient {
            return Vec::new();
        }
        let moments = self.moments();
        let kept = |array| self.kept_value(array, &moments);
        let mut kept: Vec<Residual<'_, 'm>> = self.temporaries().filter_map(kept).collect();
        kept.sort_by_key(|value| value.array.first);
        kept
    }

    fn kept_value<'a>(&'a self, array: &'a LiveArray<'m>, moments: &HashMap<usize, usize>) -> Option<Residual<'a, 'm>> {
        let name = traced(self.flow, &array.instruction).0?;
        if !is_forward(&name) {
            return None;
        }
        let (mut last_forward, mut first_backward) = (array.first, usize::MAX);
        for reader in self.readers(array.position).filter_map(|op| self.flow.instruction(op)) {
            let Some(moment) = moments.get(&reader.index()) else { continue };
            if runs_backward(&reader) {
                first_backward = first_backward.min(*moment);
            } else {
                last_forward = last_forward.max(*moment);
            }
        }
        // A value copied before the backward read isn't kept; one that moves to another memory is kept until the move.
        if first_backward > array.last && first_backward < usize::MAX && self.moves_away_at(array.last) {
            first_backward = array.last;
        }
        let is_kept = first_backward <= array.last && last_forward < first_backward;
        is_kept.then_some(Residual { array, name, last_forward, first_backward })
    }

    /// Whether a move out of the device's default memory ends at `moment`.
    fn moves_away_at(&self, moment: usize) -> bool {
        let runs = self.plan.order().nth(moment).and_then(|instruction| self.module.instruction(instruction));
        let is_elsewhere = |leaf: &Shape| leaf.as_array().is_some_and(|array| array.memory_space() != 0);
        // Large arrays move in slices.
        runs.filter(|at| passes_on(at) || at.opcode() == Opcode::AsyncDone)
            .is_some_and(|at| at.shape().is_ok_and(|shape| shape.leaves().any(|(_, leaf)| is_elsewhere(&leaf))))
    }

    /// Time of each instruction's first run.
    fn moments(&self) -> HashMap<usize, usize> {
        let mut moments = HashMap::default();
        for (moment, instruction) in self.plan.order().enumerate() {
            moments.entry(instruction).or_insert(moment);
        }
        moments
    }
}
