//! A cache of whose new slices another is stacked up, by a loop or without one.

use super::{
    Words,
    code::{JAX_AND_NUMPY, is_name, root},
    words::{at, bare, quoted},
};
use tilewise_audit::{Recommendation, recommendation::finding::StackedCache};

pub(super) fn words(finding: &StackedCache, about: &Recommendation) -> Words {
    let StackedCache { names, steps, source, is_unrolled, is_donated, .. } = finding;
    let cache = if names.is_empty() { format!("the {}", bare(about)) } else { quoted(names) };
    let mut roots: Vec<&str> = names.iter().map(|name| root(name)).collect();
    roots.dedup();
    let variable = match &roots[..] {
        [root] if is_name(root) => root,
        _ => "cache",
    };
    let it = if names.len() > 1 { "them" } else { "it" };
    if *is_unrolled {
        let variable = names.first().filter(|name| names.len() == 1 && is_name(name)).map_or("cache", String::as_str);
        return Words::new(format!(
            "Update {cache} in place: the {steps} slices are taken apart, written one by one, and stacked up again, so that they \
             lie in memory as they were and as they become; write what is new into the whole array, and read the layer from it"
        ))
        .task(format!("Update {cache} in place"))
        .jax(
            about,
            JAX_AND_NUMPY,
            format!(
                "# where layer `i` writes `new` at `position`
start = (i, 0, position) + (0,) * ({variable}.ndim - 3)
{variable} = jax.lax.dynamic_update_slice({variable}, new[None], start)
layer = {variable}[i]"
            ),
        );
    }
    let update = if *is_donated {
        format!("and update {it} in place")
    } else {
        format!("update {it} in place, and donate {it}")
    };
    Words::new(format!(
        "Carry {cache} through the loop{}, {update}: as `xs` and `ys` of a scan, the slices of all {steps} steps \
         lie in memory as they were and as they become",
        at(source.as_ref())
    ))
    .task(format!("Carry {cache} through the loop, {update}"))
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
