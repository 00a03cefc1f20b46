//! Tools about shapes and layouts.

use super::{Answer, next};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use tilewise::{BitcastAs, tpu::Generation};
use tilewise_audit::Failure;
use tilewise_report::{AsJson, BitcastAnswer, PredictedShape, Reader, ShapeSummary};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Shapes {
    /// Shapes in XLA's notation, such as f32[3,5]{1,0:T(2,2)}.
    shapes: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Predict {
    /// A shape without a layout, such as f32[400000,12].
    shape: String,
    /// A TPU generation (v2 v3 v4 v5e v5p v6e v7x); all of them if none is given.
    tpu: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Bitcast {
    /// The array whose bytes there are.
    from: String,
    /// The array to read them as.
    to: String,
}

pub(super) fn show(arguments: &Shapes) -> Answer {
    let mut reader = Reader::with_notes();
    let shown = arguments.shapes.iter().map(|text| match ShapeSummary::read(text, &mut reader) {
        Ok(summary) => json(&summary),
        Err(failure) => json!({ "error": AsJson(&failure), "input": text }),
    });
    let shown: Vec<Value> = shown.collect();
    Ok(json!({ "shapes": shown, "notes": reader.take_notes() }))
}

pub(super) fn predict(arguments: &Predict) -> Answer {
    let shape = Reader::without_notes().shape_as_written(&arguments.shape)?;
    let generations = match &arguments.tpu {
        Some(name) => vec![generation(name)?],
        None => Generation::ALL.to_vec(),
    };
    let predicted: Result<Vec<Value>, Failure> = generations
        .into_iter()
        .map(|generation| Ok(json(&PredictedShape::of(&shape, generation).map_err(Failure::from)?)))
        .collect();
    let predicted = predicted?;
    let shape = predicted.first().map_or(Value::Null, |first| first["shape"].clone());
    Ok(json!({
        "predicted": predicted,
        "next": [next("show", json!({ "shapes": [shape] }), "what each part of the layout means")],
    }))
}

pub(super) fn bitcast(arguments: &Bitcast) -> Answer {
    let line = format!("{}\t{}", arguments.from, arguments.to);
    let pair = tilewise_report::Pair::read(&line, &mut Reader::without_notes())?;
    Ok(json(&BitcastAnswer::of(&pair, BitcastAs::Any)?))
}

pub(super) fn generation(name: &str) -> Result<Generation, Failure> {
    Ok(name.parse::<Generation>()?)
}

/// The value as JSON. Serialising can't fail: all keys here are text.
pub(super) fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
