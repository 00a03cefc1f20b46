//! A document's text in plain characters: digits of other scripts, typographic signs, and the markup around formulas.

use std::ops::Range;

/// A text with each character as ASCII has it, and where each byte comes from.
///
/// XLA's pages are copied with full-width brackets, Bengali digits, a minus that is U+2212, blanks that don't break, marks that can't be
/// seen, `<br>` and LaTeX's commands. All operators of multiplication become `·`, all stars `*`, all line ends a line
/// feed.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    text: String,
    /// For each byte of the text, and for its end, the byte of the source.
    sources: Vec<usize>,
}

impl Plain {
    pub(crate) fn of(source: &str) -> Self {
        let mut plain =
            Self { text: String::with_capacity(source.len()), sources: Vec::with_capacity(source.len() + 1) };
        // For each open brace, whether it belongs to the text, and isn't an argument of LaTeX's `\text{…}`.
        let mut braces: Vec<bool> = Vec::new();
        let mut at = 0;
        while let Some(c) = source[at..].chars().next() {
            let rest = &source[at..];
            let length = if let Some((length, replacement)) = tag(rest).or_else(|| entity(rest)) {
                plain.push(replacement, at);
                length
            } else if let Some((length, replacement)) = command(rest) {
                plain.push(replacement, at);
                let takes_text = rest[length..].starts_with('{') && replacement.is_empty();
                braces.extend(takes_text.then_some(false));
                length + usize::from(takes_text)
            } else {
                let is_shown = match c {
                    '{' => {
                        braces.push(true);
                        true
                    }
                    '}' => braces.pop().unwrap_or(true),
                    _ => true,
                };
                if let Some(c) = plain_character(c).filter(|_| is_shown) {
                    plain.push(c.encode_utf8(&mut [0; 4]), at);
                }
                c.len_utf8()
            };
            at += length;
        }
        plain.sources.push(source.len());
        plain
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of the source for bytes of the text.
    pub(crate) fn source(&self, span: Range<usize>) -> Range<usize> {
        let at = |byte: usize| self.sources.get(byte).or(self.sources.last()).copied().unwrap_or_default();
        let start = at(span.start);
        start..at(span.end).max(start)
    }

    fn push(&mut self, text: &str, from: usize) {
        self.text += text;
        self.sources.resize(self.text.len(), from);
    }
}

/// A text without the quotes around it and the sentence's sign behind it.
pub(crate) fn bare(text: &str) -> &str {
    let quotes = |c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'');
    let text = text.trim_matches(quotes);
    let is_dots = text.ends_with("..");
    text.strip_suffix('.').filter(|_| !is_dots).map_or(text, |text| text.trim_matches(quotes))
}

/// Whether a character is invisible: joiners, separators, marks of direction, and the byte order mark.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

/// A character as ASCII has it; `None` if invisible.
fn plain_character(c: char) -> Option<char> {
    Some(match c {
        '\0'..='\x7f' => c,
        _ if is_invisible(c) => return None,
        '。' | '।' | '॥' => '.',
        '、' | '،' => ',',
        '؛' => ';',
        '【' | '〔' => '[',
        '】' | '〕' => ']',
        '∙' | '⋅' | '•' | '·' | '・' | '×' | '✕' => '·',
        '∗' | '⁎' | '＊' => '*',
        '−' | '‐' | '‑' | '–' | '—' | '﹣' => '-',
        '⁄' | '∕' | '÷' => '/',
        '“' | '”' | '„' | '«' | '»' => '"',
        '‘' | '’' => '\'',
        '\u{85}' | '\u{2028}' | '\u{2029}' => '\n',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        _ if c.is_whitespace() => ' ',
        _ => digit(c).unwrap_or(c),
    })
}

/// The digit 0 of the scripts whose digits follow each other in Unicode.
const ZEROS: [char; 37] = [
    '٠', '۰', '߀', '०', '০', '੦', '૦', '୦', '௦', '౦', '೦', '൦', '෦', '๐', '໐', '༠', '၀', '႐', '០', '᠐', '᥆', '᧐', '᪀',
    '᪐', '᭐', '᮰', '᱀', '᱐', '꘠', '꣐', '꤀', '꧐', '꧰', '꩐', '꯰', '𐒠', '𝟎',
];

fn digit(c: char) -> Option<char> {
    let value = ZEROS.iter().find_map(|&zero| u32::from(c).checked_sub(u32::from(zero)).filter(|value| *value < 10))?;
    char::from_digit(value, 10)
}

/// The length of a tag of HTML that a text begins with, and its replacement.
fn tag(text: &str) -> Option<(usize, &'static str)> {
    /// No tag of a page's text is longer.
    const LONGEST: usize = 200;
    let inside = text.strip_prefix('<')?;
    let end = inside.bytes().take(LONGEST).position(|byte| byte == b'>')?;
    let name = inside[..end].trim_start_matches('/');
    let name = &name[..name.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(name.len())];
    let replacement = match name.to_ascii_lowercase().as_str() {
        "br" | "p" | "div" | "li" | "td" | "th" | "tr" | "pre" | "h1" | "h2" | "h3" | "h4" => "\n",
        "sub" => {
            if inside.starts_with('/') {
                ""
            } else {
                "_"
            }
        }
        "a" | "b" | "code" | "devsite" | "em" | "i" | "img" | "math" | "span" | "strong" | "sup" | "tt" | "ul"
        | "var" => "",
        _ => return None,
    };
    Some((end + 2, replacement))
}

/// The length of a reference to a character that a text begins with, and the character.
fn entity(text: &str) -> Option<(usize, &'static str)> {
    let known = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
        ("&nbsp;", " "),
        ("&times;", "·"),
        ("&middot;", "·"),
        ("&sdot;", "·"),
        ("&lowast;", "*"),
        ("&minus;", "-"),
    ];
    known.iter().find(|(name, _)| text.starts_with(name)).map(|(name, character)| (name.len(), *character))
}

/// The length of a command of LaTeX that a text begins with, and its replacement.
fn command(text: &str) -> Option<(usize, &'static str)> {
    let inside = text.strip_prefix('\\');
    let Some(inside) = inside else {
        return text.starts_with('$').then_some((1, " "));
    };
    let name = &inside[..inside.bytes().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(inside.len())];
    let replacement = match name {
        "" => {
            return Some(match inside.bytes().next()? {
                b'\\' => (2, "\n"),
                b'_' => (2, "_"),
                b'{' => (2, "{"),
                b'}' => (2, "}"),
                b'(' | b')' | b'[' | b']' | b',' | b';' | b':' | b'!' | b' ' => (2, " "),
                _ => return None,
            });
        }
        "cdot" | "times" | "bullet" => "·",
        "ast" => "*",
        "lfloor" => "⌊",
        "rfloor" => "⌋",
        "lceil" => "⌈",
        "rceil" => "⌉",
        "mod" | "bmod" => " mod ",
        "dots" | "ldots" | "cdots" => "…",
        "left" | "right" | "quad" | "qquad" | "displaystyle" | "text" | "textit" | "texttt" | "mathrm" | "mathit"
        | "mathtt" | "operatorname" => "",
        "newline" => "\n",
        _ => return None,
    };
    Some((name.len() + 1, replacement))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_those_of_ascii() {
        for (source, plain) in [
            ("(২,৪)(২,১)", "(2,4)(2,1)"),
            ("f32［2，3］", "f32[2,3]"),
            ("{−1,−2}", "{-1,-2}"),
            ("f32[2]\u{feff}\u{200b}", "f32[2]"),
            ("f32[2]\u{a0}{0}", "f32[2] {0}"),
            ("1 ∙ 3 · 2 × 4", "1 · 3 · 2 · 4"),
            ("(∗,2)", "(*,2)"),
            ("(۲،۴)", "(2,4)"),
            ("= 17 <br> = 17。", "= 17 \n = 17."),
            (r"\text{linear\_index}(e, d) \\ = \lfloor e/t \rfloor \cdot 2", "linear_index(e, d) \n = ⌊ e/t ⌋ · 2"),
            ("e<sub>n</sub> f32[<=4]", "e_n f32[<=4]"),
            (r"e_{n-1} \{A\}", "e_{n-1} {A}"),
        ] {
            assert_eq!(Plain::of(source).text(), plain, "{source}");
        }
    }

    #[test]
    fn spans_are_those_of_the_source() {
        let source = "\u{feff}(২,৪) ∙ 3";
        let plain = Plain::of(source);
        let at = plain.text().find('4').expect("a digit");
        assert_eq!(&source[plain.source(at..at + 1)], "৪");
        assert_eq!(plain.source(plain.text().len()..plain.text().len()), source.len()..source.len());
    }
}
