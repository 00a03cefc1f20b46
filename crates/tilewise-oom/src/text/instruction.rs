//! The lines of HLO text that messages quote: where a shape, a pair of brackets and a quotation end.

/// The length of the shape that `text` begins with, `f32[8]{0:T(256)}` or `(…)` for a tuple; 0 if it begins otherwise.
pub(crate) fn shape_length(text: &str) -> usize {
    let name = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    match (&text[..name], text.as_bytes().get(name)) {
        // `b(…)` is a buffer type; any other name in front of a parenthesis is an opcode.
        ("" | "b", Some(b'(')) => brackets_end(text, name).unwrap_or(0),
        ("", _) => 0,
        (_, Some(b'[')) => {
            let Some(end) = brackets_end(text, name) else { return 0 };
            let blanks = text[end..].bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            match text.as_bytes().get(end + blanks) {
                Some(b'{') => brackets_end(text, end + blanks).unwrap_or(0),
                _ => end,
            }
        }
        _ => 0,
    }
}

/// The end of the pair of brackets that opens at `at`; `None` if it isn't closed on its line.
pub(crate) fn brackets_end(text: &str, mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        at += 1;
        match text.as_bytes().get(at - 1)? {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth <= 1 => return Some(at),
            b')' | b']' | b'}' => depth -= 1,
            b'"' => at += quotation_length(&text[at..]) + 1,
            b'\n' => return None,
            _ => {}
        }
    }
}

/// The length of the quotation whose opening quote is in front of `text`: up to a quote without a backslash, or all.
pub(crate) fn quotation_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// The text on one line: line ends and the blanks around them become one space.
pub(crate) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(line);
    }
    out
}

/// The text without the beginning of `words` at its end, where it was cut.
pub(crate) fn without_beginning<'a>(text: &'a str, words: &str) -> &'a str {
    (1..=words.len()).rev().find_map(|length| text.strip_suffix(words.get(..length)?)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_end_with_their_layout() {
        let shape = |text: &str| text[..shape_length(text)].to_owned();
        for text in ["f32[42]", "f32[42] {0}", "f32[]{:T(128)}", "s8[2]{0:T(8)P(s8[4]{0})}", "b(f32[1]{0})", "token[]"]
        {
            for after in ["", " add(x)", ", space=vmem", "]"] {
                assert_eq!(shape(&format!("{text}{after}")), text);
            }
        }
        let tuple = "(f32[2]{0}, /*index=1*/(token[]))";
        assert_eq!(shape(&format!("{tuple} fusion(x)")), tuple);
        for none in ["", "fusion(x)", "f32", "f32[", "(f32[2]", "f32[2]{0:T(8", "[2]", "f32[2\n]", "é[2]"] {
            assert_eq!(shape(none), "", "{none}");
        }
    }

    #[test]
    fn quotations_hide_brackets() {
        assert_eq!(brackets_end(r#"{op_name="a}\"}" b} c"#, 0), Some(19));
        assert_eq!(brackets_end(r#"{op_name="a}"#, 0), None);
        assert_eq!(brackets_end("{\"", 0), None);
    }
}
