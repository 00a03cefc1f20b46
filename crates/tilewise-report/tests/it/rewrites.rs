//! Changes of several lines: the lines that they name, and how sure their bytes are.

use std::fs;
use tilewise_audit::{Audit, Program};
use tilewise_report::{AuditOutput, Quotes, WriteText};
use tilewise_testing::programs;

/// Rows of a matrix of pairs in blocks: the change names all lines of the function that makes and reads the matrix, however it is
/// called, and not the line inside that makes it.
#[test]
fn a_rewrite_quotes_all_of_its_lines() {
    let program = r#"HloModule jit_near, is_scheduled=true

FileNames
1 "near.py"

FunctionNames
1 "near"
2 "distances"

FileLocations
1 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=1 end_column=2}
2 {file_name_id=1 function_name_id=2 line=2 end_line=2 column=1 end_column=2}
3 {file_name_id=1 function_name_id=1 line=5 end_line=5 column=1 end_column=2}
4 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=1}
4 {file_location_id=4 parent_frame_id=1}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[32768,64]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  zero = f32[] constant(0)
  d = f32[32768,32768]{1,0:T(8,128)} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}, metadata={op_name="jit(near)/dot_general" stack_frame_id=2}
  e = f32[32768,32768]{1,0:T(8,128)} exponential(d), metadata={op_name="jit(near)/exp" stack_frame_id=3}
  ROOT r = f32[32768]{0:T(1024)} reduce(e, zero), dimensions={1}, to_apply=add, metadata={op_name="jit(near)/reduce_sum" stack_frame_id=4}
}
"#;
    let source = "def distances(x):\n    return x @ x.T\ndef near(x):\n    d = distances(x)\n    e = jnp.exp(-d)\n    # of each row\n    return e.sum(1)\n";
    let report = Audit::new(&Program::parse(program).expect("a program")).run();
    let quotes = Quotes::read(&report, |file| (file == "near.py").then(|| source.to_owned()));
    let output = AuditOutput { quotes, ..AuditOutput::new(report) };
    let summary = output.summary();
    let change = &summary.changes[0];
    assert_eq!(change.place, "the definition of `near`, below it");
    assert!(change.code().expect("code").contains("made_at=\"near.py:5\", size=32768"), "{:?}", change.code());
    let text = output.to_text(100);
    assert!(text.contains("# or, in JAX alone, at near.py:4–5, 7, in `near`:"), "{text}");
}

/// Points that a step makes itself, under a `jax.vmap` of its loss: the call that maps them becomes a loop over parts, each computed
/// again for the gradient, with the arguments that all points share beside them.
#[test]
fn a_vmap_of_points_becomes_a_loop_over_parts() {
    let program = r#"HloModule jit_step, is_scheduled=true

FileNames
1 "pinn.py"

FunctionNames
1 "loss"
2 "residual"
3 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=1 end_column=2}
2 {file_name_id=1 function_name_id=2 line=2 end_line=2 column=1 end_column=2}
3 {file_name_id=1 function_name_id=3 line=6 end_line=6 column=1 end_column=2}
4 {file_name_id=1 function_name_id=3 line=7 end_line=7 column=1 end_column=2}

StackFrames
1 {file_location_id=3 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}
3 {file_location_id=2 parent_frame_id=3}
4 {file_location_id=4 parent_frame_id=1}

ENTRY main {
  w = f32[1024,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="params['w']"}
  t = f32[65536,1024]{1,0:T(8,128)} iota(), iota_dimension=0, metadata={op_name="jit(step)/jvp()/iota" stack_frame_id=2}
  h = f32[65536,1024]{1,0:T(8,128)} dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/jvp(vmap())/dot_general" stack_frame_id=3}
  e = f32[65536,1024]{1,0:T(8,128)} tanh(h), metadata={op_name="jit(step)/jvp(vmap())/tanh" stack_frame_id=3}
  g = f32[65536,1024]{1,0:T(8,128)} multiply(e, h), metadata={op_name="jit(step)/transpose(jvp(vmap()))/mul" stack_frame_id=3}
  r = f32[1024,1024]{1,0:T(8,128)} dot(t, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/transpose(jvp(vmap()))/dot_general" stack_frame_id=3}
  ROOT u = f32[1024,1024]{1,0:T(8,128)} subtract(w, r), metadata={op_name="jit(step)/sub" stack_frame_id=4}
}
"#;
    let report = Audit::new(&Program::parse(program).expect("a program")).run();
    let edited = |call: &str| {
        let source = format!(
            "def residual(params, t):\n    return jnp.tanh(t * params['w'])\ndef loss(params, t):\n    {call}\n"
        );
        let quotes = Quotes::read(&report, |file| (file == "pinn.py").then(|| source.clone()));
        let output = AuditOutput { quotes, ..AuditOutput::new(report.clone()) };
        output.summary().changes[0].edit.clone().map(|edit| (edit.line, edit.after))
    };
    let after = |code: &str| Some((4, code.to_owned()));
    assert_eq!(
        edited("return jax.vmap(residual, (None, 0))(params, batch[\"t\"]).sum()"),
        after(
            "return jax.lax.map(jax.checkpoint(lambda one: residual(params, one)), batch[\"t\"], batch_size=4096).sum()"
        )
    );
    assert_eq!(
        edited("r = jax.vmap(residual, in_axes=(None, 0, 0))(params, t, x)"),
        after(
            "r = jax.lax.map(jax.checkpoint(lambda some: residual(params, some[0], some[1])), (t, x), batch_size=4096)"
        )
    );
    assert_eq!(
        edited("r = jax.vmap(lambda t: f(params, t))(t)"),
        after("r = jax.lax.map(jax.checkpoint(lambda t: f(params, t)), t, batch_size=4096)")
    );
    assert_eq!(
        edited("r = vmap(residual)(t, x)"),
        after("r = jax.lax.map(jax.checkpoint(lambda some: residual(*some)), (t, x), batch_size=4096)")
    );
    assert_eq!(
        edited("r = jax.vmap(residual, (0, None, 0))(t, params, x)"),
        after(
            "r = jax.lax.map(jax.checkpoint(lambda some: residual(some[0], params, some[1])), (t, x), batch_size=4096)"
        )
    );
    // Another dimension, results along another one, a call that goes on, another library's, arguments in a tuple.
    for call in [
        "r = jax.vmap(residual, (None, 1))(params, t)",
        "r = jax.vmap(residual, (None, 0), 1)(params, t)",
        "r = jax.vmap(residual, (None, 0))(params,",
        "r = eqx.filter_vmap(residual)(t)",
        "r = jax.vmap(residual)(*batch)",
    ] {
        assert_eq!(edited(call), None, "{call}");
    }
}

/// The bytes after each change whose saving is a bound, as the compiler has them, by those promised: `docs/advice.md` and the
/// words `fits` and `should fit` go by these.
#[test]
fn bounds_hold_as_the_page_about_advice_says() {
    let table = fs::read_to_string(programs::example("../conformance/advice/TABLE.md")).expect("the table");
    let (mut whole, mut ratios) = (0.0, Vec::new());
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, program, _, needed, _, promised, freed, ..] = cells[..] else { continue };
        if !program.is_empty() {
            whole = needed.parse().unwrap_or(0.0);
        }
        let promised = promised.strip_prefix("up to ").and_then(|bytes| bytes.parse::<f64>().ok());
        if let Some((promised, freed)) = promised.zip(freed.parse::<f64>().ok()) {
            ratios.push((whole - freed) / (whole - promised));
        }
    }
    let up_to = |most: f64| ratios.iter().filter(|ratio| **ratio <= most).count();
    assert_eq!((ratios.len(), up_to(1.1), up_to(1.5)), (67, 61, 65));
    let page = fs::read_to_string(programs::example("../docs/advice.md")).expect("the page");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "of the 67 bounds of the table, 61 were exceeded by no more than a tenth, and 65 by less than a half.";
    assert!(page.contains(said));
}
