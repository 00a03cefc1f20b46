//! A program's problems and changes, each at a line of its source, for code hosts to show beside a change.

use crate::{AuditOutput, findings::words, style::Tone};
use std::borrow::Cow;
use tilewise::visible;
use tilewise_audit::SourceLine;

/// A remark at a line.
pub(super) struct Alert<'a> {
    /// Its rule in [`RULES`].
    pub(super) rule: &'static str,
    pub(super) level: Level,
    pub(super) message: String,
    /// Code to paste, if any.
    pub(super) code: Option<String>,
    pub(super) file: Cow<'a, str>,
    /// From 1.
    pub(super) line: u32,
}

/// The severity, in the words of code hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Error,
    Warning,
}

impl Level {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// The rule of a program that does not fit; the others are the changes that free memory
/// ([`Change::as_str`](tilewise_audit::recommendation::Change::as_str)).
pub(super) const DOES_NOT_FIT: &str = "does-not-fit";

/// The alerts on a program: that it does not fit, then each change that frees memory, the best first.
pub(super) fn alerts(output: &AuditOutput) -> Vec<Alert<'_>> {
    let (report, summary) = (&output.report, output.summary());
    let peak = report.memory_space(0).and_then(|hbm| hbm.peak.as_ref()).and_then(|peak| peak.source.as_ref());
    // Without any line of the user's, the alert is at the program itself.
    let place = |source: Option<&SourceLine>| match source.or(peak) {
        Some(source) => (Cow::Owned(visible(&source.file).to_string()), source.line.max(1)),
        None => (visible(&output.report.source), 1),
    };
    let program = |words: &str| format!("{}: {words}", visible(summary.title));
    let headline = &summary.headline;
    let misfit = matches!(headline.tone, Tone::Bad | Tone::Warning).then(|| {
        let (file, line) = place(summary.causes.first().and_then(|cause| cause.source.as_ref()));
        let level = if headline.tone == Tone::Bad { Level::Error } else { Level::Warning };
        let causes = summary.causes.iter().filter(|cause| !cause.is_rest());
        let causes: Vec<&str> = causes.map(|cause| &*cause.sentence).collect();
        let why = if causes.is_empty() { String::new() } else { format!(" Most of it: {}.", causes.join("; ")) };
        let words = [format!("{}{why}", headline.sentence)];
        Alert { rule: DOES_NOT_FIT, level, message: program(&words.join(" ")), code: None, file, line }
    });
    let changes = summary.changes.iter().map(|change| {
        let recommendation = change.recommendation;
        let (file, line) = place(recommendation.array.as_ref().and_then(|array| array.source.as_ref()));
        let said = words(recommendation);
        let message = program(&format!("{}: {}", change.lead, said.sentence));
        let code = said.code.is_some().then(|| said.lines().collect::<Vec<_>>().join("\n"));
        Alert { rule: recommendation.change.as_str(), level: Level::Warning, message, code, file, line }
    });
    misfit.into_iter().chain(changes).collect()
}
