//! Shapes: their parts, sizes, pictures, steps, and what a TPU would choose.

use crate::answer::{Answer, in_text, json, plain, thrown};
use serde::Serialize;
use std::borrow::Cow;
use tilewise::{
    BitcastAs, Counterexample, ElementType, LayoutPart, Relation, Shape, Tiled,
    tpu::{Generation, default_layout, memory_space_name},
};
use tilewise_audit::Failure;
use tilewise_draw::{Options, Scene, Theme, View};
use wasm_bindgen::prelude::*;

/// A part of the notation, where it stands in the canonical text, and what it means.
#[derive(Serialize)]
struct Part {
    start: usize,
    end: usize,
    /// `type`, `dimension`, `order`, `tile` or `attribute`.
    kind: &'static str,
    /// Which dimension or tile.
    number: Option<usize>,
    meaning: String,
}

#[derive(Serialize)]
struct Shown {
    shape: String,
    /// What fills a tuple: the arrays in it, with their paths.
    leaves: Option<Vec<(Vec<usize>, String)>>,
    parts: Vec<Part>,
    sizes: Option<Sizes>,
    /// Why there are none.
    no_sizes: Option<String>,
}

#[derive(Serialize)]
struct Sizes {
    element_type: &'static str,
    stored_bits: u64,
    dimensions: Vec<u64>,
    physical_dimensions: Vec<u64>,
    physical_elements: u64,
    logical_bytes: u64,
    physical_bytes: u64,
    padding_bytes: u64,
    expansion: f64,
    causes: Vec<String>,
    memory_space_name: Cow<'static, str>,
    /// For each dimension its bound as the tiles round it up, for the picture to scale; empty where a tile merges them.
    padded: Vec<[u64; 2]>,
}

/// A shape in words and numbers.
///
/// # Errors
/// Those of parsing, with the span.
#[wasm_bindgen]
pub fn show(text: &str) -> Answer {
    let shape = parse(text)?;
    let tiled = Tiled::new(&shape);
    json(&Shown {
        shape: shape.to_string(),
        leaves: shape
            .as_array()
            .is_none()
            .then(|| shape.leaves().map(|(path, leaf)| (path, leaf.to_string())).collect()),
        parts: parts(&shape),
        no_sizes: tiled.as_ref().err().map(ToString::to_string),
        sizes: tiled.ok().as_ref().map(sizes),
    })
}

fn sizes(tiled: &Tiled) -> Sizes {
    let array = tiled.array();
    let mut padded: Vec<[u64; 2]> = tiled.logical_dimensions().iter().map(|&bound| [bound, bound]).collect();
    for axis in tiled.padded_axes().iter().filter(|axis| axis.level == 0) {
        match axis.dimensions[..] {
            [dimension] => {
                if let Some([_, to]) = padded.get_mut(dimension) {
                    *to = axis.padded;
                }
            }
            _ => padded.clear(),
        }
    }
    Sizes {
        element_type: array.element_type().name(),
        stored_bits: tiled.stored_bits(),
        dimensions: tiled.logical_dimensions().to_vec(),
        physical_dimensions: tiled.physical_dimensions().to_vec(),
        physical_elements: tiled.physical_elements(),
        logical_bytes: tiled.logical_bytes(),
        physical_bytes: tiled.physical_bytes(),
        padding_bytes: tiled.padding_bytes(),
        expansion: tiled.expansion(),
        causes: tilewise_audit::causes(tiled),
        memory_space_name: memory_space_name(array.memory_space()),
        padded,
    }
}

/// The parts of an array's canonical text, in its order.
fn parts(shape: &Shape) -> Vec<Part> {
    let Some(array) = shape.as_array() else { return Vec::new() };
    let text = shape.to_string();
    let mut parts = Vec::new();
    let mut at = 0;
    let mut find = |written: &str, kind, number, meaning: String| {
        if let Some(start) = text.get(at..).and_then(|rest| rest.find(written)).map(|found| at + found) {
            at = start + written.len();
            parts.push(Part { start, end: at, kind, number, meaning });
        }
    };
    let bits = array.element_type().natural_bits();
    find(array.element_type().name(), "type", None, format!("element type, {bits} bits each"));
    for (number, dimension) in array.dimensions().iter().enumerate() {
        let letter = array.dimension_letter(number).map(|letter| format!(" ({letter})")).unwrap_or_default();
        let meaning = match dimension.bound() {
            Some(bound) if dimension.is_dynamic() => format!("dimension {number}{letter}: at most {bound}"),
            Some(bound) => format!("dimension {number}{letter}: {bound} elements"),
            None => format!("dimension {number}{letter}: known when the program runs"),
        };
        find(&dimension.to_string(), "dimension", Some(number), meaning);
    }
    let mut tiles = 0..;
    for LayoutPart { text, meaning, .. } in array.layout_in_words() {
        let is_tile = text.starts_with("T(") || text.starts_with('(');
        let (kind, number) = match text.starts_with(|c: char| c.is_ascii_digit()) {
            true => ("order", None),
            false if is_tile => ("tile", tiles.next()),
            false => ("attribute", None),
        };
        find(&text, kind, number, meaning);
    }
    parts
}

/// A shape as an SVG: `view` is `both`, `logical`, `memory`, `word`, `steps`, or `compare`, then with another shape.
/// `slices` has pairs of a dimension and its index; the highlighted index may be empty.
///
/// # Errors
/// Those of parsing and of drawing.
#[wasm_bindgen]
pub fn draw(text: &str, view: &str, other: Option<String>, slices: &[u32], highlight: &[u32], theme: &str) -> Answer {
    let shape = parse(text)?;
    let mut options = Options::new().with_theme(match theme {
        "light" => Theme::Light,
        "dark" => Theme::Dark,
        _ => Theme::Auto,
    });
    for slice in slices.chunks_exact(2) {
        options = options.with_slice(i64::from(slice[0]), u64::from(slice[1]));
    }
    if !highlight.is_empty() {
        options = options.with_highlight(highlight.iter().map(|&k| u64::from(k)).collect::<Vec<_>>());
    }
    let options = match (view, other) {
        ("compare", Some(other)) => options.with_view(View::Compare(Box::new(self::tiled(&other)?))),
        ("logical", _) => options.with_view(View::Logical),
        ("memory", _) => options.with_view(View::Memory),
        ("word", _) => options.with_view(View::Word),
        _ => options,
    };
    let scene = if shape.as_array().is_none() {
        let arrays = shape.leaves().filter(|(_, leaf)| leaf.as_array().is_some());
        let arrays = arrays.map(|(path, leaf)| Ok((path, Tiled::new(&leaf)?))).collect::<Result<Vec<_>, _>>();
        Scene::of_tuple(&arrays.map_err(plain)?, &options)
    } else {
        let tiled = Tiled::new(&shape).map_err(plain)?;
        if view == "steps" { Scene::steps(&tiled, &options) } else { Scene::of(&tiled, &options) }
    };
    Ok(scene.map_err(|error| thrown(&Failure::new(error.kind().as_str(), error.to_string())))?.to_svg())
}

/// Where an element lies, by its index, or what lies at an offset.
///
/// # Errors
/// An index or an offset out of bounds.
#[wasm_bindgen]
pub fn place(text: &str, index: Option<Vec<u32>>, offset: Option<u64>) -> Answer {
    #[derive(Serialize)]
    struct Place {
        offset: u64,
        /// `None` for padding.
        index: Option<Vec<u64>>,
        physical_index: Option<Vec<u64>>,
        byte: u128,
        bit: u128,
        bits: u64,
        /// The elements in the same 32-bit word, by index; padding is `None`.
        word: Vec<Option<Vec<u64>>>,
    }
    let tiled = tiled(text)?;
    let offset = match index {
        Some(index) => tiled.offset_of(&index.iter().map(|&k| u64::from(k)).collect::<Vec<_>>()).map_err(plain)?,
        None => offset.unwrap_or_default(),
    };
    let bits = tiled.stored_bits();
    let at = u128::from(offset) * u128::from(bits);
    let each = (32 / bits.max(1)).max(1);
    let first = offset - offset % each;
    let word = if bits < 32 { (first..first.saturating_add(each)).collect() } else { Vec::new() };
    json(&Place {
        offset,
        index: tiled.index_of(offset).map_err(plain)?,
        physical_index: tiled.physical_index_of(offset).map_err(plain)?,
        byte: at / 8,
        bit: at % 8,
        bits,
        word: word.into_iter().map(|mate| tiled.index_of(mate).ok().flatten()).collect(),
    })
}

/// The steps from the array to its buffer in words, or as `numpy`, `einops` or `mlir`.
///
/// # Errors
/// Those of parsing.
#[wasm_bindgen]
pub fn steps(text: &str, language: &str) -> Answer {
    let tiled = tiled(text)?;
    let derivation = tiled.derivation();
    Ok(match language {
        "numpy" => derivation.numpy().to_string(),
        "einops" => derivation.einops().to_string(),
        "mlir" => {
            tiled.affine_map().map_or_else(|| "no affine map: `*` merges dimensions".to_owned(), |map| map.to_string())
        }
        _ => derivation.to_string(),
    })
}

/// How the bytes of one array relate to those of another, as `tilewise bitcast` says.
///
/// # Errors
/// Those of parsing and of [`Tiled::bitcast`].
#[wasm_bindgen]
pub fn compare(from: &str, to: &str) -> Answer {
    #[derive(Serialize)]
    struct Compared {
        relation: &'static str,
        sentence: String,
    }
    let (from, to) = (tiled(from)?, tiled(to)?);
    let relation = from.bitcast(&to, BitcastAs::Any).map_err(plain)?;
    json(&Compared { relation: relation.as_str(), sentence: sentence(&relation) })
}

fn sentence(relation: &Relation) -> String {
    match relation {
        Relation::Identical => "every index has the same cell in both".to_owned(),
        Relation::Reshape => "the same bytes, read as a reshape: a bitcast".to_owned(),
        Relation::Transpose { permutation } => format!("the same bytes, transposed by {permutation:?}: a bitcast"),
        Relation::TransposeReshape { permutation } => {
            format!("the same bytes, transposed by {permutation:?} and reshaped: a bitcast")
        }
        Relation::ExposesPadding { exposed, hidden } => {
            format!(
                "the same bytes, but {exposed} elements of the second are padding of the first, and {hidden} the other way"
            )
        }
        Relation::None { reason, counterexample: Some(Counterexample { index, from_offset, to_offset, .. }) } => {
            format!(
                "no bitcast, {reason}: element {index:?} lies at offset {from_offset}, and at {to_offset} in the other"
            )
        }
        Relation::None { reason, .. } => format!("no bitcast: {reason}"),
        _ => String::new(),
    }
}

/// What each TPU generation, or one, makes of an array: its layout and sizes.
///
/// # Errors
/// Those of an element type or of bounds.
#[wasm_bindgen]
pub fn predict(element_type: &str, bounds: &[u32], tpu: &str) -> Answer {
    #[derive(Serialize)]
    struct Predicted {
        tpu: &'static str,
        shape: String,
        sizes: Option<Sizes>,
    }
    let element_type: ElementType = element_type.parse().map_err(plain)?;
    let generation: Generation = tpu.parse().map_err(plain)?;
    let bounds: Vec<u64> = bounds.iter().map(|&bound| u64::from(bound)).collect();
    let shape = default_layout(element_type, &bounds, generation).map_err(plain)?;
    let sizes = Tiled::new(&shape).ok().as_ref().map(sizes);
    json(&Predicted { tpu: generation.name(), shape: shape.to_string(), sizes })
}

fn parse(text: &str) -> Result<Shape, JsValue> {
    text.parse().map_err(|error| in_text(error, text))
}

fn tiled(text: &str) -> Result<Tiled, JsValue> {
    Tiled::new(&parse(text)?).map_err(plain)
}
