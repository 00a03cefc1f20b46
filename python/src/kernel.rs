//! `KernelUse`, the memory and the copies of a program's Pallas kernels.

use crate::{
    row::PySourceLine,
    shape::PyShape,
    typed::{Access, ForcedBy, Remedies, Side, Typed},
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tilewise_audit::{BoundaryChange, KernelArray, KernelRow};
use tilewise_report::RemedyWords;

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
    /// Bytes of VMEM that it uses: windows, scratch and the body's own; `None` if the text doesn't give them.
    used_bytes: Option<u64>,
    /// The limit in force: the kernel's own, or the generation's default; `None` if unknown.
    limit_bytes: Option<u64>,
    /// The largest limit that is honoured.
    cap_bytes: Option<u64>,
    /// Bytes of operands and results that XLA keeps in VMEM as a whole, beside `used_bytes`: they have no windows.
    held_bytes: u64,
    /// Whether it uses nine tenths of its limit or more: a slightly larger block may not compile.
    is_near_limit: bool,
    /// Its operands, with what XLA does to each before the call.
    operands: Vec<PyKernelArray>,
    /// Its results, one for each reader, with what XLA does to each before it is read.
    results: Vec<PyKernelArray>,
    /// Bytes that are read and written to copy its operands and results, in all runs of the program.
    copied_bytes: u64,
    /// The operations of its body that move elements between rows and lanes, as it was handed to the compiler: `'tpu.transpose'` and
    /// the like; `None` where the text doesn't have the body.
    body_moves: Option<Vec<String>>,
    /// The sizes of its blocks by the names that its library gives them, such as `{'block_q': 512, 'block_kv': 1024}`: from its metadata
    /// or its name; empty where neither has them.
    block_sizes: BTreeMap<String, u64>,
    /// The framework's name of the operation.
    op_name: Option<String>,
    /// The line of the user's program.
    source: Option<PySourceLine>,
}

/// An operand of a kernel with what XLA does to it before the call; or a result, with what XLA does to it before another
/// instruction reads it.
///
/// Examples:
///     >>> report = audit('''HloModule jit_f, is_scheduled=true
///     ...   ENTRY main {
///     ...     x = f32[1024,512]{0,1:T(8,128)} parameter(0)
///     ...     c = f32[1024,512]{1,0:T(8,128)} copy(x)
///     ...     ROOT y = f32[1024,512]{1,0:T(8,128)} custom-call(c), custom_call_target="tpu_custom_call"
///     ...   }''', tpu="v5e")
///     >>> report.kernels[0].operands
///     [<KernelArray operand 0: f32[1024,512]{1,0:T(8,128)}, 4194304 bytes copied>]
///     >>> [change.opcode for change in report.kernels[0].operands[0].between]
///     ['copy']
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "KernelArray")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyKernelArray {
    /// `'operand'` or `'result'`.
    side: Typed<String, Side>,
    /// Its number among the operands, or among the arrays that the kernel makes.
    index: usize,
    /// The array as the kernel takes or makes it.
    shape: PyShape,
    /// The instruction that makes an operand, or the parameter that it is; the one that reads a result.
    other: String,
    /// The opcode of `other`.
    other_opcode: String,
    /// The instructions between the kernel and `other`, from the kernel on.
    between: Vec<PyBoundaryChange>,
    /// Bytes that the copies among these read and write, in all runs of the program.
    copied_bytes: u64,
    /// Why it is copied: `'kernel'`, `'interface'`, `'loop'`, `'branch'`, `'donation'`; `None` where it isn't.
    forced_by: Option<Typed<String, ForcedBy>>,
    /// A remedy that avoids the copy; `None` if unknown.
    remedy: Option<PyRemedy>,
}

/// One instruction that changes the layout, shape, type or memory space of an array at a kernel, and computes nothing.
///
/// Examples:
///     >>> report = audit('''HloModule jit_f, is_scheduled=true
///     ...   ENTRY main {
///     ...     x = f32[1024,512]{0,1:T(8,128)} parameter(0)
///     ...     c = f32[1024,512]{1,0:T(8,128)} copy(x)
///     ...     ROOT y = f32[1024,512]{1,0:T(8,128)} custom-call(c), custom_call_target="tpu_custom_call"
///     ...   }''', tpu="v5e")
///     >>> report.kernels[0].operands[0].between[0].opcode
///     'copy'
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "BoundaryChange")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyBoundaryChange {
    /// The name of the instruction.
    instruction: String,
    /// The opcode of the instruction.
    opcode: String,
    /// Whether elements move: not in a transfer between memory spaces, nor in a bitcast or a conversion.
    is_relayout: bool,
    /// Whether it makes the same array again in the same memory space.
    is_duplicate: bool,
    /// The array that it reads.
    from_shape: PyShape,
    /// The array that it writes.
    to_shape: PyShape,
    /// Bytes that it reads and writes in one run; 0 for a bitcast.
    bytes: u64,
    /// How often it runs; `None` in a loop whose trip count isn't known.
    trips: Option<u64>,
    /// The line of the user's program.
    source: Option<PySourceLine>,
}

/// A remedy that avoids the copy of a kernel's operand or result.
///
/// Examples:
///     >>> report = audit('''HloModule jit_f, is_scheduled=true
///     ...   ENTRY main {
///     ...     x = f32[1024,512]{0,1:T(8,128)} parameter(0)
///     ...     c = f32[1024,512]{1,0:T(8,128)} copy(x)
///     ...     ROOT y = f32[1024,512]{1,0:T(8,128)} custom-call(c), custom_call_target="tpu_custom_call"
///     ...   }''', tpu="v5e")
///     >>> report.kernels[0].operands[0].remedy.kind
///     'layout'
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Remedy")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyRemedy {
    /// `'layout'`, `'view'`, `'stored'`, `'donate'` or `'drop_alias'`.
    kind: Typed<String, Remedies>,
    /// The array that the kernel reads or writes instead; `None` for other kinds than a view or a stored shape.
    shape: Option<String>,
    /// The change to a block: `'index_map'`, `'lanes'`, `'rows'`, `'transposed'`, `'split'`; `None` if `shape` is.
    access: Option<Typed<String, Access>>,
    /// The task, as a sentence.
    sentence: String,
    /// The code for it: outside the kernel, then inside.
    code: Option<String>,
}

impl PyKernelArray {
    fn of(array: &KernelArray) -> Self {
        Self {
            side: array.side.as_str().into(),
            index: array.index,
            shape: PyShape::new(array.shape.clone()),
            other: array.other.clone(),
            other_opcode: array.other_opcode.as_str().to_owned(),
            between: array.between.iter().map(PyBoundaryChange::of).collect(),
            copied_bytes: array.copied_bytes(),
            forced_by: array.forced_by.map(|forced_by| forced_by.as_str().into()),
            remedy: RemedyWords::of(array).map(PyRemedy::of),
        }
    }
}

impl PyBoundaryChange {
    fn of(change: &BoundaryChange) -> Self {
        Self {
            instruction: change.instruction.clone(),
            opcode: change.opcode.as_str().to_owned(),
            is_relayout: change.is_relayout,
            is_duplicate: change.is_duplicate,
            from_shape: PyShape::new(change.from.clone()),
            to_shape: PyShape::new(change.to.clone()),
            bytes: change.bytes,
            trips: change.trips,
            source: change.source.as_ref().map(PySourceLine::of),
        }
    }
}

impl PyRemedy {
    fn of(words: RemedyWords) -> Self {
        Self {
            kind: words.kind.into(),
            shape: words.shape,
            access: words.access.map(Into::into),
            sentence: words.sentence,
            code: words.code,
        }
    }
}

#[pymethods]
impl PyKernelArray {
    fn __repr__(&self) -> String {
        format!("<KernelArray {} {}: {}, {} bytes copied>", self.side.0, self.index, self.shape, self.copied_bytes)
    }
}

#[pymethods]
impl PyBoundaryChange {
    fn __repr__(&self) -> String {
        format!("<BoundaryChange {} {}: {} to {}>", self.opcode, self.instruction, self.from_shape, self.to_shape)
    }
}

#[pymethods]
impl PyRemedy {
    fn __repr__(&self) -> String {
        format!("<Remedy {}: {}>", self.kind.0, self.sentence)
    }
}

impl PyKernelUse {
    pub(crate) fn of(row: KernelRow) -> Self {
        Self {
            is_near_limit: row.is_near_limit(),
            operands: row.operands.iter().map(PyKernelArray::of).collect(),
            results: row.results.iter().map(PyKernelArray::of).collect(),
            copied_bytes: row.copied_bytes(),
            held_bytes: row.held_bytes(),
            body_moves: row.body_moves.map(|moves| moves.into_iter().map(str::to_owned).collect()),
            block_sizes: row.block_sizes.into_iter().map(|each| (each.name, each.size)).collect(),
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
}
