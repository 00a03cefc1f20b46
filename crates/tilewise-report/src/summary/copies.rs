//! Copies that cost.

use crate::{
    findings::{why, words},
    style::{bytes, percent},
};
use serde::{Serialize, Serializer};
use std::cmp::Reverse;
use tilewise_audit::{CopyClass, CopyReason, CopyRow, Recommendation, Report, SourceLine, copies_by_line};

/// Copies, by the line of the user's program.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CopySummary<'a> {
    /// Bytes that the program moves in all.
    pub moved_bytes: u64,
    /// The number of its copies.
    pub copies: usize,
    /// The lines whose copies move more than a hundredth of that, those that move the most first.
    pub lines: Vec<CopiesOfLine>,
    /// Changes by the caller that make copies needless: those of the longest copies first, or without times, those of
    /// the most moved bytes.
    pub needless: Vec<NeedlessCopies<'a>>,
    /// Whether the text has cycle counts, from which times are estimated.
    pub are_times_known: bool,
}

/// Copies of one sort that come from one line.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CopiesOfLine {
    /// The line; `None` for copies that the compiler gives no line.
    #[serde(serialize_with = "crate::json::optional")]
    pub source: Option<SourceLine>,
    /// The instruction that moves the most of them.
    pub instruction: String,
    /// The number of instructions.
    pub copies: usize,
    /// Bytes they read and write.
    pub moved_bytes: u64,
    /// Whether some run an unknown number of times, and are counted once.
    pub is_lower_bound: bool,
    /// Their share of the program's moved bytes, 0 … 1.
    pub share: f64,
    /// Seconds that they take in a run, estimated from the compiler's cycle counts; `None` without any.
    pub seconds: Option<f64>,
    /// Their purpose.
    pub purpose: &'static str,
    /// The reason for the largest; a transfer needs no reason.
    pub why: Option<String>,
}

/// Copies that a change at the interface makes needless.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NeedlessCopies<'a> {
    /// `12.00 MiB in 7 turns of a loop`
    pub lead: String,
    /// The change.
    pub recommendation: &'a Recommendation,
    /// Whether it frees memory as well, and so is among the program's recommendations.
    pub is_repeated: bool,
}

impl Serialize for NeedlessCopies<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        format!("{}: {}.", self.lead, words(self.recommendation).sentence).serialize(serializer)
    }
}

impl<'a> CopySummary<'a> {
    pub(super) fn of(report: &'a Report) -> Option<Self> {
        if report.copies.is_empty() {
            return None;
        }
        let moved_bytes = report.moved_bytes();
        let lines = copies_by_line(&report.copies, moved_bytes);
        if lines.is_empty() {
            return None;
        }
        let copies: Vec<(&CopyRow, &CopyReason)> = report.copies.iter().zip(report.copy_reasons()).collect();
        let lines = lines.into_iter().map(|line| {
            let is_about = |row: &CopyRow| row.instruction == line.instruction && row.class != CopyClass::Transfer;
            let about = copies.iter().find(|(row, _)| is_about(row));
            let own = report.copies.iter().filter(|copy| copy.class == line.class && copy.source == line.source);
            let seconds: Option<f64> = own.map(|copy| report.copy_seconds(copy)).sum();
            CopiesOfLine {
                seconds,
                why: about.map(|(row, reason)| why(row, reason)),
                source: line.source,
                instruction: line.instruction,
                copies: line.copies,
                moved_bytes: line.moved_bytes,
                is_lower_bound: line.is_lower_bound,
                share: line.share,
                purpose: purpose(line.class),
            }
        });
        let lines = lines.collect();
        let needless = needless(report, &copies, moved_bytes);
        let are_times_known = report.time().is_ok();
        Some(Self { moved_bytes, copies: report.copies.len(), lines, needless, are_times_known })
    }
}

/// Copies that one change makes needless.
struct Needless<'a> {
    bytes: u64,
    /// Seconds that they take, if known.
    seconds: Option<f64>,
    row: &'a CopyRow,
    fix: &'a Recommendation,
}

/// Changes for copies of more than a hundredth of the program's moved bytes, or of its time; the longest first if times
/// are known.
fn needless<'a>(report: &Report, copies: &[(&'a CopyRow, &'a CopyReason)], moved: u64) -> Vec<NeedlessCopies<'a>> {
    let mut found: Vec<Needless<'_>> = Vec::new();
    for (row, fix) in copies.iter().filter_map(|(row, reason)| Some((*row, reason.fix.as_ref()?))) {
        let (bytes, seconds) = (row.moved_bytes, report.copy_seconds(row));
        match found.iter_mut().find(|known| known.fix.finding == fix.finding) {
            Some(known) => {
                known.bytes = known.bytes.saturating_add(bytes);
                known.seconds = known.seconds.zip(seconds).map(|(sum, seconds)| sum + seconds);
            }
            None => found.push(Needless { bytes, seconds, row, fix }),
        }
    }
    let run = report.time().map_or(0.0, |time| time.total.estimate);
    let takes_long = |seconds: Option<f64>| seconds.is_some_and(|seconds| seconds > run / 100.0);
    found.retain(|known| known.bytes > moved / 100 || takes_long(known.seconds));
    found.sort_by_key(|known| Reverse(known.bytes));
    let seconds = |known: &Needless<'_>| known.seconds.unwrap_or(0.0);
    found.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
    let needless = found.into_iter().map(|Needless { bytes: count, seconds, row, fix: recommendation }| {
        let turns = match row.trips {
            Some(1) => String::new(),
            Some(trips) => format!(" in {trips} turns of a loop"),
            None => " at every turn of a loop".to_owned(),
        };
        let time = seconds.filter(|_| takes_long(seconds));
        let time = time.map(|seconds| format!(", an estimated {} of a run's time", percent(seconds / run)));
        let is_repeated = report.advice().iter().any(|advice| advice.finding == recommendation.finding);
        let lead = format!("{}{turns}{}", bytes(count), time.unwrap_or_default());
        NeedlessCopies { lead, recommendation, is_repeated }
    });
    needless.collect()
}

fn purpose(class: CopyClass) -> &'static str {
    match class {
        CopyClass::Relayout => "relayout: elements into another order or type",
        CopyClass::Transfer => "transfer: the same bytes into another memory",
        CopyClass::Duplicate => "duplicate: the same layout in the same memory",
        CopyClass::Bitcast => "bitcast: every byte stays where it is, no copy is needed",
        _ => "copy",
    }
}
