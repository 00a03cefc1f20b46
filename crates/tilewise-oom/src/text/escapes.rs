//! Escapes in quoted texts: `\n`, `\"`, `\u2192`.

/// The text without escapes. Texts that aren't JSON may have backslashes of their own: one before another letter stays.
/// Surrogate pairs are left out, since no message has such characters.
pub(super) fn unescape(text: &str, is_json: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escaped = rest[at + 1..].chars().next();
        let mut length = 1 + escaped.map_or(0, char::len_utf8);
        match escaped {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => {}
            Some('b' | 'f') if is_json => {}
            Some(same @ ('"' | '\'' | '\\' | '/')) => out.push(same),
            Some('u') => match rest.get(at + 2..at + 6).and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
                Some(digits) => {
                    out.extend(char::from_u32(digits));
                    length += 4;
                }
                None => out.push('u'),
            },
            Some(other) if is_json => out.push(other),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}
