//! The JAX that recommendations are given with, and what it imports.

pub(super) const JAX: &str = "import jax";
pub(super) const NUMPY: &str = "import jax.numpy as jnp";
pub(super) const JAX_AND_NUMPY: &str = "import jax\nimport jax.numpy as jnp";
pub(super) const LAYOUT: &str = "import jax\nfrom jax.experimental.layout import Format, Layout";

/// Brings an array into this order of dimensions, the most major first.
pub(super) fn put_in_order(name: &str, major_to_minor: &[usize]) -> String {
    let order = tuple(major_to_minor.iter());
    put_in(name, &format!("Layout(major_to_minor=({order}))"))
}

/// Brings an array into this layout.
pub(super) fn put_in(name: &str, layout: &str) -> String {
    format!("{name} = jax.device_put({name}, Format({layout}, {name}.sharding))")
}

/// What stands between a Python tuple's brackets.
pub(super) fn tuple<T: ToString>(items: impl ExactSizeIterator<Item = T>) -> String {
    let comma = if items.len() == 1 { "," } else { "" };
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ") + comma
}

/// Leaves the order of a function's results to the compiler.
pub(super) fn results_in_any_order(function: &str) -> String {
    format!("{function} = jax.jit({function}, out_shardings=Format(Layout.AUTO))")
}

/// Gathers each column of a table separately.
pub(super) fn gather_columns(table: &str) -> String {
    format!("columns = [column[indices] for column in jnp.unstack({table}, axis=-1)]")
}

/// Scatters each column separately.
pub(super) const SCATTER_COLUMNS: &str =
    "result = jnp.stack([zeros.at[indices].add(column) for column in columns], axis=-1)";

/// Takes an array apart, a column each.
pub(super) fn unstack_columns(name: &str, columns: u64) -> String {
    format!("{name} = jnp.unstack({name}, axis=-1)  # a tuple of {columns} arrays")
}

/// The parameter of the Python function that an argument is part of.
pub(super) fn root(name: &str) -> &str {
    name.split(['[', '.']).next().unwrap_or(name)
}

/// Whether it can be a variable's name.
pub(super) fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Divides parameters between all devices.
pub(super) const SHARDING: &str = "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec";
