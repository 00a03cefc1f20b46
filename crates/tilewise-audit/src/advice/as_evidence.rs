//! Programs and messages as evidence.

use super::{
    evidence::{ArrayFact, Evidence, Listed, Thresholds},
    finding::{ArrayName, Library},
    message::{ListedArray, MessageModel, share_of_all, total},
    program::{LiveArray, ProgramModel},
    recommendation::AdvisedArray,
};
use crate::{
    message::Allocation,
    program::{generation_of_tiles, is_name, name, op_name, root},
};
use foldhash::HashSet;
use std::collections::BTreeSet;
use tilewise::{Shape, tpu::Generation};
use tilewise_memory::Role;
use tilewise_oom::Framework;

const OF_PROGRAMS: Thresholds = Thresholds {
    max_columns: 16,
    max_minor: 16,
    min_rows: 1024,
    padded_quarters: 16,
    parts: &[2, 4, 8],
    min_percent: 60,
};

/// A message shows less of an array: dimensions up to 32 are columns, a quarter of the 128 lanes. The unlisted part of
/// a batch shrinks with it.
const OF_MESSAGES: Thresholds =
    Thresholds { max_columns: 32, max_minor: 0, min_rows: 1, padded_quarters: 5, parts: &[8], min_percent: 50 };

impl Evidence for ProgramModel<'_> {
    fn arguments(&self) -> Vec<&dyn ArrayFact> {
        ProgramModel::arguments(self).map(|array| array as &dyn ArrayFact).collect()
    }

    fn results(&self) -> Vec<&dyn ArrayFact> {
        ProgramModel::results(self).map(|array| array as &dyn ArrayFact).collect()
    }

    fn temporaries(&self) -> Vec<&dyn ArrayFact> {
        self.peak_temporaries().map(|array| array as &dyn ArrayFact).collect()
    }

    fn generation_of(&self, _: &Shape) -> Generation {
        self.generation
    }

    fn has_gradient(&self) -> Option<bool> {
        Some(self.has_gradient)
    }

    /// JAX if the module's or an operation's name begins with its `jit` or `pmap`; otherwise `None`.
    fn framework(&self) -> Option<Framework> {
        const LOOKED_AT: usize = 4096;
        let mut names = self.module.instructions().rev().take(LOOKED_AT).filter_map(|at| op_name(&at));
        let is_jax = self.module.name().starts_with("jit_")
            || names.any(|name| name.starts_with("jit(") || name.starts_with("pmap("));
        is_jax.then_some(Framework::Jax)
    }

    fn function(&self) -> Option<&str> {
        let takes_arrays = self.library == Library::Jax && self.framework().is_some();
        (takes_arrays && self.partitions <= 1).then(|| ProgramModel::function(self))
    }

    fn donated(&self) -> Vec<String> {
        let aliases = self.module.input_output_aliases().unwrap_or_default();
        let taken: HashSet<usize> = aliases.iter().map(|alias| alias.parameter_number).collect();
        let parameters = self.parameters();
        let of = parameters.iter().enumerate().filter(|(number, _)| taken.contains(number));
        let roots: BTreeSet<String> = of.map(|(_, parameter)| root(&name(parameter)).to_owned()).collect();
        // Arguments behind a star have no names that `jax.jit` takes.
        roots.into_iter().filter(|root| is_name(root) && !["args", "kwargs"].contains(&&**root)).collect()
    }

    fn thresholds(&self) -> &'static Thresholds {
        &OF_PROGRAMS
    }

    fn extrapolated(&self, bytes: u64, _: Listed) -> u64 {
        bytes
    }

    fn program(&self) -> Option<&ProgramModel<'_>> {
        Some(self)
    }

    fn message(&self) -> Option<&MessageModel<'_>> {
        None
    }
}

impl ProgramModel<'_> {
    /// Temporaries at any time, not only at the peak.
    pub(crate) fn held_temporaries(&self) -> Vec<&dyn ArrayFact> {
        self.temporaries().map(|array| array as &dyn ArrayFact).collect()
    }
}

impl ArrayFact for LiveArray<'_> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn bounds(&self) -> &[u64] {
        &self.bounds
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn role(&self) -> Role {
        self.role
    }

    fn buffer(&self) -> usize {
        self.buffer
    }

    fn name(&self) -> ArrayName {
        ArrayName::Named(name(&self.instruction))
    }

    fn op_name(&self) -> String {
        op_name(&self.instruction).unwrap_or_default().into_owned()
    }

    fn advised(&self, evidence: &dyn Evidence) -> AdvisedArray {
        match evidence.program() {
            Some(program) => program.advised(self),
            None => AdvisedArray::of_shape(self.shape.to_string()),
        }
    }

    fn live(&self) -> Option<&LiveArray<'_>> {
        Some(self)
    }
}

impl MessageModel<'_> {
    fn of(&self, role: Role) -> Vec<&dyn ArrayFact> {
        self.arrays.iter().filter(|array| array.role == role).map(|array| array as &dyn ArrayFact).collect()
    }
}

impl Evidence for MessageModel<'_> {
    fn arguments(&self) -> Vec<&dyn ArrayFact> {
        self.of(Role::Argument)
    }

    /// Empty if all results lie in donated arguments, for these change with them.
    fn results(&self) -> Vec<&dyn ArrayFact> {
        if self.budget.output_bytes == Some(0) { Vec::new() } else { self.of(Role::Output) }
    }

    fn temporaries(&self) -> Vec<&dyn ArrayFact> {
        self.of(Role::Temporary)
    }

    /// The generation given, or else the one that the tiles show, or v5e.
    fn generation_of(&self, shape: &Shape) -> Generation {
        let of_tiles = || shape.as_array().and_then(generation_of_tiles);
        self.listing.generation.or_else(of_tiles).unwrap_or(Generation::V5e)
    }

    fn has_gradient(&self) -> Option<bool> {
        const SIGNS: [&str; 4] = ["jvp(", "mapped_update", "train_step", "grad"];
        let has_sign = |row: &&Allocation| SIGNS.iter().any(|sign| row.op_name().contains(sign));
        self.temporaries.iter().any(has_sign).then_some(true)
    }

    fn framework(&self) -> Option<Framework> {
        Some(self.framework)
    }

    fn function(&self) -> Option<&str> {
        None
    }

    fn donated(&self) -> Vec<String> {
        Vec::new()
    }

    fn thresholds(&self) -> &'static Thresholds {
        &OF_MESSAGES
    }

    fn extrapolated(&self, bytes: u64, listed: Listed) -> u64 {
        let rows = self.temporaries.iter().copied();
        match listed {
            Listed::Bytes => share_of_all(bytes, total(rows, Allocation::taken_bytes), self.budget.temporary_bytes),
            Listed::Padding => share_of_all(bytes, total(rows, Allocation::told_padding), self.temporary_padding()),
        }
    }

    fn program(&self) -> Option<&ProgramModel<'_>> {
        None
    }

    fn message(&self) -> Option<&MessageModel<'_>> {
        Some(self)
    }
}

impl ArrayFact for ListedArray<'_> {
    fn shape(&self) -> &Shape {
        self.shape
    }

    fn bounds(&self) -> &[u64] {
        &self.bounds
    }

    fn bytes(&self) -> u64 {
        self.row.taken_bytes()
    }

    fn role(&self) -> Role {
        self.role
    }

    fn buffer(&self) -> usize {
        self.number
    }

    fn name(&self) -> ArrayName {
        // The framework's own name of an argument is an expression, such as `params['w']`; paths are of operations.
        let name = self.row.op_name();
        if !name.is_empty() && !name.contains(['/', '(', ' ']) {
            return ArrayName::Named(name.to_owned());
        }
        match self.row.entry.interface() {
            Some(tilewise_oom::Interface::Argument(number, index)) => ArrayName::Argument(number, index),
            Some(tilewise_oom::Interface::Output(index)) => ArrayName::Result(index),
            _ => ArrayName::Unknown,
        }
    }

    fn op_name(&self) -> String {
        self.row.op_name().to_owned()
    }

    fn advised(&self, _: &dyn Evidence) -> AdvisedArray {
        AdvisedArray::of_row(self.row)
    }

    fn live(&self) -> Option<&LiveArray<'_>> {
        None
    }
}
