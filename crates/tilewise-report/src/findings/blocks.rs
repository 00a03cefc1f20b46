//! A large array whose lines can take a block of its rows after another.

use super::{
    Words,
    code::{JAX, JAX_AND_NUMPY},
    parted::either,
    words::{at_line, bounds_of},
};
use crate::style::grouped;
use tilewise_audit::{Recommendation, SourceLine, recommendation::finding::Blocks};

pub(super) fn words(finding: &Blocks, about: &Recommendation) -> Words {
    let Blocks {
        size,
        dimension,
        of,
        are_directions,
        are_counted,
        blocks,
        sums,
        maxima,
        joined,
        has_gradient,
        is_of_step,
        ..
    } = finding;
    if *are_directions {
        return directions(*size, *blocks, about);
    }
    let size_of_rows = grouped(*size);
    let shape = about.array.as_ref().and_then(|array| array.shape());
    let bound = shape.and_then(|shape| shape.bounds()?.get(*dimension).copied());
    let rows = match of {
        Some(of) => format!("dimension {dimension} ({size_of_rows} rows of `{of}`)"),
        None if bound == Some(*size) => format!("dimension {dimension} ({size_of_rows})"),
        None => format!("the {size_of_rows} in dimension {dimension}, which joins several"),
    };
    let (behind, [open, close]) =
        if *has_gradient { (", each behind `jax.checkpoint`", ["jax.checkpoint(", ")"]) } else { ("", [""; 2]) };
    let lines = match &about.edited {
        Some(lines) if !lines.more.is_empty() => "these lines",
        _ => "your lines",
    };
    let those = of.as_ref().map_or_else(|| "that dimension".to_owned(), |of| format!("the rows of {of}"));
    let numbers = if *are_counted { ", and their numbers beside it: (xs, jnp.arange(len(xs)))" } else { "" };
    if !joined.is_empty() {
        return in_turn(*blocks, &rows, joined, about);
    }
    let checkpoint = if *has_gradient { "of_block = jax.checkpoint(of_block)\n" } else { "" };
    let (what, start, joins) = if maxima == sums {
        ("maxima", "full(s.shape, -jnp.inf, s.dtype)", "maximum")
    } else {
        ("sums", "zeros(s.shape, s.dtype)", "add")
    };
    let is_mixed = *maxima > 0 && maxima < sums;
    let note_of_maxima = if is_mixed { "  # of a maximum: -jnp.inf, and jnp.maximum below" } else { "" };
    let note = format!("# xs: what has {those} there, as its first dimension{numbers}\n");
    let (adds, code) = match sums {
        0 => (
            "",
            format!(
                "# of_row(x): {lines}, of one row x of xs\nout = jax.lax.map({open}of_row{close}, xs, batch_size={})",
                size / blocks
            ),
        ),
        _ => (
            ", and join its sums or maxima over all rows",
            format!(
                "# of_block(x): {lines}, of some rows x of xs: arrays with these rows, and {what} over them
{checkpoint}parts = xs.reshape({blocks}, -1, *xs.shape[1:])
start = jax.tree.map(lambda s: jnp.{start}, jax.eval_shape(of_block, parts[0])[1]){note_of_maxima}
def join(so_far, part):
    arrays, more = of_block(part)
    return jax.tree.map(jnp.{joins}, so_far, more), arrays
{what}, arrays = jax.lax.scan(join, start, parts)
arrays = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), arrays)"
            ),
        ),
    };
    let words = Words::new(format!(
        "Compute [{}]{} in {blocks} blocks along {rows}, one after another{behind}{adds}: no row of it needs another one, and what is made of \
         it is small",
        bounds_of(about),
        at_line(about),
    ))
    .task(format!("Compute it in {blocks} blocks along {rows}, one after another"));
    either(words, about, None, Some(note + &code).filter(|_| !is_of_step))
}

/// Rows that a few lines join: blocks with a running result.
fn in_turn(blocks: u64, rows: &str, joined: &[SourceLine], about: &Recommendation) -> Words {
    let numbers = joined.iter().map(|line| line.line.to_string()).collect::<Vec<_>>();
    let (plural, joins) = if joined.len() == 1 { ("", "joins") } else { ("s", "join") };
    let lines = format!("line{plural} {}", numbers.join(", "));
    let task = format!("Compute it in {blocks} blocks along {rows}, with a running result where {lines} {joins} them");
    Words::new(format!(
        "{task}: [{}]{} needn't be whole for a largest value and its place, a sum, or picked elements of it. What reads the result together with \
         all rows again is a second pass over the blocks",
        bounds_of(about),
        at_line(about),
    ))
    .task(task)
    .jax(
        about,
        JAX,
        format!(
            "# xs: what has these rows there, as its first dimension; so_far: the result of no rows\n\
             # step(so_far, x): these lines, of a block x of xs, and their result joined with so_far, as by jnp.maximum\n\
             result, _ = jax.lax.scan(lambda so_far, x: (step(so_far, x), None), so_far, xs.reshape({blocks}, -1, *xs.shape[1:]))"
        ),
    )
}

/// Derivatives of a gradient along all directions.
fn directions(size: u64, blocks: u64, about: &Recommendation) -> Words {
    let directions = grouped(size);
    Words::new(format!(
        "Differentiate the gradient along a part of the {directions} directions at a time, {blocks} parts one after another, and only along \
         those whose rows are read: [{}]{} has a place for each direction, as `jax.hessian` and `jax.jacfwd` take them",
        bounds_of(about),
        at_line(about),
    ))
    .task(format!("Take the {directions} directions of the second derivative in {blocks} parts, or those that are read"))
    .jax(
        about,
        JAX_AND_NUMPY,
        format!(
            "# in place of jax.hessian(f)(x): a row for each direction; of k rows that are read, directions[:k]\n\
             directions = jnp.eye(x.size, dtype=x.dtype).reshape(-1, *x.shape)\n\
             row = lambda v: jax.jvp(jax.grad(f), (x,), (v,))[1]\n\
             rows = jax.lax.map(row, directions, batch_size={}).reshape(*x.shape, *x.shape)",
            size / blocks
        ),
    )
}
