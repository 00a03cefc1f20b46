//! Words that several sentences need.

use crate::style::bytes;
use tilewise::Shape;
use tilewise_audit::{
    Cause, Recommendation, SourceLine,
    recommendation::finding::{ArrayName, Checkpointed},
};
use tilewise_oom::PrintedSize;

/// ` at model.py:12`: where something comes from; empty where that isn't known.
pub(super) fn at(source: Option<&SourceLine>) -> String {
    let line = |source: &SourceLine| {
        let file = source.file.rsplit('/').next().unwrap_or_default();
        format!("{file}:{}", source.line)
    };
    let library = |source: &SourceLine| source.library.as_ref().map(|library| format!(" ({})", line(library)));
    source.map(|source| format!(" at {}{}", line(source), library(source).unwrap_or_default())).unwrap_or_default()
}

/// The source of a recommendation's array: ` at model.py:12`, or empty.
pub(super) fn at_line(about: &Recommendation) -> String {
    at(about.array.as_ref().and_then(|array| array.source.as_ref()))
}

/// The array of a recommendation without its layout, such as `f32[4,8]`.
pub(super) fn bare(about: &Recommendation) -> String {
    let array = about.array.as_ref();
    let shape = array.and_then(|array| array.shape()).map(|shape| shape.without_layout().to_string());
    shape.unwrap_or_else(|| array.map(|array| array.shape_text.clone()).unwrap_or_default())
}

/// The bounds of the array of a recommendation, such as `4,8`.
pub(super) fn bounds_of(about: &Recommendation) -> String {
    let shape = about.array.as_ref().and_then(|array| array.shape());
    let bounds = shape.iter().flat_map(Shape::dimensions).filter_map(|dimension| dimension.bound());
    list(&bounds.collect::<Vec<u64>>())
}

/// `4,8`
pub(super) fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// A percentage as a part: `0.98`, `1.00`.
pub(super) fn part(percent: u64) -> String {
    format!("{}.{:02}", percent / 100, percent % 100)
}

/// A fraction of a GPU's memory that leaves a sixth more beside the pool.
pub(super) fn lower_fraction(value: &str) -> String {
    let part = value.parse::<f64>().unwrap_or(0.75);
    format!("{:.2}", (part - 0.15).max(0.1)).trim_start_matches('0').to_owned()
}

/// `a`, `a and b`, `a, b and 3 others`.
pub(super) fn listed(names: &[String]) -> String {
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

/// As `listed`, with each name between backticks.
pub(super) fn quoted(names: &[String]) -> String {
    listed(&names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>())
}

/// The sentence with its first letter large.
pub(crate) fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The name of an argument or result, in a sentence and in code.
pub(super) fn named(name: &ArrayName) -> (String, String) {
    let path = |index: &[u32]| if index.is_empty() { String::new() } else { format!(" at {{{}}}", list(index)) };
    match name {
        ArrayName::Named(name) => (format!("`{name}`"), name.clone()),
        ArrayName::Argument(number, index) => {
            (format!("argument {number}{}", path(index)), format!("argument_{number}"))
        }
        ArrayName::Result(index) => (format!("the result{}", path(index)), "result".to_owned()),
        _ => ("this array".to_owned(), "array".to_owned()),
    }
}

/// A size with the message's own digits, so that it is found there, and with this report's units: `477.5 KiB` for
/// `477.5K`.
pub(crate) fn printed(size: &PrintedSize) -> String {
    let text = size.text();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).trim_end();
    let unit = match text.get(digits.len()..).unwrap_or_default().trim_start() {
        "" | "B" | "bytes" | "kB" => return bytes(size.bytes()),
        "K" | "KiB" => "KiB",
        "M" | "MiB" => "MiB",
        "G" | "GiB" => "GiB",
        "T" | "TiB" => "TiB",
        _ => return text.to_owned(),
    };
    format!("{digits} {unit}")
}

/// ` (`attention` 480.00 MiB, `mlp` 160.00 MiB)`: the modules that keep most of a layer.
pub(super) fn modules(layers: &Checkpointed) -> String {
    let modules: Vec<String> =
        layers.modules.iter().map(|(module, held)| format!("`{module}` {}", bytes(*held))).collect();
    if modules.is_empty() { String::new() } else { format!(" ({})", modules.join(", ")) }
}

/// The cause of an array's padding, in words.
pub(crate) fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Axis(axis) => axis.to_string(),
        Cause::WideElements { stored, natural } => format!("each element takes {stored} bits instead of {natural}"),
        Cause::Tail(alignment) => format!("padded at the end to a multiple of {alignment} elements"),
        Cause::Untiled => {
            format!("an array without tiles fills blocks of {} bytes", tilewise::tpu::UNTILED_BLOCK_BYTES)
        }
        Cause::Shared(bytes) => format!("it shares an allocation of {bytes} bytes"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::causes_in_words;
    use tilewise::Tiled;

    fn causes_of(text: &str) -> Vec<String> {
        causes_in_words(&tilewise_audit::causes(&Tiled::new(&text.parse().expect(text)).expect(text)))
    }

    #[test]
    fn negligible_causes_are_left_out() {
        // 100,000 rows are padded as well, by one in a thousand.
        assert_eq!(
            causes_of("f32[100001,12]{1,0:T(8,128)}"),
            ["dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used"]
        );
        assert_eq!(
            causes_of("f32[3,5]{1,0:T(8,128)}"),
            [
                "dimension 1 (size 5) lies on the 128 lanes: 5 of 128 used",
                "dimension 0 (size 3) lies on the 8 rows of a tile: 3 of 8 used"
            ]
        );
    }

    #[test]
    fn what_is_no_axis_is_named_too() {
        assert_eq!(causes_of("pred[64,512]{1,0:T(8,128)E(32)}"), ["each element takes 32 bits instead of 8"]);
        assert_eq!(causes_of("f32[7]{0:L(1024)}"), ["padded at the end to a multiple of 1024 elements"]);
        assert!(causes_of("f32[8,128]{1,0:T(8,128)}").is_empty());
    }
}
