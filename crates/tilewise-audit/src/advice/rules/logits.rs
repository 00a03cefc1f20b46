//! Logits of a vocabulary: the loss needs them once, and a part of the sequence at a time will do.

use crate::{
    advice::{
        message::{MessageModel, total},
        program::{BufferChanges, LiveArray, ProgramModel},
        recommendation::{Change, Recommendation, Saving, Target},
        rule::{MessageRule, Proposal, Rule},
        snippet::JAX_AND_NUMPY,
        words::bounds_text,
    },
    message::Allocation,
    program::at_line,
};
use std::collections::{HashMap, HashSet};
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Machine;

/// Vocabularies are larger; other dimensions of models are smaller.
const VOCABULARY: u64 = 30_000;
/// Of two dimensions, the other is tokens, not the features of a weight.
const TOKENS: u64 = 16_384;
const PARTS: u64 = 8;
/// Logits are of so many places of a text at least.
const PLACES: u64 = 1024;
/// In a program it is known which weight has the dimension, so smaller vocabularies are told from features.
const VOCABULARY_OF_A_WEIGHT: u64 = 8_192;

const CODE: &str = "@jax.checkpoint
def loss_of(chunk):
    hidden, labels = chunk
    logits = (hidden @ head).astype(jnp.float32)
    picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(logits, axis=-1) - picked).sum()
chunks = jax.tree.map(lambda x: x.reshape(8, -1, *x.shape[2:]), (hidden, labels))  # [batch, sequence, …]
loss = jax.lax.map(loss_of, chunks).sum() / labels.size";

pub(crate) struct VocabularyLogits;

impl Rule for VocabularyLogits {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
        proposal(program).into_iter().collect()
    }
}

/// The vocabulary of a language model, as its program tells it.
pub(crate) struct Vocabulary {
    pub(crate) size: u64,
    /// Bounds of arguments in rising order: of weights, gradients and states of optimizers, which are no logits.
    arguments: HashSet<Vec<u64>>,
}

impl Vocabulary {
    /// That of the largest logits at the peak, where a weight has it, too, and a softmax.
    pub(crate) fn of(program: &ProgramModel<'_>) -> Option<Self> {
        let arguments: HashSet<Vec<u64>> = program.arguments().map(sorted).collect();
        let weights = program.arguments().filter(|array| array.bounds.len() == 2);
        let wide: HashSet<u64> =
            weights.flat_map(|array| &array.bounds).copied().filter(|size| *size >= VOCABULARY_OF_A_WEIGHT).collect();
        // Rows of a large batch are wide, too, and no softmax goes over them.
        let exponentials = program.module.instructions().filter(|at| at.opcode() == Opcode::Exponential);
        let softmaxes: HashSet<u64> = exponentials.filter_map(|at| widest_of_many(&at)).collect();
        let sized = |array: &LiveArray<'_>| {
            let size = *array.bounds.iter().max()?;
            let vocabulary = Self { size, arguments: HashSet::new() };
            (wide.contains(&size)
                && softmaxes.contains(&size)
                && !arguments.contains(&sorted(array))
                && vocabulary.has(array))
            .then_some((array.bytes, size))
        };
        let (_, size) = program.peak_temporaries().filter_map(sized).max()?;
        Some(Self { size, arguments })
    }

    /// Whether an array has a number for each token of the vocabulary and each of many places of a text.
    pub(crate) fn has(&self, array: &LiveArray<'_>) -> bool {
        let is_of_tokens = array.elements() / self.size.max(1) >= PLACES;
        is_of_tokens && array.bounds.iter().max() == Some(&self.size) && !self.arguments.contains(&sorted(array))
    }
}

/// The largest bound of an array that has it many times.
fn widest_of_many(at: &Instruction<'_>) -> Option<u64> {
    let shape = at.shape().ok()?;
    let bounds: Vec<u64> = shape.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    let widest = *bounds.iter().max()?;
    let elements = bounds.iter().fold(1, |product: u64, bound| product.saturating_mul(*bound));
    (elements / widest.max(1) >= PLACES).then_some(widest)
}

fn sorted(array: &LiveArray<'_>) -> Vec<u64> {
    let mut bounds = array.bounds.clone();
    bounds.sort_unstable();
    bounds
}

/// Logits, what a softmax makes of them and their gradients: [tokens, vocabulary], where a weight has the vocabulary, too.
fn proposal<'m>(program: &ProgramModel<'m>) -> Option<Proposal> {
    if !program.has_gradient() {
        return None;
    }
    let vocabulary = Vocabulary::of(program)?;
    let size = vocabulary.size;
    let largest = program.peak_temporaries().filter(|array| vocabulary.has(array)).max_by_key(|array| array.bytes)?;
    let logits = program.temporaries().filter(|array| vocabulary.has(array));
    let mut at_most: HashMap<usize, u64> = logits.map(|array| (array.buffer, array.bytes / PARTS)).collect();
    // Beside the chunks lies the sum of their gradients of that weight.
    let gradient = program.arguments().filter(|array| array.bounds.len() == 2 && array.bounds.contains(&size));
    let gradient_bytes = gradient.map(|array| array.bytes).max().unwrap_or(0);
    at_most.entry(largest.buffer).and_modify(|bytes| *bytes = bytes.saturating_add(gradient_bytes));
    let sentence = format!(
        "Compute the cross entropy in chunks of tokens, each behind `jax.checkpoint`, with your own masks and weights: [{}]{} \
         has a number for each of {size} tokens of the vocabulary; {PARTS} chunks hold an eighth of that",
        bounds_text(&largest.bounds),
        at_line(&largest.instruction)
    );
    Some(Proposal {
        buffers: BufferChanges { at_most, ..BufferChanges::default() },
        is_bound: true,
        snippet: program.snippet(JAX_AND_NUMPY, CODE),
        ..Proposal::new(Change::Chunk, Target::Value, program.advised(largest), sentence)
    })
}

impl MessageRule for VocabularyLogits {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        of_message(message).into_iter().collect()
    }
}

fn of_message(message: &MessageModel<'_>) -> Option<Recommendation> {
    let logits = || message.temporaries.iter().copied().filter(|row| is_logits(row));
    let largest = logits().max_by_key(|row| row.taken_bytes())?;
    let shape = largest.shape.as_ref()?.without_layout().to_string();
    let vocabulary = *largest.bounds().last()?;
    let sentence = format!(
        "Compute the cross entropy in chunks of the sequence, each behind `jax.checkpoint`: {shape}{} has a number for each \
         of {vocabulary} tokens of the vocabulary; {PARTS} chunks hold an eighth of that",
        largest.at_line()
    );
    let held = total(logits(), Allocation::taken_bytes);
    let found = Recommendation::new(Change::Chunk, Target::Value, sentence)
        .about(shape)
        .saving(Saving::AtMost(held / PARTS * (PARTS - 1)));
    Some(message.with_jax(found, JAX_AND_NUMPY, CODE))
}

pub(super) fn is_logits(row: &Allocation) -> bool {
    let bounds = row.bounds();
    let is_wide = bounds.last().is_some_and(|last| *last >= VOCABULARY && (!is_picture(*last) || is_named(row)));
    is_wide && (bounds.len() > 2 || bounds.len() == 2 && bounds[0] >= TOKENS)
}

/// Pixels of a square picture are as many, such as 512 × 512; Gemma's vocabulary, too.
fn is_picture(size: u64) -> bool {
    size.is_power_of_two() && size.trailing_zeros().is_multiple_of(2)
}

fn is_named(row: &Allocation) -> bool {
    let name = row.op_name();
    ["logit", "vocab", "entropy", "lm_head", "embed", "softmax", "decode"].iter().any(|sign| name.contains(sign))
}
