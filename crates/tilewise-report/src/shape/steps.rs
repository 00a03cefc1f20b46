//! The steps from the logical array to its buffer.

use crate::{
    Terminal, WriteText,
    style::{STRONG, styled},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{DerivationStep, Operation, Shape, Tiled, interop::Notation};
use tilewise_audit::Failure;

/// The language of the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepLanguage {
    /// One line per step, in words.
    #[default]
    Text,
    /// A NumPy program, in both directions.
    Numpy,
    /// An einops program, in both directions.
    Einops,
    /// MLIR affine maps from the logical index to the physical index and to the offset.
    Mlir,
}

/// The steps from the array to its buffer: the answer of `tilewise steps`.
#[derive(Clone, Debug, Serialize)]
pub struct Derived {
    shape: String,
    steps: Vec<StepJson>,
    /// The steps in the requested language.
    rendering: String,
    #[serde(skip)]
    is_text: bool,
}

/// One step: its operation, its bounds before and after, and whether bytes move.
#[derive(Clone, Debug, Serialize)]
struct StepJson {
    operation: &'static str,
    from: Vec<u64>,
    to: Vec<u64>,
    /// The tile the step belongs to, 0 the first; null before and after the tiles.
    tile: Option<usize>,
    effect: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permutation: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    padding: Option<Vec<u64>>,
}

impl From<&DerivationStep> for StepJson {
    fn from(step: &DerivationStep) -> Self {
        let (mut permutation, mut padding) = (None, None);
        match &step.operation {
            Operation::Transpose { permutation: order } => permutation = Some(order.clone()),
            Operation::Pad { padding: added } => padding = Some(added.clone()),
            _ => {}
        }
        Self {
            operation: step.operation.name(),
            from: step.from.clone(),
            to: step.to.clone(),
            tile: step.level,
            effect: step.effect.as_str(),
            permutation,
            padding,
        }
    }
}

impl Derived {
    /// The steps of a shape.
    ///
    /// # Errors
    /// A shape without sizes, `derivation_too_long`, or steps that the language can't express.
    pub fn of(shape: &Shape, language: StepLanguage) -> Result<Self, Failure> {
        let tiled = Tiled::new(shape)?;
        check_length(&tiled)?;
        let derivation = tiled.derivation();
        let rendering = match language {
            StepLanguage::Text => format!("{derivation}\n"),
            StepLanguage::Numpy => derivation.numpy().to_string(),
            StepLanguage::Einops => derivation.einops().to_string(),
            StepLanguage::Mlir => format!("{}\n", Notation::Mlir.write(&tiled)?),
        };
        Ok(Self {
            shape: derivation.shape().to_string(),
            steps: derivation.steps().iter().map(StepJson::from).collect(),
            rendering,
            is_text: language == StepLanguage::Text,
        })
    }

    /// The steps in the language.
    #[must_use]
    pub fn rendering(&self) -> &str {
        &self.rendering
    }
}

impl WriteText for Derived {
    fn write_text(&self, _: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        if self.is_text {
            writeln!(out, "{}", styled(STRONG, &self.shape))?;
        }
        out.write_all(self.rendering.as_bytes())
    }
}

/// Tiles × axes of the longest derivation that is written.
const LONGEST: usize = 100_000;

/// Each step of a derivation names the bounds of every axis, and each tile adds axes and steps.
fn check_length(tiled: &Tiled) -> Result<(), Failure> {
    let tiles = tiled.array().layout().map_or(0, |layout| layout.tiles().len());
    if tiles.saturating_mul(tiled.physical_dimensions().len()) > LONGEST {
        return Err(Failure::new("derivation_too_long", "these tiles make more steps than can be printed usefully"));
    }
    Ok(())
}
