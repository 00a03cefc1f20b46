//! Transformations of JAX's in a text's code: what is computed of all samples, derivatives or steps at once.

use super::SEARCHED;
use crate::text::tail;

/// The first function that a line of code maps: `jax.vmap(self.render, in_axes=(0, None))(rays, key)`; `f` for one without a
/// name.
pub(super) fn mapped(log: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let is_code = |line: &&str| {
        let is_quoted = line.contains("File \"") || line.contains("op_name") || line.trim_start().starts_with('#');
        !is_quoted && ["=", "return ", ")("].iter().any(|sign| line.contains(sign))
    };
    tail(log, SEARCHED).lines().filter(is_code).find_map(|line| {
        let (before, behind) = line.split_once("vmap(")?;
        let is_of_jax = before.ends_with("jax.") || !before.ends_with(is_part);
        let name = &behind[..behind.find(|c| !is_part(c)).unwrap_or(behind.len())];
        // A sentence may quote a call with a word of its own in it.
        let is_quoted = before.trim_end_matches("jax.").ends_with('`');
        let is_whole = behind[name.len()..].starts_with([',', ')']) && !name.is_empty() && !is_quoted;
        let name = if is_whole { name } else { "f" };
        (is_of_jax && behind.contains(')')).then(|| name.to_owned())
    })
}

/// A function of JAX's that makes a matrix of derivatives, all of its rows or columns at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Derivatives {
    /// `jax.hessian`: those of each two inputs.
    Hessian,
    /// `jax.jacfwd`: of each output by each input, an input at a time.
    Forward,
    /// `jax.jacrev`: of each output by each input, an output at a time.
    Reverse,
}

impl Derivatives {
    /// That of code, but of code that quotes an error's frames.
    pub(super) fn of(log: &str) -> Option<Self> {
        let is_code = |line: &&str| !line.contains("File \"") && !line.contains("op_name");
        let calls = [("hessian(", Self::Hessian), ("jacfwd(", Self::Forward), ("jacrev(", Self::Reverse)];
        let of_line = |line: &str| calls.into_iter().find_map(|(call, of)| line.contains(call).then_some(of));
        tail(log, SEARCHED).lines().filter(is_code).find_map(of_line)
    }
}

/// Whether a text takes a gradient through a loop of JAX's, without a checkpoint. `lower` is in lower case.
pub(super) fn differentiates_a_loop(lower: &str) -> bool {
    const LOOPS: [&str; 5] = ["lax.scan", "fori_loop", "associative_scan", "odeint(", "nn.scan"];
    const GRADIENTS: [&str; 6] = ["grad(", "vjp(", "jacrev(", "backprop", "differentiat", "gradient"];
    const CHECKPOINTS: [&str; 7] = [
        "jax.checkpoint",
        "filter_checkpoint",
        "nn.checkpoint",
        "@checkpoint",
        "remat",
        "ad_checkpoint",
        "checkpoint_policies",
    ];
    let has = |known: &[&str]| known.iter().any(|sign| lower.contains(sign));
    has(&LOOPS) && has(&GRADIENTS) && !has(&CHECKPOINTS)
}

/// Whether a text lets JAX compute in 64 bits. `lower` is in lower case.
pub(super) fn enables_x64(lower: &str) -> bool {
    let values = lower.match_indices("enable_x64").map(|(at, name)| &lower[at + name.len()..]);
    let is_true = |behind: &str| {
        let value = behind.trim_start_matches(['"', '\'', ',', ' ', '=', ':']);
        value.starts_with("true") || value.starts_with('1')
    };
    values.into_iter().any(is_true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_are_mapped() {
        assert_eq!(mapped("y = jax.vmap(self.render, in_axes=(0,))(rays)").as_deref(), Some("self.render"));
        assert_eq!(mapped("    return jit(vmap(f, in_axes=0))").as_deref(), Some("f"));
        assert_eq!(mapped("y = jax.vmap(jax.grad(loss))(xs)").as_deref(), Some("f"));
        assert_eq!(mapped("It has `jax.vmap(count)`, not `jax.lax.map(batch_size=8)`.").as_deref(), Some("f"));
        assert_eq!((mapped("y = nn.vmap(Critic)(x)"), mapped("# y = vmap(f)(x)")), (None, None));
        assert_eq!((mapped("op_name=\"vmap(f)\""), mapped("it is a vmap(f)")), (None, None));
    }

    #[test]
    fn derivatives_and_loops_of_code() {
        assert_eq!(Derivatives::of("H = jax.hessian(f)(x)"), Some(Derivatives::Hessian));
        assert_eq!(Derivatives::of("  File \"a.py\", line 3, in jacfwd(f)"), None);
        let code = "xf, _ = jax.lax.scan(body, x, None, length=n)\ng = jax.grad(simulate)(x)";
        assert!(differentiates_a_loop(code));
        assert!(!differentiates_a_loop(&code.replace("(body", "(jax.checkpoint(body)")));
        assert!(!differentiates_a_loop(&code.replace("xf", "@filter_checkpoint\ndef body(): …\nxf")));
        assert!(!differentiates_a_loop("jax.lax.scan(body, x, None, length=n)"));
        assert!(
            enables_x64("jax.config.update(\"jax_enable_x64\", true)") && enables_x64("jax_enable_x64=1 python a.py")
        );
        assert!(!enables_x64("config.update('jax_enable_x64', false)"));
    }
}
