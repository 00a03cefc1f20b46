//! State that is donated, and the line of the reader's that donates it.

use super::advice::{MIB, advice, code, kind};
use tilewise_audit::{Audit, Program, recommendation::Saving};
use tilewise_report::{AuditOutput, Quotes, WriteText};

#[test]
fn a_state_that_is_not_donated() {
    let text = r#"HloModule jit_step, is_scheduled=true

ENTRY main (p.1: f32[1024,1024], x.1: f32[1024,1024]) -> f32[1024,1024] {
  p.1 = f32[1024,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="params['w']"}
  x.1 = f32[1024,1024]{1,0:T(8,128)} parameter(1), metadata={op_name="x"}
  g = f32[1024,1024]{1,0:T(8,128)} custom-call(x.1), custom_call_target="gradient"
  ROOT p = f32[1024,1024]{1,0:T(8,128)} subtract(p.1, g)
}"#;
    let found = advice(text);
    assert_eq!((kind(&found[0]), found[0].saving), (("donate", "argument"), Saving::AtMost(4 * MIB)));
    assert_eq!(
        code(&found[0]).as_deref(),
        Some(
            "step = jax.jit(step, donate_argnames=(\"params\",))  # or above its `def`: @functools.partial(jax.jit, donate_argnames=(\"params\",))"
        )
    );
    // Names in the code replace those of the program's own `jit`: what is donated already stays so.
    let before = text
        .replace("is_scheduled=true", "is_scheduled=true, input_output_alias={ {1}: (2, {}, may-alias) }")
        .replace("x.1: f32[1024,1024]) -> f32[1024,1024]", "x.1: f32[1024,1024], c.1: f32[8]) -> (f32[1024,1024], f32[8])")
        .replace("  g =", "  c.1 = f32[8]{0:T(128)} parameter(2), metadata={op_name=\"count\"}\n  c.2 = f32[8]{0:T(128)} negate(c.1)\n  g =")
        .replace("ROOT p =", "p =")
        .replace("subtract(p.1, g)", "subtract(p.1, g)\n  ROOT r = (f32[1024,1024]{1,0:T(8,128)}, f32[8]{0:T(128)}) tuple(p, c.2)");
    let both = "step = jax.jit(step, donate_argnames=(\"count\", \"params\"))";
    assert!(code(&advice(&before)[0]).is_some_and(|code| code.starts_with(both)), "{:?}", code(&advice(&before)[0]));
    // The library that jitted it says so in the table of files, and takes models that `jax.jit` does not.
    for (file, expected) in [
        (
            "equinox/_jit.py",
            "step = eqx.filter_jit(step, donate=\"all\")  # or above its `def`: @eqx.filter_jit(donate=\"all\")",
        ),
        (
            "flax/nnx/transforms/compilation.py",
            "step = nnx.jit(step, donate_argnames=(\"params\",))  # or above its `def`: @functools.partial(nnx.jit, donate_argnames=(\"params\",))",
        ),
    ] {
        let text = text.replacen("\n\n", &format!("\n\nFileNames\n1 \"/site-packages/{file}\"\n\n"), 1);
        assert_eq!(code(&advice(&text)[0]).as_deref(), Some(expected));
    }
    let donated = text.replace("is_scheduled=true", "is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }");
    assert!(advice(&donated).iter().all(|advice| kind(advice).0 != "donate"));
}

/// A change that is one line of the reader's is shown as that line before and after.
#[test]
fn a_change_of_one_line_is_a_diff() {
    let text = r#"HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[4096,1024]{1,0:T(8,128)})->f32[4096,1024]{1,0:T(8,128)}}

ENTRY main (state.1: f32[4096,1024]) -> f32[4096,1024] {
  state.1 = f32[4096,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="state"}
  ROOT r = f32[4096,1024]{1,0:T(8,128)} add(state.1, state.1), metadata={op_name="jit(step)/add" source_file="train.py" source_line=2}
}"#;
    let program = Program::parse(text.to_owned()).expect("a program");
    let diff = |source: &str| {
        let report = Audit::new(&program).limit(24 << 20).run();
        let quotes = Quotes::read(&report, |file| (file == "train.py").then(|| source.to_owned()));
        let output = AuditOutput { quotes, ..AuditOutput::new(report) };
        let edit = output.summary().changes.first().and_then(|first| first.edit.clone())?;
        let text = output.to_text(100);
        assert!(text.contains(&format!("  - {}\n", edit.before)) && text.contains(&format!("  + {}\n", edit.after)));
        Some((edit.line, edit.after))
    };
    let donated = |line, after: &str| Some((line, after.to_owned()));
    assert_eq!(
        diff("def step(state):\n    return state + state\n\nstep = jax.jit(step)\n"),
        donated(4, "step = jax.jit(step, donate_argnames=(\"state\",))")
    );
    assert_eq!(
        diff("@jax.jit\ndef step(state):\n    return state + state\n"),
        donated(1, "@functools.partial(jax.jit, donate_argnames=(\"state\",))")
    );
    assert_eq!(
        diff("def build():\n    return jit(Solver(2, 3).step, inline=True), args\n"),
        donated(2, "return jit(Solver(2, 3).step, inline=True, donate_argnames=(\"state\",)), args")
    );
    assert_eq!(
        diff("run = jax.jit(functools.partial(step, 2))\n"),
        donated(1, "run = jax.jit(functools.partial(step, 2), donate_argnames=(\"state\",))")
    );
    // Donated arguments stay donated, by the name that the program gives it.
    assert_eq!(
        diff("step = jax.jit(step, donate_argnums=(0,), inline=True)\n"),
        donated(1, "step = jax.jit(step, inline=True, donate_argnames=(\"state\",))")
    );
    assert_eq!(
        diff("@partial(jax.jit, static_argnums=1)\ndef step(state, size):\n    return state + state\n"),
        donated(1, "@partial(jax.jit, static_argnums=1, donate_argnames=(\"state\",))")
    );
    // Another function, two lines that could be meant, and one that goes on.
    assert_eq!(diff("run = jax.jit(step_of_eval)\n"), None);
    assert_eq!(diff("a = jax.jit(step)\nb = jax.jit(step)\n"), None);
    assert_eq!(diff("a = jax.jit(step,\n            inline=True)\n"), None);
}
