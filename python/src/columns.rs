//! Rows as columns: once for Arrow, pandas and Polars.

use crate::errors::Result;
use arrow_array::{
    ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
    ffi_stream::FFI_ArrowArrayStream,
};
use numpy::IntoPyArray;
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyCapsule, PyDict},
};
use std::sync::Arc;

/// The values of one column.
pub(crate) enum Column {
    Text(Vec<Option<String>>),
    /// A count that every row has.
    Count(Vec<u64>),
    /// A count that some rows lack.
    MaybeCount(Vec<Option<u64>>),
    Ratio(Vec<Option<f64>>),
}

/// A table with named columns.
pub(crate) struct Columns(pub(crate) Vec<(&'static str, Column)>);

impl Columns {
    /// A dict of NumPy arrays, and of lists where a value may be missing.
    pub(crate) fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        for (name, column) in self.0 {
            match column {
                Column::Text(values) => dict.set_item(name, values)?,
                Column::Count(values) => dict.set_item(name, values.into_pyarray(py))?,
                Column::MaybeCount(values) => dict.set_item(name, values)?,
                Column::Ratio(values) => {
                    let values: Vec<f64> = values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
                    dict.set_item(name, values.into_pyarray(py))?;
                }
            }
        }
        Ok(dict)
    }

    /// A `pandas.DataFrame`.
    pub(crate) fn into_pandas(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        py.import("pandas")?.call_method1("DataFrame", (self.into_dict(py)?,))
    }

    /// The Arrow C stream of one batch, in a capsule as the PyCapsule interface wants it.
    pub(crate) fn into_arrow_stream(self, py: Python<'_>) -> Result<Bound<'_, PyCapsule>> {
        let arrays = self.0.into_iter().map(|(name, column)| {
            let array: ArrayRef = match column {
                Column::Text(values) => Arc::new(StringArray::from(values)),
                Column::Count(values) => Arc::new(UInt64Array::from(values)),
                Column::MaybeCount(values) => Arc::new(UInt64Array::from(values)),
                Column::Ratio(values) => Arc::new(Float64Array::from(values)),
            };
            (name, array, true)
        });
        let batch = RecordBatch::try_from_iter_with_nullable(arrays)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let schema = batch.schema();
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
        // Whoever takes the stream out leaves an empty one; dropping either releases what is left.
        Ok(PyCapsule::new_with_value(py, stream, c"arrow_array_stream")?)
    }
}
