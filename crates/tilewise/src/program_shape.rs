//! The shapes of a computation's parameters and result.

use crate::{Error, ErrorKind, Shape};
use alloc::{borrow::ToOwned, format, string::String, vec::Vec};
use core::{fmt, str::FromStr};

/// The shapes of a computation's parameters and of its result, `(f32[2]) -> f32[3]`: XLA's `ProgramShape`.
///
/// `Display` prints it as XLA does, without layouts, each parameter's name in front of it where it has one. Parsed from that, with layouts or
/// without; a missing layout stays missing.
///
/// ```
/// use tilewise::ProgramShape;
///
/// let program: ProgramShape = "(x: f32[2]{0:S(1)}, (s32[], token[])) -> f32[3]".parse()?;
/// assert_eq!(program.parameters[0], (Some("x".to_owned()), "f32[2]{0:S(1)}".parse()?));
/// assert_eq!(program.to_string(), "(x: f32[2], (s32[], token[])) -> f32[3]");
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProgramShape {
    /// Each parameter's name, if it has one, and its shape.
    pub parameters: Vec<(Option<String>, Shape)>,
    /// The result's shape.
    pub result: Shape,
}

impl FromStr for ProgramShape {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::Syntax`], [`ErrorKind::TrailingInput`], and those of a shape's text, with the span.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut at = 0;
        let skip = |at: &mut usize| *at += text[*at..].len() - text[*at..].trim_start().len();
        let expect = |wanted: &str, at: &mut usize| {
            skip(at);
            if !text[*at..].starts_with(wanted) {
                let end = *at + text[*at..].chars().next().map_or(0, char::len_utf8);
                let error = Error::new(ErrorKind::Syntax, format!("expected `{wanted}` in the shape of a program"));
                return Err(error.at(*at..end).with_help("such as `(f32[2], s32[]) -> f32[3]`"));
            }
            *at += wanted.len();
            Ok(())
        };
        let shape = |at: &mut usize| {
            skip(at);
            let (shape, length) = Shape::parse_prefix(&text[*at..]).map_err(|error| error.shifted(*at))?;
            *at += length;
            Ok::<Shape, Error>(shape)
        };
        expect("(", &mut at)?;
        skip(&mut at);
        let mut parameters = Vec::new();
        while !text[at..].starts_with(')') {
            if !parameters.is_empty() {
                expect(",", &mut at)?;
                skip(&mut at);
            }
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '%');
            let name = text[at..].find(|c| !is_part(c)).and_then(|end| text[at..].split_at_checked(end));
            let name = name.filter(|(name, rest)| !name.is_empty() && rest.trim_start().starts_with(':'));
            if let Some((name, _)) = name {
                at += name.len();
                expect(":", &mut at)?;
            }
            parameters.push((name.map(|(name, _)| name.trim_start_matches('%').to_owned()), shape(&mut at)?));
            skip(&mut at);
        }
        expect(")", &mut at)?;
        expect("->", &mut at)?;
        let result = shape(&mut at)?;
        skip(&mut at);
        if at < text.len() {
            let message = "the shape of the program ends here, and more text follows";
            return Err(Error::new(ErrorKind::TrailingInput, message).at(at..text.trim_end().len()));
        }
        Ok(Self { parameters, result })
    }
}

impl fmt::Display for ProgramShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (number, (name, shape)) in self.parameters.iter().enumerate() {
            f.write_str(if number > 0 { ", " } else { "" })?;
            if let Some(name) = name {
                write!(f, "{name}: ")?;
            }
            write!(f, "{}", shape.without_layout())?;
        }
        write!(f, ") -> {}", self.result.without_layout())
    }
}
