//! Pallas kernels, by the text that describes them.

use crate::{
    answer::{Answer, in_text, json, thrown},
    theme::themed,
};
use serde::Serialize;
use tilewise::tpu::Generation;
use tilewise_audit::Failure;
use tilewise_draw::BudgetPicture;
use tilewise_kernel::{Kernel, Limits, parts};
use tilewise_report::KernelBudget;
use wasm_bindgen::prelude::*;

/// The kernels of a text, as JSON: the generation that each names as `tpu`, or null, and for each generation with known
/// limits one of `budgets`: the line of `tilewise kernel --format json`, with the picture as `svg`.
///
/// # Errors
/// Those of parsing, with the span, and of [`Kernel::budget`].
#[wasm_bindgen]
pub fn kernels(text: &str, theme: &str) -> Answer {
    #[derive(Serialize)]
    struct Shown {
        tpu: Option<&'static str>,
        budgets: Vec<Drawn>,
    }
    #[derive(Serialize)]
    struct Drawn {
        #[serde(flatten)]
        budget: KernelBudget,
        svg: String,
    }
    let options = themed(theme);
    let budget = |kernel: &Kernel, generation: Generation| {
        let budget = KernelBudget::of(kernel, Some(generation)).map_err(|failure| thrown(&failure))?;
        // The page says the sentence itself.
        let picture = BudgetPicture { summary: String::new(), ..budget.picture() };
        Ok(Drawn { svg: picture.to_svg(&options), budget })
    };
    let mut shown = Vec::new();
    let mut start = 0;
    for part in parts(text) {
        // The parts lie in the text one behind the other, with a divider between two.
        start += text.get(start..).and_then(|rest| rest.find(part)).unwrap_or_default();
        let kernel: Kernel =
            part.parse().map_err(|error| in_text(Failure::from(error).within(start..start + part.len()), text))?;
        start += part.len();
        let known = Generation::ALL.iter().filter(|generation| Limits::of(**generation).is_some());
        let budgets = known.map(|generation| budget(&kernel, *generation)).collect::<Result<_, JsValue>>()?;
        shown.push(Shown { tpu: kernel.generation.map(Generation::name), budgets });
    }
    json(&shown)
}
