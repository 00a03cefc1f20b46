//! The batch of a program: a dimension that most arrays at the peak share, and along which samples stay apart or are
//! joined late.

use super::{
    graphs::nodes_of,
    in_parts::{in_parts, is_key},
    overhead::freed,
};
use crate::{
    advice::{
        evidence::Evidence,
        finding::{GradientSums, InParts, OtherParts, SmallerBatch},
        parts::{ROWS, bytes_of_part},
        program::{LiveArray, ProgramModel},
        smaller_batch::smaller_batch,
        split::{Joint, Split, draws_bits},
    },
    program::{begins_with, has_gradients_of_samples, name, op_name},
};
use foldhash::{HashMap, HashSet};
use std::{cmp::Reverse, collections::BTreeMap, iter::successors};
use tilewise_hlo::{Instruction, Opcode};

/// Parts in the code, if no more are needed: what remains of a halved array is still the largest.
const PARTS: u64 = 8;

/// Parts whose figure is told beside that of few.
const MANY_PARTS: u64 = 16;

/// Fewer samples in each of many parts fill tiles badly.
const FEWEST: u64 = 3;

/// Maximum number of parts tried if no usual number of parts divides the batch.
const MOST_EACH: u64 = 64;

/// Maximum number of parts that are worth advising.
const MOST_PARTS: u64 = 1024;

/// A batch, and the buffer sizes of its parts.
pub(super) struct Batch<'a, 'm> {
    pub(super) size: u64,
    /// The largest array at the peak that has it.
    pub(super) largest: &'a LiveArray<'m>,
    /// Its dimension number in that array.
    pub(super) place: usize,
    /// The inputs' arrays that have it, by its dimension number in them; empty if unknown.
    pub(super) inputs: Vec<(usize, Vec<String>)>,
    /// Whether the program itself makes it, like the pixels of a picture that it draws.
    pub(super) is_made: bool,
    /// Whether it is one of two dimensions of an array of pairs.
    pub(super) is_of_pairs: bool,
    /// The instruction that joins its samples after the parts, and how.
    pub(super) joined: Option<(Instruction<'m>, Joint)>,
    /// Number of parts, for which `buffers` has the bytes of each buffer.
    pub(super) parts: u64,
    pub(super) buffers: Vec<(usize, u64)>,
    /// Bytes that the parts free, less the memory needed beside each part.
    pub(super) freed: u64,
    /// Whether there are more parts than help, because the program doesn't fit with fewer.
    pub(super) is_to_fit: bool,
    /// Another number of parts that frees much more, or much less.
    pub(super) others: Option<OtherParts>,
    pub(super) gradients: GradientSums,
    /// Whether all results begin with it, and whether one does.
    pub(super) is_in_all_results: bool,
    pub(super) is_in_a_result: bool,
    /// Whether each sample has random numbers of its own.
    is_drawn: bool,
    /// Whether the loss is divided by a sum over the batch.
    pub(super) is_divided: bool,
    /// The function in parts, if that is known to compute the same.
    pub(super) in_parts: Option<InParts>,
    /// A smaller one with which the program fits.
    pub(super) smaller: Option<SmallerBatch>,
}

/// The batch's dimension number in each temporary that has it, by the temporary's index.
type Places = HashMap<usize, usize>;

impl<'a, 'm> Batch<'a, 'm> {
    /// Finds a program's batch: the first dimension that qualifies.
    pub(super) fn of(program: &'a ProgramModel<'m>) -> Option<Self> {
        let interface = program.total_bytes.saturating_sub(program.temporary_bytes);
        // A program that doesn't fit may fit in parts.
        let is_too_large = program.is_too_large();
        if program.temporary_bytes < interface / 4 && !is_too_large {
            return None;
        }
        let peak: Vec<&LiveArray<'m>> = program.peak_temporaries().collect();
        let found = Split::of(program, &peak)?;
        // If the samples themselves are about as large as the temporaries, their own size is the cause, and temporaries
        // are their copies; not so in a training step, whose state isn't copied.
        let passed = program.arguments().chain(program.results());
        let passed = passed.filter(|array| found.dimension(program, array).is_some());
        let passed = passed.map(|array| array.bytes).fold(0, u64::saturating_add).min(interface);
        if program.temporary_bytes < passed.saturating_add(passed / 3) && !program.has_gradient && !is_too_large {
            return None;
        }
        let (size, is_made) = (found.size, found.is_made);
        // A dimension inside of samples, such as the rows of pictures, keeps its size where the program numbers it by itself, though
        // the argument is cut: the two no longer match.
        let is_inner = !found.inputs.is_empty() && found.inputs.iter().all(|(_, at)| *at > 0);
        if program.has_gradient && is_inner && found.is_counted(program) {
            return None;
        }
        let mut joined = found.joined.and_then(|(at, how)| Some((program.module.instruction(at)?, how)));
        if nodes_of(program, size).is_some() {
            return None;
        }
        // Without a gradient, calls for parts would return parts of sums, the maximum or the ranking of a part, or read another
        // state: inside one call, the parts' sums are added up and their rows put together.
        if !program.has_gradient && !is_made && joined.is_none() {
            let inside = match found.is_in_all_results(program) {
                true => found.ranked.map(|at| (at, Joint::Rows)),
                false => found.added.map(|at| (at, Joint::Sums)),
            };
            joined = inside.and_then(|(at, how)| Some((program.module.instruction(at)?, how)));
            let is_result_of_all = found.is_reduced && !found.is_in_all_results(program);
            if joined.is_none() && (is_result_of_all || found.renews_state(program)) {
                return None;
            }
        }
        let places: Places = program
            .temporaries()
            .enumerate()
            .filter_map(|(at, array)| Some((at, found.dimension(program, array)?)))
            .collect();
        let with_it = || program.temporaries().enumerate().filter_map(|(at, array)| Some((array, *places.get(&at)?)));
        let at_peak: HashSet<usize> = peak.iter().map(|array| array.instruction.index()).collect();
        let of_peak: Vec<_> = with_it().filter(|(array, _)| at_peak.contains(&array.instruction.index())).collect();
        // If each part has its own results, gradients aren't added up: models of an ensemble, or samples whose
        // gradients stay apart.
        let gradients = match (program.has_gradient, found.is_in_all_results(program)) {
            (false, _) => GradientSums::None,
            (true, false) if has_gradients_of_samples(program.module) => GradientSums::OfEach,
            (true, false) => GradientSums::Summed,
            (true, true) => GradientSums::Apart,
        };
        let part = |parts: u64| {
            let bytes =
                |(array, at): (&LiveArray<'m>, _)| Some((array.buffer, bytes_of_part(program, array, at, parts)?));
            with_it().filter_map(bytes).collect::<Vec<(usize, u64)>>()
        };
        let taken = |parts: u64| {
            let buffers = part(parts);
            let freed = freed(program, &found, &buffers, gradients);
            (parts, buffers, freed)
        };
        let helping = parts_that_help(program, size, &of_peak);
        let many_than = |few: u64| {
            [MANY_PARTS, PARTS]
                .into_iter()
                .find(|many| *many > few && size / *many >= FEWEST && is_whole(program, size, *many))
        };
        // Bytes that all arrays together free, by which one plan's figure is that of another number of parts.
        let shrunk = |parts: u64| {
            let freed = |(array, at): &(&LiveArray<'m>, usize)| {
                bytes_of_part(program, array, *at, parts).map_or(0, |bytes| array.bytes.saturating_sub(bytes))
            };
            of_peak.iter().map(freed).fold(0, u64::saturating_add)
        };
        let (chosen, others) = match many_than(helping).filter(|_| !program.has_limit()) {
            // If no limit is known, fewer parts may not be enough.
            Some(many) => {
                let many = taken(many);
                let few = u128::from(many.2) * u128::from(shrunk(helping)) / u128::from(shrunk(many.0).max(1));
                let few = u64::try_from(few).unwrap_or(u64::MAX).min(many.2);
                if many.2 - few > few / 4 { (many, Some((helping, few))) } else { (taken(helping), None) }
            }
            None => {
                let more = successors(Some(helping), |parts| parts.checked_mul(2))
                    .take_while(|parts| *parts <= MOST_PARTS && size.is_multiple_of(*parts));
                // It fits even if a tenth less is freed.
                let fitting = more.map(taken).find(|(_, _, freed)| program.fits_without(freed / 10 * 9));
                let few = fitting.unwrap_or_else(|| taken(helping));
                let many = many_than(few.0).map(|many| (many, taken(many).2));
                let many = many.filter(|(_, freed)| freed.saturating_sub(few.2) > few.2 / 4);
                (few, many)
            }
        };
        let (parts, buffers, freed) = chosen;
        let is_to_fit = parts > helping && program.has_limit();
        let others = others.map(|(parts, freed_then)| OtherParts {
            parts,
            freed: freed_then.abs_diff(freed),
            is_more: freed_then > freed,
        });
        let inputs = named(program, &found.inputs);
        let (largest, place) = *of_peak.iter().max_by_key(|(array, _)| (array.bytes, array.bounds.len()))?;
        let is_whole = !is_made && joined.is_none() && gradients != GradientSums::OfEach;
        let in_parts = in_parts(program, &found, largest, parts.max(PARTS)).filter(|_| is_whole);
        // Without a gradient, parts are a smaller batch; inputs begin with a batch that their caller chooses.
        let is_chosen = gradients == GradientSums::Summed
            && !is_made
            && !inputs.is_empty()
            && inputs.iter().all(|(at, _)| *at == 0);
        let smaller = if is_too_large && is_chosen { smaller_batch(program, size, &inputs, part) } else { None };
        let is_in_all_results = found.is_in_all_results(program);
        let is_drawn = if is_made { found.is_drawn(program) } else { draws_for_each(program, size) };
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
            others,
            gradients,
            is_in_all_results,
            is_in_a_result: found.is_in_a_result(program),
            is_drawn,
            is_divided: found.is_divided,
            in_parts,
            smaller,
        })
    }

    /// Random keys to split for each part: those that all parts share, if each sample has random numbers of its own.
    pub(super) fn keys(&self, program: &ProgramModel<'_>) -> Vec<String> {
        // Noise on the sum of gradients is drawn once.
        if !self.is_drawn || self.gradients == GradientSums::OfEach {
            return Vec::new();
        }
        let parameters = program.parameters();
        let is_shared =
            |at: &&Instruction<'_>| is_key(at) && !at.shape().is_ok_and(|shape| begins_with(&shape, self.size));
        parameters.iter().filter(is_shared).map(name).collect()
    }
}

/// The fewest parts, up to eight, that free eight tenths or more of what they would without padding, or else those that
/// free most of it. The smaller a batch along the lanes, the more lanes it leaves empty, until features take its place.
fn parts_that_help(program: &ProgramModel<'_>, size: u64, arrays: &[(&LiveArray<'_>, usize)]) -> u64 {
    let bytes = |parts: u64| {
        let part = |(array, at): &(&LiveArray<'_>, usize)| bytes_of_part(program, array, *at, parts);
        let parts = arrays.iter().map(|array| part(array).unwrap_or(array.0.bytes));
        parts.fold(0, u64::saturating_add)
    };
    let whole = bytes(1);
    // Tenths of the bytes that they would free without padding.
    let kept = |parts: u64| {
        let freed = u128::from(whole.saturating_sub(bytes(parts)));
        freed * 10 * u128::from(parts) / (u128::from(whole) * u128::from(parts - 1)).max(1)
    };
    let choices = program.thresholds().parts.iter().copied().filter(|parts| is_whole(program, size, *parts));
    let other = || (2..=MOST_EACH).find(|parts| is_whole(program, size, *parts)).unwrap_or(2);
    choices.max_by_key(|parts| (kept(*parts).min(8), Reverse(*parts))).unwrap_or_else(other)
}

/// Whether a batch has this number of equal parts, and a compiler takes each as it takes the whole.
///
/// It fills the rows of a tile with pieces of a few samples, and keeps copies of them: for eight sounds in a convolutional
/// network, halves took 1652 MiB more than all at once, single sounds 1276 MiB less.
fn is_whole(program: &ProgramModel<'_>, size: u64, parts: u64) -> bool {
    let is_of_few = || size >= ROWS && (2..ROWS).contains(&(size / parts)) && slides_windows(program);
    size.is_multiple_of(parts) && !is_of_few()
}

/// Whether a TPU program convolves over neighbours; matrix products are convolutions, too.
fn slides_windows(program: &ProgramModel<'_>) -> bool {
    let is_window = |at: &Instruction<'_>| {
        at.opcode() == Opcode::Convolution
            && op_name(at).is_some_and(|name| name.contains("conv_general_dilated"))
            && at.window().is_some_and(|window| window.iter().any(|along| along.size != 1))
    };
    program.machine.generation().is_some() && program.module.instructions().any(|at| is_window(&at))
}

/// Whether random bits are made along a dimension of this size, perhaps merged with others.
fn draws_for_each(program: &ProgramModel<'_>, size: u64) -> bool {
    let is_of_each = |bounds: Vec<u64>| match bounds[..] {
        [merged] => merged >= size && merged.is_multiple_of(size),
        _ => bounds.contains(&size),
    };
    let shapes =
        |at: &Instruction<'_>| at.shape().ok().map(|shape| shape.leaves().map(|(_, leaf)| leaf).collect::<Vec<_>>());
    program
        .module
        .instructions()
        .filter(draws_bits)
        .filter_map(|at| shapes(&at))
        .flatten()
        .any(|leaf| is_of_each(leaf.dimensions().iter().filter_map(|dimension| dimension.bound()).collect()))
}

/// Names of inputs by the batch's dimension number: a function's parameter if all of its arrays have the batch there,
/// or else single arrays.
fn named(program: &ProgramModel<'_>, inputs: &[(String, usize)]) -> Vec<(usize, Vec<String>)> {
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (name, place) in inputs {
        found.entry(*place).or_default().push(name.clone());
    }
    found.into_iter().map(|(place, names)| (place, program.in_whole(&names))).collect()
}

#[cfg(test)]
mod tests {
    use crate::{Audit, Program, recommendation::finding::Finding};

    /// Calls with some of the rows would return the maximum of those: within one call, those of parts are joined.
    #[test]
    fn calls_return_rows() {
        let text = r#"HloModule jit_f, is_scheduled=true

join {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] JOIN(a, b)
}

ENTRY main {
  x.1 = f32[65536,128]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  w.1 = f32[128,4096]{1,0:T(8,128)} parameter(1), metadata={op_name="w"}
  v.1 = f32[4096,4096]{1,0:T(8,128)} parameter(2), metadata={op_name="v"}
  zero = f32[] constant(0)
  h = f32[65536,4096]{1,0:T(8,128)} dot(x.1, w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[65536,4096]{1,0:T(8,128)} dot(h, v.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[END reduce(y, zero), dimensions={AT}, to_apply=join
}"#;
        let found = |join: &str, end: &str, at: &str| {
            let text = text.replace("JOIN", join).replace("END", end).replace("AT", at);
            let report = Audit::new(&Program::parse(text).expect("a module")).run();
            let first = report.advice().first().map(|first| first.finding.clone());
            matches!(first.expect("a recommendation"), Finding::LargeDimension(_))
        };
        assert!(found("maximum", "65536]{0:T(1024)}", "1"));
        assert!(!found("add", "4096]{0:T(1024)}", "0"));
        assert!(!found("maximum", "4096]{0:T(1024)}", "0"));
    }
}
