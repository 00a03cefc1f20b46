//! Operands and results of a kernel of the user's own, with rows of a few columns.

use super::{
    Words,
    code::NUMPY,
    words::{at, list},
};
use tilewise_audit::{Recommendation, recommendation::finding::KernelColumns};

pub(super) fn words(finding: &KernelColumns, about: &Recommendation) -> Words {
    let bounds = &finding.transposed;
    let columns = bounds.len().checked_sub(2).and_then(|at| bounds.get(at)).copied().unwrap_or_default();
    Words::new(format!(
        "Write the kernel{} for [{}]: its blocks have {columns} columns, and each of their rows takes 128 lanes; transpose its \
         BlockSpecs and what it reads and writes",
        at(finding.source.as_ref()),
        list(bounds),
    ))
    .task(format!("Write the kernel for [{}], columns before rows", list(bounds)))
    .jax(about, NUMPY, "x = jnp.swapaxes(x, -1, -2)  # before the kernel; its blocks transposed")
}
