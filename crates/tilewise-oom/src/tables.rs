//! The tables between the headline and the lists.

use crate::facts::Facts;
use crate::pattern::Pattern;
use crate::text::reader::{Reader, find_words};
use crate::text::size::PrintedSize;
use crate::text::word;
use std::sync::LazyLock;

/// A row of a table: `program 299.19M`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The part's name: `reserved`, `program`, `arguments`; `global`, `scoped`, `HLO temp`, `overlays`.
    pub name: String,
    /// Its size.
    pub size: PrintedSize,
}

/// `Total hbm usage >= …`: the memory's contents.
///
/// ```
/// let text = "Total hbm usage >= 16.00G: reserved 258.00M program 2.33M arguments 15.75G";
/// let usage = tilewise_oom::Message::parse(text)?.usage.unwrap();
/// assert_eq!(usage.total.text(), "16.00G");
/// assert_eq!(usage.get("arguments").unwrap().text(), "15.75G");
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The sum, a lower bound.
    pub total: PrintedSize,
    /// Its parts: `reserved`, `program`, `arguments`.
    pub rows: Vec<Row>,
}

/// `Output size …; shares … with arguments.`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The results' size.
    pub size: PrintedSize,
    /// The part of it that donated arguments provide.
    pub shared: Option<PrintedSize>,
}

/// `Program hbm requirement …`: the memory of the program itself.
///
/// ```
/// let text = "Program hbm requirement 299.19M:
///     HLO temp        294.56M (9.8% utilization: Unpadded (29.00M) Padded (294.50M), 0.0% fragmentation (66.0K))
///     overlays          4.62M";
/// let requirement = tilewise_oom::Message::parse(text)?.requirement.unwrap();
/// assert_eq!(requirement.get("overlays").unwrap().text(), "4.62M");
/// assert_eq!(requirement.utilization.unwrap().percent, 9.8);
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The sum.
    pub total: PrintedSize,
    /// Its parts: `global`, `scoped`, `HLO temp`, `overlays`; only those that are not 0.
    pub rows: Vec<Row>,
    /// The utilization of the `HLO temp` row.
    pub utilization: Option<Utilization>,
}

/// `9.8% utilization: Unpadded (29.00M) Padded (294.50M), 0.0% fragmentation (66.0K)`, of the temporaries alive at the
/// peak.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Utilization {
    /// Unpadded by padded bytes, in percent, to one decimal.
    pub percent: f64,
    /// The sum of the elements' sizes. Older messages print only the percentage: then this and `padded` follow from it.
    pub unpadded: PrintedSize,
    /// The sum of the buffers' sizes.
    pub padded: PrintedSize,
    /// Bytes lost to packing the buffers, in percent of all temporaries, to one decimal.
    pub fragmentation_percent: Option<f64>,
    /// Bytes lost to packing the buffers.
    pub fragmentation: Option<PrintedSize>,
}

/// A row of `Persistent allocations include some or all of:` `output 5.06G (71.6% utilization)`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Persistent {
    /// The arrays that stay in memory: `arguments`, `output`.
    pub name: String,
    /// Its size.
    pub size: PrintedSize,
    /// Unpadded by padded bytes, in percent, to one decimal.
    pub percent: Option<f64>,
}

impl Persistent {
    /// Bytes of it that are padding, as exact as the percentage; `None` without one.
    ///
    /// ```
    /// let text = "Total hbm usage >= 9.00G: program 4.00G
    /// Persistent allocations include some or all of:
    ///     output  5.00G (60.0% utilization) [may share some memory with arguments]";
    /// let message = tilewise_oom::Message::parse(text)?;
    /// assert_eq!(message.persistent[0].padding_bytes(), Some(2 << 30));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn padding_bytes(&self) -> Option<u64> {
        per_mille(self.size.bytes(), 100.0 - self.percent?)
    }

    pub(crate) fn read_all(text: &str) -> Vec<Self> {
        let Some(mut reader) = first(text, "Persistent allocations include some or all of:") else { return Vec::new() };
        let mut rows = Vec::new();
        for name in ["arguments", "output"] {
            if !reader.eat(name) {
                continue;
            }
            let Some(size) = reader.size() else { break };
            let percent = if reader.eat("(") { reader.percent() } else { None };
            reader.eat("utilization)");
            rows.push(Self { name: name.to_owned(), size, percent });
        }
        rows
    }
}

impl Usage {
    /// The size of the row with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&PrintedSize> {
        get(&self.rows, name)
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let printed = || {
            let mut reader = first(text, "usage >=")?;
            Some((reader.size()?, reader))
        };
        let (total, mut reader) = printed().or_else(|| retold(text, &RETOLD[0]))?;
        reader.eat(":");
        Some(Self { total, rows: rows(&mut reader).0 })
    }
}

impl Output {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut reader = first(text, "Output size")?;
        reader.eat(":");
        let size = reader.figure()?;
        if reader.eat("(") {
            reader.percent();
            reader.eat("utilization)");
        }
        let shared = if reader.eat("; shares") {
            reader.size()
        } else {
            // Retold: the arguments share all of it.
            (reader.eat(", shared with arguments") || reader.eat(", all shared with arguments")).then(|| size.clone())
        };
        Some(Self { size, shared })
    }
}

impl Requirement {
    /// The size of the row with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&PrintedSize> {
        get(&self.rows, name)
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        Self::of_table(text).or_else(|| Self::of_utilization(text)).or_else(|| {
            let (total, mut reader) = retold(text, &RETOLD[1])?;
            reader.eat(":");
            let (rows, utilization) = rows(&mut reader);
            Some(Self { total, rows, utilization })
        })
    }

    fn of_table(text: &str) -> Option<Self> {
        // `Program requirement:` of run-time messages has no memory space, and is another table.
        let (mut from, word) = (0, "requirement");
        loop {
            let (start, end) = find_words(text, from, word)?;
            let near = (start.saturating_sub(64)..=start).find_map(|near| text.get(near..start)).unwrap_or("");
            let program = near.split_whitespace().rev().nth(1) == Some("Program");
            let mut reader = Reader::new(text, end);
            if let (true, Some(total)) = (program, reader.size()) {
                reader.eat(":");
                let (rows, utilization) = rows(&mut reader);
                return Some(Self { total, rows, utilization });
            }
            from = end;
        }
    }

    /// A utilization without the table around it: only the temporaries are known.
    fn of_utilization(text: &str) -> Option<Self> {
        let (at, _) = find_words(text, 0, "utilization: Unpadded (")?;
        let before = text[..at].trim_end().strip_suffix('%')?;
        let digits = before.bytes().rev().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let utilization = utilization(&mut Reader::new(text, before.len() - digits), 0)?;
        let total = utilization.padded.clone();
        let rows = vec![Row { name: "HLO temp".to_owned(), size: total.clone() }];
        Some(Self { total, rows, utilization: Some(utilization) })
    }
}

fn get<'a>(rows: &'a [Row], name: &str) -> Option<&'a PrintedSize> {
    rows.iter().find(|row| row.name == name).map(|row| &row.size)
}

/// Heads of tables in people's words: of usage and requirement.
static RETOLD: LazyLock<[Pattern; 2]> = LazyLock::new(|| {
    [
        Pattern::new("total {:memory} usage [reported by XLA] [is] [at least|about|of] {size:size}"),
        Pattern::new("program {:memory} requirement [is] [of] {size:size}"),
    ]
});

/// The size in the first head like this, and a reader behind it.
fn retold<'a>(text: &'a str, head: &Pattern) -> Option<(PrintedSize, Reader<'a>)> {
    let first = head.first_words();
    let mut starts = word::all(text).filter(|(start, end)| text[*start..*end].eq_ignore_ascii_case(first[0]));
    let (end, facts) = starts.find_map(|(start, _)| head.matches(text, start))?;
    Some((Facts(facts).take_size("size")?, Reader::new(text, end)))
}

fn first<'a>(text: &'a str, words: &str) -> Option<Reader<'a>> {
    find_words(text, 0, words).map(|(_, end)| Reader::new(text, end))
}

/// Rows of a name, a size and, for temporaries, their use in brackets.
fn rows(reader: &mut Reader<'_>) -> (Vec<Row>, Option<Utilization>) {
    let (mut rows, mut utilization) = (Vec::new(), None);
    while let Some(name) = name(reader) {
        // `program unknown size`
        if reader.eat("unknown size") {
            continue;
        }
        let Some(size) = reader.figure() else { break };
        rows.push(Row { name, size });
        let mut brackets = *reader;
        if brackets.eat("(") {
            let size = rows.last().map_or(0, |row: &Row| row.size.bytes());
            utilization = utilization.or(self::utilization(&mut brackets, size));
            let rest = brackets.rest();
            // Brackets nest in these, and all are closed on one line.
            let end = rest.find(['\n', '(']).filter(|end| rest[*end..].starts_with('\n'));
            let closing = rest.find(')').filter(|close| end.is_none_or(|end| *close < end));
            let Some(close) = closing else { break };
            brackets.at += close + 1;
            brackets.eat(")");
            *reader = brackets;
        }
    }
    (rows, utilization)
}

/// The name in front of a size: lower case, or `HLO temp`; anything else is no row.
fn name(reader: &mut Reader<'_>) -> Option<String> {
    let mut name = String::new();
    let mut ahead = *reader;
    for _ in 0..8 {
        ahead.skip_space();
        let rest = ahead.rest();
        let mut probe = ahead;
        if !name.is_empty() && (probe.eat("unknown size") || probe.figure().is_some()) {
            *reader = ahead;
            return Some(name);
        }
        let word = rest.split(char::is_whitespace).next().filter(|word| !word.is_empty() && word.len() < 64)?;
        let length = word.len();
        let word = word.trim_end_matches(':');
        if name.is_empty() && !word.starts_with(|c: char| c.is_ascii_lowercase()) && word != "HLO" {
            return None;
        }
        if !name.is_empty() {
            name.push(' ');
        }
        name.push_str(word);
        ahead.at += length;
    }
    None
}

/// Reads a utilization; `row` is the size of its row, since older messages print no others.
fn utilization(reader: &mut Reader<'_>, row: u64) -> Option<Utilization> {
    let percent = reader.percent()?;
    if reader.eat("utilization,") {
        let fragmentation_percent = reader.percent();
        let fragmentation = reader.eat("fragmentation (").then(|| reader.size()).flatten();
        let padded = row.saturating_sub(fragmentation.as_ref().map_or(0, PrintedSize::bytes));
        let unpadded = per_mille(padded, percent)?;
        let [unpadded, padded] = [unpadded, padded].map(PrintedSize::rounded);
        return Some(Utilization { percent, unpadded, padded, fragmentation_percent, fragmentation });
    }
    let unpadded = reader.eat("utilization: Unpadded (").then(|| reader.size()).flatten()?;
    let padded = reader.eat(") Padded (").then(|| reader.size()).flatten()?;
    let fragmentation_percent = reader.eat("),").then(|| reader.percent()).flatten();
    let fragmentation = reader.eat("fragmentation (").then(|| reader.size()).flatten();
    Some(Utilization { percent, unpadded, padded, fragmentation_percent, fragmentation })
}

/// `percent` of `bytes`, to tenths of a percent.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tenths of a percent, at most 1000")]
fn per_mille(bytes: u64, percent: f64) -> Option<u64> {
    let share = (percent * 10.0).round().clamp(0.0, 1000.0) as u64;
    u64::try_from(u128::from(bytes) * u128::from(share) / 1000).ok()
}
