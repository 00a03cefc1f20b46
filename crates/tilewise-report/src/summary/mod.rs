//! The summary of a program or a message, as data: the terminal prints it, the page draws it.

mod causes;
mod changes;
mod copies;
mod headline;
mod machine;
mod message;
mod quoted;
mod remedies;
mod span;
mod stack;
mod time;
mod told;

pub(crate) use causes::causes;
pub use causes::{CauseAxis, PeakCause};
pub use changes::PlannedChange;
pub(crate) use changes::{changes, place};
pub use copies::{CopiesOfLine, CopySummary, NeedlessCopies};
pub use headline::Headline;
pub use machine::memory_name;
pub use message::{MessageSummary, Quote};
pub use span::in_span;
pub use stack::{BudgetPart, BudgetStack};
pub(crate) use time::{NOT_MEASURED, kind_name};
pub(crate) use told::name_of;

use crate::style::{Tone, bytes, bytes_both, file_name, grouped, line_of, percent, share};
use crate::{Quotes, json::placed_elsewhere, text::MAY_LACK_ITS_END};
use serde::Serialize;
use std::borrow::Cow;
use tilewise::visible;
use tilewise_audit::{
    Agreement, MemoryPlan, PlanErrorKind, Report, SpacePeak,
    recommendation::{
        Change,
        finding::{Finding, SmallerBatch},
    },
};

/// Bytes in a memory space below which it isn't worth a line.
const WORTH_A_LINE: u64 = 4096;

/// A program's memory at its peak, whether that fits, changes, and copies. It serialises.
///
/// ```
/// use tilewise_report::AuditOutput;
///
/// let text = "HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[8,3]{1,0:T(8,128)} parameter(0) }";
/// let program = tilewise_audit::Program::parse(text)?;
/// let output = AuditOutput::new(tilewise_audit::Audit::new(&program).limit(65536).run());
/// let summary = output.summary();
/// assert_eq!(summary.headline.sentence, "Fits 64.00 KiB of HBM: needs 8.00 KiB, 56.00 KiB left.");
/// assert_eq!(summary.held, "Holds 8.00 KiB (8192) of HBM at most");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary<'a> {
    /// The module's name, or a substitute.
    pub title: &'a str,
    /// The origin: its source, and the entry computation.
    pub origin: String,
    /// Whether it fits, and by how much.
    pub headline: Headline,
    /// The causes of most of the peak, the largest first, three at most.
    pub causes: Vec<PeakCause>,
    /// The changes, the gentlest that is enough first.
    pub changes: Vec<PlannedChange<'a>>,
    /// The bytes missing after all changes, and other help; `None` if they are enough.
    pub shortfall: Option<Remark>,
    /// Its memory, or why that is not known.
    pub held: String,
    /// The parts of that; empty if unknown.
    pub parts: Vec<SummaryPart>,
    /// The HBM of the TPU that it is compiled for.
    pub machine: String,
    /// The peak's padding, fragmentation and moment.
    pub peak: Vec<Remark>,
    /// The time of a run, estimated from the compiler's cycle counts; empty if the text has none.
    pub time: Vec<Remark>,
    /// Other facts: of other memory spaces, of the plan, or of all arrays if there is no plan.
    pub notes: Vec<Remark>,
    /// Remedies without a price for the largest causes, unless recommendations together free more than a quarter of the
    /// program's memory.
    pub remedies: Vec<Cow<'static, str>>,
    /// The copies that cost; `None` where none does.
    pub copies: Option<CopySummary<'a>>,
    /// Sizes that its words name.
    #[serde(skip)]
    sizes: Sizes,
}

/// Sizes of a program that a constant of the reader's may have: that now, and the smaller one.
#[derive(Clone, Debug, Default)]
struct Sizes {
    /// Of the first remedy.
    of_remedy: Option<[u64; 2]>,
    /// Of what fits after all changes.
    of_shortfall: Option<[u64; 2]>,
    /// Of what the program makes, the largest first.
    of_made: Vec<[u64; 2]>,
}

/// A part of a program's memory.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SummaryPart {
    /// `arguments`, `results`, `constants` or `temporaries`.
    pub kind: &'static str,
    /// Its bytes.
    pub bytes: u64,
    /// Its words for people.
    pub words: String,
}

/// A sentence.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Remark {
    /// Its words.
    pub words: String,
    /// Its tone.
    pub tone: Tone,
}

impl<'a> Summary<'a> {
    /// Whether the first change is enough to fit.
    pub(crate) fn is_first_enough(&self) -> bool {
        self.changes.first().is_some_and(|first| first.fits == Some(true))
    }

    /// The changes of a screen: the first alone where it is ample.
    pub(crate) fn changes_to_show(&self) -> &[PlannedChange<'a>] {
        if self.is_first_ample() { &self.changes[..1] } else { &self.changes }
    }

    /// Whether the first change lets a program fit that doesn't, and leaves much room, since it may free less.
    pub(crate) fn is_first_ample(&self) -> bool {
        let limit = self.headline.limit_bytes.filter(|_| self.headline.verdict != "fits");
        let after = self.changes.first().and_then(|first| first.bytes_after).filter(|_| self.is_first_enough());
        limit.zip(after).is_some_and(|(limit, after)| after <= limit / 4 * 3)
    }

    /// The summary of a report.
    #[must_use]
    pub fn of(report: &'a Report) -> Self {
        let at_once = Self::at_once(report);
        let changes = changes(report);
        let is_free = changes.first().is_some_and(|first| first.fits == Some(true) && first.costs_no_compute);
        let is_enough = changes.last().is_some_and(|last| last.fits == Some(true));
        let smaller = smaller_batch(&changes, is_free, is_enough, report);
        let remedies = remedies(&at_once.causes, smaller, is_enough, report);
        let fitting = changes::fitting_size(&changes, report);
        let shortfall = changes::shortfall(&changes, !remedies.is_empty(), fitting.as_ref(), report);
        let sizes = Sizes {
            of_remedy: smaller.map(|batch| [batch.size, batch.to]),
            of_made: if fitting.is_none() { changes::fitting_made_sizes(&changes, report) } else { Vec::new() },
            of_shortfall: fitting.map(|found| [found.size, found.fits]),
        };
        Self { changes, shortfall, remedies, sizes, copies: CopySummary::of(report), ..at_once }
    }

    /// The summary with these lines of source.
    pub(crate) fn quoting(mut self, quotes: &Quotes) -> Self {
        // The reader's name for a size.
        let named = |sizes: Option<[u64; 2]>| {
            let [size, to] = sizes?;
            let edit = quotes.constant(size, to)?;
            Some(format!(" (`{}`, {}:{})", edit.after, file_name(&edit.file), edit.line))
        };
        if let (Some(first), Some(name)) = (self.remedies.first_mut(), named(self.sizes.of_remedy)) {
            *first = Cow::Owned(format!("{first}{name}"));
        }
        if let (Some(remark), Some(name)) = (&mut self.shortfall, named(self.sizes.of_shortfall)) {
            remark.words = remark.words.replacen(", or ", &format!("{name}, or "), 1);
        }
        // Without a name of the reader's such a size may be the model's.
        let mut made = self.sizes.of_made.iter().filter_map(|sizes| Some((sizes, named(Some(*sizes))?)));
        if let (Some(remark), Some(([size, to], name))) = (&mut self.shortfall, made.next()) {
            let fewer = format!("take about {} instead of {}{name}, or", grouped(*to), grouped(*size));
            remark.words = remark.words.replacen("take smaller inputs, or", &fewer, 1);
        }
        Self {
            causes: self.causes.into_iter().map(|cause| cause.quoting(quotes)).collect(),
            changes: self.changes.into_iter().map(|change| change.quoting(quotes)).collect(),
            ..self
        }
    }

    /// The summary without the parts that need other plans of the program, which take most of the time: changes,
    /// remedies and copies.
    #[must_use]
    pub fn at_once(report: &'a Report) -> Self {
        let (plan, source) = (report.plan().ok(), visible(&report.source));
        let hbm = report.memory_space(0);
        let entry = report.entry.as_deref().filter(|entry| !entry.is_empty());
        Self {
            title: if report.module_name.is_empty() { "HLO without a module" } else { &report.module_name },
            origin: entry.map_or(source.to_string(), |entry| format!("{source}, entry {entry}")),
            headline: Headline::of(report),
            causes: causes(report),
            changes: Vec::new(),
            shortfall: None,
            sizes: Sizes::default(),
            held: held(report),
            parts: plan.map_or(Vec::new(), parts),
            machine: machine::words(report.machine),
            peak: plan
                .zip(hbm.and_then(|hbm| hbm.peak.as_ref()))
                .map_or(Vec::new(), |(plan, peak)| of_peak(report, plan, peak)),
            time: time::remarks(report),
            notes: plan.map_or_else(
                || as_it_runs(report).into_iter().chain(of_all_arrays(report)).collect(),
                |plan| notes(report, plan),
            ),
            remedies: Vec::new(),
            copies: None,
        }
    }
}

/// `Holds 311.37 MiB (326497792) of HBM at most`
fn held(report: &Report) -> String {
    let plan = match report.plan() {
        Ok(plan) => plan,
        Err(error) => return format!("No memory plan: {error}"),
    };
    let is_bound = report.memory_bounds.is_complete && report.memory_bounds.doubtful_bytes == 0;
    let bound = if is_bound { "at most" } else { "at least" };
    let (memory, per_device) = (machine::memory_name(report.machine), headline::per_device(report));
    format!("Holds {} of {memory} {bound}{per_device}", bytes_both(plan.total_bytes()))
}

fn parts(plan: &MemoryPlan) -> Vec<SummaryPart> {
    let results = plan.output_bytes.saturating_sub(plan.alias_bytes);
    let donated = match plan.alias_bytes {
        0 => String::new(),
        alias => format!(" beside {} in donated arguments", bytes(alias)),
    };
    let part =
        |kind, count, more: &str| SummaryPart { kind, bytes: count, words: format!("{} {kind}{more}", bytes(count)) };
    let constants = (plan.constant_bytes > 0).then(|| part("constants", plan.constant_bytes, ""));
    let mut parts = vec![part("arguments", plan.argument_bytes, ""), part("results", results, &donated)];
    parts.extend(constants);
    parts.push(part("temporaries", plan.temporary_bytes(), ""));
    parts
}

fn of_peak(report: &Report, plan: &MemoryPlan, peak: &SpacePeak) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut say = |tone, words| remarks.push(Remark { words, tone });
    match peak.padding_bytes {
        0 if report.machine.generation().is_none() => {}
        0 => say(Tone::Plain, "None of it is padding.".to_owned()),
        padding => {
            let tone = Tone::of_expansion(1.0 / (1.0 - peak.padding_share()).max(f64::EPSILON));
            let of_all = percent(share(padding, plan.total_bytes()));
            say(tone, format!("{} of it is padding, {of_all}.", bytes(padding)));
        }
    }
    if peak.fragmentation_bytes > peak.live_bytes / 100 {
        let gaps = bytes(peak.fragmentation_bytes);
        say(Tone::Plain, format!("{gaps} of the temporaries' memory is fragmentation at the peak."));
    }
    if peak.has_temporaries() {
        let line = peak.source.as_ref().map(|source| format!("{}, ", line_of(source)));
        let operation = peak.op_name.as_ref().map(|name| format!(" ({name})"));
        let (line, operation) = (line.unwrap_or_default(), operation.unwrap_or_default());
        let step = format!("step {} of {}", peak.moment + 1, plan.order().len());
        say(Tone::Plain, format!("The peak: {line}while {} runs{operation}, {step}.", peak.instruction));
    }
    remarks
}

/// The file to read instead of a program that the compiler hasn't ordered yet.
fn as_it_runs(report: &Report) -> Option<Remark> {
    let words = "The program as it runs is in the same dump: the file whose name ends in `after_optimizations.txt`.";
    let is_unscheduled = report.plan().is_err_and(|error| error.kind() == PlanErrorKind::Unscheduled);
    is_unscheduled.then(|| Remark { words: words.to_owned(), tone: Tone::Plain })
}

fn notes(report: &Report, plan: &MemoryPlan) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut say = |tone, words| remarks.push(Remark { words, tone });
    for total in report.memory_spaces.iter().filter(|total| total.memory_space != 0) {
        let Some(peak) = total.peak.as_ref().filter(|peak| peak.live_bytes >= WORTH_A_LINE) else { continue };
        let padding = match peak.padding_bytes {
            0 => String::new(),
            padding => format!(", {} of it padding", bytes(padding)),
        };
        // A memory space that XLA has no name for belongs to the program's SparseCores, if it has any.
        let is_of_sparse_core = total.memory_space_name().starts_with("space_") && report.has_sparse_core();
        let of = if is_of_sparse_core { " (a SparseCore's memory)" } else { "" };
        let space = total.memory_space_name();
        // A text without live ranges there gives a bound above a core's memory, even for a program that compiled.
        let core = report.machine.generation().filter(|_| space == "vmem").and_then(tilewise_kernel::vmem_bytes);
        let (held, padding) = match core.filter(|core| peak.live_bytes > *core) {
            Some(core) => (core, String::new()),
            None => (peak.live_bytes, padding),
        };
        say(Tone::Faint, format!("In {space}{of}: {} at most{padding}.", bytes(held)));
    }
    if let Some((_, other)) = plan.other_packing {
        let kept = plan.temporary_bytes();
        let smaller = match told_apart(kept, other) {
            _ if kept == other => "here both take the same".to_owned(),
            (kept, other) => format!("{kept}, not {other}"),
        };
        let why = "Close to the limit, the compiler tries two packings and keeps the smaller";
        let is_alike = bytes(kept) == bytes(other);
        say(if is_alike { Tone::Faint } else { Tone::Plain }, format!("{why}: {smaller}."));
    }
    if let Some((tone, words)) = report.compiler_plan.as_ref().and_then(beside_the_compilers) {
        say(tone, words);
    }
    if let Some(words) = of_core(report) {
        say(Tone::Plain, words);
    }
    remarks.extend(machine::compiler(report));
    remarks
}

/// Two sizes, in bytes where they are alike in larger units.
fn told_apart(first: u64, second: u64) -> (String, String) {
    match (bytes(first), bytes(second)) {
        (one, other) if one == other => (format!("{first} bytes"), format!("{second} bytes")),
        differing => differing,
    }
}

/// The plan beside the compiler's own.
fn beside_the_compilers(agreement: &Agreement) -> Option<(Tone, String)> {
    let (values, elsewhere) = (agreement.values, agreement.differences.len());
    let (tone, words) = if !agreement.has_equal_bytes() {
        let (planned, compilers) = told_apart(agreement.planned_bytes, agreement.temporary_bytes);
        let first =
            agreement.differences.first().map(placed_elsewhere).map_or(String::new(), |first| format!(": {first}"));
        let counts = format!(
            "The compiler's own plan counts: it takes {compilers} for temporaries, where {planned} are planned"
        );
        (Tone::Plain, format!("{counts}. {elsewhere} of {values} temporaries lie elsewhere{first}."))
    } else if values == 0 {
        return None;
    } else if elsewhere == 0 {
        let unseen = if agreement.is_whole { String::new() } else { format!("; {MAY_LACK_ITS_END}") };
        (Tone::Faint, format!("The compiler's own plan agrees: {values} temporaries lie where it put them{unseen}."))
    } else {
        let same = values.saturating_sub(elsewhere);
        (
            Tone::Faint,
            format!("The compiler's own plan takes as much: {same} of {values} temporaries lie where it put them."),
        )
    };
    Some((tone, words))
}

/// The sizes of a chip's and a core's HBM, for a program that fits the chip and takes at least a core's.
fn of_core(report: &Report) -> Option<String> {
    let generation = report.machine.generation()?;
    let (held, all) = (report.memory_bounds.at_most_bytes, generation.hbm_bytes());
    let of_core = generation.core_hbm_bytes().filter(|of_core| (*of_core..=all).contains(&held))?;
    let (name, all, of_core) = (generation.name(), bytes(all), bytes(of_core));
    let cores = "where both cores of a chip are one device (JAX's `megacore`)";
    Some(format!("A TPU {name} has {all} of HBM {cores}, else {of_core} for each."))
}

/// The padding of everything in HBM, as if no two arrays shared memory.
pub(crate) fn of_all_arrays(report: &Report) -> Option<Remark> {
    let hbm = report.memory_space(0).filter(|hbm| hbm.padding_bytes() > 0)?;
    let (padding, takes) = (bytes_both(hbm.padding_bytes()), bytes_both(hbm.physical_bytes));
    let share = percent(hbm.padding_share());
    let words = format!("{padding} in HBM is padding, {share} of the {takes} its arrays take.");
    Some(Remark { words, tone: Tone::Plain })
}

/// A smaller batch, unless a change that is enough computes no more, keeps the loss that fewer samples change, or takes the batch
/// itself in parts.
fn smaller_batch<'a>(
    changes: &[PlannedChange<'_>],
    is_free: bool,
    is_enough: bool,
    report: &'a Report,
) -> Option<&'a SmallerBatch> {
    let takes_parts = |change: &PlannedChange<'_>| matches!(change.recommendation.finding, Finding::LargeDimension(_));
    let is_needless = |batch: &SmallerBatch| is_enough && (batch.is_mixed || changes.first().is_some_and(takes_parts));
    report.smaller_batch().filter(|batch| !is_free && !is_needless(batch))
}

/// The remedies of the causes that are at least half as large as the largest: to shrink others hardly matters. A smaller
/// batch comes first, and alone where changes are enough.
fn remedies(
    causes: &[PeakCause],
    smaller: Option<&SmallerBatch>,
    is_enough: bool,
    report: &Report,
) -> Vec<Cow<'static, str>> {
    /// Savings above the program's memory divided by this are much.
    const MUCH: u64 = 4;

    let smaller = smaller.map(|batch| Cow::Owned(remedies::smaller_batch(batch)));
    // More devices are the last resort, which a change says with its code.
    let is_divided = report.advice().iter().any(|one| one.change == Change::Shard);
    let freed = report.advice().iter().filter_map(|one| one.saving.bytes()).fold(0, u64::saturating_add);
    if is_enough || is_divided || freed > report.memory_bounds.at_most_bytes / MUCH {
        return smaller.into_iter().collect();
    }
    let most = causes.iter().map(|cause| cause.bytes).max().unwrap_or_default();
    let mut found: Vec<Cow<'static, str>> = smaller.into_iter().collect();
    for remedy in causes.iter().filter(|cause| cause.bytes >= most / 2).filter_map(|cause| cause.remedy) {
        if !found.iter().any(|known| known == remedy) {
            found.push(Cow::Borrowed(remedy));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use tilewise::tpu::Generation;
    use tilewise_audit::{Audit, Program, Report};

    fn report(text: &str, limit: Option<u64>) -> Report {
        Audit::new(&Program::parse(text).expect("a module")).limit(limit).run()
    }

    /// Two values of 96 MiB in a memory of 128, in a text without the ends of their live ranges.
    #[test]
    fn no_more_is_held_than_a_core_has() {
        let text = "HloModule m, is_scheduled=true

ENTRY e {
  x = f32[24576,1024]{1,0:T(8,128)} parameter(0)
  a = f32[24576,1024]{1,0:T(8,128)S(1)} copy(x)
  b = f32[24576,1024]{1,0:T(8,128)S(1)} negate(a)
  ROOT c = f32[24576,1024]{1,0:T(8,128)} add(a, b)
}";
        let program = Program::parse(text).expect("a module");
        let said = |machine: Generation| {
            let report = Audit::new(&program).machine(tilewise_audit::Machine::Tpu(machine)).run();
            let notes = super::Summary::of(&report).notes;
            notes.into_iter().map(|note| note.words).find(|words| words.contains("vmem")).expect("a note")
        };
        assert_eq!(said(Generation::V5e), "In vmem: 128.00 MiB at most.");
    }

    /// An argument of 256 MiB that could take 16, and no limit, one between, one below and one above.
    #[test]
    fn pieces_that_make_a_program_fit() {
        let text = r#"HloModule jit_f, is_scheduled=true

ENTRY main (x.1: f32[524288,8]) -> f32[524288] {
  x.1 = f32[524288,8]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  ROOT r = f32[524288]{0:T(1024)} custom-call(x.1), custom_call_target="sum"
}"#;
        let first = |limit: Option<u64>| {
            let report = report(text, limit);
            let change = super::Summary::of(&report).changes.remove(0);
            (change.lead, change.fits, change.effect)
        };
        let lead = || "258.00 MiB → 18.00 MiB".to_owned();
        assert_eq!(first(None), (lead(), None, "no extra compute".into()));
        assert_eq!(first(Some(1 << 30)), (lead(), Some(true), "no extra compute".into()));
        assert_eq!(first(Some(64 << 20)), (lead(), Some(true), "fits, no extra compute".into()));
        let too_much = "still 2.00 MiB too much, no extra compute";
        assert_eq!(first(Some(16 << 20)), (lead(), Some(false), too_much.into()));
    }

    /// Two arrays of 128 MiB along 4096 rows of the input, and an argument of 128 KiB.
    #[test]
    fn parts_that_make_a_program_fit() {
        let text = r#"HloModule jit_f, is_scheduled=true

ENTRY main (x.1: f32[4096,8]) -> f32[8] {
  x.1 = f32[4096,8]{0,1:T(8,128)} parameter(0), metadata={op_name="x"}
  wide = f32[4096,8,1024]{0,2,1:T(8,128)} broadcast(x.1), dimensions={0,1}
  sine = f32[4096,8,1024]{0,2,1:T(8,128)} sine(wide)
  ROOT r = f32[8]{0:T(128)} custom-call(wide, sine), custom_call_target="sum"
}"#;
        let report = report(text, Some(40 << 20));
        let change = super::Summary::of(&report).changes.remove(0);
        // Eighths leave 32 MiB and the argument, but not with a tenth less than that freed.
        assert_eq!((change.lead, change.fits), ("256.13 MiB → about 8.13 MiB".into(), Some(true)));
    }
}
