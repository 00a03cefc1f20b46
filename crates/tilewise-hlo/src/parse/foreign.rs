//! The start of a module's text, and the error for a text without a module.

use memchr::memmem;

use crate::error::{Error, ErrorKind};
use crate::scan::{identifier_end, is_identifier, line_end, looks_like_instruction, peek, skip_blank, skip_trivia};

const KEYWORD: &[u8] = b"HloModule";

/// The start of `HloModule name` in the text, after log prefixes, blank lines and the like.
pub(super) fn find_header(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let found = from + memmem::find(&bytes[from..], KEYWORD)?;
        let line = memchr::memrchr(b'\n', &bytes[from..found]).map_or(from, |offset| from + offset + 1);
        let before = &bytes[line..found];
        let glued = before.last().is_some_and(|byte| is_identifier(*byte));
        if let Some(end) = open_comment_end(bytes, from, found) {
            from = end;
            continue;
        }
        let is_comment = before.trim_ascii_start().starts_with(b"//");
        // Another module's head is alone on its line; only a log has anything before it.
        let is_alone = before.trim_ascii().is_empty();
        let name = header_name(bytes, found);
        if !glued
            && !is_comment
            && !before.contains(&b'"')
            && !looks_like_instruction(bytes, line)
            && name.is_ok_and(|on_this_line| on_this_line || is_alone)
        {
            return Some(found);
        }
        // A name within an attribute, not a header; nor is anything else on its line, or in a comment that begins there.
        from = name.err().unwrap_or(found).max(line_end(bytes, found));
    }
}

/// Whether a module's name follows the `HloModule` at `at` on its line, or after line breaks and comments, as XLA's
/// lexer takes it. `Err` without a name: the end of the white space and comments.
pub(super) fn header_name(bytes: &[u8], at: usize) -> Result<bool, usize> {
    let end = at + KEYWORD.len();
    if matches!(peek(bytes, end), b' ' | b'\t') && !matches!(peek(bytes, skip_blank(bytes, end)), b'\r' | b'\n' | b'/')
    {
        return Ok(true);
    }
    let name = skip_trivia(bytes, end);
    let name_end = identifier_end(bytes, name + usize::from(peek(bytes, name) == b'%'));
    // `HloModule` at the end of a line of prose, and an instruction in the next.
    let is_instruction = peek(bytes, skip_trivia(bytes, name_end)) == b'=';
    if name > end && name_end > name && !is_instruction { Ok(false) } else { Err(name) }
}

/// The end of the comment that starts a line between `from` and `at`, and that is open at `at`.
fn open_comment_end(bytes: &[u8], from: usize, at: usize) -> Option<usize> {
    let between = &bytes[from..at];
    let open = memmem::rfind(between, b"/*").filter(|open| memmem::find(&between[*open..], b"*/").is_none())?;
    let starts_line = between[..open].iter().rev().find(|byte| !matches!(byte, b' ' | b'\t'));
    if !matches!(starts_line, None | Some(b'\n')) {
        return None;
    }
    Some(memmem::find(&bytes[at..], b"*/").map_or(bytes.len(), |end| at + end + 2))
}

/// The error for a file of a dump that lies beside a better one.
pub(crate) fn of_dump(what: &str) -> Error {
    let message = format!(
        "not HLO: this is {what} of a dump; give the `….after_optimizations.txt`, the `….after_optimizations.hlo.pb` \
         or the `…-buffer-assignment.txt` beside it, or the whole folder"
    );
    Error::new(ErrorKind::NotHlo, None, message)
}

/// The error for a text without instructions, with a guess at its actual kind.
pub(super) fn not_hlo(source: &str, has_header: bool) -> Error {
    let start = source.trim_start_matches('\u{feff}').trim_start();
    let head: &str = start.get(..4096).unwrap_or(start);
    const HOW: &str =
        "write HLO text with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\", or `compiled.as_text()` in jax";
    let what = if start.is_empty() {
        "the text is empty"
    } else if has_header {
        return Error::new(
            ErrorKind::NotHlo,
            None,
            "the module has no instruction: the text may be cut after its header",
        );
    } else if start.starts_with("module @")
        || start.starts_with("module {")
        || head.contains("stablehlo.")
        || head.contains("func.func")
    {
        "this is StableHLO or another MLIR text, which has no layouts yet; it must be compiled first"
    } else if start.starts_with("{ lambda") {
        "this is a jaxpr, which has no layouts yet; it must be compiled first"
    } else if start.starts_with("BufferAssignment:") {
        "this is a buffer assignment, not HLO text"
    } else if start.starts_with("HloLiveRange")
        || start.starts_with("Total bytes used:")
        || head.contains("Used values:")
    {
        return of_dump("a list of values or live ranges");
    } else if start.starts_with("Memory Space:") || head.contains("cumulative_size;") {
        return of_dump("a memory-usage report");
    } else if head.contains("RESOURCE_EXHAUSTED") {
        "this is an out-of-memory message, not HLO text"
    } else if is_string(head) {
        "the text stands in a string of JSON or of another language that holds no `HloModule`; give what the string holds"
    } else if is_base64(head) {
        "this looks like base64, which must be decoded first"
    } else if head.matches("\\u{").count() * 12 > head.len() {
        // Control characters, by now made visible, more frequent than colours are in any text.
        "this looks like binary data, perhaps a serialised HloProto, not HLO text"
    } else {
        "no line reads `name = shape opcode(operands)`"
    };
    Error::new(ErrorKind::NotHlo, None, format!("not HLO text: {what}; {HOW}"))
}

/// Whether line breaks in a text are escaped as in strings.
fn is_string(head: &str) -> bool {
    let (escaped, plain) = (head.matches("\\n").count(), head.matches('\n').count());
    head.contains(['"', '\'']) && escaped > 2 * plain
}

fn is_base64(head: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    let line = head.lines().next().unwrap_or_default();
    line.len() >= 60 && head.split_ascii_whitespace().all(|word| word.bytes().all(is_digit))
}
