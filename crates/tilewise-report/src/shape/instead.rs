//! Corrections of texts that aren't shapes: the help of their errors.

use super::{
    layout::{example, parse_layout},
    lenient::element_type,
    printed::printed_shape,
};
use crate::plain::Plain;
use tilewise::{Layout, ProgramShape, Shape};

/// The correction, in a sentence; `None` if the error's own help is all that is known.
pub(super) fn instead_of(text: &str) -> Option<String> {
    let text = text.trim();
    if text.contains("Util::") {
        let is_make_shape = text.contains("ShapeUtil::Make");
        return Some(match is_make_shape {
            true => "write sizes for the letters, such as `ShapeUtil::MakeShape(F32, {2, 3, 4, 5})`, or `f32[2,3,4,5]`"
                .to_owned(),
            false => "docs/documents.md lists what does here what XLA's functions do".to_owned(),
        });
    }
    if let Some(layout) = parse_layout(text) {
        let shape = example(&layout)?;
        return Some(format!("this is a layout; put the element type and the dimensions in front: `{shape}`"));
    }
    if let Some(program) = program(text) {
        let shapes: Vec<String> = program
            .parameters
            .iter()
            .map(|(_, shape)| shape)
            .chain([&program.result])
            .map(|shape| format!("`{shape}`"))
            .collect();
        return Some(format!(
            "a computation begins here, its parameters and its result have shapes: {}; `tilewise audit` reads the whole program",
            shapes.join(", ")
        ));
    }
    if let Some(shape) = corrected(text) {
        return Some(format!("write `{shape}`"));
    }
    if let Some(shape) = without_braces(text) {
        return Some(format!("the shell took the braces: quote the shape, such as '{shape}'"));
    }
    let plain = Plain::of(text);
    let text = plain.text().trim();
    if let Some(sizes) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).or(Some(text)).and_then(sizes) {
        let shape = offered(&format!("f32[{sizes}]"))?;
        // Python's and C++'s brackets may be an order's, too.
        let order = offered(&format!("f32[{}]{{{sizes}}}", vec!["2"; sizes.split(',').count()].join(",")));
        return Some(match order.filter(|_| text.starts_with('[')) {
            Some(_) => {
                format!("an order of dimensions is `{{{sizes}}}`; sizes have the element type in front, `{shape}`")
            }
            None => format!("name the element type in front of the sizes, such as `{shape}`"),
        });
    }
    let parts = Parts::read(text).filter(|parts| parts.order.is_none() && !parts.properties.is_empty())?;
    let properties = parts.properties();
    let rank = properties.split(')').map(|tile| tile.split(',').count()).max().unwrap_or_default().clamp(2, 64);
    let layout: Layout =
        format!("{}:{properties}}}", Layout::row_major(rank).to_string().trim_end_matches('}')).parse().ok()?;
    Some(format!("this is a part of a layout: write all of the shape, such as `{}`", example(&layout)?))
}

/// The shape of an offered text; `None` if it can't be read.
fn offered(text: &str) -> Option<Shape> {
    printed_shape(text).ok()
}

/// The shapes of `(f32[2]) -> f32[3]`, or of the line that opens a computation, `ENTRY %main.5 (x: f32[2]) -> f32[3] {`.
fn program(text: &str) -> Option<ProgramShape> {
    let text = text.strip_suffix('{').unwrap_or(text);
    let start = text.find('(').filter(|_| text.contains("->"))?;
    text[start..].parse().ok()
}

/// The intended shape, if there can be only one.
fn corrected(text: &str) -> Option<Shape> {
    let plain = Plain::of(text);
    let bare = plain.text().trim_matches(['\'', '"', '`', ',', ';', ' ']);
    let end = bare.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.')?;
    let (name, rest) = (&bare[..end], &bare[end..]);
    let text = match element_type(name) {
        Some(element) if rest.starts_with('[') => format!("{element}{rest}"),
        _ => bare.to_owned(),
    };
    // `Shape: f32[…]`, `XLA label: %x = …`, a jaxpr's `a:f32[…]`
    let unlabelled = text.split_once(':').filter(|(label, _)| !label.contains(['[', '(', '{', '=']));
    // Python's tuple of one
    let without_comma = text.strip_suffix(",)").map(|inside| format!("{inside})"));
    let candidates = [Some(&*text), unlabelled.map(|(_, rest)| rest.trim()), without_comma.as_deref()];
    for candidate in candidates.into_iter().flatten() {
        if let Ok(shape) = printed_shape(candidate) {
            return Some(shape);
        }
    }
    let (shape, length) = Shape::parse_prefix(&text).ok()?;
    let behind = Parts::read(text.get(length..)?)?;
    let own = shape.layout().map_or(Some(Parts::default()), |layout| Parts::read(&layout.to_string()))?;
    let order = match (own.order.as_ref(), behind.order.as_ref()) {
        (Some(_), Some(_)) => return None,
        (Some(order), None) | (None, Some(order)) => order.clone(),
        (None, None) => Layout::row_major(shape.dimensions().len()).to_string().trim_matches(['{', '}']).to_owned(),
    };
    let all = Parts { order: None, properties: [own.properties, behind.properties].concat() };
    let colon = if all.properties.is_empty() { "" } else { ":" };
    Shape::parse_as_written(&format!("{}{{{order}{colon}{}}}", shape.without_layout(), all.properties())).ok()
}

/// The shape, in row-major layout, for a text that a shell's brace expansion made of one such as `f32[2,3]{0,1}`.
fn without_braces(text: &str) -> Option<String> {
    let (shape, number) = text.split_at(text.rfind(']')? + 1);
    let rank = shape.parse::<Shape>().ok()?.dimensions().len();
    let number: usize = number.parse().ok()?;
    (number < rank && rank > 1).then(|| format!("{shape}{}", Layout::row_major(rank)))
}

/// `4x8`, `4 × 8`, `4, 8` as `4,8`.
fn sizes(text: &str) -> Option<String> {
    let items: Vec<&str> = text.split(['x', 'X', '×', ',']).map(str::trim).collect();
    let is_number = |item: &&str| !item.is_empty() && item.bytes().all(|byte| byte.is_ascii_digit());
    items.iter().all(is_number).then(|| items.join(","))
}

/// Parts of a layout in any order: `{0,1}`, `[0, 1]`, `T(2,4)(2,1)`, `(2,4)`, `S(1)`, with or without their names.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) order: Option<String>,
    /// Each by its place in the order of the notation, then as it is written: the tiles without their `T`.
    pub(crate) properties: Vec<(usize, String)>,
}

/// The properties of a layout in the order of the notation.
const PROPERTIES: [&str; 8] = ["T", "L", "#", "*", "E", "S", "SC", "M"];

impl Parts {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = Self::default();
        let mut rest = text.trim();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c: char| !c.is_ascii_alphabetic() && c != '_' && c != '-').unwrap_or(rest.len());
            let name = if first == '(' { "T" } else { &rest[..word.max(first.len_utf8())] };
            if let Some(place) = PROPERTIES.iter().position(|known| *known == name) {
                rest = if first == '(' { rest } else { &rest[name.len()..] };
                let start = rest;
                while let Some(inside) = rest.strip_prefix('(') {
                    rest = inside.split_once(')')?.1.trim_start_matches(' ');
                }
                let written = start.get(..start.len() - rest.len())?.trim();
                if written.is_empty() {
                    return None;
                }
                parts.properties.push((place, written.replace(' ', "")));
            } else if first.is_ascii_digit() {
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',' && c != ' ').unwrap_or(rest.len());
                if parts.order.replace(sizes(rest[..end].trim().trim_end_matches(','))?).is_some() {
                    return None;
                }
                rest = &rest[end..];
            } else if word > 0 {
                let is_known = matches!(
                    rest[..word].to_ascii_lowercase().as_str(),
                    "minor_to_major" | "minor-to-major" | "layout" | "tiles" | "tile" | "tiling" | "with"
                );
                rest = is_known.then(|| &rest[word..])?;
            } else {
                let separators = ['{', '}', '[', ']', ':', ',', '=', ' '];
                rest = separators.contains(&first).then(|| &rest[1..])?;
            }
        }
        Some(parts)
    }

    /// The properties as in a layout: tiles behind each other, with one `T`.
    pub(crate) fn properties(&self) -> String {
        let mut sorted: Vec<&(usize, String)> = self.properties.iter().collect();
        sorted.sort_by_key(|(place, _)| *place);
        let mut last = None;
        let mut text = String::new();
        for (place, written) in sorted {
            if last != Some(*place) {
                text += PROPERTIES[*place];
            }
            text += written;
            last = Some(*place);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Typed texts, and the corrections in the help.
    #[test]
    fn the_next_attempt_works() {
        for (text, help) in [
            ("F32[4,8] (2,4)(2,1)", "write `f32[4,8]{1,0:T(2,4)(2,1)}`"),
            ("F32[3,5]{1,0} T(2,2)", "write `f32[3,5]{1,0:T(2,2)}`"),
            ("F32[2,7,8,11,10]{4,3,2,1,0} (∗,∗,2,∗,3)", "write `f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}`"),
            ("F32[2,3] [0,1]", "write `f32[2,3]{0,1}`"),
            ("F32[2,3] minor_to_major [0, 1]", "write `f32[2,3]{0,1}`"),
            ("F32[2,3] {0,1}:T(2,2)", "write `f32[2,3]{0,1:T(2,2)}`"),
            ("F32[2,3]{1,0:T(2,2)} (2,1)", "write `f32[2,3]{1,0:T(2,2)(2,1)}`"),
            ("F32[2,3]{1,0} S(1)", "write `f32[2,3]{1,0:S(1)}`"),
            ("f32[2]{0}S(1)", "write `f32[2]{0:S(1)}`"),
            ("f32[2]T(2)", "write `f32[2]{0:T(2)}`"),
            ("f32[16]{0} L(32)", "write `f32[16]{0:L(32)}`"),
            ("f32[16]{0:S(1)} T(8) L(32)", "write `f32[16]{0:T(8)L(32)S(1)}`"),
            ("float32[400000,12]", "write `f32[400000,12]`"),
            ("bfloat16[8,128]{0,1:T(8,128)(2,1)}", "write `bf16[8,128]{0,1:T(8,128)(2,1)}`"),
            ("torch.bfloat16[8]", "write `bf16[8]`"),
            ("\"bf16[4,8]\",", "write `bf16[4,8]`"),
            ("f32[2];", "write `f32[2]`"),
            ("     Shape: u32[12582912,1]{1,0:T(8,128)}", "write `u32[12582912,1]{1,0:T(8,128)}`"),
            ("XLA label: %x = f32[2]{0} add(%a, %b)", "write `f32[2]{0}`"),
            ("a:f32[10]", "write `f32[10]`"),
            ("f32［2，3］{1，0：T（2，2）}", "write `f32[2,3]{1,0:T(2,2)}`"),
            ("f32[2,3]\u{a0}{0,1}", "write `f32[2,3]{0,1}`"),
            ("f32[2,3]0", "the shell took the braces: quote the shape, such as 'f32[2,3]{1,0}'"),
            (
                "ENTRY %main.5 (x: f32[2]) -> f32[3] {",
                "a computation begins here, its parameters and its result have shapes: `f32[2]`, `f32[3]`; `tilewise audit` reads the \
                 whole program",
            ),
            ("4x8", "name the element type in front of the sizes, such as `f32[4,8]`"),
            ("[4 x 8]", "name the element type in front of the sizes, such as `f32[4,8]`"),
            ("S(1)", "this is a part of a layout: write all of the shape, such as `f32[2,3]{1,0:S(1)}`"),
            ("(2,4)(2,1)", "this is a part of a layout: write all of the shape, such as `f32[2,3]{1,0:T(2,4)(2,1)}`"),
            ("{0,1}", "this is a layout; put the element type and the dimensions in front: `f32[2,3]{0,1}`"),
            (
                "ShapeUtil::MakeShape(F32, {A, B, C, D})",
                "write sizes for the letters, such as `ShapeUtil::MakeShape(F32, {2, 3, 4, 5})`, or `f32[2,3,4,5]`",
            ),
        ] {
            assert_eq!(instead_of(text).as_deref(), Some(help), "{text}");
        }
    }

    /// A text with several meanings or without any isn't guessed at.
    #[test]
    fn nothing_is_guessed() {
        for text in [
            "",
            "f33[2]",
            "f32[2]{0}{0}",
            "f32[2,3]{1,0} {0,1}",
            "f32[2] x",
            "f32[2] f32[3]",
            "f32[2] S(300)",
            "f32[2]9",
            "é",
        ] {
            assert_eq!(instead_of(text), None, "{text}");
        }
    }
}
