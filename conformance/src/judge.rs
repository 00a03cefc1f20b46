//! Compares the answers of both sides, counts them by class, and collects the unclassified ones.

use crate::{
    generate::Case,
    ledger,
    xla::{Accepted, Answer},
};
use anyhow::bail;
use std::{
    collections::{
        BTreeMap,
        btree_map::Entry::{Occupied, Vacant},
    },
    fmt::{Display, Write},
};
use tilewise::{Error, Shape, ShapeKind};

/// Answer counts by class, and unclassified disagreements.
#[derive(Default)]
pub(crate) struct Tally {
    classes: BTreeMap<Class, Members>,
    unexpected: Vec<String>,
}

/// Both sides' answers, and the reason for a difference.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    xla: String,
    tilewise: &'static str,
    reason: &'static str,
}

struct Members {
    count: usize,
    /// The shortest of the texts.
    example: String,
}

impl Tally {
    /// Compares both answers to one case.
    pub(crate) fn judge(&mut self, case: &Case, ours: &Result<Shape, Error>, theirs: &Answer) {
        let text = &case.text;
        if let (Ok(shape), Answer::Accepted(theirs)) = (ours, theirs) {
            for (what, ours, theirs) in differences(shape, theirs) {
                self.unexpected(text, format_args!("{what} is {theirs} to XLA, {ours} to tilewise"));
            }
            if let Some(other) = &case.other {
                self.compare(shape, text, other, theirs);
            }
        }
        let xla = match theirs {
            Answer::Accepted(theirs) if theirs.valid => "accepts",
            Answer::Accepted(_) => "accepts, does not validate",
            Answer::Refused(_) => "refuses",
            Answer::Crashed(signal) => &format!("crashes with {signal}"),
        };
        let tilewise = ours.as_ref().map_or_else(|error| error.kind().as_str(), |_| "accepts");
        match (ours, xla) {
            (Ok(_), "accepts") => self.count(xla, "accepts", "", text),
            (Err(_), "refuses") => self.count(xla, "refuses", "", text),
            _ => match ledger::reason(text, theirs, ours.as_ref()) {
                Some(reason) => self.count(xla, tilewise, reason, text),
                None => self.unexpected(text, format_args!("XLA {xla} {:?}, tilewise: {ours:?}", theirs.message())),
            },
        }
    }

    /// Compares both sides' `==` on the shapes of two texts.
    fn compare(&mut self, shape: &Shape, text: &str, other: &str, theirs: &Accepted) {
        // Only if both sides accept both texts.
        let (Ok(other_shape), Some(equal)) = (other.parse::<Shape>(), theirs.equal) else { return };
        let pair = format!("{text}  {other}");
        let ours = [*shape == other_shape, other_shape == *shape];
        match (ours, equal) {
            ([true, true], [true, true]) if theirs.same_hash == Some(true) => self.count("equal", "equal", "", &pair),
            ([true, true], [true, true])
                if shape.leaves().any(|(_, leaf)| matches!(leaf.kind(), ShapeKind::Buffer(_))) =>
            {
                self.count("equal, hashes differ", "equal", ledger::BUFFER_HASH, &pair);
            }
            ([false, false], [false, false]) => self.count("unequal", "unequal", "", &pair),
            _ => self.unexpected(&pair, format_args!("equality is {equal:?} to XLA, {ours:?} to tilewise")),
        }
    }

    fn unexpected(&mut self, text: &str, what: impl Display) {
        self.unexpected.push(format!("{text:?}: {what}"));
    }

    fn count(&mut self, xla: &str, tilewise: &'static str, reason: &'static str, example: &str) {
        self.add(Class { xla: xla.to_owned(), tilewise, reason }, Members { count: 1, example: example.to_owned() });
    }

    fn add(&mut self, class: Class, more: Members) {
        match self.classes.entry(class) {
            Vacant(class) => drop(class.insert(more)),
            Occupied(mut class) => {
                let members = class.get_mut();
                members.count += more.count;
                if (more.example.len(), &more.example) < (members.example.len(), &members.example) {
                    members.example = more.example;
                }
            }
        }
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        other.classes.into_iter().for_each(|(class, members)| self.add(class, members));
        self.unexpected.extend(other.unexpected);
        self
    }

    /// Every class and its size, in Markdown.
    pub(crate) fn tables(&self) -> String {
        let (agreements, disagreements): (Vec<_>, Vec<_>) = self.classes.iter().partition(|(c, _)| c.reason.is_empty());
        let mut out = "| both | texts or pairs |\n| --- | ---: |\n".to_owned();
        // Writing to a string can't fail.
        for (class, Members { count, .. }) in agreements {
            let _ = writeln!(out, "| {} | {count} |", class.xla);
        }
        out += "\n| XLA | tilewise | count | why | shortest example |\n| --- | --- | ---: | --- | --- |\n";
        for (Class { xla, tilewise, reason }, Members { count, example }) in disagreements {
            let mut example = example.escape_debug().to_string();
            if let Some((end, _)) = example.char_indices().nth(72) {
                example.replace_range(end.., "…");
            }
            let _ = writeln!(out, "| {xla} | `{tilewise}` | {count} | {reason} | `{example}` |");
        }
        out
    }

    /// Fails if there are unexpected disagreements, and prints some of them.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        const SHOWN: usize = 20;
        for unexpected in self.unexpected.iter().take(SHOWN) {
            eprintln!("unexpected: {unexpected}");
        }
        match self.unexpected.len() {
            0 => Ok(()),
            count => bail!("{count} unexpected disagreements, of which {} are shown", count.min(SHOWN)),
        }
    }
}

/// Differences between both sides' readings of an accepted text: the facet, tilewise's value, XLA's value.
fn differences(shape: &Shape, theirs: &Accepted) -> Vec<(&'static str, String, String)> {
    let canonical = shape.to_string();
    let decoded = match from_hex(&theirs.proto).map(|bytes| Shape::decode_proto(&bytes)) {
        Some(Ok(decoded)) if decoded.identical(shape) => canonical.clone(),
        decoded => format!("{decoded:?}"),
    };
    let reprinted = theirs.reprinted.clone().unwrap_or_else(|| "refused".to_owned());
    let facets = [
        ("the text", canonical.clone(), theirs.text.clone()),
        ("the text without layout", shape.without_layout().to_string(), theirs.without_layout.clone()),
        ("the proto", to_hex(&shape.encode_proto()), theirs.proto.clone()),
        ("what tilewise reads in XLA's proto", decoded, canonical.clone()),
        ("what XLA reads in tilewise's text", canonical, reprinted),
    ];
    facets.into_iter().filter(|(_, ours, theirs)| ours != theirs).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
}
