//! The lists of allocations.

use crate::entry::{Entry, Operator, Section, WrittenShape};
use crate::text::clean::TAIL;
use crate::text::instruction::fold;
use crate::text::reader::{Reader, find_words, match_words};
use crate::text::tail;

/// The beginning of an entry, a field or another part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Heading(Section),
    Entry,
    Field(Field),
    /// The line of `=` that ends an entry.
    Rule,
    /// The text behind the lists.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Operator,
    Shape,
    Unpadded,
    Padding,
    Tag,
    Label,
    Type,
    /// In a GPU's list: the buffer is an argument.
    Parameter,
}

const WORDS: [(&str, Marker); 13] = [
    ("Operator:", Marker::Field(Field::Operator)),
    ("Shape:", Marker::Field(Field::Shape)),
    ("Unpadded size:", Marker::Field(Field::Unpadded)),
    ("Extra memory due to padding:", Marker::Field(Field::Padding)),
    ("Tag:", Marker::Field(Field::Tag)),
    ("XLA label:", Marker::Field(Field::Label)),
    ("XLA Label:", Marker::Field(Field::Label)),
    ("Entry Parameter Subshape:", Marker::Field(Field::Parameter)),
    ("Allocation type:", Marker::Field(Field::Type)),
    ("Largest program arguments and outputs in", Marker::Heading(Section::ArgumentsAndOutputs)),
    ("Largest program allocations in", Marker::Heading(Section::Allocations)),
    ("See https://", Marker::End),
    (TAIL, Marker::End),
];

struct Event {
    start: usize,
    end: usize,
    marker: Marker,
    starts_line: bool,
}

/// The entries of `text`, their start, and whether the text behind a message was seen.
pub(crate) struct List {
    pub(crate) entries: Vec<Entry>,
    pub(crate) start: usize,
    pub(crate) ended: bool,
}

pub(crate) fn read(text: &str) -> List {
    let mut events = events(text);
    // If entries and fields start lines, markers inside lines are part of values; otherwise line ends were lost.
    let is_field = |event: &Event| matches!(event.marker, Marker::Field(_));
    let folded = events.iter().any(|event| event.marker == Marker::Entry && !event.starts_line)
        || !events.iter().any(|event| is_field(event) && event.starts_line);
    events.retain(|event| folded || event.starts_line || event.marker == Marker::End);

    // Before 2020 entries had no sizes, and began with their label.
    let is_sizeless = !events.iter().any(|event| event.marker == Marker::Entry);
    let begins = |event: &&Event| matches!(event.marker, Marker::Heading(_) | Marker::Entry);
    let begins = |event: &&Event| begins(event) || is_sizeless && event.marker == Marker::Field(Field::Label);
    let start = events.iter().find(begins).map_or(text.len(), |event| event.start);
    let mut list = List { entries: Vec::new(), start, ended: false };
    let mut section = Section::Allocations;
    let mut open: Option<Entry> = None;
    for (number, event) in events.iter().enumerate() {
        let next = events.get(number + 1);
        let value = &text[event.end..next.map_or(text.len(), |next| next.start)];
        match event.marker {
            Marker::Heading(heading) => section = heading,
            Marker::Entry => {
                list.push(open.take());
                let digits =
                    text[event.start..event.end].split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
                let mut entry = Entry::new(section, digits.and_then(|digits| digits.parse().ok()));
                entry.size = Reader::new(value, 0).size();
                open = Some(entry);
            }
            Marker::Field(field) => {
                if is_sizeless && field == Field::Label {
                    list.push(open.take());
                    open = Some(Entry::new(section, None));
                }
                if let Some(entry) = &mut open {
                    set(entry, field, value, next.is_some());
                }
            }
            Marker::Rule => {
                if let Some(entry) = &mut open {
                    entry.complete = true;
                }
                list.push(open.take());
            }
            Marker::End => list.ended = true,
        }
    }
    list.push(open);
    list.without_repeats();
    list
}

/// Number of preceding lists that a list is compared with.
const COMPARED: usize = 16;

impl List {
    /// Drops repeated lists: a log prints a list, and so does the traceback below it.
    fn without_repeats(&mut self) {
        let follows = |one: &Entry, next: &Entry| next.number.is_none() || one.number <= next.number;
        let lists: Vec<&[Entry]> = self.entries.chunk_by(follows).collect();
        let is_first = |(at, list): &(usize, &&[Entry])| !lists[at.saturating_sub(COMPARED)..*at].contains(*list);
        let kept = lists.iter().enumerate().filter(is_first).flat_map(|(_, list)| list.iter().cloned()).collect();
        self.entries = kept;
    }

    fn push(&mut self, mut entry: Option<Entry>) {
        if let Some(Entry { size: Some(size), shape: Some(shape), .. }) = &mut entry {
            shape.repair(size);
        }
        if let Some(joined) = entry.take_if(|entry| entry.is_joined()) {
            self.entries.extend(joined.parted());
        }
        self.entries.extend(entry.filter(|entry| !entry.is_empty()));
    }
}

/// Everything that could be a marker: at the start of a line or behind a blank.
fn events(text: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let (mut at, mut starts_line) = (0, true);
    while at < text.len() {
        let rest = &text[at..];
        if let Some((length, marker)) = marker(rest) {
            events.push(Event { start: at, end: at + length, marker, starts_line });
        }
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let after = &rest[word..];
        let gap = after.len() - after.trim_start().len();
        starts_line = at == 0 && word == 0 || after[..gap].contains('\n');
        at += word + gap;
    }
    events
}

fn marker(text: &str) -> Option<(usize, Marker)> {
    let first = text.bytes().next()?;
    if first.is_ascii_digit() {
        let digits = text.bytes().take(10).take_while(u8::is_ascii_digit).count();
        let length = match_words(&text[digits..], ". Size:")?;
        return Some((digits + length, Marker::Entry));
    }
    if let Some(digits) =
        text.strip_prefix("Buffer ").map(|rest| rest.bytes().take(10).take_while(u8::is_ascii_digit).count())
        && digits > 0
    {
        let length = "Buffer ".len() + digits;
        return Some((length + match_words(&text[length..], ": Size:")?, Marker::Entry));
    }
    if first == b'=' {
        let length = text.bytes().take_while(|byte| *byte == b'=').count();
        return (length >= 4).then_some((length, Marker::Rule));
    }
    WORDS.iter().find_map(|(words, marker)| {
        let same = words.as_bytes().first() == Some(&first);
        same.then(|| match_words(text, words)).flatten().map(|length| (length, *marker))
    })
}

fn set(entry: &mut Entry, field: Field, value: &str, terminated: bool) {
    let line = || value.trim_start().lines().next().unwrap_or("").trim_end();
    let whole = || if terminated { fold(value) } else { without_partial_marker(line()).to_owned() };
    let some = |text: String| (!text.is_empty()).then_some(text);
    match field {
        Field::Operator => entry.operator = some(whole()).map(Operator::new),
        Field::Tag => entry.tag = some(whole()),
        Field::Label => entry.label = some(whole()),
        Field::Type => entry.allocation_type = some(without_partial_marker(line()).to_owned()),
        Field::Parameter => {
            entry.section = Section::ArgumentsAndOutputs;
            let text = without_partial_marker(line());
            entry.shape = entry.shape.take().or_else(|| some(text.to_owned()).map(WrittenShape::new));
        }
        Field::Unpadded => entry.unpadded = Reader::new(value, 0).size(),
        Field::Shape => {
            let text = without_partial_marker(line());
            let text = if balanced(text) { text.to_owned() } else { whole() };
            entry.shape = some(text).map(WrittenShape::new);
        }
        Field::Padding => {
            let mut reader = Reader::new(value, 0);
            entry.padding = reader.size();
            if reader.eat("(") {
                let number = reader.word().strip_suffix('x').and_then(|number| number.parse().ok());
                entry.expansion = number.filter(|_| reader.eat("expansion"));
            }
        }
    }
}

fn balanced(text: &str) -> bool {
    let count = |bytes: [u8; 3]| text.bytes().filter(|byte| bytes.contains(byte)).count();
    count(*b"([{") == count(*b")]}")
}

/// The text without the beginning of a marker at its end, where it was cut.
fn without_partial_marker(text: &str) -> &str {
    let longest = WORDS.iter().map(|(words, _)| words.len()).max().unwrap_or(0);
    let from = text.len() - tail(text, longest).len();
    let partial = |at: &usize| {
        let end = &text[*at..];
        let rule = end.len() < 4 && end.bytes().all(|byte| byte == b'=');
        !end.is_empty() && (rule || WORDS.iter().any(|(words, _)| words.starts_with(end)))
    };
    let words = text[from..].match_indices(char::is_whitespace).map(|(at, blank)| from + at + blank.len());
    words.into_iter().find(partial).map_or(text, |at| text[..at].trim_end())
}

/// The memory space that a heading names: `Largest program allocations in NAME:`, `Program NAME requirement`.
pub(crate) fn memory_space(text: &str) -> Option<String> {
    let after = ["Largest program allocations in", "Largest program arguments and outputs in", "Program", "Total"];
    after.into_iter().find_map(|words| {
        let mut reader = Reader::new(text, find_words(text, 0, words)?.1);
        let name = reader.word().trim_end_matches(':');
        let known = matches!(name, "hbm" | "vmem" | "smem" | "cmem" | "sflag" | "host");
        known.then(|| name.to_owned())
    })
}
