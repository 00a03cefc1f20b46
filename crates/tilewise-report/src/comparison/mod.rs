//! Two programs, such as one before and after a change, or one and its plan lock: the one comparison.

mod fields;
mod layouts;
mod owners;
mod program;
mod time;
mod words;

use crate::{memory_name, style::bytes};
pub(crate) use fields::each_once;
use layouts::{Layouts, changed_memory};
use owners::{changed_copies, changed_kernel_copies, changed_owners, small_as_one};
pub use program::{ComparedBytes, ComparedProgram, Compiler, Count, KernelCopy, Owner};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};
use tilewise_audit::Report;
pub use time::ComparedTime;

/// The differences of two programs. It serialises, and [`ToString`] writes it in words;
/// [`to_markdown`](Self::to_markdown) and [`to_github`](Self::to_github) write it for a pull request and the log of its
/// job, `to_html` (feature `html`) draws two programs.
///
/// ```
/// use tilewise_audit::audit;
/// use tilewise_hlo::Module;
/// use tilewise_report::{Allowed, Comparison, Outcome};
///
/// let report = |rows: u32| {
///     let text = format!("HloModule m, is_scheduled=true\nENTRY e {{ ROOT x = f32[{rows},3]{{1,0:T(8,128)}} parameter(0) }}");
///     Module::parse(text).map(|module| audit(&module))
/// };
/// let comparison = Comparison::of_reports(&report(8)?, &report(16)?, Allowed::default());
/// assert_eq!(comparison.headline, "8.00 KiB → 16.00 KiB of HBM, 8.00 KiB more");
/// // Less than a MiB is no matter.
/// assert_eq!(comparison.verdict, Outcome::Same);
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The program's name, without the `jit_` of its framework.
    pub program: String,
    /// `311.37 MiB → 45.90 MiB of HBM: 265.47 MiB less`
    pub headline: String,
    /// Whether the second is better or worse.
    pub verdict: Outcome,
    /// The first program.
    pub before: ComparedProgram,
    /// The second program.
    pub after: ComparedProgram,
    /// The differences: the program's numbers, then its owners and its copies, the largest difference first.
    pub changes: Vec<Change>,
    /// The buffers that only the first program has, the largest first; empty for a lock, which keeps none.
    pub removed: Vec<Owner>,
    /// The buffers that only the second program has, the largest first.
    pub added: Vec<Owner>,
    /// The first advice, if the second program is worse.
    pub advice: Option<String>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Change {
    /// `total`, `argument`, `output`, `alias`, `constant`, `temporary`, `padding`, `limit`, `copies`, the opcode of a collective,
    /// `kernel_copies` into or out of one, `recomputed`, `fits`, `complete`, `time`, `owner`, `settings`; or `smaller owners` and
    /// `smaller copies`, the sums of those that each differ by less than a thousandth of all.
    pub what: String,
    /// The amount before; `None` if it is new.
    pub before: Option<Amount>,
    /// The amount after; `None` if it is gone.
    pub after: Option<Amount>,
    /// The owner: an operation, an argument or a result and its shape, or the copies of one; `None` for the whole
    /// program.
    pub owner: Option<String>,
    /// The file that the owner is written in, of the second program where that has it.
    pub file: Option<String>,
    /// The line there, from 1.
    pub line: Option<u32>,
    /// Whether that is better, worse, or only changed.
    pub verdict: Outcome,
}

/// The value of a [`Change`], before or after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Amount {
    /// Yes or no.
    Flag(bool),
    /// Bytes, or how many instructions are `recomputed`.
    Number(u64),
    /// The estimated seconds of a run.
    Seconds(f64),
    /// A layout, `{1,0:T(8,128)}`.
    Layout(String),
    /// The settings of a factory's call.
    Settings(Map<String, Value>),
}

impl Amount {
    /// The number; 0 for other kinds.
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            _ => 0,
        }
    }
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// No relevant difference.
    Same,
    /// Less memory is held, or less is recomputed.
    Better,
    /// It holds, copies or sends more than is [allowed](Allowed), the compiler recomputes more, or it fits no more.
    Worse,
    /// It differs, and that is neither better nor worse.
    Changed,
    /// They are of different compilers, whose plans aren't comparable.
    #[serde(rename = "other compiler")]
    OtherCompiler,
}

impl Outcome {
    /// Its name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Changed => "changed",
            Self::OtherCompiler => "other compiler",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The allowed growth of a program.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// The share that bytes may grow by; a MiB is always allowed.
    pub tolerance: f64,
    /// Any change is worse.
    pub exact: bool,
    /// Plans of different compilers are compared, too.
    pub any_compiler: bool,
}

impl Default for Allowed {
    fn default() -> Self {
        Self { tolerance: 0.01, exact: false, any_compiler: false }
    }
}

impl Allowed {
    /// Growth of fewer bytes is ignored.
    const LEAST: u64 = 1 << 20;

    #[expect(clippy::cast_precision_loss, reason = "a share, compared with a share")]
    fn verdict(self, before: u64, after: u64) -> Outcome {
        let by = before.abs_diff(after);
        if !self.exact && (by <= Self::LEAST || by as f64 <= self.tolerance * before as f64) {
            return Outcome::Changed;
        }
        if after > before { Outcome::Worse } else { Outcome::Better }
    }
}

impl Comparison {
    /// The comparison of two programs by the facts that a lock keeps.
    #[must_use]
    pub fn of(name: &str, before: ComparedProgram, after: ComparedProgram, allowed: Allowed) -> Self {
        Self::compared(name, "HBM", before, after, allowed, Vec::new())
    }

    /// The comparison of two reports: buffers, and the copies of each operation, too.
    #[must_use]
    pub fn of_reports(before: &Report, after: &Report, allowed: Allowed) -> Self {
        let [was, is] = [before, after].map(|report| {
            let libtpu = report.libtpu.filter(|_| allowed.any_compiler);
            let compiler = libtpu.map(|version| Compiler::from([("libtpu".to_owned(), version.to_string())]));
            ComparedProgram { compiler, ..ComparedProgram::of(report) }
        });
        let Layouts { changes: layouts, removed, added } = Layouts::of(before, after);
        let moved = was.copies.bytes.max(is.copies.bytes);
        let copies = small_as_one(changed_copies(before, after), "smaller copies", moved, allowed);
        let more = [changed_memory(before, after), copies, layouts].concat();
        let compared = Self::compared(is.name(after), memory_name(after.machine), was, is, allowed, more);
        Self { removed, added, ..compared }
    }

    fn compared(
        name: &str,
        memory: &str,
        before: ComparedProgram,
        after: ComparedProgram,
        allowed: Allowed,
        more: Vec<Change>,
    ) -> Self {
        let changes = if !allowed.any_compiler && before.is_of_another_compiler(&after) {
            None
        } else {
            let mut changes = changed_numbers(&before, &after, allowed);
            let is_one_tpu = before.tpu.is_some() && before.tpu == after.tpu;
            let times = before.time.as_ref().zip(after.time.as_ref()).filter(|_| is_one_tpu);
            changes.extend(times.and_then(|(was, is)| was.change_to(is)));
            if let (Some(was), Some(is)) = (&before.kernel_copies, &after.kernel_copies) {
                changes.extend(changed_kernel_copies(was, is, allowed));
            }
            let total = before.bytes.total.max(after.bytes.total);
            let owners = changed_owners(&before.owners, &after.owners);
            changes.extend(small_as_one(owners, "smaller owners", total, allowed));
            changes.extend(more);
            if before.settings != after.settings {
                let settings = [&before, &after].map(|program| Amount::Settings(program.settings.clone()));
                changes.push(Change::of("settings", settings, Outcome::Changed));
            }
            Some(changes)
        };
        let has = |verdict| changes.iter().flatten().any(|change| change.verdict == verdict);
        let verdict = match &changes {
            None => Outcome::OtherCompiler,
            Some(changes) if has(Outcome::Worse) || (allowed.exact && !changes.is_empty()) => Outcome::Worse,
            Some(_) if has(Outcome::Better) => Outcome::Better,
            Some(_) => Outcome::Same,
        };
        // A program that holds less and copies more is worse to a gate, and mixed to a reader.
        let said = match verdict {
            Outcome::Worse if has(Outcome::Better) => "Better and worse: ",
            Outcome::Worse => "Worse: ",
            Outcome::Better => "Better: ",
            _ => "",
        };
        Self {
            program: name.to_owned(),
            headline: headline(said, memory, &before, &after),
            verdict,
            before,
            after,
            changes: changes.unwrap_or_default(),
            removed: Vec::new(),
            added: Vec::new(),
            advice: None,
        }
    }

    /// Adds the report's first advice, if the verdict is worse.
    #[must_use]
    pub fn advised(self, after: &Report) -> Self {
        let first = || after.advice().first().map(|advice| crate::words(advice).sentence);
        Self { advice: if self.verdict == Outcome::Worse { first() } else { None }, ..self }
    }

    /// Whether anything differs at all.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.verdict == Outcome::OtherCompiler
            || !(self.changes.is_empty() && self.removed.is_empty() && self.added.is_empty())
    }

    /// Keeps at most `most` rows of each kind, and counts all: changes by field, `removed`, `added`.
    #[must_use]
    pub fn shortened(mut self, most: usize) -> ShortComparison {
        let mut counts =
            BTreeMap::from([("removed".to_owned(), self.removed.len()), ("added".to_owned(), self.added.len())]);
        self.changes.retain(|change| {
            // The whole program's number stands apart from those of its owners.
            let what = if change.owner.is_some() {
                format!("{}s", change.what.trim_end_matches('s'))
            } else {
                change.what.clone()
            };
            let count = counts.entry(what).or_default();
            *count += 1;
            *count <= most
        });
        self.removed.truncate(most);
        self.added.truncate(most);
        ShortComparison { comparison: self, counts }
    }
}

/// The first rows of a [`Comparison`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ShortComparison {
    /// The comparison with those rows.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// The number of all rows of each kind.
    pub counts: BTreeMap<String, usize>,
}

/// The data of the page of two programs: `ComparedPage` in `web/src/program/compare.ts`.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonPage {
    #[serde(flatten)]
    comparison: ShortComparison,
    /// Bytes alive in the default memory space at each moment, before and after; none without a plan.
    live_bytes: [Vec<u64>; 2],
}

impl ComparisonPage {
    /// Rows of each kind in its data; the page shows the first of them.
    const MOST: usize = 500;

    /// The page of two reports.
    #[must_use]
    pub fn of(before: &Report, after: &Report) -> Self {
        let comparison = Comparison::of_reports(before, after, Allowed::default()).shortened(Self::MOST);
        Self { comparison, live_bytes: [before, after].map(|report| report.live_bytes(0)) }
    }
}

/// `Better: 32.00 MiB less copied; the same peak, 311.37 MiB of HBM`.
fn headline(said: &str, memory: &str, before: &ComparedProgram, after: &ComparedProgram) -> String {
    let less = |was: u64, is: u64| format!("{} {}", bytes(was.abs_diff(is)), if is > was { "more" } else { "less" });
    let [was, is] = [before, after].map(|program| program.bytes.total);
    let [copied_before, copied] = [before, after].map(|program| program.copies.bytes);
    let copies = (copied_before != copied).then(|| format!("{} copied", less(copied_before, copied)));
    match copies {
        _ if was != is => {
            let copies = copies.map(|copies| format!("; {copies}")).unwrap_or_default();
            format!("{said}{} → {} of {memory}, {}{copies}", bytes(was), bytes(is), less(was, is))
        }
        Some(copies) => format!("{said}{copies}; the same peak, {} of {memory}", bytes(is)),
        None => format!("{said}the same peak, {} of {memory}", bytes(is)),
    }
}

impl Change {
    fn of(what: &str, [before, after]: [Amount; 2], verdict: Outcome) -> Self {
        let what = what.to_owned();
        Self { what, before: Some(before), after: Some(after), owner: None, file: None, line: None, verdict }
    }

    /// The difference in bytes or instructions; all of them if new or gone.
    fn difference(&self) -> u64 {
        let number = |amount: &Option<Amount>| amount.as_ref().map_or(0, Amount::number);
        number(&self.before).abs_diff(number(&self.after))
    }
}

/// The numbers of the whole program that differ.
fn changed_numbers(before: &ComparedProgram, after: &ComparedProgram, allowed: Allowed) -> Vec<Change> {
    let number = |what: &str, was: u64, is: u64, verdict: Outcome| {
        (was != is).then(|| Change::of(what, [was, is].map(Amount::Number), verdict))
    };
    let flag = |what: &str, was: bool, is: bool| {
        Change::of(what, [was, is].map(Amount::Flag), if is { Outcome::Better } else { Outcome::Worse })
    };
    let (was, is) = (&before.bytes, &after.bytes);
    let mut changes = vec![number("total", was.total, is.total, allowed.verdict(was.total, is.total))];
    for (what, was, is) in [
        ("argument", was.argument, is.argument),
        ("output", was.output, is.output),
        ("alias", was.alias, is.alias),
        ("constant", was.constant, is.constant),
        ("temporary", was.temporary, is.temporary),
        ("padding", was.padding, is.padding),
    ] {
        changes.push(number(what, was, is, Outcome::Changed));
    }
    if let (Some(was), Some(is)) = (was.limit, is.limit) {
        changes.push(number("limit", was, is, Outcome::Changed));
    }
    let [was, is] = [before, after].map(|program| program.copies.bytes);
    changes.push(number("copies", was, is, allowed.verdict(was, is)));
    let kinds: BTreeSet<_> = before.collectives.keys().chain(after.collectives.keys()).collect();
    for kind in kinds {
        let [was, is] = [before, after].map(|program| program.collectives.get(kind).map_or(0, |count| count.bytes));
        changes.push(number(kind, was, is, allowed.verdict(was, is)));
    }
    let recomputes = if after.recomputed > before.recomputed { Outcome::Worse } else { Outcome::Better };
    changes.push(number("recomputed", before.recomputed, after.recomputed, recomputes));
    if let [Some(was), Some(is)] = [before, after].map(ComparedProgram::fits)
        && was != is
    {
        changes.push(Some(flag("fits", was, is)));
    }
    if before.is_complete != after.is_complete {
        changes.push(Some(flag("complete", before.is_complete, after.is_complete)));
    }
    changes.into_iter().flatten().collect()
}
