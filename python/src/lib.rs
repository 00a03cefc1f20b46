//! The native half of the Python package `tilewise`: thin classes and functions around the Rust crates.
//!
//! The other half is `package/tilewise`. Modules don't import each other in circles: `builtins` and `errors` use no
//! class, the classes come next, and `shape_methods`, `report` and `explanation` use most of them.

mod arrays;
mod audit;
mod budget;
mod buffer;
mod builtins;
mod command_line;
mod comparison;
mod copy;
mod drawing;
mod element_type;
mod errors;
mod explanation;
mod few;
mod files;
mod index;
mod integers;
mod kernel;
mod layout;
mod lock;
mod predict;
mod program_shape;
mod recommendation;
mod relation;
mod relayout;
mod report;
mod report_json;
mod report_sizes;
mod restore;
mod row;
mod screen;
mod shape;
mod shape_conditions;
mod shape_edits;
mod shape_methods;
mod shape_sizes;
mod slices;
mod space;
mod steps;
mod table;
mod tabular;
mod threads;
mod time;
mod together;
mod tpu;
mod travel;
mod typed;
mod warning;
mod whole;
mod words;

use pyo3::prelude::*;

// Every class is immutable, so free-threaded Python needs no lock.
#[pymodule(gil_used = false)]
mod _tilewise {
    use super::tpu::Generations;
    #[pymodule_export]
    use super::{
        audit::audit_text,
        budget::{PyKernelBudget, PyKernelRow, block_bytes, kernel_budget, kernel_fits, kernel_measured},
        buffer::PyBuffer,
        command_line::{asks_compiler, run},
        comparison::{PyChange, PyComparedProgram, PyComparison, PyOwner},
        copy::PyCopy,
        drawing::{PyDrawing, draw, frontier},
        element_type::PyElementType,
        explanation::{PyAllocation, PyExplanation, explain_text},
        files::{decode, programs_in, read},
        kernel::{PyBoundaryChange, PyKernelArray, PyKernelUse, PyRemedy},
        layout::{PyLayout, layout_in},
        lock::{compare_programs, compare_reports, compared_program, comparison_words, lock_text, read_lock},
        predict::{free_reshapes, predict},
        program_shape::PyProgramShape,
        recommendation::{PyMadeBatch, PyRecommendation},
        relation::PyRelation,
        relayout::{relayout, tile, untile},
        report::{PyReport, floor_of, plot, quoting, set_origin, work_of},
        restore::{fields_of, restore},
        row::{PyRow, PySourceLine},
        screen::{PyCause, PyHeadline, PyLineEdit, PyPlannedChange},
        shape::PyShape,
        shape_conditions::equation_json,
        slices::reshard,
        space::{PyPeakBuffer, PySpaceTotal},
        steps::{PyStep, PySteps, steps_of},
        table::PyTable,
        tabular::PyTabular,
        time::{PyTime, PyTimeGroup, PyTimeRow},
        together::{PyAlternative, PyLoadedProgram, PyPageArrays, PyResidentArray, PyTogether, sum_together},
        tpu::{generation_name, hbm_bytes, machine_name, rates},
        warning::PyReportWarning,
        words::{markdown, search_curves, search_page, size_of},
    };

    #[pymodule_export]
    const CHECKED_WITH: &str = tilewise::tpu::CHECKED_WITH;
    #[pymodule_export]
    const TPU_GENERATIONS: Generations = Generations;
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
