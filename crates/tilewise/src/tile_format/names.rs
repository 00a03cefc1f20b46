//! The table of names.

/// Names of one kind, and their meaning.
#[derive(Debug)]
pub(super) struct Entry {
    /// The names; examples of those with a parameter.
    pub(super) names: &'static [&'static str],
    /// The pattern of names with a parameter.
    pub(super) pattern: Option<&'static str>,
    pub(super) rule: Rule,
    pub(super) used_by: &'static str,
    /// The vendor's definition.
    pub(super) source: &'static str,
}

#[derive(Debug)]
pub(super) enum Rule {
    /// These tiles, in this order of dimensions (minor to major) or the shape's.
    Tiles { order: Option<&'static [usize]>, tiles: &'static [&'static [u64]] },
    /// These tiles, in the shape's order, and elements of `bits` bits.
    Packed { tiles: &'static [&'static [u64]], bits: u64 },
    /// A TPU's tile of fewer rows where the second-minor dimension has fewer.
    Compact,
    /// The tiles as XLA writes them.
    Written,
    /// One tile of two sizes, behind this start of the name.
    Block(&'static str),
    /// The dimensions and sizes of `linalg.pack`.
    Pack(&'static str),
    /// A tag of oneDNN.
    OneDnn(&'static str),
}

pub(super) const FORMATS: &[Entry] = &[
    Entry {
        names: &["tpu-8x128"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[8, 128]] },
        used_by: "TPU: 32-bit types, a vector register of 8 × 128 words",
        source: "XLA documentation, \"Tiled layout\", \"TPU tile format\"",
    },
    Entry {
        names: &["tpu-compact-2nd-minor"],
        pattern: None,
        rule: Rule::Compact,
        used_by: "TPU: the compact 2nd minor layout, 2 × 128 for a second-minor dimension of 1 or 2, 4 × 128 for 3 or 4",
        source: "XLA documentation, \"Tiled layout\", \"TPU small tile format\"",
    },
    Entry {
        names: &["tpu-2x128"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[2, 128]] },
        used_by: "TPU: the compact 2nd minor layout of a second-minor dimension of 1 or 2",
        source: "XLA documentation, \"Tiled layout\", \"TPU small tile format\"",
    },
    Entry {
        names: &["tpu-4x128"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[4, 128]] },
        used_by: "TPU: the compact 2nd minor layout of a second-minor dimension of 3 or 4",
        source: "XLA documentation, \"Tiled layout\", \"TPU small tile format\"",
    },
    Entry {
        names: &["tpu-6x128"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[6, 128]] },
        used_by: "no TPU yet: the document announces it for a second-minor dimension of 5 or 6, perhaps of 9 to 12, too",
        source: "XLA documentation, \"Tiled layout\", \"TPU small tile format\"",
    },
    Entry {
        names: &["tpu-16bit"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[8, 128], &[2, 1]] },
        used_by: "TPU: 16-bit types, two rows of a column in one word",
        source: "XLA documentation, \"Tiled layout\", \"TPU 16 bit tile format\"",
    },
    Entry {
        names: &["tpu-16bit-alternative"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[8, 128], &[2, 1, 1, 1]] },
        used_by: "TPU: 16-bit types, the same place of two tiles in one word",
        source: "XLA documentation, \"Tiled layout\", \"Alternative TPU 16 bit tile format\"",
    },
    Entry {
        names: &["tpu-8bit"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[8, 128], &[4, 1]] },
        used_by: "TPU: 8-bit types, four rows of a column in one word",
        source: "XLA documentation, \"Tiled layout\", \"TPU 8 bit tile format\"",
    },
    Entry {
        names: &["tpu-pred"],
        pattern: None,
        rule: Rule::Packed { tiles: &[&[8, 128]], bits: 32 },
        used_by: "TPU: predicates, 4 bytes each, as 32-bit types are; compilers have come to take a byte",
        source: "XLA documentation, \"Tiled layout\", \"TPU 1 bit tile format\"",
    },
    Entry {
        names: &["tpu-1bit"],
        pattern: None,
        rule: Rule::Packed { tiles: &[&[32, 128], &[32, 1]], bits: 1 },
        used_by: "no TPU yet: predicates of one bit, 32 rows of a column in one word",
        source: "XLA documentation, \"Tiled layout\", \"TPU 1 bit tile format\"",
    },
    Entry {
        names: &["T(8,128)(2,1)"],
        pattern: Some("T(SIZE,SIZE,…)…"),
        rule: Rule::Written,
        used_by: "XLA: tiles as it writes them",
        source: "XLA documentation, \"Tiled layout\"",
    },
    Entry {
        names: &["tt-tile"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[32, 32], &[16, 16]] },
        used_by: "Tenstorrent: TILE_LAYOUT, 32 × 32 tiles of four 16 × 16 faces",
        source: "tt-metal, tech_reports/tensor_layouts/tensor_layouts.md, \"Tiled layout\"",
    },
    Entry {
        names: &["nvidia-scale-128x4"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[128, 4], &[32, 4], &[4, 1, 1, 4]] },
        used_by: "NVIDIA Blackwell: scale factors of MXFP8 and NVFP4 matrices (cuBLAS, cuDNN, tcgen05)",
        source: "cuBLAS documentation, \"1D Block Scaling Factors Layout\"",
    },
    Entry {
        names: &["cublaslt-col32"],
        pattern: None,
        rule: Rule::Tiles { order: Some(&[0, 1]), tiles: &[&[32, 1]] },
        used_by: "NVIDIA cuBLASLt: CUBLASLT_ORDER_COL32, int8 matrices A and C",
        source: "cublasLt.h, cublasLtOrder_t",
    },
    Entry {
        names: &["cublaslt-col4-4r2-8c"],
        pattern: None,
        rule: Rule::Tiles { order: Some(&[0, 1]), tiles: &[&[32, 8], &[32, 2], &[4, 32, 1], &[4, 4, 1]] },
        used_by: "NVIDIA cuBLASLt: CUBLASLT_ORDER_COL4_4R2_8C, int8 matrix B on Turing",
        source: "cublasLt.h, cublasLtOrder_t",
    },
    Entry {
        names: &["cublaslt-col32-2r-4r4"],
        pattern: None,
        rule: Rule::Tiles {
            order: Some(&[0, 1]),
            tiles: &[&[32, 32], &[32, 2], &[4, 32, 2], &[4, 1, 1, 1, 32, 2], &[32, 1]],
        },
        used_by: "NVIDIA cuBLASLt: CUBLASLT_ORDER_COL32_2R_4R4, int8 matrix B on Ampere",
        source: "cublasLt.h, cublasLtOrder_t",
    },
    Entry {
        names: &["onednn-nChw16c", "onednn-nChw8c", "onednn-OIhw4i16o4i", "onednn-OIhw16i16o", "onednn-BA16a16b2a"],
        pattern: Some("onednn-TAG"),
        rule: Rule::OneDnn("onednn-"),
        used_by: "Intel oneDNN, and with it PyTorch, TensorFlow and OpenVINO on CPUs: the format tag TAG",
        source: "oneDNN documentation, \"Understanding Memory Formats\"; dnnl_format_tag_t",
    },
    Entry {
        names: &["vnni"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[2, 1]] },
        used_by: "x86 AVX512_BF16: pairs of rows of a 16-bit matrix B [K,N] (VDPBF16PS)",
        source: "Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 2, VDPBF16PS",
    },
    Entry {
        names: &["vnni-int8"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[4, 1]] },
        used_by: "x86 AVX512_VNNI: fours of rows of an 8-bit matrix B [K,N] (VPDPBUSD)",
        source: "Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 2, VPDPBUSD",
    },
    Entry {
        names: &["amx-b"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[32, 16], &[2, 1]] },
        used_by: "x86 AMX: tiles of a 16-bit matrix B [K,N] (TDPBF16PS)",
        source: "Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 2, TDPBF16PS",
    },
    Entry {
        names: &["amx-b-int8"],
        pattern: None,
        rule: Rule::Tiles { order: None, tiles: &[&[64, 16], &[4, 1]] },
        used_by: "x86 AMX: tiles of an 8-bit matrix B [K,N] (TDPBSSD)",
        source: "Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 2, TDPBSSD",
    },
    Entry {
        names: &["linalg-pack-0:8,1:32", "linalg-pack-1:16,0:2"],
        pattern: Some("linalg-pack-DIM:TILE,DIM:TILE,…"),
        rule: Rule::Pack("linalg-pack-"),
        used_by: "MLIR: linalg.pack with inner_dims_pos DIM and inner_tiles TILE; outer_dims_perm is the shape's order",
        source: "MLIR documentation, 'linalg' Dialect, linalg.pack",
    },
    Entry {
        names: &["kleidiai-4x8", "kleidiai-8x4"],
        pattern: Some("kleidiai-NRxKR"),
        rule: Rule::Block("kleidiai-"),
        used_by: "Arm KleidiAI: a packed right-hand side [N,K] without its bias and scales (sr = 1)",
        source: "KleidiAI, kai_run_rhs_pack_nxk_… (nr, kr, sr) in kai/ukernels/matmul/pack",
    },
];

/// Known formats that are no tiling, with the reason; `…` stands for any ending.
pub(super) const REFUSED: &[(&str, &str)] = &[
    (
        "swizzle-…",
        "a swizzle is the XOR of bits of the row with bits of the column; a tile is div and mod by its sizes",
    ),
    ("tt-bfp…", "sixteen numbers share an exponent, which lies apart from them; a layout moves whole elements"),
    ("bfp…", "a group of numbers shares an exponent, which lies apart from them; a layout moves whole elements"),
    (
        "triton-…",
        "a linear layout is a matrix over bits that may XOR them, and assigns registers and lanes as well as addresses",
    ),
];
