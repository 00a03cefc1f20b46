//! A comparison in words: for people, for a pull request, for the log of its job, and as a page.

#[cfg(feature = "html")]
use super::ComparisonPage;
use super::{Amount, Change, Comparison, Compiler, Outcome, Owner};
use crate::{
    export::{markdown_text, property, workflow_data},
    style::{bytes, bytes_both, shortened},
    text::{Terminal, WriteText},
};
use std::{
    fmt,
    io::{self, Write},
};
use tilewise::visible;

/// Owners, copies and buffers that are listed of each.
const ROWS: usize = 10;

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", visible(&self.program), self.verdict)?;
        if self.verdict == Outcome::OtherCompiler {
            return match (&self.before.compiler, &self.after.compiler) {
                (Some(then), Some(now)) if then != now => {
                    let (pinned, then, now) = (pinned(then, now), versions(then), versions(now));
                    write!(f, ": locked with {then}, compiled with {now}; compare with {pinned} or renew the lock")
                }
                _ => f.write_str(
                    ": the same program has other bytes, so the compiler or its flags (LIBTPU_INIT_ARGS, XLA_FLAGS) differ; \
                     renew the lock",
                ),
            };
        }
        let mut listed = 0;
        for change in &self.changes {
            listed += usize::from(change.owner.is_some());
            if listed <= ROWS || change.owner.is_none() {
                write!(f, "\n  {}", visible(&Line(change).to_string()))?;
            }
        }
        write_more(f, listed)?;
        for (title, buffers) in [("only before", &self.removed), ("only after", &self.added)] {
            for Owner { op, shape, bytes: count, .. } in buffers.iter().take(ROWS) {
                let line = format!("{title}: {} in {shape} of {op}", bytes(*count));
                write!(f, "\n  {}", visible(&line))?;
            }
            write_more(f, buffers.len())?;
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
    match count.saturating_sub(ROWS) {
        0 => Ok(()),
        left => write!(f, "\n  {left} more"),
    }
}

/// A change and what it is of.
struct Line<'a>(&'a Change);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.what)?;
        if let Some(owner) = &self.0.owner {
            write!(f, " of {owner}{}", place(self.0))?;
        }
        write!(f, ": {}", Amounts(self.0))
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

/// `8.00 GiB (8589934592) → 10.50 GiB (11274289152) (+31%), changed`
struct Amounts<'a>(&'a Change);

impl fmt::Display for Amounts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { what, before, after, verdict, .. } = self.0;
        let words = |amount: &Amount| match amount {
            Amount::Flag(is) => is.to_string(),
            Amount::Number(count) if what == "recomputed" => count.to_string(),
            Amount::Number(count) => bytes_both(*count),
            Amount::Settings(settings) => serde_json::to_string(settings).unwrap_or_default(),
        };
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            (None, after) => return write!(f, "new, {}", after.as_ref().map(words).unwrap_or_default()),
            (Some(before), None) => return write!(f, "gone, was {}", words(before)),
        };
        write!(f, "{} → {}", words(before), words(after))?;
        if let (Amount::Number(was @ 1..), Amount::Number(is)) = (before, after)
            && what != "recomputed"
        {
            #[expect(clippy::cast_precision_loss, reason = "a share for people")]
            let share = (*is as f64 - *was as f64) / *was as f64 * 100.0;
            write!(f, " ({share:+.0}%)")?;
        }
        write!(f, ", {verdict}")
    }
}

/// `libtpu 0.0.51, jaxlib 0.10.2`
fn versions(compiler: &Compiler) -> String {
    let versions: Vec<_> = compiler.iter().map(|(name, version)| format!("{name} {version}")).collect();
    visible(&versions.join(", ")).into_owned()
}

/// The packages of other versions than now.
fn pinned(then: &Compiler, now: &Compiler) -> String {
    let differing = then.iter().filter(|(name, version)| now.get(*name) != Some(version));
    let pins: Vec<_> = differing.map(|(name, version)| format!("{name}=={version}")).collect();
    if pins.is_empty() { "the same packages".to_owned() } else { visible(&pins.join(" ")).into_owned() }
}

impl Comparison {
    /// For a pull request: a table of these programs, and below it what holds the most that did not.
    #[must_use]
    pub fn to_markdown(compared: &[Self]) -> String {
        let mut lines = vec![
            "| program | total before | after | left | verdict |".to_owned(),
            "| --- | --- | --- | --- | --- |".to_owned(),
        ];
        for Self { program, before, after, verdict, .. } in compared {
            let [was, is] = [before, after].map(|program| bytes_both(program.bytes.total));
            let left = match after.bytes.limit.map(|limit| limit.checked_sub(after.bytes.total)) {
                Some(_) if after.fits().is_none() => "unknown".to_owned(),
                Some(Some(left)) => bytes_both(left),
                Some(None) => "does not fit".to_owned(),
                None => String::new(),
            };
            lines.push(format!("| {} | {was} | {is} | {left} | {verdict} |", markdown_text(program)));
        }
        for Self { program, changes, advice, .. } in compared {
            let owned: Vec<_> = changes.iter().filter(|change| change.owner.is_some()).collect();
            if !owned.is_empty() {
                lines.extend([String::new(), format!("{}:", markdown_text(program)), String::new()]);
                let owner = |change: &Change| change.owner.clone().unwrap_or_default() + &place(change);
                let said = |change: &&Change| format!("- {}: {}", markdown_text(&owner(change)), Amounts(change));
                lines.extend(owned.iter().take(ROWS).map(said));
            }
            lines.extend(advice.iter().flat_map(|advice| [String::new(), format!("Try: {}", markdown_text(advice))]));
        }
        lines.join("\n")
    }

    /// For the log of a GitHub job, at the line of what holds the most that did not.
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
