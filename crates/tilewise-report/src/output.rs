//! A report with options of its output.

use crate::{AsJson, LISTED, Quotes, ReportView, Summary};
use serde::{Serialize, Serializer};
use tilewise_audit::Report;

/// A report and how much of it to print: the output of `tilewise audit`. It serialises as the fields of its JSON.
#[derive(Clone, Debug)]
pub struct AuditOutput {
    /// The result of the audit.
    pub report: Report,
    /// Whether every buffer is listed, not only those with the most padding.
    pub all: bool,
    /// Whether text for people is about the time of a run instead of memory.
    pub of_time: bool,
    /// Lines of the reader's source, where available.
    pub quotes: Quotes,
}

impl AuditOutput {
    /// The report with the buffers that have the most padding.
    #[must_use]
    pub fn new(report: Report) -> Self {
        Self { report, all: false, of_time: false, quotes: Quotes::default() }
    }

    /// The rows of tables: every buffer if `all` is set, else those with the most padding.
    #[must_use]
    pub fn view(&self) -> ReportView<'_> {
        self.view_of(LISTED)
    }

    /// The report's summary.
    #[must_use]
    pub fn summary(&self) -> Summary<'_> {
        Summary::of(&self.report).quoting(&self.quotes)
    }

    /// The summary without the parts that need other plans of the program: changes, remedies and copies.
    #[must_use]
    pub fn summary_at_once(&self) -> Summary<'_> {
        Summary::at_once(&self.report).quoting(&self.quotes)
    }

    /// Every buffer if `all` is set, else the `most_buffers` with the most padding.
    pub(crate) fn view_of(&self, most_buffers: usize) -> ReportView<'_> {
        ReportView {
            report: &self.report,
            source: &self.report.source,
            most_buffers: (!self.all).then_some(most_buffers),
            quotes: Some(&self.quotes),
        }
    }
}

impl Serialize for AuditOutput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        AsJson(&self.view()).serialize(serializer)
    }
}
