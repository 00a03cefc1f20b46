//! `tilewise steps`: how the buffer is made from the logical array.

use super::draw::run_steps;
use crate::{
    cli::{Rendering, StepsArgs},
    input::{each_item, parse_shape},
    output::Output,
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{DerivationStep, Operation, Tiled, interop::Notation};
use tilewise_audit::Failure;
use tilewise_report::style::{STRONG, styled};

pub(crate) fn run(args: &StepsArgs, output: &mut Output) -> io::Result<()> {
    if args.draw {
        return run_steps(&args.shapes, args.out.as_ref(), output);
    }
    each_item(&args.shapes, |input, readable| {
        let derived = readable.and_then(|()| derive(input, args.rendering));
        output.item(input, derived, Derived::write)
    })
}

#[derive(Serialize)]
struct Derived {
    shape: String,
    steps: Vec<StepJson>,
    /// The steps in the requested language.
    rendering: String,
    #[serde(skip)]
    is_text: bool,
}

/// One step: what it does, to which bounds, and whether bytes move.
#[derive(Serialize)]
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

fn derive(input: &str, rendering: Rendering) -> Result<Derived, Failure> {
    let tiled = Tiled::new(&parse_shape(input)?).map_err(|error| Failure::from(error).within(0..input.len()))?;
    check_length(&tiled)?;
    let derivation = tiled.derivation();
    let rendered = match rendering {
        Rendering::Text => format!("{derivation}\n"),
        Rendering::Numpy => derivation.numpy().to_string(),
        Rendering::Einops => derivation.einops().to_string(),
        Rendering::Mlir => format!("{}\n", Notation::Mlir.write(&tiled)?),
    };
    Ok(Derived {
        shape: derivation.shape().to_string(),
        steps: derivation.steps().iter().map(StepJson::from).collect(),
        rendering: rendered,
        is_text: rendering == Rendering::Text,
    })
}

impl Derived {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
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
