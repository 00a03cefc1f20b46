//! Results with their types for Python's type checkers.

#[cfg(feature = "stub")]
use pyo3::{
    PyTypeInfo,
    inspect::{PyStaticConstant, PyStaticExpr},
    types::PyTuple as Builtin,
};
use pyo3::{
    prelude::*,
    types::{PyIterator, PyTuple},
};
use serde::{Deserialize, Serialize};
use std::{convert::Infallible, marker::PhantomData};

/// A `tuple` of any length.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Tuple<T>(pub(crate) Vec<T>);

impl<T> FromIterator<T> for Tuple<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T: Clone> From<&[T]> for Tuple<T> {
    fn from(items: &[T]) -> Self {
        Self(items.to_vec())
    }
}

impl<'py, T: IntoPyObject<'py>> IntoPyObject<'py> for Tuple<T> {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;
    #[cfg(feature = "stub")]
    const OUTPUT_TYPE: PyStaticExpr = PyStaticExpr::Subscript {
        value: &Builtin::TYPE_HINT,
        slice: &PyStaticExpr::Tuple {
            elts: &[T::OUTPUT_TYPE, PyStaticExpr::Constant { value: PyStaticConstant::Ellipsis }],
        },
    };

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        PyTuple::new(py, self.0)
    }
}

impl<'a, 'py, T> IntoPyObject<'py> for &'a Tuple<T>
where
    &'a T: IntoPyObject<'py>,
{
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;
    #[cfg(feature = "stub")]
    const OUTPUT_TYPE: PyStaticExpr = <Tuple<&'a T>>::OUTPUT_TYPE;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        PyTuple::new(py, &self.0)
    }
}

/// An iterator over items of one type.
pub(crate) struct Items<'py, T>(Bound<'py, PyIterator>, PhantomData<T>);

impl<'py, T: IntoPyObject<'py>> Items<'py, T> {
    pub(crate) fn of(py: Python<'py>, items: impl IntoIterator<Item = T>) -> PyResult<Self> {
        Ok(Self(items.into_iter().collect::<Tuple<T>>().into_pyobject(py)?.try_iter()?, PhantomData))
    }
}

impl<'py, T: IntoPyObject<'py>> IntoPyObject<'py> for Items<'py, T> {
    type Target = PyIterator;
    type Output = Bound<'py, PyIterator>;
    type Error = Infallible;
    #[cfg(feature = "stub")]
    const OUTPUT_TYPE: PyStaticExpr = PyStaticExpr::Subscript { value: &PyIterator::TYPE_HINT, slice: &T::OUTPUT_TYPE };

    fn into_pyobject(self, _: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(self.0)
    }
}

/// A value whose type in Python is `H`.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Typed<T, H>(pub(crate) T, PhantomData<H>);

impl<T, H> Typed<T, H> {
    pub(crate) const fn new(value: T) -> Self {
        Self(value, PhantomData)
    }
}

impl<H> From<&str> for Typed<String, H> {
    fn from(value: &str) -> Self {
        Self::new(value.to_owned())
    }
}

impl<'py, T: IntoPyObject<'py>, H: Hint> IntoPyObject<'py> for Typed<T, H> {
    type Target = T::Target;
    type Output = T::Output;
    type Error = T::Error;
    #[cfg(feature = "stub")]
    const OUTPUT_TYPE: PyStaticExpr = H::HINT;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        self.0.into_pyobject(py)
    }
}

impl<'a, 'py, T, H: Hint> IntoPyObject<'py> for &'a Typed<T, H>
where
    &'a T: IntoPyObject<'py>,
{
    type Target = <&'a T as IntoPyObject<'py>>::Target;
    type Output = <&'a T as IntoPyObject<'py>>::Output;
    type Error = <&'a T as IntoPyObject<'py>>::Error;
    #[cfg(feature = "stub")]
    const OUTPUT_TYPE: PyStaticExpr = H::HINT;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        self.0.into_pyobject(py)
    }
}

/// A type as a Python annotation. Strings in the stub are types, as in the signatures.
pub(crate) trait Hint {
    #[cfg(feature = "stub")]
    const HINT: PyStaticExpr;
}

macro_rules! hints {
    ($($name:ident: $type:literal,)*) => {
        $(
            #[derive(Clone, PartialEq, Eq, Hash)]
            pub(crate) struct $name;

            impl Hint for $name {
                #[cfg(feature = "stub")]
                const HINT: PyStaticExpr = PyStaticExpr::Constant { value: PyStaticConstant::Str($type) };
            }
        )*
    };
}

hints! {
    Access: "Literal['index_map', 'lanes', 'rows', 'transposed', 'split']",
    Change: "Literal['order', 'transpose', 'reshape', 'split', 'batch', 'chunk', 'checkpoint', 'carry', 'donate', \
             'narrow', 'shard', 'block', 'limit', 'free', 'audit', 'none']",
    Dtype: "np.dtype[Any]",
    Effect: "Literal['bitcast', 'append', 'move']",
    ElementKind: "Literal['predicate', 'signed', 'unsigned', 'float', 'complex']",
    ForcedBy: "Literal['kernel', 'interface', 'loop', 'branch', 'donation']",
    Operation: "Literal['pad', 'reshape', 'transpose']",
    Outcome: "Literal['same', 'better', 'worse', 'changed', 'other compiler']",
    Relations: "Literal['identical', 'reshape', 'transpose', 'transpose_reshape', 'exposes_padding', 'none']",
    Remedies: "Literal['layout', 'view', 'stored', 'donate', 'drop_alias']",
    Section: "Literal['allocations', 'arguments_and_outputs']",
    SetChange: "Literal['donate', 'drop', 'narrow', 'layout']",
    Settings: "Mapping[str, Any]",
    ShapeKind: "Literal['array', 'tuple', 'token', 'opaque', 'buffer']",
    Side: "Literal['operand', 'result']",
    Target: "Literal['argument', 'result', 'upstream', 'kernel', 'loop', 'value', 'compiler', 'process']",
}
