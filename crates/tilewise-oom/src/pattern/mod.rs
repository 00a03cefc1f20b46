//! Wordings: sentences with typed fields, and their matches in a text.
//!
//! A wording is written as a compiler prints it, `Used {used:size} of {limit:size} {space:memory}`. Words match in any
//! case; between them may be white space, line ends and any punctuation, so that quotes, brackets, bold marks and table
//! bars need no wordings of their own. `[a|b]` is optional, `(a|b)` is one of the two, and `…` stands for up to
//! [`LONGEST_GAP`] words. The kinds of fields are in [`kind`].

mod kind;

use crate::facts::Fact;
use crate::text::word;
use kind::Kind;

pub(crate) use kind::shape as shape_at;

/// Words that `…` may stand for.
const LONGEST_GAP: usize = 48;

/// A wording, compiled.
#[derive(Debug)]
pub(crate) struct Pattern(Vec<Item>);

#[derive(Debug)]
enum Item {
    /// In lower case.
    Word(String),
    Field(&'static str, Kind),
    Optional(Vec<Vec<Item>>),
    OneOf(Vec<Vec<Item>>),
    Gap,
}

impl Pattern {
    /// Compiles a wording of the catalogue; its form is checked by a test, not here.
    pub(crate) fn new(mut wording: &'static str) -> Self {
        Self(alternatives(&mut wording).swap_remove(0))
    }

    /// The words, in lower case, that a text of this wording may begin with.
    pub(crate) fn first_words(&self) -> Vec<&str> {
        let mut words = Vec::new();
        first_words(&self.0, &mut words);
        words
    }

    /// The end of the match at `at`, where a word begins, and its fields.
    pub(crate) fn matches(&self, text: &str, at: usize) -> Option<(usize, Vec<Fact>)> {
        let mut facts = Vec::new();
        let end = sequence(&self.0, text, at, &mut facts)?;
        Some((end, facts))
    }
}

/// Reads sequences divided by `|`, up to the bracket that closes them.
fn alternatives(rest: &mut &'static str) -> Vec<Vec<Item>> {
    let mut all = Vec::new();
    let mut items = Vec::new();
    while let Some(next) = rest.chars().next() {
        let length = word::length(rest);
        if length > 0 {
            items.push(Item::Word(rest[..length].to_lowercase()));
            *rest = &rest[length..];
            continue;
        }
        *rest = &rest[next.len_utf8()..];
        match next {
            ']' | ')' => break,
            '|' => all.push(std::mem::take(&mut items)),
            '…' => items.push(Item::Gap),
            '[' => items.push(Item::Optional(alternatives(rest))),
            '(' => items.push(Item::OneOf(alternatives(rest))),
            '{' => {
                let (field, after) = rest.split_once('}').unwrap_or((rest, ""));
                let (name, kind) = field.split_once(':').unwrap_or((field, ""));
                items.push(Item::Field(name, Kind::of(kind)));
                *rest = after;
            }
            _ => {}
        }
    }
    all.push(items);
    all
}

/// Adds the words that a sequence may begin with, and returns whether the sequence has an item that isn't optional.
fn first_words<'a>(items: &'a [Item], words: &mut Vec<&'a str>) -> bool {
    items.iter().any(|item| match item {
        Item::Word(word) => {
            words.push(word);
            true
        }
        Item::Optional(all) | Item::OneOf(all) => {
            all.iter().for_each(|inner| _ = first_words(inner, words));
            matches!(item, Item::OneOf(_))
        }
        Item::Field(..) | Item::Gap => true,
    })
}

/// The end of the match of `items` at `at`; without a match `facts` are as before.
fn sequence(items: &[Item], text: &str, mut at: usize, facts: &mut Vec<Fact>) -> Option<usize> {
    let before = facts.len();
    for (number, item) in items.iter().enumerate() {
        let found = match item {
            Item::Word(word) => word::matches(text, word::next(text, at), word),
            Item::Field(name, kind) => kind.read(text, at).map(|(end, value)| {
                // A field without a name must match, but isn't kept.
                facts.extend((!name.is_empty()).then_some(Fact { name, value }));
                end
            }),
            Item::Optional(all) => Some(one_of(all, text, at, facts).unwrap_or(at)),
            Item::OneOf(all) => one_of(all, text, at, facts),
            Item::Gap => return gap(&items[number + 1..], text, at, facts),
        };
        let Some(end) = found else {
            facts.truncate(before);
            return None;
        };
        at = end;
    }
    Some(at)
}

fn one_of(all: &[Vec<Item>], text: &str, at: usize, facts: &mut Vec<Fact>) -> Option<usize> {
    all.iter().find_map(|items| sequence(items, text, at, facts))
}

fn gap(items: &[Item], text: &str, mut at: usize, facts: &mut Vec<Fact>) -> Option<usize> {
    for _ in 0..=LONGEST_GAP {
        if let Some(end) = sequence(items, text, at, facts) {
            return Some(end);
        }
        let start = word::next(text, at);
        let length = word::length(&text[start..]);
        if length == 0 {
            return None;
        }
        at = start + length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;

    fn read(wording: &'static str, text: &str) -> Option<String> {
        let (end, facts) = Pattern::new(wording).matches(text, word::next(text, 0))?;
        Some(format!("{} | {}", Facts(facts), &text[end..]))
    }

    #[test]
    fn punctuation_is_no_part_of_a_wording() {
        let wording =
            "Used {used:size} of {limit:size} {space:memory}[. Exceeded {space:memory} capacity by {over:size}]";
        let found = Some("used 19.46G, limit 15.48G, space hbm | !".to_owned());
        for text in
            ["Used 19.46G of 15.48G hbm!", "**used `19.46G`\n> of** (15.48G) HBM!", "Used\\n19.46G of\t15.48G, hbm!"]
        {
            assert_eq!(read(wording, text), found, "{text}");
        }
        let whole = read(wording, "Used 2.00G of 1.00G hbm. Exceeded hbm\ncapacity by 1.00G.");
        assert_eq!(whole.as_deref(), Some("used 2.00G, limit 1.00G, space hbm, space hbm, over 1.00G | ."));
        assert_eq!(read(wording, "Used 3 of 4 hbm"), None);
    }

    #[test]
    fn alternatives_and_gaps() {
        let wording = "(lower|upper) bound … is {n:number}";
        assert_eq!(read(wording, "Upper bound of all is 7.").as_deref(), Some("n 7 | ."));
        assert_eq!(read(wording, &format!("Upper bound {} is 7", "x ".repeat(99))), None);
        assert_eq!(Pattern::new(wording).first_words(), ["lower", "upper"]);
        assert_eq!(read("[the|a] sum {n:number}", "A sum: 7").as_deref(), Some("n 7 | "));
        assert_eq!(Pattern::new("[the] sum {n:number}").first_words(), ["the", "sum"]);
    }
}
