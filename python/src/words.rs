//! Words of results that are made in Python: sizes as people write them, and tables in Markdown.

use crate::errors::{Error, Result};
use pyo3::prelude::*;
use tilewise::ByteSize;
use tilewise_report::{markdown_table, markdown_text};

/// The bytes of a size such as `1GiB`, `1G` or `1.5 MB`.
#[pyfunction]
pub(crate) fn size_of(text: &str) -> Result<u64> {
    text.trim().parse().map(|ByteSize(bytes)| bytes).map_err(|error| Error::in_text(error, text))
}

/// A table in Markdown, the first row its header, and paragraphs below it.
#[pyfunction]
#[pyo3(signature = (rows: "Sequence[Sequence[str]]", notes: "Sequence[str]"))]
pub(crate) fn markdown(rows: Vec<Vec<String>>, notes: Vec<String>) -> String {
    let below = notes.iter().map(|note| markdown_text(note));
    [markdown_table(&rows), String::new()].into_iter().chain(below).collect::<Vec<_>>().join("\n")
}
