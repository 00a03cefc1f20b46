//! The layout that a TPU generation gives an array.

use super::show::ShapeSummary;
use crate::{
    Terminal, WriteText,
    style::{FAINT, bytes, bytes_both, styled, times, waste_style},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{
    Error, Shape, TileFormat,
    tpu::{self, Generation},
};

/// The answer of `tilewise predict`: the summary of the predicted shape, and the rule it follows.
#[derive(Clone, Debug, Serialize)]
pub struct PredictedShape {
    tpu: &'static str,
    policy: &'static str,
    checked_with: &'static str,
    hbm_bytes: u64,
    #[serde(flatten)]
    summary: ShapeSummary,
}

impl PredictedShape {
    /// The layout that a generation gives a shape without a layout, or with an order alone.
    ///
    /// # Errors
    /// Those of [`tpu::predict`].
    pub fn of(shape: &Shape, generation: Generation) -> Result<Self, Error> {
        let prediction = tpu::predict(shape, generation)?;
        Ok(Self {
            tpu: generation.name(),
            policy: prediction.policy.as_str(),
            checked_with: tpu::CHECKED_WITH,
            hbm_bytes: generation.hbm_bytes(),
            summary: ShapeSummary::of(&prediction.shape),
        })
    }

    /// The predicted shape's canonical text.
    #[must_use]
    pub fn shape(&self) -> &str {
        self.summary.shape()
    }

    /// Its line in a table of generations: its size, and the shape.
    #[must_use]
    pub fn row(&self) -> String {
        let sizes = self.summary.sizes();
        let (size, expansion) = match (sizes.physical_bytes, sizes.expansion) {
            (Some(physical), Some(expansion)) => (bytes(physical), expansion),
            _ => ("-".to_owned(), 1.0),
        };
        let numbers = styled(waste_style(expansion), format!("{size:>12}  {:>7}", times(expansion)));
        format!("  {:<4}{numbers}  {}", self.tpu, self.summary.shape())
    }
}

impl WriteText for PredictedShape {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let why = match self.policy {
            "default" => "default layout",
            _ => "tiles for the given order",
        };
        let heading = format!("TPU {}: {why}, checked with {}", self.tpu, self.checked_with);
        writeln!(out, "{}", styled(FAINT, heading))?;
        if let Some(words) = document_in_words(self.summary.source()) {
            writeln!(out, "{}", styled(FAINT, words))?;
        }
        if let Some(takes) = self.summary.sizes().physical_bytes.filter(|takes| *takes > self.hbm_bytes) {
            let (takes, holds) = (bytes_both(takes), bytes_both(self.hbm_bytes));
            let words = format!("Does not fit: it takes {takes}, and HBM has {holds}.");
            writeln!(out, "{}", styled(waste_style(f64::INFINITY), words))?;
        }
        self.summary.write_text(terminal, out)
    }
}

/// The name of these tiles in XLA's tiled-layout document, or its format for such an array; `None` if it has none.
fn document_in_words(shape: &Shape) -> Option<String> {
    let format = TileFormat::documented_for_tpu(shape.as_array()?)?;
    let tiles: String = shape.layout()?.tiles().iter().map(ToString::to_string).collect();
    let (name, documented) = (format.name(), format.layout());
    let used_by = format.used_by().trim_start_matches("TPU: ");
    Some(match documented == format!("T{tiles}") {
        true => format!("{documented} is {name} of XLA's tiled-layout document: {used_by}"),
        false => format!("XLA's tiled-layout document has {documented} here, {name}: {used_by}"),
    })
}
