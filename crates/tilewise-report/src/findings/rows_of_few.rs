//! Rows of a few columns: a gather makes, and a scatter reads, each row in 128 lanes of its own.

use super::{
    Words,
    code::{NUMPY, SCATTER_COLUMNS, gather_columns},
    words::at_line,
};
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{RowOperation, RowsOfFew},
};
use tilewise_oom::Framework;

/// The reason to take columns apart.
const WHY: &str = "each row is padded to 128 lanes";

pub(super) fn words(finding: &RowsOfFew, about: &Recommendation) -> Words {
    let (columns, place) = (finding.columns, at_line(about));
    let shape = about.array.as_ref().map(|array| &*array.shape_text).unwrap_or_default();
    match &finding.operation {
        RowOperation::Gather { table, dimension, is_scattered } => {
            let then = match is_scattered {
                Some(true) => "and keep them separate until each is scattered",
                Some(false) => "before anything joins them into rows",
                None => "and keep them separate from there on",
            };
            let table = table.as_deref().unwrap_or("table");
            let columns = match dimension {
                Some(at) => format!("{columns} parts of the table, along its dimension {at},"),
                None => format!("{columns} columns"),
            };
            Words::new(format!(
                "Gather each of the {columns} separately{place}, {then}: {WHY}, and splitting what was gathered frees \
                 nothing"
            ))
            .task(format!("Gather each of the {columns} separately"))
            .jax(about, NUMPY, gather_columns(table, *dimension))
        }
        RowOperation::IndexTuples => Words::new(format!(
            "Update JAX: `jnp.take_along_axis` of the one at hand makes {columns} indices for each element{place}, and {WHY}; a \
             newer one, from 0.4.35 on, makes one"
        ))
        .code(None, "pip install --upgrade 'jax[tpu]'"),
        RowOperation::Scatter => {
            Words::new(format!("Scatter each of the {columns} columns separately{place}: {WHY}"))
                .task(format!("Scatter each of the {columns} columns separately"))
                .jax(about, NUMPY, SCATTER_COLUMNS)
        }
        RowOperation::OneHot => Words::new(format!(
            "Leave the one-hot array out (`one_hot`, a comparison with `iota`): {shape}{place} has {columns} numbers a row, and \
             {WHY}; pick with {}, or compare where the result is used",
            picker(about)
        ))
        .task(format!("Leave the one-hot array out: pick with {}", picker(about)))
        .jax(about, NUMPY, "picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]"),
        RowOperation::KeptDimension => Words::new(format!(
            "Leave the dimension of size 1 out where {shape}{place} is made (no `keepdims`, no `[:, None]`), and add it where it \
             is used: the array has one number a row, and {WHY}"
        ))
        .task("Leave the dimension of size 1 out until it is used"),
        RowOperation::RandomBits => Words::new(format!(
            "Draw fewer random numbers at once: {shape}{place} is most likely of dropout, whose bits the compiler itself lays out, one a row, and \
             {WHY}. Turn off the dropout of the largest arrays, such as of attention's scores, take fewer samples at once, or update the compiler"
        ))
        .task("Turn off the dropout of attention's scores, or take fewer samples"),
        RowOperation::KeptRow => Words::new(format!(
            "Leave the dimension of size 1 out of {shape}{place}, or merge it with another (`reshape`), and add it where it is used: \
             it is the only row of each tile, and the other rows are padding"
        ))
        .task("Leave the dimension of size 1 out, or merge it with another"),
        RowOperation::Convolution => Words::new(format!(
            "Fold neighbouring positions into the channels before the convolution (space to depth), or work through it in parts: {shape}{place} \
             is of a convolution, with {columns} numbers a row, and {WHY}"
        ))
        .task("Fold neighbouring positions into the channels (space to depth)"),
        RowOperation::Product { rows, columns } => Words::new(format!(
            "Multiply the {rows} × {columns} matrices{place} by sums of elementwise products: the compiler pads each matrix that `@` or `einsum` \
             makes to tiles, and has the many matrices along the lanes where nothing multiplies them as matrices"
        ))
        .task(format!("Multiply the {rows} × {columns} matrices elementwise, and add up"))
        .jax(about, NUMPY, "c = jnp.sum(a[..., :, :, None] * b[..., None, :, :], axis=-2)  # in place of c = a @ b"),
        _ => Words::new(format!(
            "Make {columns} arrays, one for each column, where {shape}{place} is made, and keep them separate from there on: it \
             has rows of {columns}, and {WHY}; another layout requested inside the program is undone"
        ))
        .task(format!("Make {columns} arrays, one for each column"))
        .jax(
            about,
            None,
            format!("columns = [column_of(x, i) for i in range({columns})]  # in place of jnp.stack(columns, axis=-1)"),
        ),
    }
}

/// The function that picks an element of each row, in the reader's framework.
fn picker(about: &Recommendation) -> &'static str {
    match about.framework {
        Some(Framework::TensorFlow) => "`tf.gather` (`batch_dims`)",
        Some(Framework::Torch | Framework::TorchXla) => "`torch.gather`",
        Some(Framework::Reactant | Framework::Exla) => "indices",
        _ => "`jnp.take_along_axis`",
    }
}
