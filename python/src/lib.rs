//! The native half of the Python package `tilewise`: thin classes around the Rust crates.

mod arguments;
mod columns;
mod console;
mod drawing;
mod element_type;
mod errors;
mod explanation;
mod fix;
mod html;
mod index;
mod integers;
mod layout;
mod memory;
mod predict;
mod records;
mod relayout;
mod report;
mod rows;
mod shape;
mod steps;

use pyo3::prelude::*;

// Everything here is immutable once made, so free-threaded Python needs no lock.
#[pymodule(gil_used = false)]
mod _tilewise {
    use super::{PyModule, PyModuleMethods, PyResult};
    #[pymodule_export]
    use super::{
        columns::PyTable,
        console::run,
        drawing::PyDrawing,
        element_type::PyElementType,
        explanation::{PyExplanation, explain_text},
        fix::PyFix,
        layout::{PyLayout, layout_of},
        predict::{hbm_bytes, predict},
        records::{PyCopy, PyReportWarning, PySourceLine, PySpaceTotal},
        relayout::{relayout, tile, untile},
        report::{PyReport, audit_text, decode, read},
        rows::{PyAllocation, PyBuffer, PyRow},
        shape::PyShape,
        steps::{PyStep, PySteps},
    };
    use pyo3::Bound;
    use tilewise::tpu::{CHECKED_WITH, Generation};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let names: Vec<_> = Generation::ALL.iter().map(|generation| generation.name()).collect();
        module.add("TPU_GENERATIONS", super::layout::tuple(module.py(), names)?)?;
        module.add("CHECKED_WITH", CHECKED_WITH)
    }
}
