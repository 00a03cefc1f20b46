//! What of a report is shown.

use super::sections::{BufferRow, Report};

/// What a view of a [`Report`] depends on beside the program.
#[derive(Clone, Copy, Debug, Default)]
pub struct ViewOptions {
    /// Bytes of HBM that the program is to fit.
    pub hbm_limit: Option<u64>,
    /// At most this many buffers, those with the most padding; without it every buffer, in the order of the text.
    pub most_buffers: Option<usize>,
}

impl ViewOptions {
    /// [`most_buffers`](Self::most_buffers) of `tilewise audit` for machines, without `--all`: a table's worth.
    pub const LISTED: usize = 20;
}

/// A report as it is shown. With the `serde` feature it serialises as what `tilewise audit --format json` prints.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReportView<'a> {
    /// The report.
    pub report: &'a Report,
    /// Where the program's text came from, such as a path.
    pub source: &'a str,
    /// What is shown of it.
    pub options: ViewOptions,
}

impl Report {
    /// The report as it is shown under these options; `source` says where the program's text came from.
    #[must_use]
    pub fn view<'a>(&'a self, source: &'a str, options: ViewOptions) -> ReportView<'a> {
        ReportView { report: self, source, options }
    }
}

impl<'a> ReportView<'a> {
    /// Whether the whole plan is listed: with every buffer, where there is one.
    #[must_use]
    pub fn lists_plan(&self) -> bool {
        self.options.most_buffers.is_none() && self.report.plan().is_ok()
    }

    /// The buffers that are listed.
    pub fn buffers(&self) -> impl Iterator<Item = BufferRow> + use<'a> {
        let report = self.report;
        let largest = self.options.most_buffers.map(|most| report.largest_padding().take(most));
        let all = self.options.most_buffers.is_none().then(|| report.buffers());
        largest.into_iter().flatten().chain(all.into_iter().flatten())
    }
}
