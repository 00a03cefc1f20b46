//! `Relation`: how the bytes of one array relate to another.

use crate::{
    errors::Result,
    typed::{Relations, Tuple, Typed},
};
use pyo3::{exceptions::PyValueError, prelude::*};
use serde::{Deserialize, Serialize};
use tilewise::{BitcastAs, Counterexample, Relation};

/// Whether the bytes of one array can be read as another, and how; true if they can. `Shape.bitcast` returns it.
///
/// Examples:
///     >>> relation = Shape("f32[64,128]{1,0:T(8,128)}").bitcast("f32[128,64]{0,1:T(8,128)}")
///     >>> relation.kind, relation.permutation, bool(relation)
///     ('transpose', (1, 0), True)
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Relation")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyRelation {
    /// The relation: `'identical'`, `'reshape'`, `'transpose'`, `'transpose_reshape'` (a transpose, then a
    /// reshape, then a second transpose), `'exposes_padding'` or `'none'`.
    kind: Typed<String, Relations>,
    /// Dimension k of the second array is this dimension of the first; `None` without a transpose.
    permutation: Option<Tuple<usize>>,
    /// The bounds of the reshape behind the transpose; `None` unless the relation is `'transpose_reshape'`.
    reshape: Option<Tuple<u64>>,
    /// The transpose behind the reshape; `None` unless the relation is `'transpose_reshape'`.
    then: Option<Tuple<usize>>,
    /// Elements of the second array that are padding of the first; `None` unless padding is exposed.
    exposed: Option<u64>,
    /// Elements of the first array that are padding of the second; `None` unless padding is exposed.
    hidden: Option<u64>,
    /// Why it isn't a bitcast, in a clause; `None` for a bitcast.
    reason: Option<String>,
    /// The smallest element that lies elsewhere: its index in the first array and in the second, and its offset in
    /// either buffer, in elements; `None` without one.
    counterexample: Option<(Tuple<u64>, Tuple<u64>, u64, u64)>,
}

impl PyRelation {
    pub(crate) fn of(relation: &Relation) -> Self {
        let (exposed, hidden) = match relation {
            Relation::ExposesPadding { exposed, hidden } => (Some(*exposed), Some(*hidden)),
            _ => (None, None),
        };
        let (reshape, then) = match relation {
            Relation::TransposeReshape { bounds, then, .. } => {
                (Some(bounds.as_slice().into()), Some(then.as_slice().into()))
            }
            _ => (None, None),
        };
        let reason = match relation {
            Relation::None { reason, .. } => Some(reason.to_string()),
            _ => None,
        };
        let element = |found: &Counterexample| {
            let (index, to_index) = (found.index.as_slice().into(), found.to_index.as_slice().into());
            (index, to_index, found.from_offset, found.to_offset)
        };
        Self {
            kind: relation.as_str().into(),
            permutation: relation.permutation().map(Into::into),
            reshape,
            then,
            exposed,
            hidden,
            reason,
            counterexample: relation.counterexample().map(element),
        }
    }
}

/// The reading with this name.
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
    fn __bool__(&self) -> bool {
        self.reason.is_none()
    }

    fn __repr__(&self) -> String {
        match &self.reason {
            None => format!("<Relation {}>", self.kind.0),
            Some(reason) => format!("<Relation none: {reason}>"),
        }
    }
}
