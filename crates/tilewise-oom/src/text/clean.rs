//! Removes additions of terminals, logs, web pages, Markdown and `repr` to a message.

use super::escapes::unescape;
use super::json_lines;
use super::line::without_noise;
use super::reader::find_words;
use tilewise::visible_lines;

/// The beginning of the raw proto behind a message.
pub(crate) const TAIL: &str = "[type.googleapis.com/";

/// The end of a proto that the compiler cut.
const CUT: &str = "[truncated]";

/// The text with line feeds as the only line ends, without escapes, entities, marks of Markdown, line prefixes, fences
/// and proto tails.
pub(crate) fn clean(text: &str) -> String {
    let objects = json_lines::texts(text);
    let mut text = without_tails(&plain(objects.as_deref().unwrap_or(text)));
    for _ in 0..3 {
        if !is_escaped(&text) {
            break;
        }
        text = unescape(&text, false);
    }
    let text = without_prefixes(&apart(&without_marks(&text)));
    // Makes other control characters visible.
    visible_lines(&text).into_owned()
}

/// Drops terminal colours and carriage returns, and replaces HTML entities and hard spaces.
fn plain(text: &str) -> String {
    const ENTITIES: [(&str, &str); 12] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#039;", "'"),
        ("&#x27;", "'"),
        ("&#x2F;", "/"),
        ("&apos;", "'"),
        ("&nbsp;", " "),
        ("&#10;", "\n"),
        ("&amp;", "&"),
    ];
    // A page that drops escape characters leaves `[0m` of a colour.
    let has_bare_colours = text.contains("[0m") && !text.contains("\x1b[0m");
    let is_sign = |c: char| matches!(c, '\x1b' | '\r' | '&' | '\u{a0}' | '\u{feff}') || has_bare_colours && c == '[';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_sign) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if let Some((entity, plain)) = ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity)) {
            out.push_str(plain);
            entity.len()
        } else if let Some(sequence) = rest.strip_prefix("\x1b[") {
            let parameters = parameters(sequence);
            2 + parameters + usize::from(sequence.as_bytes().get(parameters).is_some_and(u8::is_ascii_alphabetic))
        } else if let Some(length) = rest.strip_prefix('[').and_then(colour) {
            1 + length
        } else {
            let first = rest.chars().next().unwrap_or(' ');
            match first {
                '[' => out.push('['),
                '&' => out.push('&'),
                '\u{a0}' => out.push(' '),
                // A lone carriage return is a line end, too.
                '\r' if !rest[1..].starts_with('\n') => out.push('\n'),
                _ => {}
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// Length of the parameters of a terminal's sequence, which a letter ends; a sequence is short.
fn parameters(sequence: &str) -> usize {
    sequence.bytes().take(32).take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).count()
}

/// The length of a colour behind its `[`: `36m`.
fn colour(sequence: &str) -> Option<usize> {
    let length = parameters(sequence);
    (length > 0 && sequence[length..].starts_with('m')).then_some(length + 1)
}

/// Cuts the raw protos that follow messages: they repeat the message's beginning.
fn without_tails(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(TAIL) {
        let start = at + TAIL.len();
        out.push_str(&rest[..start]);
        // Up to the line's end, or to the compiler's mark that it cut the proto.
        let mut ends = rest[start..].match_indices(['\n', '[']).map(|(end, _)| start + end);
        let end =
            ends.find(|end| rest[*end..].starts_with('\n') || rest[*end..].starts_with(CUT)).unwrap_or(rest.len());
        let closed = rest[end..].strip_prefix(CUT).map(|after| after.trim_start_matches(['\\', '\'', ']']));
        rest = closed.unwrap_or(&rest[end..]);
    }
    out.push_str(rest);
    out
}

/// Whether line ends or quotes are written with backslashes, as in the `repr` of an exception or in JSON.
fn is_escaped(text: &str) -> bool {
    const ANCHORS: [&str; 9] = [
        "Ran out of memory",
        "Allocation (size=",
        "HLO temporaries (",
        "unlikely to have enough memory",
        "That was not possible",
        "Largest program",
        "Allocation type:",
        "usage >=",
        "BufferAssignment",
    ];
    ANCHORS.iter().filter_map(|anchor| find_words(text, 0, anchor)).any(|(at, _)| {
        let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
        let line = &text[start..end];
        line.contains("\\n") || line.contains("=\\\"")
    })
}

/// Drops Markdown's bold marks, code marks, the backslash of `1\.`, and Ray's marks of repeated lines; `<br>` in a
/// table becomes a line end.
fn without_marks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['*', '`', '\\', '<', '[']) {
        out.push_str(&rest[..at]);
        let (before, mark) = (&rest[..at], &rest[at..]);
        let line_end = ["<br>", "<br/>", "<br />"].into_iter().find(|tag| mark.starts_with(tag));
        let length = if let Some(tag) = line_end {
            out.push('\n');
            tag.len()
        } else if mark.starts_with("**") && is_of_code(before, &mark[2..]) {
            out.push_str("**");
            2
        } else if mark.starts_with("**") || mark.starts_with("\\.") && before.ends_with(|c: char| c.is_ascii_digit()) {
            if mark.starts_with('*') { 2 } else { 1 }
        } else if mark.starts_with('`') && !mark.starts_with("```") {
            1
        } else if mark.starts_with("```") {
            out.push_str("```");
            3
        } else if let Some(end) = repeated(mark) {
            end
        } else {
            out.push_str(&mark[..1]);
            1
        };
        rest = &mark[length..];
    }
    out.push_str(rest);
    out
}

/// Whether `**` is Python's, a power or the unpacking of a mapping, `f(x**2, **kwargs)`, rather than a mark of bold text.
fn is_of_code(before: &str, after: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_between = before.ends_with(|last| is_part(last) || last == ')') && after.starts_with(is_part);
    if is_between || before.ends_with(' ') && after.starts_with(' ') {
        return true;
    }
    let name = after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    before.trim_end_matches(' ').ends_with(['(', ','])
        && after.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && after[name..].starts_with([',', ')', '.', '['])
}

/// The length of `[repeated 5x across cluster]`.
fn repeated(text: &str) -> Option<usize> {
    let count = text.strip_prefix("[repeated ")?.bytes().take(8).take_while(u8::is_ascii_digit).count();
    let after = text.get("[repeated ".len() + count..)?.strip_prefix("x across cluster")?;
    let end = after.bytes().take(128).position(|byte| byte == b']')?;
    Some(text.len() - after.len() + end + 1)
}

/// Drops code fences, but not a message behind one, and the prefixes of a log, a quotation or a box on every line.
fn without_prefixes(text: &str) -> String {
    let prefix = prefix(text).unwrap_or("");
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let line = without_noise(strip(line, prefix));
        let line = match line.trim_start().strip_prefix("```") {
            // A language is one word.
            Some(behind) if behind.trim().contains(' ') => behind,
            Some(_) => "\n",
            None => line,
        };
        out.push_str(line.trim_end_matches(['\n', '│', ' ']));
        out.push_str(if line.ends_with('\n') { "\n" } else { "" });
    }
    out
}

/// The prefix of the first line that can only be one of the tables or lists; `None` without one.
fn prefix(text: &str) -> Option<&str> {
    const ANCHORS: [&str; 12] = [
        "Largest program a",
        "parameter allocation: ",
        "maybe_live_out allocation: ",
        "Program hbm requirement ",
        "Program vmem requirement ",
        "Total hbm usage >= ",
        "XLA label: ",
        "Unpadded size: ",
        "Extra memory due to padding: ",
        "Allocation type: ",
        ". Size: ",
        "Output size ",
    ];
    const HEADLINES: [&str; 6] =
        ["Ran out of memory", "memory space", "Exceeded", "That was not possible", "HLO temp", "would exceed"];
    let mut lines = text.lines();
    let line = lines.find(|line| ANCHORS.iter().any(|anchor| line.contains(anchor)))?;
    let mut at = ANCHORS.iter().filter_map(|anchor| line.find(anchor)).min()?;
    if line[at..].starts_with(". Size: ") {
        at = line[..at].trim_end_matches(|c: char| c.is_ascii_digit()).len();
    }
    let prefix = line[..at].trim_end();
    // A prefix is in front of most lines that follow; otherwise this is only a line that was wrapped elsewhere.
    let (mut with, mut without) = (0, 0);
    for line in lines.take(8) {
        *(if strip(line, prefix).len() < line.len() { &mut with } else { &mut without }) += 1;
    }
    let is_prefix = prefix.len() <= 256 && 2 * with >= without && !HEADLINES.iter().any(|words| prefix.contains(words));
    is_prefix.then_some(prefix)
}

/// The line without the prefix, in which numbers and the width of blanks may differ from line to line.
fn strip<'a>(line: &'a str, prefix: &str) -> &'a str {
    fn run(text: &str, of: fn(&char) -> bool) -> usize {
        text.chars().take_while(of).map(char::len_utf8).sum()
    }
    let (mut rest, mut wanted) = (line, prefix);
    while let Some(next) = wanted.chars().next() {
        let of: fn(&char) -> bool = match next {
            '0'..='9' => char::is_ascii_digit,
            _ if next.is_whitespace() => |c| c.is_whitespace() && *c != '\n',
            _ => {
                let Some(after) = rest.strip_prefix(next) else { return line };
                (rest, wanted) = (after, &wanted[next.len_utf8()..]);
                continue;
            }
        };
        let length = run(rest, of);
        if length == 0 {
            return line;
        }
        (rest, wanted) = (&rest[length..], &wanted[run(wanted, of)..]);
    }
    rest
}

/// Puts tables and headings that lost their line ends back on lines of their own: `arguments 0BOutput size 0B;`.
fn apart(text: &str) -> String {
    const HEADS: [&str; 5] = [
        "Output size ",
        "Program hbm requirement ",
        "Total hbm usage ",
        "Largest program a",
        "Program vmem requirement ",
    ];
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in text.match_indices(['O', 'P', 'T', 'L']) {
        if !HEADS.iter().any(|head| text[at..].starts_with(head)) {
            continue;
        }
        out.push_str(&text[from..at]);
        let is_joined = out.ends_with(|c: char| c.is_ascii_alphanumeric() || ".;):".contains(c));
        if is_joined || text[at..].starts_with("Largest") && out.ends_with(") ") {
            out.push('\n');
        }
        from = at;
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surroundings_go() {
        assert_eq!(clean("a\r\n&lt;b&gt; \x1b[31mred\x1b[0m &amp;\u{a0}c"), "a\n<b> red & c");
        assert_eq!(clean("[2m[36mred[0m a f32[2,3m]"), "red a f32[2,3m]");
        assert_eq!(clean("x [type.googleapis.com/a='\\n...[truncated]']\ny"), "x [type.googleapis.com/\ny");
        assert_eq!(clean("'Ran out of memory.\\n  op=\\'a\\' \\\\n'"), "'Ran out of memory.\nop='a' \\n'");
        assert_eq!(clean("Ran out of memory \\u003e\\n\\"), "Ran out of memory >\n\\");
    }

    #[test]
    fn prefixes_are_learnt() {
        let text = "a\n10:59 x.cc:7]   1. Size: 4.0K\n11:00 x.cc:12]      Shape: s8[]\n```\nz\n";
        assert_eq!(clean(text), "a\n1. Size: 4.0K\nShape: s8[]\n\nz\n");
        // A message may stand behind a fence, where a language would.
        assert_eq!(clean("```text\na\n```Out of memory\n"), "\na\nOut of memory\n");
        assert_eq!(strip("> a", ">"), " a");
        assert_eq!(strip("[process 13]\n", "[process 2]"), "\n");
    }

    #[test]
    fn marks_go() {
        assert_eq!(clean("**Used `1.0K`** of 2 * 3<br>1\\. Size"), "Used 1.0K of 2 * 3\n1. Size");
        assert_eq!(clean("a 5.0K [repeated 19x across cluster]\nb [x]"), "a 5.0K\nb [x]");
        assert_eq!(clean("f(**inputs, y) of **1.0K** (**2.0K**)"), "f(**inputs, y) of 1.0K (2.0K)");
        assert_eq!(clean("x = empty(8 * 1024**3) ** 2"), "x = empty(8 * 1024**3) ** 2");
        assert_eq!(
            clean("arguments 0BOutput size 0B; shares 0B with arguments.Program hbm requirement 1.0K"),
            "arguments 0B\nOutput size 0B; shares 0B with arguments.\nProgram hbm requirement 1.0K"
        );
    }
}
