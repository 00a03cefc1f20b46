//! A cache that a loop reads, and of whose new slices it stacks up another.

use super::{
    Words,
    code::{JAX_AND_NUMPY, is_name, root},
    words::{at, bare, quoted},
};
use tilewise_audit::{Recommendation, recommendation::finding::StackedCache};

pub(super) fn words(finding: &StackedCache, about: &Recommendation) -> Words {
    let StackedCache { names, steps, source, .. } = finding;
    let cache = if names.is_empty() { format!("the {}", bare(about)) } else { quoted(names) };
    let mut roots: Vec<&str> = names.iter().map(|name| root(name)).collect();
    roots.dedup();
    let variable = match &roots[..] {
        [root] if is_name(root) => root,
        _ => "cache",
    };
    Words::new(format!(
        "Carry {cache} through the loop{}, and update {it} in place: as `xs` and `ys` of a scan, the slices of all {steps} steps \
         lie in memory as they were and as they become",
        at(source.as_ref()),
        it = if names.len() > 1 { "them" } else { "it" }
    ))
    .jax(
        about,
        JAX_AND_NUMPY,
        format!(
            "def carrying(carry, x):
    y, {variable} = carry
    i, weights = x
    old = jax.tree.map(lambda c: jax.lax.dynamic_index_in_dim(c, i, keepdims=False), {variable})
    y, new = step(y, (weights, old))  # the step as it is
    write = lambda c, n: jax.lax.dynamic_update_index_in_dim(c, n, i, 0)
    return (y, jax.tree.map(write, {variable}, new)), None
(y, {variable}), _ = jax.lax.scan(carrying, (y, {variable}), (jnp.arange({steps}), weights))"
        ),
    )
}
