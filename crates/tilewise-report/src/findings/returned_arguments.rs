//! Results that are arguments, unchanged.

use super::{Words, words::quoted};

pub(super) fn words(names: &[String]) -> Words {
    let names = quoted(names);
    Words::new(format!(
        "Don't return {names}, which the function doesn't change: the result is a copy of what the caller has"
    ))
    .task(format!("Don't return {names}, which the function doesn't change"))
}
