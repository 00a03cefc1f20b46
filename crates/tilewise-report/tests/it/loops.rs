//! Arrays that loops read and stack up.

use super::{
    advice::{MIB, advice, code, condition, kind, sentence},
    joins::first,
};
use tilewise_audit::{Audit, Program, recommendation::Saving};

/// A loop over 16 layers that reads a slice of a cache of 64 MiB in each step, and stacks up the new ones: inputs and outputs of
/// a scan. Recompiled with the cache in the carry, a decoder written so held 2147467264 bytes less, of a cache of 2 GiB.
fn scan(other: &str) -> String {
    const CACHE: &str = "f32[16,1024,1024]{2,1,0:T(8,128)}";
    let carry = format!("(s32[]{{:T(128)}}, {CACHE}, {CACHE})");
    let condition = condition(&carry, 16);
    format!(
        r#"HloModule jit_step, is_scheduled=true, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}

taken {{ c = {CACHE} parameter(0)
  i = s32[]{{:T(128)}} parameter(1)
  z = s32[]{{:T(128)}} constant(0)
  s = f32[1,1024,1024]{{2,1,0:T(8,128)}} dynamic-slice(c, i, z, z), dynamic_slice_sizes={{1,1024,1024}}
  ROOT e = f32[1,1024,1024]{{2,1,0:T(8,128)}} exponential(s)
}}
written {{ c = {CACHE} parameter(0)
  n = f32[1,1024,1024]{{2,1,0:T(8,128)}} parameter(1)
  i = s32[]{{:T(128)}} parameter(2)
  z = s32[]{{:T(128)}} constant(0)
  ROOT u = {CACHE} dynamic-update-slice(c, n, i, z, z)
}}
{condition}
body {{ b = {carry} parameter(0)
  at = s32[]{{:T(128)}} get-tuple-element(b), index=0
  old = {CACHE} get-tuple-element(b), index=1
  all = {CACHE} get-tuple-element(b), index=2
  one = s32[]{{:T(128)}} constant(1)
  next = s32[]{{:T(128)}} add(at, one)
  new = f32[1,1024,1024]{{2,1,0:T(8,128)}} fusion(old, at), kind=kLoop, calls=taken
{other}
  stacked = {CACHE} fusion(all, new, at), kind=kLoop, calls=written
  ROOT end = {carry} tuple(next, old, stacked)
}}
ENTRY main (cache.1: f32[16,1024,1024]) -> f32[16,1024,1024] {{
  cache.1 = {CACHE} parameter(0), metadata={{op_name="cache"}}
  zero = s32[]{{:T(128)}} constant(0)
  empty = {CACHE} custom-call(), custom_call_target="AllocateBuffer"
  start = {carry} tuple(zero, cache.1, empty)
  run = {carry} while(start), condition=condition, body=body, backend_config={{"known_trip_count":{{"n":"16"}}}}, metadata={{op_name="jit(step)/while"}}
  done = {CACHE} get-tuple-element(run), index=2
  ROOT r = {CACHE} copy(done)
}}"#
    )
}

#[test]
fn a_cache_is_carried_through_a_loop() {
    let found = advice(&scan(""));
    assert_eq!(kind(&found[0]), ("carry", "loop"), "{found:?}");
    assert_eq!(found[0].saving, Saving::Exact(64 * MIB));
    assert!(sentence(&found[0]).starts_with("Carry `cache` through the loop"), "{}", sentence(&found[0]));
    assert!(code(&found[0]).is_some_and(|code| code.contains("(y, cache), _ = jax.lax.scan(carrying,")));
}

/// A step that reads all of the old cache needs it as it was.
#[test]
fn what_each_step_reads_whole_is_not_updated_in_place() {
    let whole = "  sum = f32[] custom-call(old), custom_call_target=\"sum\"";
    assert!(advice(&scan(whole)).iter().all(|piece| kind(piece).0 != "carry"));
}

/// The inputs of a recurrence were made for it.
#[test]
fn inputs_that_a_program_makes_are_no_cache() {
    let made = scan("")
        .replace("cache.1: f32[16,1024,1024]", "x.1: f32[1024]")
        .replace(", input_output_alias={ {}: (0, {}, may-alias) }", "")
        .replace(
            "  cache.1 = f32[16,1024,1024]{2,1,0:T(8,128)} parameter(0)",
            "  x.1 = f32[1024]{0:T(1024)} parameter(0)
  cache.1 = f32[16,1024,1024]{2,1,0:T(8,128)} broadcast(x.1), dimensions={2}",
        );
    assert!(advice(&made).iter().all(|piece| kind(piece).0 != "carry"));
}

/// A cache of two layers of 64 MiB, each taken out, written and stacked up again: recompiled with the whole cache updated, a decoder
/// of six layers written so held 1067269120 bytes, not 1268599808, of which its slices were 201326592.
#[test]
fn a_cache_is_updated_as_a_whole() {
    const LAYER: &str = "f32[16,1024,1024]{2,1,0:T(8,128)}";
    let text = |alias: &str| {
        format!(
            r#"HloModule jit_step, is_scheduled=true{alias}

part {{ c = f32[2,16,1024,1024]{{3,2,1,0:T(8,128)}} parameter(0)
  s = f32[1,16,1024,1024]{{3,2,1,0:T(8,128)}} slice(c), slice={{[0:1], [0:16], [0:1024], [0:1024]}}
  ROOT b = {LAYER} bitcast(s)
}}
ENTRY main (cache.1: f32[2,16,1024,1024], new.1: f32[16,1,1024], at.1: s32[]) -> f32[2,16,1024,1024] {{
  cache.1 = f32[2,16,1024,1024]{{3,2,1,0:T(8,128)}} parameter(0), metadata={{op_name="cache"}}
  new.1 = f32[16,1,1024]{{2,1,0:T(1,128)}} parameter(1), metadata={{op_name="new"}}
  at.1 = s32[]{{:T(128)}} parameter(2), metadata={{op_name="position"}}
  z = s32[]{{:T(128)}} constant(0)
  one = {LAYER} fusion(cache.1), kind=kLoop, calls=part
  two = {LAYER} fusion(cache.1), kind=kLoop, calls=part
  first = {LAYER} dynamic-update-slice(one, new.1, z, at.1, z)
  second = {LAYER} dynamic-update-slice(two, new.1, z, at.1, z)
  ROOT r = f32[2,16,1024,1024]{{3,2,1,0:T(8,128)}} custom-call(first, second), custom_call_target="stack"
}}"#
        )
    };
    let donated = ", input_output_alias={ {}: (0, {}, may-alias) }";
    let found = advice(&text(donated));
    assert_eq!(kind(&found[0]), ("carry", "argument"), "{found:?}");
    assert_eq!(found[0].saving, Saving::AtMost(128 * MIB));
    assert!(sentence(&found[0]).starts_with("Update `cache` in place: the 2 slices "), "{}", sentence(&found[0]));
    assert!(
        code(&found[0])
            .is_some_and(|code| code.contains("cache = jax.lax.dynamic_update_slice(cache, new[None], start)"))
    );
    // The caller's own memory can't be written.
    assert!(advice(&text("")).iter().all(|piece| kind(piece).0 != "carry"));
}

/// A cache that isn't donated lies beside its next one as a result.
#[test]
fn a_cache_that_is_carried_is_donated() {
    let returned =
        scan("").replace(", input_output_alias={ {}: (0, {}, may-alias) }", "").replace("copy(done)", "bitcast(done)");
    let found = advice(&returned);
    assert_eq!((kind(&found[0]), found[0].saving), (("carry", "loop"), Saving::Exact(64 * MIB)));
    assert!(sentence(&found[0]).contains(", update it in place, and donate it: "), "{}", sentence(&found[0]));
    // The compiler makes loops of gathers, too.
    let gathered = returned.replace("jit(step)/while", "jit(step)/gather");
    assert!(advice(&gathered).iter().all(|advice| kind(advice).0 != "carry"));
}

/// A loop of 64 steps that carries 256 rows of 512 and stacks up these arrays; `after` is computed of them once it has run.
fn recurrence(stacks: &[&str], after: &str) -> String {
    const WEIGHTS: &str = "f32[256,2048]{1,0:T(8,128)}";
    let changed = ["s32[]{:T(128)}", "f32[256,512]{1,0:T(8,128)}"].iter().chain(stacks).copied().collect::<Vec<&str>>();
    let listed = |line: &dyn Fn((usize, &&str)) -> String, by: &str| {
        changed.iter().enumerate().map(line).collect::<Vec<_>>().join(by)
    };
    let carry = format!("({}, {WEIGHTS})", changed.join(", "));
    let of = |tuple: &'static str, prefix: &'static str| {
        listed(&move |(at, kind)| format!("  {prefix}{at} = {kind} get-tuple-element({tuple}), index={at}"), "\n")
    };
    format!(
        r#"HloModule jit_step, is_scheduled=true

{condition}
body {{ b = {carry} parameter(0)
{before}
  w = {WEIGHTS} get-tuple-element(b), index={last}
  stepped = ({types}) custom-call({operands}, w), custom_call_target="step", output_to_operand_aliasing={{{aliases}}}
{next}
  ROOT end = {carry} tuple({results}, w)
}}
ENTRY main (x.1: f32[], w.1: f32[256,2048]) -> f32[] {{
  x.1 = f32[] parameter(0), metadata={{op_name="x"}}
  w.1 = {WEIGHTS} parameter(1), metadata={{op_name="w"}}
  begun = ({types}) custom-call(x.1), custom_call_target="start"
{begin}
  start = {carry} tuple({starts}, w.1)
  run = {carry} while(start), condition=condition, body=body, backend_config={{"known_trip_count":{{"n":"64"}}}}, metadata={{op_name="jit(step)/jvp()/while"}}
{after}
  ROOT g = f32[] custom-call(run{more}), custom_call_target="back", metadata={{op_name="jit(step)/transpose(jvp())/while"}}
}}"#,
        condition = condition(&carry, 64),
        before = of("b", "b"),
        next = of("stepped", "n"),
        begin = of("begun", "s"),
        last = changed.len(),
        types = changed.join(", "),
        operands = listed(&|(at, _)| format!("b{at}"), ", "),
        aliases = listed(&|(at, _)| format!("{{{at}}}: ({at}, {{}})"), ", "),
        results = listed(&|(at, _)| format!("n{at}"), ", "),
        starts = listed(&|(at, _)| format!("s{at}"), ", "),
        more = if after.is_empty() { "" } else { ", copied" },
    )
}

/// Rows that are carried, 32 MiB of all steps, and what a step makes of them and weights, 128 MiB.
const ROWS: &str = "f32[64,256,512]{2,1,0:T(8,128)}";
const WIDE: &str = "f32[64,256,2048]{2,1,0:T(8,128)}";

/// Weights of the bounds of what a step keeps are handed on, not carried. Recompiled with its step under a checkpoint, a scan
/// over layers in whose batch are as many rows as there are layers held 973471744 bytes less.
#[test]
fn weights_that_a_loop_reads_are_not_carried() {
    let found = advice(&recurrence(&[ROWS, WIDE], ""));
    assert_eq!((kind(&found[0]), found[0].saving), (("checkpoint", "loop"), Saving::Exact(127 * MIB)));
}

/// The carry takes the place of recomputed arrays, in VMEM, too: an LSTM that stacked eight of its 13 arrays there
/// held 56623104 bytes less of 59315200, and its carry was in VMEM.
#[test]
fn what_a_loop_carries_moves_to_vmem_where_others_leave_room() {
    let fast = ROWS.replace(")}", ")S(1)}");
    let found = advice(&recurrence(&[ROWS, WIDE, &fast], ""));
    // Of both all but half a step.
    assert_eq!(found[0].saving, Saving::Exact(127 * MIB + 32 * MIB - MIB / 4));
    // One that is as large in two bytes is not enough.
    let narrow = "bf16[64,256,512]{2,1,0:T(8,128)(2,1)S(1)}";
    assert_eq!(advice(&recurrence(&[ROWS, WIDE, narrow], ""))[0].saving, Saving::Exact(127 * MIB));
}

/// A stack that is copied until it is read is no longer there in its copy either.
#[test]
fn copies_of_what_a_loop_stacks_up_are_recomputed_too() {
    let slow = WIDE.replace("2048", "1024");
    let fast = slow.replace(")}", ")S(1)}");
    let copied = format!("  taken = {fast} get-tuple-element(run), index=4\n  copied = {slow} copy(taken)");
    // All but half a step of each; the carry is in VMEM then.
    let found = advice(&recurrence(&[ROWS, WIDE, &fast], &copied));
    let freed = 128 * MIB + 64 * MIB + 32 * MIB;
    assert_eq!(found[0].saving, Saving::Exact(freed - freed / 128));
}

/// A wave of 4 MiB through a loop of `steps` steps, each of which keeps as much for the gradient. Recompiled with segments
/// of 40 steps, a seismic inversion of 1,000 steps written so held 1.14 GiB, not 11.78.
fn wave(steps: u64) -> String {
    const WAVE: &str = "f32[1024,1024]{1,0:T(8,128)}";
    let stack = format!("f32[{steps},1024,1024]{{2,1,0:T(8,128)}}");
    let carry = format!("(s32[]{{:T(128)}}, {WAVE}, {stack})");
    let condition = condition(&carry, steps);
    format!(
        r#"HloModule jit_step, is_scheduled=true

written {{ c = {stack} parameter(0)
  n = f32[1,1024,1024]{{2,1,0:T(8,128)}} parameter(1)
  i = s32[]{{:T(128)}} parameter(2)
  z = s32[]{{:T(128)}} constant(0)
  ROOT u = {stack} dynamic-update-slice(c, n, i, z, z)
}}
{condition}
body {{ b = {carry} parameter(0)
  at = s32[]{{:T(128)}} get-tuple-element(b), index=0
  old = {WAVE} get-tuple-element(b), index=1
  all = {stack} get-tuple-element(b), index=2
  one = s32[]{{:T(128)}} constant(1)
  next = s32[]{{:T(128)}} add(at, one)
  new = {WAVE} sine(old), metadata={{op_name="jit(step)/jvp()/while/body/sin"}}
  kept = f32[1,1024,1024]{{2,1,0:T(8,128)}} bitcast(new)
  stacked = {stack} fusion(all, kept, at), kind=kLoop, calls=written
  ROOT end = {carry} tuple(next, new, stacked)
}}
ENTRY main (velocity.1: f32[1024,1024]) -> f32[1024,1024] {{
  velocity.1 = {WAVE} parameter(0), metadata={{op_name="velocity"}}
  zero = s32[]{{:T(128)}} constant(0)
  empty = {stack} custom-call(), custom_call_target="AllocateBuffer"
  start = {carry} tuple(zero, velocity.1, empty)
  run = {carry} while(start), condition=condition, body=body, backend_config={{"known_trip_count":{{"n":"{steps}"}}}}, metadata={{op_name="jit(step)/jvp()/while"}}
  done = {stack} get-tuple-element(run), index=2
  ROOT r = {WAVE} custom-call(done), custom_call_target="back", metadata={{op_name="jit(step)/transpose(jvp())/back"}}
}}"#
    )
}

#[test]
fn steps_that_carry_what_they_keep_are_recomputed_in_segments() {
    let found = advice(&wave(400));
    assert_eq!(kind(&found[0]), ("checkpoint", "loop"), "{found:?}");
    // Of 400 steps, those of one segment stay, and the carries of the others: twice the root of 400.
    let Saving::AtMost(freed) = found[0].saving else { panic!("{found:?}") };
    assert!((350 * 4 * MIB..360 * 4 * MIB).contains(&freed), "{freed}");
    assert!(code(&found[0]).is_some_and(|code| code.contains("x.reshape(20, 20, *x.shape[1:])")), "{found:?}");
    // A prime number of steps has no equal segments.
    assert!(advice(&wave(401)).iter().all(|piece| kind(piece) != ("checkpoint", "loop")));
}

/// A loop of 64 steps stacks up 128 MiB, of which sums are made.
const STACKED: &str = r#"HloModule jit_f, is_scheduled=true

cond {
  c = (s32[], f32[512,1024]{1,0:T(8,128)}, f32[64,512,1024]{2,1,0:T(8,128)}) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(64)
  ROOT r = pred[] compare(i, n), direction=LT
}

body {
  c = (s32[], f32[512,1024]{1,0:T(8,128)}, f32[64,512,1024]{2,1,0:T(8,128)}) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[512,1024]{1,0:T(8,128)} get-tuple-element(c), index=1
  stack = f32[64,512,1024]{2,1,0:T(8,128)} get-tuple-element(c), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[512,1024]{1,0:T(8,128)} negate(x)
  row = f32[1,512,1024]{2,1,0:T(8,128)} bitcast(y)
  kept = f32[64,512,1024]{2,1,0:T(8,128)} dynamic-update-slice(stack, row, i, zero, zero)
  ROOT t = (s32[], f32[512,1024]{1,0:T(8,128)}, f32[64,512,1024]{2,1,0:T(8,128)}) tuple(next, y, kept)
}

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x.1 = f32[512,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  v.1 = f32[64,512]{1,0:T(8,128)} parameter(1), metadata={op_name="wanted"}
  zero.1 = s32[] constant(0)
  none = f32[]{:T(128)} constant(0)
  b = f32[64,512,1024]{2,1,0:T(8,128)} custom-call(), custom_call_target="AllocateBuffer"
  s.1 = (s32[], f32[512,1024]{1,0:T(8,128)}, f32[64,512,1024]{2,1,0:T(8,128)}) tuple(zero.1, x.1, b)
  w = (s32[], f32[512,1024]{1,0:T(8,128)}, f32[64,512,1024]{2,1,0:T(8,128)}) while(s.1), condition=cond, body=body
  e = f32[64,512,1024]{2,1,0:T(8,128)} get-tuple-element(w), index=2
  g = f32[64,512,1024]{2,1,0:T(8,128)} exponential(e)
  m = f32[64,512]{1,0:T(8,128)} reduce(g, none), dimensions={2}, to_apply=add
  ROOT r.1 = f32[64,512]{1,0:T(8,128)} subtract(m, v.1)
}"#;

/// A loop's steps aren't samples where each needs the one before.
#[test]
fn steps_that_follow_each_other_are_no_batch() {
    let text = STACKED;
    let of_steps = |text: &str| first(text).is_some_and(|said| said.contains("`wanted` along dimension 0 in parts"));
    assert!(!of_steps(text));
    // Each step makes its row of what no step changes.
    let apart = text.replace("tuple(next, y, kept)", "tuple(next, x, kept)");
    assert!(of_steps(&apart), "{:?}", first(&apart));
}

#[test]
fn steps_that_are_read_by_their_numbers_are_kept_alone() {
    let steps = STACKED.find("  g = f32[64,512,1024]").map_or(STACKED, |at| &STACKED[..at]);
    let picked = "  n.1 = s32[7,1]{1,0:T(8,128)} parameter(2), metadata={op_name=\"read\"}
  ROOT g = f32[7,512,1024]{2,1,0:T(8,128)} gather(e, n.1), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, \
         index_vector_dim=1, slice_sizes={1,512,1024}
}";
    let counted = ", body=body, backend_config={\"known_trip_count\":{\"n\":\"64\"}}";
    let program = Program::parse(format!("{steps}{picked}").replace(", body=body", counted)).expect("a program");
    // Without a limit: a program that fits keeps its stacks.
    let said = Audit::new(&program).run().advice().first().map(sentence);
    assert!(said.as_ref().is_some_and(|said| said.contains("Keep only the 7 steps")), "{said:?}");
}

/// A matrix of pairs that a solver's loop multiplies by: its blocks are computed again in each turn.
#[test]
fn blocks_that_a_loop_reads_cost_each_turn() {
    let text = r#"HloModule jit_f, is_scheduled=true

body {
  c = (s32[], f32[16384,8], f32[16384,16384]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  v = f32[16384,8]{1,0:T(8,128)} get-tuple-element(c), index=1
  k = f32[16384,16384]{1,0:T(8,128)} get-tuple-element(c), index=2
  next = f32[16384,8]{1,0:T(8,128)} dot(k, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[], f32[16384,8], f32[16384,16384]) tuple(i, next, k)
}
condition {
  c = (s32[], f32[16384,8], f32[16384,16384]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  ROOT less = pred[] compare(i, i), direction=LT
}
ENTRY main {
  x.1 = f32[16384,16]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  b.1 = f32[16384,8]{1,0:T(8,128)} parameter(1), metadata={op_name="b"}
  zero = s32[] constant(0)
  k = f32[16384,16384]{1,0:T(8,128)} dot(x.1, x.1), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  t = (s32[], f32[16384,8], f32[16384,16384]) tuple(zero, b.1, k)
  w = (s32[], f32[16384,8], f32[16384,16384]) while(t), condition=condition, body=body
  ROOT out = f32[16384,8]{1,0:T(8,128)} get-tuple-element(w), index=1
}"#;
    let found = advice(text);
    let words = tilewise_report::words(&found[0]);
    assert!(words.task.contains("in 16 blocks of rows"), "{}", words.task);
    assert!(words.caveat.is_some_and(|caveat| caveat.starts_with("a loop reads it")));
}
