//! Removes the wrapping of mails, chats, terminals and logs: colours, fences, and a common prefix of each line.

use super::quoted::unquoted;
use memchr::memmem;

/// The text without its wrapping.
pub(super) fn unwrapped(text: String) -> String {
    let text = unquoted(text);
    let signs = ["\x1b[", "^[[", "\u{a0}", "\u{201d}", "```", "~~~", "&gt;"];
    let is_plain = signs.iter().all(|sign| !has(&text, sign.as_bytes()));
    if is_plain && header(&text).is_none_or(|(prefix, _)| prefix.trim().is_empty()) {
        return text;
    }
    let text = without_colours(&text);
    let text = text.replace('\u{a0}', " ");
    let text = with_straight_quotes(text);
    let text = without_entities(text);
    let text = without_prefixes(text);
    without_fences(text)
}

fn has(text: &str, sign: &[u8]) -> bool {
    memmem::find(text.as_bytes(), sign).is_some()
}

/// The text without the colours of a terminal, as it gets them or as `cat -v` shows them. Other sequences, which move
/// the cursor or set a title, stay, to be made visible.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let (before, after) = rest.split_at(at + 1);
        let as_sent = before.strip_suffix("\x1b[").map(|plain| (plain, after));
        let sequence = as_sent.or_else(|| before.strip_suffix("^[").zip(after.strip_prefix('[')));
        let colour = sequence.and_then(|(plain, sequence)| {
            let parameters = sequence.trim_start_matches(|letter: char| matches!(letter, '0'..='9' | ';' | ':'));
            Some((plain, parameters.strip_prefix(['m', 'K'])?))
        });
        let (kept, following) = colour.unwrap_or((before, after));
        plain.push_str(kept);
        rest = following;
    }
    plain + rest
}

/// The text with straight quotes, if an editor has curved them all.
fn with_straight_quotes(text: String) -> String {
    if has(&text, b"\"") { text } else { text.replace(['\u{201c}', '\u{201d}', '\u{201e}'], "\"") }
}

/// The text of a web page's source with its entities replaced; unchanged if it has a plain arrow.
fn without_entities(text: String) -> String {
    if !has(&text, b"&gt;") || has(&text, b"->") {
        return text;
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
        .replace("<pre>", "")
        .replace("</pre>", "")
}

/// The text without fences of Markdown, and if the program is fenced, without the text outside.
fn without_fences(text: String) -> String {
    let is_fence = |line: &str| {
        let language = line.trim().strip_prefix("```").or_else(|| line.trim().strip_prefix("~~~"));
        language.is_some_and(|name| name.chars().all(|letter| letter.is_alphanumeric() || letter == '-'))
    };
    if !text.lines().any(is_fence) {
        return text;
    }
    let before = header(&text).map_or("", |(_, after)| &text[..text.len() - after.len()]);
    let has_fenced_header = before.lines().filter(|line| is_fence(line)).count() % 2 == 1;
    let mut is_fenced = false;
    let is_kept = |line: &&str| {
        is_fenced ^= is_fence(line);
        !is_fence(line) && (is_fenced || !has_fenced_header)
    };
    text.split_inclusive('\n').filter(is_kept).collect()
}

/// The text in front of the first header on its line, and all text behind that line.
fn header(text: &str) -> Option<(&str, &str)> {
    let at = memmem::find(text.as_bytes(), b"HloModule ")?;
    let start = memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |end| end + 1);
    let (_, after) = text[at..].split_once('\n')?;
    Some((text[start..at].trim_start_matches('\u{feff}'), after))
}

/// The number of lines that must begin as the header's does, before any prefix is cut off.
const ALIKE: usize = 4;

/// The text without the prefix of each line, such as `> `, a pod's name, a time or a number. A log with a prefix on the
/// header's line alone is read as it is.
fn without_prefixes(text: String) -> String {
    let Some((prefix, after)) = header(&text).filter(|(prefix, _)| !prefix.trim().is_empty()) else { return text };
    let prefix = Prefix(prefix);
    let mut lines = after.lines().filter(|line| !line.trim().is_empty()).take(ALIKE).peekable();
    if lines.peek().is_none() || !lines.all(|line| prefix.cut_off(line).is_some()) {
        return text;
    }
    text.split_inclusive('\n').map(|line| prefix.cut_off(line).unwrap_or(line)).collect()
}

/// The prefix of a line; other lines have other numbers in it, and white space of other lengths for columns.
struct Prefix<'a>(&'a str);

impl Prefix<'_> {
    /// The line without the prefix. White space behind the prefix's last letter may be the program's.
    fn cut_off<'l>(&self, line: &'l str) -> Option<&'l str> {
        let is_digit = |letter: char| letter.is_ascii_digit();
        let is_space = |letter: char| letter == ' ' || letter == '\t';
        let (mut prefix, mut rest) = (self.0, line);
        while let Some(letter) = prefix.chars().next() {
            if is_digit(letter) {
                let other = rest.trim_start_matches(is_digit);
                if other.len() == rest.len() {
                    return None;
                }
                (prefix, rest) = (prefix.trim_start_matches(is_digit), other);
            } else if is_space(letter) {
                let after = prefix.trim_start_matches(is_space);
                let most = if after.is_empty() { prefix.len() } else { usize::MAX };
                let spaces = rest.bytes().take(most).take_while(|byte| is_space(char::from(*byte))).count();
                (prefix, rest) = (after, &rest[spaces..]);
            } else {
                prefix = &prefix[letter.len_utf8()..];
                rest = rest.strip_prefix(letter)?;
            }
        }
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str =
        "HloModule m, a=1\n\nENTRY e {\n  x = f32[2]{0} parameter(0)\n  ROOT y = f32[2]{0} negate(x)\n}\n";

    fn each_line(wrap: impl Fn(usize, &str) -> String) -> String {
        PROGRAM.lines().enumerate().map(|(number, line)| wrap(number, line) + "\n").collect()
    }

    #[test]
    fn what_is_put_around_lines_is_taken_off() {
        let wrapped = [
            each_line(|_, line| format!("> {line}")),
            each_line(|_, line| format!("> > {line}").trim_end().to_owned()),
            each_line(|number, line| format!("{number}:{line}")),
            each_line(|number, line| format!("{number:>6}\t{line}")),
            each_line(|number, line| format!("I0101 12:00:0{number}.000000 {number} compiler.cc:12] {line}")),
            each_line(|_, line| format!("[pod-0] {line}")),
            each_line(|number, line| format!("2026-11-25T10:00:00.{number}Z stderr F {line}")),
            each_line(|_, line| format!("+{line}")),
            each_line(|_, line| format!("\x1b[36m{line}\x1b[0m")),
            each_line(|_, line| format!("^[[38:2:1:2:3m{line}^[[0m")),
            format!("```hlo\n{PROGRAM}```\n"),
            format!("It is:\n```\n{PROGRAM}```\nand prints\n```\nnothing else\n```\n").replace("nothing else\n", ""),
            format!("~~~hlo\n{PROGRAM}~~~\n"),
            // JSON of coloured lines.
            format!(
                "{{\"log\": \"{}\"}}",
                each_line(|_, line| format!("\\u001b[36m{line}\\u001b[0m")).replace('\n', "\\n")
            ),
            PROGRAM.replace(' ', "\u{a0}"),
            PROGRAM.to_owned(),
        ];
        for text in wrapped {
            assert_eq!(unwrapped(text.clone()), PROGRAM, "{text}");
        }
        let page = PROGRAM.replace("e {", "e (x: f32[2]) -> f32[2] {");
        assert_eq!(unwrapped(page.replace("->", "-&gt;")), page);
    }

    #[test]
    fn what_is_the_programs_stays() {
        for text in [
            "",
            "HloModule m",
            "x: HloModule m\ny",
            "I0101 compiler.cc:12] dumping\nI0101 compiler.cc:13] HloModule m, a=1\nENTRY e {\n  x = f32[] constant(1)\n}\n",
            "x = f32[2] parameter(0), metadata={op_name=\"HloModule m &gt; ->\"}\n",
        ] {
            assert_eq!(unwrapped(text.to_owned()), text);
        }
        // A sequence that does more than colour is left to be shown.
        assert_eq!(
            unwrapped("HloModule \x1b]0;title\x07\x1b[2J\x1b[31mm".to_owned()),
            "HloModule \x1b]0;title\x07\x1b[2Jm"
        );
    }
}
