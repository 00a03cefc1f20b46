//! Two blocks of code, one of which works: what the other has more is why it fails.

use super::worked::{BAD, GOOD, Worked};
use std::collections::HashSet;

/// Bytes of the longest item that a sentence can name.
const LONGEST: usize = 80;

/// The item that the failing one of two blocks has alone: `cost_fn=Cosine()` behind `This works:` and `This runs out of memory:`.
pub(super) fn item_that_fails(text: &str) -> Option<Worked> {
    let blocks = blocks(text);
    let of =
        |is_good: bool| blocks.iter().filter(move |(lead, _)| outcome(lead) == Some(is_good)).map(|(_, items)| items);
    let works: HashSet<&str> = alone(of(true))?.iter().copied().collect();
    // An error's own lines are another block behind such words.
    let fails = alone(of(false).filter(|items| items.iter().any(|item| works.contains(*item))))?;
    let item = alone(fails.iter().filter(|item| !works.contains(**item)))?;
    (item.len() <= LONGEST).then(|| Worked::Without((*item).to_owned()))
}

/// The only one of several.
fn alone<T>(mut several: impl Iterator<Item = T>) -> Option<T> {
    several.next().filter(|_| several.next().is_none())
}

/// Whether the sentence before a block says that it works; `None` if it says neither.
fn outcome(lead: &str) -> Option<bool> {
    let lead = lead.to_ascii_lowercase();
    let has = |known: &[&str]| known.iter().any(|sign| lead.contains(sign));
    match (has(&GOOD), has(&BAD) || lead.contains("n't") || lead.contains("runs out")) {
        (_, true) => Some(false),
        (true, false) => Some(true),
        (false, false) => None,
    }
}

/// A line, by its commas: one call may give its arguments in other lines than another.
fn items(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// The fenced blocks of a text, each with the line before it, and its items.
fn blocks(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    let (mut is_open, mut lead) = (false, "");
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with("```") {
            is_open = !is_open;
            found.extend(is_open.then(|| (lead, Vec::new())));
        } else if let Some((_, all)) = found.last_mut().filter(|_| is_open) {
            all.extend(items(line));
        } else {
            lead = line;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_code() {
        let text = |good: &str, bad: &str| {
            format!(
                "{good}\n```python\ng = f(\n    x, y, batch_size=512\n)\n```\n{bad}\n\n```\ng = f(\n    x, y,\n    cost=Cosine(),\n    batch_size=512\n)\n```"
            )
        };
        let of = |good, bad| item_that_fails(&text(good, bad));
        let item = || Some(Worked::Without("cost=Cosine()".to_owned()));
        assert_eq!(of("This works:", "But this fails with an OOM:"), item());
        assert_eq!(of("This works:", "This works, too:"), None);
        let other =
            text("This works:", "This fails:").replace("    batch_size=512\n)\n```\nT", "    batch_size=64\n)\n```\nT");
        assert_eq!(item_that_fails(&other), item());
        for none in ["", "```", "```\n```\n```", "works\n```\nx\n```\nfails\n```\ny\n```"] {
            assert_eq!(item_that_fails(none), None, "{none}");
        }
    }
}
