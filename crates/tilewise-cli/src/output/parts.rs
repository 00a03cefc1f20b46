//! Parts of the JSON objects that several verbs print: source lines and fixes.

use serde::Serialize;
use tilewise_audit::{
    SourceLine,
    fix::{Advice, Fix},
};

/// A line of the user's program.
#[derive(Serialize)]
pub(crate) struct SourceJson<'a> {
    file: &'a str,
    line: u32,
    function: Option<&'a str>,
}

impl<'a> From<&'a SourceLine> for SourceJson<'a> {
    fn from(line: &'a SourceLine) -> Self {
        Self { file: &line.file, line: line.line, function: line.function.as_deref() }
    }
}

/// One change, priced.
#[derive(Serialize)]
pub(crate) struct FixJson {
    kind: &'static str,
    sentence: String,
    jax: String,
    arrays: Vec<ArrayJson>,
    bytes_before: u64,
    bytes_after: u64,
    bytes_saved: u64,
    changes_values: bool,
}

#[derive(Serialize)]
struct ArrayJson {
    shape: String,
    count: u64,
}

/// The fixes of an advice, the best first.
pub(crate) fn fixes(advice: Option<&Advice>) -> Vec<FixJson> {
    advice.map_or(Vec::new(), |advice| advice.fixes.iter().map(FixJson::from).collect())
}

/// The best fix in one sentence: the field `fix`.
pub(crate) fn sentence(advice: Option<&Advice>) -> Option<String> {
    advice?.best().map(|fix| fix.sentence.clone())
}

impl From<&Fix> for FixJson {
    fn from(fix: &Fix) -> Self {
        let arrays = fix.arrays.iter().map(|array| ArrayJson { shape: array.shape.to_string(), count: array.count });
        Self {
            kind: fix.kind.as_str(),
            sentence: fix.sentence.clone(),
            jax: fix.jax.clone(),
            arrays: arrays.collect(),
            bytes_before: fix.bytes_before,
            bytes_after: fix.bytes_after,
            bytes_saved: fix.bytes_saved(),
            changes_values: fix.changes_values,
        }
    }
}
