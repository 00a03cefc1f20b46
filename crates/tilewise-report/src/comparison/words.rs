//! A comparison in words: for people, for a pull request, for the log of its job, and as a page.

#[cfg(feature = "html")]
use super::ComparisonPage;
use super::{Amount, Change, ComparedTime, Comparison, Compiler, Outcome, Owner};
use crate::{
    export::{markdown_table, markdown_text, property, workflow_data},
    style::{bytes, bytes_both, cut, duration, shortened},
    summary::NOT_MEASURED,
    text::{Terminal, WriteText},
};
use std::{
    fmt,
    io::{self, Write},
};
use tilewise::visible;

/// Listed rows of owners, copies and buffers each.
const ROWS: usize = 10;

/// Columns of a buffer's shape; tuples may be longer.
const SHAPE: usize = 80;

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", visible(&self.program), self.verdict)?;
        let compilers =
            self.before.compiler.as_ref().zip(self.after.compiler.as_ref()).filter(|(then, now)| then != now);
        if self.verdict == Outcome::OtherCompiler {
            return match compilers {
                Some((then, now)) => {
                    let (pinned, then, now) = (pinned(then, now), versions(then), versions(now));
                    write!(f, ": locked with {then}, compiled with {now}; compare with {pinned} or renew the lock")
                }
                _ => f.write_str(
                    ": the same program has other bytes, so the compiler or its flags (LIBTPU_INIT_ARGS, XLA_FLAGS) differ; \
                     renew the lock",
                ),
            };
        }
        if let Some((then, now)) = compilers {
            write!(f, ", {} → {}", versions(then), versions(now))?;
        }
        let mut listed = 0;
        for change in &self.changes {
            listed += usize::from(change.owner.is_some());
            if listed <= ROWS || change.owner.is_none() {
                write!(f, "\n  {}", visible(&self.line(change)))?;
            }
        }
        write_more(f, listed.saturating_sub(ROWS))?;
        let smallest = self.before.bytes.total.max(self.after.bytes.total) / 1000;
        for (title, buffers) in [("only before", &self.removed), ("only after", &self.added)] {
            let large = buffers.iter().take_while(|buffer| buffer.bytes >= smallest).take(ROWS);
            for Owner { op, shape, bytes: count, .. } in large.clone() {
                let line = format!("{title}: {} in {} of {op}", bytes(*count), cut(shape, SHAPE));
                write!(f, "\n  {}", visible(&line))?;
            }
            write_more(f, buffers.len() - large.count())?;
        }
        self.advice.iter().try_for_each(|advice| write!(f, "\n  try: {advice}"))
    }
}

impl WriteText for Comparison {
    fn write_text(&self, _: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{self}")
    }
}

fn write_more(f: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
    if count > 0 { write!(f, "\n  {count} more") } else { Ok(()) }
}

impl Comparison {
    /// A change and its subject.
    fn line(&self, change: &Change) -> String {
        let subject = match (&change.what[..], &change.owner) {
            // The owner of a copy at a kernel describes it.
            ("kernel_copies", Some(copied)) => format!("{copied}{}", place(change)),
            ("owner", Some(owner)) => format!("held by {owner}{}", place(change)),
            (what, Some(owner)) => format!("{what} of {owner}{}", place(change)),
            (what, None) => what.to_owned(),
        };
        format!("{subject}: {}", self.amounts(change))
    }

    /// `8.00 GiB (8589934592) → 10.50 GiB (11274289152) (+31%), changed`
    fn amounts(&self, change: &Change) -> String {
        let Change { what, before, after, verdict, .. } = change;
        let is_at_least = self.after.time.as_ref().is_some_and(ComparedTime::is_at_least);
        let words = |amount: &Amount| match amount {
            Amount::Flag(is) => is.to_string(),
            Amount::Number(count) if what == "recomputed" => count.to_string(),
            Amount::Number(count) => bytes_both(*count),
            Amount::Seconds(seconds) if is_at_least => format!("at least ≈{}", duration(*seconds)),
            Amount::Seconds(seconds) => format!("≈{}", duration(*seconds)),
            Amount::Layout(layout) => layout.clone(),
            Amount::Settings(settings) => serde_json::to_string(settings).unwrap_or_default(),
        };
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            (None, after) => return format!("new, {}", after.as_ref().map(words).unwrap_or_default()),
            (Some(before), None) => return format!("gone, was {}", words(before)),
        };
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = match (before, after) {
            (Amount::Number(was @ 1..), Amount::Number(is)) if what != "recomputed" => {
                Some((*is as f64 - *was as f64) / *was as f64)
            }
            // The share is unknown for a lower bound.
            (Amount::Seconds(was), Amount::Seconds(is)) if !is_at_least && *was > 0.0 => Some((is - was) / was),
            _ => None,
        };
        let share = share.map(|share| format!(" ({:+.0}%)", share * 100.0)).unwrap_or_default();
        let note = match after {
            Amount::Seconds(_) => format!(" a run, {NOT_MEASURED}"),
            _ => String::new(),
        };
        format!("{} → {}{share}{note}, {verdict}", words(before), words(after))
    }
}

/// ` at model.py:15`
fn place(change: &Change) -> String {
    match (&change.file, change.line) {
        (Some(file), Some(line)) => format!(" at {}:{line}", shortened(file)),
        (Some(file), None) => format!(" at {}", shortened(file)),
        _ => String::new(),
    }
}

/// `libtpu 0.0.51, jaxlib 0.10.2`
fn versions(compiler: &Compiler) -> String {
    let versions: Vec<_> = compiler.iter().map(|(name, version)| format!("{name} {version}")).collect();
    visible(&versions.join(", ")).into_owned()
}

/// Pins of the packages whose versions differ from now.
fn pinned(then: &Compiler, now: &Compiler) -> String {
    let differing = then.iter().filter(|(name, version)| now.get(*name) != Some(version));
    let pins: Vec<_> = differing.map(|(name, version)| format!("{name}=={version}")).collect();
    if pins.is_empty() { "the same packages".to_owned() } else { visible(&pins.join(" ")).into_owned() }
}

impl Comparison {
    /// For a pull request: a table of these programs, and below it their changed owners, copies and times, and the
    /// advice.
    #[must_use]
    pub fn to_markdown(compared: &[Self]) -> String {
        let mut rows = vec![["program", "total before", "after", "left", "verdict"].map(str::to_owned).to_vec()];
        for Self { program, before, after, verdict, .. } in compared {
            let [was, is] = [before, after].map(|program| bytes_both(program.bytes.total));
            let left = match after.bytes.limit.map(|limit| limit.checked_sub(after.bytes.total)) {
                Some(_) if after.fits().is_none() => "unknown".to_owned(),
                Some(Some(left)) => bytes_both(left),
                Some(None) => "does not fit".to_owned(),
                None => String::new(),
            };
            rows.push(vec![program.clone(), was, is, left, verdict.to_string()]);
        }
        let mut lines = vec![markdown_table(&rows)];
        for comparison in compared {
            let Self { program, changes, advice, .. } = comparison;
            let is_listed = |change: &&Change| change.owner.is_some() || change.what == "time";
            let owned: Vec<_> = changes.iter().filter(is_listed).collect();
            if !owned.is_empty() {
                lines.extend([String::new(), format!("{}:", markdown_text(program)), String::new()]);
                let owner = |change: &Change| change.owner.as_ref().unwrap_or(&change.what).clone() + &place(change);
                let said =
                    |change: &&Change| format!("- {}: {}", markdown_text(&owner(change)), comparison.amounts(change));
                lines.extend(owned.iter().take(ROWS).map(said));
            }
            lines.extend(advice.iter().flat_map(|advice| [String::new(), format!("Try: {}", markdown_text(advice))]));
        }
        lines.join("\n")
    }

    /// For the log of a GitHub job, at the line of the first changed owner that the second program has.
    #[must_use]
    pub fn to_github(&self) -> String {
        let level = match self.verdict {
            Outcome::Worse => "error",
            Outcome::OtherCompiler => "warning",
            _ => "notice",
        };
        let grown = |change: &&Change| change.what == "owner" && change.after.is_some();
        let place = self.changes.iter().filter(grown).find_map(|change| Some((change.file.as_ref()?, change.line?)));
        let at = place.map(|(file, line)| format!("file={},line={line},", property(file))).unwrap_or_default();
        let title = property(&format!("tilewise: {} is {}", self.program, self.verdict));
        format!("::{level} {at}title={title}::{}", workflow_data(&self.to_string()))
    }
}

#[cfg(feature = "html")]
impl ComparisonPage {
    /// The comparison as an HTML page in one file, which needs no network.
    #[must_use]
    pub fn to_html(&self) -> String {
        crate::export::page(self)
    }
}
