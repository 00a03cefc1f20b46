//! Pallas kernels' declared memory, held against the TPU compiler's: `conformance/facts`, whose README says where each
//! row comes from.

use proptest::prelude::*;
use std::{collections::HashMap, path::Path};
use tilewise::{ElementType, ErrorKind, tpu::Generation};
use tilewise_kernel::{Budget, BufferCause, Kernel, KernelFit, Limits, PaddedBlock, Unsupported, vmem_bytes};

fn budget(text: &str) -> Budget {
    let kernel: Kernel = text.parse().expect(text);
    kernel.budget(kernel.generation.unwrap_or(Generation::V6e)).expect(text)
}

#[test]
fn declared_bytes_are_the_compilers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/facts/tpu_kernels.csv");
    let mut reader = csv::Reader::from_path(path).expect("the facts are in the tree");
    let mut wrong = Vec::new();
    let mut checked = 0;
    for row in reader.deserialize::<HashMap<String, String>>().map(|row| row.expect("a row")) {
        let found = budget(&row["kernel"]);
        checked += 1;
        if [found.vmem_bytes, found.smem_bytes].map(|n| n.to_string())
            != ["vmem_bytes", "smem_bytes"].map(|n| row[n].clone())
        {
            wrong.push(format!("{} {}: {} {}", row["id"], row["class"], found.vmem_bytes, found.smem_bytes));
        }
    }
    assert_eq!((checked, wrong), (229, Vec::new()));
}

/// A kernel of one block of these bounds that stays, on v6e.
fn one_block(shape: &str) -> u64 {
    budget(&format!("in {shape}")).vmem_bytes
}

#[test]
fn rows_of_blocks_stop_at_eight() {
    // Bytes of libtpu's windows; an array of 20 rows of bf16 takes 32, of 33 rows of s8 64.
    assert_eq!(one_block("bf16[20,128]"), 24 * 128 * 2);
    assert_eq!(one_block("s8[33,128]"), 40 * 128);
    let tile = |name: &str, rows, generation| {
        let element_type: ElementType = name.parse().expect("a type");
        PaddedBlock::of(element_type, &[rows, 5], generation).expect("a block").tile()[0]
    };
    let heights = |name, generation| [1, 2, 3, 5, 9, 33].map(|rows| tile(name, rows, generation));
    assert_eq!(heights("f32", Generation::V6e), [1, 2, 4, 8, 8, 8]);
    assert_eq!(heights("bf16", Generation::V6e), [2, 2, 4, 8, 8, 8]);
    assert_eq!(heights("s8", Generation::V6e), [4, 4, 4, 8, 8, 8]);
    assert_eq!(heights("s4", Generation::V6e), [8; 6]);
    assert_eq!(heights("s2", Generation::V6e), [16; 6]);
    assert_eq!(heights("pred", Generation::V6e), heights("s32", Generation::V6e));
    assert_eq!(heights("f32", Generation::V3), [2, 2, 4, 8, 8, 8]);
    for name in ["s1", "f6e3m2fn", "f64", "c64"] {
        let error = PaddedBlock::of(name.parse().expect("a type"), &[8, 128], Generation::V6e).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::UnsupportedElementType, "{name}");
    }
}

#[test]
fn buffers_are_the_compilers() {
    // Kernels compiled for v6e: f32[64,128] blocks of 8 rows, and what was allocated for the input.
    for (index, buffers, cause) in [
        ("grid 8\nin f32[64,128] block 8,128 @ 0,-", 2, BufferCause::Moves),
        ("grid 8\nin f32[64,128] block 8,128 @ -,-", 1, BufferCause::Constant),
        ("grid 8\nin f32[64,128] block 8,128 @ -,- buffered 4", 1, BufferCause::Constant),
        ("grid 8\nin f32[64,128] block 8,128 @ 0,- buffered 1", 1, BufferCause::AsAsked),
        ("grid 8,1\nin f32[64,128] block 8,128 @ 1,-", 1, BufferCause::Constant),
        ("grid 1\nin f32[64,128] block 8,128 @ 0,-", 1, BufferCause::OneStep),
        ("grid ()\nin f32[64,128] block 8,128", 1, BufferCause::OneStep),
        ("grid ?\nin f32[64,128] block 8,128 @ 0,-", 2, BufferCause::Moves),
        ("grid 8\nin f32[64,128] any", 0, BufferCause::NoWindow),
        ("grid 8\nin f32[64,128] block 8,128 @ 0,- fused", 0, BufferCause::Fused),
        // libtpu 0.0.52 on v3, v4, v5e, v5p, v6e and v7x: a copy in scalar memory.
        ("grid 8\nin f32[1,1] block 1,1 @ -,-", 0, BufferCause::OneElement),
        ("grid 8\nin bf16[1,1,1] block -,1,1 @ 0,-,-", 0, BufferCause::OneElement),
    ] {
        let window = &budget(index).windows[0];
        assert_eq!((window.buffers, window.cause, window.bytes), (buffers, cause, buffers * 4096), "{index}");
    }
}

#[test]
fn small_windows_are_the_compilers() {
    // libtpu 0.0.52 on v6e, each beside a window that moves: what was allocated for the operand.
    for (operand, bytes) in [
        ("in s32[1] smem", 512),
        ("in s32[5] smem", 512),
        ("in s32[129] smem", 1024),
        ("in f32[3,7] smem", 2048),
        ("in bf16[4,200] smem", 2048),
        ("in s8[3,100] smem", 512),
        ("in pred[7] smem", 512),
        ("in s32[3,2,5] smem", 3072),
        ("in f32[4,1,128] smem block -,1,128 @ 0,-,-", 1024),
        ("in f32[2] block 2 @ -", 1024),
        ("out f32[1,1] block 1,1 @ -,-", 1024),
    ] {
        let found = budget(&format!("grid 4\n{operand}"));
        assert_eq!((found.windows[0].bytes, found.vmem_bytes + found.smem_bytes), (bytes, bytes), "{operand}");
    }
}

#[test]
fn blocks_move_when_their_index_changes() {
    let moved = |grid: &str, index: &str| {
        budget(&format!("grid {grid}\nin f32[64,1024] block 8,128 @ {index}")).windows[0].moved_bytes
    };
    assert_eq!(moved("8,4,2", "0,-"), Some(8 * 4096));
    assert_eq!(moved("8,4,2", "0,2"), Some(8 * 4 * 2 * 4096));
    assert_eq!(moved("8,4,1", "0,2"), Some(8 * 4096));
    assert_eq!(moved("8,4,2", "-,-"), Some(4096));
    assert_eq!(moved("?,4", "1,-"), None);
}

#[test]
fn scratch_has_whole_bytes() {
    let found =
        budget("scratch vmem s4[64,128]\nscratch smem f32[5]\nscratch dma\nprefetch s32[3]\nscratch vmem f32[200]");
    let bytes: Vec<u64> = found.scratch.iter().map(|row| row.bytes).collect();
    assert_eq!(bytes, [64 * 128, 512, 0, 1024]);
    assert_eq!((found.vmem_bytes, found.smem_bytes), (64 * 128 + 1024, 1024));
}

/// The matrix product of KERNELS' search for blocks: bf16, an accumulator of f32, all dimensions 8192.
fn product(tpu: &str, [bm, bn, bk]: [u64; 3]) -> Budget {
    let grid = [bm, bn, bk].map(|block| 8192 / block);
    budget(&format!(
        "tpu {tpu}\ngrid {},{},{}\nin bf16[8192,8192] block {bm},{bk} @ 0,2\nin bf16[8192,8192] block {bk},{bn} @ 2,1
         out bf16[8192,8192] block {bm},{bn} @ 0,1\nscratch vmem f32[{bm},{bn}]\nbody {}",
        grid[0],
        grid[1],
        grid[2],
        bm * bk * 2, // the left operand of the product, which the body holds whole
    ))
}

#[test]
fn verdicts_with_a_guess_are_the_compilers() {
    // Nine maximal choices by declared bytes, and whether they compiled (libtpu 0.0.42.1).
    for (tpu, blocks, compiled) in [
        ("v5e", [512, 1024, 2048], false),
        ("v5e", [1024, 512, 2048], false),
        ("v5e", [1024, 1024, 1024], false),
        ("v5e", [256, 512, 4096], true),
        ("v5e", [256, 2048, 1024], true),
        ("v5e", [512, 256, 4096], false),
        ("v6e", [512, 2048, 2048], true),
        ("v6e", [512, 1024, 4096], false),
        ("v6e", [1024, 512, 4096], false),
    ] {
        let found = product(tpu, blocks);
        let wanted = if compiled { KernelFit::ProbablyFits } else { KernelFit::ProbablyDoesNotFit };
        assert_eq!(found.verdict, Some(wanted), "{tpu} {blocks:?}");
        assert!(found.vmem_bytes <= found.limit_bytes.expect("a limit"), "declared alone, all fit");
    }
}

#[test]
fn limits_are_known_of_all_generations_but_the_first() {
    let unknown = Generation::ALL.iter().filter(|&&generation| Limits::of(generation).is_none());
    assert_eq!(unknown.collect::<Vec<_>>(), [&Generation::V2]);
}

#[test]
fn limits_are_cut_to_the_cap() {
    let limit = |text: &str| budget(text).limit_bytes;
    assert_eq!(limit("tpu v6e"), Some(32 << 20));
    assert_eq!(limit("tpu v6e\nlimit 1024GiB"), Some((128 << 20) - (64 << 10)));
    assert_eq!(limit("tpu v5e\nlimit 1.5M"), Some(3 << 19));
    assert_eq!((limit("tpu v2"), budget("tpu v2").verdict), (None, None));
    // "A limit equal to the need compiles; one byte less fails."
    let verdict = |limit| budget(&format!("grid 8\nlimit {limit}\nin f32[64,128] block 8,128 @ 0,-")).verdict;
    assert_eq!(verdict(8192), Some(KernelFit::DeclaredFits));
    assert_eq!(verdict(8191), Some(KernelFit::DoesNotFit));
    // SMEM has a limit of its own, whatever is asked of VMEM.
    assert_eq!(budget("tpu v5e\nscratch smem f32[261632]").verdict, Some(KernelFit::DeclaredFits));
    assert_eq!(budget("tpu v5e\nscratch smem f32[261633]").verdict, Some(KernelFit::DoesNotFit));
    let needed = product("v5e", [1024, 1024, 1024]).limit_needed();
    assert!(needed.is_some_and(|bytes| bytes >= 19_251_856), "the compiler took 18.36M: {needed:?}");
    // "Used 256.00M of 128.00M vmem", "of 127.94M vmem".
    assert_eq!(vmem_bytes(Generation::V5e), Some(128 << 20));
    assert_eq!(vmem_bytes(Generation::V6e), Some(134_152_192));
}

#[test]
fn small_operands_may_be_kept() {
    let found = budget("tpu v7x\ngrid 8\nin f32[64,128] block 8,128 @ 0,-\nin f32[16384,8192] block 8,128 @ 0,-");
    assert_eq!(found.windows.iter().map(|window| window.may_be_kept).collect::<Vec<_>>(), [true, false]);
    assert_eq!(found.bytes_that_may_be_kept(), 8192);
}

#[test]
fn impossible_blocks_have_a_nearest_one() {
    let window = |text: &str| budget(&format!("grid 4\n{text}")).windows[0].clone();
    let nearest = |text: &str| match window(text).unsupported {
        Some(Unsupported::LastTwoDimensions { nearest } | Unsupported::RankOne { nearest, .. }) => nearest,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(nearest("in f32[64,512] block 12,200 @ 0,-"), [8, 256]);
    assert_eq!(nearest("in f32[64,512] block 3,128 @ 0,-"), [8, 128]);
    assert_eq!(nearest("in f32[4,8,512] block -,-,100 @ 0,-,-"), [1, 8, 128]);
    assert_eq!(nearest("in f32[10000] block 1000 @ 0"), [1024]);
    assert_eq!(nearest("in s8[10000] block 200 @ 0"), [512]);
    assert_eq!(nearest("in f32[10000] block 9990 @ 0"), [10000]);
    for legal in [
        "in f32[64,200] block 8,200 @ 0,-",
        "in f32[3,512] block 3,128 @ -,0",
        "in f32[10000] block 256 @ 0",
        "in f32[10000] block 3072 @ 0",
        "in f32[3,5] smem",
        "in f32[3,5] any",
        "in f32[64,512] block 8,128 @ -,- buffered 4",
    ] {
        assert_eq!(window(legal).unsupported, None, "{legal}");
    }
    assert_eq!(
        window("in f32[64,128] block 8,128 @ 0,- buffered 3").unsupported,
        Some(Unsupported::Buffers { asked: 3 })
    );
    assert_eq!(window("in f32[64,128] any block 8,128 @ 0,-").unsupported, Some(Unsupported::BlockOutsideWindow));
    assert_eq!(window("in f32[]").unsupported, Some(Unsupported::Scalar));
}

#[test]
fn errors_point_at_what_is_wrong() {
    for (text, kind, wrong) in [
        ("", ErrorKind::EmptyInput, ""),
        ("# nothing\n\n", ErrorKind::EmptyInput, "# nothing\n\n"),
        ("gird 4", ErrorKind::Syntax, "gird"),
        ("grid 4,x", ErrorKind::Syntax, "x"),
        ("grid 4, 0", ErrorKind::Syntax, "0"),
        ("grid 4\ngrid 4", ErrorKind::InvalidKernel, "grid"),
        ("grid 4 4", ErrorKind::Syntax, "4"),
        ("tpu v9", ErrorKind::UnknownGeneration, "v9"),
        ("limit 5 furlongs", ErrorKind::Syntax, "5 furlongs"),
        ("limit .5M", ErrorKind::Syntax, ".5M"),
        ("grid 4\nin b16[8,128]", ErrorKind::UnknownElementType, "b16"),
        ("in f32[?,128]", ErrorKind::UnboundedDimension, "f32[?,128]"),
        ("in (f32[8], f32[8])", ErrorKind::NotAnArray, "(f32[8], f32[8])"),
        ("in", ErrorKind::Syntax, ""),
        ("grid 4\nin f32[8,128] block 8 @ 0,-", ErrorKind::InvalidKernel, "8"),
        ("grid 4\nin f32[8,128] block 8, 128, 1 @ 0,-", ErrorKind::InvalidKernel, "8, 128, 1"),
        ("grid 4\nin f32[8,128] block 8,128 @ 0", ErrorKind::InvalidKernel, "0"),
        ("grid 4\nin f32[8,128] block 8,128 @ 1,-", ErrorKind::InvalidKernel, "1,-"),
        ("in f32[8,128] block 8,128 @ 0,-\ngrid ()", ErrorKind::InvalidKernel, "0,-"),
        ("grid 4\nin f32[32,128] block 8,128", ErrorKind::InvalidKernel, "8,128"),
        ("in f32[8,128] vmm", ErrorKind::Syntax, "vmm"),
        ("in f32[8,128] vmem smem", ErrorKind::Syntax, "smem"),
        ("in f32[8,128] buffered 0", ErrorKind::Syntax, "0"),
        ("scratch f32[8,128]", ErrorKind::Syntax, "f32[8,128]"),
        ("in f32[8,128] block 8,é", ErrorKind::Syntax, "é"),
    ] {
        let error = text.parse::<Kernel>().expect_err(text);
        let span = error.span().expect("a span");
        assert_eq!((error.kind(), text.get(span.clone())), (kind, Some(wrong)), "{text:?}: {error} {span:?}");
    }
    let enormous: Kernel = "scratch vmem s8[9223372036854775807]".parse().expect("read");
    assert_eq!(enormous.budget(Generation::V5e).expect_err("too large").kind(), ErrorKind::Overflow);
}

#[test]
fn a_slip_in_a_keyword_is_corrected() {
    let help = |text: &str| text.parse::<Kernel>().expect_err(text).help().map(str::to_owned).expect(text);
    for text in ["gri 4", "grids 4", "grad 4", "rid 4", "ggrid 4", "GRIT 4"] {
        assert_eq!(help(text), "did you mean `grid`?", "{text}");
    }
    for text in ["gird 4", "g 4", "girder 4", "é 4"] {
        assert!(help(text).starts_with("lines begin with tpu, grid"), "{text}");
    }
}

#[test]
fn texts_of_several_kernels_are_divided() {
    let parts = |text| tilewise_kernel::parts(text).collect::<Vec<_>>();
    assert_eq!(parts(""), [""]);
    assert_eq!(parts("a\n --- \nb"), ["a\n", "b"]);
    assert_eq!(parts("---\nb\n---\n\n"), ["", "b\n"]);
}

proptest! {
    /// Whatever the text, it is a kernel or a named error at some of its characters, and no size makes it panic.
    #[test]
    fn any_text_is_a_kernel_or_an_error(lines in prop::collection::vec(
        prop::collection::vec(
            prop::sample::select(vec![
                "in", "out", "scratch", "vmem", "smem", "any", "dma", "block", "@", "buffered", "grid", "tpu", "v5e", "limit", "body",
                "prefetch", "name", "0", "1", "-", "8,128", "0,-", "-,-", "f32[8,128]", "s4[3,5,7]", "bf16[]", "pred[9]", "s8[4611686018427387904,2]",
                "9223372036854775807", "1.5G", "?", "é", "#", ",", "()", "f32[",
            ]),
            0..8,
        ),
        0..6,
    )) {
        let text = lines.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join("\n");
        match text.parse::<Kernel>() {
            Ok(kernel) => for &generation in Generation::ALL {
                let _ = kernel.budget(generation);
            },
            Err(error) => {
                let span = error.span().expect("a span");
                prop_assert!(text.get(span.clone()).is_some(), "{text:?}: {span:?}");
            }
        }
    }
}
