//! The fields of wordings.

use crate::entry::WrittenShape;
use crate::text::size::PrintedSize;
use std::fmt;

/// A message's fields beside its figures, in its order, such as the block that a kernel's error is about. The fields
/// depend on the message's [`Form`](crate::Form).
///
/// ```
/// let text = "cannot statically prove that index in dimension 1 is a multiple of 128";
/// let message = tilewise_oom::Message::parse(text)?;
/// assert_eq!((message.facts.number("dimension"), message.facts.number("multiple")), (Some(1), Some(128)));
/// assert_eq!(message.facts.to_string(), "dimension 1, multiple 128");
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts(pub(crate) Vec<Fact>);

/// One field of a wording.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The field's name, `dimension`.
    pub name: &'static str,
    /// The field's value in the text.
    pub value: FactValue,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FactValue {
    /// A size.
    Size(PrintedSize),
    /// A number that isn't a size.
    Number(u64),
    /// A name, or the rest of a line.
    Text(String),
    /// Bounds of a shape or block, `None` for one that isn't a number: `(1, 128)`, `(Blocked(block_size=8), None)`.
    Bounds(Vec<Option<u64>>),
    /// Shapes.
    Shapes(Vec<WrittenShape>),
}

impl Facts {
    /// All fields.
    pub fn iter(&self) -> impl Iterator<Item = &Fact> {
        self.0.iter()
    }

    /// The field with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&FactValue> {
        self.0.iter().find(|fact| fact.name == name).map(|fact| &fact.value)
    }

    /// The size in a field; `None` if it holds something else.
    #[must_use]
    pub fn size(&self, name: &str) -> Option<&PrintedSize> {
        match self.get(name)? {
            FactValue::Size(size) => Some(size),
            _ => None,
        }
    }

    /// The number in a field; `None` if it holds something else.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            FactValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The text in a field; `None` if it holds something else.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            FactValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bounds in a field; `None` if it holds something else.
    #[must_use]
    pub fn bounds(&self, name: &str) -> Option<&[Option<u64>]> {
        match self.get(name)? {
            FactValue::Bounds(bounds) => Some(bounds),
            _ => None,
        }
    }

    /// The shapes in a field; empty if it holds something else.
    #[must_use]
    pub fn shapes(&self, name: &str) -> &[WrittenShape] {
        match self.get(name) {
            Some(FactValue::Shapes(shapes)) => shapes,
            _ => &[],
        }
    }

    /// Removes a field and returns its value.
    pub(crate) fn take(&mut self, name: &str) -> Option<FactValue> {
        let at = self.0.iter().position(|fact| fact.name == name)?;
        Some(self.0.remove(at).value)
    }

    pub(crate) fn take_size(&mut self, name: &str) -> Option<PrintedSize> {
        match self.take(name)? {
            FactValue::Size(size) => Some(size),
            _ => None,
        }
    }

    pub(crate) fn take_text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            FactValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether all fields in both have equal values.
    pub(crate) fn agree(&self, others: &[Fact]) -> bool {
        others.iter().all(|other| match (self.get(other.name), &other.value) {
            (Some(FactValue::Size(a)), FactValue::Size(b)) => a.is_same(b),
            (Some(own), value) => own == value,
            (None, _) => true,
        })
    }

    /// Adds missing fields, and replaces rounded sizes by exact ones.
    pub(crate) fn extend(&mut self, others: Vec<Fact>) {
        for other in others {
            match self.0.iter_mut().find(|fact| fact.name == other.name) {
                None => self.0.push(other),
                Some(Fact { value: FactValue::Size(own), .. }) => {
                    if let FactValue::Size(size) = other.value
                        && size.is_exact()
                        && !own.is_exact()
                    {
                        *own = size;
                    }
                }
                Some(_) => {}
            }
        }
    }
}

impl fmt::Display for Facts {
    /// Names and values, one after the other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Fact { name, value }) in self.0.iter().enumerate() {
            f.write_str(if number > 0 { ", " } else { "" })?;
            write!(f, "{name} {value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FactValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => size.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Bounds(bounds) => {
                let bounds = bounds.iter().map(|bound| bound.map_or_else(|| "?".to_owned(), |bound| bound.to_string()));
                write!(f, "({})", bounds.collect::<Vec<_>>().join(", "))
            }
            Self::Shapes(shapes) => {
                let texts: Vec<&str> = shapes.iter().map(|shape| shape.text.as_str()).collect();
                f.write_str(&texts.join(", "))
            }
        }
    }
}
