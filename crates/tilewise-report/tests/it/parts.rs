//! Parts of what a program makes itself, of what is joined late, and of what a compiler has rewritten.

use super::{
    advice::{MIB, advice, code, kind, sentence},
    joins::{first, program},
};
use tilewise_audit::{Audit, Program, recommendation::Saving};
use tilewise_report::AuditOutput;
use tilewise_testing::programs;

/// A TPU's compiler concatenates so what it computes: each piece is padded to the whole, and the larger is taken.
#[test]
fn samples_with_a_text_and_without_are_followed() {
    let text = |pads: [&str; 2]| {
        let piece = |number: usize| {
            let padding = pads[number];
            format!("  p.{number} = f32[2048,16384]{{1,0:T(8,128)}} pad(h, zero), padding={padding}x0_0\n")
        };
        let lines = "  both = f32[2048,16384]{1,0:T(8,128)} maximum(p.0, p.1)
  m = f32[2048,16384]{1,0:T(8,128)} exponential(both)
  n = f32[2048,16384]{1,0:T(8,128)} multiply(m, both)
  one = f32[1024,16384]{1,0:T(8,128)} slice(n), slice={[0:1024], [0:16384]}
  other = f32[1024,16384]{1,0:T(8,128)} slice(n), slice={[1024:2048], [0:16384]}
  d = f32[1024,16384]{1,0:T(8,128)} subtract(one, other)
  ROOT r = f32[1024]{0:T(1024)} reduce(d, zero), dimensions={1}, to_apply=add";
        program(&[piece(0), piece(1), lines.to_owned()].concat(), "f32[1024]")
    };
    let said = first(&text(["0_1024", "1024_0"])).expect("parts");
    assert!(said.starts_with("Process `x` along dimension 0 in parts: "), "{said}");
    // By half a batch, each sample meets another.
    assert_eq!(first(&text(["0_1024", "512_512"])), None);
}

/// As of a marginal likelihood, or a ratio of sums over the batch: parts add up, and the backward pass computes them again.
#[test]
fn parts_may_end_where_they_are_added_up() {
    let text = |backward: &str| {
        let name = |pass: &str| format!(r#"metadata={{op_name="jit(f)/{pass}/mul"}}"#);
        let (forward, backward) = (name("jvp()"), name(backward));
        let lines = format!(
            "  sum = f32[16384]{{0:T(1024)}} reduce(g, zero), dimensions={{0}}, to_apply=add, {forward}
  bent = f32[16384]{{0:T(1024)}} tanh(sum), {forward}
  all = f32[1024,16384]{{1,0:T(8,128)}} broadcast(bent), dimensions={{1}}, {backward}
  d = f32[1024,16384]{{1,0:T(8,128)}} multiply(g, all), {backward}
  ROOT r = f32[256,16384]{{1,0:T(8,128)}} convolution(x.1, d), dim_labels=fb_io->bf, {}",
            name("transpose(jvp())")
        );
        // Fewer features than a vocabulary has tokens.
        program(&lines, "f32[256,16384]").replace("16384", "8000")
    };
    let found = advice(&text("transpose(jvp())"));
    let said = sentence(&found[0]);
    assert!(said.contains("up to where their results are added up"), "{said}");
    let expected = "parts = jax.tree.map(lambda x: x.reshape(2, -1, *x.shape[1:]), x)
# f(part): what 512 of 1024 add up to
like = jax.eval_shape(f, jax.tree.map(lambda x: x[0], parts))
zeros = jax.tree.map(lambda s: jax.numpy.zeros(s.shape, s.dtype), like)
add = lambda sums, part: (jax.tree.map(jax.numpy.add, sums, jax.checkpoint(f)(part)), None)
sums, _ = jax.lax.scan(add, zeros, parts)";
    let said = tilewise_report::words(&found[0]);
    assert!(said.sketch.is_some_and(|sketch| sketch.ends_with(expected)));
    assert!(
        said.code.is_some_and(|code| code.contains("tw.microbatch(f, 2, batch_argnames=(\"x\",), recompute=True)"))
    );
    // A mean that is taken off in the forward pass joins each.
    assert_eq!(first(&text("jvp()")), None);
}

/// A loss that is divided by the sum of a mask: parts of it are divided by others, so that adding their gradients up computes
/// something else. `microbatch` divides by the sum of all.
#[test]
fn a_loss_over_the_sum_of_a_mask_isnt_added_up_as_it_is() {
    let text = |divisor: &str| {
        let lines = format!(
            "  count = f32[]{{:T(128)}} reduce(mask.1, zero), dimensions={{0}}, to_apply=add
  ten = f32[]{{:T(128)}} constant(10)
  each = f32[]{{:T(128)}} divide({divisor})
  wide = f32[1024,8000]{{1,0:T(8,128)}} broadcast(each), dimensions={{}}
  m = f32[1024,8000]{{1,0:T(8,128)}} broadcast(mask.1), dimensions={{0}}
  n = f32[1024,8000]{{1,0:T(8,128)}} multiply(m, wide)
  d = f32[1024,8000]{{1,0:T(8,128)}} multiply(g, n), metadata={{op_name=\"jit(f)/transpose(jvp())/mul\"}}
  ROOT r = f32[256,8000]{{1,0:T(8,128)}} convolution(x.1, d), dim_labels=fb_io->bf, \
             metadata={{op_name=\"jit(f)/transpose(jvp())/dot_general\"}}"
        );
        program(&lines, "f32[256,16384]").replace("16384", "8000")
    };
    let report = |text: String| Audit::new(&Program::parse(text).expect("a program")).run();
    let first_code = |text: String| AuditOutput::new(report(text)).summary().changes[0].code().expect("code");
    let change = |divisor: &str| first_code(text(divisor));
    assert!(change("ten, count").contains("\nf = jax.jit(tw.microbatch(f, "), "{}", change("ten, count"));
    // Parts of a sum count a prior of the weights again: code that isn't tried stands second.
    assert!(change("count, ten").contains("\nf = jax.jit(tw.microbatch(f, "), "{}", change("count, ten"));
    let sketch = tilewise_report::words(&report(text("count, ten")).advice()[0]).sketch.expect("a sketch");
    assert!(
        sketch.starts_with("def value_and_grad_in_parts(params, x") && sketch.contains("seems to be a sum"),
        "{sketch}"
    );
    // A mean divides by all 1,024 rows, or by a multiple of them.
    let mean = first_code(text("count, ten").replace("constant(10)", "constant(4.88281250e-04)"));
    assert!(mean.contains("lambda s: s / ") && !mean.contains("seems to be"), "{mean}");
}

/// A copy of an argument that is taken in parts is one of a part, and the compiler lays parts out anew: of `likely_tokens`, passing it
/// in the copy's layout freed nothing once parts were taken.
#[test]
fn arguments_in_parts_are_not_passed_in_another_layout() {
    let text = r#"HloModule jit_f, is_scheduled=true

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main (x.1: f32[1024,8192]) -> f32[1024] {
  x.1 = f32[1024,8192]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  zero = f32[]{:T(128)} constant(0)
  c = f32[1024,8192]{0,1:T(8,128)} copy(x.1)
  h = f32[1024,8192,4]{0,1,2:T(8,128)} broadcast(c), dimensions={0,1}
  e = f32[1024,8192,4]{0,1,2:T(8,128)} exponential(h)
  g = f32[1024,8192,4]{0,1,2:T(8,128)} multiply(h, e)
  s = f32[1024]{0:T(1024)} reduce(g, zero), dimensions={1,2}, to_apply=add
  t = f32[1024]{0:T(1024)} reduce(c, zero), dimensions={1}, to_apply=add
  ROOT r = f32[1024]{0:T(1024)} add(s, t)
}"#;
    assert_eq!(advice(text).iter().map(kind).collect::<Vec<_>>(), [("chunk", "value")]);
}

/// 256 by 256 pixels that the program counts itself, of which `lines` make the result, `out`.
fn picture(lines: &str, out: &str) -> String {
    format!(
        r#"HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY main (balls.1: f32[1024]) -> {out} {{
  balls.1 = f32[1024]{{0:T(1024)}} parameter(0), metadata={{op_name="params['balls']"}}
  zero = f32[]{{:T(128)}} constant(0)
  y = f32[256,256,1024]{{2,1,0:T(8,128)}} iota(), iota_dimension=0
  x = f32[256,256,1024]{{2,1,0:T(8,128)}} iota(), iota_dimension=1
  of = f32[256,256,1024]{{2,1,0:T(8,128)}} broadcast(balls.1), dimensions={{2}}
  across = f32[256,256,1024]{{2,1,0:T(8,128)}} multiply(y, x)
  h = f32[256,256,1024]{{2,1,0:T(8,128)}} subtract(across, of)
  e = f32[256,256,1024]{{2,1,0:T(8,128)}} exponential(h)
  g = f32[256,256,1024]{{2,1,0:T(8,128)}} multiply(h, e)
  all = f32[256,256]{{1,0:T(8,128)}} reduce(g, zero), dimensions={{2}}, to_apply=add
{lines}
}}"#
    )
}

#[test]
fn what_a_program_counts_itself_is_taken_in_parts() {
    let text = picture("  ROOT r = f32[256,256]{1,0:T(8,128)} tanh(all)", "f32[256,256]");
    let said = first(&text).expect("parts");
    assert_eq!(
        code(&advice(&text)[0]).as_deref(),
        Some("ys = jax.lax.map(f, jax.numpy.arange(256), batch_size=128)  # f: the result of one of the 256")
    );
    let start = "Compute what has dimension 0 of [256,256,1024] in parts: most arrays at the peak have this dimension";
    assert!(said.starts_with(start) && said.contains(", and the program makes it itself; "), "{said}");
    // A sum over all pixels joins no others; a mean that each is compared with does, once all are there.
    let sum = "  ROOT r = f32[] reduce(all, zero), dimensions={0,1}, to_apply=add";
    assert!(!first(&picture(sum, "f32[]")).expect("parts").contains("joined"));
    let blurred = "  down = f32[256,256]{1,0:T(8,128)} reverse(all), dimensions={0}
  ROOT r = f32[256,256]{1,0:T(8,128)} subtract(all, down)";
    // Rows meet; columns don't.
    assert!(first(&picture(blurred, "f32[256,256]")).expect("parts").contains("dimension 1"));
}

/// Weights may be as large as what is computed with them: of the samples themselves, temporaries may be but copies.
#[test]
fn samples_are_taken_in_parts_beside_large_weights() {
    let text = |name: &str, shape: &str| {
        let reduced = "  ROOT r = f32[1024]{0:T(1024)} reduce(g, zero), dimensions={1}, to_apply=add";
        let given = format!("  t.1 = {shape} parameter(3), metadata={{op_name=\"{name}\"}}\n  zero =");
        let bounds = shape.split('{').next().unwrap_or_default();
        let signature = format!("w.1: f32[256,16384], t.1: {bounds})");
        program(reduced, "f32[1024]").replace("w.1: f32[256,16384])", &signature).replace("  zero =", &given)
    };
    assert!(first(&text("params['t']", "f32[65536,1024]{1,0:T(8,128)}")).is_some());
}

/// An array as large as the peak itself isn't the end of parts.
#[test]
fn large_arrays_that_are_joined_are_no_parts() {
    let lines = "  down = f32[1024,16384]{1,0:T(8,128)} reverse(g), dimensions={0}
  d = f32[1024,16384]{1,0:T(8,128)} subtract(g, down)
  ROOT r = f32[1024]{0:T(1024)} reduce(d, zero), dimensions={1}, to_apply=add";
    assert_eq!(first(&program(lines, "f32[1024]")), None);
}

/// A sum, and a loop as the compiler makes one of a gather: `row` reads the row `number` of `table`, and `more` puts it into
/// `rows`, for each of `trips` numbers of `which`. The types are those of `which`, `table` and `rows`. Gives what the loop
/// carries, and the text up to `ENTRY`.
fn gather_loop([which, table, rows]: [&str; 3], trips: usize, row: &str) -> (String, String) {
    let carry = format!("(s32[]{{:T(128)}}, {which}, {table}, {rows})");
    let text = format!(
        r#"HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
condition {{ c = {carry} parameter(0)
  at = s32[]{{:T(128)}} get-tuple-element(c), index=0
  trips = s32[]{{:T(128)}} constant({trips})
  ROOT more = pred[]{{:T(128)}} compare(at, trips), direction=LT
}}
body {{ b = {carry} parameter(0)
  at = s32[]{{:T(128)}} get-tuple-element(b), index=0
  which = {which} get-tuple-element(b), index=1
  table = {table} get-tuple-element(b), index=2
  rows = {rows} get-tuple-element(b), index=3
  zero = s32[]{{:T(128)}} constant(0)
  one = s32[]{{:T(128)}} constant(1)
  next = s32[]{{:T(128)}} add(at, one)
  this = s32[1,1]{{1,0:T(1,128)}} dynamic-slice(which, at, zero), dynamic_slice_sizes={{1,1}}
  number = s32[]{{:T(128)}} bitcast(this)
{row}
  ROOT end = {carry} tuple(next, which, table, more)
}}"#
    );
    (carry, text)
}

/// A loop that the compiler makes of a gather: a row of a table for each of a sample's four experts.
#[test]
fn rows_that_a_loop_gathers_are_their_samples_own() {
    let types = ["s32[4096,1]{1,0:T(8,128)}", "f32[32,16384]{1,0:T(8,128)}", "f32[4096,16384]{1,0:T(8,128)}"];
    let row = "  row = f32[1,16384]{1,0:T(1,128)} dynamic-slice(table, number, zero), dynamic_slice_sizes={1,16384}
  more = f32[4096,16384]{1,0:T(8,128)} dynamic-update-slice(rows, row, at, zero)";
    let (carry, loops) = gather_loop(types, 4096, row);
    let text = |name: &str| {
        format!(
            r#"{loops}
ENTRY main (ids.1: s32[1024,4], table.1: f32[32,16384]) -> f32[1024,4] {{
  ids.1 = s32[1024,4]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="ids"}}
  table.1 = f32[32,16384]{{1,0:T(8,128)}} parameter(1), metadata={{op_name="params['table']"}}
  zero = s32[]{{:T(128)}} constant(0)
  nothing = f32[]{{:T(128)}} constant(0)
  which = s32[4096,1]{{1,0:T(8,128)}} reshape(ids.1)
  empty = f32[4096,16384]{{1,0:T(8,128)}} broadcast(nothing), dimensions={{}}
  start = {carry} tuple(zero, which, table.1, empty)
  run = {carry} while(start), condition=condition, body=body, backend_config={{"known_trip_count":{{"n":"4096"}}}}, metadata={{op_name="jit(f)/{name}"}}
  rows = f32[4096,16384]{{1,0:T(8,128)}} get-tuple-element(run), index=3
  sum = f32[4096]{{0:T(1024)}} reduce(rows, nothing), dimensions={{1}}, to_apply=add
  ROOT r = f32[1024,4]{{1,0:T(8,128)}} reshape(sum)
}}"#
        )
    };
    let said = first(&text("gather")).expect("parts");
    assert!(said.starts_with("Process `ids` along dimension 0 in parts: "), "{said}");
    // A loop of the program's own takes one after the other already.
    assert_eq!(first(&text("while")), None);
}

/// A value that all samples share is made for each of a part alone.
#[test]
fn arrays_broadcast_along_samples_are_of_parts() {
    let lines = "  most = f32[1024,16384]{1,0:T(8,128)} broadcast(zero), dimensions={}
  less = f32[1024,16384]{1,0:T(8,128)} broadcast(zero), dimensions={}
  a = f32[1024,16384]{1,0:T(8,128)} clamp(less, g, most)
  ROOT r = f32[1024]{0:T(1024)} reduce(a, zero), dimensions={1}, to_apply=add";
    assert!(first(&program(lines, "f32[1024]")).is_some());
}

#[test]
fn what_is_mapped_or_sent_to_the_host_joins_no_samples() {
    let text = |lines: &str| {
        let last = "\n  ROOT r = f32[1024]{0:T(1024)} reduce(m, zero), dimensions={1}, to_apply=add";
        program(&[lines, last].concat(), "f32[1024]")
    };
    assert!(first(&text("  m = f32[1024,16384]{1,0:T(8,128)} map(g, e), dimensions={0,1}, to_apply=add")).is_some());
    let told = "  all = f32[] reduce(g, zero), dimensions={0,1}, to_apply=add
  start = token[] after-all()
  sent = (f32[], u32[], token[]) send(all, start), channel_id=1, is_host_transfer=true
  end = token[] send-done(sent), channel_id=1, is_host_transfer=true
  m = f32[1024,16384]{1,0:T(8,128)} tanh(g)";
    assert!(first(&text(told)).is_some());
}

/// A loop that the compiler makes of a gather: a window of each sample's own table.
#[test]
fn windows_that_a_loop_gathers_are_their_samples_own() {
    let types = ["s32[1024,1]{1,0:T(8,128)}", "f32[1024,64,256]{2,1,0:T(8,128)}", "f32[1024,32,256]{2,1,0:T(8,128)}"];
    let row =
        "  row = f32[1,32,256]{2,1,0:T(8,128)} dynamic-slice(table, at, number, zero), dynamic_slice_sizes={1,32,256}
  more = f32[1024,32,256]{2,1,0:T(8,128)} dynamic-update-slice(rows, row, at, zero, zero)";
    let (carry, loops) = gather_loop(types, 1024, row);
    let text = format!(
        r#"{loops}
ENTRY main (x.1: f32[1024,256], i.1: s32[1024,1]) -> f32[1024] {{
  x.1 = f32[1024,256]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  i.1 = s32[1024,1]{{1,0:T(8,128)}} parameter(1), metadata={{op_name="i"}}
  zero = s32[]{{:T(128)}} constant(0)
  nothing = f32[]{{:T(128)}} constant(0)
  table = f32[1024,64,256]{{2,1,0:T(8,128)}} broadcast(x.1), dimensions={{0,2}}
  empty = f32[1024,32,256]{{2,1,0:T(8,128)}} custom-call(), custom_call_target="AllocateBuffer"
  start = {carry} tuple(zero, i.1, table, empty)
  run = {carry} while(start), condition=condition, body=body, backend_config={{"known_trip_count":{{"n":"1024"}}}}, metadata={{op_name="jit(f)/vmap()/gather"}}
  rows = f32[1024,32,256]{{2,1,0:T(8,128)}} get-tuple-element(run), index=3
  ROOT r = f32[1024]{{0:T(1024)}} reduce(rows, nothing), dimensions={{1,2}}, to_apply=add
}}"#
    );
    let found = advice(&text);
    // Half of the windows' 32 MiB.
    let parts = found.iter().find(|piece| kind(piece) == ("chunk", "value")).expect("parts");
    // The table is a repeat, too, of which parts are read: its 64 MiB are another change's.
    assert_eq!((kind(&found[0]), parts.saving), (("free", "upstream"), Saving::AtMost(16 * MIB)), "{found:?}");
}

/// Planes under `jax.vmap`, each of which scatters into a grid of its own: real and imaginary parts have one array of indices.
#[test]
fn planes_that_scatter_into_their_own_grids_stay_apart() {
    let text = tilewise_hlo::read_text(programs::path("radio_planes.v6e.hlo.gz")).expect("a text");
    let found = advice(&text);
    assert!(sentence(&found[0]).contains("along dimension 0"), "{}", sentence(&found[0]));
    assert!(sentence(&found[0]).contains("have this dimension, of size 48"), "{}", sentence(&found[0]));
}
