//! The one serialized form of results: `docs/json.md` lists its fields, and the page's types and the Python package's
//! are held against it.

#[macro_use]
mod fields;
mod line;
mod time;
mod together;
mod visible;

pub(crate) use fields::placed_elsewhere;
pub use line::JsonLine;
pub use visible::to_visible_json;

use crate::{Terminal, WriteText};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// A value as JSON.
///
/// ```
/// use tilewise_report::AsJson;
///
/// let failure = tilewise_audit::Failure::new("io", "can't be read");
/// let json = serde_json::to_string(&AsJson(&failure))?;
/// assert_eq!(json, r#"{"kind":"io","message":"can't be read","span":null}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct AsJson<'a, T: ?Sized>(pub &'a T);

use AsJson as Json;

impl<T: ?Sized> Clone for AsJson<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for AsJson<'_, T> {}

/// The output for an input: as JSON, or for people.
#[derive(Clone, Debug)]
pub struct Item<T>(pub T);

impl<T> Serialize for Item<T>
where
    for<'a> AsJson<'a, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        AsJson(&self.0).serialize(serializer)
    }
}

impl<T: WriteText> WriteText for Item<T> {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        self.0.write_text(terminal, out)
    }
}

/// A list.
pub(crate) fn all<T>(items: &[T]) -> Vec<Json<'_, T>> {
    items.iter().map(AsJson).collect()
}

/// A value, or null.
pub(crate) fn one<T>(item: Option<&T>) -> Option<Json<'_, T>> {
    item.map(AsJson)
}

/// Serialises a field behind a reference, for types with derived serialisation.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
pub(crate) fn referred<T, S: Serializer>(item: &&T, serializer: S) -> Result<S::Ok, S::Error>
where
    for<'a> Json<'a, T>: Serialize,
{
    Json(*item).serialize(serializer)
}

/// Serialises an optional field, for types with derived serialisation.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
pub(crate) fn optional<T, S: Serializer>(item: &Option<T>, serializer: S) -> Result<S::Ok, S::Error>
where
    for<'a> Json<'a, T>: Serialize,
{
    one(item.as_ref()).serialize(serializer)
}
