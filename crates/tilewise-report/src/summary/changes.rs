//! Changes that free memory: the gentlest that is enough comes first.

use super::{Remark, remedies::MIXED};
use crate::{
    LineEdit, QuotedLine, Quotes, axis,
    findings::words,
    style::{Tone, bytes, file_and_line, grouped, is_uncertain, left},
};
use serde::Serialize;
use tilewise_audit::{
    AxisName, ChangeCost, FittingSize, Recommendation, Report, SourceLine,
    recommendation::{
        Change,
        finding::{Finding, GradientSums},
    },
};

/// A change, and the program's need after it and those before it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PlannedChange<'a> {
    /// The task, in a few words.
    #[serde(rename = "do")]
    pub task: String,
    /// `311.37 MiB → 45.90 MiB`.
    pub lead: String,
    /// Bytes needed after the change; `None` if a message doesn't show them.
    pub bytes_after: Option<u64>,
    /// Whether that fits; `None` if the memory is unknown.
    pub fits: Option<bool>,
    /// Seconds of a run after the change, estimated; `None` if unknown.
    pub seconds_after: Option<f64>,
    /// Whether it computes no more than before.
    #[serde(skip)]
    pub(crate) costs_no_compute: bool,
    /// Whether it fits, how much slower it is, and whether results stay: `fits, about 2 % slower, same results`.
    pub effect: String,
    /// Code of the program's framework alone, in place of that with `tilewise`; `None` where that is plain already.
    pub plain_code: Option<String>,
    /// A caveat, a sentence without a full stop.
    pub caveat: Option<String>,
    /// The place of the change: `train.py:25, where the gradient is taken`; empty if unknown.
    pub place: String,
    /// The lines to edit.
    pub lines: Vec<QuotedLine>,
    /// The line to change, where it is one line of source at hand: with [`plain_code`](Self::plain_code), where there is such, in front.
    pub edit: Option<LineEdit>,
    /// The recommendation for it, with its code.
    #[serde(flatten, serialize_with = "crate::json::referred")]
    pub recommendation: &'a Recommendation,
}

impl PlannedChange<'_> {
    /// Code for it, without imports: of the program's framework alone where there is such.
    #[must_use]
    pub fn code(&self) -> Option<String> {
        self.plain_code.clone().or_else(|| words(self.recommendation).code)
    }

    pub(crate) fn quoting(mut self, quotes: &Quotes) -> Self {
        self.lines.iter_mut().for_each(|line| line.text = quotes.of(&line.file, line.line));
        let edit = quotes.edit(self.recommendation);
        if edit.as_ref().is_some_and(|edit| quotes.lacks_import(edit, "functools")) {
            let caveat = self.caveat.take().map(|caveat| format!("{caveat}; ")).unwrap_or_default();
            self.caveat = Some(format!("{caveat}`import functools` above"));
        }
        if let Some(edit) = quotes.rows_of_call(self.recommendation) {
            // The program itself stays, and needs no other package.
            return Self { edit: Some(edit), plain_code: None, caveat: None, ..self };
        }
        let Some((code, call)) = quotes.gradient(self.recommendation) else { return Self { edit, ..self } };
        // The line that takes the gradient, and no longer the whole step, is edited.
        let mut lines = lines(self.recommendation);
        lines.iter_mut().for_each(|line| line.text = quotes.of(&line.file, line.line));
        Self { edit: edit.or(call), plain_code: Some(code), place: place(self.recommendation), lines, ..self }
    }
}

/// The rank of a change by gentleness: no recomputation first, then by added time or work, then those of unknown cost; of
/// these, what frees less recomputes less.
fn roughness(advice: &Recommendation, cost: ChangeCost) -> (u8, f64) {
    let computes_no_more = matches!(
        advice.change,
        Change::Donate
            | Change::Carry
            | Change::Order
            | Change::Transpose
            | Change::Reshape
            | Change::Split
            | Change::Narrow
            | Change::Free
    );
    #[expect(clippy::cast_precision_loss, reason = "an order")]
    let frees = advice.saving.bytes().unwrap_or(u64::MAX) as f64;
    match cost {
        _ if computes_no_more => (0, 0.0),
        ChangeCost::Seconds { added, run } => (1, in_steps(added / run.max(f64::MIN_POSITIVE))),
        ChangeCost::Work(part) => (1, in_steps(part)),
        _ => (2, frees),
    }
}

/// The part that a change adds to a run, in twentieths: estimates aren't finer.
fn in_steps(part: f64) -> f64 {
    (part * 20.0).round()
}

/// Whether a change takes code around the program, and not one of its lines.
fn takes_code(advice: &Recommendation) -> bool {
    matches!(
        advice.finding,
        Finding::LargeDimension(_) | Finding::Blocks(_) | Finding::AllPairs(_) | Finding::Logits(_)
    )
}

/// The changes in the order in which to try them.
pub(crate) fn changes(report: &Report) -> Vec<PlannedChange<'_>> {
    let (advice, held, limit) = (report.advice(), report.memory_bounds.at_most_bytes, report.available_bytes());
    if report.plan().is_err() {
        return Vec::new();
    }
    /// A change frees much if that is more than the program's need divided by this.
    const MUCH: u64 = 10;

    let freed: Vec<u64> = advice.iter().map(|one| one.saving.bytes().unwrap_or_default()).collect();
    // Each saving holds behind those before it.
    let alone: Vec<u64> = advice.iter().zip(&freed).map(|(one, freed)| one.alone_bytes.unwrap_or(*freed)).collect();
    let costs = report.costs();
    let is_enough = |at: &usize| limit.is_some_and(|limit| held > limit && held.saturating_sub(alone[*at]) <= limit);
    let rough = |at: &usize| roughness(&advice[*at], costs[*at]);
    let gentlest = (0..advice.len()).filter(is_enough).min_by(|one, other| {
        let ((kind, cost), (other_kind, other_cost)) = (rough(one), rough(other));
        let steps = |at: &usize| (takes_code(&advice[*at]), std::cmp::Reverse(alone[*at]));
        kind.cmp(&other_kind).then(cost.total_cmp(&other_cost)).then(steps(one).cmp(&steps(other)))
    });
    // Before one that computes much more comes what computes no more and frees much.
    let is_rough = gentlest.is_some_and(|at| rough(&at) > (1, 0.0));
    let is_free = |at: &usize| is_rough && rough(at).0 == 0 && freed[*at] >= held / MUCH;
    let mut order: Vec<usize> = (0..advice.len()).filter(is_free).chain(gentlest).collect();
    order.extend((0..advice.len()).filter(|at| !order.contains(at)).collect::<Vec<_>>());
    let run = report.time().ok().map(|time| time.total.estimate);
    let (mut before, mut seconds, mut made) = (held, run, Vec::new());
    let mut planned = Vec::new();
    for at in order {
        made.push(at);
        // All changes up to one are priced together; of others, the best is known.
        let in_order =
            (0..made.len()).take_while(|first| made.contains(first)).map(|at| freed[at]).fold(0, u64::saturating_add);
        let best = made.iter().map(|at| alone[*at]).max().unwrap_or_default();
        let after = held.saturating_sub(in_order.max(best)).min(before);
        if after == before && freed[at] > 0 {
            continue;
        }
        seconds = match costs[at] {
            ChangeCost::Seconds { added, .. } => seconds.map(|run| run + added),
            _ => None,
        };
        let one = &advice[at];
        let said = words(one);
        let fits = limit.map(|limit| after <= limit);
        let effects = [
            limit.filter(|limit| held > *limit).map(|limit| fit(after, limit, is_uncertain(one.saving))),
            Some(slowdown(one, costs[at])),
            results(one.change).map(str::to_owned),
        ];
        planned.push(PlannedChange {
            task: said.task,
            lead: format!("{} → {}", bytes(before), left(after, one.saving)),
            bytes_after: Some(after),
            fits,
            seconds_after: seconds,
            costs_no_compute: roughness(one, costs[at]).0 == 0,
            effect: effects.into_iter().flatten().collect::<Vec<_>>().join(", "),
            plain_code: said.plain,
            // Nothing is said twice.
            caveat: said
                .caveat
                .filter(|own| !planned.iter().any(|before: &PlannedChange<'_>| before.caveat.as_ref() == Some(own))),
            // A step that stays as it is has no line to edit.
            place: one
                .function
                .as_ref()
                .filter(|_| said.is_of_step)
                .map_or_else(|| place(one), |step| format!("the definition of `{step}`, below it")),
            lines: if said.is_of_step { Vec::new() } else { lines(one) },
            edit: None,
            recommendation: one,
        });
        before = after;
    }
    planned
}

/// The lines that a change edits, without their texts.
pub(super) fn lines(advice: &Recommendation) -> Vec<QuotedLine> {
    let Some(first) = advice.line().filter(|source| !source.is_installed()) else { return Vec::new() };
    let more = advice.edited.iter().flat_map(|edited| &edited.more).copied();
    let quoted = |line| QuotedLine { file: first.file.clone(), line, text: None };
    [first.line].into_iter().chain(more).map(quoted).collect()
}

/// The place of a change.
pub(crate) fn place(advice: &Recommendation) -> String {
    // No change is made in an installed package.
    let Some(source) = advice.line().filter(|source| !source.is_installed()) else { return String::new() };
    let line = file_and_line(source);
    let is_call = advice.edited.is_some();
    if let Some(more) = advice.edited.as_ref().map(|edited| &edited.more).filter(|more| !more.is_empty()) {
        let function = source.function.as_ref().map(|_| format!(", in `{}`", function(source))).unwrap_or_default();
        return format!("{line}{}{function}", numbers(source.line, more));
    }
    match &advice.finding {
        Finding::LargeDimension(found)
            if is_call && found.gradients == GradientSums::Summed && !found.is_made && found.joint.is_none() =>
        {
            format!("{line}, where the gradient is taken")
        }
        // The only line that a rewrite takes apart.
        Finding::LargeDimension(found)
            if is_call
                && (found.joint.is_some()
                    || found.is_made
                    || matches!(found.gradients, GradientSums::Apart | GradientSums::OfEach)) =>
        {
            format!("{line}, in `{}`", function(source))
        }
        Finding::LargeDimension(found)
            if is_call && found.gradients == GradientSums::None && found.function.is_some() =>
        {
            format!("the call of `{}`, whose code is at {line}", function(source))
        }
        Finding::UndonatedState(_) | Finding::LargeDimension(_) if is_call => {
            format!("the `jit` of `{}`, whose code is at {line}", function(source))
        }
        Finding::RepeatedLayers(_) if is_call => format!("{line}, where each layer is called"),
        Finding::KeptByLoop(finding) if finding.steps.is_some() => format!("{line}, the loop"),
        _ => line,
    }
}

/// The numbers of lines behind a first one: `–43, 50`.
fn numbers(first: u32, more: &[u32]) -> String {
    let (mut words, mut last, mut is_open) = (String::new(), first, false);
    for number in more {
        if *number == last + 1 {
            is_open = true;
        } else {
            let end = if is_open { format!("–{last}") } else { String::new() };
            words += &format!("{end}, {number}");
            is_open = false;
        }
        last = *number;
    }
    if is_open { words + &format!("–{last}") } else { words }
}

/// The name of a line's function.
fn function(source: &SourceLine) -> &str {
    source.function.as_deref().and_then(|name| name.rsplit('.').next()).unwrap_or_default()
}

/// The size of an input with which the program fits after all changes.
pub(super) fn fitting_size(changes: &[PlannedChange<'_>], report: &Report) -> Option<FittingSize> {
    report.fitting_size(bytes_after(changes, report)?)
}

/// Sizes of what the program makes with which it fits after all changes.
pub(super) fn fitting_made_sizes(changes: &[PlannedChange<'_>], report: &Report) -> Vec<[u64; 2]> {
    bytes_after(changes, report).map_or_else(Vec::new, |bytes| report.fitting_made_sizes(bytes))
}

fn bytes_after(changes: &[PlannedChange<'_>], report: &Report) -> Option<u64> {
    changes.last().map_or(Some(report.memory_bounds.at_least_bytes()), |last| last.bytes_after)
}

/// The bytes that are short after all changes, as a sentence; `None` if none are.
pub(super) fn shortfall(
    changes: &[PlannedChange<'_>],
    has_remedies: bool,
    size: Option<&FittingSize>,
    report: &Report,
) -> Option<Remark> {
    let missing =
        bytes_after(changes, report)?.checked_sub(report.available_bytes()?).filter(|missing| *missing > 0)?;
    let take = size.map_or_else(|| "smaller inputs, or more devices".to_owned(), fitting);
    let words = if has_remedies && changes.is_empty() {
        format!("If that frees less than the {}: take {take}.", bytes(missing))
    } else if changes.is_empty() {
        format!("No change is known that frees the {}: take {take}.", bytes(missing))
    } else {
        // The last change says how much that is.
        format!("For the rest, take {take}.")
    };
    Some(Remark { words, tone: Tone::Plain })
}

/// ``about 1,800,000 rows of `edges` instead of 2,501,829, or 2 devices``
fn fitting(found: &FittingSize) -> String {
    let FittingSize { axis, size, fits, devices, is_repeated, is_mixed, .. } = found;
    let (size, fits) = (grouped(*size), grouped(*fits));
    let smaller = match axis {
        AxisName::Batch(_) => format!("a batch of about {fits} instead of {size}"),
        AxisName::Tokens(_) => format!("about {fits} tokens instead of {size}"),
        AxisName::Dimension(argument, 0) if !is_repeated => {
            format!("about {fits} rows of `{argument}` instead of {size}")
        }
        AxisName::Dimension(argument, _) if *is_repeated => {
            format!("about {fits} instead of {size} in each dimension of `{argument}`")
        }
        other => format!("about {fits} instead of {size} in {}", self::axis(other)),
    };
    let mixed = if *is_mixed { MIXED } else { "" };
    format!("{smaller}, or {} devices{mixed}", grouped(*devices))
}

/// The results after a change that computes in another way; `None` for others.
const fn results(change: Change) -> Option<&'static str> {
    match change {
        Change::Checkpoint => Some("same results"),
        // Parts are added up in another order.
        Change::Chunk => Some("same results but for rounding"),
        _ => None,
    }
}

/// Whether bytes fit: of 67 bounds that a compiler was asked about, 65 were exceeded by less than a half
/// (`conformance/advice/TABLE.md`).
fn fit(after: u64, limit: u64, is_uncertain: bool) -> String {
    let is_close = is_uncertain && after > limit / 3 * 2;
    match after.checked_sub(limit).filter(|missing| *missing > 0) {
        Some(missing) => format!("still {} too much", bytes(missing)),
        None if is_close => "should fit".to_owned(),
        None => "fits".to_owned(),
    }
}

/// `about 6 % slower`; `6 % more compute`, in products, where time is unknown.
fn slowdown(advice: &Recommendation, cost: ChangeCost) -> String {
    let more = |part: f64, none: &str, about: &str, more: &str| match part * 100.0 {
        0.0 => none.to_owned(),
        few if few < 1.0 => format!("less than 1 % {more}"),
        percent => format!("{about}{percent:.0} % {more}"),
    };
    let computes_no_more = roughness(advice, cost).0 == 0;
    // Smaller operations, one after another, may each take a little longer.
    let none = if computes_no_more { "no slower" } else { "about as fast" };
    match cost {
        ChangeCost::Seconds { added, run } => more(added / run.max(f64::MIN_POSITIVE), none, "about ", "slower"),
        _ if computes_no_more => "no extra compute".to_owned(),
        // Parts repeat no product, but read the weights again.
        ChangeCost::Work(part) => more(part, "about the same compute", "", "more compute"),
        _ => "time unknown".to_owned(),
    }
}
