//! The tables of source lines between a module's header and its computations.
//!
//! ```text
//! FileNames
//! 1 "model.py"
//!
//! FunctionNames
//! 1 "step"
//!
//! FileLocations
//! 1 {file_name_id=1 function_name_id=1 line=71 end_line=71 column=16 end_column=94}
//!
//! StackFrames
//! 1 {file_location_id=1 parent_frame_id=1}
//! ```
//!
//! Ids count from 1. The text's `parent_frame_id` is one more than the `parent_frame_id` of the
//! `StackFrameIndexProto` that it prints, where 0 means none: so 1 is "no parent", and 3 is frame 2. (Compare a
//! program's text with its proto.)

use crate::scan::{balanced_end, line_end, peek, skip_trivia, string_end, value_end};
use crate::span::Span;

#[derive(Debug, Default)]
pub(crate) struct SourceTable {
    files: Vec<(u32, Span)>,
    functions: Vec<(u32, Span)>,
    locations: Vec<(u32, Location)>,
    frames: Vec<(u32, Frame)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    file: u32,
    function: u32,
    pub(crate) line: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) location: u32,
    /// The id of the caller's frame; 0 for none.
    pub(crate) parent: u32,
}

impl SourceTable {
    /// Reads the table whose title is `bytes[start..end]`, and returns its end; `None` if that is no title. Rows end
    /// where their values do: line breaks are white space (`HloLexer::LexToken` in xla/hlo/parser/hlo_lexer.cc).
    pub(crate) fn read(&mut self, bytes: &[u8], start: usize, end: usize) -> Option<usize> {
        let read: fn(&mut Self, &[u8], u32, usize, usize) = match &bytes[start..end] {
            b"FileNames" => |table, bytes, id, at, end| table.files.push((id, quoted(bytes, at, end))),
            b"FunctionNames" => |table, bytes, id, at, end| table.functions.push((id, quoted(bytes, at, end))),
            b"FileLocations" => Self::read_location,
            b"StackFrames" => Self::read_frame,
            _ => return None,
        };
        let mut at = end;
        while let Some((id, after)) = number(bytes, skip_trivia(bytes, at)) {
            let value = skip_trivia(bytes, after);
            at = match peek(bytes, value) {
                b'"' => string_end(bytes, value, true).unwrap_or_else(|stop| stop),
                b'{' => balanced_end(bytes, value, true).unwrap_or_else(|stop| stop),
                _ => line_end(bytes, value),
            };
            read(self, bytes, id, value, at);
        }
        Some(at)
    }

    /// Makes the tables ready for look-ups, whatever order they came in.
    pub(crate) fn finish(&mut self) {
        self.files.sort_by_cached_key(|(id, _)| *id);
        self.functions.sort_by_cached_key(|(id, _)| *id);
        self.locations.sort_by_cached_key(|(id, _)| *id);
        self.frames.sort_by_cached_key(|(id, _)| *id);
    }

    fn read_location(&mut self, bytes: &[u8], id: u32, at: usize, end: usize) {
        let mut location = Location { file: 0, function: 0, line: 0 };
        for_each_number(bytes, at, end, |key, value| match key {
            b"file_name_id" => location.file = value,
            b"function_name_id" => location.function = value,
            b"line" => location.line = value,
            _ => {}
        });
        self.locations.push((id, location));
    }

    fn read_frame(&mut self, bytes: &[u8], id: u32, at: usize, end: usize) {
        let mut frame = Frame { location: 0, parent: 0 };
        for_each_number(bytes, at, end, |key, value| match key {
            b"file_location_id" => frame.location = value,
            b"parent_frame_id" => frame.parent = value.saturating_sub(1),
            _ => {}
        });
        self.frames.push((id, frame));
    }

    pub(crate) fn frame(&self, id: u32) -> Option<Frame> {
        lookup(&self.frames, id)
    }

    pub(crate) fn location(&self, id: u32) -> Option<Location> {
        lookup(&self.locations, id)
    }

    pub(crate) fn file(&self, location: Location) -> Option<Span> {
        lookup(&self.files, location.file)
    }

    pub(crate) fn function(&self, location: Location) -> Option<Span> {
        lookup(&self.functions, location.function)
    }

    pub(crate) fn frame_count(&self) -> usize {
        self.frames.len()
    }
}

fn lookup<T: Copy>(table: &[(u32, T)], id: u32) -> Option<T> {
    // Ids mostly count from 1.
    let own = table.get((id as usize).checked_sub(1)?).filter(|(at, _)| *at == id);
    let found = own.or_else(|| table.get(table.binary_search_by_key(&id, |(id, _)| *id).ok()?));
    found.map(|(_, value)| *value)
}

/// The text between the quotes, still escaped.
fn quoted(bytes: &[u8], at: usize, end: usize) -> Span {
    let text = bytes[at..end].trim_ascii_end();
    match text {
        [b'"', .., b'"'] => Span::new(at + 1, at + text.len() - 1),
        _ => Span::new(at, at + text.len()),
    }
}

fn number(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let mut end = at;
    let mut value = 0_u32;
    while peek(bytes, end).is_ascii_digit() {
        value = value.checked_mul(10)?.checked_add(u32::from(bytes[end] - b'0'))?;
        end += 1;
    }
    (end > at).then_some((value, end))
}

/// Calls `each` with every `key=number` of `{key=number key=number}`.
fn for_each_number(bytes: &[u8], at: usize, end: usize, mut each: impl FnMut(&[u8], u32)) {
    let bytes = &bytes[..end];
    let mut at = at + usize::from(peek(bytes, at) == b'{');
    while at < end {
        let stop = value_end(bytes, at, true);
        if let Some(equals) = memchr::memchr(b'=', &bytes[at..stop])
            && let Some((value, _)) = number(bytes, at + equals + 1)
        {
            each(&bytes[at..at + equals], value);
        }
        at = stop + 1;
    }
}
