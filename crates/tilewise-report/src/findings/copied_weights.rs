//! Weights that a program copies into another layout before it uses them: it holds them twice.

use super::{Words, code::LAYOUT};
use tilewise_audit::Recommendation;

pub(super) fn words(about: &Recommendation) -> Words {
    let array = about.array.as_ref();
    let shape = array.map(|array| &*array.shape_text).unwrap_or_default();
    let name = array.and_then(|array| array.op_name.as_ref()).map(|name| format!(" of `{name}`"));
    let sentence = format!(
        "Put the weights in the layout that the program wants, once, before it runs: it copies them into another one, \
         {shape}{}, and holds them twice",
        name.unwrap_or_default()
    );
    Words::new(sentence).task("Put the weights in the program's layout once, before it runs").jax(
        about,
        LAYOUT,
        "step = jax.jit(step, in_shardings=Format(Layout.AUTO))
compiled = step.lower(params, batch).compile()
params = jax.device_put(params, compiled.input_formats[0][0])",
    )
}
