//! The properties of `Report` about bytes: the program's sizes in HBM, and the peak.

use crate::{report::PyReport, row::PySourceLine, space::PyPeakBuffer};
use pyo3::prelude::*;
use tilewise_audit::{SpacePeak, SpaceTotal};

impl PyReport {
    fn hbm(&self) -> Option<&SpaceTotal> {
        self.report().memory_space(0)
    }

    fn peak(&self) -> Option<&SpacePeak> {
        self.hbm()?.peak.as_ref()
    }
}

#[pymethods]
impl PyReport {
    /// Padding of all buffers in HBM. Buffers that are never live at the same time share memory, but each is counted.
    #[getter]
    pub(crate) fn padding_bytes(&self) -> u64 {
        self.hbm().map_or(0, SpaceTotal::padding_bytes)
    }

    /// Padding as a fraction of the bytes that all buffers in HBM take, 0 … 1.
    #[getter]
    fn padding_share(&self) -> f64 {
        self.hbm().map_or(0.0, SpaceTotal::padding_share)
    }

    /// Bytes of the entry computation's arguments in HBM.
    #[getter]
    fn argument_bytes(&self) -> u64 {
        self.report().memory_bounds.argument_bytes
    }

    /// Bytes of the entry computation's results in HBM.
    #[getter]
    fn output_bytes(&self) -> u64 {
        self.report().memory_bounds.output_bytes
    }

    /// Bytes of the results that reuse the memory of donated arguments.
    #[getter]
    fn alias_bytes(&self) -> u64 {
        self.report().memory_bounds.alias_bytes
    }

    /// Bytes of constants in HBM, each an allocation of its own: `memory_analysis()` doesn't count them.
    #[getter]
    fn constant_bytes(&self) -> u64 {
        self.report().memory_bounds.constant_bytes
    }

    /// The version of libtpu that compiled the program, such as ``"0.0.50.1"``, if the file name or the caller has it.
    #[getter]
    pub(crate) fn libtpu(&self) -> Option<String> {
        self.report().libtpu.map(|libtpu| libtpu.to_string())
    }

    /// Bytes of temporaries in that compiler's `memory_analysis()` (`temp_size_in_bytes`): `temporary_bytes`, and
    /// before libtpu 0.0.51 the gaps between them a second time.
    #[getter]
    fn reported_temporary_bytes(&self) -> Option<u64> {
        self.report().reported_temporary_bytes()
    }

    /// Bytes of temporaries in HBM, as the compiler allocates them; `None` for a program that isn't scheduled.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).temporary_bytes
    ///     310476800
    #[getter]
    fn temporary_bytes(&self) -> Option<u64> {
        self.report().memory_bounds.temporary_bytes
    }

    /// The least HBM the program can need, in bytes: its arguments, its results, its constants, and temporaries where they
    /// are known.
    #[getter]
    fn at_least_bytes(&self) -> u64 {
        self.report().memory_bounds.at_least_bytes()
    }

    /// The HBM the program needs, in bytes; if it isn't scheduled, as if no two buffers shared memory.
    #[getter]
    fn at_most_bytes(&self) -> u64 {
        self.report().memory_bounds.at_most_bytes
    }

    /// The HBM that arguments, results that don't lie in them, constants and temporaries take together, in bytes: the
    /// size that advice reduces. `None` for a program that isn't scheduled.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> report = audit(pathlib.Path("../examples/gnn_large.v5e.hlo"))
    ///     >>> report.peak_bytes, report.peak_instruction, str(report.peak_source)
    ///     (326497792, 'fusion.6', 'model.py:439')
    #[getter]
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        let bounds = &self.report().memory_bounds;
        bounds.temporary_bytes.map(|_| bounds.at_least_bytes())
    }

    /// Bytes of everything alive in HBM at the peak of live bytes; `None` for a program that isn't scheduled.
    #[getter]
    fn peak_live_bytes(&self) -> Option<u64> {
        Some(self.peak()?.live_bytes)
    }

    /// Padding of everything alive in HBM at that peak.
    #[getter]
    pub(crate) fn peak_padding_bytes(&self) -> Option<u64> {
        Some(self.peak()?.padding_bytes)
    }

    /// The instruction that runs at that peak.
    #[getter]
    fn peak_instruction(&self) -> Option<&str> {
        Some(&self.peak()?.instruction)
    }

    /// The line of the user's program that `peak_instruction` comes from.
    #[getter]
    fn peak_source(&self) -> Option<PySourceLine> {
        self.peak()?.source.as_ref().map(PySourceLine::of)
    }

    /// The arrays alive in HBM at that peak, the largest first; empty for a program that isn't scheduled.
    #[getter]
    fn peak_buffers(&self) -> Vec<PyPeakBuffer> {
        self.peak().map_or(Vec::new(), PyPeakBuffer::all)
    }
}
