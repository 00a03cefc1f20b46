//! Words of a text, and separators between them.

/// Maximum bytes between two words of one sentence: a line end and the next line's prefix.
const LONGEST_SEPARATOR: usize = 256;

/// Whether a character is part of a word.
pub(crate) fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the word that `text` begins with; 0 if it begins with something else.
pub(crate) fn length(text: &str) -> usize {
    let ascii = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    if text.as_bytes().get(ascii).is_none_or(u8::is_ascii) {
        return ascii;
    }
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// Where the next word begins, from `at` on: past white space, punctuation and escaped line ends.
pub(crate) fn next(text: &str, at: usize) -> usize {
    let from = text.get(at..).unwrap_or("");
    let mut rest = from;
    while let Some(c) = rest.chars().next() {
        if is_part(c) || from.len() - rest.len() >= LONGEST_SEPARATOR {
            break;
        }
        let is_escape = c == '\\' && matches!(rest.as_bytes().get(1), Some(b'n' | b't' | b'r'));
        rest = &rest[c.len_utf8() + usize::from(is_escape)..];
    }
    text.len() - rest.len()
}

/// The end of `word`, which is in lower case, if it stands at `at`: whole, or divided by a line end.
pub(crate) fn matches(text: &str, at: usize, word: &str) -> Option<usize> {
    let end = at + length(text.get(at..)?);
    let found = &text[at..end];
    if found.len() == word.len() {
        return found.eq_ignore_ascii_case(word).then_some(end);
    }
    let (first, second) = word.split_at_checked(found.len()).filter(|(first, _)| !first.is_empty())?;
    let broken = text[end..].strip_prefix('-').unwrap_or(&text[end..]);
    let rest = broken.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n')?.trim_start();
    let is_divided = found.eq_ignore_ascii_case(first)
        && length(rest) == second.len()
        && rest[..second.len()].eq_ignore_ascii_case(second);
    is_divided.then(|| text.len() - rest.len() + second.len())
}

/// Start and end of each word in `text`.
pub(crate) fn all(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = next(text, at);
            let end = start + length(&text[start..]);
            if end > start {
                at = end;
                return Some((start, end));
            }
            if start >= text.len() {
                return None;
            }
            at = start; // a long separator
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_separators() {
        let words = |text: &'static str| all(text).map(|(start, end)| &text[start..end]).collect::<Vec<_>>();
        assert_eq!(words("Used **19.4G**,\\n`of` é_1…x\n"), ["Used", "19", "4G", "of", "é_1", "x"]);
        assert_eq!(words(&"=".repeat(1000).leak()[..]).len(), 0);
        assert_eq!(words(""), [""; 0]);
        assert_eq!(matches("Memo-\n  ry x", 0, "memory"), Some(10));
        assert_eq!(matches("mem\nory", 0, "memory"), Some(7));
        assert_eq!(matches("mem ory", 0, "memory"), None);
        assert_eq!(matches("memorys", 0, "memory"), None);
        assert_eq!(matches("HBM", 0, "hbm"), Some(3));
    }
}
