//! Kernels of Pallas: what their texts take of VMEM and SMEM, and what those of a program took.

use crate::{
    errors::{Error, Result},
    row::PySourceLine,
    tpu::generation,
    travel::{Reduced, reduced},
};
use pyo3::{exceptions::PyValueError, prelude::*};
use serde::{Deserialize, Serialize};
use tilewise::{
    Shape,
    tpu::{
        Generation, PaddedBlock,
        kernel::{Budget, Kernel, Verdict},
    },
};
use tilewise_audit::KernelRow;
use tilewise_report::{KernelBudget, WriteText};

/// A Pallas kernel of a compiled program, and the VMEM that it took by the compiler's own account. Sizes are in bytes.
///
/// Examples:
///     >>> report = audit('''HloModule jit_f, is_scheduled=true
///     ...   ENTRY main {
///     ...     x = f32[1024,512]{1,0:T(8,128)} parameter(0)
///     ...     ROOT y = f32[1024,512]{1,0:T(8,128)} custom-call(x), custom_call_target="tpu_custom_call",
///     ...       backend_config={"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"2097152"}]}
///     ...   }''', tpu="v5e")
///     >>> report.kernels
///     [<KernelUse y: 2097152 of 16777216 bytes of VMEM>]
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "KernelUse")]
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyKernelUse {
    /// The name of the call.
    instruction: String,
    /// The name of the computation that contains it.
    computation: String,
    /// Bytes of VMEM that it uses: windows, scratch and what its body needs; `None` where the text doesn't say.
    used_bytes: Option<u64>,
    /// The limit in force: what the kernel asks for, or the generation's default; `None` where that isn't known.
    limit_bytes: Option<u64>,
    /// The largest limit that is honoured.
    cap_bytes: Option<u64>,
    /// Whether it uses nine tenths of its limit or more: a slightly larger block may not compile.
    is_near_limit: bool,
    /// The framework's name of the operation.
    op_name: Option<String>,
    /// The line of the user's program.
    source: Option<PySourceLine>,
}

impl PyKernelUse {
    pub(crate) fn of(row: KernelRow) -> Self {
        Self {
            is_near_limit: row.is_near_limit(),
            instruction: row.instruction,
            computation: row.computation,
            used_bytes: row.used_bytes,
            limit_bytes: row.limit_bytes,
            cap_bytes: row.cap_bytes,
            op_name: row.op_name,
            source: row.source.as_ref().map(PySourceLine::of),
        }
    }
}

#[pymethods]
impl PyKernelUse {
    fn __repr__(&self) -> String {
        let words = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
        let (used, limit) = (words(self.used_bytes), words(self.limit_bytes));
        format!("<KernelUse {}: {used} of {limit} bytes of VMEM>", self.instruction)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), slf.get())
    }
}

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
