//! Padding that a message counts, though no shape in it is padded: the shapes are cut off.

use super::{Words, words::at};
use tilewise_audit::recommendation::finding::CutOffShapes;

pub(super) fn words(finding: &CutOffShapes) -> Words {
    let name = finding.operation.as_deref();
    let by = name.map(|name| format!(", first of all those of `{name}`{}", at(finding.source.as_ref())));
    let change = if name.is_some_and(|name| name.contains("conv")) {
        "Fold neighbouring positions into the channels before a convolution of few channels (space to depth), or process the batch in \
         parts"
    } else {
        "Keep few columns or channels as separate arrays, or fold neighbours into them, from the arguments on"
    };
    Words::new(format!(
        "{change}: arrays whose shapes are cut off here are mostly padding{}, for a short dimension lies on the 128 lanes. The \
         list `Largest program allocations` of the whole message says which arrays",
        by.unwrap_or_default()
    ))
}
