//! `Table`: rows as named columns, for Arrow, pandas and Polars alike.

use crate::errors::Result;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    ffi_stream::FFI_ArrowArrayStream,
};
use numpy::IntoPyArray;
use pyo3::{
    PyClass,
    exceptions::PyValueError,
    prelude::*,
    types::{PyCapsule, PyDict},
};
use std::{borrow::Borrow, collections::HashMap, sync::Arc};
use tilewise_report::{Kind, TableRow, Value};

/// A value whose rows Python reads as a table.
pub(crate) trait Tabular: Send + Sync {
    /// The columns of all rows, in the order of the text.
    fn columns(&self) -> Columns;
}

/// Rows with named columns, for pandas, Polars, and any reader of the Arrow PyCapsule interface. A `Report` is a table
/// of buffers, an `Explanation` a table of allocations.
///
/// Examples:
///     >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
///     >>> report.to_pandas()[["shape", "padding_bytes"]].values.tolist()
///     [['f32[400000,12]{1,0:T(8,128)}', 185600000]]
#[pyclass(frozen, subclass, module = "tilewise", name = "Table")]
pub(crate) struct PyTable(Arc<dyn Tabular>);

impl PyTable {
    /// The base object of an instance of `class`, which extends `Table`.
    pub(crate) fn of<T: PyClass<BaseType = Self>>(
        rows: Arc<impl Tabular + 'static>,
        class: T,
    ) -> PyClassInitializer<T> {
        PyClassInitializer::from(Self(rows)).add_subclass(class)
    }
}

#[pymethods]
impl PyTable {
    /// Every row, by column: a dict of NumPy arrays, or of lists for columns whose values may be missing.
    ///
    /// Examples:
    ///     >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").to_dict()["logical_bytes"]
    ///     array([19200000])
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.0.columns()).into_dict(py)
    }

    /// Every row, as a `pandas.DataFrame`.
    ///
    /// Raises:
    ///     ImportError: pandas is not installed.
    ///
    /// Examples:
    ///     >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").to_pandas()["padding_bytes"].sum()
    ///     np.int64(185600000)
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (pandas, columns) = (py.import("pandas")?, py.detach(|| self.0.columns()));
        // By default, pandas turns integers that may be missing into floats.
        let maybe: Vec<_> = columns.0.iter().filter(|(_, column)| matches!(column, Column::MaybeCount(_))).collect();
        let dtypes: HashMap<_, _> = maybe.into_iter().map(|(name, _)| (*name, "Int64")).collect();
        pandas.call_method1("DataFrame", (columns.into_dict(py)?,))?.call_method1("astype", (dtypes,))
    }

    /// Every row, as a `polars.DataFrame`.
    ///
    /// Raises:
    ///     ImportError: Polars is not installed.
    ///
    /// Examples:
    ///     >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").to_polars()["padding_bytes"].sum()
    ///     185600000
    fn to_polars<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// Every row, as an Arrow C stream of the PyCapsule interface.
    #[pyo3(signature = (requested_schema: "object | None" = None) -> "object")]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore the schema that a consumer requests.
        drop(requested_schema);
        py.detach(|| self.0.columns()).into_arrow_stream(py)
    }
}

/// The values of one column.
pub(crate) enum Column {
    Text(Vec<Option<String>>),
    /// A count in every row.
    Count(Vec<i64>),
    /// A count that may be missing.
    MaybeCount(Vec<Option<i64>>),
    Ratio(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
}

/// Rows whose tables have more columns here than in CSV: every field of the row.
pub(crate) trait Framed: TableRow {
    /// The additional columns, empty. Each is the field of its name; `function` is that of the user's source line.
    fn more() -> Vec<(&'static str, Column)>;
}

impl Column {
    /// An empty column for values of this kind.
    fn empty(column: &tilewise_report::Column) -> Self {
        match (column.kind, column.is_optional) {
            (Kind::Count, false) => Self::Count(Vec::new()),
            (Kind::Count, true) => Self::MaybeCount(Vec::new()),
            (Kind::Ratio, _) => Self::Ratio(Vec::new()),
            _ => Self::Text(Vec::new()),
        }
    }

    /// Adds a row's value; one of another kind is missing.
    fn push(&mut self, cell: Value<'_>) {
        match (self, cell) {
            (Self::Text(values), Value::Text(text)) => values.push(Some(text.into_owned())),
            (Self::Text(values), _) => values.push(None),
            (Self::Count(values), Value::Count(count)) => values.push(signed(count)),
            (Self::Count(values), _) => values.push(0),
            (Self::MaybeCount(values), Value::Count(count)) => values.push(Some(signed(count))),
            (Self::MaybeCount(values), _) => values.push(None),
            (Self::Ratio(values), Value::Ratio(ratio)) => values.push(Some(ratio)),
            (Self::Ratio(values), _) => values.push(None),
            (Self::Flag(values), Value::Flag(flag)) => values.push(Some(flag)),
            (Self::Flag(values), _) => values.push(None),
        }
    }
}

/// A count as data frames hold it: signed, so that differences can be negative.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The value of one of the columns of [`Framed::more`].
fn field<'a>(fields: &HashMap<&'static str, Value<'a>>, name: &str) -> Value<'a> {
    match name {
        "function" => match fields.get("source") {
            Some(Value::Source(source)) => source.function.as_deref().into(),
            _ => Value::Null,
        },
        _ => fields.get(name).cloned().unwrap_or(Value::Null),
    }
}

/// A table with named columns.
pub(crate) struct Columns(pub(crate) Vec<(&'static str, Column)>);

impl Columns {
    /// The columns of these rows, as `tilewise_audit` describes them.
    pub(crate) fn of<R: Framed, B: Borrow<R>>(rows: impl Iterator<Item = B>) -> Self {
        let mut columns: Vec<_> = R::COLUMNS.iter().map(|column| (column.name, Column::empty(column))).collect();
        let mut more = R::more();
        for row in rows {
            let row = row.borrow();
            for ((_, column), cell) in columns.iter_mut().zip(row.cells()) {
                column.push(cell);
            }
            let fields: HashMap<_, _> = row.fields().into_iter().collect();
            for (name, column) in &mut more {
                column.push(field(&fields, name));
            }
        }
        columns.append(&mut more);
        Self(columns)
    }

    /// A dict of NumPy arrays, or of lists for columns whose values may be missing.
    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        for (name, column) in self.0 {
            match column {
                Column::Text(values) => dict.set_item(name, values)?,
                Column::Count(values) => dict.set_item(name, values.into_pyarray(py))?,
                Column::MaybeCount(values) => dict.set_item(name, values)?,
                Column::Flag(values) => dict.set_item(name, values)?,
                Column::Ratio(values) => {
                    let values: Vec<f64> = values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
                    dict.set_item(name, values.into_pyarray(py))?;
                }
            }
        }
        Ok(dict)
    }

    /// The Arrow C stream of one record batch, in a capsule of the PyCapsule interface.
    fn into_arrow_stream(self, py: Python<'_>) -> Result<Bound<'_, PyCapsule>> {
        let arrays = self.0.into_iter().map(|(name, column)| {
            let array: ArrayRef = match column {
                Column::Text(values) => Arc::new(StringArray::from(values)),
                Column::Count(values) => Arc::new(Int64Array::from(values)),
                Column::MaybeCount(values) => Arc::new(Int64Array::from(values)),
                Column::Ratio(values) => Arc::new(Float64Array::from(values)),
                Column::Flag(values) => Arc::new(BooleanArray::from(values)),
            };
            (name, array, true)
        });
        let batch = RecordBatch::try_from_iter_with_nullable(arrays)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let schema = batch.schema();
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
        // A consumer moves the stream out and leaves an empty one, so that each is released exactly once.
        Ok(PyCapsule::new_with_value(py, stream, c"arrow_array_stream")?)
    }
}
