//! Sums over a set of programs, as it is and changed, and the number of pages that fit.

use super::{
    Alternative, LoadedProgram, SetChange,
    growth::{Growth, bytes_with, narrow_bytes},
    loaded::{Loaded, OwnBytes},
    pages::{PageArrays, Pages},
    resident::{ResidentArray, Residents},
};
use tilewise_memory::Machine;

/// The input of all sums.
pub(super) struct Totals<'a> {
    pub(super) loaded: &'a [Loaded<'a>],
    pub(super) residents: &'a Residents,
    pub(super) pages: Option<&'a Pages>,
    pub(super) machine: Machine,
    pub(super) limit: Option<u64>,
}

/// The parts of a set's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) resident: u64,
    pub(super) constants: u64,
    /// Code of the programs whose code size is known.
    pub(super) code: u64,
    pub(super) temporaries: u64,
    pub(super) call: u64,
    /// The number of the program with the largest temporaries, inputs and results together.
    pub(super) largest: Option<usize>,
}

impl Total {
    pub(super) fn sum(self) -> u64 {
        let parts = [self.resident, self.constants, self.code, self.temporaries, self.call];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl Totals<'_> {
    /// The set with a change, and with `count` pages; without a count, as many as the programs were compiled for.
    pub(super) fn total(&self, change: Option<SetChange>, count: Option<u64>) -> Total {
        let pages = self.pages.map(|pages| (pages, count.unwrap_or(pages.growth.count)));
        let growth = pages.map(|(pages, count)| (&pages.growth, count));
        let dropped = match change {
            Some(SetChange::Drop(number)) => Some(number),
            _ => None,
        };
        let (mut total, mut most) = (Total::default(), 0);
        for (at, array) in self.residents.arrays.iter().enumerate() {
            if array.programs.iter().all(|number| Some(*number) == dropped) {
                continue;
            }
            let bytes = match pages.filter(|(pages, _)| pages.arrays.contains(&at)) {
                Some((pages, count)) => self.page_array_bytes(array, pages.dimension, count, change),
                None => array.bytes,
            };
            total.resident = total.resident.saturating_add(bytes);
        }
        for (number, program) in self.loaded.iter().enumerate().filter(|(number, _)| Some(*number) != dropped) {
            let OwnBytes { temporaries, results } = program.own(growth);
            let given =
                if change == Some(SetChange::Donate(number)) { self.undonated_bytes(number, growth) } else { 0 };
            let call = results.saturating_sub(given).saturating_add(self.residents.inputs[number]);
            total.constants = total.constants.saturating_add(program.plan.constant_bytes);
            total.code = total.code.saturating_add(program.code_bytes.unwrap_or(0));
            total.call = total.call.max(call);
            total.temporaries = total.temporaries.max(temporaries);
            let own = temporaries.saturating_add(call);
            if own > most {
                (most, total.largest) = (own, Some(number));
            }
        }
        total
    }

    fn page_array_bytes(&self, array: &ResidentArray, dimension: usize, count: u64, change: Option<SetChange>) -> u64 {
        let bytes = match (change, self.machine.generation()) {
            (Some(SetChange::Narrow), Some(generation)) => narrow_bytes(&array.shape, dimension, count, generation),
            (Some(SetChange::Dense), _) => {
                let bound = array.shape.dimensions().get(dimension).and_then(|it| it.bound()).filter(|it| *it > 0);
                let data = array.bytes.saturating_sub(array.padding_bytes);
                bound.map(|bound| (data / bound).saturating_mul(count))
            }
            _ => None,
        };
        bytes.or_else(|| bytes_with(&array.shape, dimension, count)).unwrap_or(array.bytes)
    }

    /// Bytes of a program's new results that have the shape of a shared array that isn't donated to it.
    fn undonated_bytes(&self, number: usize, pages: Option<(&Growth, u64)>) -> u64 {
        let arrays = self.residents.arrays.iter();
        let is_free = |array: &&ResidentArray| {
            let is_shared = array.programs.len() > 1 || self.loaded.len() == 1;
            is_shared && array.programs.contains(&number) && !array.donated_to.contains(&number)
        };
        let mut free: Vec<&ResidentArray> = arrays.filter(is_free).collect();
        let mut bytes: u64 = 0;
        for result in &self.loaded[number].results {
            // An array as small as a counter isn't a copy of a state.
            let same = free.iter().position(|array| array.bytes > NEGLIGIBLE && array.shape == result.shape);
            if let Some(at) = same {
                free.swap_remove(at);
                let grown = pages.and_then(|(growth, count)| growth.resized(&result.shape, count));
                bytes = bytes.saturating_add(grown.unwrap_or(result.bytes));
            }
        }
        bytes
    }

    /// The most pages with which the whole set fits; `None` without pages or a limit.
    pub(super) fn fitting(&self, change: Option<SetChange>) -> Option<u64> {
        let (pages, limit) = (self.pages?, self.limit?);
        let fits = |count| self.total(change, Some(count)).sum() <= limit;
        let least = pages.arrays.iter().map(|at| &self.residents.arrays[*at]);
        // A page with 8-bit elements takes at least an eighth of its data.
        let data = least.map(|array| array.bytes.saturating_sub(array.padding_bytes)).fold(0, u64::saturating_add);
        let (mut low, mut high) = (0, limit / (data / pages.growth.count / 8).max(1) + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// Describes the pages; `fitting` of them fit.
    pub(super) fn page_arrays(&self, pages: &Pages, fitting: Option<u64>) -> PageArrays {
        let arrays = || pages.arrays.iter().map(|at| &self.residents.arrays[*at]);
        let first = pages.arrays.first().map_or(0, |at| *at);
        let first = &self.residents.arrays[first];
        let bytes = arrays().map(|array| array.bytes).fold(0, u64::saturating_add);
        let padding = arrays().map(|array| array.padding_bytes).fold(0, u64::saturating_add);
        PageArrays {
            arrays: pages.arrays.len(),
            name: arrays().map(|array| array.name.as_str()).min().unwrap_or_default().to_owned(),
            shape: first.shape.clone(),
            dimension: pages.dimension,
            count: pages.growth.count,
            page_bytes: bytes / pages.growth.count,
            page_padding_bytes: padding / pages.growth.count,
            fitting,
            decided_by: self.total(None, fitting).largest,
        }
    }

    pub(super) fn program(&self, number: usize, now: Total, fitting: Option<u64>) -> LoadedProgram {
        let loaded = &self.loaded[number];
        let bounds = &loaded.report.memory_bounds;
        let own = loaded.own(None);
        let pages = self.pages.map(|pages| (&pages.growth, pages.growth.count));
        let bytes_per_page = pages.map_or(0, |(pages, count)| {
            let more = loaded.own(Some((pages, count.saturating_mul(2))));
            let grown = (more.temporaries.saturating_add(more.results)).saturating_sub(own.temporaries + own.results);
            grown / count
        });
        let without = self.total(Some(SetChange::Drop(number)), None);
        LoadedProgram {
            name: loaded.name.clone(),
            module_name: loaded.report.module_name.clone(),
            argument_bytes: bounds.argument_bytes,
            output_bytes: bounds.output_bytes,
            alias_bytes: bounds.alias_bytes,
            temporary_bytes: own.temporaries,
            fragmentation_bytes: loaded.fragmentation_bytes(),
            constant_bytes: loaded.plan.constant_bytes,
            code_bytes: loaded.code_bytes,
            call_bytes: own.results.saturating_add(self.residents.inputs[number]),
            undonated_bytes: self.undonated_bytes(number, pages),
            bytes_per_page,
            decides: now.largest == Some(number),
            freed_bytes: now.sum().saturating_sub(without.sum()),
            costs_pages: fitting
                .filter(|_| self.loaded.len() > 1)
                .and_then(|count| Some(self.fitting(Some(SetChange::Drop(number)))?.saturating_sub(count))),
        }
    }

    /// Changes that free memory or make room for pages, the most first: by pages, then by bytes.
    pub(super) fn options(&self, now: Total, programs: &[LoadedProgram]) -> Vec<Alternative> {
        let mut changes = Vec::new();
        let donating = (0..programs.len()).filter(|number| programs[*number].undonated_bytes > 0);
        changes.extend(donating.map(SetChange::Donate));
        if self.loaded.len() > 1 {
            changes.extend((0..programs.len()).map(SetChange::Drop));
        }
        if self.pages.is_some() {
            changes.extend([SetChange::Dense, SetChange::Narrow]);
        }
        let grows = programs.iter().any(|program| program.bytes_per_page > 0);
        let fitting = self.fitting(None);
        let options = changes.into_iter().map(|change| Alternative {
            change,
            freed_bytes: now.sum().saturating_sub(self.total(Some(change), None).sum()),
            is_bound: change == SetChange::Dense || (change == SetChange::Narrow && grows),
            pages: self.fitting(Some(change)),
        });
        let mut options: Vec<Alternative> =
            options.filter(|option| option.freed_bytes > NEGLIGIBLE || option.pages > fitting).collect();
        options.sort_by_key(|option| std::cmp::Reverse((option.pages, option.freed_bytes)));
        options
    }
}

/// Bytes that aren't worth a change of a server.
const NEGLIGIBLE: u64 = 1 << 16;
