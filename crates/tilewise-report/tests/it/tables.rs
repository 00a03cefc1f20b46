//! Tables whose rows are looked up in the order of sorted numbers.

use super::joins::first;

const FUNCTIONS: &str = "HloModule jit_f, is_scheduled=true

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
less { a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT
}
";

/// As the compiler reads rows of a table on a SparseCore: in the order of their numbers, with the place of each.
#[test]
fn rows_that_a_sparse_core_gathers_are_their_samples_own() {
    let text = [FUNCTIONS, r#"rows { t = f32[256,16384] parameter(0)
  n = s32[1024] parameter(1)
  p = s32[1024] parameter(2)
  ROOT c = f32[1024,16384]{1,0:T(8,128)} custom-call(t, n, p), custom_call_target="gather"
}
ENTRY main (ids.1: s32[1024], t.1: f32[256,16384]) -> f32[1024] {
  ids.1 = s32[1024]{0:T(1024)} parameter(0), metadata={op_name="ids"}
  t.1 = f32[256,16384]{1,0:T(8,128)} parameter(1), metadata={op_name="params['table']"}
  zero = f32[]{:T(128)} constant(0)
  at = s32[1024]{0:T(1024)} iota(), iota_dimension=0
  sorted = (s32[1024]{0:T(1024)}, s32[1024]{0:T(1024)}) sort(ids.1, at), dimensions={0}, to_apply=less, metadata={op_name="jit(f)/gather"}
  n = s32[1024]{0:T(1024)} get-tuple-element(sorted), index=0
  p = s32[1024]{0:T(1024)} get-tuple-element(sorted), index=1
  start = ((), (), (s32[8192]{0:T(1024)}, s32[0]{0})) async-start(), async_execution_thread="sparsecore", calls=rows
  update = ((f32[256,16384]{1,0:T(8,128)}, s32[1024]{0:T(1024)}, s32[1024]{0:T(1024)}), f32[1024,16384]{1,0:T(8,128)}, (s32[8192]{0:T(1024)}, s32[0]{0})) async-update(start, t.1, n, p)
  h = f32[1024,16384]{1,0:T(8,128)} async-done(update), metadata={op_name="jit(f)/gather"}
  e = f32[1024,16384]{1,0:T(8,128)} exponential(h)
  u = f32[1024,16384]{1,0:T(8,128)} tanh(h)
  m = f32[1024,16384]{1,0:T(8,128)} multiply(e, u)
  g = f32[1024,16384]{1,0:T(8,128)} multiply(m, h)
  ROOT r = f32[1024]{0:T(1024)} reduce(g, zero), dimensions={1}, to_apply=add
}"#].concat();
    let said = first(&text).expect("parts");
    assert!(said.starts_with("Process `ids` along dimension 0 in parts: "), "{said}");
    // Rows are weights' own: a mean of all samples' rows joins them.
    let mean = "  s = f32[16384]{0:T(1024)} reduce(h, zero), dimensions={0}, to_apply=add
  b = f32[1024,16384]{1,0:T(8,128)} broadcast(s), dimensions={1}
  g = f32[1024,16384]{1,0:T(8,128)} multiply(m, b)";
    let product = "  g = f32[1024,16384]{1,0:T(8,128)} multiply(m, h)";
    assert_eq!(first(&text.replace(product, mean)), None);
    // A program's own sort changes places.
    assert_eq!(first(&text.replace("to_apply=less, metadata={op_name=\"jit(f)/gather\"}", "to_apply=less")), None);
}

/// As the gradient of a table whose rows are also what features are compared with: rows' sums go on from the products' sum.
#[test]
fn sums_that_go_on_from_sums_join_no_samples() {
    let text = [FUNCTIONS, r#"ENTRY main (ids.1: s32[16384], t.1: f32[256,1024]) -> f32[256,1024] {
  ids.1 = s32[16384]{0:T(1024)} parameter(0), metadata={op_name="ids"}
  t.1 = f32[256,1024]{1,0:T(8,128)} parameter(1), metadata={op_name="params['table']"}
  h = f32[16384,1024]{1,0:T(8,128)} gather(t.1, ids.1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1024}, metadata={op_name="jit(f)/jvp()/gather"}
  e = f32[16384,1024]{1,0:T(8,128)} exponential(h), metadata={op_name="jit(f)/jvp()/exp"}
  u = f32[16384,1024]{1,0:T(8,128)} tanh(h), metadata={op_name="jit(f)/jvp()/tanh"}
  g = f32[16384,1024]{1,0:T(8,128)} multiply(e, u), metadata={op_name="jit(f)/transpose(jvp())/mul"}
  l = f32[16384,256]{1,0:T(8,128)} convolution(g, t.1), dim_labels=bf_oi->bf, metadata={op_name="jit(f)/transpose(jvp())/dot_general"}
  d = f32[256,1024]{1,0:T(8,128)} convolution(l, g), dim_labels=fb_io->bf, metadata={op_name="jit(f)/transpose(jvp())/dot_general"}
  at = s32[16384]{0:T(1024)} iota(), iota_dimension=0
  sorted = (s32[16384]{0:T(1024)}, s32[16384]{0:T(1024)}) sort(ids.1, at), dimensions={0}, to_apply=less, metadata={op_name="jit(f)/transpose(jvp())/scatter-add"}
  n = s32[16384]{0:T(1024)} get-tuple-element(sorted), index=0
  p = s32[16384]{0:T(1024)} get-tuple-element(sorted), index=1
  r = f32[16384,1024]{1,0:T(8,128)} gather(g, p), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1024}, metadata={op_name="jit(f)/transpose(jvp())/scatter-add"}
  ROOT w = f32[256,1024]{1,0:T(8,128)} scatter(d, n, r), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, to_apply=add, metadata={op_name="jit(f)/transpose(jvp())/scatter-add"}
}"#].concat();
    let said = first(&text).expect("parts");
    assert!(said.starts_with("Microbatch `ids` along dimension 0"), "{said}");
    // Beside what is added up, each place may meet the sum.
    let joined = text.replace("scatter(d, n, r)", "scatter(d, n, v)");
    let of_all = "  s = f32[1024]{0:T(1024)} reduce(d, zero), dimensions={0}, to_apply=add
  b = f32[16384,1024]{1,0:T(8,128)} broadcast(s), dimensions={1}
  v = f32[16384,1024]{1,0:T(8,128)} multiply(r, b)
  ROOT w";
    let joined = joined.replace("  ROOT w", of_all).replace("  at = ", "  zero = f32[]{:T(128)} constant(0)\n  at = ");
    assert!(!first(&joined).is_some_and(|said| said.starts_with("Microbatch")));
}

/// As the compiler adds rows to a histogram: sorted by the places that follow from their values.
#[test]
fn a_sort_before_a_scatter_ranks_nothing() {
    let text = |end: &str| {
        let text = [FUNCTIONS, r#"scattered { t = f32[256] parameter(0)
  n = s32[1024] parameter(1)
  v = f32[1024] parameter(2)
  ROOT s = f32[256]{0:T(256)} scatter(t, n, v), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, to_apply=add
}
ENTRY main {
  x.1 = f32[1024,256]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  w.1 = f32[256,16384]{1,0:T(8,128)} parameter(1), metadata={op_name="params['w']"}
  zero = f32[]{:T(128)} constant(0)
  none = f32[256]{0:T(256)} broadcast(zero), dimensions={}
  h = f32[1024,16384]{1,0:T(8,128)} dot(x.1, w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[1024,16384]{1,0:T(8,128)} exponential(h)
  u = f32[1024,16384]{1,0:T(8,128)} tanh(h)
  m = f32[1024,16384]{1,0:T(8,128)} multiply(e, u)
  g = f32[1024,16384]{1,0:T(8,128)} multiply(m, h)
  r = f32[1024]{0:T(1024)} reduce(g, zero), dimensions={1}, to_apply=add
  at = s32[1024]{0:T(1024)} convert(r)
  sorted = (s32[1024]{0:T(1024)}, f32[1024]{0:T(1024)}) sort(at, r), dimensions={0}, to_apply=less
  n = s32[1024]{0:T(1024)} get-tuple-element(sorted), index=0
  v = f32[1024]{0:T(1024)} get-tuple-element(sorted), index=1
  END
}"#]
        .concat();
        text.replace("END", end)
    };
    let said = first(&text(
        "s = f32[256]{0:T(256)} fusion(none, n, v), kind=kCustom, calls=scattered\n  ROOT both = (f32[1024]{0:T(1024)}, f32[256]{0:T(256)}) tuple(r, s)",
    ));
    assert!(said.as_deref().is_some_and(|said| said.contains("added up")), "{said:?}");
}
