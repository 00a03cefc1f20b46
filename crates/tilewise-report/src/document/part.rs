//! Parts of the documents' notation alone: a type, sizes, an order, tiles, a memory space, a field, a symbol; and their meaning.

use super::{
    meaning::{Meaning, format_in_words, of_names, space_in_words},
    names,
};
use crate::{
    Terminal, WriteText,
    plain::{Plain, bare},
    shape::{Labelled, LayoutSummary, Parts, element_type, example},
    style::{STRONG, styled},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{ElementType, Layout, LayoutPartKind, Shape, Tile, TileFormat};

/// A part of the documents' notation, such as `(8,128)(2,1)`, `S(1)`, `[A x B x C]` or `minor_to_major`, and its
/// meaning: not a shape, as programs need, but a text that people may type.
///
/// ```
/// use tilewise_report::{Part, WriteText};
///
/// assert!(Part::read("S(1)").expect("a part").to_text(80).contains("vmem"));
/// assert!(Part::read("garbage").is_none());
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    part: String,
    lines: Vec<Meaning>,
}

impl Part {
    /// The part that a text is; `None` of any other text.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let plain = Plain::of(text);
        let text = bare(plain.text());
        let lines = of_type(text)
            .or_else(|| of_message(text))
            .or_else(|| of_default_space(text))
            .or_else(|| of_properties(text))
            .or_else(|| of_list(text))
            .or_else(|| names::meanings(text))?;
        let part = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Self { part, lines })
    }
}

impl WriteText for Part {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let out = &mut Labelled::new(terminal, out);
        writeln!(out.to, "{}", styled(STRONG, &self.part))?;
        self.lines.iter().try_for_each(|line| out.line(&line.label, &line.meaning))?;
        writeln!(out.to)
    }
}

/// `bf16`
fn of_type(text: &str) -> Option<Vec<Meaning>> {
    let lower = text.to_ascii_lowercase();
    let name = element_type(text).unwrap_or(&lower);
    let element: ElementType = name.parse().ok()?;
    let bits = element.natural_bits();
    let s = if bits == 1 { "" } else { "s" };
    let mut lines = vec![Meaning::of("element type", format!("{element}, {bits} bit{s} each"))];
    let example = Shape::array(element, [8, 128]).ok()?.with_layout(Layout::row_major(2)).ok()?;
    lines.push(Meaning::of("shape", format!("begins with it, such as {}", example.without_layout())));
    if let Some(format) = example.as_array().and_then(TileFormat::documented_for_tpu) {
        lines.push(Meaning::of("on a TPU", format_in_words(&format)));
    }
    Some(lines)
}

/// `message LayoutProto { repeated int64 minor_to_major = 1; … }`; `layout { minor_to_major: [0, 1] }`; `minor_to_major: 1`
fn of_message(text: &str) -> Option<Vec<Meaning>> {
    let definition = text.strip_prefix("message ").and_then(|rest| Some(rest.split_once('{')?.1));
    if let Some(fields) = definition {
        let mut lines =
            vec![Meaning::of("message", "the definition of a message of XLA's xla_data.proto; its fields:")];
        for field in fields.split([';', '\n', '}']) {
            let name = field.split('=').next().unwrap_or_default().split_whitespace().last().unwrap_or_default();
            lines.extend(names::field(name).map(|meaning| Meaning::of(name, meaning)));
        }
        return (lines.len() > 1).then_some(lines);
    }
    let (name, value) = text.split_once([':', '{', '=', '<'])?;
    let name = name.trim();
    let meaning = names::field(name)?;
    let mut lines = vec![Meaning::of(name, meaning)];
    let inside = value.trim().trim_end_matches(['}', '>']).trim();
    let layout = if name == "layout" { Layout::from_text_proto(inside) } else { Layout::from_text_proto(text) };
    match layout {
        Ok(layout) if !layout.minor_to_major().is_empty() => lines.extend(of_layout(&layout)),
        _ => {
            lines.extend(names::notation(name, inside).map(|written| Meaning::of("notation", written)));
            lines.push(Meaning::of(
                "layout",
                "needs minor_to_major, the one required field, such as minor_to_major: [1, 0]",
            ));
        }
    }
    Some(lines)
}

fn of_layout(layout: &Layout) -> Vec<Meaning> {
    let mut lines = vec![Meaning::of("notation", layout.to_string())];
    lines.extend(layout.in_words().into_iter().map(|part| Meaning { label: part.text, meaning: part.meaning }));
    lines.extend(format_of(layout.tiles()));
    lines.extend(example(layout).map(|shape| Meaning::of("shape", format!("such as {shape}"))));
    lines
}

/// `(2,4)(2,1)`, `T(8,128)(2,1)S(1)`, `minor_to_major [0, 1]`, `[0, 1]`
fn of_properties(text: &str) -> Option<Vec<Meaning>> {
    let parts = Parts::read(text)?;
    if let Some(order) = &parts.order {
        let colon = if parts.properties.is_empty() { "" } else { ":" };
        let layout: Layout = format!("{{{order}{colon}{}}}", parts.properties()).parse().ok()?;
        let mut lines = of_layout(&layout);
        if text.starts_with('[') {
            lines.push(Meaning::of("as sizes", format!("f32[{order}]")));
        }
        return Some(lines);
    }
    if parts.properties.is_empty() {
        return None;
    }
    // The rank of the largest tile, at least two.
    let rank = text.split(')').map(|tile| tile.split(',').count()).max().unwrap_or_default().clamp(2, 64);
    let order = Layout::row_major(rank).to_string();
    let layout: Layout = format!("{}:{}}}", order.trim_end_matches('}'), parts.properties()).parse().ok()?;
    let words = layout.in_words().into_iter().filter(|part| part.kind != LayoutPartKind::Order);
    let count = match layout.tiles().len() {
        0 => None,
        1 => Some("a tile: its sizes, major to minor".to_owned()),
        count => Some(format!("{count} tiles: each cuts what the one before left")),
    };
    let mut lines: Vec<Meaning> = count.map(|count| Meaning::of("tiling", count)).into_iter().collect();
    let words = words.map(|part| Meaning { label: part.text, meaning: part.meaning });
    lines.extend(words);
    lines.extend(format_of(layout.tiles()));
    if text.starts_with('(') && layout.tiles().len() == 1 {
        let sizes: Vec<u64> = layout.tiles()[0].dimensions().iter().filter_map(|size| size.size()).collect();
        let rank = layout.tiles()[0].dimensions().len();
        lines.push(Meaning::of("as an index", of_index(rank)));
        lines.extend(of_bounds(&sizes).filter(|_| sizes.len() == rank));
    }
    lines.extend(example(&layout).map(|shape| Meaning::of("shape", format!("such as {shape}"))));
    Some(lines)
}

/// `S(0)`, which XLA leaves out.
fn of_default_space(text: &str) -> Option<Vec<Meaning>> {
    let words = || format!("{}; XLA leaves it out", space_in_words(0));
    (text == "S(0)").then(|| vec![Meaning::of(text, words()), Meaning::of("shape", "such as f32[2,3]{1,0}")])
}

fn of_index(count: usize) -> String {
    let of = format!("element of an array with {count} dimension{}", if count == 1 { "" } else { "s" });
    format!("{of}, or its place in memory: `tilewise index SHAPE '(…)'` finds it")
}

/// `(4,2,8,128)`, an array's bounds after steps of tiling.
fn of_bounds(sizes: &[u64]) -> Option<Meaning> {
    let product = sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(*size)).filter(|all| *all > 0)?;
    let written: Vec<String> = sizes.iter().map(u64::to_string).collect();
    // `(2,2,8,128,2,1,1,1)` is `(2,2,8,128,2)`.
    let last = sizes.iter().rposition(|size| *size != 1).unwrap_or_default();
    let short =
        if last + 2 < sizes.len() { format!(", in short ({})", written[..=last].join(",")) } else { String::new() };
    let words = format!("{}, major to minor: {product} elements or tiles{short}", written.join(" × "));
    Some(Meaning::of("as bounds", words))
}

/// The documents' format with these tiles.
fn format_of(tiles: &[Tile]) -> Option<Meaning> {
    TileFormat::of_tpu_tiles(tiles).map(|format| Meaning::of("format", format_in_words(&format)))
}

/// `8x128`, `[3,5]`, `(1,1,0,1)`, `[A x B x C]`, `{A, B, C, D}`
fn of_list(text: &str) -> Option<Vec<Meaning>> {
    // `N-1 down to 0`, `0 up to N-1`
    let order = ["up to", "down to"].iter().find_map(|word| text.split_once(word));
    if let Some((first, last)) = order {
        return of_order(&[first.trim(), "…", last.trim()]);
    }
    let (open, inside) = match text.chars().next()? {
        '(' => ('(', text.strip_prefix('(')?.strip_suffix(')')?),
        '[' => ('[', text.strip_prefix('[')?.strip_suffix(']')?),
        '{' => ('{', text.strip_prefix('{')?.strip_suffix('}')?),
        _ => (' ', text),
    };
    let items: Vec<&str> = separated(inside);
    let is_number = |item: &&str| !item.is_empty() && item.bytes().all(|byte| byte.is_ascii_digit());
    if items.len() < 2 {
        return None;
    }
    if items.iter().all(is_number) {
        let sizes: Vec<u64> = items.iter().map(|item| item.parse().ok()).collect::<Option<_>>()?;
        if open == '(' {
            let index = Meaning::of("index", of_index(sizes.len()));
            return Some([index].into_iter().chain(of_bounds(&sizes)).collect());
        }
        return of_sizes(&sizes);
    }
    let is_name = |item: &&str| {
        !item.is_empty()
            && item.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.' | '…' | '{' | '}'))
    };
    // `garbage, more`: a size's name is short.
    let is_short = items.iter().all(|item| item.len() <= 8);
    let lines = match open {
        ' ' => return None,
        '(' => {
            let words = "in the document's formulas, major to minor: an element's index, bounds or a tile, by name; of lists, (a,b) is a \
                         with b behind it";
            vec![Meaning::of("list", words), Meaning::of("with numbers", "linear_index_with_tile((2,3), (3,5), (2,2))")]
        }
        _ => of_order(&items).unwrap_or_else(|| of_names(&items)),
    };
    (items.iter().all(is_name) && is_short).then_some(lines)
}

/// The items of `A x B x C`, `A, B, C`, `8x128`, `2·3`.
fn separated(text: &str) -> Vec<&str> {
    let is_product = !text.contains(',');
    let items: Vec<&str> = match is_product {
        // Russian pages write the Cyrillic letter.
        true => text.split(['x', 'X', 'х', 'Х', '·', '*']).map(str::trim).collect(),
        false => text.split(',').map(str::trim).collect(),
    };
    items
}

fn of_sizes(sizes: &[u64]) -> Option<Vec<Meaning>> {
    let shape = Shape::array(ElementType::F32, sizes.iter().copied()).ok()?;
    let array = shape.as_array()?;
    let dimensions: Vec<String> = sizes
        .iter()
        .enumerate()
        .map(|(number, size)| match array.dimension_letter(number) {
            Some(letter) => format!("dimension {number} ({letter}) has size {size}"),
            None => format!("dimension {number} has size {size}"),
        })
        .collect();
    let mut lines = vec![
        Meaning::of("sizes", dimensions.join(", ")),
        Meaning::of("shape", format!("needs the element type in front, such as {}", shape.without_layout())),
    ];
    if let Ok(tile) = Tile::new(sizes.iter().copied()) {
        let layout = Layout::row_major(sizes.len()).with_tiles([tile]).ok()?;
        let tiles = layout.in_words().into_iter().filter(|part| part.kind == LayoutPartKind::Tile);
        lines.extend(tiles.map(|part| Meaning::of("as a tile", format!("{}: {}", part.text, part.meaning))));
        lines.extend(format_of(layout.tiles()));
    }
    Some(lines)
}

/// `[N-1, ..., 0]`, `{0, …, N-1}`: the order of any number of dimensions.
fn of_order(items: &[&str]) -> Option<Vec<Meaning>> {
    let is_rest = |item: &str| item.starts_with(['.', '…']);
    let [first, rest, last] = items else { return None };
    let words = match (*first, *last) {
        ("N-1", "0") if is_rest(rest) => "row-major, major to minor, XLA's default: the last dimension varies fastest",
        ("0", "N-1") if is_rest(rest) => "column-major: dimension 0 varies fastest",
        _ => return None,
    };
    let example = if *first == "0" { "f32[2,3]{0,1}" } else { "f32[2,3]{1,0}" };
    Some(vec![Meaning::of("minor_to_major", words), Meaning::of("shape", format!("such as {example}"))])
}

/// A text that people may type in place of a shape, and its meaning: a layout alone or a [`Part`].
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum PartOfShape {
    /// A whole layout.
    Layout(LayoutSummary),
    /// Any other part.
    Part(Part),
}

impl PartOfShape {
    /// The meaning of a text in place of a shape; `None` of any other.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let layout = LayoutSummary::read(text).or_else(|| LayoutSummary::read(Plain::of(text).text()));
        // A message without its one required field isn't a layout.
        let layout = layout.filter(|layout| layout.rank() > 0 || text.contains('{')).map(Self::Layout);
        layout.or_else(|| Part::read(text).map(Self::Part))
    }

    /// The layout alone, which has a proto.
    #[must_use]
    pub fn layout(&self) -> Option<&LayoutSummary> {
        match self {
            Self::Layout(layout) => Some(layout),
            Self::Part(_) => None,
        }
    }
}

impl WriteText for PartOfShape {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Layout(layout) => layout.write_text(terminal, out),
            Self::Part(part) => part.write_text(terminal, out),
        }
    }
}

impl Part {
    /// All of its meanings, in one line.
    pub(super) fn in_words(&self) -> String {
        let meanings: Vec<&str> = self.lines.iter().map(|line| &*line.meaning).collect();
        meanings.join("; ")
    }
}
