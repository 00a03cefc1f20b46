//! `KernelBudget` and `KernelRow`: the VMEM and SMEM of kernel texts.

use crate::{
    errors::{Error, Result},
    tpu::generation,
    typed::Tuple,
    whole::whole,
};
use pyo3::{exceptions::PyValueError, prelude::*};
use serde::{Deserialize, Serialize};
use tilewise::{Shape, tpu::Generation};
use tilewise_kernel::{Allocation, Budget, Kernel, KernelFit, Limits, PaddedBlock, Unsupported, Window};
use tilewise_report::{KernelBudget, WriteText};

/// The memory of a window, prefetched scalars or scratch of a kernel.
///
/// Examples:
///     >>> from tilewise import kernels
///     >>> kernels.budget("grid 8\nin f32[64,100] block 8,100 @ 0,-", tpu="v6e").rows
///     (<KernelRow in0: 8192 bytes of vmem>,)
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "KernelRow")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyKernelRow {
    /// `'in0'`, `'out0'`, `'prefetch0'`, `'scratch0'`, ….
    operand: String,
    /// The whole array; `None` for semaphores.
    shape: Option<String>,
    /// The bounds of a block, `None` where a dimension is squeezed; `None` without a window.
    block: Option<Tuple<Option<u64>>>,
    /// `'vmem'`, `'smem'`, `'any'`, `'hbm'` or `'semaphore'`.
    memory_space_name: String,
    /// The bounds with the padding of the tiles; `None` if it takes nothing.
    padded_block: Option<Tuple<u64>>,
    /// How many blocks are held at a time.
    buffers: u64,
    /// Bytes of all of them.
    bytes: u64,
    /// Bytes of the elements of all of its blocks, without the padding of their tiles.
    logical_bytes: u64,
    /// Bytes of padding.
    padding_bytes: u64,
    /// Bytes copied to or from the window over the whole grid; `None` if it isn't a window, and where only the run knows
    /// the grid.
    moved_bytes: Option<u64>,
    /// The cause of the buffer count: `'moves'`, `'as_asked'`, `'constant'`, `'one_step'`, `'no_window'`,
    /// `'one_element'`, `'fused'`; `None` if it isn't a window.
    cause: Option<String>,
    /// Whether XLA may keep the whole array in VMEM, so that the window is not allocated.
    may_be_kept: bool,
    /// Why the compiler refuses such a block; `None` if it doesn't.
    unsupported: Option<String>,
    /// The nearest block that it takes; `None` without one.
    nearest_block: Option<Tuple<u64>>,
}

impl PyKernelRow {
    fn of_window(window: &Window) -> Self {
        let (operand, unsupported) = (&window.operand, window.unsupported.as_ref());
        Self {
            block: Some(operand.block.as_slice().into()),
            buffers: window.buffers,
            moved_bytes: window.moved_bytes,
            cause: Some(window.cause.as_str().to_owned()),
            may_be_kept: window.may_be_kept,
            unsupported: unsupported.map(ToString::to_string),
            nearest_block: unsupported.and_then(Unsupported::nearest).map(Into::into),
            ..Self::sized(
                &window.name,
                Some(operand.array.to_string()),
                operand.memory.name(),
                &window.padded,
                window.buffers,
                window.bytes,
            )
        }
    }

    fn of_allocation(row: &Allocation) -> Self {
        let (shape, buffers) = (row.array.as_ref().map(ToString::to_string), u64::from(row.padded.is_some()));
        Self::sized(&row.name, shape, row.memory.name(), &row.padded, buffers, row.bytes)
    }

    /// A row that isn't a window.
    fn sized(
        operand: &str,
        shape: Option<String>,
        memory: &str,
        padded: &Option<PaddedBlock>,
        buffers: u64,
        bytes: u64,
    ) -> Self {
        let padded = padded.as_ref();
        let logical_bytes = match shape {
            Some(_) if bytes > 0 => buffers * padded.map_or(0, PaddedBlock::data_bytes),
            _ => bytes,
        };
        Self {
            operand: operand.to_owned(),
            shape,
            block: None,
            memory_space_name: memory.to_owned(),
            padded_block: padded.map(|padded| padded.dimensions().into()),
            buffers,
            bytes,
            logical_bytes,
            padding_bytes: bytes.saturating_sub(logical_bytes),
            moved_bytes: None,
            cause: None,
            may_be_kept: false,
            unsupported: None,
            nearest_block: None,
        }
    }
}

#[pymethods]
impl PyKernelRow {
    fn __repr__(&self) -> String {
        format!("<KernelRow {}: {} bytes of {}>", self.operand, self.bytes, self.memory_space_name)
    }
}

/// The VMEM and SMEM of a kernel on a TPU generation. `str` is a table.
///
/// Declared bytes are exact; the bytes of its body are a guess, or not known. Sizes are in bytes.
///
/// Examples:
///     >>> from tilewise import kernels
///     >>> found = kernels.budget("grid 8\nin f32[64,128] block 8,128 @ 0,-", tpu="v6e")
///     >>> found.vmem_bytes, found.verdict, found.rows[0].cause
///     (8192, 'declared_fits', 'moves')
///     >>> kernels.budget("grid 8\nin f32[64,512] block 7,100 @ 0,0", tpu="v6e").unsupported[0].split("; ")[1]
///     'the nearest such block is 8,128'
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "KernelBudget")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyKernelBudget {
    /// Its name.
    name: Option<String>,
    /// The generation.
    tpu: String,
    /// The kernel, as `tilewise kernel` reads it.
    text: String,
    /// Windows, prefetched scalars and scratch.
    rows: Tuple<PyKernelRow>,
    /// Bytes of VMEM that it declares.
    vmem_bytes: u64,
    /// Bytes of SMEM that it declares.
    smem_bytes: u64,
    /// Bytes of VMEM that its body is guessed to take; `None` without a guess.
    guess_bytes: Option<u64>,
    /// Bytes of VMEM by the compiler's own account; `None` unless it was asked.
    measured_bytes: Option<u64>,
    /// The limit of VMEM in force; `None` where it is not known.
    limit_bytes: Option<u64>,
    /// The largest `vmem_limit_bytes` that is honoured.
    cap_bytes: Option<u64>,
    /// The limit that it needs, in whole MiB; `None` if no limit is enough.
    limit_needed_bytes: Option<u64>,
    /// Bytes of windows that aren't allocated if XLA keeps their arrays in VMEM.
    may_be_kept_bytes: u64,
    /// Bytes of scratch that the compiler may do without: allocations of `pl.run_scoped`, unless copies from HBM fill it.
    /// 0 of a text, which doesn't tell it from other scratch.
    may_be_dropped_bytes: u64,
    /// Bytes that all windows move over the whole grid; `None` where only the run knows the grid.
    moved_bytes: Option<u64>,
    /// The versions of libtpu whose limits these are; `None` where there are none.
    libtpu: Option<String>,
    /// `'does_not_fit'`, `'declared_fits'`, and with a guess `'probably_fits'` or `'probably_does_not_fit'`; `'ask'`, the
    /// compiler, where it fits only without `may_be_dropped_bytes`. Of its size alone, also where `unsupported` says that
    /// the compiler refuses a block. `'fits'` and `'does_not_fit'` where the compiler was asked.
    verdict: Option<String>,
    /// The compiler's words where it was asked and refuses the kernel for something else than its memory; `None` where
    /// it doesn't.
    refusal: Option<String>,
}

impl PyKernelBudget {
    fn of(text: &str, found: &KernelBudget, may_be_dropped_bytes: u64) -> Self {
        let budget = &found.budget;
        let windows = budget.windows.iter().map(PyKernelRow::of_window);
        let allocations = budget.prefetched.iter().chain(&budget.scratch).map(PyKernelRow::of_allocation);
        let (declared, limit) = (budget.vmem_bytes, budget.limit_bytes);
        let may_fit =
            limit.is_some_and(|limit| declared.saturating_sub(may_be_dropped_bytes) <= limit && limit < declared);
        let verdict = if may_fit { Some("ask") } else { budget.verdict.map(KernelFit::as_str) };
        Self {
            name: found.name.clone(),
            tpu: budget.generation.name().to_owned(),
            text: text.to_owned(),
            rows: windows.chain(allocations).collect(),
            vmem_bytes: declared,
            smem_bytes: budget.smem_bytes,
            guess_bytes: budget.guess_bytes,
            measured_bytes: None,
            limit_bytes: limit,
            cap_bytes: budget.limits.map(|limits| limits.cap_bytes),
            limit_needed_bytes: budget.limit_needed(),
            may_be_kept_bytes: budget.bytes_that_may_be_kept(),
            may_be_dropped_bytes,
            moved_bytes: budget.moved_bytes(),
            libtpu: budget.limits.map(|_| Limits::LIBTPU.to_owned()),
            verdict: verdict.map(str::to_owned),
            refusal: None,
        }
    }
}

#[pymethods]
impl PyKernelBudget {
    /// Why the compiler refuses its blocks: a sentence for each, with the nearest legal block.
    #[getter]
    fn unsupported(&self) -> Tuple<String> {
        let refused = self.rows.0.iter().filter_map(|row| Some((&row.operand, row.unsupported.as_ref()?)));
        refused.map(|(operand, unsupported)| format!("{operand}: {unsupported}")).collect()
    }

    fn __str__(&self) -> Result<String> {
        let (kernel, _) = read(&self.text, None)?;
        let found = budget(&kernel, self.tpu.parse::<Generation>().ok())?;
        let found = match self.measured_bytes {
            Some(taken) => found.measured(taken),
            None => found,
        };
        let refused = self.refusal.as_ref().map(|words| format!("\n  refused    {words}")).unwrap_or_default();
        Ok(found.to_text(100).trim_end().to_owned() + &refused)
    }

    fn __repr__(&self) -> String {
        let (name, verdict) = (self.name.as_deref().unwrap_or("?"), self.verdict.as_deref().unwrap_or("unknown"));
        format!("<KernelBudget {name}: {} bytes of VMEM, {verdict}>", self.vmem_bytes)
    }
}

/// The kernel of a text, and the generation: `tpu`, or else the text's.
fn read(text: &str, tpu: Option<&Bound<'_, PyAny>>) -> Result<(Kernel, Option<Generation>)> {
    let kernel = text.parse::<Kernel>().map_err(|error| Error::in_text(error, text))?;
    let asked = tpu.map(generation).transpose()?.or(kernel.generation);
    Ok((kernel, asked))
}

/// The budget of a kernel's text, of whose scratch the compiler may do without some bytes.
#[pyfunction]
#[pyo3(signature = (text, *, tpu: "Tpu | None" = None, may_be_dropped_bytes: "int" = 0))]
pub(crate) fn kernel_budget(
    text: &str,
    tpu: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = whole)] may_be_dropped_bytes: u64,
) -> Result<PyKernelBudget> {
    let (kernel, generation) = read(text, tpu)?;
    Ok(PyKernelBudget::of(text, &budget(&kernel, generation)?, may_be_dropped_bytes))
}

fn budget(kernel: &Kernel, generation: Option<Generation>) -> Result<KernelBudget> {
    KernelBudget::of(kernel, generation).map_err(|failure| PyValueError::new_err(failure.to_string()).into())
}

/// The budget with the compiler's answer: the VMEM that it measured, and the verdict or the refusal that follows.
#[pyfunction]
#[pyo3(signature = (budget, measured_bytes: "int | None" = None, *, verdict = None, refusal = None))]
pub(crate) fn kernel_measured(
    budget: &Bound<'_, PyKernelBudget>,
    #[pyo3(from_py_with = whole)] measured_bytes: Option<u64>,
    verdict: Option<String>,
    refusal: Option<String>,
) -> PyKernelBudget {
    let budget = budget.get().clone();
    let (verdict, refusal) = (verdict.or(budget.verdict), refusal.or(budget.refusal));
    PyKernelBudget { measured_bytes, verdict, refusal, ..budget }
}

/// Declared bytes of VMEM, the guess of the body's bytes, whether both fit `limit` or the kernel's own limit, and the
/// limit that both need, if any is enough.
#[pyfunction]
#[pyo3(signature = (text, limit: "int | None" = None, *, tpu: "Tpu | None" = None))]
pub(crate) fn kernel_fits(
    text: &str,
    #[pyo3(from_py_with = whole)] limit: Option<u64>,
    tpu: Option<&Bound<'_, PyAny>>,
) -> Result<(u64, u64, bool, Option<u64>)> {
    let (mut kernel, generation) = read(text, tpu)?;
    let Some(generation) = generation else {
        return Err(PyValueError::new_err("the kernel does not say which TPU it is for: tpu=\"v6e\"").into());
    };
    kernel.limit_bytes = limit.or(kernel.limit_bytes);
    let budget = kernel.budget(generation)?;
    let fits =
        matches!(budget.verdict, Some(KernelFit::DeclaredFits | KernelFit::ProbablyFits)) && is_supported(&budget);
    Ok((budget.vmem_bytes, budget.guess_bytes.unwrap_or_default(), fits, budget.limit_needed()))
}

fn is_supported(budget: &Budget) -> bool {
    budget.windows.iter().all(|window| window.unsupported.is_none())
}

/// Bytes of a block with its tiles: packed as in a window, and as scratch.
#[pyfunction]
#[pyo3(signature = (shape, *, tpu: "Tpu"))]
pub(crate) fn block_bytes(shape: &str, tpu: &Bound<'_, PyAny>) -> Result<(u64, u64)> {
    let read = Shape::parse_as_written(shape).map_err(|error| Error::in_text(error, shape))?;
    let bounds: Vec<u64> = read.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    let Some(array) = read.as_array() else { return Err(PyValueError::new_err("a block is an array").into()) };
    let block = PaddedBlock::of(array.element_type(), &bounds, generation(tpu)?)?;
    Ok((block.window_bytes(), block.scratch_bytes()))
}
