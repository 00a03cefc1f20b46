//! The JAX that recommendations are given with, and what it imports.

pub(super) const JAX: &str = "import jax";
pub(super) const PALLAS: &str = "from jax.experimental import pallas as pl";
pub(super) const NUMPY: &str = "import jax.numpy as jnp";
pub(super) const JAX_AND_NUMPY: &str = "import jax\nimport jax.numpy as jnp";
/// A server or a notebook has no command line to write it in front of.
pub(super) const DUMP: &str =
    "export XLA_FLAGS=\"$XLA_FLAGS --xla_dump_to=dump --xla_dump_hlo_as_text\"  # then run your job again";
/// Code that lists the largest arrays of JAX, by their bytes on one device: `nbytes` counts all devices.
pub(super) const ALIVE: &str = "held = lambda a: a.addressable_shards[0].data.nbytes  # on one device\n\
                     for a in sorted(jax.live_arrays(), key=held)[-20:]: print(held(a), a.shape, a.dtype)";
/// Takes samples in parts.
pub(super) const MAP: &str = "ys = jax.lax.map(f, xs, batch_size=64)  # f(x): the result for one of xs";
/// Lists the processes on a GPU.
pub(super) const PROCESSES: &str = "nvidia-smi  # of an NVIDIA card";
pub(super) const LAYOUT: &str = "import jax\nfrom jax.experimental.layout import Format, Layout";

/// Code of Hugging Face's trainer that keeps the largest logit's index alone.
pub(super) const INDICES_OF_LOGITS: &str =
    "Trainer(…, preprocess_logits_for_metrics=lambda out, _: (out[0] if isinstance(out, tuple) else out).argmax(-1))";

/// An array as code names it. A name is text of the program: one that isn't a path of identifiers, such as `state.params['w']`,
/// stays out of the code, and [`note`](Self::note) explains its stand-in, in capitals, which arguments hardly have.
pub(super) struct Variable<'a> {
    pub(super) name: &'a str,
    /// A comment behind the line, or nothing.
    pub(super) note: &'static str,
}

impl<'a> Variable<'a> {
    pub(super) fn of(name: &'a str) -> Self {
        if is_path(name) {
            Self { name, note: "" }
        } else {
            Self { name: "THIS_ARRAY", note: "  # THIS_ARRAY has no name in the program" }
        }
    }
}

/// Brings an array into this order of dimensions, the most major first.
pub(super) fn put_in_order(name: &str, major_to_minor: &[usize]) -> String {
    let order = tuple(major_to_minor.iter());
    put_in(name, &format!("Layout(major_to_minor=({order}))"))
}

/// Brings an array into this layout.
pub(super) fn put_in(name: &str, layout: &str) -> String {
    let Variable { name, note } = Variable::of(name);
    format!("{name} = jax.device_put({name}, Format({layout}, {name}.sharding)){note}")
}

/// Brings arrays of an argument into these layouts: tuples and frozen trees take no assignment, and for many arrays, such as
/// weights of all layers, assignments are long.
pub(super) fn put_parts_in(root: &str, parts: &[(&str, String)]) -> Vec<String> {
    const MANY: usize = 8;
    let is_plain = |(name, _): &(&str, String)| {
        let is_item = name.ends_with("']") && parts.len() < MANY;
        !is_path(name) || name.len() == root.len() || is_item || name.contains('"')
    };
    if parts.iter().any(is_plain) {
        return parts.iter().map(|(name, layout)| put_in(name, layout)).collect();
    }
    let mut lines = vec!["layouts = {".to_owned()];
    lines.extend(parts.iter().map(|(name, layout)| format!("    \"{}\": {layout},", &name[root.len()..])));
    lines.push("}".to_owned());
    lines.push("def put(path, leaf):".to_owned());
    lines.push("    layout = layouts.get(jax.tree_util.keystr(path))".to_owned());
    lines.push("    return jax.device_put(leaf, Format(layout, leaf.sharding)) if layout else leaf".to_owned());
    lines.push(format!("{root} = jax.tree_util.tree_map_with_path(put, {root})"));
    lines
}

/// The items of a Python tuple, without its brackets.
pub(super) fn tuple<T: ToString>(items: impl ExactSizeIterator<Item = T>) -> String {
    let comma = if items.len() == 1 { "," } else { "" };
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ") + comma
}

/// Leaves the order of a function's results to the compiler.
pub(super) fn results_in_any_order(function: &str) -> String {
    format!("{function} = jax.jit({function}, out_shardings=Format(Layout.AUTO))")
}

/// Gathers each column of a table separately.
pub(super) fn gather_columns(table: &str, dimension: Option<usize>) -> String {
    let Variable { name, note } = Variable::of(table);
    let axis = dimension.map_or_else(|| "-1".to_owned(), |at| at.to_string());
    format!(
        "# in place of {name}[indices]; go on with each column: stacked again along the last dimension, they are padded again\n\
         columns = [column[indices] for column in jnp.unstack({name}, axis={axis})]{note}"
    )
}

/// Scatters each column separately.
pub(super) const SCATTER_COLUMNS: &str =
    "result = jnp.stack([zeros.at[indices].add(column) for column in columns], axis=-1)";

/// Takes an array apart, a column each.
pub(super) fn unstack_columns(name: &str, columns: u64) -> String {
    let name = Variable::of(name).name;
    format!("{name} = jnp.unstack({name}, axis=-1)  # a tuple of {columns} arrays")
}

/// The parameter of the Python function that an argument is part of.
pub(super) fn root(name: &str) -> &str {
    name.split(['[', '.']).next().unwrap_or(name)
}

/// Whether it can be a variable's name.
pub(crate) fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Whether it is a name with attributes and items, as Python code has them: `params['layer/w']`, `state.mu[0]`.
pub(super) fn is_path(text: &str) -> bool {
    let name_end = |text: &str| text.find(['.', '[']).unwrap_or(text.len());
    let (first, mut rest) = text.split_at(name_end(text));
    if !is_name(first) {
        return false;
    }
    while !rest.is_empty() {
        let after = match rest.strip_prefix('.') {
            Some(attribute) => {
                let (name, after) = attribute.split_at(name_end(attribute));
                is_name(name).then_some(after)
            }
            None => rest
                .strip_prefix('[')
                .and_then(|item| item.split_once(']'))
                .and_then(|(item, after)| is_item(item).then_some(after)),
        };
        let Some(after) = after else { return false };
        rest = after;
    }
    true
}

/// Whether it is a number, or a text in quotes that nothing in it ends.
fn is_item(text: &str) -> bool {
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let is_plain = |letter: char| letter.is_alphanumeric() || " _-./:~".contains(letter);
    match quoted('\'').or_else(|| quoted('"')) {
        Some(key) => key.chars().all(is_plain),
        None => !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit()),
    }
}

/// Behind code that names the mesh's axis `x`, where the program doesn't tell its name.
pub(super) const AN_AXIS: &str = "; 'x': an axis of your mesh";
/// Imports of code that divides arrays between devices.
pub(super) const SHARDING: &str = "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec";

#[cfg(test)]
mod tests {
    use super::is_path;

    #[test]
    fn only_paths_of_identifiers_go_into_code() {
        for path in
            ["x", "_a1", "params['w']", "state.opt_state[0].mu['layer/w'].b", "a[\"k\"][2]", "p['encoder layer-1']"]
        {
            assert!(is_path(path), "{path}");
        }
        for other in [
            "",
            "1x",
            "x y",
            "x; import os",
            "x\n",
            "x()",
            "x.",
            "x.1",
            "x[",
            "x[0",
            "x[]",
            "x['a]",
            "x['a'+b]",
            "x['a\\']",
            "x['`']",
            "x['\n']",
            "x[y]",
            "x['a']b",
            "__import__('os').system('id')",
        ] {
            assert!(!is_path(other), "{other}");
        }
    }
}
