//! Memory that grows with each of a counted number of parts.

use super::SEARCHED;
use crate::text::{size::PrintedSize, tail};

/// The growth of memory from part to part, of a known number: `| 2 / 64 | 72 GB |`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerUnit {
    /// Bytes that each part adds.
    pub each: u64,
    /// The number of parts.
    pub count: u64,
    /// Bytes with all parts, if it goes on so.
    pub all: u64,
}

/// Rows from which on growth is known.
const LEAST: usize = 3;

/// A row's bytes, at most.
const LONGEST: usize = 256;

impl PerUnit {
    /// The growth of a table or a log, if each part adds as much, within a quarter.
    pub(crate) fn of(log: &str) -> Option<Self> {
        let mut rows: Vec<(u64, u64, u64)> = Vec::new();
        for row in tail(log, SEARCHED).lines().filter(|line| line.len() <= LONGEST).filter_map(row) {
            // Another series begins anew.
            let goes_on =
                rows.last().is_some_and(|(done, count, size)| *count == row.1 && row.0 > *done && row.2 > *size);
            if !goes_on && rows.len() < LEAST {
                rows.clear();
            }
            if goes_on || rows.is_empty() {
                rows.push(row);
            }
        }
        let (&(first, count, from), &(last, _, to)) = (rows.first()?, rows.last()?);
        let each = (to - from).checked_div(last - first).filter(|each| *each > 0 && rows.len() >= LEAST)?;
        let is_even = rows.windows(2).all(|pair| {
            let step = (pair[1].2 - pair[0].2) / (pair[1].0 - pair[0].0).max(1);
            step.abs_diff(each) <= each / 4
        });
        let all = to.checked_add(each.checked_mul(count.checked_sub(last)?)?)?;
        is_even.then_some(Self { each, count, all })
    }
}

/// The parts that are done, all of them, and the size in a row that has no other figures: `| 1 / 64 | 36 GB |`.
fn row(line: &str) -> Option<(u64, u64, u64)> {
    let (before, behind) = line.split_once('/')?;
    let before = before.trim_end();
    let start = before
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let behind = behind.trim_start();
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    let (done, count) = (before[start..].parse().ok()?, behind[..digits].parse().ok()?);
    let rest = behind[digits..].trim_start_matches([' ', '|', ':', ',', '-']);
    let rest = rest.strip_prefix("RSS").map_or(rest, |rest| rest.trim_start_matches([' ', '=', ':']));
    let (size, end) = PrintedSize::figure(rest)?;
    let is_rate = rest[end..].starts_with('/');
    // A size of memory has a unit.
    let has_unit = rest[..end].ends_with(|c: char| c.is_ascii_alphabetic());
    (!is_rate && has_unit && done <= count && count > 1).then(|| (done, count, size.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_with_each_part() {
        let of = |text: &str| PerUnit::of(text).map(|it| (it.each >> 30, it.count, it.all >> 30));
        let table = "| shards read | RSS |\n|---|---|\n| 1 / 64 | 36 GiB |\n| 2 / 64 | 72 GiB |\n| 3 / 64 | 108 GiB |\n| 4 / 64 | killed |";
        assert_eq!(of(table), Some((36, 64, 2304)));
        assert_eq!(of("shard 1/8: RSS 5 GiB\nshard 2/8: RSS 10 GiB\nshard 3/8: RSS 15 GiB"), Some((5, 8, 40)));
        for none in [
            "| 1 / 64 | 36 GiB |\n| 2 / 64 | 72 GiB |",
            "| 1 / 64 | 36 GiB |\n| 2 / 64 | 72 GiB |\n| 3 / 64 | 73 GiB |",
            "1/3 10 GiB/s\n2/3 20 GiB/s\n3/3 30 GiB/s",
            "1/9 100\n2/9 200\n3/9 300",
            "3/2 1 GiB\n4/2 2 GiB\n5/2 3 GiB",
            "é/é",
            "",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
