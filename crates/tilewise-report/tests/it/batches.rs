//! Advice about dimensions: which are a batch, and how many parts of one free something.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in helpers, which the lint does not take for tests")]

use super::{
    advice::{MIB, advice, kind, sentence},
    joins::first,
};
use tilewise_audit::recommendation::Saving;

/// Of sixteen models that are trained together each has results of its own: none of their gradients are added up.
#[test]
fn models_of_an_ensemble_are_no_batch() {
    let text = r#"HloModule jit_step, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY main (w.1: f32[16,256,512], x.1: f32[16,8192,256]) -> f32[16,256,512] {
  w.1 = f32[16,256,512]{2,1,0:T(8,128)} parameter(0), metadata={op_name="params['w']"}
  x.1 = f32[16,8192,256]{2,1,0:T(8,128)} parameter(1), metadata={op_name="x"}
  kept = f32[16,8192,512]{2,1,0:T(8,128)} dot(x.1, w.1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, metadata={op_name="jit(step)/vmap(jvp())/dot_general"}
  ROOT g = f32[16,256,512]{2,1,0:T(8,128)} dot(x.1, kept), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}, metadata={op_name="jit(step)/vmap(transpose(jvp()))/dot_general"}
}"#;
    let found = advice(text);
    assert_eq!(kind(&found[0]), ("chunk", "value"));
    assert!(
        sentence(&found[0]).starts_with("Take `params` and `x` along dimension 0 in parts: "),
        "{}",
        sentence(&found[0])
    );
    assert!(!sentence(&found[0]).contains("gradient"), "{}", sentence(&found[0]));
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
    assert!(sentence(piece).contains("in each of its 8 steps"), "{}", sentence(piece));
    // 64 MiB, and what a step gathers takes the place of the part that it works on: of 32 MiB, recompiling freed 33.
    assert_eq!(piece.saving, Saving::AtMost(64 * MIB));
    // `jnp.take` masks rows that aren't there, into an array of its own.
    let masked = text
        .replace("  cut = ", "  masked = f32[131072,128]{1,0:T(8,128)} negate(rows), metadata={op_name=\"jit(update)/select_n\"}\n  cut = ")
        .replace("bitcast(rows)", "bitcast(masked)");
    let found = advice(&masked);
    let piece = found.iter().find(|piece| kind(piece) == ("chunk", "loop")).expect("a piece");
    // Then a part of 8 MiB is the peak.
    assert_eq!(piece.saving, Saving::AtMost(120 * MIB));
    // Where the loop reads all of the rows in each step, they have to be there.
    let whole =
        text.replace("fusion(data, at), kind=kLoop, calls=taken", "custom-call(data, at), custom_call_target=\"any\"");
    assert!(advice(&whole).iter().all(|piece| kind(piece) != ("chunk", "loop")));
}

/// Covariances of a filter don't see its data: they are the same for all samples, and in each part of them the part's.
#[test]
fn parts_take_parts_of_what_is_repeated_for_all_samples() {
    const ROWS: &str = "f32[65536,16,16]{0,2,1:T(8,128)}";
    let text = format!(
        r#"HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
repeated {{ p = f32[16,16]{{1,0:T(8,128)}} parameter(0)
  q = {ROWS} broadcast(p), dimensions={{1,2}}
  ROOT m = {ROWS} multiply(q, q)
}}
ENTRY main (x.1: f32[65536,16], w.1: f32[16,16]) -> f32[65536] {{
  x.1 = f32[65536,16]{{0,1:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  w.1 = f32[16,16]{{1,0:T(8,128)}} parameter(1), metadata={{op_name="w"}}
  same = {ROWS} fusion(w.1), kind=kLoop, calls=repeated
  root = {ROWS} custom-call(same), custom_call_target="Cholesky"
  own = {ROWS} broadcast(x.1), dimensions={{0,1}}
  each = {ROWS} exponential(own)
  both = {ROWS} multiply(each, root)
  zero = f32[] constant(0)
  ROOT r = f32[65536]{{0:T(1024)}} reduce(both, zero), dimensions={{1,2}}, to_apply=add
}}"#
    );
    let freed =
        |text: &str| advice(text).iter().find_map(|piece| piece.saving.bytes().filter(|_| kind(piece).0 == "chunk"));
    // Two or three of 64 MiB.
    assert!(freed(&text).is_some_and(|bytes| bytes >= 64 * MIB), "{:?}", freed(&text).map(|bytes| bytes / MIB));
    // A value that isn't known to be repeated may be there for all parts.
    let other = text.replace("fusion(w.1), kind=kLoop, calls=repeated", "custom-call(w.1), custom_call_target=\"any\"");
    assert!(freed(&other) < freed(&text), "{:?}", freed(&other).map(|bytes| bytes / MIB));
}

/// As of a picture's pixels: a softmax goes over classes where a layer makes as many, and over positions where none does.
#[test]
fn logits_of_classes_at_each_place_are_chunked() {
    let text = r#"HloModule jit_step, is_scheduled=true

largest { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
ENTRY main (w.1: f32[48,160], x.1: f32[7,48]) -> f32[48,160] {
  w.1 = f32[48,160]{1,0:T(8,128)} parameter(0), metadata={op_name="params['w']"}
  x.1 = f32[7,48]{1,0:T(8,128)} parameter(1), metadata={op_name="x"}
  low = f32[] constant(-inf)
  logits = f32[8,256,64,160]{2,3,1,0:T(8,128)} custom-call(x.1, w.1), custom_call_target="net", metadata={op_name="jit(step)/jvp()/conv"}
  most = f32[8,256,64]{2,1,0:T(8,128)} reduce(logits, low), dimensions={3}, to_apply=largest
  each = f32[8,256,64,160]{2,3,1,0:T(8,128)} exponential(logits), metadata={op_name="jit(step)/jvp()/exp"}
  ROOT g = f32[48,160]{1,0:T(8,128)} custom-call(logits, each, most), custom_call_target="back", metadata={op_name="jit(step)/transpose(jvp())/conv"}
}"#;
    let piece = advice(text).into_iter().find(|piece| kind(piece) == ("chunk", "value")).expect("a piece");
    assert!(sentence(&piece).contains("one value per class (160) at each position"), "{}", sentence(&piece));
    // Two of 160 MiB, of which an eighth is left.
    assert_eq!(piece.saving, Saving::AtMost(2 * 160 * MIB / 8 * 7));
    let of_positions = text.replace("f32[48,160]", "f32[48,96]");
    assert!(advice(&of_positions).iter().all(|piece| !sentence(piece).contains("per class")));
}

/// Under a convolution, a few samples are cut into pieces that fill the rows of a tile: one at a time, or none.
#[test]
fn convolutions_of_few_samples_are_taken_one_at_a_time() {
    let text = |samples: u64, size: u64| {
        let wide = format!("f32[{samples},4096,512]{{2,0,1:T(8,128)}}");
        format!(
            r#"HloModule jit_f, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY main (x.1: f32[{samples},4096,128], w.1: f32[{size},128,512]) -> f32[{samples},512] {{
  x.1 = f32[{samples},4096,128]{{2,0,1:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  w.1 = f32[{size},128,512]{{2,1,0:T(8,128)}} parameter(1), metadata={{op_name="params['w']"}}
  zero = f32[] constant(0)
  h = {wide} convolution(x.1, w.1), window={{size={size}}}, dim_labels=b0f_0io->b0f, metadata={{op_name="jit(f)/conv_general_dilated"}}
  e = {wide} exponential(h)
  g = {wide} multiply(h, e)
  ROOT r = f32[{samples},512]{{1,0:T(8,128)}} reduce(g, zero), dimensions={{1}}, to_apply=add
}}"#
        )
    };
    let parts = |text: &str| advice(text).iter().find(|piece| kind(piece).0 == "chunk").and_then(|piece| piece.parts);
    assert_eq!(
        [(8, 3), (8, 1), (12, 3), (16, 3)].map(|(samples, size)| parts(&text(samples, size))),
        [Some(8), Some(2), Some(12), Some(2)]
    );
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
    assert!(sentence(&found[0]).starts_with("Pass `flat` as 4 arrays of [1048576]"), "{}", sentence(&found[0]));
    // Three arrays of 512 MiB, or of 4 MiB a column.
    assert_eq!(found[0].saving, Saving::AtMost((3 * 512 - 4 * (4 + 2 + 4)) * MIB));
    // Rows that fill the lanes are no records.
    let wide = text.replace("1048576,4]", "32768,128]").replace("1048576,2]", "32768,64]");
    assert!(advice(&wide).iter().all(|piece| kind(piece).0 != "split"));
}

/// A result scattered by columns is made in columns, too: of a table's gradient, 687 MiB were freed; 224 are its rows.
#[test]
fn rows_that_are_scattered_apart_make_their_result_apart() {
    let text = r#"HloModule jit_f, is_scheduled=true

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
gathered { t = f32[1000,4]{0,1:T(4,128)} parameter(0)
  i = s32[65536]{0:T(1024)} parameter(1)
  ROOT g = f32[65536,4]{1,0:T(8,128)} gather(t, i), offset_dims={1}
}
scattered { i = s32[65536]{0:T(1024)} parameter(0)
  r = f32[65536,4]{1,0:T(8,128)} parameter(1)
  n = f32[] constant(0)
  z = f32[131072,4]{1,0:T(8,128)} broadcast(n), dimensions={}
  ROOT s = f32[131072,4]{1,0:T(8,128)} scatter(z, i, r), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
}
ENTRY main (t.1: f32[1000,4], i.1: s32[65536]) -> f32[4] {
  t.1 = f32[1000,4]{0,1:T(4,128)} parameter(0), metadata={op_name="t"}
  i.1 = s32[65536]{0:T(1024)} parameter(1), metadata={op_name="i"}
  rows = f32[65536,4]{1,0:T(8,128)} fusion(t.1, i.1), kind=kCustom, calls=gathered, metadata={op_name="jit(f)/gather"}
  sums = f32[131072,4]{1,0:T(8,128)} fusion(i.1, rows), kind=kCustom, calls=scattered, metadata={op_name="jit(f)/scatter-add"}
  ROOT end = f32[4]{0:T(128)} custom-call(sums), custom_call_target="f"
}"#;
    let found = advice(text);
    // Rows of 512 bytes, or four columns of numbers, of both.
    let piece = found.iter().find(|piece| kind(piece) == ("split", "upstream")).expect("a piece");
    assert_eq!(piece.saving, Saving::Exact((65_536 + 131_072) * (512 - 16)));
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
        sentence(&found[0]).contains("fewer of the 512 graphs (`g.n_edge` and `y`) at a time"),
        "{}",
        sentence(&found[0])
    );
    assert!(found.iter().all(|piece| !sentence(piece).contains("dimension 0 of")), "{found:?}");
    // One array alone that begins with a size of its own may be anything.
    assert!(advice(&text("params['scale']")).iter().all(|piece| !sentence(piece).contains("graphs")));
}

/// A stable sort of each sample's numbers takes their places beside them, which are the same for all: of half the samples, there
/// are half as many.
#[test]
fn places_that_are_sorted_beside_samples_are_theirs() {
    const ROWS: &str = "{1,0:T(8,128)}";
    let text = format!(
        r#"HloModule jit_ranks, is_scheduled=true

less {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=LT
}}

ENTRY main (x.1: f32[64,262144]) -> s32[64] {{
  x.1 = f32[64,262144]{ROWS} parameter(0), metadata={{op_name="x"}}
  y = f32[64,262144]{ROWS} tanh(x.1), metadata={{op_name="jit(ranks)/tanh"}}
  places = s32[64,262144]{ROWS} iota(), iota_dimension=1
  sorted = (f32[64,262144]{ROWS}, s32[64,262144]{ROWS}) sort(y, places), dimensions={{1}}, to_apply=less, metadata={{op_name="jit(ranks)/sort"}}
  order = s32[64,262144]{ROWS} get-tuple-element(sorted), index=1
  first = s32[64,1]{ROWS} slice(order), slice={{[0:64], [0:1]}}
  ROOT r = s32[64]{{0:T(128)}} reshape(first)
}}"#
    );
    let found = advice(&text);
    assert_eq!(kind(&found[0]), ("chunk", "value"));
    // Of 128 MiB, half.
    assert!(matches!(found[0].saving, Saving::AtMost(bytes) if bytes >= 63 * MIB), "{:?}", found[0].saving);
}

/// Five changes of each of 1000 strings, as one dimension: 5000 lie in tiles of 128 as they do in one of 1024.
#[test]
fn samples_lie_where_they_did_in_tiles_of_another_size() {
    let text = r#"HloModule jit_f, is_scheduled=true

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main (gain.1: f32[1000], x.1: f32[5,1000,256], w.1: f32[256,4096]) -> f32[5,1000] {
  gain.1 = f32[1000]{0:T(1024)} parameter(0), metadata={op_name="gain"}
  x.1 = f32[5,1000,256]{2,1,0:T(8,128)} parameter(1), metadata={op_name="x"}
  w.1 = f32[256,4096]{1,0:T(8,128)} parameter(2), metadata={op_name="params['w']"}
  zero = f32[]{:T(128)} constant(0)
  flat = f32[5000,256]{1,0:T(8,128)} reshape(x.1)
  h = f32[5000,4096]{1,0:T(8,128)} convolution(flat, w.1), dim_labels=bf_io->bf
  e = f32[5000,4096]{1,0:T(8,128)} exponential(h)
  g = f32[5000,4096]{1,0:T(8,128)} multiply(h, e)
  sum = f32[5000]{0:T(1024)} reduce(g, zero), dimensions={1}, to_apply=add
  column = f32[5000,1]{0,1:T(1,128)} reshape(sum)
  squared = f32[5000,1]{0,1:T(1,128)} multiply(column, column)
  row = f32[5000]{0:T(1024)} bitcast(squared)
  each = f32[5,1000]{1,0:T(8,128)} reshape(row)
  gains = f32[5,1000]{1,0:T(8,128)} broadcast(gain.1), dimensions={1}
  ROOT r = f32[5,1000]{1,0:T(8,128)} multiply(each, gains)
}"#;
    let said = first(text).expect("parts");
    assert!(said.starts_with("Process `gain` along dimension 0 and `x` along dimension 1 in parts: "), "{said}");
}
