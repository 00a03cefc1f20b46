//! A line of HLO text, as programs and documents print it: the shape it defines, and those of its operands.

use std::str::FromStr;
use tilewise::{Error, ErrorKind, Shape};

/// One operation of a program: `%fusion.3 = bf16[32,32]{1,0} fusion(bf16[32,64]{1,0} %dot.2), kind=kCustom`.
///
/// Parsed from its line, which may be wrapped, or cut off inside brackets. All of it is read: text that is no part of
/// an operation is an error. A missing layout stays missing.
///
/// ```
/// use tilewise_hlo::OperationLine;
///
/// let line: OperationLine = "add.936 = bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}
///           add(exponential.183, f32[] %constant.7), metadata={op_name=\"y\"}".parse()?;
/// assert_eq!((&*line.name, &*line.opcode), ("add.936", "add"));
/// assert_eq!(line.result.to_string(), "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}");
/// assert_eq!(line.operands[0].shape, None);
/// assert_eq!(line.operands[1].shape, Some("f32[]".parse()?));
/// assert_eq!(line.attribute("metadata"), Some("{op_name=\"y\"}"));
/// assert!("add.936 = f32[4,8] (2,4)".parse::<OperationLine>().is_err());
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationLine {
    /// The name, without `%`.
    pub name: String,
    /// The shape of the result.
    pub result: Shape,
    /// The opcode; empty if the line ends behind the shape.
    pub opcode: String,
    /// The operands, in order.
    pub operands: Vec<LineOperand>,
    /// The attributes behind the operands, in order: each name with its value, as written.
    pub attributes: Vec<(String, String)>,
}

/// An operand of an [`OperationLine`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineOperand {
    /// The name, without `%`; empty for a literal.
    pub name: String,
    /// The shape, if it stands in front of the name.
    pub shape: Option<Shape>,
}

impl FromStr for OperationLine {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::Syntax`] unless the text begins with a name and `=`; the errors of the shape behind it; and
    /// [`ErrorKind::TrailingInput`] if anything but an operation follows.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut cursor = Cursor { text, at: 0 };
        let Some(name) = cursor.defined() else {
            let at = cursor.at;
            return Err(Error::new(ErrorKind::Syntax, "an operation begins with a name and `=`").at(at..at));
        };
        let name = name.into();
        cursor.skip();
        let result = cursor.shape()?;
        let (opcode, operands, attributes) = cursor.operation()?;
        Ok(Self { name, result, opcode, operands, attributes })
    }
}

impl OperationLine {
    /// The value of an attribute as it is written, such as `kCustom` of `kind`.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether a text begins with a name and `=`.
    #[must_use]
    pub fn begins(text: &str) -> bool {
        Cursor { text, at: 0 }.defined().is_some()
    }

    /// The shape that a text begins with, if the rest is an operation without its name, `f32[8]{0} add(…)`, or the name
    /// of an operand, `f32[8]{0} %x`.
    ///
    /// ```
    /// use tilewise_hlo::OperationLine;
    ///
    /// let shape = |text| OperationLine::shape_without_name(text).map(|shape| shape.to_string());
    /// assert_eq!(shape("f32[8]{0:T(8)} add(%a, %b), metadata={}").as_deref(), Some("f32[8]{0:T(8)}"));
    /// assert_eq!(shape("f32[8]{0} %x").as_deref(), Some("f32[8]{0}"));
    /// assert_eq!(shape("f32[8]{0} T(8)"), None);
    /// ```
    #[must_use]
    pub fn shape_without_name(text: &str) -> Option<Shape> {
        let mut cursor = Cursor { text, at: 0 };
        let shape = cursor.shape().ok()?;
        let has_blank = cursor.rest().starts_with([' ', '\t', '\n']);
        cursor.skip();
        let is_operand = cursor.rest().starts_with('%') && !cursor.name().is_empty() && cursor.rest().trim().is_empty();
        let is_read = is_operand
            || cursor.operation().is_ok_and(|(opcode, operands, _)| is_opcode(&opcode) && !operands.is_empty());
        (has_blank && is_read).then_some(shape)
    }

    /// Whether a text defines an operation, `x = …`, which the next line may continue
    /// ([`is_continued_by`](Self::is_continued_by)).
    #[must_use]
    pub fn may_go_on(text: &str) -> bool {
        is_definition(text)
    }

    /// Whether an operation that is not complete goes on in the next, indented line, as documents wrap it: in front of its opcode, inside of
    /// brackets, or around a comma.
    ///
    /// ```
    /// use tilewise_hlo::OperationLine;
    ///
    /// assert!(OperationLine::is_continued_by("a.1 = f32[8]{0}", "    add(b, c)"));
    /// assert!(OperationLine::is_continued_by("a.1 = f32[8]{0} fusion(b),", "    kind=kLoop"));
    /// assert!(!OperationLine::is_continued_by("a.1 = f32[8]{0} add(b, c)", "  d = f32[8]{0} add(b, c)"));
    /// ```
    #[must_use]
    pub fn is_continued_by(text: &str, line: &str) -> bool {
        if !line.starts_with([' ', '\t']) || !is_definition(text) || is_definition(line) {
            return false;
        }
        let (text, line) = (text.trim_end(), line.trim_start());
        if text.ends_with(',') || line.starts_with(',') || open_brackets(text) > 0 {
            return true;
        }
        let has_no_opcode = text.parse::<Self>().is_ok_and(|operation| operation.opcode.is_empty());
        has_no_opcode && line.split_once('(').is_some_and(|(opcode, _)| is_opcode(opcode))
    }
}

/// Whether a line defines a name, `x = …`, rather than an attribute, `kind=…`.
fn is_definition(text: &str) -> bool {
    let mut cursor = Cursor { text, at: 0 };
    let is_named = cursor.defined().is_some();
    is_named && text[..cursor.at].strip_suffix('=').is_some_and(|before| before.ends_with([' ', '\t', '\n', '\r']))
}

/// The number of brackets open at the end of a text; quoted ones don't count.
fn open_brackets(text: &str) -> usize {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth
}

/// Whether a name is written like an opcode, such as `add` or `dynamic-update-slice`; no property of a layout is.
fn is_opcode(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    name.len() > 1 && name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(is_part)
}

/// An opcode, operands, attributes.
type Parts = (String, Vec<LineOperand>, Vec<(String, String)>);

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Passes white space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let inside = rest.trim_start();
            self.at += rest.len() - inside.len();
            match inside.strip_prefix("/*").and_then(|comment| comment.find("*/")) {
                Some(length) => self.at += length + 4,
                None => return,
            }
        }
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip();
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    /// The name that a line defines, `=` passed.
    fn defined(&mut self) -> Option<&'a str> {
        let mut name = self.name();
        if name == "ROOT" {
            name = self.name();
        }
        (!name.is_empty() && self.eat('=')).then_some(name)
    }

    /// Reads a name, with or without its `%`, which is dropped; empty if no name follows.
    fn name(&mut self) -> &'a str {
        self.skip();
        let start = self.rest().strip_prefix('%').unwrap_or(self.rest());
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        let end = start.bytes().position(|byte| !is_part(byte)).unwrap_or(start.len());
        let name = &start[..end];
        if !name.is_empty() {
            self.at = self.text.len() - start.len() + end;
        }
        name
    }

    fn shape(&mut self) -> Result<Shape, Error> {
        let (shape, length) = Shape::parse_prefix(self.rest()).map_err(|error| error.shifted(self.at))?;
        self.at += length;
        Ok(shape)
    }

    /// Reads everything behind the result's shape.
    fn operation(&mut self) -> Result<Parts, Error> {
        self.skip();
        let start = self.at;
        let opcode = self.name();
        if !is_opcode(opcode) || !self.eat('(') {
            self.skip();
            let is_complete = self.rest().is_empty();
            self.at = start;
            return if is_complete { Ok((opcode.into(), Vec::new(), Vec::new())) } else { Err(self.trailing()) };
        }
        let operands = self.operands(opcode == "constant")?;
        let mut attributes = Vec::new();
        loop {
            self.skip();
            if self.rest().is_empty() {
                return Ok((opcode.into(), operands, attributes));
            }
            if !self.eat(',') {
                return Err(self.trailing());
            }
            let name = self.name();
            if !name.is_empty() && self.eat('=') {
                attributes.push((name.into(), self.value().into()));
            } else if !self.rest().is_empty() {
                return Err(self.trailing());
            }
        }
    }

    fn trailing(&self) -> Error {
        let (start, end) = (self.at, self.text.trim_end().len());
        Error::new(ErrorKind::TrailingInput, "this isn't part of an operation").at(start..end.max(start)).with_help(
            "an operation is `name = shape opcode(operands), attribute=value`; what belongs to a layout stands in its braces",
        )
    }

    /// Reads an attribute's value, up to a comma outside brackets and quotes. It goes on behind a blank if braces or
    /// brackets follow, as in `replica_groups=mesh['x'=4] {'x'}`.
    fn value(&mut self) -> &'a str {
        self.skip();
        let start = self.at;
        loop {
            self.at += end_of_item(self.rest(), |byte| byte == b',' || byte.is_ascii_whitespace());
            let end = self.at;
            self.skip();
            if !self.rest().starts_with(['{', '[']) {
                return &self.text[start..end];
            }
        }
    }

    /// Reads operands up to the closing bracket, or to the end of a line that was cut off.
    fn operands(&mut self, is_literal: bool) -> Result<Vec<LineOperand>, Error> {
        let mut operands = Vec::new();
        loop {
            self.skip();
            if self.rest().is_empty() || self.eat(')') {
                return Ok(operands);
            }
            let shape = if is_literal { None } else { self.shape().ok() };
            let name = self.name();
            operands.push(LineOperand { name: name.into(), shape });
            self.skip();
            let is_nested = operands.last().is_some_and(|operand| operand.shape.is_some()) && is_opcode(name);
            let is_number =
                name.is_empty() || name.starts_with(|first: char| !first.is_ascii_alphabetic() && first != '_');
            if is_literal || is_number || (is_nested && self.rest().starts_with('(')) {
                self.at += end_of_item(self.rest(), |byte| byte == b',' || byte == b')');
            }
            if !self.eat(',') && !self.rest().is_empty() && !self.rest().starts_with(')') {
                return Err(self.trailing());
            }
        }
    }
}

/// The length of the text before a byte that ends it; brackets and quotes are passed over.
fn end_of_item(text: &str, ends: impl Fn(u8) -> bool) -> usize {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    let end = text.bytes().position(|byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            _ if depth == 0 && ends(byte) => return true,
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        false
    });
    end.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_documents_print() {
        let line: OperationLine = "%fusion.3 = bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)}
            fusion(bf16[32,32,8192]{2,1,0:T(8,128)(2,1)S(1)} %fusion.32),
            kind=kCustom, calls=%all-reduce-scatter.3"
            .parse()
            .expect("an operation");
        assert_eq!(line.result.to_string(), "bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)}");
        let [operand] = &line.operands[..] else { panic!("one operand") };
        assert_eq!(operand.name, "fusion.32");
        let shape = operand.shape.as_ref().expect("a shape").to_string();
        assert_eq!(shape, "bf16[32,32,8192]{2,1,0:T(8,128)(2,1)S(1)}");
    }

    #[test]
    fn other_lines() {
        for (text, result, operands) in [
            ("ROOT t = (f32[2]{0}, token[]) tuple(a, %b)", "(f32[2]{0}, token[])", 2),
            ("c = f32[2,2] constant({ {1, 2}, {3, 4} })", "f32[2,2]", 1),
            ("p = f32[] parameter(0), sharding={replicated}", "f32[]", 1),
            ("x = f32[8]{0}", "f32[8]{0}", 0),
            ("y = s32[] call((s32[], f32[2]{0}) %t, /*index=1*/s32[] %n)", "s32[]", 2),
            ("z = f32[8]{0} fusion(f32[8]{0} %a, ...(+8)", "f32[8]{0}", 2),
            ("n = f32[8]{0} custom-call()", "f32[8]{0}", 0),
        ] {
            let line: OperationLine = text.parse().expect(text);
            assert_eq!((line.result.to_string().as_str(), line.operands.len()), (result, operands), "{text}");
        }
    }

    /// Text that is no part of an operation is an error.
    #[test]
    fn all_of_a_line_is_read() {
        for text in [
            "x = f32[4,8] (2,4)",
            "x = f32[4,8]{1,0} T(2,4)",
            "x = f32[8]{0} add(f32[8]{0} T(8) %a, %b)",
            "x = f32[8]{0} add(%a T(8), %b)",
            "x = f32[8]{0} add(%a, %b) S(1)",
            "x = f32[8]{0} add(%a, %b), S(1)",
            "x = f32[8]{0} add(%a, %b), calls=%c (2,1)",
            "x = f32[8]{0}, kind=kLoop",
            "x = f32[8]{0} add, kind=kLoop",
        ] {
            let error = text.parse::<OperationLine>().expect_err(text);
            assert!(error.span().is_some_and(|span| !span.is_empty()), "{text}: {error:?}");
        }
    }

    #[test]
    fn attributes_are_kept() {
        let text = "x = f32[8]{0} all-gather(a), replica_groups=mesh['x'=4] {'x'}, dimensions={0}";
        let line: OperationLine = text.parse().expect("an operation");
        assert_eq!(line.attribute("replica_groups"), Some("mesh['x'=4] {'x'}"));
        let text = "%x = f32[8]{0} fusion(%a), kind=kLoop, calls=%f.1, metadata={op_name=\"a, (b\"}, sharding={devices=[2]0,1}";
        let line: OperationLine = text.parse().expect("an operation");
        let kept: Vec<(&str, &str)> = line.attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(
            kept,
            [
                ("kind", "kLoop"),
                ("calls", "%f.1"),
                ("metadata", "{op_name=\"a, (b\"}"),
                ("sharding", "{devices=[2]0,1}")
            ]
        );
    }

    #[test]
    fn wrapped_lines_go_on() {
        let cases = [
            ("a = f32[8]{0}", "  add(b)", true),
            ("a = f32[8]{0}", "  f32[8]{0}", false),
            ("a = f32[8]{0}", "  T(8)", false),
            ("a = f32[8]{0} add(b,", "      c)", true),
            ("a = f32[8]{0} add(b, c)", "  metadata={}", false),
            ("a = f32[8]{0} add(b, c)", "  , metadata={}", true),
            ("a = f32[8]{0} add(b, c),", "  kind=kLoop, calls=d", true),
            ("a = f32[8]{0} add(b, c), metadata={op_name=\"(\"}", "  d", false),
            ("a = f32[8]{0} add(b,", "c)", false),
            ("f32[8]{0", "  }", false),
            ("kind=kLoop,", "  x", false),
        ];
        for (text, line, goes_on) in cases {
            assert_eq!(OperationLine::is_continued_by(text, line), goes_on, "{text} | {line}");
        }
    }

    #[test]
    fn errors_point_into_the_line() {
        let error = "%x = f33[2] add(a, b)".parse::<OperationLine>().unwrap_err();
        assert_eq!((error.kind(), error.span()), (ErrorKind::UnknownElementType, Some(5..8)));
        for none in ["", "f32[2]{0}", "a b = f32[2]", "= f32[2]", "%", "é = f32[2]", "ROOT", "a ="] {
            assert!(none.parse::<OperationLine>().is_err(), "{none}");
        }
    }
}
