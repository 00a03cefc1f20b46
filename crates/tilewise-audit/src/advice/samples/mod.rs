//! The samples of a batch, followed through a program: which arrays have something of each, and what joins them. What
//! nothing joins can be computed in parts; of a sum over all samples, such as a gradient, the parts' sums are added up.

mod bounds;
mod operations;
mod share;
mod walk;

pub(crate) use share::Join;
pub(crate) use walk::Joint;

use super::program::{LiveArray, ProgramModel};
use crate::program::name;
use share::{Digit, Share};
use std::collections::HashMap;
use tilewise::{ElementKind, Shape};
use tilewise_hlo::{Instruction, Opcode, dataflow::OpId};
use walk::Walk;

/// What a program has of the samples of a batch.
pub(crate) struct Samples {
    /// By instruction, the shares of its result's leaves.
    shares: HashMap<usize, Vec<Share>>,
    /// The arguments that have a dimension of samples, each with its place.
    pub(crate) inputs: Vec<(String, usize)>,
    /// The first instruction that joins them, where they may be, and how.
    pub(crate) joined: Option<(usize, Joint)>,
}

/// Where samples come from, and whether they may be joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Whether the arguments that are inputs have them.
    pub(crate) is_given: bool,
    /// Whether samples are also what the program counts or draws itself, such as the pixels of a picture.
    pub(crate) is_made: bool,
    /// Arrays of samples that take no more bytes than this together may be joined: parts end there, and what follows has the
    /// results of all of them.
    pub(crate) joinable_bytes: u64,
}

impl Samples {
    /// Follows the samples of which the arguments that are inputs have `size` along one dimension each, or of which the program
    /// makes so many. Inputs that a step returns anew count as weights, too.
    ///
    /// # Errors
    ///
    /// What joins samples, so that parts of the batch compute something else than the whole.
    pub(crate) fn follow(
        program: &ProgramModel<'_>,
        size: u64,
        way: Way,
        is_input: impl Fn(&Instruction<'_>) -> bool,
        is_state: impl Fn(&Instruction<'_>) -> bool,
    ) -> Result<Self, Join> {
        let mut inputs = Vec::new();
        let mut arguments = Vec::new();
        for parameter in program.parameters() {
            let Ok(shape) = parameter.shape() else { return Err(Join::Unknown) };
            let leaves: Vec<Vec<u64>> = shape
                .leaves()
                .map(|(_, leaf)| leaf.dimensions().iter().filter_map(|dimension| dimension.bound()).collect())
                .collect();
            let share = |bounds: &Vec<u64>| {
                let is_it = |bound: &&u64| **bound == size;
                if !way.is_given || !is_input(&parameter) || bounds.iter().filter(is_it).count() == 0 {
                    return Ok(Share::SAME.marked(is_learned(&parameter, bounds)));
                }
                // Of several dimensions of that size, such as those of square images, the first is the batch: the others are
                // followed as any size is.
                if bounds.iter().filter(is_it).count() > 1 && bounds.first() != Some(&size) {
                    return Err(Join::Pairs);
                }
                let place = bounds.iter().position(|bound| *bound == size).unwrap_or(0);
                Ok(Share::each(vec![Digit::new(place, 1, size)]).marked(is_state(&parameter)))
            };
            let shares = leaves.iter().map(share).collect::<Result<Vec<_>, Join>>()?;
            if let Some(digit) = shares.iter().flat_map(Share::digits).next() {
                inputs.push((name(&parameter), digit.dimension));
            }
            arguments.push(shares);
        }
        let mut walk = Walk::new(program.module, size, way);
        let entry = program.module.entry().ok_or(Join::Unknown)?;
        walk.run(&entry, &arguments)?;
        Ok(Self { shares: walk.shares, inputs, joined: walk.joined })
    }

    /// The dimension of an array along which it has something of each sample.
    pub(crate) fn dimension(&self, program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<usize> {
        let leaf = program.flow.leaves_before(array.position);
        let own = self.shares.get(&array.instruction.index())?.get(leaf)?;
        let share = if own.digits().is_empty() { self.once_done(program, array).unwrap_or(own) } else { own };
        share.digits().iter().max_by_key(|digit| digit.size).map(|digit| digit.dimension)
    }

    /// Whether an array is the same for all samples.
    pub(crate) fn is_same_for_all(&self, program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
        let leaf = program.flow.leaves_before(array.position);
        let own = self.shares.get(&array.instruction.index()).and_then(|shares| shares.get(leaf));
        own.is_some_and(|share| matches!(share, Share::Same { .. }))
    }

    /// Whether an instruction makes something of each sample, or of all.
    pub(crate) fn is_of_each(&self, program: &ProgramModel<'_>, op: OpId) -> bool {
        let shares = program.flow.instruction(op).and_then(|at| self.shares.get(&at.index()));
        shares.is_some_and(|shares| shares.iter().any(|share| !matches!(share, Share::Same { .. })))
    }

    /// What an array has that is started and isn't done yet: what a SparseCore is given follows the start.
    fn once_done(&self, program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<&Share> {
        /// An update, and what is done.
        const STEPS: usize = 2;
        let mut at = Some(array.op).filter(|_| array.instruction.opcode() == Opcode::AsyncStart);
        for _ in 0..STEPS {
            let is_next = |op: &OpId| {
                let next = program.flow.instruction(*op).map(|next| next.opcode());
                matches!(next, Some(Opcode::AsyncUpdate | Opcode::AsyncDone))
            };
            at = program.flow.users(at?).iter().map(|user| user.op).find(is_next);
        }
        let done = program.flow.instruction(at?)?;
        let shape = done.shape().ok()?;
        let is_it =
            |leaf: &Shape| leaf.dimensions().iter().map(|at| at.bound()).eq(array.bounds.iter().map(|at| Some(*at)));
        let place = shape.leaves().position(|(_, leaf)| is_it(&leaf))?;
        self.shares.get(&done.index())?.get(place)
    }
}

/// Whether an argument may be what gradients are taken of: numbers, not counters or keys.
fn is_learned(parameter: &Instruction<'_>, bounds: &[u64]) -> bool {
    let is_number = |kind: ElementKind| matches!(kind, ElementKind::Float | ElementKind::Complex);
    let shape = parameter.shape().ok();
    let is_float = shape.is_some_and(|shape| shape.element_type().is_some_and(|of| is_number(of.kind())));
    is_float && !bounds.is_empty()
}
