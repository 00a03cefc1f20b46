//! Arrays that are repeated for a product.

use super::{Words, code::JAX_AND_NUMPY, words::at};
use crate::style::bytes;
use tilewise_audit::{Recommendation, recommendation::finding::Repeated};

pub(super) fn words(finding: &Repeated, about: &Recommendation) -> Words {
    let Repeated { times, arrays, bytes: taken, of, source, .. } = finding;
    let what = of.as_ref().map_or_else(|| "rows".to_owned(), |of| format!("`{of}`"));
    let takes = if *arrays == 1 {
        "the array with the copies takes".to_owned()
    } else {
        format!("{arrays} arrays with the copies take")
    };
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
