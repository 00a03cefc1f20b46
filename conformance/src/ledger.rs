//! The known disagreements, each with its reason. Any other fails the run.

use crate::xla::Answer;
use tilewise::{ElementType, Error, ErrorKind as Kind, Shape, ShapeKind};

pub(crate) const BUFFER_HASH: &str = "XLA gives equal buffers different hashes";

const BOUNDS_WITH_ZERO: &str = "the product of the bounds is 0; XLA's overflows before it reaches the 0";

const PACKED: &str = "`E` makes the array small enough; XLA counts whole elements";

const SPARSE: &str = "XLA reads and prints `#` and `*`, but considers them invalid";

/// The known reason for a disagreement on this text; `None` if it is unexpected.
pub(crate) fn reason(text: &str, xla: &Answer, ours: Result<&Shape, &Error>) -> Option<&'static str> {
    let bare = without_blanks(text);
    match (xla, ours) {
        (Answer::Crashed(_), Ok(_)) => Some("lenient: `-1` for `*`, where XLA aborts").filter(|_| bare.contains("-1")),
        (Answer::Crashed(_), Err(error)) if error.kind() == Kind::NestingTooDeep => Some("XLA's stack is exhausted"),
        (Answer::Crashed(_), Err(_)) => deadly(&bare),
        (Answer::Refused(_), Ok(shape)) => lenient(&bare).or_else(|| {
            // XLA's parser validates the elements of tuples, and nothing else.
            if matches!(shape.kind(), ShapeKind::Tuple) { invalid_to_xla(shape) } else { None }
        }),
        (Answer::Accepted(theirs), Ok(shape)) if !theirs.valid => invalid_to_xla(shape),
        (Answer::Accepted(theirs), Err(error)) => accepted_by_accident(text, theirs.valid, error),
        _ => None,
    }
}

/// The known reason why XLA's parser accepts a text that tilewise refuses.
fn accepted_by_accident(text: &str, valid: bool, error: &Error) -> Option<&'static str> {
    let in_layout = in_layout(text, error);
    let wrong = error.span().and_then(|span| text.get(span)).unwrap_or("");
    let is_least_int64 = wrong.trim_start_matches('-') == "9223372036854775808";
    let (reason, may_be) = match error.kind() {
        Kind::Syntax | Kind::UnknownElementType => {
            ("XLA ignores an error in a property if the layout's `}` comes next", in_layout)
        }
        Kind::Overflow if in_layout => ("XLA wraps or discards a number outside int64", true),
        Kind::Overflow if !valid => ("XLA's parser does not check the size", true),
        Kind::Overflow => ("XLA reads `<=9223372036854775808` as an unbounded dimension", is_least_int64),
        Kind::InvalidDimension => ("XLA reads `<=-9223372036854775808` as an unbounded dimension", is_least_int64),
        Kind::InvalidTile => ("XLA accepts tiles that are empty, of size 0, or end in `*`", in_layout),
        Kind::InvalidMemorySpace => ("XLA truncates the memory space to eight bits", in_layout),
        Kind::InvalidMetadataPrefix => ("XLA keeps a negative prefix, but does not print it", in_layout),
        Kind::SparseUnsupported => ("XLA discards `D(…)`", in_layout),
        Kind::NestingTooDeep => ("the limit here is 1,024 levels; XLA's is its stack", true),
        Kind::NotAPermutation
        | Kind::InvalidElementSize
        | Kind::InvalidIndexType
        | Kind::InvalidPointerType
        | Kind::InvalidSplitConfig => ("XLA's parser does not validate", !valid && in_layout),
        _ => return None,
    };
    may_be.then_some(reason)
}

/// The known reason for a crash of XLA, anywhere in the text.
fn deadly(bare: &str) -> Option<&'static str> {
    let after = |start: &'static str| bare.match_indices(start).map(move |(at, _)| &bare[at + start.len()..]);
    let leaf = |name| after(name).any(|rest| !rest.starts_with(']') || rest.starts_with("]{"));
    if leaf("token[") || leaf("opaque[") {
        return Some("XLA aborts on dimensions or a layout of a token or opaque");
    }
    let is_natural = |number: &str| number.parse::<i64>().is_ok_and(|n| n >= 0);
    let number = |text: &str| text.split(|c: char| !matches!(c, '0'..='9' | '-')).next().unwrap_or("").to_owned();
    if after("L(").any(|rest| !is_natural(&number(rest)) || number(rest).parse() == Ok(0)) {
        return Some("XLA aborts on a tail padding below 1");
    }
    let tiles =
        after("T(").map(|rest| rest.split(|c: char| !matches!(c, '0'..='9' | '-' | '*' | ',' | '(' | ')')).next());
    let mut sizes = tiles.flatten().flat_map(|tiles| tiles.split(['*', ',', '(', ')'])).filter(|size| !size.is_empty());
    sizes.any(|size| !is_natural(size)).then_some("XLA aborts on a negative tile size")
}

/// Spellings from XLA's documents that XLA itself refuses.
fn lenient(bare: &str) -> Option<&'static str> {
    let mut words = bare.split(|c: char| !c.is_ascii_alphanumeric());
    let other_case = |word: &str| {
        let lower = word.to_ascii_lowercase();
        word != lower && (["token", "opaque"].contains(&&*lower) || ElementType::ALL.iter().any(|t| t.name() == lower))
    };
    let spellings = [
        ("lenient: a name in another case", words.any(other_case)),
        ("lenient: tiles without `T`", bare.contains(":(")),
        ("lenient: `∗` for `*`", bare.contains('∗')),
        ("lenient: `{}` after a scalar", bare.contains("[]{}")),
    ];
    spellings.into_iter().find_map(|(reason, found)| found.then_some(reason))
}

/// The known reason why `ShapeUtil::ValidateShape` refuses a shape that tilewise accepts.
fn invalid_to_xla(shape: &Shape) -> Option<&'static str> {
    shape.leaves().find_map(|(_, leaf)| {
        let (array, layout) = (leaf.as_array()?, leaf.layout()?);
        if layout.index_primitive_type().or(layout.pointer_primitive_type()).is_some() {
            return Some(SPARSE);
        }
        let bounds = || array.dimensions().iter().filter_map(|d| d.bound());
        let natural_bytes = u64::from(array.element_type().natural_bytes());
        let multiply = |n: u64, bound| n.checked_mul(bound).filter(|&n| n <= tilewise::MAX_SIZE);
        let fits = bounds().filter(|&n| n > 0).try_fold(natural_bytes, multiply).is_some();
        let element_size = layout.element_size_in_bits().unwrap_or(u64::MAX);
        match fits {
            true => None,
            false if bounds().any(|n| n == 0) => Some(BOUNDS_WITH_ZERO),
            false => (element_size < 8 * natural_bytes).then_some(PACKED),
        }
    })
}

/// Whether the error is between a layout's braces.
fn in_layout(text: &str, error: &Error) -> bool {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
    before.matches('{').count() > before.matches('}').count()
}

/// The text without white space and comments.
fn without_blanks(text: &str) -> String {
    let (mut bare, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let comment = if rest.starts_with("/*") {
            Some("*/")
        } else if rest.starts_with("//") {
            Some("\n")
        } else {
            None
        };
        rest = match comment {
            Some(end) => rest[2..].split_once(end).map_or("", |(_, rest)| rest),
            None => &rest[first.len_utf8()..],
        };
        if comment.is_none() && !first.is_ascii_whitespace() {
            bare.push(first);
        }
    }
    bare
}
