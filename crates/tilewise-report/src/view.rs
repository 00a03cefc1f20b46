//! The shown part of a report.

use crate::Quotes;
use tilewise_audit::{BufferRow, ModuleRow, Report};

/// Buffers that are listed by default: a table's worth.
pub const LISTED: usize = 20;

/// A report as shown: [as JSON](crate::AsJson), the output of `tilewise audit --format json`.
#[derive(Clone, Copy, Debug)]
pub struct ReportView<'a> {
    /// The report.
    pub report: &'a Report,
    /// The source of the program's text, as shown.
    pub source: &'a str,
    /// At most this many buffers, those with the most padding; without it every buffer, in the order of the text.
    pub most_buffers: Option<usize>,
    /// Lines of the reader's source, where they are at hand.
    pub quotes: Option<&'a Quotes>,
}

impl<'a> ReportView<'a> {
    /// Whether the whole plan is listed: with every buffer, where there is one.
    #[must_use]
    pub fn lists_plan(&self) -> bool {
        self.most_buffers.is_none() && self.report.plan().is_ok()
    }

    /// The listed modules, which hold the most at the peak of the device's memory.
    #[must_use]
    pub fn peak_modules(&self) -> Vec<ModuleRow> {
        let mut modules = self.report.peak_modules(0);
        modules.truncate(self.most_buffers.unwrap_or(usize::MAX));
        modules
    }

    /// The buffers that are listed.
    pub fn buffers(&self) -> impl Iterator<Item = BufferRow> + use<'a> {
        let report = self.report;
        let largest = self.most_buffers.map(|most| report.largest_padding().take(most));
        let all = self.most_buffers.is_none().then(|| report.buffers());
        largest.into_iter().flatten().chain(all.into_iter().flatten())
    }
}
