//! "Did you mean …?" for element types.

use crate::{ElementType, Error, ErrorKind};
use alloc::{format, vec::Vec};
use core::ops::Range;

/// Names of types in NumPy, C and PyTorch.
const ELSEWHERE: [(&str, &str); 12] = [
    ("bool", "pred"),
    ("float", "f32"),
    ("double", "f64"),
    ("half", "f16"),
    ("bfloat16", "bf16"),
    ("float16", "f16"),
    ("float32", "f32"),
    ("float64", "f64"),
    ("int8", "s8"),
    ("int32", "s32"),
    ("int64", "s64"),
    ("uint8", "u8"),
];

/// The error for a name that is no element type.
pub(crate) fn unknown_element_type(name: &str, span: Range<usize>) -> Error {
    let shown: alloc::string::String = name.chars().take(40).collect();
    let error = Error::new(ErrorKind::UnknownElementType, format!("`{shown}` is not an element type")).at(span);
    match nearest(name) {
        _ if name == "T" => error.with_help("a tile stands in a layout, such as `f32[3,5]{1,0:T(2,2)}`"),
        Some(known) => error.with_help(format!("did you mean `{known}`?")),
        None => error.with_help(
            "element types are pred, s1 … s64, u1 … u64, f16, bf16, f32, f64, c64, c128 and the f4, f6 and f8 kinds",
        ),
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > 16 {
        return None;
    }
    let name = name.to_ascii_lowercase();
    if let Some((_, known)) = ELSEWHERE.iter().find(|(other, _)| *other == name) {
        return Some(known);
    }
    let known = ElementType::ALL.iter().map(|t| t.name());
    // Among equally near names, a forgotten letter is likelier than a wrong one: `b16` is `bf16`.
    let rank = |known: &str| (distance(&name, known), !is_subsequence(&name, known));
    let ((distance, _), known) = known.map(|known| (rank(known), known)).min_by_key(|&(rank, _)| rank)?;
    // One slip in a short name, two in a long one: more is another word.
    (distance <= if name.len() < 6 { 1 } else { 2 }).then_some(known)
}

fn is_subsequence(name: &str, known: &str) -> bool {
    let mut letters = known.bytes();
    name.bytes().all(|letter| letters.any(|l| l == letter))
}

/// Levenshtein's edit distance, in bytes.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_was_meant() {
        for (wrong, right) in [("b16", "bf16"), ("bool", "pred"), ("f8e4m3f", "f8e4m3fn"), ("U33", "u32")] {
            let help = format!("did you mean `{right}`?");
            assert_eq!(unknown_element_type(wrong, 0..wrong.len()).help(), Some(help.as_str()));
        }
        assert!(unknown_element_type("bananas", 0..7).help().is_some_and(|h| h.starts_with("element types are")));
    }
}
