//! The properties of `Shape` about memory: sizes, padding and its causes.

use crate::{errors::Result, shape::PyShape, typed::Tuple};
use pyo3::prelude::*;

#[pymethods]
impl PyShape {
    /// Bytes of the array's data, without padding.
    ///
    /// Raises:
    ///     ShapeError: not an array, or one with an unbounded dimension or no layout, or more than 2^63 − 1 bytes. The
    ///         same holds for every other size.
    #[getter]
    fn logical_bytes(&self) -> Result<u64> {
        Ok(self.tiled()?.logical_bytes())
    }

    /// Bytes that the array takes in memory, padding included.
    #[getter]
    fn physical_bytes(&self) -> Result<u64> {
        Ok(self.tiled()?.physical_bytes())
    }

    /// Bytes of padding: `physical_bytes - logical_bytes`.
    #[getter]
    fn padding_bytes(&self) -> Result<u64> {
        Ok(self.tiled()?.padding_bytes())
    }

    /// `physical_bytes / logical_bytes`; 1 for an array without elements.
    #[getter]
    fn expansion(&self) -> Result<f64> {
        Ok(self.tiled()?.expansion())
    }

    /// The bounds of the array in memory, with every tile's dimensions, major to minor, in elements.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{1,0:T(2,2)}").physical_dimensions
    ///     (2, 3, 2, 2)
    #[getter]
    fn physical_dimensions(&self) -> Result<Tuple<u64>> {
        Ok(self.tiled()?.physical_dimensions().into())
    }

    /// Elements the buffer has room for, padding included.
    #[getter]
    fn physical_elements(&self) -> Result<u64> {
        Ok(self.tiled()?.physical_elements())
    }

    /// The result of XLA's `ShapeUtil::ArraySize`, in bytes, which takes only the first tile into account; `None` where
    /// that function fails.
    #[getter]
    fn xla_array_size(&self) -> Result<Option<u64>> {
        Ok(self.array()?.xla_array_size())
    }

    /// The parts of the layout's text, each a (text, meaning) pair; empty without a layout.
    ///
    /// Examples:
    ///     >>> Shape("bf16[300,500]{1,0:T(8,128)(2,1)}").layout_in_words()[1]
    ///     ('T(8,128)', 'the two minor dimensions are cut into blocks of 8 rows × 128 columns')
    fn layout_in_words(&self) -> Result<Vec<(String, String)>> {
        Ok(self.array()?.layout_in_words().into_iter().map(|part| (part.text, part.meaning)).collect())
    }

    /// The causes of the padding, as sentences, the largest first; empty without padding.
    ///
    /// Examples:
    ///     >>> Shape("f32[400000,12]{1,0:T(8,128)}").causes()
    ///     ['dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used']
    fn causes(&self) -> Result<Vec<String>> {
        Ok(tilewise_report::causes_in_words(&tilewise_audit::causes(self.tiled()?)))
    }
}
