//! An argument or a result in another order than the default one, which takes less: the caller pins it.

use super::{
    Words,
    code::{LAYOUT, put_in_order, results_in_any_order},
    words::{list, listed, named},
};
use tilewise_audit::{
    Recommendation,
    recommendation::{Target, finding::PinnedOrder},
};

pub(super) fn words(finding: &PinnedOrder, about: &Recommendation) -> Words {
    let names: Vec<(String, String)> = finding.arrays.iter().map(|(name, _)| named(name)).collect();
    if about.target == Target::Result {
        let function = finding.function.as_deref();
        let sentence = match function {
            Some(_) => "Take this result in the TPU's default layout: drop its order from `out_shardings`".to_owned(),
            None => format!(
                "Return {} in the default order of dimensions: the order {{{}}} is not the default one, so it is pinned, or \
                 follows from the operation that makes it: `Layout.AUTO` leaves it to the compiler",
                listed(&names.into_iter().map(|(name, _)| name).collect::<Vec<_>>()),
                list(&finding.order)
            ),
        };
        let note = if function.is_none() { "  # f: the function compiled" } else { "" };
        let code = format!("{}{note}", results_in_any_order(function.unwrap_or("f")));
        return Words::new(sentence).jax(about, LAYOUT, code);
    }
    let (them, pads) = if names.len() == 1 { ("it", "pads it") } else { ("them", "pads them") };
    let code: Vec<String> =
        finding.arrays.iter().zip(&names).map(|((_, order), (_, name))| put_in_order(name, order)).collect();
    let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    let sentence = format!(
        "Pass {} in the TPU's default layout: the caller pins {them} to the order {{{}}}, which {pads} and everything made from \
         {them}{}",
        listed(&names),
        list(&finding.order),
        if finding.may_be_needed { "; this assumes that no kernel needs that order" } else { "" }
    );
    Words::new(sentence).jax(about, LAYOUT, code.join("\n"))
}
