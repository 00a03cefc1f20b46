//! `tilewise predict`: the layout a TPU generation picks, and the physical size.

use crate::{
    cli::{PredictArgs, Tpu},
    input::each_item,
    output::{Output, terminal::terminal},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{
    Shape, Tiled,
    tpu::{self, Generation},
};
use tilewise_audit::Failure;
use tilewise_report::{
    ShapeSummary, WriteText,
    style::{FAINT, STRONG, bytes, bytes_both, styled, times, waste_style},
};

pub(crate) fn run(args: &PredictArgs, output: &mut Output) -> io::Result<()> {
    each_item(&args.shapes, |input, readable| {
        let shape = readable.and_then(|()| Ok(Shape::parse_as_written(input)?));
        match (shape, args.tpu) {
            (Err(failure), _) => output.failure(input, failure),
            (Ok(shape), Tpu::One(generation)) => {
                output.item_as(input, predicted(&shape, input, generation), Predicted::write)
            }
            (Ok(shape), Tpu::All) => {
                for (position, &generation) in Generation::ALL.iter().enumerate() {
                    output.item_as(input, predicted(&shape, input, generation), |row: &Predicted, out| {
                        if position == 0 {
                            writeln!(out, "{}", styled(STRONG, input))?;
                        }
                        row.write_row(out)
                    })?;
                }
                output.text("\n")
            }
        }
    })
}

/// The fields of `show` for the predicted shape, and the rule it follows.
#[derive(Serialize)]
struct Predicted {
    tpu: &'static str,
    policy: &'static str,
    checked_with: &'static str,
    hbm_bytes: u64,
    #[serde(flatten)]
    shown: ShapeSummary,
    #[serde(skip)]
    tiled: Option<Tiled>,
}

fn predicted(shape: &Shape, input: &str, generation: Generation) -> Result<Predicted, Failure> {
    let prediction = tpu::predict(shape, generation).map_err(|error| Failure::from(error).within(0..input.len()))?;
    Ok(Predicted {
        tpu: generation.name(),
        policy: prediction.policy.as_str(),
        checked_with: tpu::CHECKED_WITH,
        hbm_bytes: generation.hbm_bytes(),
        shown: ShapeSummary::of(&prediction.shape),
        tiled: Tiled::new(&prediction.shape).ok(),
    })
}

impl Predicted {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let why = match self.policy {
            "default" => "default layout",
            _ => "tiles for the given order",
        };
        let heading = format!("TPU {}: {why}, checked with {}", self.tpu, self.checked_with);
        writeln!(out, "{}", styled(FAINT, heading))?;
        if let Some(tiled) = self.tiled.as_ref().filter(|tiled| tiled.physical_bytes() > self.hbm_bytes) {
            let (takes, holds) = (bytes_both(tiled.physical_bytes()), bytes_both(self.hbm_bytes));
            writeln!(
                out,
                "{}",
                styled(waste_style(f64::INFINITY), format!("Does not fit: it takes {takes}, and HBM has {holds}."))
            )?;
        }
        self.shown.write_text(&terminal(), out)
    }

    fn write_row(&self, out: &mut dyn Write) -> io::Result<()> {
        let (size, expansion) = match &self.tiled {
            Some(tiled) => (bytes(tiled.physical_bytes()), tiled.expansion()),
            None => ("-".to_owned(), 1.0),
        };
        let numbers = styled(waste_style(expansion), format!("{size:>12}  {:>7}", times(expansion)));
        writeln!(out, "  {:<4}{numbers}  {}", self.tpu, self.shown.shape())
    }
}
