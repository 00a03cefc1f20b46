//! How two shapes and their layouts differ, in words.

use super::{
    bitcast::{in_words, relation},
    input::Pair,
};
use crate::{
    Terminal, WriteText,
    style::{FAINT, STRONG, bytes_both, listed, styled},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{ArrayShape, Layout, LayoutPart, LayoutPartKind, Relation, Shape};

/// The answer of `tilewise diff` to two shapes.
#[derive(Clone, Debug, Serialize)]
pub struct Differences {
    first: String,
    second: String,
    /// Whether XLA's `==` holds.
    equal: bool,
    /// The relation of the bytes; null unless both are arrays with sizes.
    relation: Option<&'static str>,
    differences: Vec<Difference>,
    #[serde(skip)]
    found: Option<Relation>,
}

#[derive(Clone, Debug, Serialize)]
struct Difference {
    /// The path through tuples to the leaf; empty without tuples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shape_index: Vec<usize>,
    /// The differing part, by the name of the field of `show` if there is one.
    part: &'static str,
    first: String,
    second: String,
    /// The meanings of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<[String; 2]>,
}

impl Differences {
    /// The differences of two shapes.
    #[must_use]
    pub fn of(pair: &Pair) -> Self {
        let [first, second] = &pair.shapes;
        let found = relation(first, second);
        Self {
            first: first.to_string(),
            second: second.to_string(),
            equal: first == second,
            relation: found.as_ref().map(Relation::as_str),
            differences: differences(first, second),
            found,
        }
    }

    /// Whether there are no differences.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }
}

impl WriteText for Differences {
    fn write_text(&self, _: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}\n{}", self.first, self.second)?;
        if self.differences.is_empty() {
            return writeln!(out, "  {}", styled(STRONG, "no difference"));
        }
        for difference in &self.differences {
            let Difference { shape_index, part, first, second, meaning } = difference;
            let place = if shape_index.is_empty() { String::new() } else { format!("{{{}}} ", listed(shape_index)) };
            let [first, second] = [first, second].map(|text| if text.is_empty() { "none" } else { text });
            writeln!(out, "  {place}{}: {first} → {second}", styled(STRONG, part.replace('_', " ")))?;
            for meaning in meaning.iter().flatten().filter(|meaning| !meaning.is_empty()) {
                writeln!(out, "    {}", styled(FAINT, meaning))?;
            }
        }
        match &self.found {
            Some(relation) if relation.is_bitcast() => writeln!(out, "  a bitcast: {}", in_words(relation)),
            Some(relation) => writeln!(out, "  no bitcast: {}", in_words(relation)),
            None => Ok(()),
        }
    }
}

/// Leaf by leaf; tuples of other structures are one difference.
fn differences(first: &Shape, second: &Shape) -> Vec<Difference> {
    let same_structure = first.leaves().map(|(path, _)| path).eq(second.leaves().map(|(path, _)| path));
    if !same_structure {
        let leaves = |shape: &Shape| match shape.leaves().count() {
            1 => format!("{}, 1 leaf", shape.kind().name()),
            count => format!("{}, {count} leaves", shape.kind().name()),
        };
        return vec![Difference::new(&[], "kind", leaves(first), leaves(second))];
    }
    let mut all = Vec::new();
    for ((path, first), (_, second)) in first.leaves().zip(second.leaves()) {
        let [kind, other] = [&first, &second].map(|leaf| leaf.kind().name());
        if kind != other {
            all.push(Difference::new(&path, "kind", kind, other));
        } else if let (Some(first), Some(second)) = (first.as_array(), second.as_array()) {
            of_arrays(&path, first, second, &mut all);
        }
    }
    all
}

fn of_arrays(path: &[usize], first: &ArrayShape, second: &ArrayShape, all: &mut Vec<Difference>) {
    let mut compare = |part, text: &dyn Fn(&ArrayShape) -> String, meaning: Option<&dyn Fn(&ArrayShape) -> String>| {
        let [one, other] = [first, second].map(text);
        if one != other {
            let meaning = meaning.map(|meaning| [first, second].map(meaning));
            all.push(Difference { meaning, ..Difference::new(path, part, one, other) });
        }
    };
    compare("element_type", &|array| array.element_type().to_string(), None);
    compare("dimensions", &|array| listed(array.dimensions()), None);
    compare(
        "minor_to_major",
        &|array| of_layout(array, |l| listed(l.minor_to_major())),
        Some(&|array| words(array, LayoutPartKind::Order)),
    );
    let tiles = |array: &ArrayShape| {
        of_layout(array, |layout| layout.tiles().iter().map(ToString::to_string).collect::<Vec<_>>().concat())
    };
    compare("tiles", &tiles, Some(&|array| words(array, LayoutPartKind::Tile)));
    compare("tail_padding_alignment", &|array| of_layout(array, |l| l.tail_padding_alignment().to_string()), None);
    let bits = |array: &ArrayShape| {
        of_layout(array, |layout| layout.element_size_in_bits().map(|bits| bits.to_string()).unwrap_or_default())
    };
    compare("element_size_in_bits", &bits, Some(&|array| words(array, LayoutPartKind::ElementSize)));
    compare(
        "memory_space",
        &|array| array.memory_space().to_string(),
        Some(&|array| words(array, LayoutPartKind::MemorySpace)),
    );
    compare(
        "split_configs",
        &|array| texts(array, LayoutPartKind::Split),
        Some(&|array| words(array, LayoutPartKind::Split)),
    );
    compare("index_type", &|array| texts(array, LayoutPartKind::IndexType), None);
    compare("pointer_type", &|array| texts(array, LayoutPartKind::PointerType), None);
    compare(
        "metadata_prefix_bytes",
        &|array| texts(array, LayoutPartKind::MetadataPrefix),
        Some(&|array| words(array, LayoutPartKind::MetadataPrefix)),
    );
    let bytes = |array: &ArrayShape| array.sizes().map(|sizes| bytes_both(sizes.physical_bytes)).unwrap_or_default();
    compare("physical_bytes", &bytes, None);
}

fn of_layout(array: &ArrayShape, text: impl Fn(&Layout) -> String) -> String {
    array.layout().map(text).unwrap_or_default()
}

/// The parts of the layout's text of one kind.
fn parts(array: &ArrayShape, kind: LayoutPartKind) -> Vec<LayoutPart> {
    let mut parts = array.layout_in_words();
    parts.retain(|part| part.kind == kind);
    parts
}

fn texts(array: &ArrayShape, kind: LayoutPartKind) -> String {
    parts(array, kind).into_iter().map(|part| part.text).collect()
}

fn words(array: &ArrayShape, kind: LayoutPartKind) -> String {
    parts(array, kind).into_iter().map(|part| part.meaning).collect::<Vec<_>>().join("; ")
}

impl Difference {
    fn new(path: &[usize], part: &'static str, first: impl Into<String>, second: impl Into<String>) -> Self {
        Self { shape_index: path.to_vec(), part, first: first.into(), second: second.into(), meaning: None }
    }
}
