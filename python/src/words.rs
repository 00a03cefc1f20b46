//! Words of results that are made in Python: sizes as people write them, tables in Markdown, and the page of a search.

use crate::errors::{Error, Result};
use pyo3::prelude::*;
use tilewise::ByteSize;
use tilewise_report::{SearchCurve, SearchPage, SearchPoint, markdown_table, markdown_text};

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

/// The page of a search: its table, owners and notes, and the axis with its curves, each a name and the sizes, bytes,
/// limits and statuses of its points.
#[pyfunction]
#[pyo3(signature = (
    rows: "Sequence[Sequence[str]]",
    owners: "Sequence[str]",
    notes: "Sequence[str]",
    axis,
    curves: "Sequence[tuple[str, Sequence[tuple[int, int, int, str]]]]",
))]
pub(crate) fn search_page(
    rows: Vec<Vec<String>>,
    owners: Vec<String>,
    notes: Vec<String>,
    axis: String,
    curves: Vec<Curve>,
) -> String {
    SearchPage { rows, owners, notes, ..searched(axis, curves) }.to_html()
}

/// The picture of a search, with arguments of [`search_page`].
#[pyfunction]
#[pyo3(signature = (axis, curves: "Sequence[tuple[str, Sequence[tuple[int, int, int, str]]]]"))]
pub(crate) fn search_curves(axis: String, curves: Vec<Curve>) -> String {
    searched(axis, curves).to_svg()
}

type Curve = (String, Vec<(u64, u64, u64, String)>);

fn searched(axis: String, curves: Vec<Curve>) -> SearchPage {
    let point = |(size, bytes, limit, status)| SearchPoint { size, bytes, limit, status };
    let curve = |(name, points): Curve| SearchCurve { name, points: points.into_iter().map(point).collect() };
    SearchPage { axis, curves: curves.into_iter().map(curve).collect(), ..SearchPage::default() }
}
