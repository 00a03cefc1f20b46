//! Items of standard input that take several lines.

use crate::document::Equation;
use tilewise::Shape;
use tilewise_hlo::OperationLine;

/// An item of a batch: a line; or an operation that is wrapped as documents do, a proto in protobuf's text format, an
/// equation over several lines.
///
/// ```
/// use tilewise_report::LinesOfItem;
///
/// let mut item = LinesOfItem::new("element_type: F32".to_owned());
/// assert!(item.push("dimensions: 3") && item.push("layout {") && item.push("  minor_to_major: 0") && item.push("}"));
/// assert!(!item.push("element_type: F32"));
/// assert_eq!(item.text().lines().count(), 5);
/// ```
#[derive(Clone, Debug)]
pub struct LinesOfItem {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The lines themselves show whether the next one belongs to it.
    Text,
    Message(Message),
}

/// A proto so far.
#[derive(Clone, Debug, Default)]
struct Message {
    /// Open braces.
    depth: usize,
    /// The fields outside of braces, in order, each once in a row.
    fields: Vec<String>,
}

impl LinesOfItem {
    /// An item that begins with a line.
    #[must_use]
    pub fn new(line: String) -> Self {
        let begins = Shape::begins_like_text_proto(&line) || field(&line) == Some("minor_to_major");
        let kind = if begins { Kind::Message(Message::default().with(&line)) } else { Kind::Text };
        Self { text: line, kind }
    }

    /// All lines so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All lines.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// Whether the next line may belong to it: reading ahead waits for one.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        matches!(self.kind, Kind::Message(_)) || OperationLine::may_go_on(&self.text) || Equation::begins(&self.text)
    }

    /// Takes a line that belongs to it; false of one that begins the next item.
    pub fn push(&mut self, line: &str) -> bool {
        match &mut self.kind {
            Kind::Text => {
                if !OperationLine::is_continued_by(&self.text, line) && !Equation::is_continued_by(&self.text, line) {
                    return false;
                }
            }
            Kind::Message(message) => {
                if !message.is_continued_by(line) {
                    return false;
                }
                *message = std::mem::take(message).with(line);
            }
        }
        self.text.push('\n');
        self.text += line;
        true
    }
}

/// The name of the field that a line begins with.
fn field(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let name = &line[..line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(line.len())];
    let behind = line[name.len()..].trim_start();
    (!name.is_empty() && behind.starts_with([':', '{', '<'])).then_some(name)
}

impl Message {
    /// Inside of braces everything goes on. Outside, a field that a message has once begins the next one; of a repeated field so does one
    /// that comes back behind another, as the first field of a printed layout does.
    fn is_continued_by(&self, line: &str) -> bool {
        if self.depth > 0 {
            return true;
        }
        let Some(name) = field(line) else { return line.trim_start().starts_with(['}', '>']) };
        let is_known = self.fields.iter().any(|known| known == name);
        let is_last = self.fields.last().is_some_and(|last| last == name);
        match name {
            "element_type" | "layout" => !is_known,
            "minor_to_major" => !is_known || is_last,
            _ => true,
        }
    }

    fn with(mut self, line: &str) -> Self {
        if self.depth == 0
            && let Some(name) = field(line)
            && self.fields.last().is_none_or(|last| last != name)
        {
            self.fields.push(name.to_owned());
        }
        for byte in line.bytes() {
            match byte {
                b'{' | b'<' => self.depth += 1,
                b'}' | b'>' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of each item, by number.
    fn items(text: &str) -> Vec<usize> {
        let mut counts = Vec::new();
        let mut item: Option<LinesOfItem> = None;
        for line in text.lines() {
            if item.as_mut().is_some_and(|item| item.push(line)) {
                *counts.last_mut().expect("an item") += 1;
            } else {
                item = Some(LinesOfItem::new(line.to_owned()));
                counts.push(1);
            }
        }
        counts
    }

    #[test]
    fn what_is_printed_is_read_as_it_was() {
        let shapes =
            ["f32[3,5]{1,0:T(2,2)}", "(f32[2]{0}, token[])", "f32[]"].map(|text| text.parse::<Shape>().expect(text));
        let printed: Vec<String> = shapes.iter().map(Shape::to_text_proto).collect();
        let counts: Vec<usize> = printed.iter().map(|text| text.lines().count()).collect();
        assert_eq!(items(&printed.concat()), counts);
        let layout: tilewise::Layout = "{1,0:T(2,2)}".parse().expect("a layout");
        let text = layout.to_text_proto();
        assert_eq!(items(&format!("{text}{text}")), [text.lines().count(); 2]);
        assert_eq!(items("linear_index((2,3), (3,5))\n= 1\n  = 2\nf32[2]\nf32[3]"), [3, 1, 1]);
        assert_eq!(items("a = f32[8]{0}\n   add(b, c)\nf32[2]"), [2, 1]);
    }
}
