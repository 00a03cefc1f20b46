//! Logs with a JSON object on each line.

use super::escapes::unescape;

/// Keys under which loggers put the text.
const KEYS: [&str; 8] = ["message", "msg", "textPayload", "log", "text", "line", "event", "MESSAGE"];

/// The texts of a log whose lines are JSON objects, one a line; `None` for anything else.
pub(crate) fn texts(text: &str) -> Option<String> {
    let is_object = |line: &str| line.starts_with('{') && line.ends_with('}') && line.contains("\":");
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let (all, objects) = lines().fold((0, 0), |(all, objects), line| (all + 1, objects + usize::from(is_object(line))));
    if objects < 2 || objects * 2 < all {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for line in lines() {
        match value(line).filter(|_| is_object(line)) {
            Some(value) => {
                out.push_str(&unescape(value, true));
                if !out.ends_with('\n') {
                    out.push('\n');
                }
            }
            None => out.extend([line, "\n"]),
        }
    }
    Some(out)
}

/// The text of one object, without its quotes.
fn value(line: &str) -> Option<&str> {
    let (mut key, mut rest) = ("", line);
    while let Some(start) = rest.find('"') {
        let quoted = &rest[start + 1..];
        let string = &quoted[..crate::text::instruction::quotation_length(quoted)];
        rest = quoted.get(string.len() + 1..).unwrap_or("");
        if rest.trim_start().starts_with(':') {
            key = string;
        } else if KEYS.contains(&key) {
            return Some(string);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_loggers() {
        let log =
            "{\"severity\":\"ERROR\",\"message\":\"1. Size: 4.0K\"}\n{\"message\":\"   Shape: \\u003ca\\\" \\\\\"}\n";
        assert_eq!(texts(log).as_deref(), Some("1. Size: 4.0K\n   Shape: <a\" \\\n"));
        let docker = "{\"log\":\"a\\n\",\"stream\":\"stderr\"}\n{\"log\":\"b\\n\"}";
        assert_eq!(texts(docker).as_deref(), Some("a\nb\n"));
        for none in ["", "{\"message\":\"a\"}", "a\nb\n{}", "{a\n}"] {
            assert_eq!(texts(none), None, "{none}");
        }
    }
}
