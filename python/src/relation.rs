//! `Relation`: how the bytes of one array relate to another.

use crate::{
    builtins::tuple,
    errors::Result,
    travel::{Reduced, reduced},
};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyTuple};
use serde::{Deserialize, Serialize};
use tilewise::{BitcastAs, Counterexample, Relation};

/// Whether the bytes of one array can be read as another, and how; true if they can. `Shape.bitcast` returns it.
///
/// Examples:
///     >>> relation = Shape("f32[64,128]{1,0:T(8,128)}").bitcast("f32[128,64]{0,1:T(8,128)}")
///     >>> relation.kind, relation.permutation, bool(relation)
///     ('transpose', (1, 0), True)
#[pyclass(frozen, eq, hash, module = "tilewise", name = "Relation")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyRelation {
    /// The relation: `'identical'`, `'reshape'`, `'transpose'`, `'transpose_reshape'` (a transpose, then a
    /// reshape, then a second transpose), `'exposes_padding'` or `'none'`.
    #[pyo3(get)]
    kind: String,
    permutation: Option<Vec<usize>>,
    reshape: Option<Vec<u64>>,
    then: Option<Vec<usize>>,
    /// Elements of the second array that are padding of the first; `None` unless padding is exposed.
    #[pyo3(get)]
    exposed: Option<u64>,
    /// Elements of the first array that are padding of the second; `None` unless padding is exposed.
    #[pyo3(get)]
    hidden: Option<u64>,
    /// Why it is no bitcast, in a clause; `None` if it is one.
    #[pyo3(get)]
    reason: Option<String>,
    counterexample: Option<(Vec<u64>, Vec<u64>, u64, u64)>,
}

/// The index in either array, and the offset in either buffer.
type Elsewhere<'py> = (Bound<'py, PyTuple>, Bound<'py, PyTuple>, u64, u64);

impl PyRelation {
    pub(crate) fn of(relation: &Relation) -> Self {
        let (exposed, hidden) = match relation {
            Relation::ExposesPadding { exposed, hidden } => (Some(*exposed), Some(*hidden)),
            _ => (None, None),
        };
        let (reshape, then) = match relation {
            Relation::TransposeReshape { bounds, then, .. } => (Some(bounds.clone()), Some(then.clone())),
            _ => (None, None),
        };
        let reason = match relation {
            Relation::None { reason, .. } => Some(reason.to_string()),
            _ => None,
        };
        let element =
            |found: &Counterexample| (found.index.clone(), found.to_index.clone(), found.from_offset, found.to_offset);
        Self {
            kind: relation.as_str().to_owned(),
            permutation: relation.permutation().map(<[usize]>::to_vec),
            reshape,
            then,
            exposed,
            hidden,
            reason,
            counterexample: relation.counterexample().map(element),
        }
    }
}

/// What the bytes are wanted as, by its name.
pub(crate) fn reading_of(name: &str) -> Result<BitcastAs> {
    match name {
        "any" => Ok(BitcastAs::Any),
        "reshape" => Ok(BitcastAs::Reshape),
        "transpose" => Ok(BitcastAs::Transpose),
        _ => {
            Err(PyValueError::new_err(format!("reading must be 'any', 'reshape' or 'transpose', not {name:?}")).into())
        }
    }
}

#[pymethods]
impl PyRelation {
    /// Dimension k of the second array is this dimension of the first; `None` without a transpose.
    #[getter]
    fn permutation<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyTuple>>> {
        Ok(self.permutation.as_ref().map(|permutation| tuple(py, permutation)).transpose()?)
    }

    /// The bounds of the reshape behind the transpose; `None` unless the relation is `'transpose_reshape'`.
    #[getter]
    fn reshape<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyTuple>>> {
        Ok(self.reshape.as_ref().map(|bounds| tuple(py, bounds)).transpose()?)
    }

    /// The transpose behind the reshape; `None` unless the relation is `'transpose_reshape'`.
    #[getter]
    fn then<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyTuple>>> {
        Ok(self.then.as_ref().map(|permutation| tuple(py, permutation)).transpose()?)
    }

    /// The smallest element that lies elsewhere: its index in the first array and in the second, and its offset in either
    /// buffer, in elements; `None` if there is none.
    #[getter]
    fn counterexample<'py>(&self, py: Python<'py>) -> Result<Option<Elsewhere<'py>>> {
        let Some((index, to_index, from, to)) = &self.counterexample else { return Ok(None) };
        Ok(Some((tuple(py, index)?, tuple(py, to_index)?, *from, *to)))
    }

    fn __bool__(&self) -> bool {
        self.reason.is_none()
    }

    fn __repr__(&self) -> String {
        match &self.reason {
            None => format!("<Relation {}>", self.kind),
            Some(reason) => format!("<Relation none: {reason}>"),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), slf.get())
    }
}
