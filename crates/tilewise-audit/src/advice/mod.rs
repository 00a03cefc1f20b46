//! What to change in a program so that it holds less at its peak.
//!
//! A TPU compiler chooses the layouts of values inside a program from the operations around them, and undoes what a
//! program asks for there. So only two sorts of change are proposed: of what crosses the program's interface, whose
//! layout is the caller's, and of which arrays exist at all. Each is priced by planning the program's memory again with
//! the buffers changed: what is dead at the peak frees nothing, and is no advice.
//!
//! | kind | target | proposed where |
//! |---|---|---|
//! | `order` | argument, result | it isn't in the default order and takes more than in that |
//! | `order` | argument, result | the program copies it into another order, and does nothing else with it |
//! | `reshape` | argument | it is padded in the default order, and only elementwise operations lie between it and the results |
//! | `split` | argument | it has a few columns, padded to whole rows of a tile |
//! | `split` | upstream | rows of a few columns that a gather makes or a scatter reads fill 128 lanes each |
//! | `transpose` | kernel | a Pallas kernel's operands or results have rows of a few columns |
//! | `donate` | argument | a result of its shape is made of it by elementwise operations or updates in place |
//! | `checkpoint` | loop | a loop stacks values for its gradient that it could work out again |
//! | `chunk` | value | most of the peak's temporaries have one dimension of the input in common |
//! | `none` | value | the program's memory isn't padding, and none of the above applies |

mod batch;
mod handover;
mod interface;
mod kernel;
mod loops;
mod reasons;
mod rows;
mod scene;
mod words;

use crate::{CopyClass, Report, SourceLine, copies::trace::Tracer};
use handover::Handovers;
pub use reasons::{CopyEnd, CopyEndKind, CopyFix, CopyReason};
use scene::{Candidate, Scene};
use tilewise::Shape;

/// Less than a hundredth of what the program holds is no advice.
const WORTHWHILE: u64 = 100;
/// Nor less than a tenth, where the program has to be taken apart.
const WORTH_TAKING_APART: u64 = 10;
/// Below this part of what is alive at the peak, padding isn't the matter.
const LITTLE_PADDING: f64 = 0.1;
/// The most that is proposed: nobody reads on.
const MOST: usize = 5;

/// What to change, and what that frees.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// What sort of change it is.
    pub kind: AdviceKind,
    /// What is changed.
    pub target: AdviceTarget,
    /// The instruction that makes the array it is about.
    pub instruction: String,
    /// That array; of several the largest.
    pub shape: Shape,
    /// Bytes by which arguments, results that don't lie in them, and temporaries together fall, once what is named before
    /// it is done.
    pub peak_bytes_saved: u64,
    /// Whether that is the most it can free: what remains depends on how the change is made.
    pub is_bound: bool,
    /// What to do, without a full stop.
    pub sentence: String,
    /// The Python that does it, if the program is one of JAX.
    pub code: Option<String>,
    /// What that code imports.
    pub imports: Option<String>,
    /// The framework's name of the operation, or of the argument.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

/// What sort of change an [`Advice`] or a [`MessageAdvice`](crate::MessageAdvice) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdviceKind {
    /// The order of dimensions is left to the compiler.
    Order,
    /// The dimensions change places.
    Transpose,
    /// The same elements under other bounds.
    Reshape,
    /// An array for each column.
    Split,
    /// Parts of the batch, one after the other.
    Chunk,
    /// Values are worked out again, not kept.
    Checkpoint,
    /// A result takes its argument's place.
    Donate,
    /// The elements become smaller.
    Narrow,
    /// Arrays are divided between devices.
    Shard,
    /// A kernel works on smaller blocks.
    Block,
    /// A limit is raised.
    Limit,
    /// What else lies in memory is freed.
    Free,
    /// The program tells more than the message: audit it.
    Audit,
    /// Nothing of this helps.
    None,
}

impl AdviceKind {
    /// The kind in one word, such as `order`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Transpose => "transpose",
            Self::Reshape => "reshape",
            Self::Split => "split",
            Self::Chunk => "chunk",
            Self::Checkpoint => "checkpoint",
            Self::Donate => "donate",
            Self::Narrow => "narrow",
            Self::Shard => "shard",
            Self::Block => "block",
            Self::Limit => "limit",
            Self::Free => "free",
            Self::Audit => "audit",
            Self::None => "none",
        }
    }
}

/// What an [`Advice`] or a [`MessageAdvice`](crate::MessageAdvice) changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdviceTarget {
    /// What the caller hands over.
    Argument,
    /// What the caller gets.
    Result,
    /// What comes before a gather or scatter.
    Upstream,
    /// What a kernel of the user's reads and writes.
    Kernel,
    /// What a loop keeps.
    Loop,
    /// Values inside the program.
    Value,
    /// The compiler, or its version.
    Compiler,
    /// What is done around the program.
    Process,
}

impl AdviceTarget {
    /// The target in one word, such as `argument`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::Result => "result",
            Self::Upstream => "upstream",
            Self::Kernel => "kernel",
            Self::Loop => "loop",
            Self::Value => "value",
            Self::Compiler => "compiler",
            Self::Process => "process",
        }
    }
}

impl Report {
    /// What to change so that the program holds less, the best first; nothing for a module without plan.
    ///
    /// Each frees its bytes once those before it are done, so that all together free their sum.
    ///
    /// ```
    /// let module = tilewise_hlo::Module::parse("\
    /// HloModule jit_f, is_scheduled=true
    ///
    /// ENTRY main (x.1: f32[524288,8]) -> f32[524288] {
    ///   x.1 = f32[524288,8]{1,0:T(8,128)} parameter(0), metadata={op_name=\"x\"}
    ///   ROOT r = f32[524288]{0:T(1024)} custom-call(x.1), custom_call_target=\"sum\"
    /// }")?;
    /// let report = tilewise_audit::audit(&module);
    /// let advice = report.advice();
    /// assert_eq!((advice[0].kind.as_str(), advice[0].target.as_str()), ("order", "argument"));
    /// // 512 bytes a row, which could be 32.
    /// assert_eq!(advice[0].peak_bytes_saved, 524_288 * (512 - 32));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn advice(&self) -> &[Advice] {
        &self.findings().advice
    }

    fn findings(&self) -> &Findings {
        self.findings.get_or_init(|| Findings::new(self))
    }
}

/// What to change in a program, and why it has its copies: found together, for both look at what its caller hands over.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    advice: Vec<Advice>,
    copy_reasons: Vec<CopyReason>,
}

impl Findings {
    fn new(report: &Report) -> Self {
        let tracer = Tracer::new(&report.text);
        let mut scene = Scene::new(report);
        let has_relayouts = report.copies.iter().any(|copy| copy.class == CopyClass::Relayout);
        let handovers = scene.as_mut().filter(|_| has_relayouts).map(|scene| Handovers::new(scene, &tracer));
        let handovers = handovers.unwrap_or_default();
        let candidates = handovers.list.iter().map(|found| found.candidate.clone()).collect();
        Self {
            advice: scene.map(|scene| advice(scene, candidates)).unwrap_or_default(),
            copy_reasons: reasons::reasons(report, tracer, handovers),
        }
    }
}

/// The best of these and of all other changes.
fn advice<'m>(mut scene: Scene<'m>, mut candidates: Vec<Candidate<'m>>) -> Vec<Advice> {
    interface::orders(&scene, &mut candidates);
    interface::columns(&scene, &mut candidates);
    interface::donations(&scene, &mut candidates);
    rows::upstream(&scene, &mut candidates);
    kernel::transposes(&scene, &mut candidates);
    loops::checkpoints(&scene, &mut candidates);
    batch::chunks(&scene, &mut candidates);
    let least = scene.total_bytes / WORTHWHILE;
    let mut priced: Vec<(u64, Candidate<'_>)> =
        candidates.into_iter().map(|candidate| (scene.saved([&candidate]), candidate)).collect();
    // Stable: of equals, what is the caller's own comes first.
    priced.sort_by_cached_key(|(saved, _)| std::cmp::Reverse(*saved));
    let mut kept: Vec<(u64, Candidate<'_>)> = Vec::new();
    let mut together = 0;
    for (_, candidate) in priced.into_iter().filter(|(saved, _)| *saved > least) {
        // What the better ones free already is no further advice.
        let with = scene.saved(kept.iter().map(|(_, kept)| kept).chain([&candidate]));
        let more = with.saturating_sub(together);
        let least = if candidate.kind == AdviceKind::Chunk { scene.total_bytes / WORTH_TAKING_APART } else { least };
        if kept.len() < MOST && more > least {
            together = with;
            kept.push((more, candidate));
        }
    }
    let mut advice: Vec<Advice> = kept.into_iter().map(|(saved, candidate)| candidate.into_advice(saved)).collect();
    if advice.is_empty() {
        advice.extend(nothing_helps(&scene));
    }
    advice
}

/// That padding is not what takes the program's memory, where it isn't.
fn nothing_helps(scene: &Scene<'_>) -> Option<Advice> {
    let largest = scene.held.iter().filter(|held| held.is_at_peak).max_by_key(|held| held.bytes)?;
    let sentence = words::nothing_helps(scene, largest);
    let candidate = Candidate::new(AdviceKind::None, AdviceTarget::Value, largest, sentence);
    (scene.padding_share < LITTLE_PADDING).then(|| candidate.into_advice(0))
}
