//! The lines of the reader's source in a first screen.

use super::causes;
use crate::Quotes;
use std::collections::BTreeMap;
use tilewise_audit::{Recommendation, Report, SourceLine};

impl Quotes {
    /// The files that a report's first screen names, if `read` gives their text.
    pub fn read(report: &Report, mut read: impl FnMut(&str) -> Option<String>) -> Self {
        let (causes, advice) = (causes(report), report.advice());
        let of_causes = causes.iter().filter_map(|cause| cause.source.as_ref());
        let of_advice = advice.iter().filter_map(Recommendation::line);
        let mut files = BTreeMap::new();
        for SourceLine { file, .. } in of_causes.chain(of_advice) {
            if !files.contains_key(file) {
                files.insert(file.clone(), read(file));
            }
        }
        Self(files.into_iter().filter_map(|(file, text)| Some((file, text?))).collect())
    }
}
