//! `key=value` lists: after an instruction, in a module's header, in `metadata={…}`.

use std::borrow::Cow;
use std::slice;
use tilewise::visible;

use crate::record::{AttributeRecords, Data};
use crate::scan::{identifier_end, peek, skip_trivia, value_end};
use crate::span::Span;
use crate::steps;

/// One `name=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'m> {
    /// The name.
    pub name: &'m str,
    /// The text of the value, with its brackets or quotes.
    pub value: &'m str,
}

/// Iterates over the `name=value` pairs of a text, in its order.
///
/// Brackets nest; strings are not looked into. Text that is no pair is skipped.
#[derive(Clone, Debug)]
pub struct Attributes<'m>(Pairs<'m>);

#[derive(Clone, Debug)]
enum Pairs<'m> {
    Written(WrittenPairs<'m>),
    /// Of an instruction, found once.
    Found(&'m Data, slice::Iter<'m, [Span; 2]>),
}

impl<'m> Attributes<'m> {
    /// Pairs with commas between.
    pub(crate) fn new(text: &'m str) -> Self {
        Self(Pairs::Written(WrittenPairs { rest: text, blank_separated: false }))
    }

    /// Pairs with white space between, in braces: `{op_name="f" stack_frame_id=3}`.
    fn in_braces(text: &'m str) -> Self {
        let inside = text.strip_prefix('{').unwrap_or(text);
        let rest = inside.strip_suffix('}').unwrap_or(inside);
        Self(Pairs::Written(WrittenPairs { rest, blank_separated: true }))
    }

    /// Those of an instruction.
    pub(crate) fn of(data: &'m Data, instruction: usize) -> Self {
        let pairs = data.attributes.get_or_init(|| all(data)).of(instruction);
        steps::take(pairs.len());
        Self(Pairs::Found(data, pairs.iter()))
    }

    /// The value of the first pair of this name.
    pub(crate) fn get(mut self, name: &str) -> Option<&'m str> {
        self.find(|attribute| attribute.name == name).map(|attribute| attribute.value)
    }
}

impl<'m> Iterator for Attributes<'m> {
    type Item = Attribute<'m>;

    fn next(&mut self) -> Option<Attribute<'m>> {
        match &mut self.0 {
            Pairs::Written(pairs) => pairs.next(),
            Pairs::Found(data, pairs) => {
                let [name, value] = *pairs.next()?;
                Some(Attribute { name: data.text(name), value: data.text(value) })
            }
        }
    }
}

/// The attributes of all instructions.
fn all(data: &Data) -> AttributeRecords {
    let mut records = AttributeRecords::default();
    for record in &data.instructions {
        let text = data.text(record.attributes);
        steps::take(text.len());
        let pairs = Attributes::new(text);
        records.push(pairs.map(|pair| [data.span_of(pair.name), data.span_of(pair.value)]));
    }
    records
}

/// The pairs of a text.
#[derive(Clone, Debug)]
struct WrittenPairs<'m> {
    rest: &'m str,
    blank_separated: bool,
}

impl<'m> Iterator for WrittenPairs<'m> {
    type Item = Attribute<'m>;

    fn next(&mut self) -> Option<Attribute<'m>> {
        loop {
            let bytes = self.rest.as_bytes();
            let mut start = skip_trivia(bytes, 0);
            while peek(bytes, start) == b',' {
                start = skip_trivia(bytes, start + 1);
            }
            if start >= bytes.len() {
                return None;
            }
            let name = identifier_end(bytes, start);
            let equals = skip_trivia(bytes, name);
            let is_pair = name > start && peek(bytes, equals) == b'=';
            let value = if is_pair { skip_trivia(bytes, equals + 1) } else { start };
            let end = value_end(bytes, value, self.blank_separated);
            let (text, name) = (self.rest, start..name);
            // `value_end` stops at a separator or a comment; one byte of it is skipped, so that the loop always
            // advances.
            self.rest = text.get(end.max(start + 1)..).unwrap_or_default();
            if is_pair {
                return Some(Attribute { name: &text[name], value: text[value..end].trim_ascii_end() });
            }
        }
    }
}

/// `metadata={…}`: the origin of an instruction.
///
/// ```
/// use tilewise_hlo::Module;
///
/// let module = Module::parse("x = f32[] add(a, b), metadata={op_name=\"jit(f)/add\" stack_frame_id=7}")?;
/// let metadata = module.instructions().next().unwrap().metadata().unwrap();
/// assert_eq!(metadata.op_name().unwrap(), "jit(f)/add");
/// assert_eq!(metadata.stack_frame_id(), Some(7));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'m> {
    text: &'m str,
}

impl<'m> Metadata<'m> {
    pub(crate) fn new(text: &'m str) -> Self {
        Self { text }
    }

    /// The text, with its braces.
    #[must_use]
    pub fn text(&self) -> &'m str {
        self.text
    }

    /// The text of one entry, strings with their quotes.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'m str> {
        Attributes::in_braces(self.text).get(name)
    }

    /// The framework's name of the operation: `jit(f)/dot_general`.
    #[must_use]
    pub fn op_name(&self) -> Option<Cow<'m, str>> {
        self.get("op_name").map(unquote)
    }

    /// The framework's kind of operation.
    #[must_use]
    pub fn op_type(&self) -> Option<Cow<'m, str>> {
        self.get("op_type").map(unquote)
    }

    /// The source file, in texts without the tables.
    #[must_use]
    pub fn source_file(&self) -> Option<Cow<'m, str>> {
        self.get("source_file").map(unquote)
    }

    /// The line in the source file, from 1, in texts without the tables.
    #[must_use]
    pub fn source_line(&self) -> Option<u32> {
        self.get("source_line")?.parse().ok()
    }

    /// The row of the `StackFrames` table, from 1.
    #[must_use]
    pub fn stack_frame_id(&self) -> Option<u32> {
        self.get("stack_frame_id")?.parse().ok().filter(|id| *id != 0)
    }
}

/// The contents of a quoted string, its C escapes resolved; other text is returned as it is.
///
/// XLA escapes with `absl::CEscape`, which writes bytes outside ASCII in octal. Bytes that then aren't UTF-8 become
/// U+FFFD, and characters that a terminal would interpret are [`visible`].
///
/// ```
/// assert_eq!(tilewise_hlo::unquote(r#""a\"b\n\303\251""#), r#"a"b\né"#);
/// assert_eq!(tilewise_hlo::unquote(r#""\033[2J""#), r"\u{1b}[2J");
/// assert_eq!(tilewise_hlo::unquote("kLoop"), "kLoop");
/// ```
#[must_use]
pub fn unquote(text: &str) -> Cow<'_, str> {
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(inside) => unescape(inside),
        None => Cow::Borrowed(text),
    }
}

pub(crate) fn unescape(text: &str) -> Cow<'_, str> {
    // Most texts have neither escapes nor what needs one: this loop is vectorised.
    if text.bytes().fold(true, |is_plain, byte| is_plain & (matches!(byte, b' '..=b'~') & (byte != b'\\'))) {
        return Cow::Borrowed(text);
    }
    if !text.contains('\\') {
        return visible(text);
    }
    let mut bytes = text.bytes().peekable();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        let Some(escape) = bytes.next() else {
            plain.push(b'\\');
            break;
        };
        let mut digits = |value: u32, radix: u32, most: usize| {
            let mut value = value;
            for _ in 0..most {
                let Some(digit) = bytes.peek().and_then(|byte| char::from(*byte).to_digit(radix)) else {
                    break;
                };
                value = value * radix + digit;
                bytes.next();
            }
            u8::try_from(value & 0xff).unwrap_or_default()
        };
        plain.push(match escape {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'a' => 7,
            b'b' => 8,
            b'v' => 11,
            b'f' => 12,
            b'0'..=b'7' => digits(u32::from(escape - b'0'), 8, 2),
            b'x' => digits(0, 16, 2),
            other => other,
        });
    }
    Cow::Owned(visible(&String::from_utf8_lossy(&plain)).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(&str, &str)> {
        Attributes::new(text).map(|attribute| (attribute.name, attribute.value)).collect()
    }

    #[test]
    fn values_keep_their_brackets_and_strings() {
        let text = r#", slice={[0:16], [0:1]}, dim_labels=bf0_0oi->b0f, sharding={devices=[2,1]<=[2]}, s="a, b=\"}", c={"x":{}} // t=1"#;
        let found = pairs(text);
        assert_eq!(found[0], ("slice", "{[0:16], [0:1]}"));
        assert_eq!(found[1], ("dim_labels", "bf0_0oi->b0f"));
        assert_eq!(found[2], ("sharding", "{devices=[2,1]<=[2]}"));
        assert_eq!(found[3], ("s", r#""a, b=\"}""#));
        assert_eq!(found[4], ("c", r#"{"x":{}}"#));
        assert_eq!(found.len(), 5);
        assert_eq!(pairs(",, junk here, a = 1 ,é=2, b={"), [("a", "1"), ("b", "{")]);
        assert_eq!(pairs("\"open, a=1"), []);
        assert_eq!(pairs("a={}/b, /*c=3*/ d=4"), [("a", "{}/b"), ("d", "4")]);
    }

    #[test]
    fn metadata_is_separated_by_blanks() {
        let metadata = Metadata::new(
            r#"{op_type="dot" op_name="a b={c} \"d\"" source_file="/m\\n.py" source_line=12 scheduling_name="x"}"#,
        );
        assert_eq!(metadata.op_type().unwrap(), "dot");
        assert_eq!(metadata.op_name().unwrap(), "a b={c} \"d\"");
        assert_eq!(metadata.source_file().unwrap(), "/m\\n.py");
        assert_eq!(metadata.source_line(), Some(12));
        assert_eq!(metadata.stack_frame_id(), None);
        assert_eq!(Metadata::new("{").op_name(), None);
        assert_eq!(Metadata::new("{}").op_name(), None);
    }

    #[test]
    fn broken_escapes_do_no_harm() {
        assert_eq!(unescape("a\\"), "a\\");
        assert_eq!(unescape("\\x"), "\\u{0}");
        assert_eq!(unescape("\\777"), "\u{fffd}");
        assert_eq!(unquote("\""), "\"");
    }
}
