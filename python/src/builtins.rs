//! Python's `str`, the `repr` of tuples, and the command line's texts reworded for Python.

use crate::errors::{Error, Result};
use pyo3::{prelude::*, types::PyString};

/// The UTF-8 text of a `str`.
pub(crate) fn str_of<'a>(text: &'a Bound<'_, PyString>) -> Result<&'a str> {
    text.to_str().map_err(|_| Error::not_unicode())
}

/// The `repr` of a `tuple` from the `repr`s of its items: `(1, 0)`, `(1,)`.
pub(crate) fn tuple_repr(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match &items[..] {
        [one] => format!("({one},)"),
        _ => format!("({})", items.join(", ")),
    }
}

/// A text of the command line, with calls in place of options.
pub(crate) fn in_python(text: &str) -> String {
    text.replace("--all ", "table(all=True) ").replace("--format json lists", "`allocations` lists")
}
