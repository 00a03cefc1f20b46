//! Two programs, such as one before and after a change.

use crate::{LISTED, memory_name, style::bytes};
use serde::Serialize;
use tilewise::visible;
use tilewise_audit::{Diff, Report};

/// What differs between two programs, as the page shows it: [`Diff`] with what is said of it. It serialises.
///
/// ```
/// use tilewise_audit::audit;
/// use tilewise_hlo::Module;
/// use tilewise_report::Comparison;
///
/// let report = |rows: u32| {
///     let text = format!("HloModule m, is_scheduled=true\nENTRY e {{ ROOT x = f32[{rows},3]{{1,0:T(8,128)}} parameter(0) }}");
///     Module::parse(text).map(|module| audit(&module))
/// };
/// let comparison = Comparison::of(&report(8)?, &report(16)?);
/// assert_eq!(comparison.headline, "8.00 KiB → 16.00 KiB of HBM: 8.00 KiB more");
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// `311.37 MiB → 45.90 MiB of HBM: 265.47 MiB less`
    pub headline: String,
    /// The programs, before and after.
    pub programs: [ComparedProgram; 2],
    /// What differs, of each list the first [`LISTED`].
    #[serde(serialize_with = "crate::json::value")]
    pub diff: Diff,
    /// How long the lists are.
    pub counts: DiffCounts,
}

/// One of two programs that are compared.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ComparedProgram {
    /// Where its text came from.
    pub source: String,
    /// Bytes alive in the default memory space at each moment; none without a plan.
    pub live_bytes: Vec<u64>,
    /// How many copies it has.
    pub copies: usize,
    /// Bytes that they read and write.
    pub copied_bytes: u64,
}

/// How many rows the lists of a [`Diff`] have.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct DiffCounts {
    /// [`Diff::owners`]
    pub owners: usize,
    /// [`Diff::copies`]
    pub copies: usize,
    /// [`Diff::removed`]
    pub removed: usize,
    /// [`Diff::added`]
    pub added: usize,
}

impl Comparison {
    /// The comparison of two reports.
    #[must_use]
    pub fn of(before: &Report, after: &Report) -> Self {
        let mut diff = Diff::of(before, after);
        let Diff { owners, copies, removed, added, before_bytes: was, after_bytes: is, .. } = &mut diff;
        let counts =
            DiffCounts { owners: owners.len(), copies: copies.len(), removed: removed.len(), added: added.len() };
        owners.truncate(LISTED);
        copies.truncate(LISTED);
        removed.truncate(LISTED);
        added.truncate(LISTED);
        let change = match was.abs_diff(*is) {
            0 => "no change".to_owned(),
            by => format!("{} {}", bytes(by), if is > was { "more" } else { "less" }),
        };
        let memory = memory_name(after.machine);
        Self {
            headline: format!("{} → {} of {memory}: {change}", bytes(*was), bytes(*is)),
            programs: [before, after].map(ComparedProgram::of),
            diff,
            counts,
        }
    }
}

impl ComparedProgram {
    fn of(report: &Report) -> Self {
        let copies = &report.copies;
        Self {
            source: visible(&report.source).into_owned(),
            live_bytes: report.live_bytes(0),
            copies: copies.len(),
            copied_bytes: copies.iter().map(|copy| copy.moved_bytes).fold(0, u64::saturating_add),
        }
    }
}
