//! Kernels of Pallas as texts: what they take of VMEM and SMEM.

use crate::{
    errors::{Error, Result},
    tpu::generation,
};
use pyo3::{exceptions::PyValueError, prelude::*};
use tilewise::{
    Shape,
    tpu::{
        Generation, PaddedBlock,
        kernel::{Budget, Kernel, Verdict},
    },
};
use tilewise_report::{KernelBudget, WriteText};

/// The kernel of a text, and the generation that is asked about.
fn read(text: &str, tpu: Option<&Bound<'_, PyAny>>) -> Result<(Kernel, Option<Generation>)> {
    let kernel = text.parse::<Kernel>().map_err(|error| Error::in_text(error, text))?;
    let asked = tpu.map(generation).transpose()?.or(kernel.generation);
    Ok((kernel, asked))
}

/// What a kernel takes: as the command line's JSON, and for people.
#[pyfunction]
#[pyo3(signature = (text, *, tpu = None))]
pub(crate) fn kernel_text(text: &str, tpu: Option<&Bound<'_, PyAny>>) -> Result<(String, String)> {
    let (kernel, generation) = read(text, tpu)?;
    let budget = KernelBudget::of(&kernel, generation).map_err(|failure| PyValueError::new_err(failure.to_string()))?;
    let json = serde_json::to_string(&budget).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((json, budget.to_text(100).trim_end().to_owned()))
}

/// Declared bytes of VMEM, the guess of what the body takes, whether both fit the limit, by itself or as given, and the
/// limit that both need, if any is enough.
#[pyfunction]
#[pyo3(signature = (text, limit = None, *, tpu = None))]
pub(crate) fn kernel_fits(
    text: &str,
    limit: Option<u64>,
    tpu: Option<&Bound<'_, PyAny>>,
) -> Result<(u64, u64, bool, Option<u64>)> {
    let (mut kernel, generation) = read(text, tpu)?;
    let Some(generation) = generation else {
        return Err(PyValueError::new_err("the kernel does not say which TPU it is for: tpu=\"v6e\"").into());
    };
    kernel.limit_bytes = limit.or(kernel.limit_bytes);
    let budget = kernel.budget(generation)?;
    let fits = matches!(budget.verdict, Some(Verdict::DeclaredFits | Verdict::ProbablyFits)) && is_supported(&budget);
    Ok((budget.vmem_bytes, budget.guess_bytes.unwrap_or_default(), fits, budget.limit_needed()))
}

fn is_supported(budget: &Budget) -> bool {
    budget.windows.iter().all(|window| window.unsupported.is_none())
}

/// Bytes of a block with its tiles: packed as in a window, and as scratch.
#[pyfunction]
#[pyo3(signature = (shape, *, tpu))]
pub(crate) fn block_bytes(shape: &str, tpu: &Bound<'_, PyAny>) -> Result<(u64, u64)> {
    let read = Shape::parse_as_written(shape).map_err(|error| Error::in_text(error, shape))?;
    let bounds: Vec<u64> = read.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    let Some(array) = read.as_array() else { return Err(PyValueError::new_err("a block is an array").into()) };
    let block = PaddedBlock::of(array.element_type(), &bounds, generation(tpu)?)?;
    Ok((block.window_bytes(), block.scratch_bytes()))
}
