//! Named tile formats against their vendors' libraries, recorded, and against the vendors' documents.

use tilewise::{ErrorKind, Shape, TileFormat, Tiled};
use tilewise_testing::{Random, cells::unravel};

fn tiled(shape: &str) -> Tiled {
    Tiled::new(&Shape::parse_any(shape).expect(shape)).expect(shape)
}

/// oneDNN, nvmath, ttnn, IREE, LIBXSMM, KleidiAI and FasterTransformer were asked; each row has the function and its version.
#[test]
fn formats_are_what_the_vendors_libraries_make() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/facts/tile_formats.csv");
    let mut rows = 0;
    for row in csv::Reader::from_path(path).expect("facts").records() {
        let row = row.expect("a row");
        let [format, dimensions, positions, offsets] = [0, 1, 2, 3].map(|column| &row[column]);
        rows += 1;
        let tiled = tiled(&format!("s32[{}]@{format}", dimensions.replace('x', ",")));
        let bounds: Vec<usize> = dimensions.split('x').map(|bound| bound.parse().expect("a bound")).collect();
        let mut compared = 0;
        for (position, offset) in positions.split(' ').zip(offsets.split(' ')) {
            let index = unravel(position.parse().expect("a position"), &bounds);
            let index: Vec<u64> = index.iter().map(|&i| i as u64).collect();
            assert_eq!(tiled.offset_of(&index).expect("inside").to_string(), offset, "{format} {dimensions} {index:?}");
            compared += 1;
        }
        assert!(compared >= 1000, "{format} {dimensions}: {compared}");
    }
    assert_eq!(rows, 30);
}

/// An index and the array's bounds → offset, in the document's words.
type Formula = fn(&[u64], &[u64]) -> u64;

/// tt-metal, `tech_reports/tensor_layouts`: tiles row by row, in each four faces row by row, in each elements row by row.
fn tenstorrent(index: &[u64], bounds: &[u64]) -> u64 {
    let [row, column] = [index[0], index[1]];
    let tile = row / 32 * bounds[1].div_ceil(32) + column / 32;
    let face = row % 32 / 16 * 2 + column % 32 / 16;
    (tile * 4 + face) * 256 + row % 16 * 16 + column % 16
}

/// cuBLAS documentation, "1D Block Scaling Factors Layout": "offset = (outer % 32) * 16 + (outer / 32) * 4 + inner" inside a tile of
/// 128 × 4, and for tiles "offset = (`sf_inner` + `sf_outer` * `sf_inner_dim`) * 128".
fn block_scale(index: &[u64], bounds: &[u64]) -> u64 {
    let (outer, inner) = (index[0] % 128, index[1] % 4);
    let (sf_outer, sf_inner, sf_inner_dim) = (index[0] / 128, index[1] / 4 * 4, bounds[1].next_multiple_of(4));
    (sf_inner + sf_outer * sf_inner_dim) * 128 + outer % 32 * 16 + outer / 32 * 4 + inner
}

/// cublasLt.h, `CUBLASLT_ORDER_COL32`: "Column-major ordered tiles of 32 columns. The leading dimension is the stride (in elements) to
/// the beginning of next group of 32-columns. E.g. if matrix has 33 columns and 2 rows, ld must be at least (32) * 2 = 64."
fn col32(index: &[u64], bounds: &[u64]) -> u64 {
    let [row, column] = [index[0], index[1]];
    column / 32 * (32 * bounds[0]) + row * 32 + column % 32
}

/// cublasLt.h, `CUBLASLT_ORDER_COL4_4R2_8C`: "Column-major ordered tiles of composite tiles with total 32 columns and 8 rows, tile
/// composed of interleaved inner tiles of 4 columns within 4 even or odd rows in an alternating pattern. […] E.g. if matrix has 33
/// columns and 1 row, ld must be at least (32 * 8) * 1 = 256." Even rows come first, and of each eight columns the first four.
fn col4_4r2_8c(index: &[u64], bounds: &[u64]) -> u64 {
    let tile = index[1] / 32 * bounds[0].div_ceil(8) + index[0] / 8;
    let [row, column] = [index[0] % 8, index[1] % 32];
    let inner = (row % 2 * 4 + column / 8) * 2 + column % 8 / 4;
    (tile * 16 + inner) * 16 + row / 2 * 4 + column % 4
}

/// cublasLt.h, `CUBLASLT_ORDER_COL32_2R_4R4`: "Column-major ordered tiles of composite tiles with total 32 columns ands 32 rows. Element
/// offset within the tile is calculated as (((row%8)/2*4+row/8)*2+row%2)*32+col. […] E.g. if matrix has 33 columns and 1 row, ld must
/// be at least (32*32)*1 = 1024."
fn col32_2r_4r4(index: &[u64], bounds: &[u64]) -> u64 {
    let tile = index[1] / 32 * bounds[0].div_ceil(32) + index[0] / 32;
    let [row, column] = [index[0] % 32, index[1] % 32];
    tile * 1024 + ((row % 8 / 2 * 4 + row / 8) * 2 + row % 2) * 32 + column
}

/// oneDNN, "Understanding Memory Formats": nChw16c is `((n * C/16 + c/16) * H + h) * W + w) * 16 + c%16`.
fn n_chw_16c(index: &[u64], bounds: &[u64]) -> u64 {
    let [n, c, h, w] = [index[0], index[1], index[2], index[3]];
    (((n * bounds[1].div_ceil(16) + c / 16) * bounds[2] + h) * bounds[3] + w) * 16 + c % 16
}

/// Intel's manual, VDPBF16PS: "srcdest.fp32[ i ] += make_fp32(src1.bfloat16[2*i+0]) * make_fp32(t.bfloat[0])" and the same of 2*i+1
/// and 1, t being the 32 bits of lane i; VPDPBUSD has four bytes a lane. So the lane of column n holds the next 2 or 4 rows of B.
fn vnni<const ROWS: u64>(index: &[u64], bounds: &[u64]) -> u64 {
    (index[0] / ROWS * bounds[1] + index[1]) * ROWS + index[0] % ROWS
}

/// Intel's manual, TDPBF16PS: "temp1.fp32[2*n+0] += make_fp32(tsrc1.row[m].bfloat16[2*k+0]) * make_fp32(tsrc2.row[k].bfloat16[2*n+0])"
/// and the same of 2*k+1 and 2*n+1; TDPBSSD has four bytes. A tile register has 16 rows of 64 bytes, such lanes; tiles row by row.
fn amx_b<const ROWS: u64>(index: &[u64], bounds: &[u64]) -> u64 {
    let tile = index[0] / (16 * ROWS) * bounds[1].div_ceil(16) + index[1] / 16;
    let lane = index[0] % (16 * ROWS) / ROWS * 16 + index[1] % 16;
    (tile * 256 + lane) * ROWS + index[0] % ROWS
}

/// KleidiAI, `kai_run_rhs_pack_nxk_*`: `nr` is "the number of N rows to interleave on the same output row", `kr` "the number of K
/// values loaded in the single inner most loop".
fn kleidiai<const NR: u64, const KR: u64>(index: &[u64], bounds: &[u64]) -> u64 {
    let [n, k] = [index[0], index[1]];
    ((n / NR * bounds[1].div_ceil(KR) + k / KR) * NR + n % NR) * KR + k % KR
}

#[test]
fn formats_are_what_the_vendors_documents_say() {
    let cases: [(&str, &str, Formula); 13] = [
        ("bf16[333,1000]", "tt-tile", tenstorrent),
        ("u8[1000,333]", "nvidia-scale-128x4", block_scale),
        ("s8[333,1000]", "cublaslt-col32", col32),
        ("s8[333,1000]", "cublaslt-col4-4r2-8c", col4_4r2_8c),
        ("s8[333,1000]", "cublaslt-col32-2r-4r4", col32_2r_4r4),
        ("f32[5,70,33,34]", "onednn-nChw16c", n_chw_16c),
        ("bf16[333,500]", "vnni", vnni::<2>),
        ("s8[333,500]", "vnni-int8", vnni::<4>),
        ("bf16[333,500]", "amx-b", amx_b::<2>),
        ("s8[333,500]", "amx-b-int8", amx_b::<4>),
        ("f32[333,500]", "kleidiai-4x8", kleidiai::<4, 8>),
        ("s8[333,500]", "kleidiai-8x4", kleidiai::<8, 4>),
        ("f32[333,500]", "linalg-pack-0:4,1:8", kleidiai::<4, 8>),
    ];
    let mut random = Random::new(7);
    for (shape, format, formula) in cases {
        let tiled = tiled(&format!("{shape}@{format}"));
        let bounds = tiled.logical_dimensions().to_vec();
        for _ in 0..2000 {
            let index: Vec<u64> = bounds.iter().map(|&bound| random.below(bound)).collect();
            assert_eq!(tiled.offset_of(&index).expect("inside"), formula(&index, &bounds), "{format} {index:?}");
        }
    }
}

/// The header's own examples of the leading dimension.
#[test]
fn groups_of_columns_are_a_leading_dimension_apart() {
    for (shape, ld) in [
        ("s8[2,33]@cublaslt-col32", 64),
        ("s8[1,33]@cublaslt-col4-4r2-8c", 256),
        ("s8[1,33]@cublaslt-col32-2r-4r4", 1024),
    ] {
        assert_eq!(tiled(shape).offset_of(&[0, 32]), Ok(ld), "{shape}");
    }
}

#[test]
fn every_name_reads_as_it_is_listed() {
    for format in TileFormat::all() {
        let name = format.name();
        let again: TileFormat = name.parse().expect(name);
        assert_eq!(again.layout(), format.layout());
        assert!(!format.layout().is_empty() && !format.used_by().is_empty() && !format.source().is_empty());
    }
    let names: Vec<String> = TileFormat::all().map(|format| format.to_string()).collect();
    assert!(names.len() >= 18, "{names:?}");
}

#[test]
fn the_order_is_the_shapes_unless_the_format_has_one() {
    let printed = |text: &str| Shape::parse_any(text).map(|shape| shape.to_string());
    assert_eq!(printed("f32[100,300]{0,1}@tt-tile").as_deref(), Ok("f32[100,300]{0,1:T(32,32)(16,16)}"));
    assert_eq!(printed("s8[64,64]{0,1:S(1)}@cublaslt-col32").as_deref(), Ok("s8[64,64]{0,1:T(32,1)S(1)}"));
    assert_eq!(printed("s4[64,64]{1,0:E(4)}@amx-b").as_deref(), Ok("s4[64,64]{1,0:T(32,16)(2,1)E(4)}"));
    assert_eq!(printed("b(f32[8,8])@vnni").as_deref(), Ok("b(f32[8,8]{1,0:T(2,1)})"));
    assert_eq!(printed("f32[8]@onednn-a").as_deref(), Ok("f32[8]{0}"));
    assert_eq!(printed("f32[7,6,5]{0,2,1}@linalg-pack-0:4").as_deref(), Ok("f32[7,6,5]{0,2,1:T(4)}"));
    // A comment may hold what looks like a name.
    assert_eq!(printed("f32[2]/* @tt-tile */").as_deref(), Ok("f32[2]{0}"));
}

/// XLA's tiled-layout document, "Examples of tiling formats".
#[test]
fn formats_of_tpus_are_the_documents() {
    for (text, layout, bytes) in [
        ("f32[1,128]@tpu-8x128", "T(8,128)", 4096),
        ("f32[1,128]@tpu-2x128", "T(2,128)", 1024),
        ("f32[1,128]@tpu-compact-2nd-minor", "T(2,128)", 1024),
        ("f32[2,128]@tpu-compact-2nd-minor", "T(2,128)", 1024),
        ("f32[3,128]@tpu-compact-2nd-minor", "T(4,128)", 2048),
        ("f32[4,128]@tpu-4x128", "T(4,128)", 2048),
        ("f32[5,128]@tpu-compact-2nd-minor", "T(8,128)", 4096),
        ("bf16[3,5]@tpu-16bit", "T(8,128)(2,1)", 2048),
        ("bf16[32,256]@tpu-16bit-alternative", "T(8,128)(2,1,1,1)", 16384),
        ("s8[33,130]@tpu-8bit", "T(8,128)(4,1)", 10240),
        ("pred[40,130]@tpu-pred", "T(8,128)E(32)", 40960),
        ("pred[40,130]@tpu-1bit", "T(32,128)(32,1)E(1)", 2048),
        ("f32[3,5]@T(2,2)", "T(2,2)", 96),
        ("f32[4,4]@T(*,2)", "T(*,2)", 64),
    ] {
        let tiled = tiled(text);
        let shape = Shape::from(tiled.array().clone()).to_string();
        assert!(shape.ends_with(&format!("{{1,0:{layout}}}")), "{text}: {shape}");
        assert_eq!(tiled.physical_bytes(), bytes, "{text}");
    }
    // The second-minor dimension is that of memory.
    assert_eq!(tiled("f32[128,3]{0,1}@tpu-compact-2nd-minor").physical_dimensions(), [1, 1, 4, 128]);
    for (shape, name) in [
        ("f32[2,128]", Some("tpu-2x128")),
        ("s32[4,8,128]{2,0,1}", Some("tpu-4x128")),
        ("c64[300,500]", Some("tpu-8x128")),
        ("f16[1,128]", Some("tpu-16bit")),
        ("f8e5m2[320,512]", Some("tpu-8bit")),
        ("pred[8,128]", Some("tpu-pred")),
        ("s4[8,128]", None),
        ("f32[128]", None),
    ] {
        let shape: Shape = shape.parse().expect(shape);
        let format = TileFormat::documented_for_tpu(shape.as_array().expect("an array"));
        assert_eq!(format.as_ref().map(TileFormat::name), name, "{shape}");
    }
    let error = Shape::parse_any("bf16[300,500]@tpu").expect_err("no format");
    assert!(error.help().is_some_and(|help| help.contains("tilewise predict")), "{error:?}");
}

#[test]
fn what_is_no_format_says_why() {
    let error = |text: &str| Shape::parse_any(text).expect_err(text);
    for (text, kind) in [
        ("f32[8,8]@tt-tiel", ErrorKind::UnknownTileFormat),
        ("f32[8,8]@kleidiai-4", ErrorKind::UnknownTileFormat),
        ("f32[8,8]@kleidiai-04x8", ErrorKind::UnknownTileFormat),
        ("f32[8,8]@kleidiai-0x8", ErrorKind::InvalidTile),
        ("f32[8,8]@linalg-pack-0:4,0:2", ErrorKind::UnknownTileFormat),
        ("f32[8,8]@linalg-pack-18446744073709551615:4", ErrorKind::UnknownTileFormat),
        ("f32[8,8]@linalg-pack-2:4", ErrorKind::LayoutRankMismatch),
        ("f32[8,8,8,8]@onednn-nchw16c", ErrorKind::UnknownTileFormat),
        ("f32[8,8,8,8]@onednn-nChw16", ErrorKind::UnknownTileFormat),
        ("f32[8,8,8,8]@onednn-ncch", ErrorKind::UnknownTileFormat),
        ("f32[8,8,8,8]@onednn-NChw16é", ErrorKind::UnknownTileFormat),
        ("f32[8,8]@onednn-aB9223372036854775807b2b", ErrorKind::InvalidTile),
        ("f32[8]@onednn-nChw16c", ErrorKind::LayoutRankMismatch),
        ("f32[8,8]@swizzle-128b", ErrorKind::UnsupportedTileFormat),
        ("f32[8,8]@tt-bfp8", ErrorKind::UnsupportedTileFormat),
        ("f32[8,8]@bfp8", ErrorKind::UnsupportedTileFormat),
        ("f32[8,8]@triton-linear", ErrorKind::UnsupportedTileFormat),
        ("f32[8,8]{1,0:T(8,128)}@tt-tile", ErrorKind::TileFormatConflict),
        ("f32[8,8]{1,0}@cublaslt-col32", ErrorKind::TileFormatConflict),
        ("(f32[8,8])@tt-tile", ErrorKind::NotAnArray),
        ("f32[8,8]@tpu", ErrorKind::UnknownTileFormat),
        ("f32[8,8]@v5e", ErrorKind::UnknownTileFormat),
        ("f32[8]@tpu-compact-2nd-minor", ErrorKind::LayoutRankMismatch),
        ("f32[8,8]@T(0,8)", ErrorKind::InvalidTile),
        ("f32[8,8]@T(8,8)S(1)", ErrorKind::UnknownTileFormat),
        ("f32[8,8]@T(8", ErrorKind::Syntax),
    ] {
        let error = error(text);
        assert_eq!(error.kind(), kind, "{text}: {error}");
        let at = text.find('@').expect("a name") + 1;
        assert_eq!(error.span(), Some(at..text.len()), "{text}");
    }
    assert_eq!(error("f32[8,8]@").kind(), ErrorKind::TrailingInput);
    assert_eq!(error("f33[8]@tt-tile").kind(), ErrorKind::UnknownElementType);
    assert_eq!(error("f32[8]{0").kind(), "f32[8]{0".parse::<Shape>().unwrap_err().kind());
    let help = |name: &str| name.parse::<TileFormat>().unwrap_err().help().map(str::to_owned).expect("help");
    assert!(help("tt_tile").contains("`tt-tile`"), "{}", help("tt_tile"));
    assert!(help("col32").contains("`cublaslt-col32`"), "{}", help("col32"));
}
