//! `Fix`: a change that makes an array take less memory.

use crate::{
    shape::PyShape,
    travel::{Reduced, reduced},
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use tilewise_audit::fix::Fix;

/// One change to a program, and the bytes that it saves for each array.
///
/// Examples:
///     >>> fix = Shape("s32[32768,8,4]{2,1,0:T(8,128)}").fixes(tpu="v5e")[2]
///     >>> fix.jax
///     'x = x.reshape(32768, 32)  # s32[32768,32]'
///     >>> fix.bytes_before, fix.bytes_after, fix.bytes_saved
///     (134217728, 4194304, 130023424)
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Fix")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyFix {
    /// The kind of change: `'order'`, `'transpose'`, `'reshape'`, `'split'`, `'batch'`, `'resize'` or `'narrow'`.
    kind: String,
    /// What to do, as a sentence.
    sentence: String,
    /// The line of JAX code that does it, for an array `x` or a list of arrays `xs`.
    jax: String,
    /// What that code imports; empty if it needs nothing but its arrays.
    imports: String,
    /// The arrays that replace it: (shape, count) pairs.
    arrays: Vec<(PyShape, u64)>,
    /// The number of present arrays that they replace: 1, except for a `'batch'`.
    replaced: u64,
    /// Bytes that the array takes now.
    bytes_before: u64,
    /// Bytes that all the new arrays take; for a `'batch'` one array's share of them, rounded up.
    bytes_after: u64,
    /// Bytes that the change frees: `bytes_before - bytes_after`.
    bytes_saved: u64,
    /// Whether elements are dropped, or lose precision or range.
    changes_values: bool,
}

impl PyFix {
    pub(crate) fn of(fix: &Fix) -> Self {
        Self {
            kind: fix.kind.as_str().to_owned(),
            sentence: fix.sentence.clone(),
            jax: fix.jax.clone(),
            imports: fix.imports().to_owned(),
            arrays: fix.arrays.iter().map(|array| (PyShape::new(array.shape.clone()), array.count)).collect(),
            replaced: fix.replaced,
            bytes_before: fix.bytes_before,
            bytes_after: fix.bytes_after,
            bytes_saved: fix.bytes_saved(),
            changes_values: fix.changes_values,
        }
    }
}

#[pymethods]
impl PyFix {
    fn __str__(&self) -> &str {
        &self.sentence
    }

    fn __repr__(&self) -> String {
        format!("<Fix {}: {}, frees {} bytes>", self.kind, self.sentence, self.bytes_saved)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), slf.get())
    }
}
