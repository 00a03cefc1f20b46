//! A line of HLO text, as programs and documents print it: the shape it defines, and those of its operands.

use crate::{Error, ErrorKind, Shape};
use alloc::{string::String, vec::Vec};
use core::str::FromStr;

/// One operation of a program: `%fusion.3 = bf16[32,32]{1,0} fusion(bf16[32,64]{1,0} %dot.2), kind=kCustom`.
///
/// Parsed from its line, which may be wrapped. Only the shapes and names are read; what follows the operands is left alone. A missing
/// layout stays missing.
///
/// ```
/// use tilewise::OperationLine;
///
/// let line: OperationLine = "add.936 = bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}
///           add(exponential.183, f32[] %constant.7)".parse()?;
/// assert_eq!((&*line.name, &*line.opcode), ("add.936", "add"));
/// assert_eq!(line.result.to_string(), "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}");
/// assert_eq!(line.operands[0].shape, None);
/// assert_eq!(line.operands[1].shape, Some("f32[]".parse()?));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationLine {
    /// The name, without `%`.
    pub name: String,
    /// The shape of the result.
    pub result: Shape,
    /// What is done; empty where the line ends behind the shape.
    pub opcode: String,
    /// What it is done with.
    pub operands: Vec<Operand>,
}

/// An operand of an [`OperationLine`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operand {
    /// The name, without `%`; empty for a literal.
    pub name: String,
    /// The shape, where it stands in front of the name.
    pub shape: Option<Shape>,
}

impl FromStr for OperationLine {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::Syntax`] unless the text begins with a name and `=`, and what is wrong with the shape behind it.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut cursor = Cursor { text, at: 0 };
        let Some(name) = cursor.defined() else {
            let at = cursor.at;
            return Err(Error::new(ErrorKind::Syntax, "an operation begins with a name and `=`").at(at..at));
        };
        let name = name.into();
        cursor.skip();
        let result = cursor.shape()?;
        let opcode = cursor.name().into();
        let operands = if cursor.eat('(') { cursor.operands() } else { Vec::new() };
        Ok(Self { name, result, opcode, operands })
    }
}

impl OperationLine {
    /// Whether a text begins with a name and `=`.
    pub(crate) fn begins(text: &str) -> bool {
        Cursor { text, at: 0 }.defined().is_some()
    }
}

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

    /// A name with or without its `%`; empty if there is none.
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

    /// All up to the closing bracket, or to the end of what was cut off.
    fn operands(&mut self) -> Vec<Operand> {
        let mut operands = Vec::new();
        loop {
            self.skip();
            if self.rest().is_empty() || self.eat(')') {
                return operands;
            }
            let shape = self.shape().ok();
            let name = self.name().into();
            operands.push(Operand { name, shape });
            self.skip_literal();
            self.eat(',');
        }
    }

    /// Passes what is left of an operand: numbers in brackets, say.
    fn skip_literal(&mut self) {
        let mut depth = 0_usize;
        let end = self.rest().bytes().position(|byte| {
            match byte {
                b'(' | b'{' | b'[' => depth += 1,
                b')' | b'}' | b']' if depth > 0 => depth -= 1,
                b',' | b')' if depth == 0 => return true,
                _ => {}
            }
            false
        });
        self.at += end.unwrap_or(self.rest().len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

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

    #[test]
    fn errors_point_into_the_line() {
        let error = "%x = f33[2] add(a, b)".parse::<OperationLine>().unwrap_err();
        assert_eq!((error.kind(), error.span()), (ErrorKind::UnknownElementType, Some(5..8)));
        for none in ["", "f32[2]{0}", "a b = f32[2]", "= f32[2]", "%", "é = f32[2]", "ROOT", "a ="] {
            assert!(none.parse::<OperationLine>().is_err(), "{none}");
        }
    }
}
