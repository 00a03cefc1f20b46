//! TPU generations, and other machines.

use crate::{
    builtins::str_of,
    errors::{Class, Error, Result},
    typed::Tuple,
};
#[cfg(feature = "stub")]
use pyo3::inspect::PyStaticExpr;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyString, PyTuple},
};
use tilewise::tpu::Generation;
use tilewise_audit::{Machine, UnknownMachine};
use tilewise_time::{Cores, Rates};

/// The generation with this name, or of this JAX device.
pub(crate) fn generation(value: &Bound<'_, PyAny>) -> Result<Generation> {
    let name = match value.cast::<PyString>() {
        Ok(name) => name.clone(),
        Err(_) => match value.getattr_opt("device_kind")? {
            Some(kind) => kind.cast_into::<PyString>().map_err(PyErr::from)?,
            None => {
                let message =
                    format!("tpu must be a generation's name or a JAX device, not {}", value.get_type().name()?);
                return Err(PyTypeError::new_err(message).into());
            }
        },
    };
    let name = str_of(&name)?;
    name.parse().map_err(|error| Error::in_text(error, name))
}

/// The machine with this name.
pub(crate) fn machine_named(name: &str) -> Result<Machine> {
    name.parse().map_err(|error: UnknownMachine| Error::new(Class::Parse, "unknown_machine", error.to_string()))
}

/// The name of a machine, such as `gpu:h100`, and the bytes of its memory, if they are known.
#[pyfunction]
pub(crate) fn machine_name(name: &str) -> Result<(String, Option<u64>)> {
    let machine = machine_named(name)?;
    Ok((machine.to_string(), machine.memory_bytes()))
}

/// The names of the known TPU generations, as a `tuple`.
pub(crate) struct Generations;

impl<'py> IntoPyObject<'py> for Generations {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;
    #[cfg(feature = "stub")]
    const OUTPUT_TYPE: PyStaticExpr = <Tuple<&str>>::OUTPUT_TYPE;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Generation::ALL.iter().map(|generation| generation.name()).collect::<Tuple<_>>().into_pyobject(py)
    }
}

/// The HBM that one device of a TPU generation offers to programs, in bytes.
///
/// Raises:
///     ParseError: `tpu` names no TPU.
///
/// Examples:
///     >>> hbm_bytes("v5e") / 2**30
///     15.75
#[pyfunction]
#[pyo3(signature = (tpu: "Tpu", /))]
pub(crate) fn hbm_bytes(tpu: &Bound<'_, PyAny>) -> Result<u64> {
    Ok(generation(tpu)?.hbm_bytes())
}

/// A device's rates per second: operations of a matrix multiplication, bytes of HBM, bytes over a link to another chip.
#[pyfunction]
#[pyo3(signature = (tpu: "Tpu"))]
pub(crate) fn rates(tpu: &Bound<'_, PyAny>) -> Result<(f64, f64, f64)> {
    let rates = Rates::of(generation(tpu)?, Cores::Both);
    Ok((rates.flops, rates.hbm_bytes, rates.link_bytes))
}

/// The name of a TPU generation, as `TPU_GENERATIONS` has it.
#[pyfunction]
#[pyo3(signature = (tpu: "Tpu"))]
pub(crate) fn generation_name(tpu: &Bound<'_, PyAny>) -> Result<&'static str> {
    Ok(generation(tpu)?.name())
}
