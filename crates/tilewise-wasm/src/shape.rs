//! Shapes: their parts, sizes, pictures, steps, and a TPU's layouts for them.

use crate::{
    answer::{Answer, in_text, json, plain, thrown},
    theme::themed,
};
use serde::Serialize;
use tilewise::{ElementType, Shape, Tiled, tpu::Generation};
use tilewise_audit::Failure;
use tilewise_draw::{Scene, View};
use tilewise_report::{
    BitcastAnswer, Derived, Located, NotationPart, Pair, Placement, PredictedShape, Reader, ShapeSummary, StepLanguage,
    causes_in_words, notation_parts, parse_shape,
};
use wasm_bindgen::prelude::*;

/// An answer of the command line, with the page's additions for the shape.
#[derive(Serialize)]
struct Shown<T> {
    #[serde(flatten)]
    answer: T,
    parts: Vec<NotationPart>,
    causes: Vec<String>,
}

fn shown<T>(answer: T, shape: &Shape) -> Shown<T> {
    let causes = Tiled::new(shape).map(|tiled| causes_in_words(&tilewise_audit::causes(&tiled))).unwrap_or_default();
    Shown { answer, parts: notation_parts(shape), causes }
}

/// A shape as `tilewise show --format json` has it, with the `parts` of its text and the `causes` of its padding.
///
/// # Errors
/// Those of parsing, with the span.
#[wasm_bindgen]
pub fn show(text: &str) -> Answer {
    let shape = parse(text)?;
    let summary = ShapeSummary::read(text, &mut Reader::without_notes()).map_err(|failure| in_text(failure, text))?;
    json(&shown(summary, &shape))
}

/// A shape as an SVG: `view` is `both`, `logical`, `memory`, `word`, `steps`, or `compare`, then with another shape.
/// `slices` has pairs of a dimension and its index; the highlighted index may be empty.
///
/// # Errors
/// Those of parsing and of drawing.
#[wasm_bindgen]
pub fn draw(text: &str, view: &str, other: Option<String>, slices: &[u32], highlight: &[u32], theme: &str) -> Answer {
    let shape = parse(text)?;
    let mut options = themed(theme);
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

/// The place of an element, by its index, or the element at an offset: as `tilewise index --format json` has it, with
/// its `byte`, `bit`, `bits`, and the elements of its `word`.
///
/// # Errors
/// An index or an offset out of bounds.
#[wasm_bindgen]
pub fn place(text: &str, index: Option<Vec<u32>>, offset: Option<u64>) -> Answer {
    let shape = parse(text)?;
    let tiled = Tiled::new(&shape).map_err(plain)?;
    let located = match index {
        Some(index) => Located::at_index(&shape, &tiled, index.into_iter().map(u64::from).collect()),
        None => Located::at_offset(&shape, &tiled, offset.unwrap_or_default()),
    };
    json(&Placement::of(located.map_err(plain)?, &tiled))
}

/// The steps from the array to its buffer in words, or as `numpy`, `einops` or `mlir`.
///
/// # Errors
/// Those of parsing, and steps that the language can't express.
#[wasm_bindgen]
pub fn steps(text: &str, language: &str) -> Answer {
    let language = match language {
        "numpy" => StepLanguage::Numpy,
        "einops" => StepLanguage::Einops,
        "mlir" => StepLanguage::Mlir,
        _ => StepLanguage::Text,
    };
    let derived = Derived::of(&parse(text)?, language).map_err(|failure| thrown(&failure))?;
    Ok(derived.rendering().to_owned())
}

/// How the bytes of one array relate to those of another, as `tilewise bitcast --format json` has it, with its
/// `clauses`.
///
/// # Errors
/// Those of parsing and of [`Tiled::bitcast`].
#[wasm_bindgen]
pub fn compare(from: &str, to: &str) -> Answer {
    #[derive(Serialize)]
    struct Compared {
        #[serde(flatten)]
        answer: BitcastAnswer,
        clauses: Vec<String>,
    }
    // Each by itself, so that an error points into its own text.
    let (from, to) = (parse(from)?, parse(to)?);
    let answer = Pair::read(&format!("{from}\t{to}"), &mut Reader::without_notes())
        .and_then(|pair| BitcastAnswer::side_by_side(&pair));
    let answer = answer.map_err(|failure| thrown(&failure))?;
    json(&Compared { clauses: answer.clauses(), answer })
}

/// A TPU generation's layout of an array, as `tilewise predict --format json` has it, with the `causes` of its padding.
///
/// # Errors
/// Those of an element type or of bounds.
#[wasm_bindgen]
pub fn predict(element_type: &str, bounds: &[u32], tpu: &str) -> Answer {
    let element_type: ElementType = element_type.parse().map_err(plain)?;
    let generation: Generation = tpu.parse().map_err(plain)?;
    let array = Shape::array(element_type, bounds.iter().map(|&bound| u64::from(bound))).map_err(plain)?;
    let open = Shape::parse_as_written(&array.without_layout().to_string()).map_err(plain)?;
    let predicted = PredictedShape::of(&open, generation).map_err(plain)?;
    let shape = parse(predicted.shape())?;
    json(&shown(predicted, &shape))
}

/// The TPU generations, the oldest first, as JSON: `name` and `hbm_bytes` of each.
///
/// # Errors
/// None known.
#[wasm_bindgen]
pub fn generations() -> Answer {
    #[derive(Serialize)]
    struct Machine {
        name: &'static str,
        hbm_bytes: u64,
    }
    let machine = |generation: &Generation| Machine { name: generation.name(), hbm_bytes: generation.hbm_bytes() };
    json(&Generation::ALL.iter().map(machine).collect::<Vec<_>>())
}

fn parse(text: &str) -> Result<Shape, JsValue> {
    parse_shape(text).map_err(|failure| in_text(failure, text))
}

fn tiled(text: &str) -> Result<Tiled, JsValue> {
    Tiled::new(&parse(text)?).map_err(plain)
}
