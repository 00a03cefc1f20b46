//! A cache whose heads are padded to tiles where it is used.

use super::{
    Words,
    words::{at_line, bounds_of, list, quoted},
};
use tilewise_audit::{Recommendation, recommendation::finding::PaddedHeads};

pub(super) fn words(finding: &PaddedHeads, about: &Recommendation) -> Words {
    let PaddedHeads { names, merged, width, .. } = finding;
    Words::new(format!(
        "Keep {} as [{}] between calls, the last two dimensions merged, and take each {width} of the last where they are \
         used: [{}]{} is held row-major and fills {width} of 128 lanes; a reshape of all of it back would, too",
        quoted(names),
        list(merged),
        bounds_of(about),
        at_line(about)
    ))
    .task(format!("Keep {} as [{}] between calls", quoted(names), list(merged)))
}
