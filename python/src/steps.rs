//! `Steps` and `Step`: how the buffer is made from the array.

use crate::{
    errors::{Class, Error, Result},
    shape::PyShape,
    travel::{Reduced, native},
    typed::{self, Items, Tuple, Typed},
};
use pyo3::{exceptions::PyIndexError, prelude::*};
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};
use tilewise::{Derivation, DerivationStep, Operation, Tiled};

/// How a buffer is made from its array: a sequence of steps, each from a row-major array to a row-major array.
///
/// `str` describes them, one line each.
///
/// Examples:
///     >>> steps = Shape("f32[3,5]{1,0:T(2,2)}").steps()
///     >>> [step.operation for step in steps]
///     ['pad', 'reshape', 'transpose', 'reshape']
#[pyclass(frozen, eq, hash, sequence, module = "tilewise", name = "Steps")]
#[derive(Clone)]
pub(crate) struct PySteps(Arc<Derived>);

/// A shape with its layout and its steps, both computed from it.
struct Derived {
    shape: PyShape,
    tiled: Tiled,
    derivation: Derivation,
}

impl PySteps {
    pub(crate) fn of(shape: &PyShape) -> Result<Self> {
        let tiled = shape.tiled()?.clone();
        Ok(Self(Arc::new(Derived { shape: shape.clone(), derivation: tiled.derivation(), tiled })))
    }
}

impl PartialEq for PySteps {
    fn eq(&self, other: &Self) -> bool {
        self.0.derivation.steps() == other.0.derivation.steps() && self.0.shape == other.0.shape
    }
}

impl Hash for PySteps {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.shape.hash(state);
    }
}

/// The steps of the shape in a text. Pickled steps call it.
#[pyfunction]
pub(crate) fn steps_of(shape: &str) -> Result<PySteps> {
    PySteps::of(&PyShape::new(tilewise::Shape::parse_as_written(shape)?))
}

#[pymethods]
impl PySteps {
    /// The source of a NumPy program with two functions, `to_buffer(x)` and `from_buffer(x)`.
    ///
    /// Examples:
    ///     >>> import numpy as np
    ///     >>> program = {}
    ///     >>> exec(Shape("f32[3,5]{1,0:T(2,2)}").steps().as_numpy(), program)
    ///     >>> buffer = program["to_buffer"](np.arange(15).reshape(3, 5))
    ///     >>> buffer[17] == 2 * 5 + 3
    ///     np.True_
    fn as_numpy(&self) -> String {
        self.0.derivation.numpy().to_string()
    }

    /// The source of the same program with einops.
    ///
    /// Examples:
    ///     >>> program = Shape("f32[4,6]{1,0:T(2,2)}").steps().as_einops()
    ///     >>> "rearrange(x, '(y y1) (x x1) -> (y x y1 x1)', y1=2, x1=2)" in program
    ///     True
    fn as_einops(&self) -> String {
        self.0.derivation.einops().to_string()
    }

    /// Two affine maps in MLIR's syntax, one a line: from an index to the physical index, and to the offset.
    ///
    /// Raises:
    ///     ShapeError: the map has too many terms.
    ///
    /// Examples:
    ///     >>> print(Shape("f32[4,6]{1,0:T(2,2)}").steps().as_mlir(), end="")
    ///     affine_map<(d0, d1) -> (d0 floordiv 2, d1 floordiv 2, d0 mod 2, d1 mod 2)>
    ///     affine_map<(d0, d1) -> ((d0 mod 2) * 2 + (d0 floordiv 2) * 12 + d1 mod 2 + (d1 floordiv 2) * 4)>
    fn as_mlir(&self) -> Result<String> {
        match (self.0.tiled.affine_map(), self.0.tiled.affine_offset_map()) {
            (Some(physical), Some(offset)) => Ok(format!("{physical}\n{offset}\n")),
            _ => Err(Error::new(Class::Shape, "overflow", "the affine map of these nested tiles has too many terms")),
        }
    }

    fn __len__(&self) -> usize {
        self.0.derivation.steps().len()
    }

    fn __getitem__(&self, number: isize) -> PyResult<PyStep> {
        let steps = self.0.derivation.steps();
        let position = if number < 0 { steps.len().checked_add_signed(number) } else { Some(number.unsigned_abs()) };
        let number = position.filter(|position| *position < steps.len());
        number
            .map(|number| PyStep { of: self.clone(), number })
            .ok_or_else(|| PyIndexError::new_err("step index out of range"))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Items<'py, PyStep>> {
        let steps = (0..self.0.derivation.steps().len()).map(|number| PyStep { of: self.clone(), number });
        Items::of(py, steps)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py, (String,)>> {
        Ok((native(slf.py(), "steps_of")?, (slf.get().0.shape.to_string(),)))
    }

    fn __str__(&self) -> String {
        self.0.derivation.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<{} steps of {}>", self.0.derivation.steps().len(), self.0.derivation.shape())
    }
}

/// One step: a pad, a reshape or a transpose.
///
/// Examples:
///     >>> step = Shape("f32[3,5]{1,0:T(2,2)}").steps()[0]
///     >>> step.operation, step.before, step.after, step.padding
///     ('pad', (3, 5), (4, 6), (1, 1))
#[pyclass(frozen, eq, hash, module = "tilewise", name = "Step")]
pub(crate) struct PyStep {
    of: PySteps,
    number: usize,
}

impl PyStep {
    fn step(&self) -> &DerivationStep {
        &self.of.0.derivation.steps()[self.number]
    }
}

impl PartialEq for PyStep {
    fn eq(&self, other: &Self) -> bool {
        self.step() == other.step()
    }
}

impl Hash for PyStep {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let DerivationStep { from, to, .. } = self.step();
        (from, to).hash(state);
    }
}

#[pymethods]
impl PyStep {
    /// `'pad'`, `'reshape'` or `'transpose'`.
    #[getter]
    fn operation(&self) -> Typed<&'static str, typed::Operation> {
        Typed::new(self.step().operation.name())
    }

    /// The bounds before, major to minor, in elements.
    #[getter]
    fn before(&self) -> Tuple<u64> {
        self.step().from.as_slice().into()
    }

    /// The bounds after, major to minor, in elements.
    #[getter]
    fn after(&self) -> Tuple<u64> {
        self.step().to.as_slice().into()
    }

    /// The number of the tile it belongs to, from 0; `None` for steps before the first tile and after the last.
    #[getter]
    fn tile(&self) -> Option<usize> {
        self.step().level
    }

    /// The effect on the bytes: `'bitcast'` leaves them, `'append'` adds padding at the end, `'move'` reorders them.
    #[getter]
    fn effect(&self) -> Typed<&'static str, typed::Effect> {
        Typed::new(self.step().effect.as_str())
    }

    /// For a transpose, the operand's axis for each axis of the result; otherwise `None`.
    #[getter]
    fn permutation(&self) -> Option<Tuple<usize>> {
        match &self.step().operation {
            Operation::Transpose { permutation } => Some(permutation.as_slice().into()),
            _ => None,
        }
    }

    /// For a pad, the number of elements added to each axis; otherwise `None`.
    #[getter]
    fn padding(&self) -> Option<Tuple<u64>> {
        match &self.step().operation {
            Operation::Pad { padding } => Some(padding.as_slice().into()),
            _ => None,
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py, (PySteps, usize)>> {
        let Self { of, number } = slf.get();
        Ok((slf.py().import("operator")?.getattr("getitem")?, (of.clone(), *number)))
    }

    fn __str__(&self) -> String {
        self.step().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<{}>", self.step())
    }
}
