//! Arrays that are repeated for a product.

use super::{
    Words,
    code::{JAX, JAX_AND_NUMPY},
    words::at,
};
use crate::style::bytes;
use tilewise_audit::{Recommendation, recommendation::finding::Repeated};

pub(super) fn words(finding: &Repeated, about: &Recommendation) -> Words {
    let Repeated { times, arrays, bytes: taken, of, is_sliced, source, .. } = finding;
    let what = of.as_ref().map_or_else(|| "rows".to_owned(), |of| format!("`{of}`"));
    let takes = if *arrays == 1 {
        "the array with the copies takes".to_owned()
    } else {
        format!("{arrays} arrays with the copies take")
    };
    if *is_sliced {
        return Words::new(format!(
            "Don't repeat {what} {times} times{}: {takes} {}, and only parts of it are read, as in each step of a loop. Read the part of what \
             isn't repeated",
            at(source.as_ref()),
            bytes(*taken)
        ))
        .task(format!("Don't repeat {what} {times} times: read `[i // {times}]` where `[i]` is read"))
        .jax(about, JAX, format!("part = x[i // {times}]  # along that dimension, x before jnp.repeat(x, {times}, …), in place of part i of the copies"));
    }
    Words::new(format!(
        "Don't repeat {what} {times} times{}: {takes} {}, and only products read them. Give the other operand a dimension of {times} instead, and \
         let it share one copy",
        at(source.as_ref()),
        bytes(*taken)
    ))
    .task(format!("Don't repeat {what} {times} times: let the products share one copy"))
    .jax(
        about,
        JAX_AND_NUMPY,
        format!(
            "# in place of jnp.repeat(k, {times}, …) or jnp.broadcast_to: q's rows in groups of {times}, r, that share a k\n\
             q = q.reshape(k.shape[0], {times}, *q.shape[1:])\n\
             scores = jnp.einsum('br...d,bk...d->br...k', q, k)"
        ),
    )
}
