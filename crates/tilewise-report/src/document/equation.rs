//! The documents' equations with numbers: each member worked out, and whether all are equal.

use super::{
    evaluate::{Evaluation, Function, NoValue, Value},
    expression::{Kind, Node, parse, parse_prefix},
    general,
    meaning::Meaning,
    token::{self, leading_symbol},
};
use crate::{
    Terminal, WriteText,
    plain::Plain,
    shape::{Labelled, Located},
    style::{STRONG, listed, styled},
};
use serde::{Serialize, Serializer};
use std::io::{self, Write};
use tilewise::{Shape, Tiled};
use tilewise_audit::Failure;

/// An equation of the tiled-layout document, `linear_index_with_tile((2,3), (3,5), (2,2)) = linear_index((1,1,0,1), (2,3,2,2)) = 17`, with
/// the value of each member. One with symbols, `linear_index(e, d)`, holds in general, and its members have no values.
///
/// ```
/// use tilewise_report::Equation;
///
/// let equation = Equation::read("linear_index((2,3), (3,5)) = 14")?;
/// assert!(!equation.holds());
/// assert_eq!(equation.wrong_members(), ["14 is wrong: it is 13"]);
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Equation {
    /// The element that the first function is about, with its place.
    #[serde(flatten)]
    located: Option<Located>,
    members: Vec<Member>,
    /// Whether all members are equal; null of symbols.
    holds: Option<bool>,
    /// Names of other languages, read as the document's.
    #[serde(skip)]
    renamed: Vec<(String, &'static str)>,
    #[serde(skip)]
    element: Option<(Shape, Vec<u64>)>,
    /// The meanings of symbols, and of lists of them.
    #[serde(skip)]
    general: Vec<Meaning>,
}

/// A member of an equation.
#[derive(Clone, Debug, Serialize)]
struct Member {
    text: String,
    /// Null of a list, and where it has a symbol in it.
    #[serde(serialize_with = "number")]
    value: Option<Amount>,
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn number<S: Serializer>(value: &Option<Amount>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(Amount::Number(number)) => Some(*number),
        _ => None,
    }
    .serialize(serializer)
}

/// A number, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Amount {
    Number(i64),
    List(Vec<i64>),
}

impl Amount {
    fn in_words(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::List(list) => format!("({})", listed(list)),
        }
    }
}

impl Equation {
    /// Whether a text is meant as an equation: it calls a function of the document, or has `=` or an operator between numbers.
    #[must_use]
    pub fn begins(text: &str) -> bool {
        let plain = Plain::of(text);
        let text = plain.text().trim_start_matches([' ', '\n', '\r', '\t', '=', '`', '"']);
        let is_word = |c: char| token::continues_word(c);
        let name = &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())];
        let behind = text[name.len()..].trim_start();
        if Function::named(name).is_some_and(|function| function != Function::Translated) {
            return true;
        }
        // `e = (e_n, …, e_1)`, `e_{n}d_{n-1} + …`, `d1`
        if let Some((symbol, length)) = leading_symbol(text) {
            let behind = text[length..].trim_start();
            let is_named =
                behind.strip_prefix('=').is_some_and(|value| value.trim_start().starts_with(['(', '⌊', '⌈']));
            let goes_on = behind.is_empty()
                || behind.starts_with(['…', '/'])
                || ["..", "mod "].iter().any(|next| behind.starts_with(next))
                || leading_symbol(&text[length..]).is_some_and(|(next, _)| next.is_of_dimension());
            let has_operator = behind.contains(['+', '·']) && !behind.contains(':');
            return is_named || has_operator || symbol.is_of_dimension() && goes_on;
        }
        if !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit()) {
            return !name.is_ascii() && behind.starts_with('(');
        }
        // `= 17`, `(1 · 3 + 1) · 2`, `⌊3/2⌋`; `2 × 2` are sizes.
        let is_led = plain.text().trim_start().starts_with('=');
        let is_number = text.starts_with(|first: char| first.is_ascii_digit());
        let is_bracketed = text.starts_with(['(', '⌊', '⌈']);
        let inside = text.trim_start_matches(['(', ' ']);
        let has_operator = text.contains(['=', '+', '⌊', '⌈'])
            || is_bracketed && (text.contains('·') || text.contains(" mod "))
            || is_bracketed && leading_symbol(inside).is_some_and(|(symbol, _)| symbol.is_of_dimension());
        (is_number || is_bracketed) && (is_led || has_operator && !text.replace("_{", "_").contains(['[', '{']))
    }

    /// Whether a line goes on with an equation that stands above it: it begins with `=` or an operator.
    #[must_use]
    pub fn is_continued_by(text: &str, line: &str) -> bool {
        let line = Plain::of(line);
        line.text().trim_start().starts_with(['=', '+', '·']) && Self::begins(text)
    }

    /// Reads an equation, and works out its members.
    ///
    /// # Errors
    /// Text that isn't an equation, or has no value, with the span.
    pub fn read(text: &str) -> Result<Self, Failure> {
        let plain = Plain::of(text);
        let nodes = parse(&plain)?;
        Self::of(&nodes, &plain)
    }

    /// The equation that a text begins with, and its length; `None` where it begins otherwise.
    pub(super) fn read_prefix(text: &str) -> Option<(Self, usize)> {
        let nodes = parse_prefix(text);
        let length = nodes.last()?.span.end;
        Some((Self::of(&nodes, &Plain::of(&text[..length])).ok()?, length))
    }

    fn of(nodes: &[Node], plain: &Plain) -> Result<Self, Failure> {
        let mut evaluation = Evaluation::default();
        let mut members = Vec::new();
        for node in nodes {
            let known = evaluation.element.clone();
            let value = match evaluation.value(node) {
                Ok(Value::Number(number)) => Some(Amount::Number(number)),
                Ok(Value::List(list)) => Some(Amount::List(list)),
                Err(NoValue::Symbol) => None,
                Err(NoValue::Wrong(wrong)) => return Err(wrong.of(plain)),
            };
            // The element of a function inside a sum isn't the equation's.
            if !matches!(node.kind, Kind::Call(..)) {
                evaluation.element = known;
            }
            members.push(Member { text: written(plain, node), value });
        }
        let is_general = members.iter().any(|member| member.value.is_none());
        let holds = (!is_general).then(|| members.iter().all(|member| member.value == members[0].value));
        let Evaluation { element, renamed } = evaluation;
        let located = element.as_ref().map(|(shape, index)| {
            let tiled = Tiled::new(shape)?;
            Located::at_index(shape, &tiled, index.clone())?.with_explanation(&tiled)
        });
        let located =
            located.transpose().map_err(|error| Failure::from(error).at(plain.source(0..plain.text().len())))?;
        let general = if is_general { general::meanings(nodes, plain) } else { Vec::new() };
        Ok(Self { located, members, holds, renamed, element, general })
    }

    /// The array of its bounds and tiles, and the index of its element; none where no function is called.
    ///
    /// # Errors
    /// `no_element` for an equation without a function with numbers.
    pub fn element(text: &str) -> Result<(Shape, Vec<u64>), Failure> {
        let missing = || {
            Failure::new("no_element", "no element of an array is named here")
                .at(0..text.len())
                .with_help("such as `linear_index_with_tile((2,3), (3,5), (2,2))`: the element, the bounds, the tile")
        };
        Self::read(text)?.element.ok_or_else(missing)
    }

    /// Whether no member is wrong.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.holds != Some(false)
    }

    /// Each member that differs from the first one, in words.
    #[must_use]
    pub fn wrong_members(&self) -> Vec<String> {
        let Some(Member { value: Some(right), .. }) = self.members.first() else { return Vec::new() };
        let wrong = self.members.iter().filter_map(|member| {
            let value = member.value.as_ref().filter(|value| *value != right)?;
            let (value, right) = (value.in_words(), right.in_words());
            Some(if value == member.text {
                format!("{value} is wrong: it is {right}")
            } else {
                format!("{} is {value}, not {right}", member.text)
            })
        });
        wrong.collect()
    }

    /// The value of all members, or the first wrong one, in a few words.
    pub(super) fn in_words(&self) -> String {
        let element = self.element.as_ref().map(|(shape, index)| format!(", element ({}) of {shape}", listed(index)));
        match (self.wrong_members().first(), self.members.first().and_then(|member| member.value.as_ref())) {
            (Some(wrong), _) => wrong.clone(),
            (None, Some(value)) => format!("{}{}", value.in_words(), element.unwrap_or_default()),
            (None, None) => "holds in general".to_owned(),
        }
    }

    /// Its first member, and the number of members.
    pub(super) fn shortened(&self) -> String {
        let first = self.members.first().map_or("", |member| &member.text);
        match self.members.len() {
            0 | 1 => first.to_owned(),
            2 => format!("{first} = {}", self.members[1].text),
            count => format!("{first} = … ({count} members)"),
        }
    }

    /// Notes for people on names read as the document's.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |(name, function): &(String, &str)| format!("note: `{name}` is read as {function}");
        self.renamed.iter().map(note).collect()
    }
}

/// A member as it stands in the text, in plain characters and on one line.
fn written(plain: &Plain, node: &Node) -> String {
    let text = plain.text().get(node.span.clone()).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl WriteText for Equation {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        if let Some(located) = &self.located {
            located.write_text(terminal, out)?;
        }
        if let [Member { value: Some(_), .. }] = &self.members[..]
            && self.located.is_some()
        {
            return Ok(());
        }
        if self.holds.is_none() {
            return self.write_general(terminal, out);
        }
        let width = self.members.iter().map(|member| member.text.chars().count()).max().unwrap_or_default().min(64);
        for member in &self.members {
            let value = member.value.as_ref().map_or_else(String::new, Amount::in_words);
            match value == member.text {
                true => writeln!(out, "  {value}")?,
                false => writeln!(out, "  {:<width$} = {value}", member.text)?,
            }
        }
        let wrong = self.wrong_members();
        for words in &wrong {
            writeln!(out, "{}", styled(STRONG, words))?;
        }
        match (&self.members[..], wrong.is_empty()) {
            ([first, _, ..], true) => {
                let value = first.value.as_ref().map_or_else(String::new, Amount::in_words);
                let all =
                    if self.members.len() == 2 { "both".to_owned() } else { format!("all {}", self.members.len()) };
                writeln!(out, "{all} members are {}", styled(STRONG, value))
            }
            _ => Ok(()),
        }
    }
}

impl Equation {
    /// Writes an equation with symbols, and the meaning of each.
    fn write_general(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        for (at, member) in self.members.iter().enumerate() {
            let sign = if at == 0 { "" } else { "= " };
            writeln!(out, "{sign}{}", member.text)?;
        }
        let out = &mut Labelled::new(terminal, out);
        self.general.iter().try_for_each(|line| out.line(&line.label, &line.meaning))
    }
}
