//! Logits of a vocabulary: the loss needs them once, and can take a part of the sequence at a time.

use crate::advice::{
    change::Target,
    evidence::{ArrayFact, Evidence},
    finding::{Finding, Logits, LogitsUse},
    message::MessageModel,
    program::{LiveArray, ProgramModel},
    rule::{Proposal, Rule},
};
use crate::program::{Purpose, bounds, is_backward, is_forward, is_input, name, op_name, sorted, traced, tree};
use foldhash::HashSet;
use tilewise::ElementKind;
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Machine;
use tilewise_oom::Setting;

/// Smallest vocabulary in a message; other dimensions of models are smaller.
const VOCABULARY: u64 = 30_000;
/// Fewest tokens in two dimensions; fewer rows may be the features of a weight.
const TOKENS: u64 = 16_384;
const CHUNKS: u64 = 8;
/// Fewest positions of a text that have logits.
const PLACES: u64 = 1024;
/// Smallest vocabulary in a program, where its weight tells it from features.
const VOCABULARY_OF_A_WEIGHT: u64 = 8_192;

pub(crate) struct VocabularyLogits;

impl Rule for VocabularyLogits {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        proposal(evidence).into_iter().collect()
    }
}

/// Logits, their softmax and their gradients: `[tokens, vocabulary]`; in a program, a weight has the vocabulary, too.
fn proposal(evidence: &dyn Evidence) -> Option<Proposal> {
    if evidence.has_gradient() == Some(false) {
        return None;
    }
    let vocabulary = evidence.program().map(Vocabulary::of);
    if matches!(vocabulary, Some(None)) {
        return None;
    }
    let vocabulary = vocabulary.flatten();
    let is_it = |array: &dyn ArrayFact| match (&vocabulary, array.live()) {
        (Some(vocabulary), Some(array)) => vocabulary.has(array),
        _ => may_be_logits(array),
    };
    let is_length = |size: u64| {
        let is_it = |setting: &Setting| !setting.is_of_batch() && setting.value == size;
        evidence.message().is_some_and(|message| message.listing.message.job.settings.iter().any(is_it))
    };
    let at_peak = evidence.temporaries().into_iter().filter(|array| is_it(*array));
    let largest = at_peak.max_by_key(|array| array.bytes())?;
    let size = match &vocabulary {
        Some(vocabulary) => vocabulary.size,
        None => *largest.bounds().last().filter(|size| !is_length(**size))?,
    };
    let all = evidence.program().map_or_else(|| evidence.temporaries(), |program| program.held_temporaries());
    let logits = all.into_iter().filter(|array| is_it(*array));
    let logits: Vec<&dyn ArrayFact> = logits.collect();
    let phase = evidence.program().map_or(Phase::Loss, |program| Phase::of_peak(program, &logits));
    // The chunks are done before the layers below the logits run backward.
    let left = |bytes: u64| if phase == Phase::Later { 0 } else { bytes / CHUNKS };
    let mut buffers: Vec<(usize, u64)> = logits.iter().map(|array| (array.buffer(), left(array.bytes()))).collect();
    // The chunks also need the sum of the weight's gradients, in the loss's type. If the peak is in the backward pass,
    // the weight's own gradients are live there anyway.
    if phase == Phase::Loss {
        let bits = logits.iter().map(|array| u64::from(array.element_type().bits())).min().unwrap_or(0);
        let arguments = evidence.arguments();
        let weights = arguments.iter().filter(|array| array.bounds().len() == 2 && array.bounds().contains(&size));
        let gradient = |weight: &&dyn ArrayFact| (weight.elements().saturating_mul(bits) / 8).min(weight.bytes());
        let gradient_bytes = weights.map(gradient).max().unwrap_or(0);
        for (_, bytes) in buffers.iter_mut().filter(|(buffer, _)| *buffer == largest.buffer()) {
            *bytes = bytes.saturating_add(gradient_bytes);
        }
    }
    let finding = Finding::Logits(Logits {
        vocabulary: size,
        is_shown: vocabulary.is_some()
            || is_named(&largest.op_name())
            || evidence.message().is_some_and(|message| are_tokens(message, largest.elements() / size.max(1))),
        chunks: CHUNKS,
        is_capped: evidence.program().is_some_and(|program| is_capped(program, size)),
        are_labels_dense: evidence.program().is_some_and(|program| are_labels_dense(program, size)),
        used: evidence.program().map_or(LogitsUse::Loss, |program| use_of(program, size, &largest.op_name())),
        is_on_devices: evidence.program().is_some_and(|program| program.partitions > 1),
        weight: evidence.program().and_then(|program| weight(program, size)),
    });
    Some(Proposal::new(finding, Target::Value, largest.advised(evidence)).at_most(buffers).bound())
}

/// Whether `places` are those of all samples, by the job's own settings.
fn are_tokens(message: &MessageModel<'_>, places: u64) -> bool {
    message.listing.message.job.elements_of_samples() == Some(places)
}

/// The vocabulary of a language model, from its program.
pub(crate) struct Vocabulary {
    pub(crate) size: u64,
    /// Sorted bounds of arguments: weights, gradients and optimizers' states have them, and aren't logits.
    arguments: HashSet<Vec<u64>>,
}

impl Vocabulary {
    /// The vocabulary of the largest logits at the peak, if a weight and a softmax have it, too.
    pub(crate) fn of(program: &ProgramModel<'_>) -> Option<Self> {
        let arguments: HashSet<Vec<u64>> = program.arguments().map(|array| sorted(&array.bounds)).collect();
        let is_weight = |array: &&LiveArray<'_>| array.bounds.len() == 2 && !is_of_data(program, array);
        let weights = program.arguments().filter(is_weight);
        let wide: HashSet<u64> =
            weights.flat_map(|array| &array.bounds).copied().filter(|size| *size >= VOCABULARY_OF_A_WEIGHT).collect();
        // Rows of a large batch are as wide, but no softmax goes over them: exponentials of negated values are a SiLU's or a gate's.
        let is_negated = |at: &Instruction<'_>| {
            let mut operands = at.operands().filter_map(|operand| operand.instruction());
            operands.any(|operand| operand.opcode() == Opcode::Negate)
        };
        let is_of_softmax = |at: &Instruction<'_>| at.opcode() == Opcode::Exponential && !is_negated(at);
        let exponentials = program.module.instructions().filter(is_of_softmax);
        let softmaxes: HashSet<u64> = exponentials.filter_map(|at| widest_of_many(&at)).collect();
        let sized = |array: &LiveArray<'_>| {
            let size = *array.bounds.iter().max()?;
            let vocabulary = Self { size, arguments: HashSet::default() };
            (wide.contains(&size)
                && softmaxes.contains(&size)
                && !arguments.contains(&sorted(&array.bounds))
                && vocabulary.has(array))
            .then_some((array.bytes, size))
        };
        let (_, size) = program.peak_temporaries().filter_map(sized).max()?;
        (!is_of_samples(program, size)).then_some(Self { size, arguments })
    }

    /// Whether an array has one value for each token of the vocabulary at each of many positions of a text.
    pub(crate) fn has(&self, array: &LiveArray<'_>) -> bool {
        let is_of_tokens = array.elements() / self.size.max(1) >= PLACES;
        is_of_tokens
            && array.bounds.iter().max() == Some(&self.size)
            && !self.arguments.contains(&sorted(&array.bounds))
    }
}

/// The phase of a program at its peak.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The forward pass, up to the loss.
    Loss,
    /// The loss's backward pass, which makes or reads logits.
    BackwardOfLoss,
    /// The backward pass of the layers below the logits.
    Later,
}

impl Phase {
    fn of_peak(program: &ProgramModel<'_>, logits: &[&dyn ArrayFact]) -> Self {
        let peak = program.plan.space(0).and_then(|hbm| hbm.peak.as_ref());
        let peak = peak.and_then(|peak| program.module.instruction(peak.instruction));
        let name = peak.as_ref().and_then(|peak| traced(program.flow, peak).0);
        let Some(peak) = peak.filter(|_| name.is_some_and(|name| is_backward(&name))) else { return Self::Loss };
        let works_on = |array: &LiveArray<'_>| {
            let mut readers = program.readers(array.position).filter_map(|op| program.flow.instruction(op));
            array.instruction.index() == peak.index() || readers.any(|reader| reader.index() == peak.index())
        };
        let is_of_logits = logits.iter().filter_map(|array| array.live()).any(works_on);
        if is_of_logits { Self::BackwardOfLoss } else { Self::Later }
    }
}

/// The parameter that makes logits: the only matrix that has the vocabulary last, or, of tied embeddings, first.
fn weight(program: &ProgramModel<'_>, vocabulary: u64) -> Option<(String, bool)> {
    let weights = program.arguments().filter(|array| array.bounds.len() == 2);
    let named = weights.map(|array| (name(&array.instruction), &array.bounds));
    let named: Vec<(String, &Vec<u64>)> =
        named.filter(|(name, _)| Purpose::of_argument(name) == Purpose::Parameter).collect();
    let only = |at: usize| {
        let mut all = named.iter().filter(|(_, bounds)| bounds[at] == vocabulary && bounds[1 - at] != vocabulary);
        all.next().map(|(name, _)| (name.clone(), all.next().is_none()))
    };
    let (name, is_first, is_only): (String, bool, bool) = match (only(1), only(0)) {
        (Some((name, is_only)), _) => (name, false, is_only),
        (None, Some((name, is_only))) => (name, true, is_only),
        (None, None) => return None,
    };
    let tree = tree(&name)?;
    let path = &name[name.rfind(tree)?..];
    // No program writes a number for a weight: a library flattened its tree.
    let is_numbered = path.split('[').skip(1).any(|item| item.starts_with(|first: char| first.is_ascii_digit()));
    (is_only && !is_numbered).then(|| (path.to_owned(), is_first))
}

/// Whether logits are bounded by a hyperbolic tangent.
fn is_capped(program: &ProgramModel<'_>, vocabulary: u64) -> bool {
    let bends = |at: &Instruction<'_>| at.opcode() == Opcode::Tanh && widest_of_many(at) == Some(vocabulary);
    program.module.instructions().any(|at| bends(&at))
}

/// Whether `jax.nn.one_hot` makes dense labels over the vocabulary.
fn are_labels_dense(program: &ProgramModel<'_>, vocabulary: u64) -> bool {
    let spreads = |at: &Instruction<'_>| {
        at.opcode() == Opcode::Compare
            && widest_of_many(at) == Some(vocabulary)
            && op_name(at).is_some_and(|name| name.contains("jit(_one_hot)"))
    };
    program.module.instructions().any(|at| spreads(&at))
}

/// The use of logits, the largest of which have this name: what is differentiated may read those that are made outside of it.
fn use_of(program: &ProgramModel<'_>, vocabulary: u64, largest: &str) -> LogitsUse {
    let has_it = |at: &Instruction<'_>| widest_of_many(at) == Some(vocabulary);
    let is_product = |at: &Instruction<'_>| matches!(at.opcode(), Opcode::Dot | Opcode::Convolution) && has_it(at);
    let is_outside = |name: &str| !is_forward(name) && !is_backward(name);
    let products = program.module.instructions().filter(is_product);
    let outside = products.filter(|at| op_name(at).is_some_and(|name| is_outside(&name))).map(|at| (at.index(), 0));
    let is_array = |at: &Instruction<'_>| at.shape().is_ok_and(|shape| shape.as_array().is_some());
    let is_other = |at: usize| program.module.instruction(at).is_none_or(|at| is_array(&at) && !has_it(&at));
    let reached = program.flow.axes().reach(outside, &is_other);
    let is_read = |of: usize| reached.has_any(of) && program.module.instruction(of).is_some_and(|of| has_it(&of));
    let reads = |at: &Instruction<'_>| {
        op_name(at).is_some_and(|name| !is_outside(&name)) && at.operand_indices().flatten().any(is_read)
    };
    match program.module.instructions().any(|at| reads(&at)) {
        true => LogitsUse::Distillation,
        false if !largest.is_empty() && is_outside(largest) => LogitsUse::Scores,
        false => LogitsUse::Loss,
    }
}

/// Whether an argument is one of several sets of input rows with as many columns: pairs of their rows aren't logits.
fn is_of_data(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
    let is_set = |other: &LiveArray<'_>| {
        let is_alike = other.bounds.len() == 2 && other.bounds[1] == array.bounds[1] && other.bounds[0] >= PLACES;
        is_alike && is_input(&name(&other.instruction))
    };
    is_set(array) && program.arguments().filter(|other| is_set(other)).count() > 1
}

/// Whether there are products with such a dimension, none with a matrix that has it, such as a weight: it is each
/// sample's keys, as in attention.
fn is_of_samples(program: &ProgramModel<'_>, size: u64) -> bool {
    let is_matrix = |of: &Instruction<'_>| {
        let bounds = bounds(of).unwrap_or_default();
        bounds.contains(&size) && bounds.iter().filter(|bound| **bound > 1).count() == 2
    };
    let is_product = |at: &Instruction<'_>| {
        matches!(at.opcode(), Opcode::Dot | Opcode::Convolution) && widest_of_many(at) == Some(size)
    };
    let mut products = program.module.instructions().filter(is_product).peekable();
    products.peek().is_some()
        && !products.any(|at| at.operands().filter_map(|of| of.instruction()).any(|of| is_matrix(&of)))
}

/// The largest bound of an array, if the array has at least `PLACES` elements for each of its indices.
fn widest_of_many(at: &Instruction<'_>) -> Option<u64> {
    let shape = at.shape().ok()?;
    let bounds: Vec<u64> = shape.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    let widest = *bounds.iter().max()?;
    let elements = bounds.iter().fold(1, |product: u64, bound| product.saturating_mul(*bound));
    (elements / widest.max(1) >= PLACES).then_some(widest)
}

/// Whether an array that a message lists has the shape of logits, and a name of theirs.
pub(super) fn is_logits(array: &dyn ArrayFact) -> bool {
    is_named(&array.op_name()) && may_be_logits(array)
}

/// Whether an array that a message lists has the shape of logits, and no name of anything else: a product makes them.
fn may_be_logits(array: &dyn ArrayFact) -> bool {
    let bounds = array.bounds();
    let [.., before, last] = bounds else { return false };
    let name = array.op_name();
    // In TensorFlow the gradient of a product's second factor, which is the weight.
    let is_of_weight = name.ends_with("MatMul_grad/MatMul_1");
    let is_of_loss = ["softmax", "entropy", "nll_loss"].iter().any(|sign| name.contains(sign));
    let are_places = bounds.len() > 2 || *before >= TOKENS || is_of_loss && *before >= PLACES;
    array.element_type().kind() == ElementKind::Float
        && *last >= VOCABULARY
        && before != last
        && !is_of_weight
        && are_places
        && (is_named(&name) || name.is_empty() || name.ends_with("dot_general"))
}

fn is_named(name: &str) -> bool {
    const SIGNS: [&str; 10] = [
        "logit",
        "vocab",
        "entropy",
        "lm_head",
        "embed",
        "softmax",
        "nll_loss",
        "decode",
        "take_along_axis",
        "output_projection",
    ];
    SIGNS.iter().any(|sign| name.contains(sign))
}
