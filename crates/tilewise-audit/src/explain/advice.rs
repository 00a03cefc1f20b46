//! What to do, best first: each piece of advice with what it frees, or at most frees.

use super::{Explanation, interface, kernel, run_time, temporaries};
use crate::{AdviceKind, AdviceTarget};
use tilewise_oom::{Budget, Form, Framework, Verdict};

/// What a message tells of what to do, and what that frees as far as it tells. Fields are those of
/// [`Advice`](crate::Advice) where they mean the same; only a program tells which instruction makes an array, and how
/// far its peak falls.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageAdvice {
    /// What sort of change it is.
    pub kind: AdviceKind,
    /// What is changed.
    pub target: AdviceTarget,
    /// The array it is about, as a text, since it may be cut off; of several the largest.
    pub shape: Option<String>,
    /// Bytes it frees, where that is known.
    pub bytes_saved: Option<u64>,
    /// Whether that is the most it can free.
    pub is_bound: bool,
    /// What to do, without a full stop.
    pub sentence: String,
    /// The code that does it, in the language of the framework that the message is of.
    pub code: Option<String>,
    /// What that code imports.
    pub imports: Option<&'static str>,
}

impl MessageAdvice {
    pub(super) fn new(kind: AdviceKind, target: AdviceTarget, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { kind, target, shape: None, bytes_saved: None, is_bound: false, sentence, code: None, imports: None }
    }

    /// At most so many bytes.
    pub(super) fn up_to(self, saved: u64) -> Self {
        Self { bytes_saved: Some(saved), is_bound: true, ..self }
    }

    pub(super) fn with_code(self, imports: &'static str, code: impl Into<String>) -> Self {
        Self { imports: Some(imports), code: Some(code.into()), ..self }
    }
}

/// More than that nobody reads.
const MOST: usize = 4;

/// A change matters if it frees a tenth of what is missing, and a hundredth of what is used.
const OF_MISSING: u128 = 10;
const OF_USED: u128 = 100;
/// Beside the best, a twentieth of it is not worth a line.
const OF_BEST: u128 = 20;

impl Explanation {
    /// What to do about the message, best first.
    ///
    /// Layouts and shapes are advised on for what crosses the program's interface alone: a compiler undoes what is
    /// asked for of values inside.
    ///
    /// ```
    /// use tilewise_oom::Message;
    ///
    /// let text = "Ran out of memory in memory space hbm. Used 294.50M of 250.00M hbm. Exceeded hbm capacity by 44.50M.
    ///   Largest program allocations in hbm:
    ///   1. Size: 195.31M
    ///      Operator: op_name=\"jit(step)/gather\"
    ///      Shape: f32[400000,12]{1,0:T(8,128)}
    ///      ==========================";
    /// let advice = tilewise_audit::explain(Message::parse(text)?, None).advice();
    /// assert_eq!((advice[0].kind.as_str(), advice[0].target.as_str()), ("split", "upstream"));
    /// assert_eq!((advice[0].bytes_saved, advice[0].is_bound), (Some(185_600_000), true));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn advice(&self) -> Vec<MessageAdvice> {
        let message = &self.message;
        let budget = message.budget();
        // Where nothing tells, the code is JAX's.
        let framework = message.framework.unwrap_or(Framework::Jax);
        match message.verdict() {
            Verdict::NotTpu => {
                vec![MessageAdvice::new(
                    AdviceKind::None,
                    AdviceTarget::Process,
                    "ask the documentation of that device's allocator; nothing here applies",
                )]
            }
            Verdict::Spills => kernel::spills(self, framework),
            Verdict::KernelMemory => kernel::of(self, framework),
            Verdict::Reservation | Verdict::Fragmentation if message.form == Form::RunTime => {
                run_time::of(message, framework)
            }
            Verdict::Unknown => vec![run_time::unknown(message)],
            verdict => program(self, &budget, framework, verdict),
        }
    }
}

/// About a program that does not fit into HBM.
fn program(explanation: &Explanation, budget: &Budget, framework: Framework, verdict: Verdict) -> Vec<MessageAdvice> {
    let matters = |piece: &MessageAdvice| {
        let saved = u128::from(piece.bytes_saved.unwrap_or_default());
        saved * OF_MISSING >= u128::from(budget.missing_bytes.unwrap_or_default())
            && saved * OF_USED >= u128::from(budget.used_bytes.unwrap_or_default())
            && saved > 0
    };
    let mut advice = interface::of(explanation, framework);
    advice.extend(temporaries::of(explanation, budget, framework));
    advice.retain(matters);
    let best = advice.iter().filter_map(|piece| piece.bytes_saved).max().unwrap_or_default();
    advice.retain(|piece| u128::from(piece.bytes_saved.unwrap_or_default()) * OF_BEST >= u128::from(best));
    // Stable: of equals, what the caller hands over comes first, then what keeps every value.
    // If padding is the matter, what works on padding comes first.
    let works_on_padding = |piece: &MessageAdvice| match piece.kind {
        AdviceKind::Chunk | AdviceKind::Checkpoint | AdviceKind::Donate => false,
        AdviceKind::Narrow => piece.target == AdviceTarget::Compiler,
        _ => true,
    };
    let is_beside = |piece: &MessageAdvice| verdict == Verdict::Padding && !works_on_padding(piece);
    advice.sort_by_key(|piece| (is_beside(piece), std::cmp::Reverse(piece.bytes_saved)));
    let are_most = |arguments: u64| arguments > budget.used_bytes.unwrap_or_default() / 2;
    let is_size = verdict == Verdict::Size && budget.argument_bytes.is_some_and(are_most);
    if verdict == Verdict::Arguments || is_size {
        advice.insert(0, interface::shard(budget, framework));
    }
    advice.truncate(MOST);
    if explanation.message.form == Form::Cores {
        return vec![run_time::cores(&explanation.message)];
    }
    if advice.is_empty() || explanation.allocations.is_empty() {
        advice.push(look_inside(framework, explanation.allocations.is_empty()));
    }
    advice
}

/// What the message itself does not tell.
fn look_inside(framework: Framework, is_bare: bool) -> MessageAdvice {
    let why =
        if is_bare { "the message lists no arrays" } else { "nothing that the message lists tells what would help" };
    let sentence = format!("{why}: dump the program, and run `tilewise audit DIR`, which says what owns the peak");
    let code = match framework {
        Framework::TensorFlow => "TF_XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" python train.py",
        _ => "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" python train.py",
    };
    MessageAdvice {
        code: Some(code.to_owned()),
        ..MessageAdvice::new(AdviceKind::Audit, AdviceTarget::Process, sentence)
    }
}
