//! Words of sentences.

/// `a`, `a and b`, `a, b and 3 others`.
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, two, rest @ ..] => {
            let others = if rest.len() == 1 { "other" } else { "others" };
            format!("{one}, {two} and {} {others}", rest.len())
        }
    }
}

/// `4,8`
pub(crate) fn bounds_text(bounds: &[u64]) -> String {
    bounds.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

/// The same with its first letter large.
pub(crate) fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
