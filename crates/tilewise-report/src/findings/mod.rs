//! The words of findings: a file a finding, its sentence and its code beside each other.

mod alike;
mod all_pairs;
mod attention;
mod blocks;
mod cache;
mod checkpoint;
mod chunk;
mod class_logits;
mod code;
mod columns;
mod copied_weights;
mod copies;
mod cut_off;
mod donate;
mod donation;
mod elsewhere;
mod flat_records;
mod flat_stack;
mod frozen_state;
mod gathered_pages;
mod gpu_kernels;
mod graphs;
mod history;
mod holders;
mod host;
mod kernel_columns;
mod kernel_memory;
mod layout_request;
mod logits;
mod made_for_steps;
mod mapped_call;
mod memory;
mod mismatch;
mod mosaic;
mod narrow;
mod one_hot_slots;
mod padded_heads;
mod parted;
mod picked_rows;
mod pinned_order;
mod placement;
mod pool;
mod reason;
mod rematerialization;
mod remedy;
mod repeated;
mod resharding;
mod resource;
mod returned_arguments;
mod rows_of_few;
mod run_time;
mod sample_gradients;
mod shuffled_rows;
mod smaller;
mod stacked_cache;
mod stacked_steps;
mod statistics;
mod together;
mod warning;
mod whole_array;
mod words;

pub(crate) use chunk::{TakenGradient, gradient_in_parts};
pub(crate) use code::is_name;
pub use copies::why;
pub(crate) use donate::{Jitted, jitted};
pub(crate) use remedy::NO_VIEW;
pub use remedy::RemedyWords;
pub(crate) use together::{OF_LARGEST_CALL, set_change};
pub use warning::warning;
pub(crate) use words::{capitalized, cause, printed};

use crate::style::bytes;
use tilewise_audit::{
    Cause, Explanation, Recommendation,
    recommendation::finding::{ElsewhereFinding, Finding, MemoryFinding, RunTimeFinding},
};
use tilewise_oom::{Form, Framework, OomVerdict, Reason};

/// A recommendation in words and code.
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
/// let words = tilewise_report::words(&report.advice()[0]);
/// assert!(words.sentence.starts_with("Pass `x` in the TPU's default layout"));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Words {
    /// The task, in a few words.
    pub task: String,
    /// The task, its place and its reason: a sentence without a full stop.
    pub sentence: String,
    /// The code of the task, in the language of the framework that made the program, if that is known.
    pub code: Option<String>,
    /// The code's imports, a line each.
    pub imports: Option<&'static str>,
    /// Code of the program's framework alone, where [`code`](field@Self::code) is of `tilewise`.
    pub plain: Option<String>,
    /// Such code that has functions for the reader to write.
    pub sketch: Option<String>,
    /// Whether [`code`](field@Self::code) is of `tilewise` and takes the compiled function as it is.
    pub is_of_step: bool,
    /// A caveat: a sentence without a full stop.
    pub caveat: Option<String>,
}

impl Words {
    fn new(sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self {
            task: first_clause(&sentence).to_owned(),
            sentence,
            code: None,
            imports: None,
            plain: None,
            sketch: None,
            is_of_step: false,
            caveat: None,
        }
    }

    /// Sets a task in fewer words than the first clause of its sentence.
    fn task(self, task: impl Into<String>) -> Self {
        Self { task: task.into(), ..self }
    }

    /// Sets the caveat.
    fn caveat(self, caveat: impl Into<String>) -> Self {
        Self { caveat: Some(caveat.into()), ..self }
    }

    /// Sets the code, for any framework.
    fn code(self, imports: impl Into<Option<&'static str>>, code: impl Into<String>) -> Self {
        Self { code: Some(code.into()), imports: imports.into(), ..self }
    }

    /// Sets the code, if there is any.
    fn code_if(self, code: Option<String>) -> Self {
        Self { code, ..self }
    }

    /// Sets the code, if JAX made the program.
    fn jax(self, about: &Recommendation, imports: impl Into<Option<&'static str>>, code: impl Into<String>) -> Self {
        if about.framework == Some(Framework::Jax) { self.code(imports, code) } else { self }
    }

    /// Sets the imports and the code of the program's framework, where it has any.
    fn of_framework(
        self,
        about: &Recommendation,
        of: impl Fn(Framework) -> Option<(&'static str, &'static str)>,
    ) -> Self {
        match about.framework.and_then(of) {
            Some((imports, code)) => self.code(imports, code),
            None => self,
        }
    }

    /// Imports and code, a line each.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.code.iter().flat_map(|code| self.imports.into_iter().chain([&**code])).flat_map(str::lines)
    }
}

/// Words of a task: more aren't read at once.
const TASK: usize = 12;

/// The first clause of a sentence: up to an explanation, and in a long one up to an addition.
fn first_clause(sentence: &str) -> &str {
    let clause = before(sentence, &[": ", "; ", ". "]);
    if clause.split(' ').count() > TASK { before(clause, &[", ", " ("]) } else { clause }
}

/// The text before the first of these signs outside of brackets.
fn before<'a>(text: &'a str, signs: &[&str]) -> &'a str {
    let mut depth = 0_u32;
    for (at, letter) in text.char_indices() {
        if depth == 0 && signs.iter().any(|sign| text[at..].starts_with(sign)) {
            return &text[..at];
        }
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text
}

/// A recommendation in words and code.
#[must_use]
pub fn words(about: &Recommendation) -> Words {
    let mut words = of_finding(about);
    if let Some(scores) = &about.scores {
        let instead = attention::instead(scores);
        words.sentence += &format!("; {instead}");
        words.caveat.get_or_insert(instead);
    }
    let recomputes = matches!(
        about.finding,
        Finding::KeptByLoop(_)
            | Finding::RepeatedLayers(_)
            | Finding::EqualArrays(_)
            | Finding::ExhaustedRematerialization
    );
    if recomputes && about.framework == Some(Framework::Jax) {
        words.sentence += &format!("; {}", checkpoint::BY_TIME);
    }
    if let Some(more) = extrapolated(about) {
        words.sentence += &format!("; {more}");
    }
    words
}

/// The bytes that a change may free beyond those of a message's listed arrays.
pub(crate) fn extrapolated(about: &Recommendation) -> Option<String> {
    let freed = about.listed_bytes.and(about.saving.bytes())?;
    Some(format!("up to {} if unlisted arrays are alike", bytes(freed)))
}

fn of_finding(about: &Recommendation) -> Words {
    match &about.finding {
        Finding::LayoutRequest(finding) => layout_request::words(finding, about),
        Finding::PinnedOrder(finding) => pinned_order::words(finding, about),
        Finding::PaddedColumns(finding) => columns::words(finding, about),
        Finding::CopiedWeights => copied_weights::words(about),
        Finding::FlatRecords(finding) => flat_records::words(finding, about),
        Finding::UndonatedState(finding) => donate::words(finding, about),
        Finding::RowsOfFew(finding) => rows_of_few::words(finding, about),
        Finding::GatheredPages(finding) => gathered_pages::words(finding, about),
        Finding::PaddedHeads(finding) => padded_heads::words(finding, about),
        Finding::KernelColumns(finding) => kernel_columns::words(finding, about),
        Finding::KeptByLoop(finding) => checkpoint::of_loop(finding, about),
        Finding::StackedCache(finding) => stacked_cache::words(finding, about),
        Finding::AllPairs(finding) => all_pairs::words(finding, about),
        Finding::Blocks(finding) => blocks::words(finding, about),
        Finding::MappedCall(finding) => mapped_call::words(finding, about),
        Finding::Alike(finding) => alike::words(finding, about),
        Finding::ClassLogits(finding) => class_logits::words(finding, about),
        Finding::Logits(finding) => logits::words(finding, about),
        Finding::AttentionScores(finding) => attention::words(finding, about),
        Finding::RepeatedLayers(finding) => checkpoint::of_layers(finding, about),
        Finding::EqualArrays(count) => checkpoint::of_equal(*count, about),
        Finding::SampleGradients(finding) => sample_gradients::words(finding, about),
        Finding::ShuffledRows(finding) => shuffled_rows::words(finding, about),
        Finding::WidePredicates => narrow::predicates(),
        Finding::CutOffShapes(finding) => cut_off::words(finding),
        Finding::BatchedGraphs(finding) => graphs::words(finding, about),
        Finding::LargeDimension(finding) => chunk::words(finding, about),
        Finding::ConvertedArguments(finding) => narrow::converted(finding, about),
        Finding::Repeated(finding) => repeated::words(finding, about),
        Finding::OneHotSlots(finding) => one_hot_slots::words(finding, about),
        Finding::FrozenState(finding) => frozen_state::words(finding, about),
        Finding::ReturnedArguments(names) => returned_arguments::words(names),
        Finding::StackedSteps(finding) => stacked_steps::words(finding, about),
        Finding::FlatStack(finding) => flat_stack::words(finding, about),
        Finding::PickedRows(finding) => picked_rows::words(finding, about),
        Finding::MadeForSteps(finding) => made_for_steps::words(finding, about),
        Finding::WideState(finding) => narrow::state(finding, about),
        Finding::Memory(finding) => memory::words(finding, about),
        Finding::RunTime(finding) => run_time::words(finding, about),
        Finding::Block(finding) => kernel_memory::block(finding, about),
        Finding::KernelLimit(finding) => kernel_memory::limit(finding),
        Finding::Mosaic(finding) => mosaic::words(finding),
        Finding::Mismatch(finding) => mismatch::words(finding),
        Finding::Donation(finding) => donation::words(*finding),
        Finding::Placement(finding) => placement::words(*finding),
        Finding::Replicated(finding) => resharding::words(finding),
        Finding::Cache(finding) => cache::words(*finding),
        Finding::Elsewhere(finding) => elsewhere::words(finding, about),
        Finding::ReplicatedState => rematerialization::shard(about),
        Finding::ExhaustedRematerialization => rematerialization::recompute(about),
        Finding::BufferAssignment => statistics::audit(),
        _ => Words::new(""),
    }
}

/// The event and its cause, for a message that isn't judged by the contents of a TPU's memory: a warning, a log, a
/// kernel that can't be compiled, another machine. `None` for others.
pub(crate) fn answer(explanation: &Explanation) -> Option<[String; 2]> {
    let message = &explanation.message;
    Some(match (message.form, message.verdict()) {
        (Form::CachePage, _) => cache::page(message),
        (Form::CacheRoom, _) => cache::room(message),
        (Form::CacheFull, _) => cache::full(message),
        (_, OomVerdict::InputMismatch) => mismatch::answer(message, explanation.mismatch.as_ref()?),
        (_, OomVerdict::Mosaic) => mosaic::answer(message),
        (_, OomVerdict::Donation) => donation::answer(explanation),
        (_, OomVerdict::HostPlacement) => placement::answer(message),
        (_, OomVerdict::HostCompute) => placement::computed(message),
        (_, OomVerdict::Resharding) => resharding::answer(message),
        (_, OomVerdict::OtherResource) => resource::answer(message),
        (_, OomVerdict::CompilerCheck) => run_time::check(message),
        (Form::SharedMemory | Form::Autotuning, _) => gpu_kernels::answer(message),
        (_, OomVerdict::RematLimit) => rematerialization::answer(message),
        (_, OomVerdict::Fits) => statistics::answer(message),
        (_, OomVerdict::NotTpu) => elsewhere::answer(message),
        _ => return None,
    })
}

/// Whether a recommendation looks for the cause, and changes nothing yet.
pub(crate) fn only_looks(about: &Recommendation) -> bool {
    match &about.finding {
        Finding::Memory(MemoryFinding::LookInside { dump, is_elsewhere, .. }) => !is_elsewhere || dump.is_some(),
        Finding::Elsewhere(ElsewhereFinding::OfReason(reason)) => matches!(reason, Reason::Killed | Reason::Handle),
        Finding::Elsewhere(finding) => {
            matches!(
                finding,
                ElsewhereFinding::Holders(_) | ElsewhereFinding::TorchProcesses(_) | ElsewhereFinding::HostProcesses
            )
        }
        _ => false,
    }
}

/// The cause that the first change is against, where a message's text shows it and the message doesn't.
pub(crate) fn likely_cause(explanation: &Explanation, cause: &str) -> Option<String> {
    let first = explanation.advice.first().filter(|_| cause == elsewhere::NOT_TOLD)?;
    if matches!(&first.finding, Finding::Elsewhere(ElsewhereFinding::Holders(_))) {
        return Some(match &explanation.message {
            message if message.used.is_some() => {
                "The text has the size of one request alone: it doesn't tell what holds the memory.".to_owned()
            }
            _ => "The text doesn't tell what holds the memory.".to_owned(),
        });
    }
    let is_shown = match &first.finding {
        Finding::RunTime(finding) => {
            matches!(finding, RunTimeFinding::Kept(_) | RunTimeFinding::StepsOfALoop | RunTimeFinding::ClosedOver)
        }
        Finding::Elsewhere(finding) => matches!(
            finding,
            ElsewhereFinding::Mapped(_)
                | ElsewhereFinding::Matrix(_)
                | ElsewhereFinding::NoGradients
                | ElsewhereFinding::TorchCache
                | ElsewhereFinding::OptimizerState
                | ElsewhereFinding::LlamaLayers { is_of_batch: true, .. }
        ),
        _ => false,
    };
    let sentence = words(first).sentence;
    let (_, reason) = sentence.split_once(": ").filter(|_| is_shown)?;
    let reason = reason.split(". ").next()?;
    Some(format!("Most likely {reason}."))
}

/// The causes of an array's padding, the largest first, in words with axes named.
///
/// ```
/// let tiled = tilewise::Tiled::new(&"s32[32768,8,4]{2,1,0:T(8,128)}".parse()?)?;
/// let causes = tilewise_report::causes_in_words(&tilewise_audit::causes(&tiled));
/// assert_eq!(causes, ["dimension 2 (size 4) lies on the 128 lanes: 4 of 128 used"]);
/// # Ok::<(), tilewise::Error>(())
/// ```
#[must_use]
pub fn causes_in_words(causes: &[Cause]) -> Vec<String> {
    causes.iter().map(cause).collect()
}

/// The next step to run or to write: the code of the first piece of advice, else the command that explains more.
///
/// ```
/// let text = "cannot statically prove that index in dimension 1 is a multiple of 128";
/// let explained = tilewise_audit::explain(tilewise_oom::Message::parse(text)?, None);
/// assert_eq!(tilewise_report::next_step(&explained), "i = pl.multiple_of(i, 128)");
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[must_use]
pub fn next_step(explanation: &Explanation) -> String {
    let code = explanation.advice.first().and_then(|first| words(first).code);
    code.unwrap_or_else(|| format!("tilewise explain {}", explanation.message.page()))
}
