//! What an array holds and takes.

use crate::causes;
use tilewise::{Error, Shape, Tiled};

/// The figures that a row needs.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
    pub(crate) causes: Vec<String>,
}

impl Sizes {
    pub(crate) fn of(shape: &Shape) -> Result<Self, Error> {
        let tiled = Tiled::new(shape)?;
        Ok(Self { logical: tiled.logical_bytes(), physical: tiled.physical_bytes(), causes: causes(&tiled) })
    }
}

/// How many times its logical size an array takes; 1 for an array without elements.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
pub(crate) fn expansion(physical: u64, logical: u64) -> f64 {
    if logical == 0 { 1.0 } else { physical as f64 / logical as f64 }
}
