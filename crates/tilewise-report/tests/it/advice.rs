//! Advice: on programs whose changes were measured by compiling them again, and on small ones worked out by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in helpers, which the lint does not take for tests")]

use std::collections::HashMap;
use tilewise::tpu::Generation;
use tilewise_audit::{Audit, Machine, Program, Recommendation, Report, recommendation::Saving};
use tilewise_hlo::Module;
use tilewise_report::{Summary, words};
use tilewise_testing::programs;

pub(super) const MIB: u64 = 1 << 20;

pub(super) fn report(module: &Module, tpu: Generation) -> Report {
    Audit::new(&Program::from(module.clone())).machine(Machine::Tpu(tpu)).limit(None).run()
}

pub(super) fn advice(text: &str) -> Vec<Recommendation> {
    report(&Module::parse(text).unwrap(), Generation::V5e).advice().to_vec()
}

pub(super) fn kind(advice: &Recommendation) -> (&'static str, &'static str) {
    (advice.change.as_str(), advice.target.as_str())
}

pub(super) fn code(advice: &Recommendation) -> Option<String> {
    words(advice).code
}

pub(super) fn sentence(advice: &Recommendation) -> String {
    words(advice).sentence
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

/// An array that is dead at the peak frees nothing, however padded it is.
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
    assert_eq!(code(&found[0]).as_deref(), Some("opt['m'] = opt['m'].reshape(-1)  # f32[3000000]"));
    let found = advice(&program("custom-call(half), custom_call_target=\"x\""));
    assert_eq!(found.iter().map(kind).collect::<Vec<_>>(), [("split", "argument")]);
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
    assert_eq!(
        code(&found[0]).as_deref(),
        Some(
            "run = jax.jit(run, donate_argnames=(\"state\",))  # or above its `def`: @functools.partial(jax.jit, donate_argnames=(\"state\",))"
        )
    );
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
    assert!(sentence(&found[0]).starts_with("Process `x` along dimension 0 in parts: "), "{}", sentence(&found[0]));
    assert!(code(&found[0]).unwrap().contains("jax.lax.map(part, batch)"));
    // Of `*args`, which are passed one by one.
    let found = advice(&of_rows("args[0]", "f32[4096,8]", by_rows));
    assert!(code(&found[0]).unwrap().contains("f = jax.jit(tw.microbatch(f, 2, batch_argnames=(\"args\",)))"));
    let joined = "r.1 = f32[8,1024]{1,0:T(8,128)} reduce(sine, zero), dimensions={0}, to_apply=max
  all = f32[4096,8,1024]{0,2,1:T(8,128)} broadcast(r.1), dimensions={1,2}
  both = f32[4096,8,1024]{0,2,1:T(8,128)} add(all, sine)
  ROOT r = f32[4096,8]{0,1:T(8,128)} reduce(both, zero), dimensions={2}, to_apply=max";
    let reduced = "ROOT r = f32[8,1024]{1,0:T(8,128)} reduce(sine, zero), dimensions={0}, to_apply=max";
    // Calls with parts of the rows would return the maximum of each part.
    assert_eq!(advice(&of_rows("x", "f32[8,1024]", reduced)), []);
    // A value that depends on all rows of the input is worked out beforehand, or else refused.
    let found = advice(&of_rows("x", "f32[4096,8]", joined));
    assert!(code(&found[0]).unwrap().contains("tw.microbatch(f, 2, batch_argnames=(\"x\",))"));
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
    // 4096 × 16 × 8 rows of 128 lanes; half of them may lie in VMEM: of a program of half the size, the compiler left none in HBM.
    assert_eq!(piece.saving, Saving::AtMost(128 * MIB));
    assert!(sentence(piece).starts_with("Keep `pages` as [512,16,512]"), "{}", sentence(piece));
    // Four times as many can't.
    let more = advice(&text.replace("4096", "16384"));
    assert_eq!(more.first().map(|piece| piece.saving), Some(Saving::AtMost(256 * MIB)), "{more:?}");
    let full = advice(&text.replace("8,64]", "4,128]"));
    assert!(full.iter().all(|piece| kind(piece).0 != "reshape"), "{full:?}");
}

/// A cache of 12 heads of 64, 96 MiB, that a kernel reads row-major: 12 of 16 rows and 64 of 128 lanes of a tile, 256 MiB.
#[test]
fn a_cache_is_kept_with_heads_merged() {
    let text = r#"HloModule jit_step, is_scheduled=true

ENTRY main (k.1: bf16[32,2048,12,64]) -> (f32[32], bf16[32,2048,12,64]) {
  k.1 = bf16[32,2048,12,64]{1,3,2,0:T(8,128)(2,1)} parameter(0), metadata={op_name="keys"}
  c = bf16[32,2048,12,64]{3,2,1,0:T(8,128)(2,1)} copy(k.1)
  o = f32[32]{0:T(128)} custom-call(c), custom_call_target="tpu_custom_call"
  b = bf16[32,2048,12,64]{1,3,2,0:T(8,128)(2,1)} copy(c)
  ROOT r = (f32[32]{0:T(128)}, bf16[32,2048,12,64]{1,3,2,0:T(8,128)(2,1)}) tuple(o, b)
}"#;
    let merged = |text: &str| advice(text).into_iter().find(|piece| kind(piece) == ("reshape", "argument"));
    let piece = merged(text).expect("a piece");
    assert_eq!(piece.saving, Saving::AtMost(256 * MIB));
    assert!(sentence(&piece).starts_with("Keep `keys` as [32,2048,768] between calls"), "{}", sentence(&piece));
    // Without a kernel, something else may still be copied.
    let summed = text.replace("custom-call(c), custom_call_target=\"tpu_custom_call\"", "dot(c, c)");
    assert_eq!(merged(&summed).map(|piece| piece.saving), Some(Saving::AtMost(160 * MIB)));
    // An argument that isn't returned isn't a cache.
    let read = text
        .replace("tuple(o, b)", "tuple(o, o)")
        .replace("T(128)}, bf16[32,2048,12,64]{1,3,2,0:T(8,128)(2,1)})", "T(128)}, f32[32]{0:T(128)})");
    assert!(merged(&read).is_none());
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
        sentence(&found[0]).contains("the gradient of `params['w']` for each of 8192 samples"),
        "{}",
        sentence(&found[0])
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
    assert!(
        sentence(&found[0]).contains("[3072,32768] has one value per token of the vocabulary (32768)"),
        "{}",
        sentence(&found[0])
    );
    // Two arrays of 384 MiB, an eighth of each, and 64 MiB for the gradient.
    assert_eq!(found[0].saving, Saving::AtMost((2 * 384 - 2 * 48 - 64) * MIB));
    let one_of_each =
        "return jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]";
    assert!(code(&found[0]).is_some_and(|code| code.contains(one_of_each)));
    // Chunks of all tokens would move between devices, which have rows of their own.
    let on_devices = advice(&text.replace("is_scheduled=true", "is_scheduled=true, num_partitions=4"));
    let along = "parts = jax.tree.map(lambda x: jnp.stack(jnp.split(x, 8, 1)), (hidden, labels))";
    assert!(code(&on_devices[0]).is_some_and(|code| code.contains(along)), "{:?}", code(&on_devices[0]));
    // The weight is named as the loss's own parameter, unless a library numbered it.
    let head = |name: &str| {
        let code = code(&advice(&text.replace("params['head']", name))[0]).unwrap_or_default().to_owned();
        code.lines()
            .next()
            .and_then(|line| line.strip_prefix("head = "))
            .map(|line| line.split(' ').next().unwrap().to_owned())
    };
    assert_eq!(head("params['head']").as_deref(), Some("params['head']"));
    assert_eq!(head("state.params['head']").as_deref(), Some("params['head']"));
    assert_eq!(head("model.states[0][10]"), None);
    // Labels that are numbers for all of the vocabulary may be smoothed.
    let spread = "soft = f32[3072,32768]{1,0:T(8,128)} exponential(logits)
  hot = pred[3072,32768]{1,0:T(8,128)(4,1)} compare(logits, logits), direction=EQ, metadata={op_name=\"jit(step)/jvp(jit(_one_hot))/eq\"}";
    let smoothed = advice(&text.replace("soft = f32[3072,32768]{1,0:T(8,128)} exponential(logits)", spread));
    let by_all = "jax.nn.one_hot(labels, logits.shape[-1])";
    assert!(code(&smoothed[0]).is_some_and(|code| code.contains(by_all) && !code.contains(one_of_each)));
    // Logits of a second product, outside of what is differentiated, are another model's.
    let product = |to: &str, name: &str| {
        format!(
            "{to} = f32[3072,32768]{{1,0:T(8,128)}} dot(h.1, w.1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, metadata={{op_name=\"jit(step)/{name}dot\"}}"
        )
    };
    let line = "logits = f32[3072,32768]{1,0:T(8,128)} custom-call(h.1, w.1), custom_call_target=\"dot\"";
    let both = [product("other", ""), product("logits", "jvp()/")].join("\n  ");
    let distilled = advice(&text.replace(line, &both).replace("(h.1, logits, soft)", "(h.1, logits, soft, other)"));
    assert!(sentence(&distilled[0]).contains("the loss between both models' logits"), "{}", sentence(&distilled[0]));
    // Without such a reader they are scores, as of samples before an update.
    let picked = "kept = f32[3072]{0:T(1024)} custom-call(logits, soft), custom_call_target=\"pick\"\n  ROOT g";
    let named = "exponential(logits), metadata={op_name=\"jit(step)/exp\"}";
    let scored = text.replace(line, &product("logits", "")).replace("(h.1, logits, soft)", "(h.1, w.1)");
    let scored = advice(&scored.replace("exponential(logits)", named).replace("ROOT g", picked));
    assert!(sentence(&scored[0]).starts_with("Make the logits of some samples at a time"), "{}", sentence(&scored[0]));
    assert!(code(&scored[0]).is_some_and(|code| code.contains("jax.lax.map(lambda part: f(params, *part), parts)")));
    // Features are as many, too, but no softmax goes over them.
    let features = advice(&text.replace("exponential(", "tanh("));
    assert!(features.iter().all(|piece| !sentence(piece).contains("vocabulary")), "{features:?}");
    // Scores of a long input are softened, too, and its places are a weight's rows: their keys are each sample's own.
    let logits_of = |keys: &str| {
        let product = format!(
            "k = f32[{keys}]{{2,1,0:T(8,128)}} custom-call(w.1), custom_call_target=\"keys\"
  logits = f32[3072,32768]{{1,0:T(8,128)}} dot(h.1, k), lhs_contracting_dims={{1}}, rhs_contracting_dims={{2}}"
        );
        let line = "logits = f32[3072,32768]{1,0:T(8,128)} custom-call(h.1, w.1), custom_call_target=\"dot\"";
        advice(&text.replace(line, &product))
    };
    let is_of_vocabulary = |keys: &str| logits_of(keys).iter().any(|piece| sentence(piece).contains("vocabulary"));
    assert!(is_of_vocabulary("1,32768,512") && !is_of_vocabulary("8,32768,512"));
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

/// Remedies without a price, of the largest causes, where no advice frees much.
#[test]
fn where_nothing_has_a_price_remedies_are_listed() {
    let text = r#"HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }

ENTRY main (w.1: f32[1024,1024], m.1: f32[1024,1024], c.1: bf16[1024,1024], x.1: f32[64,1024]) -> (f32[1024,1024], f32[1024,1024]) {
  w.1 = f32[1024,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="state['params']['w']"}
  m.1 = f32[1024,1024]{1,0:T(8,128)} parameter(1), metadata={op_name="state.opt_state[0].mu['w']"}
  c.1 = bf16[1024,1024]{1,0:T(8,128)(2,1)} parameter(2), metadata={op_name="cache['keys']"}
  x.1 = f32[64,1024]{1,0:T(8,128)} parameter(3), metadata={op_name="batch['x']"}
  y.1 = f32[64,4096]{1,0:T(8,128)} custom-call(x.1, c.1), custom_call_target="f"
  w.2 = f32[1024,1024]{1,0:T(8,128)} custom-call(w.1, y.1), custom_call_target="g", output_to_operand_aliasing={{}: (0, {})}
  m.2 = f32[1024,1024]{1,0:T(8,128)} custom-call(m.1, w.2), custom_call_target="h", output_to_operand_aliasing={{}: (0, {})}
  ROOT t = (f32[1024,1024]{1,0:T(8,128)}, f32[1024,1024]{1,0:T(8,128)}) tuple(w.2, m.2)
}"#;
    let remedies = |text: &str| {
        let found = report(&Module::parse(text).unwrap(), Generation::V5e);
        assert!(found.advice().is_empty(), "{:?}", found.advice());
        Summary::of(&found).remedies
    };
    // 4 + 4 + 2 + 1/4 + 1 MiB: the first three are 80 % and more.
    let said = remedies(text);
    assert_eq!(
        said[0],
        "Shard the parameters over more devices (in bfloat16 they take half, in int8 a quarter, and results change)"
    );
    assert!(said[1].starts_with("Shard the optimizer's state") && said[1].contains("bfloat16"), "{said:?}");
    assert!(said[2].starts_with("Bound the cache's length") && said[2].contains("int8") && said.len() == 3, "{said:?}");
    // Arrays of bfloat16 can't become so.
    let said = remedies(&text.replace("f32[1024,1024]", "bf16[1024,1024]").replace("bbf16", "bf16"));
    assert_eq!(said[0], "Shard the parameters over more devices (in int8 they take half, and results change)");
    assert!(said.iter().all(|remedy| !remedy.contains("bfloat16")), "{said:?}");
}

/// Weights that don't fit, whatever else changes, are shared by the fewest devices that hold them.
#[test]
fn weights_that_do_not_fit_are_divided() {
    let text = "HloModule jit_f, is_scheduled=true\n\nENTRY e {\n  \
                w = bf16[4096,2048]{1,0:T(8,128)(2,1)} parameter(0), metadata={op_name=\"params[\\'w\\']\"}\n  \
                x = f32[64,4096]{1,0:T(8,128)} parameter(1), metadata={op_name=\"x\"}\n  \
                ROOT y = f32[64,1024]{1,0:T(8,128)} custom-call(x, w), custom_call_target=\"f\"\n}";
    let program = tilewise_audit::Program::parse(text).unwrap();
    let divided = |limit: u64| {
        let report = tilewise_audit::Audit::new(&program).limit(limit).run();
        let last = report.advice().last().map(|last| (last.change.as_str(), words(last).task, last.saving.bytes()));
        last.filter(|(change, ..)| *change == "shard").map(|(_, task, freed)| (task, freed))
    };
    // 16 MiB of weights, 1 MiB of `x`, 1/4 of the result.
    assert_eq!(divided(20 * MIB), None);
    let task = |devices: u64| format!("Divide `params` between {devices} devices, or narrow them (bf16 now)");
    assert_eq!(divided(10 * MIB), Some((task(2), Some(8 * MIB))));
    assert_eq!(divided(5 * MIB), Some((task(8), Some(14 * MIB))));
}

/// The condition of a loop that counts its trips in the first element of what it carries.
pub(crate) fn condition(carry: &str, trips: u64) -> String {
    format!(
        "condition {{ c = {carry} parameter(0)
  at = s32[]{{:T(128)}} get-tuple-element(c), index=0
  trips = s32[]{{:T(128)}} constant({trips})
  ROOT more = pred[]{{:T(128)}} compare(at, trips), direction=LT
}}"
    )
}

/// A loop of 64 steps that keeps what it carries, 32 MiB, and something four times as large: the former stays.
#[test]
fn what_a_loop_carries_is_kept() {
    const STATE: &str = "s32[]{:T(128)}, f32[256,512]{1,0:T(8,128)}, f32[64,256,512]{2,1,0:T(8,128)}";
    let text = |state: &str, kept: &str| {
        let carry = format!("({state}, {kept})");
        format!(
            r#"HloModule jit_step, is_scheduled=true

{}
body {{ b = {carry} parameter(0)
  ROOT next = {carry} custom-call(b), custom_call_target="step", output_to_operand_aliasing={{{{1}}: (0, {{1}}), {{2}}: (0, {{2}}), {{3}}: (0, {{3}})}}
}}
ENTRY main (x.1: f32[]) -> f32[] {{
  x.1 = f32[] parameter(0), metadata={{op_name="x"}}
  start = {carry} custom-call(x.1), custom_call_target="start"
  run = {carry} while(start), condition=condition, body=body, backend_config={{"known_trip_count":{{"n":"64"}}}}, metadata={{op_name="jit(step)/jvp()/while" source_file="train.py" source_line=7}}
  ROOT g = f32[] custom-call(run), custom_call_target="back", metadata={{op_name="jit(step)/transpose(jvp())/while"}}
}}"#,
            condition(&carry, 64)
        )
    };
    let saving = |kept: &str| {
        let found = advice(&text(STATE, kept));
        let piece = found.iter().find(|piece| kind(piece) == ("checkpoint", "loop"))?;
        Some(piece.saving)
    };
    // Of [64,256,2048] all but half a step; of a second [64,256,512] as well, since one such array is carried.
    let but_half_a_step = |bytes: u64| Some(Saving::Exact(bytes - bytes / 64 / 2));
    assert_eq!(saving("f32[64,256,2048]{2,1,0:T(8,128)}"), but_half_a_step(128 * MIB));
    assert_eq!(saving("f32[64,256,512]{2,1,0:T(8,128)}"), but_half_a_step(32 * MIB));
    // A small array that is carried is told by its bounds, whatever the largest is.
    let small = STATE.replace("256,512]", "512]").replace("{1,0:T(8,128)}", "{0:T(512)}").replace("{2,1,0", "{1,0");
    let found = advice(&text(&small, "f32[64,256,2048]{2,1,0:T(8,128)}"));
    assert_eq!(found.iter().map(|piece| piece.saving).next(), but_half_a_step(128 * MIB), "{found:?}");
    // The buffers that it stacks have no line, and it has.
    assert!(sentence(&found[0]).contains("around the step of the loop at train.py:7: it"), "{}", sentence(&found[0]));
    // A line that runs twice has two loops, and one piece of advice.
    let once = text(STATE, "f32[64,256,2048]{2,1,0:T(8,128)}");
    let run = once.lines().find(|line| line.trim_start().starts_with("run = ")).unwrap();
    let again = format!("{}\n  ROOT g = f32[] custom-call(again, run)", run.replace("run = ", "again = "));
    let found = advice(&once.replace("  ROOT g = f32[] custom-call(run)", &again));
    let loops: Vec<&Recommendation> = found.iter().filter(|piece| kind(piece) == ("checkpoint", "loop")).collect();
    assert_eq!(loops.len(), 1, "{found:?}");
    assert!(sentence(loops[0]).contains("train.py:7: each of the 2 times that it runs, it"), "{}", sentence(loops[0]));
    // Under a checkpoint, its policy saves too much.
    let step = "custom-call(b), custom_call_target=\"step\"";
    let named =
        format!("{step}, metadata={{op_name=\"jit(step)/jvp()/while/body/closed_call/checkpoint/dot_general\"}}");
    let under = text(STATE, "f32[64,256,2048]{2,1,0:T(8,128)}").replace(step, &named);
    let found = advice(&under);
    assert!(sentence(&found[0]).starts_with("Save less under the checkpoint"), "{}", sentence(&found[0]));
    assert!(code(&found[0]).is_some_and(|code| code.contains("policy=jax.checkpoint_policies.nothing_saveable")));
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
        let program = Program::from(module.clone());
        Audit::new(&program)
            .machine(Machine::Tpu(Generation::V5e))
            .limit(limit)
            .run()
            .advice()
            .iter()
            .map(kind)
            .collect::<Vec<_>>()
    };
    // 2048 + 16 MiB of arguments and 256 of temporaries, of which halves free 128.
    assert_eq!((kinds(None), kinds(Some(4096 * MIB))), (vec![], vec![]));
    assert_eq!(kinds(Some(2200 * MIB)), [("chunk", "value")]);
}
