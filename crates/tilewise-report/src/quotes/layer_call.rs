//! The call of a layer in a line of source, behind a checkpoint.

use super::closing;
use crate::findings::is_name;
use tilewise_audit::recommendation::finding::{Library, RepeatedLayers};

/// Modules whose functions are no layers.
const MODULES: [&str; 12] =
    ["jnp", "jax", "lax", "np", "numpy", "nn", "nnx", "eqx", "hk", "optax", "functools", "checkpoint"];
/// Functions that are no layers.
const FUNCTIONS: [&str; 6] = ["zip", "range", "enumerate", "len", "tuple", "list"];

/// `x = block(x)` as `x = eqx.filter_checkpoint(block)(x)`; `None` unless exactly one call of the line can be the layer's.
pub(super) fn checkpointed(finding: &RepeatedLayers, line: &str) -> Option<String> {
    if finding.is_checkpointed || line.trim_start().starts_with(['#', '@']) {
        return None;
    }
    let calls = outermost_calls(line);
    let [call] = if finding.library == Library::Linen {
        // Of `Block(cfg)(x)`, the class; an assignment would make its name a local one.
        let [class] = &finding.layers.classes[..] else { return None };
        let is_class = |call: &&Call<'_>| call.callee == class;
        <[Call<'_>; 1]>::try_from(calls.iter().filter(is_class).copied().collect::<Vec<_>>()).ok()?
    } else {
        <[Call<'_>; 1]>::try_from(calls.into_iter().filter(Call::may_be_layer).collect::<Vec<_>>()).ok()?
    };
    let Call { at, callee: class, made: callee, given, passed } = call;
    let callee = if finding.library == Library::Linen { class } else { callee };
    let (before, behind) = (&line[..at], &line[at + callee.len()..]);
    let after = match finding.library {
        // Flax names parameters after the class, which is another one then, unless the call or an attribute names them.
        Library::Linen if given.contains("name=") || before.trim_start().starts_with("self.") => {
            format!("nn.remat({callee}){behind}")
        }
        Library::Equinox => format!("eqx.filter_checkpoint({callee}){behind}"),
        Library::Haiku => format!("hk.remat({callee}){behind}"),
        // It takes the module as an argument.
        Library::Nnx if !passed.contains('=') => {
            let rest = behind.strip_prefix('(')?;
            format!("nnx.remat(lambda layer, *args: layer(*args))({callee}, {rest}")
        }
        Library::Jax => format!("jax.checkpoint({callee}){behind}"),
        _ => return None,
    };
    Some(format!("{before}{after}"))
}

/// A call in a line.
#[derive(Clone, Copy)]
struct Call<'l> {
    /// The byte at which its function begins.
    at: usize,
    /// The function: `self.blocks[i]`.
    callee: &'l str,
    /// The function that is called, if the call makes it: `Block(width)` of `Block(width)(x)`; otherwise the function itself.
    made: &'l str,
    /// The arguments of the first call, and of the last.
    given: &'l str,
    passed: &'l str,
}

impl Call<'_> {
    fn may_be_layer(&self) -> bool {
        let root = self.callee.split(['.', '[']).next().unwrap_or_default();
        is_name(root) && !self.passed.is_empty() && !MODULES.contains(&root) && !FUNCTIONS.contains(&self.callee)
    }
}

/// The calls of a line that are no arguments of others, as far as their brackets close in it.
fn outermost_calls(line: &str) -> Vec<Call<'_>> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(open) = line[from..].find('(').map(|at| from + at) {
        let Some(end) = closing(&line[open + 1..]).map(|end| open + 1 + end) else { break };
        let at = start_of_path(&line[..open]);
        let (callee, given) = (&line[at..open], &line[open + 1..end]);
        let again = line[end + 1..].strip_prefix('(').and_then(|rest| Some(&rest[..closing(rest)?]));
        if !callee.is_empty() {
            let made = if again.is_some() { &line[at..=end] } else { callee };
            found.push(Call { at, callee, made, given, passed: again.unwrap_or(given) });
        }
        from = end + 1 + again.map_or(0, |again| again.len() + 2);
    }
    found
}

/// The byte at which a path of names and indices begins that ends a text: `self.blocks[i]`.
fn start_of_path(text: &str) -> usize {
    let (mut depth, mut start) = (0_u32, text.len());
    for (at, letter) in text.char_indices().rev() {
        match letter {
            ']' => depth += 1,
            '[' if depth == 0 => break,
            '[' => depth -= 1,
            _ if depth > 0 || letter.is_alphanumeric() || letter == '_' || letter == '.' => {}
            _ => break,
        }
        start = at;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::outermost_calls;

    #[test]
    fn calls_of_layers() {
        let layers = |line: &'static str| {
            let calls = outermost_calls(line).into_iter().filter(|call| call.may_be_layer());
            calls.map(|call| call.callee).collect::<Vec<_>>()
        };
        assert_eq!(layers("x = block(x)"), ["block"]);
        assert_eq!(layers("x = x + self.blocks[i](jnp.tanh(x), mask)"), ["self.blocks[i]"]);
        assert_eq!(layers("x = jnp.where(m, layer(x), x)"), [""; 0]);
        assert_eq!(layers("x = attend(x) + mlp(x)"), ["attend", "mlp"]);
        assert_eq!(layers("for p, q in zip(a, b):"), [""; 0]);
        assert_eq!(layers("x = block(x,"), [""; 0]);
        let made = |line: &'static str| outermost_calls(line).into_iter().map(|call| call.made).collect::<Vec<_>>();
        assert_eq!(made("s, v = Block(name='b')(s, v)"), ["Block(name='b')"]);
        assert_eq!(made("x = block(x) + Block()(x)"), ["block", "Block()"]);
    }
}
