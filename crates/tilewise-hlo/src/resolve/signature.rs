//! `(parameters) -> result`, of the line above a computation and of the module's header.

use crate::scan::{balanced_end, peek, skip_trivia, trim};

/// The parameters and the result of `{(parameters)->result}`, as the header has them.
pub(super) fn interface(value: &str) -> Option<(&str, &str)> {
    signature(trim(value.strip_prefix('{')?.strip_suffix('}')?))
}

/// The parameters and the result of `(parameters) -> result`.
pub(super) fn signature(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    if peek(bytes, 0) != b'(' {
        return None;
    }
    let end = balanced_end(bytes, 0, false).ok()?;
    let result = text.get(skip_trivia(bytes, end)..)?.strip_prefix("->")?;
    Some((text.get(1..end - 1)?, trim(result)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layouts {
    Compared,
    Ignored,
}

/// Whether two texts are of one shape, but for white space, comments, and the marks of dynamic dimensions.
pub(super) fn is_same_shape(one: &str, other: &str, layouts: Layouts) -> bool {
    one == other || significant(one, layouts).eq(significant(other, layouts))
}

fn significant(text: &str, layouts: Layouts) -> impl Iterator<Item = u8> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at = skip_trivia(bytes, at);
            match peek(bytes, at) {
                0 => return None,
                b'<' | b'=' => at += 1,
                b'{' if layouts == Layouts::Ignored => at = balanced_end(bytes, at, false).unwrap_or(bytes.len()),
                byte => {
                    at += 1;
                    return Some(byte);
                }
            }
        }
    })
}
