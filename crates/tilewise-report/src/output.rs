//! A report with what is asked of it.

use crate::Summary;
use serde::{Serialize, Serializer};
use tilewise::tpu::Generation;
use tilewise_audit::{Report, ReportView, ViewOptions};

/// A report, where it came from, and how much of it is asked for: what `tilewise audit` prints. It serialises as the
/// fields of its JSON.
#[derive(Clone, Debug)]
pub struct AuditOutput {
    /// The file, or whatever the text came from.
    pub source: String,
    /// What the audit found.
    pub report: Report,
    /// Whether every buffer is listed, not only those with the most padding.
    pub all: bool,
    /// The generation that was given for the audit; `None` where it was inferred.
    pub tpu: Option<Generation>,
    /// Bytes of the memory it should fit.
    pub limit: Option<u64>,
}

impl AuditOutput {
    /// What tables list: every buffer if `all` is set, else those with the most padding.
    #[must_use]
    pub fn view(&self) -> ReportView<'_> {
        self.view_of(ViewOptions::LISTED)
    }

    /// What is said of it first.
    #[must_use]
    pub fn summary(&self) -> Summary<'_> {
        Summary::of(&self.view())
    }

    /// Every buffer if `all` is set, else so many of those with the most padding.
    pub(crate) fn view_of(&self, most_buffers: usize) -> ReportView<'_> {
        let most_buffers = (!self.all).then_some(most_buffers);
        self.report.view(&self.source, ViewOptions { hbm_limit: self.limit, most_buffers })
    }
}

impl Serialize for AuditOutput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.view().serialize(serializer)
    }
}
