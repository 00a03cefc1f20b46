//! The events in a part of a run, in words.

use super::Remark;
use crate::style::Tone;
use crate::style::{bytes, duration, grouped, owner_name};
use tilewise_audit::{Span, Timeline};

/// The most owners that are named.
const NAMED: usize = 3;

/// The allocations and releases in a part of a run, and the largest owners: a sentence or two.
///
/// ```
/// let text = "HloModule m, is_scheduled=true\nENTRY e {\n  x = f32[8,128]{1,0:T(8,128)} parameter(0)\n  y = f32[8,128]{1,0:T(8,128)} negate(x), metadata={source_file=\"model.py\" source_line=7}\n  ROOT z = f32[8,128]{1,0:T(8,128)} negate(y)\n}";
/// let timeline = tilewise_audit::audit(&tilewise_hlo::Module::parse(text)?).timeline(0).expect("a plan");
/// let words: Vec<_> = tilewise_report::in_span(&timeline, &timeline.span(1, 2)).into_iter().map(|remark| remark.words).collect();
/// let whole = "4.00 KiB allocated in 1 array, 0 B freed, at most 12.00 KiB in use (step 2).";
/// assert_eq!(words, ["Steps 2 to 3:", whole, "Most by model.py:7 4.00 KiB."]);
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[must_use]
pub fn in_span(timeline: &Timeline, span: &Span) -> Vec<Remark> {
    let step = |moment: usize| grouped((moment as u64).saturating_add(1));
    let arrays = grouped(span.arrays as u64);
    let (allocated, freed, most) = (bytes(span.allocated_bytes), bytes(span.freed_bytes), bytes(span.most_bytes));
    let time = span.seconds.map(|seconds| format!(", {} estimated", duration(seconds))).unwrap_or_default();
    let mut words = vec![
        Remark { words: format!("Steps {} to {}:", step(span.first), step(span.last)), tone: Tone::Strong },
        Remark {
            words: format!(
                "{allocated} allocated in {arrays} array{}, {freed} freed, at most {most} in use (step {}){time}.",
                if span.arrays == 1 { "" } else { "s" },
                step(span.most_moment)
            ),
            tone: Tone::Plain,
        },
    ];
    let named = span
        .owners
        .iter()
        .take(NAMED)
        .filter_map(|(owner, held)| Some(format!("{} {}", owner_name(timeline.owners.get(*owner)?), bytes(*held))));
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        words.push(Remark { words: format!("Most by {}.", named.join(", ")), tone: Tone::Plain });
    }
    words
}
