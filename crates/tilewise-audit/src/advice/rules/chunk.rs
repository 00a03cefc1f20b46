//! Most temporaries at the peak share one dimension, mostly of the input: compute it in parts, one after the other.

use super::{
    attention::is_scores, batch::Batch, copied_weights::is_copied_argument, logits::is_logits, narrow::is_converted,
};
use crate::{
    advice::{
        change::Target,
        evidence::{ArrayFact, Evidence, Listed},
        finding::{Finding, GradientSums, Joint, LargeDimension, Library, SmallerBatch},
        message::{ListedArray, MessageModel, total},
        program::ProgramModel,
        rule::{Proposal, Rule},
        split,
    },
    message::Allocation,
    program::traced,
};
use foldhash::{HashMap, HashSet};
use tilewise::ElementKind;
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Role;

/// Default number of parts, and smallest batch: what remains of a halved array is still the largest.
const PARTS: u64 = 8;

pub(crate) struct OneLargeDimension;

impl Rule for OneLargeDimension {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let proposal = match (evidence.program(), evidence.message()) {
            (Some(program), _) => Batch::of(program).map(|batch| of_batch(program, &batch)),
            (_, Some(message)) => of_message(evidence, message),
            _ => None,
        };
        proposal.into_iter().collect()
    }
}

/// Whether a constant of a program is the number of positions, its inverse, or twice that, or such of a multiple of it: a mean is divided
/// by it, and so is the gradient of a mean of squares.
fn has_mean(program: &ProgramModel<'_>, size: u64) -> bool {
    // Half of the last place of an `f32`, which an inverse has lost.
    const ROUNDED: f64 = 6e-8;
    #[expect(clippy::cast_precision_loss, reason = "no dimension has as many positions")]
    let size = size as f64;
    let is_multiple = |count: f64| {
        let beyond = count.round() % size;
        count.round() >= size
            && beyond.min(size - beyond) <= count * ROUNDED
            && (count - count.round()).abs() <= 2.0 * count * ROUNDED
    };
    let is_of_mean = |at: &Instruction<'_>| {
        let is_float =
            || at.shape().is_ok_and(|shape| shape.element_type().is_some_and(|of| of.kind() == ElementKind::Float));
        let value = at.operands_text().trim().parse().map_or(0.0, f64::abs);
        at.opcode() == Opcode::Constant
            && value > 0.0
            && is_float()
            && [value, 1.0 / value, 2.0 / value].into_iter().any(is_multiple)
    };
    program.module.instructions().any(|at| is_of_mean(&at))
}

/// The proposal for a program's batch, with the saving of its number of parts.
fn of_batch(program: &ProgramModel<'_>, batch: &Batch<'_, '_>) -> Proposal {
    let size = batch.size;
    let finding = LargeDimension {
        size,
        place: batch.place,
        inputs: batch.inputs.clone(),
        gradients: batch.gradients,
        // `filter_value_and_grad`, under any `jit`.
        gradient_of: if program.module.source().contains("equinox/_ad.py") { Library::Equinox } else { Library::Jax },
        keys: batch.keys(program),
        is_known: true,
        arrays: batch.buffers.len(),
        is_made: batch.is_made,
        joint: batch.joined.map(|(at, how)| Joint {
            source: traced(program.flow, &at).1,
            are_sums: how == split::Joint::Sums,
            has_rows: batch.is_in_a_result,
        }),
        is_on_devices: program.partitions > 1 && !program.is_mapped(),
        is_divided: batch.is_divided && batch.gradients == GradientSums::Summed,
        is_summed: !has_mean(program, size),
        is_to_fit: batch.is_to_fit,
        others: batch.others,
        // Other libraries' functions take more than arrays; of a dimension that devices divide, parts would be moved between
        // them; without a gradient, a result that isn't each sample's or a sum can't be split, nor can a gradient that all samples
        // have a part in before it is each one's.
        function: Some(program.function().to_owned()).filter(|_| {
            let is_joined = match batch.gradients {
                GradientSums::Summed => batch.joined.is_none(),
                _ => program.has_gradient || batch.is_in_all_results || batch.joined.is_some(),
            };
            !batch.is_made && program.library == Library::Jax && is_joined && program.partitions <= 1
        }),
        in_parts: batch.in_parts.clone(),
        smaller: batch.smaller.clone().map(|smaller| SmallerBatch { is_mixed: batch.joined.is_some(), ..smaller }),
    };
    let proposal = Proposal::new(Finding::LargeDimension(finding), Target::Value, program.advised(batch.largest));
    let proposal = proposal.at_most(batch.buffers.iter().copied()).bound();
    let (parts, estimate) = (Some(batch.parts), Some(batch.freed));
    let joint = batch.joined.map(|(at, _)| at.index());
    Proposal { parts, estimate, is_of_pairs: batch.is_of_pairs, joint, ..proposal }
}

/// The proposal for a message: a leading dimension of most listed temporaries that no other rule covers.
fn of_message(evidence: &dyn Evidence, message: &MessageModel<'_>) -> Option<Proposal> {
    if message.listing.message.function_of_jax().is_some() {
        return None;
    }
    let has_own_rule = |array: &ListedArray<'_>| is_copied_argument(array.row) || is_logits(array) || is_scores(array);
    let temporaries = || message.arrays.iter().filter(|array| array.role == Role::Temporary);
    let rows: Vec<&ListedArray<'_>> =
        temporaries().filter(|array| !is_converted(array.row) && !has_own_rule(array)).collect();
    let size = common_size(&rows)?;
    let with_it = || rows.iter().copied().filter(|row| row.bounds.first() == Some(&size));
    let shapeless = message.temporaries.iter().copied().filter(|row| row.shape.is_none() && !is_converted(row));
    let listed = total(rows.iter().map(|array| array.row).chain(shapeless), Allocation::taken_bytes);
    let held = total(with_it().map(|array| array.row), Allocation::taken_bytes);
    if u128::from(held) * 100 < u128::from(listed) * u128::from(evidence.thresholds().min_percent) {
        return None;
    }
    // One shape alone doesn't tell which of its dimensions is the batch.
    let alike = message.arrays.iter().filter(|array| array.bounds.first() == Some(&size));
    let shapes: HashSet<&[u64]> = alike.map(|array| &array.bounds[..]).collect();
    if shapes.len() < 2 && !with_it().any(|row| row.op_name().contains("vmap(")) {
        return None;
    }
    let largest = with_it().max_by_key(|row| row.row.taken_bytes())?;
    let parts = evidence.thresholds().parts.iter().copied().max().unwrap_or(PARTS);
    // A part of a batch has a part of its logits and scores, too.
    let split = || temporaries().filter(|array| array.bounds.first() == Some(&size));
    let held = total(split().map(|array| array.row), Allocation::taken_bytes);
    let has_gradient = evidence.has_gradient() == Some(true);
    let finding = LargeDimension {
        size,
        place: 0,
        inputs: Vec::new(),
        gradients: if has_gradient { GradientSums::Summed } else { GradientSums::None },
        gradient_of: Library::Jax,
        keys: Vec::new(),
        is_known: false,
        arrays: split().count(),
        is_made: false,
        others: None,
        joint: None,
        is_on_devices: false,
        is_divided: false,
        is_summed: false,
        is_to_fit: false,
        function: None,
        in_parts: None,
        smaller: None,
    };
    let proposal = Proposal::new(Finding::LargeDimension(finding), Target::Value, largest.advised(evidence));
    let proposal = proposal.at_most(split().map(|array| (array.number, array.row.taken_bytes() / parts))).bound();
    let proposal = proposal.extrapolated(evidence, held / parts * (parts - 1), Listed::Bytes);
    Some(Proposal { parts: Some(parts), ..proposal })
}

/// The size of the leading dimension that most bytes share and that may be a batch.
fn common_size(rows: &[&ListedArray<'_>]) -> Option<u64> {
    let ruled_out: HashSet<u64> = rows.iter().flat_map(|row| no_batches(row)).collect();
    let mut sizes: HashMap<u64, u64> = HashMap::default();
    for row in rows {
        if let Some(size) = row.bounds.first().filter(|size| **size >= PARTS && !ruled_out.contains(size)) {
            let held = sizes.entry(*size).or_default();
            *held = held.saturating_add(row.row.taken_bytes());
        }
    }
    sizes.into_iter().max_by_key(|(size, held)| (*held, *size)).map(|(size, _)| size)
}

/// Sizes of an array that aren't a batch, by its shape and its operation's name: those of a square pair, which are
/// pixels, positions or a matrix's; the first one in a loop, which its steps may stack up; and all beside a batch of
/// one.
fn no_batches(array: &ListedArray<'_>) -> Vec<u64> {
    let (bounds, name) = (&array.bounds, array.op_name());
    let is_alone = bounds.len() > 2 && bounds[0] == 1 || name.contains("lhs_shape=(1, ");
    if is_alone {
        return bounds.clone();
    }
    let pairs = bounds.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    let stacked = bounds.first().copied().filter(|_| bounds.len() > 1 && name.contains("while/body"));
    pairs.chain(stacked).collect()
}
