//! Joins of a batch's samples: parts of it then compute something else, and aren't offered.

use super::advice::{MIB, advice, code, kind, sentence};
use tilewise_audit::recommendation::{Saving, finding::Finding};
use tilewise_testing::programs;

/// 1024 samples with 16384 features each, of which `lines` make the result, `out`.
pub(crate) fn program(lines: &str, out: &str) -> String {
    format!(
        r#"HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY main (x.1: f32[1024,256], mask.1: f32[1024], w.1: f32[256,16384]) -> {out} {{
  x.1 = f32[1024,256]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  mask.1 = f32[1024]{{0:T(1024)}} parameter(1), metadata={{op_name="mask"}}
  w.1 = f32[256,16384]{{1,0:T(8,128)}} parameter(2), metadata={{op_name="params['w']"}}
  zero = f32[]{{:T(128)}} constant(0)
  h = f32[1024,16384]{{1,0:T(8,128)}} convolution(x.1, w.1), dim_labels=bf_io->bf
  e = f32[1024,16384]{{1,0:T(8,128)}} exponential(h)
  g = f32[1024,16384]{{1,0:T(8,128)}} multiply(h, e)
{lines}
}}"#
    )
}

/// The words for parts that end before the result.
pub(crate) const JOINED: &str = " in parts, up to where their results are joined";

/// The first sentence about parts of the program, other than blocks of a few lines.
pub(crate) fn first(text: &str) -> Option<String> {
    let found = advice(text);
    let parts = found.iter().filter(|piece| !matches!(piece.finding, Finding::Blocks(_)));
    parts.filter(|piece| kind(piece) == ("chunk", "value")).map(sentence).next()
}

#[test]
fn samples_that_stay_apart_are_taken_in_parts() {
    let text = program("  ROOT r = f32[1024]{0:T(1024)} reduce(g, zero), dimensions={1}, to_apply=add", "f32[1024]");
    let said = first(&text).expect("parts");
    assert!(said.starts_with("Process `x` along dimension 0 in parts: "), "{said}");
    // A sum of all samples, as a gradient is, is the sum of the parts' sums.
    let text =
        program("  ROOT r = f32[256,16384]{1,0:T(8,128)} convolution(x.1, g), dim_labels=fb_io->bf", "f32[256,16384]");
    assert!(first(&text).is_some());
    // New weights are made of the sum of one call: samples of another call's part would be of other weights.
    let lines = "  d = f32[256,16384]{1,0:T(8,128)} convolution(x.1, g), dim_labels=fb_io->bf\n  ROOT r = \
                 f32[256,16384]{1,0:T(8,128)} add(w.1, d)";
    let said = first(&program(lines, "f32[256,16384]")).expect("parts");
    assert!(said.contains("in parts, up to where their results are added up"), "{said}");
}

/// A solver's turn applies an operator to each frame, and sums over all: the operator's line can be taken in blocks, the solver's can't.
#[test]
fn lines_that_a_solver_calls_are_taken_in_blocks() {
    let text = tilewise_hlo::read_text(programs::path("sense_cg.v6e.hlo.gz")).expect("a text");
    let found = advice(&text);
    let blocks = found.iter().find(|piece| matches!(piece.finding, Finding::Blocks(_))).expect("blocks");
    let edited = blocks.edited.as_ref().expect("lines");
    // `return adjoint(forward(x, …), …) + lam * x` and `b = adjoint(kspace, maps, mask)`
    assert_eq!((edited.line.line, &edited.more[..], edited.line.function.as_deref()), (13, &[30][..], None));
}

/// As the compiler keeps predicates: eight samples of a small batch in a byte, taken out again where they are read.
#[test]
fn predicates_of_samples_stay_apart_in_the_bits_of_words() {
    let text = r#"HloModule jit_f, is_scheduled=true

or { a = u8[] parameter(0)
  b = u8[] parameter(1)
  ROOT o = u8[] or(a, b)
}
ENTRY main (x.1: f32[8,65536,128]) -> f32[8,65536,128] {
  x.1 = f32[8,65536,128]{2,1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  w.1 = f32[65536,128]{1,0:T(8,128)} parameter(1), metadata={op_name="w"}
  y = f32[8,65536,128]{2,1,0:T(8,128)} broadcast(w.1), dimensions={1,2}
  h = f32[8,65536,128]{2,1,0:T(8,128)} multiply(x.1, y)
  is = pred[8,65536,128]{2,1,0:T(8,128)(4,1)} compare(h, x.1), direction=GT
  bit = u32[8,65536,128]{2,1,0:T(8,128)} convert(is)
  at = u32[8,65536,128]{2,1,0:T(8,128)} iota(), iota_dimension=0
  up = u32[8,65536,128]{2,1,0:T(8,128)} shift-left(bit, at)
  byte = u8[8,65536,128]{2,1,0:T(8,128)(4,1)} convert(up)
  none = u8[] constant(0)
  words = u8[65536,128]{1,0:T(8,128)(4,1)} reduce(byte, none), dimensions={0}, to_apply=or
  e = f32[8,65536,128]{2,1,0:T(8,128)} exponential(h)
  all = u8[8,65536,128]{2,1,0:T(8,128)(4,1)} broadcast(words), dimensions={1,2}
  wide = u32[8,65536,128]{2,1,0:T(8,128)} convert(all)
  mask = u32[8,65536,128]{2,1,0:T(8,128)} and(up, wide)
  was = pred[8,65536,128]{2,1,0:T(8,128)(4,1)} convert(mask)
  t = f32[8,65536,128]{2,1,0:T(8,128)} tanh(e)
  g = f32[8,65536,128]{2,1,0:T(8,128)} multiply(t, e)
  ROOT r = f32[8,65536,128]{2,1,0:T(8,128)} select(was, g, h)
}"#;
    let is_batch = |text: &str| first(text).is_some_and(|said| said.contains("`x` along dimension 0 in parts: "));
    assert!(is_batch(text));
    // Of other bytes, nothing tells one sample from another.
    assert!(!is_batch(&text.replace("shift-left(bit, at)", "add(bit, at)")));
}

/// As samples with labels and others without, which a mean of all is subtracted from before places are counted: what is joined
/// of others is each place's own.
#[test]
fn samples_that_are_joined_with_others_meet_in_sums() {
    let text = r#"HloModule jit_f, is_scheduled=true

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main (x.1: f32[64,16384], u.1: f32[960,16384], w.1: f32[16384]) -> f32[1024] {
  x.1 = f32[64,16384]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  u.1 = f32[960,16384]{1,0:T(8,128)} parameter(1), metadata={op_name="u"}
  w.1 = f32[16384]{0:T(1024)} parameter(2), metadata={op_name="params['w']"}
  zero = f32[]{:T(128)} constant(0)
  all = f32[1024,16384]{1,0:T(8,128)} concatenate(x.1, u.1), dimensions={0}
  w = f32[1024,16384]{1,0:T(8,128)} broadcast(w.1), dimensions={1}
  s = f32[1024,16384]{1,0:T(8,128)} multiply(all, w)
  m = f32[16384]{0:T(1024)} reduce(s, zero), dimensions={0}, to_apply=add
  b = f32[1024,16384]{1,0:T(8,128)} broadcast(m), dimensions={1}
  d = f32[1024,16384]{1,0:T(8,128)} subtract(s, b)
  i = f32[1024,16384]{1,0:T(8,128)} iota(), iota_dimension=0
  h = f32[1024,16384]{1,0:T(8,128)} multiply(d, i)
  t = f32[1024,16384]{1,0:T(8,128)} tanh(h)
  e = f32[1024,16384]{1,0:T(8,128)} exponential(h)
  n = f32[1024,16384]{1,0:T(8,128)} multiply(t, e)
  g = f32[1024,16384]{1,0:T(8,128)} multiply(n, h)
  ROOT r = f32[1024]{0:T(1024)} reduce(g, zero), dimensions={1}, to_apply=add
}"#;
    assert_eq!(first(text), None);
}

/// As each color at each angle: either is taken in parts, as nothing joins them.
#[test]
fn one_of_two_dimensions_of_pairs_is_taken_in_parts() {
    let text = r#"HloModule jit_f, is_scheduled=true

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main (x.1: f32[2048], y.1: f32[2048]) -> f32[2048,2048] {
  x.1 = f32[2048]{0:T(1024)} parameter(0), metadata={op_name="x"}
  y.1 = f32[2048]{0:T(1024)} parameter(1), metadata={op_name="y"}
  zero = f32[]{:T(128)} constant(0)
  a = f32[2048,2048,4]{1,0,2:T(8,128)} broadcast(x.1), dimensions={0}
  b = f32[2048,2048,4]{1,0,2:T(8,128)} broadcast(y.1), dimensions={1}
  m = f32[2048,2048,4]{1,0,2:T(8,128)} multiply(a, b)
  e = f32[2048,2048,4]{1,0,2:T(8,128)} exponential(m)
  t = f32[2048,2048,4]{1,0,2:T(8,128)} tanh(m)
  g = f32[2048,2048,4]{1,0,2:T(8,128)} multiply(e, t)
  ROOT r = f32[2048,2048]{1,0:T(8,128)} reduce(g, zero), dimensions={2}, to_apply=add
}"#;
    let said = first(text).expect("parts");
    assert!(said.starts_with("Process `x` along dimension 0 in parts: "), "{said}");
}

/// As the compiler pads numbers of rows to whole tiles: the last of 1024 samples is followed by no whole one.
#[test]
fn what_is_added_after_the_last_sample_joins_none() {
    let lines = |cut: &str| {
        format!(
            "  f = f32[16777216]{{0:T(1024)}} reshape(g)
  p = f32[16778240]{{0:T(1024)}} pad(f, zero), padding=0_1024
  c = f32[16777216]{{0:T(1024)}} slice(p), slice={{{cut}}}
  k = f32[1024,16384]{{1,0:T(8,128)}} reshape(c)
  ROOT r = f32[1024]{{0:T(1024)}} reduce(k, zero), dimensions={{1}}, to_apply=add"
        )
    };
    assert!(first(&program(&lines("[0:16777216]"), "f32[1024]")).is_some());
    assert_eq!(first(&program(&lines("[1024:16778240]"), "f32[1024]")), None);
}

/// As images of 512 by 512 have it that are 512: the first of the dimensions is the batch.
#[test]
fn another_dimension_may_be_as_long_as_the_batch() {
    let text = |root: &str, out: &str| {
        format!(
            r#"HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY main (x.1: f32[16384,16384]) -> {out} {{
  x.1 = f32[16384,16384]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  zero = f32[]{{:T(128)}} constant(0)
  e = f32[16384,16384]{{1,0:T(8,128)}} exponential(x.1)
  n = f32[16384,16384]{{1,0:T(8,128)}} negate(x.1)
  t = f32[16384,16384]{{1,0:T(8,128)}} tanh(x.1)
  m = f32[16384,16384]{{1,0:T(8,128)}} multiply(e, n)
  g = f32[16384,16384]{{1,0:T(8,128)}} multiply(m, t)
  ROOT r = {out}{root}
}}"#
        )
    };
    let apart = text("{0:T(1024)} reduce(g, zero), dimensions={1}, to_apply=add", "f32[16384]");
    let said = first(&apart).expect("parts");
    assert!(said.starts_with("Process `x` along dimension 0 in parts: "), "{said}");
}

/// As the logits of a contrastive loss, each sample with each.
#[test]
fn pairs_of_samples_are_no_batch() {
    let text =
        program("  ROOT r = f32[1024,1024]{1,0:T(8,128)} convolution(g, e), dim_labels=bf_oi->bf", "f32[1024,1024]");
    assert_eq!(first(&text), None);
}

/// As a mean that is subtracted, or the whole batch's divisor: what is worked out of weights differs between the parts, what
/// follows from the input alone is worked out beforehand.
#[test]
fn what_all_samples_decide_joins_each() {
    let lines = |sum: &str| {
        format!(
            "  sum = {sum}
  all = f32[1024,16384]{{1,0:T(8,128)}} broadcast(sum), dimensions={{}}
  d = f32[1024,16384]{{1,0:T(8,128)}} divide(g, all)
  ROOT r = f32[1024]{{0:T(1024)}} reduce(d, zero), dimensions={{1}}, to_apply=add"
        )
    };
    let of_weights = lines("f32[]{:T(128)} reduce(e, zero), dimensions={0,1}, to_apply=add");
    assert_eq!(first(&program(&of_weights, "f32[1024]")), None);
    let of_input = lines("f32[]{:T(128)} reduce(mask.1, zero), dimensions={0}, to_apply=add");
    assert!(first(&program(&of_input, "f32[1024]")).is_some());
}

/// Each sample with the one before it.
#[test]
fn neighbours_are_no_batch() {
    let lines = "  now = f32[1023,16384]{1,0:T(8,128)} slice(g), slice={[1:1024], [0:16384]}
  before = f32[1023,16384]{1,0:T(8,128)} slice(g), slice={[0:1023], [0:16384]}
  d = f32[1023,16384]{1,0:T(8,128)} subtract(now, before)
  ROOT r = f32[1023]{0:T(1024)} reduce(d, zero), dimensions={1}, to_apply=add";
    assert_eq!(first(&program(lines, "f32[1023]")), None);
}

/// A batch that is the second dimension of the input, and is merged with the first: most of the peak has it.
#[test]
fn a_batch_is_followed_where_dimensions_are_merged() {
    let text = r#"HloModule jit_f, is_scheduled=true

ENTRY main (x.1: bf16[20,512,256], w.1: bf16[256,4096]) -> f32[20,512,4096] {
  x.1 = bf16[20,512,256]{2,1,0:T(8,128)(2,1)} parameter(0), metadata={op_name="batch['x']"}
  w.1 = bf16[256,4096]{1,0:T(8,128)(2,1)} parameter(1), metadata={op_name="params['w']"}
  m = bf16[10240,256]{1,0:T(8,128)(2,1)} bitcast(x.1)
  h = f32[10240,4096]{1,0:T(8,128)} convolution(m, w.1), dim_labels=bf_io->bf
  e = f32[10240,4096]{1,0:T(8,128)} exponential(h)
  s = f32[10240,4096]{1,0:T(8,128)} multiply(h, e)
  b = f32[20,512,4096]{2,1,0:T(8,128)} bitcast(s)
  carry = (s32[]{:T(128)}, f32[20,512,4096]{2,1,0:T(8,128)}) custom-call(b), custom_call_target="start"
  run = (s32[]{:T(128)}, f32[20,512,4096]{2,1,0:T(8,128)}) while(carry), condition=condition, body=body, backend_config={"known_trip_count":{"n":"20"}}
  ROOT r = f32[20,512,4096]{2,1,0:T(8,128)} get-tuple-element(run), index=1
}"#;
    let loops = r"condition { c = (s32[]{:T(128)}, f32[20,512,4096]{2,1,0:T(8,128)}) parameter(0)
  at = s32[]{:T(128)} get-tuple-element(c), index=0
  trips = s32[]{:T(128)} constant(20)
  ROOT more = pred[]{:T(128)} compare(at, trips), direction=LT
}
body { b = (s32[]{:T(128)}, f32[20,512,4096]{2,1,0:T(8,128)}) parameter(0)
  at = s32[]{:T(128)} get-tuple-element(b), index=0
  all = f32[20,512,4096]{2,1,0:T(8,128)} get-tuple-element(b), index=1
  one = s32[]{:T(128)} constant(1)
  next = s32[]{:T(128)} add(at, one)
  ROOT end = (s32[]{:T(128)}, f32[20,512,4096]{2,1,0:T(8,128)}) tuple(next, all)
}
ENTRY";
    let said = first(&text.replace("ENTRY", loops)).expect("parts");
    assert!(said.contains("`batch` along dimension 0 in parts: "), "{said}");
}

/// 8192 points and 8192 others, whose distances are summed along one side, or solved with.
#[test]
fn pairs_are_computed_in_blocks_of_rows() {
    let text = |last: &str| {
        format!(
            r#"HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY main (x.1: f32[8192,50], y.1: f32[8192,50]) -> f32[8192] {{
  x.1 = f32[8192,50]{{0,1:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  y.1 = f32[8192,50]{{0,1:T(8,128)}} parameter(1), metadata={{op_name="y"}}
  zero = f32[]{{:T(128)}} constant(0)
  d = f32[8192,8192]{{1,0:T(8,128)}} convolution(x.1, y.1), dim_labels=bf_oi->bf
  e = f32[8192,8192]{{1,0:T(8,128)}} exponential(d)
  {last}
}}"#
        )
    };
    let summed = text("ROOT r = f32[8192]{0:T(1024)} reduce(e, zero), dimensions={1}, to_apply=add");
    let found = advice(&summed);
    let by_rows = "Compute [8192,8192] in 16 blocks along dimension 0 (8,192 rows of `x`)";
    assert!(sentence(&found[0]).starts_with(by_rows), "{}", sentence(&found[0]));
    assert!(!sentence(&found[0]).contains("vocabulary"));
    let of_all = |target: &str| {
        text(&format!("ROOT r = f32[8192]{{0:T(1024)}} custom-call(e), custom_call_target=\"{target}\""))
    };
    assert!(advice(&of_all("Cholesky")).is_empty());
    // Rows are ranked one by one.
    let ranked = advice(&of_all("TopK"));
    assert!(sentence(&ranked[0]).starts_with(by_rows), "{}", sentence(&ranked[0]));
}

/// Scores of all heads, 64 MiB, and of each of four, 256 MiB in either order: a sixteenth is needed at once.
#[test]
fn scores_are_the_same_in_another_order_of_dimensions() {
    let text = r#"HloModule jit_f, is_scheduled=true

most { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
ENTRY main (x.1: f32[4096,64]) -> f32[4,4096] {
  x.1 = f32[4096,64]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  least = f32[]{:T(128)} constant(0)
  d = f32[4096,4096]{1,0:T(8,128)} convolution(x.1, x.1), dim_labels=bf_oi->bf
  s = f32[4096,4096,4]{1,0,2:T(8,128)} broadcast(d), dimensions={0,1}
  t = f32[4096,4096,4]{1,0,2:T(8,128)} tanh(s)
  h = f32[4,4096,4096]{1,2,0:T(8,128)} transpose(t), dimensions={2,0,1}
  e = f32[4,4096,4096]{2,1,0:T(8,128)} exponential(h)
  ROOT r = f32[4,4096]{1,0:T(4,128)} reduce(e, least), dimensions={2}, to_apply=most
}"#;
    let found = advice(text);
    let said = sentence(&found[0]);
    assert!(said.starts_with("Compute [4096,4096,4] in blocks of queries"), "{said}");
    assert!(said.ends_with("your soft cap is splash attention's `attn_logits_soft_cap`"), "{said}");
    assert_eq!(found[0].saving, Saving::AtMost((64 + 2 * 256) * MIB / 16 * 15));
    assert!(code(&found[0]).is_some_and(|code| code.contains("jax.lax.map(of_query, queries, batch_size=256)")));
    // As windows beside all of a picture: blocks of these queries leave pairs of other positions whole.
    let windows = text.replace("x.1: f32[4096,64]", "x.1: f32[4096,64], y.1: f32[1536,64]").replace(
        "  least =",
        "  y.1 = f32[1536,64]{1,0:T(8,128)} parameter(1), metadata={op_name=\"y\"}
  p = f32[1536,1536]{1,0:T(8,128)} convolution(y.1, y.1), dim_labels=bf_oi->bf
  least =",
    );
    let windows = windows.replace(
        "  ROOT r = ",
        "  n = f32[1536,1536]{1,0:T(8,128)} negate(p)
  ROOT r = ",
    );
    assert_eq!(advice(&windows)[0].saving, Saving::AtMost((64 + 2 * 256) * MIB / 16 * 15));
}

/// As AlphaFold's attention along the rows of pairs: few rows, but a softmax goes over their pairs.
#[test]
fn few_rows_have_pairs_where_a_softmax_goes_over_them() {
    let text = r#"HloModule jit_f, is_scheduled=true

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
most { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
ENTRY main (pair.1: f32[256,256]) -> f32[256,4,256] {
  pair.1 = f32[256,256]{1,0:T(8,128)} parameter(0), metadata={op_name="pair"}
  zero = f32[]{:T(128)} constant(0)
  t = f32[256,256]{1,0:T(8,128)} transpose(pair.1), dimensions={1,0}
  p = f32[256,256]{1,0:T(8,128)} add(pair.1, t)
  d = f32[256,4,256,256]{3,2,1,0:T(8,128)} broadcast(p), dimensions={2,3}
  m = f32[256,4,256]{2,1,0:T(4,128)} reduce(d, zero), dimensions={3}, to_apply=most
  l = f32[256,4,256,256]{3,2,1,0:T(8,128)} broadcast(m), dimensions={0,1,2}
  b = f32[256,4,256,256]{3,2,1,0:T(8,128)} subtract(d, l)
  e = f32[256,4,256,256]{3,2,1,0:T(8,128)} exponential(b)
  ROOT r = f32[256,4,256]{2,1,0:T(4,128)} reduce(e, zero), dimensions={3}, to_apply=add
}"#;
    let said = first(text).expect("blocks");
    assert!(said.starts_with("Compute [256,4,256,256] in blocks of rows: "), "{said}");
    // A gate's exponentials have no largest.
    assert_eq!(first(&text.replace("exponential(", "tanh(")), None);
    assert_eq!(first(&text.replace("to_apply=most", "to_apply=add")), None);
}

/// As top-k's gradient goes back into each sample's own scores: the compiler sorts rows by numbers that begin with the
/// sample's.
#[test]
fn rows_that_are_sorted_by_their_samples_number_are_the_samples_own() {
    let text = |number: &str| {
        format!(
            r#"HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
less {{ a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT
}}
ENTRY main (x.1: f32[64,4096], i.1: s32[64,128], w.1: f32[4096]) -> f32[64] {{
  x.1 = f32[64,4096]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  i.1 = s32[64,128]{{1,0:T(8,128)}} parameter(1), metadata={{op_name="i"}}
  w.1 = f32[4096]{{0:T(1024)}} parameter(2), metadata={{op_name="params['w']"}}
  zero = f32[]{{:T(128)}} constant(0)
  sample = s32[64,128]{{1,0:T(8,128)}} iota(), iota_dimension=0
  rows = s32[64,128]{{1,0:T(8,128)}} constant({{...}})
  first = s32[64,128]{{1,0:T(8,128)}} multiply(sample, rows)
  number = s32[64,128]{{1,0:T(8,128)}} add({number}, i.1)
  keys = s32[8192]{{0:T(1024)}} reshape(number)
  some = f32[64,128]{{1,0:T(8,128)}} slice(x.1), slice={{[0:64], [0:128]}}
  values = f32[8192]{{0:T(1024)}} reshape(some)
  sorted = (s32[8192]{{0:T(1024)}}, f32[8192]{{0:T(1024)}}) sort(keys, values), dimensions={{0}}, to_apply=less
  k = s32[8192]{{0:T(1024)}} get-tuple-element(sorted), index=0
  v = f32[8192]{{0:T(1024)}} get-tuple-element(sorted), index=1
  none = f32[262144]{{0:T(1024)}} broadcast(zero), dimensions={{}}
  flat = f32[262144]{{0:T(1024)}} scatter(none, k, v), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
  back = f32[64,4096]{{1,0:T(8,128)}} reshape(flat)
  w = f32[64,4096]{{1,0:T(8,128)}} broadcast(w.1), dimensions={{1}}
  e = f32[64,4096]{{1,0:T(8,128)}} multiply(x.1, w)
  g = f32[64,4096]{{1,0:T(8,128)}} multiply(e, back)
  wide = f32[64,4096,128]{{2,1,0:T(8,128)}} broadcast(g), dimensions={{0,1}}
  t = f32[64,4096,128]{{2,1,0:T(8,128)}} tanh(wide)
  ROOT r = f32[64]{{0:T(128)}} reduce(t, zero), dimensions={{1,2}}, to_apply=add
}}"#
        )
    };
    let said = first(&text("first")).expect("parts");
    assert!(said.starts_with("Process `x` and `i` along dimension 0 in parts: "), "{said}");
    // Each row may lie beside those of other samples with its number.
    let across = text("first").replace(
        "  back = f32[64,4096]{1,0:T(8,128)} reshape(flat)",
        "  across = f32[4096,64]{1,0:T(8,128)} reshape(flat)
  back = f32[64,4096]{1,0:T(8,128)} transpose(across), dimensions={1,0}",
    );
    let before = |said: &str| said.split(", 16 parts up to ").next().map(str::to_owned);
    assert_eq!(first(&across).as_deref().and_then(before), before(&said));
    // Numbers that all samples share mix their rows.
    assert_eq!(first(&text("rows")), None);
}

/// Prompts as wide as they are many, times weights that an argument of any name has.
#[test]
fn an_argument_that_only_looks_like_samples_is_left_out() {
    let text = r#"HloModule jit_f, is_scheduled=true

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main (hidden.1: f32[1024,1024], head.1: f32[1024,16384]) -> f32[1024] {
  hidden.1 = f32[1024,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="hidden"}
  head.1 = f32[1024,16384]{1,0:T(8,128)} parameter(1), metadata={op_name="head"}
  zero = f32[]{:T(128)} constant(0)
  h = f32[1024,16384]{1,0:T(8,128)} convolution(hidden.1, head.1), dim_labels=bf_io->bf
  e = f32[1024,16384]{1,0:T(8,128)} exponential(h)
  u = f32[1024,16384]{1,0:T(8,128)} tanh(h)
  m = f32[1024,16384]{1,0:T(8,128)} multiply(e, u)
  g = f32[1024,16384]{1,0:T(8,128)} multiply(m, h)
  ROOT r = f32[1024]{0:T(1024)} reduce(g, zero), dimensions={1}, to_apply=add
}"#;
    let said = first(text).expect("parts");
    assert!(said.starts_with("Process `hidden` along dimension 0 in parts: "), "{said}");
}

/// Random numbers of each sample need a key of each part; those of a population of 96 are the same for all parts.
#[test]
fn keys_are_split_where_samples_draw_their_own() {
    let lines = |drawn: &str| {
        format!(
            "  key.1 = u32[2]{{0:T(128)}} parameter(3), metadata={{op_name=\"key\"}}
  bits = u32[{drawn}]{{1,0:T(8,128)}} xor(key.1, key.1), metadata={{op_name=\"jit(f)/jit(_uniform)/xor\"}}
  ROOT r = f32[1024]{{0:T(1024)}} reduce(g, zero), dimensions={{1}}, to_apply=add"
        )
    };
    let text = |drawn: &str| {
        let text = program(&lines(drawn), "f32[1024]");
        text.replace("w.1: f32[256,16384])", "w.1: f32[256,16384], key.1: u32[2])")
    };
    let said = |drawn: &str| first(&text(drawn)).expect("parts");
    assert!(said("1024,256").contains("; split `key` for each part"), "{}", said("1024,256"));
    assert!(!said("96,250").contains("key"), "{}", said("96,250"));
}

/// Ranks at the end are taken once the parts are there; values computed from ranks for each sample are another matter.
#[test]
fn samples_may_be_ranked_at_the_end() {
    let lines = "  score = f32[1024]{0:T(1024)} reduce(g, zero), dimensions={1}, to_apply=add
  ranked = f32[1024]{0:T(1024)} sort(score), dimensions={0}, to_apply=less";
    let text = |last: &str, out: &str| {
        let less = "less { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT l = pred[] compare(a, b), direction=LT\n}\nENTRY";
        program(&format!("{lines}\n{last}"), out).replacen("ENTRY", less, 1)
    };
    let said = first(&text("  ROOT r = f32[100]{0:T(128)} slice(ranked), slice={[0:100]}", "f32[100]")).expect("parts");
    assert!(said.starts_with("Process `x` along dimension 0 in parts: "), "{said}");
    let said = first(&text("  ROOT r = f32[1024]{0:T(1024)} divide(score, ranked)", "f32[1024]")).expect("parts");
    assert!(said.contains(JOINED), "{said}");
}

/// Scores of 512 queries and 2048 keys, of one sample: a batch has nothing to cut.
#[test]
fn scores_are_computed_in_blocks_of_queries() {
    let text = |made: &str| {
        format!(
            r#"HloModule jit_f, is_scheduled=true

most {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}}
ENTRY main (x.1: f32[2560,192], w.1: f32[192,1024]) -> f32[16,512,64] {{
  x.1 = f32[2560,192]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  w.1 = f32[192,1024]{{1,0:T(8,128)}} parameter(1), metadata={{op_name="params['w']"}}
  zero = f32[]{{:T(128)}} constant(0)
  h = f32[2560,1024]{{1,0:T(8,128)}} convolution(x.1, w.1), dim_labels=bf_io->bf
  q = f32[16,512,64]{{2,1,0:T(8,128)}} custom-call(h), custom_call_target="queries"
  k = f32[16,2048,64]{{2,1,0:T(8,128)}} custom-call(h), custom_call_target="keys"
{made}
}}"#
        )
    };
    let softmax = text(
        "  d = f32[16,6,512,2048]{3,2,1,0:T(8,128)} custom-call(q, k), custom_call_target=\"product\"
  m = f32[16,6,512]{2,1,0:T(8,128)} reduce(d, zero), dimensions={3}, to_apply=most
  l = f32[16,6,512,2048]{3,2,1,0:T(8,128)} broadcast(m), dimensions={0,1,2}
  b = f32[16,6,512,2048]{3,2,1,0:T(8,128)} subtract(d, l)
  e = f32[16,6,512,2048]{3,2,1,0:T(8,128)} exponential(b)
  ROOT r = f32[16,512,64]{2,1,0:T(8,128)} reduce(e, zero), dimensions={3}, to_apply=most",
    );
    let said = |text: &str| first(text).expect("blocks");
    assert!(said(&softmax).starts_with("Compute [16,6,512,2048] in blocks of queries: "), "{}", said(&softmax));
    assert!(said(&softmax).contains("flash"), "{}", said(&softmax));
    let kernel = text(
        "  d = f32[96,2048,2048]{2,1,0:T(8,128)} custom-call(q, k), custom_call_target=\"product\"
  ROOT r = f32[16,512,64]{2,1,0:T(8,128)} custom-call(d, k), custom_call_target=\"tpu_custom_call\", metadata={op_name=\"online-softmax\"}",
    );
    assert!(said(&kernel).starts_with("Compute [96,2048,2048] in blocks of queries: "), "{}", said(&kernel));
    assert_eq!(first(&kernel.replace("online-softmax", "solver")), None);
}

/// Samples and steps in one dimension along the lanes, 20 of each: no tile begins with a sample, but the whole dimension stays where
/// it is.
#[test]
fn a_dimension_that_stays_where_it_is_needs_no_whole_tiles() {
    let text = |to: &str, out: &str| {
        format!(
            r#"HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY main (x.1: f32[64,20,11,4096], w.1: f32[4096]) -> {out} {{
  x.1 = f32[64,20,11,4096]{{3,2,1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  zero = f32[]{{:T(128)}} constant(0)
  w.1 = f32[4096]{{0:T(1024)}} parameter(1), metadata={{op_name="params['w']"}}
  w = f32[1280,11,4096]{{2,1,0:T(8,128)}} broadcast(w.1), dimensions={{2}}
  x = f32[1280,11,4096]{{2,1,0:T(8,128)}} reshape(x.1)
  m = f32[1280,11,4096]{{2,1,0:T(8,128)}} multiply(x, w)
  t = f32[1280,11,4096]{{0,2,1:T(8,128)}} tanh(m)
  e = f32[1280,11,4096]{{0,2,1:T(8,128)}} exponential(t)
  u = f32[1280,11,4096]{{0,2,1:T(8,128)}} multiply(t, e)
  b = {to} bitcast(u)
  s = {out}{{0:T(1024)}} reduce(b, zero), dimensions={{1}}, to_apply=add
  a = {to} broadcast(s), dimensions={{0}}
  p = {to} multiply(a, b)
  ROOT r = {out}{{0:T(1024)}} reduce(p, zero), dimensions={{1}}, to_apply=add
}}"#
        )
    };
    let said = first(&text("f32[1280,45056]{0,1:T(8,128)}", "f32[1280]")).expect("parts");
    assert!(said.starts_with("Process `x` along dimension 0 in parts: "), "{said}");
    // Under these bounds the samples' places are another dimension's.
    let other = first(&text("f32[45056,1280]{0,1:T(8,128)}", "f32[45056]"));
    assert!(other.as_ref().is_none_or(|said| !said.contains("along dimension 0")), "{other:?}");
}
