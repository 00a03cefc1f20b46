//! Shapes and element types as their text. Needs the feature `serde`.

use crate::{ElementType, Error, Shape};
use ::serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use core::fmt;

impl Serialize for Shape {
    /// Writes XLA's text.
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[3,5]{1,0:T(2,2)}".parse()?;
    /// assert_eq!(serde_json::to_string(&shape)?, r#""f32[3,5]{1,0:T(2,2)}""#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Shape {
    /// Reads XLA's text as [`Shape::parse_as_written`] does: a layout that is missing stays missing, so that a shape comes back as
    /// it was. (A scalar has its empty layout either way, since XLA never prints that.)
    ///
    /// ```
    /// let shape: tilewise::Shape = serde_json::from_str(r#""f32[3,5]""#)?;
    /// assert_eq!(shape.layout(), None);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text { what: "the text of a shape", read: Self::parse_as_written })
    }
}

impl Serialize for ElementType {
    /// Writes XLA's name of the type.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for ElementType {
    /// Reads XLA's name of a type, in any case.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text { what: "the name of an element type", read: str::parse })
    }
}

struct Text<T> {
    what: &'static str,
    read: fn(&str) -> Result<T, Error>,
}

impl<T> de::Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(|error| match error.help() {
            Some(help) => E::custom(format_args!("{error}: {help}")),
            None => E::custom(error),
        })
    }
}
