//! Advice: on programs whose changes were measured by compiling them again, and on small ones worked out by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in helpers, which the lint does not take for tests")]

use std::collections::HashMap;
use tilewise::tpu::Generation;
use tilewise_audit::{AuditOptions, Recommendation, Report, audit_with, recommendation::Saving};
use tilewise_hlo::Module;
use tilewise_testing::programs;

const MIB: u64 = 1 << 20;

fn report(module: &Module, tpu: Generation) -> Report {
    audit_with(module, AuditOptions::default().with_tpu(tpu))
}

fn advice(text: &str) -> Vec<Recommendation> {
    report(&Module::parse(text).unwrap(), Generation::V5e).advice().to_vec()
}

fn kind(advice: &Recommendation) -> (&'static str, &'static str) {
    (advice.change.as_str(), advice.target.as_str())
}

fn code(advice: &Recommendation) -> Option<&str> {
    advice.snippet.as_ref().map(|snippet| &*snippet.code)
}

fn shape(advice: &Recommendation) -> &str {
    advice.array.as_ref().map_or("", |array| &array.shape_text)
}

/// A change that was measured.
struct Change {
    kind: String,
    target: String,
    shape: String,
    can_be_applied: bool,
    measured: i64,
    total: i64,
}

/// By program.
fn measured() -> HashMap<String, Vec<Change>> {
    let mut programs: HashMap<String, Vec<Change>> = HashMap::new();
    for line in programs::text("advice.csv").lines().skip(1) {
        // Shapes have commas and stand in quotes.
        let (before, rest) = line.split_once('"').unwrap_or((line, ""));
        let (shape, rest) = rest.split_once('"').unwrap_or(("", rest));
        let before: Vec<&str> = before.split(',').collect();
        let (can_be_applied, measured, total) = if shape.is_empty() {
            (before[4], before[5], before[6])
        } else {
            let rest: Vec<&str> = rest.split(',').collect();
            (rest[1], rest[2], rest[3])
        };
        programs.entry(before[0].to_owned()).or_default().push(Change {
            kind: before[1].to_owned(),
            target: before[2].to_owned(),
            shape: shape.to_owned(),
            can_be_applied: can_be_applied == "1",
            measured: measured.parse().unwrap_or(0),
            total: total.parse().unwrap(),
        });
    }
    programs
}

/// Nothing is promised that recompiling didn't give, and what helped most comes first.
#[test]
fn recompiling_keeps_what_is_promised() {
    let text = tilewise_hlo::read_text(programs::path("advice.hlo.gz")).unwrap();
    let measured = measured();
    let modules = Module::parse_all(text);
    assert_eq!((modules.len(), measured.len()), (12, 12));
    for module in modules {
        let module = module.unwrap();
        let program = module.name().to_owned();
        let tpu = program.rsplit('.').next().unwrap().parse().unwrap();
        let changes: Vec<&Change> = measured[&program].iter().filter(|change| change.can_be_applied).collect();
        let report = report(&module, tpu);
        let advice = report.advice();
        let best = changes.iter().map(|change| change.measured).max().unwrap_or(0).max(0);
        let most = |freed: i64| freed + freed / 10 + (1 << 20);
        let promised = |advice: &Recommendation| i64::try_from(advice.saving.bytes().unwrap()).unwrap();
        for one in advice {
            let is_same = |change: &&&Change| {
                (change.kind.as_str(), change.target.as_str()) == kind(one)
                    && (change.shape.is_empty() || change.shape == shape(one))
            };
            if let Some(freed) = changes.iter().filter(is_same).map(|change| change.measured.max(0)).max() {
                assert!(promised(one) <= most(freed), "{program}: {one:?} freed {freed}");
            }
        }
        if let Some(first) = advice.first() {
            assert!(promised(first) <= most(best), "{program}: {first:?} of {best}");
        }
        let total = measured[&program][0].total;
        let helped: Vec<&str> = changes
            .iter()
            .filter(|change| change.measured >= best / 2 && change.kind != "rewrite")
            .map(|change| change.kind.as_str())
            .collect();
        if best >= total / 5 && !helped.is_empty() {
            let first = advice.first().map(|advice| advice.change.as_str());
            assert!(first.is_some_and(|first| helped.contains(&first)), "{program}: {first:?}, not one of {helped:?}");
        }
    }
}

/// What is dead at the peak frees nothing, however padded it is.
#[test]
fn what_is_dead_at_the_peak_is_no_advice() {
    let program = |late: &str| {
        format!(
            r#"HloModule jit_f, is_scheduled=true

fused {{ t = f32[1000,4]{{0,1:T(4,128)}} parameter(0)
  i = s32[65536]{{0:T(1024)}} parameter(1)
  ROOT g = f32[65536,4]{{1,0:T(8,128)}} gather(t, i), offset_dims={{1}}, metadata={{op_name="jit(f)/gather"}}
}}
ENTRY main (t.1: f32[1000,4], i.1: s32[65536]) -> f32[4] {{
  t.1 = f32[1000,4]{{0,1:T(4,128)}} parameter(0), metadata={{op_name="t"}}
  i.1 = s32[65536]{{0:T(1024)}} parameter(1), metadata={{op_name="i"}}
  rows = f32[65536,4]{{1,0:T(8,128)}} fusion(t.1, i.1), kind=kCustom, calls=fused, metadata={{op_name="jit(f)/gather"}}
  few = f32[4]{{0:T(128)}} custom-call(rows), custom_call_target="f"
  large = {late} custom-call(few), custom_call_target="g"
  ROOT end = f32[4]{{0:T(128)}} custom-call(large), custom_call_target="h"
}}"#
        )
    };
    let found = advice(&program("f32[4]{0:T(128)}"));
    assert_eq!(kind(&found[0]), ("split", "upstream"));
    // 65536 rows of 512 bytes, or four columns of 65536 numbers.
    assert_eq!(found[0].saving, Saving::Exact(65_536 * (512 - 16)));
    assert!(code(&found[0]).unwrap().contains("jnp.unstack(t, axis=-1)"));
    // With 64 MiB at another moment nothing is freed.
    let found = advice(&program("f32[4096,4096]{1,0:T(8,128)}"));
    assert!(found.iter().all(|advice| kind(advice) != ("split", "upstream")), "{found:?}");
}

#[test]
fn an_argument_is_kept_flat_only_if_nothing_but_elementwise_operations_read_it() {
    let program = |end: &str| {
        format!(
            r#"HloModule jit_f, is_scheduled=true, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}

ENTRY main (m.1: f32[1000000,3]) -> f32[1000000,3] {{
  m.1 = f32[1000000,3]{{0,1:T(4,128)}} parameter(0), metadata={{op_name="opt['m']"}}
  half = f32[1000000,3]{{0,1:T(4,128)}} multiply(m.1, m.1)
  ROOT end = f32[1000000,3]{{0,1:T(4,128)}} {end}
}}"#
        )
    };
    let found = advice(&program("add(half, m.1)"));
    assert_eq!(kind(&found[0]), ("reshape", "argument"));
    assert_eq!(code(&found[0]), Some("opt['m'] = opt['m'].reshape(-1)  # f32[3000000]"));
    let found = advice(&program("custom-call(half), custom_call_target=\"x\""));
    assert_eq!(found.iter().map(kind).collect::<Vec<_>>(), [("split", "argument")]);
}

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
    assert_eq!(code(&found[0]), Some("step = jax.jit(step, donate_argnames=(\"params\",))"));
    // The library that jitted it says so in the table of files, and takes models that `jax.jit` does not.
    for (file, expected) in [
        ("equinox/_jit.py", "step = eqx.filter_jit(step, donate=\"all\")"),
        ("flax/nnx/transforms/compilation.py", "step = nnx.jit(step, donate_argnames=(\"params\",))"),
    ] {
        let text = text.replacen("\n\n", &format!("\n\nFileNames\n1 \"/site-packages/{file}\"\n\n"), 1);
        assert_eq!(code(&advice(&text)[0]), Some(expected));
    }
    let donated = text.replace("is_scheduled=true", "is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }");
    assert!(advice(&donated).iter().all(|advice| kind(advice).0 != "donate"));
}

/// A state that a loop carries, prefetched before it and updated inside a fusion that also computes its gradient.
#[test]
fn a_state_is_followed_through_loops_and_fusions() {
    let text = r#"HloModule jit_run, is_scheduled=true

fused (w.2: f32[1024,1024], x.2: f32[1024,1024]) -> (f32[1024], f32[1024,1024]) {
  w.2 = f32[1024,1024]{1,0:T(8,128)} parameter(0)
  x.2 = f32[1024,1024]{1,0:T(8,128)} parameter(1)
  g = f32[1024,1024]{1,0:T(8,128)} convolution(x.2, x.2), dim_labels=bf_io->bf
  new = f32[1024,1024]{1,0:T(8,128)} subtract(w.2, g)
  norm = f32[1024]{0:T(1024)} custom-call(g), custom_call_target="norm"
  ROOT both = (f32[1024]{0:T(1024)}, f32[1024,1024]{1,0:T(8,128)}) tuple(norm, new)
}

body (c.1: (f32[1024,1024], f32[1024,1024])) -> (f32[1024,1024], f32[1024,1024]) {
  c.1 = (f32[1024,1024]{1,0:T(8,128)}, f32[1024,1024]{1,0:T(8,128)}) parameter(0)
  w.1 = f32[1024,1024]{1,0:T(8,128)} get-tuple-element(c.1), index=0
  x.1 = f32[1024,1024]{1,0:T(8,128)} get-tuple-element(c.1), index=1
  f = (f32[1024]{0:T(1024)}, f32[1024,1024]{1,0:T(8,128)}) fusion(w.1, x.1), kind=kOutput, calls=fused
  w.3 = f32[1024,1024]{1,0:T(8,128)} get-tuple-element(f), index=1
  ROOT t.1 = (f32[1024,1024]{1,0:T(8,128)}, f32[1024,1024]{1,0:T(8,128)}) tuple(w.3, x.1)
}

condition (c.2: (f32[1024,1024], f32[1024,1024])) -> pred[] {
  c.2 = (f32[1024,1024]{1,0:T(8,128)}, f32[1024,1024]{1,0:T(8,128)}) parameter(0)
  ROOT go = pred[]{:T(512)} custom-call(c.2), custom_call_target="go"
}

ENTRY main (w: f32[1024,1024], x: f32[1024,1024]) -> f32[1024,1024] {
  w = f32[1024,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="state.params['w']"}
  x = f32[1024,1024]{1,0:T(8,128)} parameter(1), metadata={op_name="x"}
  own = f32[1024,1024]{1,0:T(8,128)} copy(w)
  t = (f32[1024,1024]{1,0:T(8,128)}, f32[1024,1024]{1,0:T(8,128)}) tuple(own, x)
  l = (f32[1024,1024]{1,0:T(8,128)}, f32[1024,1024]{1,0:T(8,128)}) while(t), condition=condition, body=body
  ROOT r = f32[1024,1024]{1,0:T(8,128)} get-tuple-element(l), index=0
}"#;
    let found = advice(text);
    assert_eq!(kind(&found[0]), ("donate", "argument"));
    assert_eq!(code(&found[0]), Some("run = jax.jit(run, donate_argnames=(\"state\",))"));
}

/// A program most of whose peak has rows of the input, with an operation in its midst.
fn of_rows(metadata: &str, result: &str, operation: &str) -> String {
    format!(
        r#"HloModule jit_f, is_scheduled=true

max (a: f32[], b: f32[]) -> f32[] {{
  a = f32[]{{:T(128)}} parameter(0)
  b = f32[]{{:T(128)}} parameter(1)
  ROOT m = f32[]{{:T(128)}} maximum(a, b)
}}

ENTRY main (x.1: f32[4096,8]) -> {result} {{
  x.1 = f32[4096,8]{{0,1:T(8,128)}} parameter(0), metadata={{op_name="{metadata}"}}
  wide = f32[4096,8,1024]{{0,2,1:T(8,128)}} broadcast(x.1), dimensions={{0,1}}
  sine = f32[4096,8,1024]{{0,2,1:T(8,128)}} sine(wide)
  zero = f32[]{{:T(128)}} constant(0)
  {operation}
}}"#
    )
}

#[test]
fn code_in_parts_computes_the_same() {
    let by_rows = "ROOT r = f32[4096,8]{0,1:T(8,128)} reduce(sine, zero), dimensions={2}, to_apply=max";
    let found = advice(&of_rows("x", "f32[4096,8]", by_rows));
    assert_eq!(kind(&found[0]), ("chunk", "value"));
    assert!(found[0].sentence.starts_with("Process `x` along dimension 0, of size 4096"), "{}", found[0].sentence);
    assert!(code(&found[0]).unwrap().contains("jax.lax.map(part, batch)"));
    // Of `*args`, which are passed one by one; of a reduction over the rows; of one that depends on all rows.
    let joined = "r.1 = f32[8,1024]{1,0:T(8,128)} reduce(sine, zero), dimensions={0}, to_apply=max
  all = f32[4096,8,1024]{0,2,1:T(8,128)} broadcast(r.1), dimensions={1,2}
  both = f32[4096,8,1024]{0,2,1:T(8,128)} add(all, sine)
  ROOT r = f32[4096,8]{0,1:T(8,128)} reduce(both, zero), dimensions={2}, to_apply=max";
    let reduced = "ROOT r = f32[8,1024]{1,0:T(8,128)} reduce(sine, zero), dimensions={0}, to_apply=max";
    for (name, result, operation) in
        [("args[0]", "f32[4096,8]", by_rows), ("x", "f32[8,1024]", reduced), ("x", "f32[4096,8]", joined)]
    {
        let found = advice(&of_rows(name, result, operation));
        assert_eq!((kind(&found[0]), code(&found[0])), (("chunk", "value"), None), "{operation}");
    }
}

/// Pages of 16 tokens and 8 heads of 64, of which the lanes hold one at a time.
#[test]
fn pages_are_kept_with_heads_merged() {
    let text = r#"HloModule jit_attend, is_scheduled=true

fused { t = bf16[512,16,8,64]{0,3,2,1:T(8,128)(2,1)} parameter(0)
  i = s32[4096]{0:T(1024)} parameter(1)
  ROOT g = bf16[4096,16,8,64]{3,1,2,0:T(8,128)(2,1)} gather(t, i), offset_dims={1,2,3}, metadata={op_name="jit(attend)/gather"}
}
ENTRY main (p.1: bf16[512,16,8,64], i.1: s32[4096]) -> f32[4] {
  p.1 = bf16[512,16,8,64]{0,3,2,1:T(8,128)(2,1)} parameter(0), metadata={op_name="pages"}
  i.1 = s32[4096]{0:T(1024)} parameter(1), metadata={op_name="table"}
  rows = bf16[4096,16,8,64]{3,1,2,0:T(8,128)(2,1)} fusion(p.1, i.1), kind=kCustom, calls=fused, metadata={op_name="jit(attend)/gather"}
  ROOT end = f32[4]{0:T(128)} custom-call(rows), custom_call_target="attend"
}"#;
    let found = advice(text);
    let piece = found.iter().find(|piece| kind(piece) == ("reshape", "argument")).expect("a piece");
    // 4096 × 16 × 8 rows of 128 lanes, or half of that.
    assert_eq!(piece.saving, Saving::AtMost(64 * MIB));
    assert!(piece.sentence.starts_with("Keep `pages` as [512,16,512]"), "{}", piece.sentence);
    let full = advice(&text.replace("8,64]", "4,128]"));
    assert!(full.iter().all(|piece| kind(piece).0 != "reshape"), "{full:?}");
}

/// A gradient of a weight for each of 8192 samples, as a `jax.vmap` of a loop adds them up, and such a product that nothing
/// adds up.
#[test]
fn gradients_of_samples_in_a_loop() {
    let text = r#"HloModule jit_step, is_scheduled=true

ENTRY main (w.1: f32[128,32], x.1: f32[8192,128], y.1: f32[8192,32]) -> f32[128,32] {
  w.1 = f32[128,32]{1,0:T(8,128)} parameter(0), metadata={op_name="params['w']"}
  x.1 = f32[8192,128]{1,0:T(8,128)} parameter(1), metadata={op_name="x"}
  y.1 = f32[8192,32]{1,0:T(8,128)} parameter(2), metadata={op_name="y"}
  sum = f32[8192,128,32]{2,1,0:T(8,128)} custom-call(w.1), custom_call_target="before"
  left = f32[8192,128,32]{2,1,0:T(8,128)} broadcast(x.1), dimensions={0,1}
  right = f32[8192,128,32]{2,1,0:T(8,128)} broadcast(y.1), dimensions={0,2}
  outer = f32[8192,128,32]{2,1,0:T(8,128)} multiply(left, right)
  more = f32[8192,128,32]{2,1,0:T(8,128)} add(sum, outer)
  ROOT g = f32[128,32]{1,0:T(8,128)} custom-call(more), custom_call_target="sum", metadata={op_name="jit(step)/transpose(jvp(vmap()))/sum"}
}"#;
    let found = advice(text);
    assert_eq!(kind(&found[0]), ("batch", "loop"));
    assert!(
        found[0].sentence.contains("the gradient of `params['w']` for each of 8192 samples"),
        "{}",
        found[0].sentence
    );
    let found = advice(&text.replace(" add(sum", " maximum(sum"));
    assert!(found.iter().all(|piece| kind(piece).0 != "batch"), "{found:?}");
}

/// Logits are told from weights and their gradients by their shape; the gradient of the weight lies beside the chunks.
#[test]
fn logits_are_chunked() {
    let text = r#"HloModule jit_step, is_scheduled=true

ENTRY main (h.1: f32[3072,512], w.1: f32[512,32768]) -> f32[512,32768] {
  h.1 = f32[3072,512]{1,0:T(8,128)} parameter(0), metadata={op_name="batch['hidden']"}
  w.1 = f32[512,32768]{1,0:T(8,128)} parameter(1), metadata={op_name="params['head']"}
  logits = f32[3072,32768]{1,0:T(8,128)} custom-call(h.1, w.1), custom_call_target="dot"
  soft = f32[3072,32768]{1,0:T(8,128)} exponential(logits)
  ROOT g = f32[512,32768]{1,0:T(8,128)} custom-call(h.1, logits, soft), custom_call_target="dot", metadata={op_name="jit(step)/transpose(jvp())/dot"}
}"#;
    let found = advice(text);
    assert_eq!(kind(&found[0]), ("chunk", "value"));
    assert!(found[0].sentence.contains("[3072,32768] has a number for each of 32768 tokens"), "{}", found[0].sentence);
    // Two arrays of 384 MiB, an eighth of each, and 64 MiB for the gradient.
    assert_eq!(found[0].saving, Saving::AtMost((2 * 384 - 2 * 48 - 64) * MIB));
    // Features are as many, too, but no softmax goes over them.
    let features = advice(&text.replace("exponential(", "tanh("));
    assert!(features.iter().all(|piece| !piece.sentence.contains("vocabulary")), "{features:?}");
}

/// Programs of other frameworks get words, not JAX.
#[test]
fn code_is_for_jax_alone() {
    let text = r#"HloModule IrToHlo.12, is_scheduled=true

ENTRY main (p0.1: f32[524288,8]) -> f32[524288] {
  p0.1 = f32[524288,8]{1,0:T(8,128)} parameter(0), metadata={op_type="xla__device_data" op_name="xla__device_data"}
  ROOT r = f32[524288]{0:T(1024)} custom-call(p0.1), custom_call_target="sum", metadata={op_type="aten__sum"}
}"#;
    let found = advice(text);
    assert_eq!((kind(&found[0]), code(&found[0])), (("order", "argument"), None));
}

/// What is no advice is a note: it has no price.
#[test]
fn where_nothing_helps_notes_say_what_fills_the_memory() {
    let text = r#"HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }

ENTRY main (w.1: f32[1024,1024], m.1: f32[1024,1024], c.1: bf16[1024,1024], x.1: f32[64,1024]) -> (f32[1024,1024], f32[1024,1024]) {
  w.1 = f32[1024,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="state.params['w']"}
  m.1 = f32[1024,1024]{1,0:T(8,128)} parameter(1), metadata={op_name="state.opt_state[0].mu['w']"}
  c.1 = bf16[1024,1024]{1,0:T(8,128)(2,1)} parameter(2), metadata={op_name="cache['keys']"}
  x.1 = f32[64,1024]{1,0:T(8,128)} parameter(3), metadata={op_name="batch['x']"}
  y.1 = f32[64,4096]{1,0:T(8,128)} custom-call(x.1, c.1), custom_call_target="f"
  w.2 = f32[1024,1024]{1,0:T(8,128)} custom-call(w.1, y.1), custom_call_target="g", output_to_operand_aliasing={{}: (0, {})}
  m.2 = f32[1024,1024]{1,0:T(8,128)} custom-call(m.1, w.2), custom_call_target="h", output_to_operand_aliasing={{}: (0, {})}
  ROOT t = (f32[1024,1024]{1,0:T(8,128)}, f32[1024,1024]{1,0:T(8,128)}) tuple(w.2, m.2)
}"#;
    let report = report(&Module::parse(text).unwrap(), Generation::V5e);
    assert!(report.advice().is_empty(), "{:?}", report.advice());
    let starts: Vec<&str> = report.notes().iter().filter_map(|note| note.split(". ").next()).collect();
    // 4 + 4 + 2 + 1/4 + 1 MiB.
    let expected = [
        "Parameters: 4.00 MiB, 35 %, `state.params`",
        "State of the optimizer: 4.00 MiB, 35 %, `state.opt_state`",
        "Cache: 2.00 MiB, 17 %, `cache`",
        "Intermediate values: 1.00 MiB, 8 %, the largest f32[64,4096]",
        "Of the temporaries, 1.00 MiB have a dimension of size 64, with which `batch['x']` begins: with half of that, they take \
         about half",
    ];
    assert_eq!(starts, expected);
}

/// A network of layers that aren't in a loop: `count` times a value of 16 MiB that the backward pass reads.
fn of_layers(count: usize, name: impl Fn(usize) -> String) -> String {
    const WIDE: &str = "f32[512,8192]{1,0:T(8,128)}";
    let mut lines = Vec::new();
    for layer in 0..count {
        let name = name(layer);
        lines.push(format!(
            r#"  k.{layer} = {WIDE} custom-call(x.{before}), custom_call_target="up", metadata={{op_name="jit(step)/jvp({name}/dot_general"}}
  x.{next} = f32[512,1024]{{1,0:T(8,128)}} custom-call(k.{layer}), custom_call_target="down", metadata={{op_name="jit(step)/jvp({name}/dot_general"}}"#,
            before = layer + 1,
            next = layer + 2
        ));
    }
    let mut gradient = format!("x.{}", count + 1);
    for layer in (0..count).rev() {
        let name = name(layer);
        lines.push(format!(
            r#"  g.{layer} = f32[512,1024]{{1,0:T(8,128)}} custom-call(x.{before}, k.{layer}, {gradient}), custom_call_target="back", metadata={{op_name="jit(step)/transpose(jvp({name})/dot_general"}}"#,
            before = layer + 1
        ));
        gradient = format!("g.{layer}");
    }
    let lines = lines.join("\n");
    format!(
        r#"HloModule jit_step, is_scheduled=true

ENTRY main (x.1: f32[512,1024]) -> f32[512,1024] {{
  x.1 = f32[512,1024]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
{lines}
  ROOT r = f32[512,1024]{{1,0:T(8,128)}} add({gradient}, {gradient})
}}"#
    )
}

#[test]
fn unrolled_layers_are_recomputed() {
    let found = advice(&of_layers(8, |layer| format!("Net)/layers/{layer}/mlp")));
    let found = found.iter().find(|advice| kind(advice) == ("checkpoint", "value")).expect("layers");
    assert!(found.sentence.contains("each of the 8 layers `layers/*`"), "{}", found.sentence);
    assert_eq!(code(found), Some("layer = jax.checkpoint(layer)"));
    // All but the values of the layer whose backward pass runs.
    assert!(found.saving.bytes().is_some_and(|bytes| (96 * MIB..=7 * 16 * MIB).contains(&bytes)), "{:?}", found.saving);
    // Without numbers in the names, the shapes that repeat tell of the layers.
    let found = advice(&of_layers(8, |_| "Net)".to_owned()));
    let found = found.iter().find(|advice| kind(advice) == ("checkpoint", "value")).expect("layers");
    assert!(found.sentence.contains("each layer, 8 by the shapes that repeat"), "{}", found.sentence);
}

/// A loop of 64 steps that keeps what it carries, 32 MiB, and something four times as large: the former stays.
#[test]
fn what_a_loop_carries_is_kept() {
    const STATE: &str = "s32[]{:T(128)}, f32[256,512]{1,0:T(8,128)}, f32[64,256,512]{2,1,0:T(8,128)}";
    let text = |state: &str, kept: &str| {
        let carry = format!("({state}, {kept})");
        format!(
            r#"HloModule jit_step, is_scheduled=true

condition {{ c = {carry} parameter(0)
  at = s32[]{{:T(128)}} get-tuple-element(c), index=0
  trips = s32[]{{:T(128)}} constant(64)
  ROOT more = pred[]{{:T(128)}} compare(at, trips), direction=LT
}}
body {{ b = {carry} parameter(0)
  ROOT next = {carry} custom-call(b), custom_call_target="step", output_to_operand_aliasing={{{{1}}: (0, {{1}}), {{2}}: (0, {{2}}), {{3}}: (0, {{3}})}}
}}
ENTRY main (x.1: f32[256,512]) -> f32[256,512] {{
  x.1 = f32[256,512]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  start = {carry} custom-call(x.1), custom_call_target="start"
  run = {carry} while(start), condition=condition, body=body, backend_config={{"known_trip_count":{{"n":"64"}}}}, metadata={{op_name="jit(step)/jvp()/while"}}
  ROOT g = f32[256,512]{{1,0:T(8,128)}} custom-call(run), custom_call_target="back", metadata={{op_name="jit(step)/transpose(jvp())/while"}}
}}"#
        )
    };
    let saving = |kept: &str| {
        let found = advice(&text(STATE, kept));
        let piece = found.iter().find(|piece| kind(piece) == ("checkpoint", "loop"))?;
        Some(piece.saving)
    };
    // Of [64,256,2048] all; of a second [64,256,512] as well, since one such array is carried.
    assert_eq!(saving("f32[64,256,2048]{2,1,0:T(8,128)}"), Some(Saving::Exact(128 * MIB)));
    assert_eq!(saving("f32[64,256,512]{2,1,0:T(8,128)}"), Some(Saving::Exact(32 * MIB)));
    // A small array that is carried is told by its bounds, whatever the largest is.
    let small = STATE.replace("256,512]", "512]").replace("{1,0:T(8,128)}", "{0:T(512)}").replace("{2,1,0", "{1,0");
    let found = advice(&text(&small, "f32[64,256,2048]{2,1,0:T(8,128)}"));
    assert_eq!(found.iter().map(|piece| piece.saving).next(), Some(Saving::Exact(128 * MIB)), "{found:?}");
}

/// Parts of the batch that free less than a tenth are said only where the program doesn't fit without.
#[test]
fn a_program_that_does_not_fit_is_taken_apart_for_little() {
    let text = r#"HloModule jit_f, is_scheduled=true

ENTRY main (x.1: f32[4096,1024], w.1: f32[524288,1024]) -> f32[8] {
  x.1 = f32[4096,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  w.1 = f32[524288,1024]{1,0:T(8,128)} parameter(1), metadata={op_name="params['w']"}
  wide = f32[4096,8192]{1,0:T(8,128)} custom-call(x.1, w.1), custom_call_target="up"
  next = f32[4096,8192]{1,0:T(8,128)} custom-call(wide), custom_call_target="on"
  ROOT r = f32[8]{0:T(128)} custom-call(wide, next), custom_call_target="sum"
}"#;
    let module = Module::parse(text).unwrap();
    let kinds = |limit: Option<u64>| {
        let options = AuditOptions::default().with_tpu(Generation::V5e).with_hbm_limit(limit);
        audit_with(&module, options).advice().iter().map(kind).collect::<Vec<_>>()
    };
    // 2048 + 16 MiB of arguments and 256 of temporaries, of which halves free 128.
    assert_eq!((kinds(None), kinds(Some(4096 * MIB))), (vec![], vec![]));
    assert_eq!(kinds(Some(2200 * MIB)), [("chunk", "value")]);
}

/// Of sixteen models that are trained together each has results of its own: none of their gradients are added up.
#[test]
fn models_of_an_ensemble_are_no_batch() {
    let text = r#"HloModule jit_step, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY main (w.1: f32[16,256,256], x.1: f32[16,8192,256]) -> f32[16,256,256] {
  w.1 = f32[16,256,256]{2,1,0:T(8,128)} parameter(0), metadata={op_name="params['w']"}
  x.1 = f32[16,8192,256]{2,1,0:T(8,128)} parameter(1), metadata={op_name="x"}
  kept = f32[16,8192,512]{2,1,0:T(8,128)} custom-call(w.1, x.1), custom_call_target="forward", metadata={op_name="jit(step)/vmap(jvp())/dot_general"}
  ROOT g = f32[16,256,256]{2,1,0:T(8,128)} custom-call(w.1, kept), custom_call_target="back", output_to_operand_aliasing={{}: (0, {})}, metadata={op_name="jit(step)/vmap(transpose(jvp()))/dot_general"}
}"#;
    let found = advice(text);
    assert_eq!(kind(&found[0]), ("chunk", "value"));
    assert!(
        found[0].sentence.starts_with("Take `params` and `x` along dimension 0, of size 16, in parts"),
        "{}",
        found[0].sentence
    );
    assert!(!found[0].sentence.contains("gradient"), "{}", found[0].sentence);
}

/// 131072 rows that are shuffled before a loop, whose eight steps take a part each.
#[test]
fn shuffled_rows_are_gathered_in_the_loop() {
    const DATA: &str = "f32[8,16384,128]{2,1,0:T(8,128)}";
    let text = format!(
        r#"HloModule jit_update, is_scheduled=true

gathered {{ t = f32[131072,128]{{1,0:T(8,128)}} parameter(0)
  i = s32[131072]{{0:T(1024)}} parameter(1)
  ROOT g = f32[131072,128]{{1,0:T(8,128)}} gather(t, i), offset_dims={{1}}, metadata={{op_name="jit(update)/gather"}}
}}
taken {{ d = {DATA} parameter(0)
  i = s32[]{{:T(128)}} parameter(1)
  z = s32[]{{:T(128)}} constant(0)
  s = f32[1,16384,128]{{2,1,0:T(8,128)}} dynamic-slice(d, i, z, z), dynamic_slice_sizes={{1,16384,128}}
  ROOT b = f32[16384,128]{{1,0:T(8,128)}} bitcast(s)
}}
condition {{ c = (s32[]{{:T(128)}}, f32[128]{{0:T(128)}}, {DATA}) parameter(0)
  at = s32[]{{:T(128)}} get-tuple-element(c), index=0
  trips = s32[]{{:T(128)}} constant(8)
  ROOT more = pred[]{{:T(128)}} compare(at, trips), direction=LT
}}
body {{ b = (s32[]{{:T(128)}}, f32[128]{{0:T(128)}}, {DATA}) parameter(0)
  at = s32[]{{:T(128)}} get-tuple-element(b), index=0
  sum = f32[128]{{0:T(128)}} get-tuple-element(b), index=1
  data = {DATA} get-tuple-element(b), index=2
  one = s32[]{{:T(128)}} constant(1)
  next = s32[]{{:T(128)}} add(at, one)
  part = f32[16384,128]{{1,0:T(8,128)}} fusion(data, at), kind=kLoop, calls=taken
  more = f32[128]{{0:T(128)}} custom-call(sum, part), custom_call_target="add"
  ROOT end = (s32[]{{:T(128)}}, f32[128]{{0:T(128)}}, {DATA}) tuple(next, more, data)
}}
ENTRY main (x.1: f32[131072,128], i.1: s32[131072]) -> f32[128] {{
  x.1 = f32[131072,128]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  i.1 = s32[131072]{{0:T(1024)}} parameter(1), metadata={{op_name="order"}}
  rows = f32[131072,128]{{1,0:T(8,128)}} fusion(x.1, i.1), kind=kCustom, calls=gathered, metadata={{op_name="jit(update)/gather"}}
  cut = {DATA} bitcast(rows)
  zero = s32[]{{:T(128)}} constant(0)
  sum = f32[128]{{0:T(128)}} custom-call(i.1), custom_call_target="zeros"
  start = (s32[]{{:T(128)}}, f32[128]{{0:T(128)}}, {DATA}) tuple(zero, sum, cut)
  run = (s32[]{{:T(128)}}, f32[128]{{0:T(128)}}, {DATA}) while(start), condition=condition, body=body
  ROOT r = f32[128]{{0:T(128)}} get-tuple-element(run), index=1
}}"#
    );
    let found = advice(&text);
    let piece = found.iter().find(|piece| kind(piece) == ("chunk", "loop")).expect("a piece");
    assert!(piece.sentence.contains("in each of its 8 steps"), "{}", piece.sentence);
    // 64 MiB, of which each step has an eighth beside the part that it works on.
    assert!(piece.saving.bytes().is_some_and(|bytes| (48 * MIB..=56 * MIB).contains(&bytes)), "{:?}", piece.saving);
    // Where the loop reads all of the rows in each step, they have to be there.
    let whole =
        text.replace("fusion(data, at), kind=kLoop, calls=taken", "custom-call(data, at), custom_call_target=\"any\"");
    assert!(advice(&whole).iter().all(|piece| kind(piece) != ("chunk", "loop")));
}

/// Records of four numbers in a flat array: a row of 128 lanes for each, or four arrays.
#[test]
fn flat_records_are_passed_as_columns() {
    let text = r#"HloModule jit_f, is_scheduled=true

ENTRY main (flat.1: f32[4194304]) -> f32[4194304] {
  flat.1 = f32[4194304]{0:T(1024)} parameter(0), metadata={op_name="flat"}
  boxes = f32[1048576,4]{1,0:T(8,128)} reshape(flat.1)
  low = f32[1048576,2]{1,0:T(8,128)} custom-call(boxes), custom_call_target="low"
  both = f32[1048576,4]{1,0:T(8,128)} custom-call(boxes, low), custom_call_target="join"
  ROOT r = f32[4194304]{0:T(1024)} reshape(both)
}"#;
    let found = advice(text);
    assert_eq!(kind(&found[0]), ("split", "argument"));
    assert!(found[0].sentence.starts_with("Pass `flat` as 4 arrays of [1048576]"), "{}", found[0].sentence);
    // Three arrays of 512 MiB, or of 4 MiB a column.
    assert_eq!(found[0].saving, Saving::AtMost((3 * 512 - 4 * (4 + 2 + 4)) * MIB));
    // Rows that fill the lanes are no records.
    let wide = text.replace("1048576,4]", "32768,128]").replace("1048576,2]", "32768,64]");
    assert!(advice(&wide).iter().all(|piece| kind(piece).0 != "split"));
}

/// A batch of 64 along the lanes: half of it takes as much, for lanes stay empty, be they of samples or of 32 channels.
#[test]
fn parts_that_free_nothing_are_no_advice() {
    let text = r#"HloModule jit_f, is_scheduled=true

ENTRY main (x.1: f32[64,224,224,3]) -> f32[8] {
  x.1 = f32[64,224,224,3]{2,1,3,0:T(8,128)} parameter(0), metadata={op_name="x"}
  one = bf16[64,112,112,32]{0,3,2,1:T(8,128)(2,1)} custom-call(x.1), custom_call_target="convolve"
  two = bf16[64,112,112,32]{0,3,2,1:T(8,128)(2,1)} custom-call(one), custom_call_target="convolve"
  three = bf16[64,112,112,32]{0,3,2,1:T(8,128)(2,1)} custom-call(two, one), custom_call_target="convolve"
  ROOT r = f32[8]{0:T(128)} custom-call(one, two, three), custom_call_target="sum"
}"#;
    let found = advice(text);
    assert_eq!((kind(&found[0]), found[0].parts), (("chunk", "value"), Some(8)));
    // Three arrays of 112 × 112 × 32 × 128 numbers, or of 112 × 112 × 8 × 128.
    assert_eq!(found[0].saving, Saving::AtMost(3 * (112 * 112 * 24 * 128 * 2)));
    let full = text.replace("64,112,112,32]", "64,112,112,128]").replace("{0,3,2,1", "{3,0,2,1");
    assert_eq!(advice(&full)[0].parts, Some(2));
}

/// 512 graphs of together 600000 edges, whose messages are added up at 50000 nodes and read there again.
#[test]
fn graphs_are_a_batch_but_edges_are_not() {
    const EDGES: &str = "f32[600000,128]{1,0:T(8,128)}";
    const NODES: &str = "f32[50000,128]{1,0:T(8,128)}";
    let text = |graphs: &str| {
        format!(
            r#"HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY main (e.1: f32[600000,3], s.1: s32[600000], n.1: s32[512], y.1: f32[512]) -> f32[512] {{
  e.1 = f32[600000,3]{{0,1:T(4,128)}} parameter(0), metadata={{op_name="g.edges"}}
  s.1 = s32[600000]{{0:T(1024)}} parameter(1), metadata={{op_name="g.senders"}}
  n.1 = s32[512]{{0:T(512)}} parameter(2), metadata={{op_name="g.n_edge"}}
  y.1 = f32[512]{{0:T(512)}} parameter(3), metadata={{op_name="{graphs}"}}
  sent = {EDGES} custom-call(e.1), custom_call_target="net"
  zero = {NODES} custom-call(n.1), custom_call_target="zeros"
  nodes = {NODES} scatter(zero, s.1, sent), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
  back = {EDGES} gather(nodes, s.1), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,128}}
  ROOT r = f32[512]{{0:T(512)}} custom-call(back, sent, nodes, n.1, y.1), custom_call_target="pool"
}}"#
        )
    };
    let found = advice(&text("y"));
    assert_eq!((kind(&found[0]), found[0].parts), (("chunk", "value"), Some(2)));
    assert!(
        found[0].sentence.contains("fewer of the 512 graphs (`g.n_edge` and `y`) at a time"),
        "{}",
        found[0].sentence
    );
    assert!(found.iter().all(|piece| !piece.sentence.contains("dimension 0 of")), "{found:?}");
    // One array alone that begins with a size of its own may be anything.
    assert!(advice(&text("params['scale']")).iter().all(|piece| !piece.sentence.contains("graphs")));
}
