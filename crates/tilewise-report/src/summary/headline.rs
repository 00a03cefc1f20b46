//! Whether a program fits, in a sentence.

use super::machine;
use crate::{
    style::{Tone, bytes},
    verdict::{Verdict, memory_of},
};
use serde::Serialize;
use tilewise_audit::Report;

/// A program's need and the available memory, in a sentence.
///
/// ```
/// use tilewise_report::AuditOutput;
///
/// let text = "HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[8,3]{1,0:T(8,128)} parameter(0) }";
/// let program = tilewise_audit::Program::parse(text)?;
/// let output = AuditOutput::new(tilewise_audit::Audit::new(&program).limit(4096).run());
/// let headline = output.summary().headline;
/// assert_eq!(headline.sentence, "Does not fit 4.00 KiB of HBM: needs 8.00 KiB, 4.00 KiB too much.");
/// assert_eq!((headline.verdict, headline.needed_bytes), ("does_not_fit", Some(8192)));
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Headline {
    /// `fits`, `does_not_fit`, `may_not_fit`, or `unknown`.
    pub verdict: &'static str,
    /// Bytes that it needs, at the least; `None` where they aren't known.
    pub needed_bytes: Option<u64>,
    /// Bytes that it is to fit: as asked, or those of the machine that its text shows; `None` without either.
    pub limit_bytes: Option<u64>,
    /// Whether it fits with room to spare: nothing needs to change.
    pub is_comfortable: bool,
    /// The verdict, the needed and the available bytes, and the difference.
    pub sentence: String,
    /// For a program that fits: no change is needed, and the meaning if it died all the same.
    pub comfort: Option<String>,
    /// The tone.
    pub tone: Tone,
}

/// More than this part of the memory, in percent, is close to the limit.
const CLOSE: u64 = 80;

impl Headline {
    /// The headline of a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let needed = report.plan().ok().map(|_| report.memory_bounds.at_least_bytes());
        let limit_bytes = report.available_bytes();
        let Some(limit) = limit_bytes else {
            let (per_device, memory) = (per_device(report), machine::memory_name(report.machine));
            let sentence = match report.plan() {
                Ok(_) => format!("Needs {} of {memory}{per_device}.", bytes(needed.unwrap_or_default())),
                Err(error) => format!("No memory plan: {error}."),
            };
            let (verdict, tone) = ("unknown", Tone::Strong);
            return Self {
                verdict,
                needed_bytes: needed,
                limit_bytes,
                is_comfortable: false,
                sentence,
                comfort: None,
                tone,
            };
        };
        let verdict = Verdict::of(report, limit);
        let bounds = report.memory_bounds;
        let used = u128::from(bounds.at_most_bytes) * 100;
        let is_small = used < u128::from(limit) * u128::from(CLOSE);
        let comfort = match verdict {
            Verdict::Fits { left } => Some(comfort(report, left)),
            _ => None,
        };
        Self {
            verdict: verdict.as_str(),
            needed_bytes: needed,
            limit_bytes,
            is_comfortable: comfort.is_some() && is_small,
            sentence: sentence(report, limit, verdict),
            comfort,
            tone: match verdict {
                Verdict::Fits { .. } => Tone::Strong,
                Verdict::DoesNotFit { .. } => Tone::Bad,
                Verdict::MayNotFit(_) => Tone::Warning,
            },
        }
    }
}

fn comfort(report: &Report, left: u64) -> String {
    let left = bytes(left);
    // JAX names the programs that it compiles so.
    let is_of_jax = report.module_name.starts_with("jit_");
    let look = if is_of_jax { ": list `jax.live_arrays()` right before it" } else { "" };
    format!(
        "Nothing needs to change. If it ran out of memory all the same, something else held more than {left}{look}."
    )
}

fn sentence(report: &Report, limit: u64, verdict: Verdict) -> String {
    let (bounds, per_device) = (report.memory_bounds, per_device(report));
    let name = report.machine.to_string();
    let name = name.rsplit(':').next().filter(|_| report.machine.program_bytes() == Some(limit));
    let place = match name {
        Some(name) if report.machine.generation().is_some() => format!("a TPU {name}"),
        Some(name) => format!("the memory of a GPU {}", name.to_uppercase()),
        None => memory_of(report.machine, limit),
    };
    let assumed = if name.is_some() && !report.is_machine_shown() { " (assumed)" } else { "" };
    // A limit in bytes is in the place already.
    let of = name.map(|_| format!(" of {}", bytes(limit))).unwrap_or_default();
    let is_planned = report.plan().is_ok();
    match verdict {
        Verdict::Fits { left } => {
            let most = if is_planned { "" } else { "at most " };
            let needed = bytes(bounds.at_most_bytes);
            format!("Fits {place}{assumed}: needs {most}{needed}{of}{per_device}, {} left.", bytes(left))
        }
        Verdict::DoesNotFit { missing } => {
            let least = if is_planned { "" } else { "at least " };
            let (needed, missing) = (bytes(bounds.at_least_bytes()), bytes(missing));
            let sentence =
                format!("Does not fit {place}{assumed}: needs {least}{needed}{of}{per_device}, {missing} too much.");
            let given = report.plan().map_or(0, |plan| plan.argument_bytes);
            match () {
                // No change inside the program makes them smaller.
                () if given > limit => format!("{sentence} Arguments alone take {}.", bytes(given)),
                () if !is_planned => format!("{sentence} Arguments and results alone are too large."),
                () => sentence,
            }
        }
        Verdict::MayNotFit(doubt) => format!("May not fit {place}{assumed}{of}: {doubt}."),
    }
}

/// ` on each of 8 devices`
pub(super) fn per_device(report: &Report) -> String {
    match report.partitions {
        0 | 1 => String::new(),
        count => format!(" on each of {count} devices"),
    }
}
