//! `Fix`: what to change so that an array takes less.

use crate::shape::PyShape;
use pyo3::prelude::*;
use tilewise_audit::fix::{Advice, Fix};

/// One change to a program, and what it saves. Sizes are in bytes.
#[pyclass(frozen, module = "tilewise", name = "Fix")]
pub(crate) struct PyFix(Fix);

impl PyFix {
    pub(crate) fn of(fix: &Fix) -> Self {
        Self(fix.clone())
    }

    pub(crate) fn all(advice: Option<&Advice>) -> Vec<Self> {
        advice.map_or(Vec::new(), |advice| advice.fixes.iter().map(Self::of).collect())
    }
}

#[pymethods]
impl PyFix {
    /// What changes: `'order'`, `'transpose'`, `'reshape'`, `'split'`, `'batch'`, `'resize'` or `'narrow'`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.as_str()
    }

    /// What to do, in a sentence.
    #[getter]
    fn sentence(&self) -> &str {
        &self.0.sentence
    }

    /// The line of JAX that does it to an array `x`, or to a list `xs`.
    #[getter]
    fn jax(&self) -> &str {
        &self.0.jax
    }

    /// What takes the array's place: (shape, how many) pairs.
    #[getter]
    fn arrays(&self) -> Vec<(PyShape, u64)> {
        self.0.arrays.iter().map(|array| (PyShape::new(array.shape.clone()), array.count)).collect()
    }

    /// What the array takes now.
    #[getter]
    fn bytes_before(&self) -> u64 {
        self.0.bytes_before
    }

    /// What is taken afterwards, all new arrays together.
    #[getter]
    fn bytes_after(&self) -> u64 {
        self.0.bytes_after
    }

    /// What the change frees.
    #[getter]
    fn bytes_saved(&self) -> u64 {
        self.0.bytes_saved()
    }

    /// Whether elements are dropped, or lose precision or range.
    #[getter]
    fn changes_values(&self) -> bool {
        self.0.changes_values
    }

    fn __str__(&self) -> &str {
        &self.0.sentence
    }

    fn __repr__(&self) -> String {
        format!("<Fix {}: {}, frees {} bytes>", self.kind(), self.0.sentence, self.0.bytes_saved())
    }
}
