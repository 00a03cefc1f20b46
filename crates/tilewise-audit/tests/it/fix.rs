//! The fixes of arrays that real programs and published messages hold, and what they save.

use tilewise::{Shape, tpu::Generation};
use tilewise_audit::fix::{self, Basis, Fix, FixKind, Fixes, NoFix};

fn found(text: &str, generation: Option<Generation>) -> Fixes {
    fix::suggest(&Shape::parse_as_written(text).expect(text), generation)
}

fn fixes(text: &str) -> Vec<Fix> {
    found(text, Some(Generation::V5e)).list
}

/// Kind, new shape and bytes of each fix.
fn table(text: &str) -> Vec<(FixKind, String, u64)> {
    let shapes =
        |fix: &Fix| fix.arrays.iter().map(|array| array.shape.without_layout().to_string()).collect::<Vec<_>>();
    fixes(text).iter().map(|fix| (fix.kind, shapes(fix).join(" + "), fix.bytes_after)).collect()
}

fn row(kind: FixKind, shape: &str, bytes: u64) -> (FixKind, String, u64) {
    (kind, shape.to_owned(), bytes)
}

/// Arrays of published out-of-memory messages, on every generation: the first fix brings each to 1.1 times its data.
#[test]
fn published_figures_are_brought_to_their_data() {
    const M: u64 = 1 << 20;
    for (text, logical, physical, old, new) in [
        ("s32[8388608,8,4]{2,1,0:T(8,128)}", 1024 * M, 32 * 1024 * M, FixKind::Order, FixKind::Order),
        ("bf16[2048,1,2048,128]{0,1,3,2:T(4,128)(2,1)}", 1024 * M, 4 * 1024 * M, FixKind::Order, FixKind::Order),
        ("s32[2048,1,128,128,4]{4,3,2,0,1:T(8,128)}", 512 * M, 16 * 1024 * M, FixKind::Order, FixKind::Order),
        ("pred[64,512,2048]{2,1,0:T(8,128)E(32)}", 64 * M, 256 * M, FixKind::Narrow, FixKind::Narrow),
        // On v2 and v3 tiles have two rows at least, one of them for nothing.
        ("u32[12582912,1]{1,0:T(8,128)}", 48 * M, 6 * 1024 * M, FixKind::Reshape, FixKind::Order),
        ("f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)}", 40 * M + M / 2, 512 * M, FixKind::Order, FixKind::Order),
        // Ten rows take sixteen whatever the order.
        ("s32[29360128,10]{1,0:T(8,128)}", 1120 * M, 14 * 1024 * M, FixKind::Reshape, FixKind::Reshape),
    ] {
        for &generation in Generation::ALL {
            let found = found(text, Some(generation));
            let best = found.best().expect(text);
            assert_eq!(best.bytes_before, physical, "{text}");
            assert_eq!(best.bytes_after, logical, "{text} on {generation}");
            let expected = if matches!(generation, Generation::V2 | Generation::V3) { old } else { new };
            assert_eq!(best.kind, expected, "{text} on {generation}");
            assert!(!best.changes_values && best.bytes_saved() == physical - logical);
        }
    }
}

#[test]
fn edge_messages_of_a_graph_network() {
    use FixKind::{Narrow, Order, Reshape, Split, Transpose};
    assert_eq!(
        table("f32[400000,12]{1,0:T(8,128)}"),
        [
            row(Order, "f32[400000,12]", 25_600_000),
            row(Transpose, "f32[12,400000]", 25_600_000),
            row(Reshape, "f32[12500,384]", 19_206_144),
            row(Split, "f32[400000]", 19_218_432),
            row(Narrow, "bf16[400000,12]", 102_400_000),
        ]
    );
    let fixes = fixes("f32[400000,12]{1,0:T(8,128)}");
    let told: Vec<(&str, &str)> = fixes.iter().map(|fix| (fix.sentence.as_str(), fix.jax.as_str())).collect();
    assert_eq!(
        told,
        [
            (
                "leave the order of dimensions to the compiler: it puts dimension 0 (size 400000) on the 128 lanes and dimension 1 \
                 (size 12) on the rows of a tile",
                "x = jax.device_put(x, Format(Layout(major_to_minor=(1, 0)), x.sharding))  # f32[400000,12]{0,1:T(8,128)}"
            ),
            (
                "make dimension 0 (size 400000) the most minor: store the array transposed, as [12,400000]",
                "x = x.T  # f32[12,400000]"
            ),
            (
                "move a factor of 32 from dimension 0 (size 400000) into dimension 1 (size 12), to fill the 128 lanes: reshape to [12500,384]",
                "x = x.reshape(12500, 384)  # f32[12500,384]"
            ),
            (
                "split dimension 1 into 12 separate arrays: 12 × f32[400000]",
                "xs = jnp.unstack(x, axis=1)  # 12 × f32[400000]"
            ),
            (
                "store bf16 instead of f32 if 8 bits of precision suffice: half the bytes, padding included",
                "x = x.astype(jnp.bfloat16)  # bf16[400000,12]"
            ),
        ]
    );
    assert_eq!(table("bf16[400000,12]{1,0:T(8,128)(2,1)}")[0], row(Order, "bf16[400000,12]", 12_800_000));
    assert_eq!(table("f32[100000,12]{1,0:T(8,128)S(1)}")[1], row(Transpose, "f32[12,100000]", 6_406_144));
}

#[test]
fn key_value_cache_kept_row_major() {
    use FixKind::{Order, Reshape, Transpose};
    assert_eq!(
        table("bf16[64,2048,1,80]{3,2,1,0:T(2,128)(2,1)}"),
        [
            row(Order, "bf16[64,2048,1,80]", 20_971_520),
            row(Transpose, "bf16[64,1,80,2048]", 20_971_520),
            row(Reshape, "bf16[64,2048,80]", 20_971_520),
        ]
    );
    let order = &fixes("bf16[16,1024,1,80]{3,2,1,0:T(2,128)(2,1)}")[0];
    assert_eq!((order.bytes_before, order.bytes_after), (8_388_608, 2_621_440));
    let jax = "x = jax.device_put(x, Format(Layout(major_to_minor=(0, 2, 3, 1)), x.sharding))  # bf16[16,1024,1,80]{1,3,2,0:T(8,128)(2,1)}";
    assert_eq!(order.jax, jax);
    // Its new entries: one row of eight used, one lane of 128.
    assert_eq!(table("bf16[64,1,1,80]{1,3,2,0:T(8,128)(2,1)S(1)}")[0], row(Reshape, "bf16[8,640]", 10_240));
}

#[test]
fn particles_on_a_mesh() {
    use FixKind::{Narrow, Order, Reshape, Split, Transpose};
    let neighbours = table("s32[32768,8,4]{2,1,0:T(8,128)}");
    assert_eq!(
        neighbours,
        [
            row(Order, "s32[32768,8,4]", 4_194_304),
            row(Transpose, "s32[8,4,32768]", 4_194_304),
            row(Reshape, "s32[32768,32]", 4_194_304),
            row(Narrow, "s16[32768,8,4]", 67_108_864),
        ]
    );
    assert_eq!(
        table("s32[32768,8]{1,0:T(8,128)S(1)}")[..4],
        [
            row(Order, "s32[32768,8]", 1_048_576),
            row(Transpose, "s32[8,32768]", 1_048_576),
            row(Reshape, "s32[2048,128]", 1_048_576),
            row(Split, "s32[32768]", 1_048_576),
        ]
    );
    // Already in the best order: three rows of four used.
    assert_eq!(table("f32[32768,3]{0,1:T(4,128)}")[0], row(Reshape, "f32[256,384]", 393_216));
}

#[test]
fn rotation_matrices() {
    use FixKind::{Narrow, Order, Reshape, Transpose};
    assert_eq!(
        table("f32[20000,3,3]{1,2,0:T(4,128)S(1)}"),
        [
            row(Order, "f32[20000,3,3]", 964_608),
            row(Transpose, "f32[3,3,20000]", 964_608),
            row(Reshape, "f32[180000]", 720_896),
            row(Narrow, "bf16[20000,3,3]", 20_480_000),
        ]
    );
    let old = found("bf16[20000,3,3]{2,1,0:T(4,128)(2,1)}", Some(Generation::V2));
    assert_eq!(
        old.best().expect("a fix").jax.split("  #").next(),
        Some("x = jax.device_put(x, Format(Layout(major_to_minor=(1, 2, 0)), x.sharding))")
    );
    let one = &fixes("f32[3,3]{1,0:T(4,128)}")[0];
    assert_eq!((one.kind, one.replaced, one.bytes_before, one.bytes_after), (FixKind::Batch, 128, 2048, 48));
    assert_eq!(one.jax, "x = jnp.stack(xs, axis=-1)  # f32[3,3,128]");
}

#[test]
fn activations_of_convolutions() {
    use FixKind::{Narrow, Order, Reshape, Transpose};
    // 64 channels on the lanes, and no dimension is longer.
    assert_eq!(table("bf16[32,2,8,5,64]{4,2,1,3,0:T(8,128)(2,1)S(1)}"), [row(Reshape, "bf16[32,2,2560]", 327_680)]);
    assert_eq!(
        table("f32[32,16,5,4]{1,3,2,0:T(4,128)S(1)}"),
        [
            row(Reshape, "f32[512,5,4]", 40_960),
            row(Order, "f32[32,16,5,4]", 163_840),
            row(Transpose, "f32[16,5,4,32]", 163_840),
            row(Narrow, "bf16[32,16,5,4]", 163_840),
        ]
    );
}

#[test]
fn one_hot_predicates() {
    use FixKind::{Order, Reshape, Split, Transpose};
    assert_eq!(
        table("pred[4096,10]{1,0:T(32,128)(4,1)}"),
        [
            row(Reshape, "pred[64,640]", 40_960),
            row(Split, "pred[4096]", 40_960),
            row(Order, "pred[4096,10]", 65_536),
            row(Transpose, "pred[10,4096]", 65_536),
        ]
    );
    let fixes = fixes("pred[64,512,2048]{2,1,0:T(8,128)E(32)}");
    let [byte] = &fixes[..] else { panic!("{fixes:?}") };
    assert_eq!(byte.sentence, "store the predicates as s8: in this layout each takes 32 bits");
    assert_eq!(byte.jax, "x = x.astype(jnp.int8)  # s8[64,512,2048]");
    assert!(!byte.changes_values);
}

#[test]
fn sizes_just_above_a_tile() {
    let fixes = fixes("f32[8192,130]{1,0:T(8,128)}");
    let resize = fixes.iter().find(|fix| fix.kind == FixKind::Resize).expect("a size");
    assert_eq!(resize.sentence, "reduce dimension 1 from 130 to 128, so that it fills its tiles");
    assert_eq!((resize.bytes_before, resize.bytes_after, resize.changes_values), (8_388_608, 4_194_304, true));
    assert_eq!(resize.logical_bytes_after, resize.bytes_after);
    assert!(fixes.iter().take_while(|fix| fix.kind != FixKind::Resize).all(|fix| !fix.changes_values));
}

#[test]
fn generations_are_told_by_tiles() {
    let basis = |text| {
        let found = found(text, None);
        (found.generation, found.basis)
    };
    assert_eq!(basis("f32[]{:T(256)}"), (Generation::V3, Basis::Inferred));
    assert_eq!(basis("bf16[64,2048,1,80]{3,2,1,0:T(2,128)(2,1)}"), (Generation::V5e, Basis::Inferred));
    assert_eq!(basis("f32[400000,12]{1,0:T(8,128)}"), (Generation::V5e, Basis::Assumed));
    let column = |generation| found("u32[12582912,1]{1,0:T(8,128)}", generation);
    assert_eq!(column(None).list, column(Some(Generation::V6e)).list);
    assert_ne!(column(None).list, column(Some(Generation::V2)).list);
}

#[test]
fn reasons_for_no_fix() {
    let reason = |text| found(text, None).no_fix;
    assert_eq!(reason("(f32[3,3]{1,0:T(4,128)})"), Some(NoFix::NotAnArray));
    assert_eq!(reason("token[]"), Some(NoFix::NotAnArray));
    assert_eq!(reason("f32[?,3]{1,0:T(8,128)}"), Some(NoFix::Unsized));
    assert_eq!(reason("f6e2m3fn[300,3]{1,0:T(8,128)}"), Some(NoFix::UnknownElementType));
    assert_eq!(reason("u8[4611686018427387904,1]{1,0:T(8,128)}"), Some(NoFix::Unsized), "2^69 bytes with padding");
    assert_eq!(reason("f32[]{:T(128)}"), Some(NoFix::Scalar));
    assert_eq!(reason("u32[8]{0:T(128)S(4)}"), Some(NoFix::MemorySpace(4)));
    assert_eq!(reason("s32[12]{0:S(8)}"), Some(NoFix::NoPadding));
    assert_eq!(reason("f32[0,3]{1,0}"), Some(NoFix::NoPadding));
    assert_eq!(reason("f32[1024,1000]{0,1:T(8,128)}"), Some(NoFix::NoPadding));
    assert_eq!(reason("bf16[256,32001]{0,1:T(8,128)(2,1)}"), Some(NoFix::LittlePadding));
    assert_eq!(reason("u8[5000]{0:T(1024)(128)(4,1)}"), Some(NoFix::NothingHelps));
    assert_eq!(NoFix::MemorySpace(4).to_string(), "layouts in memory space 4 (smem) are not known");
}

#[test]
fn dynamic_dimensions_are_only_reordered() {
    assert_eq!(
        table("f32[<=400000,12]{1,0:T(8,128)}"),
        [
            row(FixKind::Order, "f32[<=400000,12]", 25_600_000),
            row(FixKind::Transpose, "f32[12,<=400000]", 25_600_000),
            row(FixKind::Narrow, "bf16[<=400000,12]", 102_400_000),
        ]
    );
}

#[test]
fn without_a_layout_the_default_is_meant() {
    assert_eq!(table("f32[3,3]"), table("f32[3,3]{1,0:T(4,128)}"));
    assert_eq!(table("b(f32[3,3]{1,0:T(4,128)})"), table("f32[3,3]{1,0:T(4,128)}"));
}
