//! Pages of a cache, gathered whole.

use super::{
    Words,
    words::{at_line, list},
};
use tilewise_audit::{Recommendation, recommendation::finding::GatheredPages};

pub(super) fn words(finding: &GatheredPages, about: &Recommendation) -> Words {
    let GatheredPages { argument, merged, width, .. } = finding;
    Words::new(format!(
        "Keep `{argument}` as [{}] between calls, its last two dimensions merged, and take each {width} of the last where they \
         are used: what is gathered{} fills {width} of 128 lanes, and a reshape back would, too",
        list(merged),
        at_line(about)
    ))
    .task(format!("Keep `{argument}` as [{}] between calls", list(merged)))
}
