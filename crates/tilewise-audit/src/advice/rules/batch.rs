//! The batch of a program: a dimension of its input that most of the peak has, and along which nothing joins its samples.

use super::{
    beside_parts::freed,
    graphs::nodes_of,
    in_parts::{in_parts, is_key},
};
use crate::{
    advice::{
        evidence::Evidence,
        finding::{GradientSums, InParts},
        parts::{ROWS, bytes_of_part},
        program::{LiveArray, ProgramModel},
        split::{Joint, Split},
    },
    program::{begins_with, name, op_name},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    iter::successors,
};
use tilewise_hlo::{Instruction, Opcode};

/// How many parts the code takes: what remains of a halved array is still the largest.
const PARTS: u64 = 8;

/// An odd number of samples is taken in so many parts at most.
const MOST_EACH: u64 = 64;

/// More parts than this are no advice.
const MOST_PARTS: u64 = 1024;

/// A batch, and what its parts take.
pub(super) struct Batch<'a, 'm> {
    pub(super) size: u64,
    /// The largest array at the peak that has it.
    pub(super) largest: &'a LiveArray<'m>,
    /// Which of its dimensions it is.
    pub(super) place: usize,
    /// Which of the input's arrays have it, by the dimension that it is of them; none where nothing tells.
    pub(super) inputs: Vec<(usize, Vec<String>)>,
    /// Whether the program makes it, as it does the pixels of a picture that it draws.
    pub(super) is_made: bool,
    /// Whether it is one of two dimensions of an array of pairs.
    pub(super) is_of_pairs: bool,
    /// What joins its samples, after the parts.
    pub(super) joined: Option<(Instruction<'m>, Joint)>,
    /// In how many parts buffers take so much.
    pub(super) parts: u64,
    pub(super) buffers: Vec<(usize, u64)>,
    /// What that frees, with what lies beside each part.
    pub(super) freed: u64,
    /// Whether these are more parts than help, since with fewer the program doesn't fit.
    pub(super) is_to_fit: bool,
    pub(super) gradients: GradientSums,
    /// Whether all results begin with it.
    pub(super) is_in_all_results: bool,
    /// The function in parts, where that is known to compute the same.
    pub(super) in_parts: Option<InParts>,
}

/// The dimension of a batch in each of the arrays that have it.
type Places = HashMap<usize, usize>;

impl<'a, 'm> Batch<'a, 'm> {
    /// The first of the dimensions that may be a batch's of which that is so.
    pub(super) fn of(program: &'a ProgramModel<'m>) -> Option<Self> {
        let interface = program.total_bytes.saturating_sub(program.temporary_bytes);
        // What doesn't fit may still fit in parts.
        let is_too_large = !program.fits_without(0);
        if program.temporary_bytes < interface / 4 && !is_too_large {
            return None;
        }
        let peak: Vec<&LiveArray<'m>> = program.peak_temporaries().collect();
        let found = Split::of(program, &peak)?;
        // Where the samples themselves are as large, their own size is the cause, and temporaries are their copies; of a training
        // step, the state has no copies.
        let passed = program.arguments().chain(program.results());
        let passed = passed.filter(|array| found.dimension(program, array).is_some());
        let passed = passed.map(|array| array.bytes).fold(0, u64::saturating_add).min(interface);
        if program.temporary_bytes < passed.saturating_add(passed / 3) && !program.has_gradient && !is_too_large {
            return None;
        }
        let (size, is_made) = (found.size, found.is_made);
        let joined = found.joined.and_then(|(at, how)| Some((program.module.instruction(at)?, how)));
        if nodes_of(program, size).is_some() {
            return None;
        }
        let places: Places = program
            .temporaries()
            .enumerate()
            .filter_map(|(at, array)| Some((at, found.dimension(program, array)?)))
            .collect();
        let with_it = || program.temporaries().enumerate().filter_map(|(at, array)| Some((array, *places.get(&at)?)));
        let at_peak: HashSet<usize> = peak.iter().map(|array| array.instruction.index()).collect();
        let of_peak: Vec<_> = with_it().filter(|(array, _)| at_peak.contains(&array.instruction.index())).collect();
        // Where each part has results of its own, gradients aren't added up: models of an ensemble, or samples whose gradients
        // stay apart.
        let gradients = match (program.has_gradient, found.is_in_all_results(program)) {
            (false, _) => GradientSums::None,
            (true, false) => GradientSums::Summed,
            (true, true) => GradientSums::Apart,
        };
        let taken = |parts: u64| {
            let part =
                |(array, at): (&LiveArray<'m>, _)| Some((array.buffer, bytes_of_part(program, array, at, parts)?));
            let buffers: Vec<(usize, u64)> = with_it().filter_map(part).collect();
            let freed = freed(program, &found, &buffers, gradients);
            (parts, buffers, freed)
        };
        let helping = parts_that_help(program, size, &of_peak);
        let more = successors(Some(helping), |parts| parts.checked_mul(2))
            .take_while(|parts| *parts <= MOST_PARTS && size.is_multiple_of(*parts));
        // With a tenth less than promised.
        let fitting = more.map(taken).find(|(_, _, freed)| program.fits_without(freed / 10 * 9));
        let (parts, buffers, freed) = fitting.unwrap_or_else(|| taken(helping));
        let inputs = named(program, &found.inputs);
        let (largest, place) = *of_peak.iter().max_by_key(|(array, _)| (array.bytes, array.bounds.len()))?;
        let is_to_fit = parts > helping;
        let in_parts = in_parts(program, &found, largest, parts.max(PARTS)).filter(|_| !is_made && joined.is_none());
        let is_in_all_results = found.is_in_all_results(program);
        Some(Self {
            size,
            largest,
            place,
            inputs,
            is_made,
            is_of_pairs: found.is_of_pairs,
            joined,
            parts,
            buffers,
            freed,
            is_to_fit,
            gradients,
            is_in_all_results,
            in_parts,
        })
    }

    /// Keys of random numbers that are the same for all parts unless they are split: where samples have some of their own.
    pub(super) fn keys(&self, program: &ProgramModel<'_>) -> Vec<String> {
        if !draws_for_each(program, self.size) {
            return Vec::new();
        }
        let parameters = program.parameters();
        let is_shared =
            |at: &&Instruction<'_>| is_key(at) && !at.shape().is_ok_and(|shape| begins_with(&shape, self.size));
        parameters.iter().filter(is_shared).map(name).collect()
    }
}

/// The fewest parts, up to eight, that free about what they would without padding, or those that come nearest to it. A
/// small batch along the lanes leaves more of them empty the smaller it is, until features take its place.
fn parts_that_help(program: &ProgramModel<'_>, size: u64, arrays: &[(&LiveArray<'_>, usize)]) -> u64 {
    let bytes = |parts: u64| {
        let part = |(array, at): &(&LiveArray<'_>, usize)| bytes_of_part(program, array, *at, parts);
        let parts = arrays.iter().map(|array| part(array).unwrap_or(array.0.bytes));
        parts.fold(0, u64::saturating_add)
    };
    let whole = bytes(1);
    // Tenths of what they would free without padding.
    let kept = |parts: u64| {
        let freed = u128::from(whole.saturating_sub(bytes(parts)));
        freed * 10 * u128::from(parts) / (u128::from(whole) * u128::from(parts - 1)).max(1)
    };
    let (of_windows, few) = (slides_windows(program), 2..ROWS);
    // A compiler fills the rows of a tile with pieces of a few samples, and keeps copies of them: of eight sounds that a network of
    // convolutions hears at once, halves took 1652 MiB more than all, one at a time 1276 less.
    let is_whole =
        |parts: &u64| size.is_multiple_of(*parts) && !(of_windows && size >= ROWS && few.contains(&(size / parts)));
    let choices = program.thresholds().parts.iter().copied().filter(is_whole);
    let other = || (2..=MOST_EACH).find(is_whole).unwrap_or(2);
    choices.max_by_key(|parts| (kept(*parts).min(8), Reverse(*parts))).unwrap_or_else(other)
}

/// Whether convolutions go over neighbours; products of matrices are convolutions, too.
fn slides_windows(program: &ProgramModel<'_>) -> bool {
    let is_window = |at: &Instruction<'_>| {
        at.opcode() == Opcode::Convolution
            && op_name(at).is_some_and(|name| name.contains("conv_general_dilated"))
            && at.window().is_some_and(|window| window.iter().any(|along| along.size != 1))
    };
    program.machine.generation().is_some() && program.module.instructions().any(|at| is_window(&at))
}

/// Whether random bits are made along a dimension of this size, be it merged with others: JAX's own generator is made of `xor`.
fn draws_for_each(program: &ProgramModel<'_>, size: u64) -> bool {
    let makes_bits = |at: &Instruction<'_>| matches!(at.opcode(), Opcode::Xor | Opcode::Rng | Opcode::RngBitGenerator);
    let is_of_each = |bounds: Vec<u64>| match bounds[..] {
        [merged] => merged >= size && merged.is_multiple_of(size),
        _ => bounds.contains(&size),
    };
    let shapes =
        |at: &Instruction<'_>| at.shape().ok().map(|shape| shape.leaves().map(|(_, leaf)| leaf).collect::<Vec<_>>());
    program
        .module
        .instructions()
        .filter(makes_bits)
        .filter_map(|at| shapes(&at))
        .flatten()
        .any(|leaf| is_of_each(leaf.dimensions().iter().filter_map(|dimension| dimension.bound()).collect()))
}

/// The input's arrays by the dimension that is the batch's: parameters of the function all of whose arrays have it there, or
/// single arrays of others.
fn named(program: &ProgramModel<'_>, inputs: &[(String, usize)]) -> Vec<(usize, Vec<String>)> {
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (name, place) in inputs {
        found.entry(*place).or_default().push(name.clone());
    }
    found.into_iter().map(|(place, names)| (place, program.in_whole(&names))).collect()
}
