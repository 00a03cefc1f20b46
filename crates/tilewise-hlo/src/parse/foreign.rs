//! Where a module's text begins, and what a text is that holds none.

use memchr::memmem;

use crate::error::{Error, ErrorKind};
use crate::scan::{is_identifier, line_end, looks_like_instruction};

/// Where the text says `HloModule name`, after log prefixes, blank lines and the like.
pub(super) fn find_header(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let found = from + memmem::find(&bytes[from..], b"HloModule ")?;
        let line = memchr::memrchr(b'\n', &bytes[from..found]).map_or(from, |offset| from + offset + 1);
        let before = &bytes[line..found];
        let glued = before.last().is_some_and(|byte| is_identifier(*byte));
        if let Some(end) = open_comment_end(bytes, from, found) {
            from = end;
            continue;
        }
        let is_comment = before.trim_ascii_start().starts_with(b"//");
        if !glued && !is_comment && !before.contains(&b'"') && !looks_like_instruction(bytes, line) {
            return Some(found);
        }
        // A name within an attribute, not a header; nor is anything else on its line.
        from = line_end(bytes, found);
    }
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

/// The error for a file of a dump that a better one lies beside.
pub(crate) fn of_dump(what: &str) -> Error {
    let message = format!(
        "not HLO: this is {what} of a dump; give the `….after_optimizations.txt`, the `….after_optimizations.hlo.pb` \
         or the `…-buffer-assignment.txt` beside it, or the whole folder"
    );
    Error::new(ErrorKind::NotHlo, None, message)
}

/// The error for a text without instructions, with a guess at what it is instead.
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
    } else if head.contains("\\u{") {
        // Control characters, by now made visible.
        "this looks like binary data, perhaps a serialised HloProto, not HLO text"
    } else {
        "no line reads `name = shape opcode(operands)`"
    };
    Error::new(ErrorKind::NotHlo, None, format!("not HLO text: {what}; {HOW}"))
}
