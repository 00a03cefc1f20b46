//! Arrays in a text outside the compiler's lists: `the logits, bf16[5,8192,151936], 11.59 GiB`.

use crate::entry::{Entry, Operator, Section, WrittenShape};
use crate::pattern::shape_at;
use crate::text::size::PrintedSize;
use crate::text::word;
use std::iter::repeat_n;

/// Bytes behind a headline in which people name the largest arrays.
const LOOKED_AT: usize = 4096;

/// Maximum number of different shapes that are read.
const MOST: usize = 20;

/// Maximum number of arrays of one shape: a larger number doesn't count arrays.
const MOST_ALIKE: usize = 1024;

/// Maximum words between a shape and its size.
const NEAR: usize = 4;

/// Words between a number and a shape that make it the number of arrays.
const PLURALS: [&str; 5] = ["allocations", "arrays", "buffers", "copies", "tensors"];

/// The arrays at the beginning of `text`, each repeated by its number.
pub(crate) fn entries(text: &str) -> Vec<Entry> {
    let end = (0..=LOOKED_AT.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let text = &text[..end];
    let mut entries: Vec<Entry> = Vec::new();
    let mut sizes: Vec<(usize, PrintedSize)> = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    let (mut distinct, mut past) = (0, 0);
    for (start, end) in word::all(text) {
        if start < past {
            continue;
        }
        words.push(&text[start..end]);
        let count = words.len();
        if let Some((size, length)) = PrintedSize::figure(&text[start..]) {
            past = start + length;
            sizes.push((count, size));
        }
        if let Some((shape, length)) = shape_at(&text[start..]) {
            past = start + length;
            if entries.iter().all(|entry| entry.shape.as_ref().is_none_or(|other| other.text != shape.text)) {
                let before = sizes.last().filter(|(place, _)| count - place <= NEAR).map(|(_, size)| size);
                let times = times(&words[..count - 1]);
                entries.extend(repeat_n(entry(shape, before, &text[past..]), times));
                distinct += 1;
            }
            sizes.clear();
        }
        if distinct == MOST {
            break;
        }
    }
    entries
}

/// How many arrays of a shape there are, by the words in front of it: `10 identical allocations of`.
fn times(before: &[&str]) -> usize {
    let before = before.strip_suffix(&["of"]).unwrap_or(before);
    let Some((plural, before)) = before.split_last() else { return 1 };
    if !PLURALS.iter().any(|each| plural.eq_ignore_ascii_case(each)) {
        return 1;
    }
    // One word, such as `identical`, may be between.
    let number = before.iter().rev().take(2).find_map(|word| word.parse().ok());
    number.filter(|number| (1..=MOST_ALIKE).contains(number)).unwrap_or(1)
}

fn entry(shape: WrittenShape, before: Option<&PrintedSize>, after: &str) -> Entry {
    let mut entry = Entry::new(Section::Allocations, None);
    let mut near = word::all(after).take(NEAR).map(|(start, _)| &after[start..]);
    let after_it = near.find_map(PrintedSize::figure).map(|(size, _)| size);
    let least = shape.logical_bytes();
    let most = shape.most_bytes();
    let is_its = |size: &PrintedSize| {
        let fits = |(least, most): (u64, u64)| size.high() >= least && size.low() <= most || is_decimal(size, least);
        least.zip(most).is_some_and(fits)
    };
    let size = after_it.filter(is_its).or_else(|| before.filter(|size| is_its(size)).cloned());
    // People write gigabytes of either kind: those that the elements take are meant.
    let exact = least.filter(|least| size.as_ref().is_some_and(|size| is_decimal(size, *least)));
    entry.size = exact.map(PrintedSize::exact).or(size);
    let line: String = after.chars().take(512).collect();
    let path = line.find("jit(").filter(|at| shape_is_far(&line[..*at]));
    entry.operator = path.map(|at| {
        let from = line[..at].rfind(|c: char| !word::is_part(c)).map_or(0, |before| before + 1);
        let name = line[from..].split(|c: char| c.is_whitespace() || "`'\",;".contains(c)).next().unwrap_or("");
        Operator::new(format!("op_name=\"{}\"", name.trim_end_matches('.')))
    });
    entry.shape = Some(shape);
    entry
}

/// Whether a size with a unit of powers of ten is of this number of bytes, to a hundredth.
fn is_decimal(size: &PrintedSize, bytes: u64) -> bool {
    let units = [("GB", 1_u128 << 30, 1_000_000_000), ("MB", 1 << 20, 1_000_000)];
    let bytes = u128::from(bytes);
    units.into_iter().any(|(unit, binary, decimal)| {
        let meant = u128::from(size.bytes()) * decimal / binary;
        size.text().ends_with(unit) && meant.abs_diff(bytes) <= bytes / 100
    })
}

/// Whether no other shape is between a shape and a path.
fn shape_is_far(between: &str) -> bool {
    !word::all(between).any(|(start, _)| shape_at(&between[start..]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_with_their_sizes() {
        let of = |text: &str| {
            let one = |entry: Entry| {
                let size = entry.size.map(|size| size.text().to_owned()).unwrap_or_default();
                let name =
                    entry.operator.and_then(|operator| operator.op_name().map(str::to_owned)).unwrap_or_default();
                format!("{} {size} {name}", entry.shape.unwrap().text)
            };
            entries(text).into_iter().map(one).collect::<Vec<_>>()
        };
        let text = "largest: bf16[5,8192,151936], 11.59 GiB, labelled fusion.1 from\njit(step)/dot_general.";
        assert_eq!(of(text), ["bf16[5,8192,151936] 11.59 GiB jit(step)/dot_general"]);
        let text = "- 18.55 GiB f32[4,8192,151936] from jit(f)/x.\n- 1.0K f32[256] of 15.75 GiB, f32[256] again";
        assert_eq!(of(text), ["f32[4,8192,151936] 18.55 GiB jit(f)/x", "f32[256] 1.0K "]);
        assert_eq!(of("3 identical allocations of `f32[1024]` = 4KB each"), ["f32[1024] 4KB "; 3]);
        assert_eq!(of("the 2 arrays f32[4], and copies of f32[8]"), ["f32[4]  ", "f32[4]  ", "f32[8]  "]);
        assert_eq!(of("repeated bf16[8,4096,4096] allocations of 3 kinds"), ["bf16[8,4096,4096]  "]);
        assert_eq!(of("one buffer (38.6GB) is bf16[12,524288,3072]"), ["bf16[12,524288,3072] 38654705664 "]);
        // No layout pads whole tiles: the size is another's.
        assert_eq!(of("15.75G hbm, twelve f32[256,2048,2048]"), ["f32[256,2048,2048]  "]);
        assert!(of("args[3] of x[1]").is_empty());
    }
}
