//! Programs in strings: of JSON, Python's `repr`, CSV or sources; or on one line of a log, with their line breaks
//! escaped.

use super::has_instruction;
use crate::scan::{line_end, looks_like_instruction};
use memchr::memmem;
use std::borrow::Cow;
use std::ops::Range;

const HEADER: &str = "HloModule ";

/// The programs in the strings of a text, one after the other; the text as it is if its first program isn't in a
/// string.
pub(super) fn unquoted(text: String) -> String {
    let mut programs = String::new();
    let mut end = 0;
    while let Some(offset) = memmem::find(&text.as_bytes()[end..], HEADER.as_bytes()) {
        let at = end + offset;
        end = at + HEADER.len();
        let found = Quote::before(&text, at).filter(|(_, start)| !programs.is_empty() || !is_within(&text[..*start]));
        match found.and_then(|(quote, start)| quote.read(&text, start)) {
            Some((program, after)) => {
                if !programs.is_empty() && !programs.ends_with('\n') {
                    programs.push('\n');
                }
                programs.push_str(&program);
                end = end.max(after);
            }
            None if programs.is_empty() => return text,
            None => {}
        }
    }
    let lines = programs.lines().filter(|line| !line.trim().is_empty()).count();
    if lines > 1 { programs } else { text }
}

/// Whether a string behind this text belongs to an instruction.
fn is_within(before: &str) -> bool {
    before.lines().any(|line| looks_like_instruction(line.as_bytes(), 0) && line.contains('['))
}

/// The delimiter of a string that begins with a program.
#[derive(Clone, Copy)]
enum Quote {
    /// A quote, with escapes, or in CSV quotes doubled: `"HloModule m\n…"`. In Python's `bytes`, `\xe2` is a byte.
    Escaped { quote: char, is_of_bytes: bool },
    /// The end of a string without escapes: `"""HloModule m…"""`.
    Raw(&'static str),
    /// The line, which has escapes for line breaks.
    Line,
}

/// The start and the end of strings without escapes in Python, Rust, C++ and JavaScript.
const RAW: [(&str, &str); 6] =
    [("\"\"\"", "\"\"\""), ("'''", "'''"), ("r#\"", "\"#"), ("r\"", "\""), ("R\"(", ")\""), ("`", "`")];

impl Quote {
    /// The delimiter of the string that has a header at `at`, and the start of its text.
    fn before(text: &str, at: usize) -> Option<(Self, usize)> {
        let before = text[..at].trim_end();
        if before.ends_with("```") {
            return None;
        }
        if let Some((_, end)) = RAW.iter().find(|(begin, _)| before.ends_with(begin)) {
            return Some((Self::Raw(end), at));
        }
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        if let Some((quote, start)) = open_string(&text[line..at]) {
            let is_of_bytes = text[..line + start - 1].ends_with('b');
            return Some((Self::Escaped { quote, is_of_bytes }, line + start));
        }
        first_break(&text[at..line_end(text.as_bytes(), at)]).map(|_| (Self::Line, at))
    }

    /// The text of the string that begins at `start`, and its end; `None` if it isn't a program's.
    fn read(self, text: &str, start: usize) -> Option<(Cow<'_, str>, usize)> {
        let rest = &text[start..];
        match self {
            Self::Raw(end) => {
                let length = rest.find(end).unwrap_or(rest.len());
                Some((rest[..length].into(), start + length))
            }
            Self::Line => {
                let line = &rest[..line_end(rest.as_bytes(), 0)];
                let has_quotes = plain_quote(line, '"').is_some();
                let program = if has_quotes { with_breaks(line) } else { unescaped(line, false) };
                // A name may contain the characters of a break.
                if !has_instruction(program.as_bytes()) {
                    return None;
                }
                Some((program.into(), start + line.len()))
            }
            Self::Escaped { quote, is_of_bytes } => {
                let length = plain_quote(rest, quote).unwrap_or(rest.len());
                let held = &rest[..length];
                if held.trim_end_matches("\\n").contains("\\n") {
                    return Some((unescaped(held, is_of_bytes).into(), start + length));
                }
                let is_doubled = rest[length..].chars().take_while(|letter| *letter == quote).count() > 1;
                if held.contains('\n') || is_doubled {
                    let (program, length) = held.starts_with(HEADER).then(|| doubled(rest, quote))?;
                    return Some((program.into(), start + length));
                }
                Some((of_lines(text, start, quote, is_of_bytes).into(), text.len()))
            }
        }
    }
}

/// The quote of the string that is open at the end of a line's part, and the start of its text.
fn open_string(line: &str) -> Option<(char, usize)> {
    let mut from = 0;
    loop {
        let at = from + line[from..].find(['"', '\''])?;
        let quote = line[at..].chars().next()?;
        match plain_quote(&line[at + 1..], quote) {
            Some(length) => from = at + 1 + length + 1,
            None => return Some((quote, at + 1)),
        }
    }
}

/// The position of the first quote that isn't escaped.
fn plain_quote(text: &str, quote: char) -> Option<usize> {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == quote {
            return Some(at);
        }
    }
    None
}

/// The position of the first escaped line break that is in no string.
fn first_break(line: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'\\', b'"', line.as_bytes().get(from..)?)?;
        from = match line.as_bytes().get(at..at + 2) {
            Some(b"\\n") => return Some(at),
            Some([b'"', _]) => at + 1 + plain_quote(&line[at + 1..], '"')? + 1,
            _ => at + 2,
        };
    }
}

/// A line with its escaped line breaks replaced, outside the program's own strings.
fn with_breaks(line: &str) -> String {
    let mut program = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = first_break(rest) {
        program.push_str(&rest[..at]);
        program.push('\n');
        rest = &rest[at + 2..];
    }
    program + rest
}

/// A string of CSV, up to the first quote that isn't doubled, and its length. One whose quotes are neither doubled nor escaped ends
/// with the last.
fn doubled(text: &str, quote: char) -> (String, usize) {
    let [two, one] = [[quote; 2].iter().collect::<String>(), quote.to_string()];
    let mut length = 0;
    while let Some(at) = text[length..].find(quote) {
        length += at;
        if !text[length..].starts_with(&two) {
            break;
        }
        length += two.len();
    }
    if text[..length].contains(&two) {
        return (text[..length].replace(&two, &one), length);
    }
    let length = text.rfind(quote).unwrap_or(text.len());
    (text[..length].to_owned(), length)
}

/// The program in strings that each hold a line: in each line of the text from the header's on, the string with the
/// number of the one at `at` in its line.
fn of_lines(text: &str, at: usize, quote: char, is_of_bytes: bool) -> String {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let place = strings(&text[start..], quote).take_while(|string| start + string.end < at).count();
    let mut program = String::new();
    for line in text[start..].lines() {
        let Some(string) = strings(line, quote).nth(place) else { continue };
        let held = unescaped(&line[string], is_of_bytes);
        program.push_str(&held);
        if !held.ends_with('\n') {
            program.push('\n');
        }
    }
    program
}

/// The ranges of a text's strings, without their quotes.
fn strings(text: &str, quote: char) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + plain_quote(text.get(from..)?, quote)? + 1;
        let end = start + plain_quote(&text[start..], quote).unwrap_or(text.len() - start);
        from = end + 1;
        Some(start..end)
    })
}

/// The text of a string with its escapes resolved, those of JSON, Python and C.
fn unescaped(text: &str, is_of_bytes: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut high: Option<u32> = None;
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let letter = rest[at + 1..].chars().next();
        rest = &rest[at + 1 + letter.map_or(0, char::len_utf8)..];
        let byte = match letter {
            Some('n') => b'\n',
            Some('t') => b'\t',
            Some('r') => b'\r',
            Some('b') => 8,
            Some('f') => 12,
            // A line that goes on.
            Some('\n') => continue,
            Some(sign @ ('x' | 'u' | 'U')) => {
                let digits = rest.get(
                    ..match sign {
                        'x' => 2,
                        'u' => 4,
                        _ => 8,
                    },
                );
                let Some(code) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else {
                    bytes.extend([b'\\', u8::try_from(sign).unwrap_or(b'?')]);
                    continue;
                };
                rest = &rest[digits.map_or(0, str::len)..];
                match (sign, code, high.take()) {
                    ('x', 0..=0xff, _) if is_of_bytes => bytes.extend(u8::try_from(code)),
                    (_, 0xd800..=0xdbff, _) => high = Some(code),
                    // The two halves of one character.
                    (_, 0xdc00..=0xdfff, Some(high)) => {
                        push(&mut bytes, 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00))
                    }
                    _ => push(&mut bytes, code),
                }
                continue;
            }
            Some(letter) => {
                // Quotes, slashes, and letters that make no escape.
                if !matches!(letter, '"' | '\'' | '\\' | '/') {
                    bytes.push(b'\\');
                }
                push(&mut bytes, letter.into());
                continue;
            }
            None => continue,
        };
        bytes.push(byte);
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn push(bytes: &mut Vec<u8>, code: u32) {
    let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "HloModule m, a=1\n\nENTRY e {\n  x = f32[2]{0} parameter(0), metadata={op_name=\"a\\\"é😀\\n\"}\n  ROOT y = f32[2]{0} negate(x)\n}\n";

    fn escaped(quote: char) -> String {
        PROGRAM.replace('\\', "\\\\").replace('\n', "\\n").replace(quote, &format!("\\{quote}"))
    }

    #[track_caller]
    fn reads(text: &str) {
        assert_eq!(unquoted(text.to_owned()).trim_end(), PROGRAM.trim_end(), "{text}");
    }

    #[test]
    fn programs_in_strings_are_read() {
        let json = escaped('"');
        let ascii = json.replace('é', "\\u00e9").replace('😀', "\\ud83d\\ude00");
        for held in [&json, &ascii] {
            reads(&format!("\"{held}\""));
            reads(&format!("{{\"n\": 1, \"hlo\": \"{held}\", \"after\": \"x = f32[] b()\"}}"));
            reads(&format!("{{\"message\": \"a step\"}}\n{{\"message\": \"{held}\"}}\n"));
        }
        reads(&format!("hlo = '{}'\n", escaped('\'')));
        reads(&format!("['{}']", escaped('\'').replace('é', "\\xe9").replace('😀', "\\U0001f600")));
        reads(&format!("b'{}'", escaped('\'').replace('é', "\\xc3\\xa9").replace('😀', "\\xf0\\x9f\\x98\\x80")));
        let csv = PROGRAM.replace("a=1", "a={b=\"c\"}").replace('"', "\"\"");
        assert!(unquoted(format!("name,hlo\na,\"{csv}\"\n")).starts_with("HloModule m, a={b=\"c\"}\n\nENTRY e {\n  x"));
        reads(&format!("name,hlo\na,\"{}\"\n", PROGRAM.replace('"', "\"\"")));
        let logged = unquoted(format!("{{\"message\": \"dump.cc:12] {json}\"}}"));
        assert_eq!(logged.trim_end(), format!("dump.cc:12] {PROGRAM}").trim_end());
        reads(&format!("echo \"{PROGRAM}\"\n"));
        for (begin, end) in RAW.into_iter().filter(|(begin, _)| *begin != "r\"") {
            reads(&format!("let hlo = {begin}{PROGRAM}{end};\n"));
            reads(&format!("let hlo = {begin}\n{PROGRAM}{end};\n"));
        }
        reads(&format!("I0101 dump.cc:12] {json}\nI0101 dump.cc:13] next\n"));
        reads(&format!(
            "I0101 dump.cc:12] {}\n",
            PROGRAM.replace("\n ", "\\n ").replace("\n}", "\\n}").replace("\nE", "\\nE").replace("\n\\nE", "\\n\\nE")
        ));
    }

    #[test]
    fn a_string_may_hold_a_line() {
        let lines = |wrap: &dyn Fn(String) -> String| -> String {
            let escaped = |line: &str| line.replace('\\', "\\\\").replace('"', "\\\"");
            PROGRAM.lines().map(|line| wrap(escaped(line)) + "\n").collect()
        };
        reads(&lines(&|line| format!("{{\"time\": \"12:00\", \"log\": \"{line}\\n\", \"stream\": \"stderr\"}}")));
        reads(&lines(&|line| format!("    \"{line}\\n\",")));
        reads(&format!("hlo = (\n{})\n", lines(&|line| format!("    \"{line}\\n\""))));
    }

    #[test]
    fn several_strings_are_several_programs() {
        let held = escaped('"');
        let text = unquoted(format!("{{\"before\": \"{held}\", \"after\": \"{held}\"}}"));
        assert_eq!(text, format!("{PROGRAM}{PROGRAM}"));
    }

    #[test]
    fn what_is_in_no_string_stays() {
        for text in [
            "",
            PROGRAM,
            "\"HloModule m\"",
            "the \"HloModule m\" above\nx = f32[] add(a)\n",
            "HloModule m, origin_recovery_table={{\"HloModule a\\nENTRY e {\\n x = f32[] add(b)\\n}\"}}\nENTRY e {\n}\n",
            "x = f32[2]{0} add(a), metadata={op_name=\"HloModule m\\nENTRY e {\\n}\"}\n",
            "it's HloModule m\nENTRY e {\n}\n'",
            "\"HloModule \\",
            "'HloModule \\x\\u12",
            "HloModule m\\",
            "HloModule m\\nFits, a=1\n\nENTRY e {\n  x = f32[2]{0} parameter(0)\n}\n",
        ] {
            assert_eq!(unquoted(text.to_owned()), text);
        }
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescaped(r"\xzz \q \ud800 \u12 \é \", false), "\\xzz \\q  \\u12 \\é ");
        assert_eq!(unescaped(r"\ud800\u0041", false), "A");
        assert_eq!(unescaped(r"\xff", true), "\u{fffd}");
    }
}
