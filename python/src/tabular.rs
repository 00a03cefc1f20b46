//! `Tabular`: results with a dict for each row, for pandas, Polars and Arrow.

use pyo3::{
    prelude::*,
    types::{PyDict, PyList, PyTuple},
};

/// The base class of results that are tables; `_rows` has a dict for each row.
#[pyclass(frozen, subclass, module = "tilewise._tilewise", name = "Tabular")]
pub(crate) struct PyTabular;

/// A library that may be missing; its error tells how to install it.
fn library<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("tilewise._base.modules")?.call_method1("module", (name,))
}

fn rows<'py>(table: &Bound<'py, PyTabular>) -> PyResult<Bound<'py, PyAny>> {
    table.call_method0("_rows")
}

#[pymethods]
impl PyTabular {
    /// Classes that are written in Python have arguments of their own.
    #[new]
    #[pyo3(signature = (*_arguments: "Any", **_named: "Any") -> "Self")]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self
    }

    /// The table, by column.
    #[pyo3(signature = () -> "dict[str, list[Any]]")]
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(slf.py());
        for row in rows(slf)?.try_iter()? {
            for (name, value) in row?.cast::<PyDict>()? {
                match columns.get_item(&name)? {
                    Some(column) => column.cast::<PyList>()?.append(value)?,
                    None => columns.set_item(name, PyList::new(slf.py(), [value])?)?,
                }
            }
        }
        Ok(columns)
    }

    /// The table, as a `pandas.DataFrame`.
    ///
    /// Raises:
    ///     ImportError: pandas is not installed.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pandas")?.call_method1("DataFrame", (rows(slf)?,))
    }

    /// The table, as a `polars.DataFrame`.
    ///
    /// Raises:
    ///     ImportError: Polars is not installed.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let options = PyDict::new(slf.py());
        options.set_item("infer_schema_length", slf.py().None())?;
        library(slf.py(), "polars")?.call_method("DataFrame", (rows(slf)?,), Some(&options))
    }

    /// The table, for any reader of Arrow, where pyarrow is installed.
    #[pyo3(signature = (requested_schema: "object | None" = None) -> "object")]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = library(slf.py(), "pyarrow")?.getattr("Table")?.call_method1("from_pylist", (rows(slf)?,))?;
        table.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    /// For notebooks: the text, as wide as it is, and no higher than a screen.
    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        let text = slf.py().import("html")?.call_method1("escape", (slf.str()?,))?;
        Ok(format!(r#"<pre style="font-family:monospace;overflow:auto;max-height:32em">{text}</pre>"#))
    }
}
