//! Kernels whose blocks are too large: what their names and metadata say of these. Messages of libtpu 0.0.52, shortened.

use crate::screen::first_change;
use tilewise_audit::explain;
use tilewise_oom::Message;
use tilewise_report::words;

/// The first sentence about blocks, and its code.
fn said(name: &str, metadata: &str, figures: (&str, &str)) -> (String, String) {
    let (used, limit) = figures;
    let text = format!(
        "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem while allocating on stack for \
         %{name}.1 = bf16[8,4096,128]{{2,1,0:T(8,128)(2,1)}} custom-call(%q), custom_call_target=\"tpu_custom_call\", \
         operand_layout_constraints={{bf16[8,4096,128]{{2,1,0}}}}, frontend_attributes={{kernel_metadata={{{metadata}}}}}, \
         metadata={{op_name=\"jit(f)/{name}/pallas_call\" stack_frame_id=19}}. Scoped allocation with size {used} and limit {limit} \
         exceeded scoped vmem limit by 7.88M. It should not be possible to run out of scoped vmem -"
    );
    let explained = explain(Message::parse(&text).expect("a message"), None);
    let words = explained.advice.iter().map(words).find(|words| words.sentence.contains("smaller blocks"));
    let words = words.unwrap_or_else(|| panic!("{:?}", explained.advice));
    let code = words.lines().last().unwrap_or_default().to_owned();
    (words.sentence, code)
}

#[test]
fn metadata_names_the_blocks_of_splash_attention() {
    let metadata = "\n\"xprof_metadata\":\"{\\\"block_q\\\": 2048, \\\"block_kv\\\": 2048, \\\"block_kv_compute\\\": 2048, \
                    \\\"block_q_dkv\\\": null, \\\"use_fused_bwd_kernel\\\": false, \\\"q_layout\\\": 1}\"\n";
    let (sentence, code) = said("splash_mha_fwd_no_residuals", metadata, ("23.88M", "16.00M"));
    let sizes = "now `block_q` is 2048, `block_kv` is 2048, `block_kv_compute` is 2048";
    assert!(sentence.contains(sizes), "{sentence}");
    assert_eq!(code, "block_sizes = BlockSizes(block_q=1024, block_kv=1024, block_kv_compute=1024)");
}

#[test]
fn names_have_the_blocks_of_ragged_attention() {
    let (sentence, _) = said("RPAm-p_128-bq_128_128-bkv_2048_512", "", ("38.05M", "32.00M"));
    assert!(sentence.contains("`m_block_sizes`") && sentence.contains("now `bq` is 128, `bkv` is 2048"), "{sentence}");
}

#[test]
fn tiles_of_a_grouped_product_are_divided_by_what_is_missing() {
    let metadata = "\n\"dims.size_k\":2560,\n\"lhs_cfgs.quant_block_size\":512,\n\"tiles.bucket_base\":64,\n\"tiles.tile_k\":2560,\n\
                    \"tiles.tile_m\":512,\n\"tiles.tile_n\":3072,\n\"zero_init\":true\n";
    let name = "gmm_v2-g_20-m_4096-k_2560-act_None-n_6144-tm_512-tk_2560-tn_3072";
    let (_, code) = said(name, metadata, ("57.05M", "16.00M"));
    assert_eq!(code, "tile_info = dataclasses.replace(tile_info, tile_m=128, tile_k=640, tile_n=768)");
}

#[test]
fn blocks_that_no_text_has_are_divided_where_they_are_set() {
    let (sentence, code) = said("flash_attention", "", ("23.64M", "16.00M"));
    assert!(!sentence.contains("now"), "{sentence}");
    assert!(code.contains("block_q=block_sizes.block_q // 2, block_k_major=block_sizes.block_k_major // 2"), "{code}");
}

/// Options of the library whose kernel it is, with the values that the command's own numbers give.
#[test]
fn options_reach_kernels_of_libraries() {
    let splash = |options: &str| {
        format!(
            "python -m maxtext.train max_target_length=1048576 {options}\nRESOURCE_EXHAUSTED: Allocation (size=2097152) would exceed memory \
             (size=1048576) :: #allocation3 [shape = 'u8[2097152]{{0}}', space=smem, size = 0x200000, scoped, tag = 'prefetched SMEM operand \
             0'] :: splash_mha_fwd_segmented_residuals.3"
        )
    };
    let (task, screen) = first_change(&splash("sa_block_q=1024 sa_block_kv=1024"));
    assert_eq!(task, "Raise `sa_block_q` from 1024 to 2048 and `sa_block_kv` from 1024 to 2048");
    assert!(screen.contains("1,024 × 1,024 × 2 B = 2.00 MiB"), "{screen}");
    // Without a product that is exact, the value isn't known.
    assert_eq!(first_change(&splash("sa_block_q=512")).0, "Raise `sa_block_q` (512) and `sa_block_kv`");
    let list = |rows: &[(&str, &str)]| {
        let entry = |(number, (size, shape)): (usize, &(&str, &str))| {
            format!(
                "  {}. Size: {size}\n     Operator: op_name=\"jit(step)/jit(ragged_paged_attention)/pallas_call\"\n     Shape: {shape}\n     \
                 Unpadded size: {size}\n     ==========================\n",
                number + 1
            )
        };
        rows.iter().enumerate().map(entry).collect::<String>()
    };
    let smem = "Ran out of memory in memory space smem. Used 1.06M of 1.00M smem. Exceeded smem capacity by 66.1K.\n\n  Largest program \
                allocations in smem:\n";
    let tables = list(&[("640.0K", "s32[163840]{0:T(1024)}"), ("448.0K", "s32[7,16384]{1,0:T(1,128)}")]);
    let serve = "vllm serve M --max-num-seqs 256 --max-model-len 10240";
    assert_eq!(
        first_change(&format!("{serve} --block-size 16\n{smem}{tables}")).0,
        "Raise `--block-size` from 16 to 32"
    );
    assert!(!first_change(&format!("{serve} --block-size 64\n{smem}{tables}")).1.contains("--block-size"));
    let others = first_change(&format!("sgl_jax --page-size=8\n{smem}{tables}")).0;
    assert_eq!(others, "Serve fewer or shorter sequences (`--max-running-requests`, `--context-length`)");
    let vmem = "Ran out of memory in memory space vmem while allocating on stack for %ragged_paged_attention_kernel.1 = \
                bf16[48,24,128]{2,1,0:T(8,128)(2,1)} custom-call(%p0.1), custom_call_target=\"tpu_custom_call\". Scoped allocation with size \
                20.31M and limit 16.00M exceeded scoped vmem limit by 4.31M.\n\n  Largest program allocations in vmem:\n";
    let block = list(&[("16.00M", "bf16[2,128,16,16,128]{4,3,2,1,0:T(8,128)(2,1)}")]);
    assert_eq!(
        first_change(&format!("vllm serve M --max-model-len 8192\n{vmem}{block}")).0,
        "Lower `--max-model-len` from 8192 to 1024, or raise `--tensor-parallel-size`"
    );
    // A length below the block's tokens already, and a block whose number of pages its name has.
    assert!(!first_change(&format!("vllm serve M --max-model-len 1024\n{vmem}{block}")).0.contains("--max-model-len"));
    let named = vmem.replace("ragged_paged_attention_kernel", "RPA-bq_32-bkvp_16-p_128");
    let block = list(&[("16.00M", "bf16[2,2048,8,2,128]{4,3,2,1,0:T(2,128)(2,1)}")]);
    assert_eq!(
        first_change(&format!("sgl_jax --page-size=128 --tp-size=1\n{named}{block}")).0,
        "Lower `--page-size` from 128 to 64, or raise `--tp-size` from 1 to 2"
    );
}

/// Arrays without blocks, the job's own options for blocks, and an operation that unrolls.
#[test]
fn what_fills_vmem_is_told() {
    let call = "Ran out of memory in memory space vmem while allocating on stack for %k.1 = f32[4096,1024]{1,0:T(8,128)} \
                custom-call(f32[4096,1024]{1,0:T(8,128)} %x), custom_call_target=\"tpu_custom_call\". Scoped allocation with size \
                32.00M and limit 16.00M exceeded scoped vmem limit by 16.00M.";
    let (task, screen) = first_change(call);
    assert_eq!(task, "If the kernel is yours: give it a grid and blocks: its arrays are in VMEM whole");
    assert!(screen.contains("pl.BlockSpec((512, 1024)"), "{screen}");
    let used = "Ran out of memory in memory space vmem. Used 59.79M of 16.00M vmem. Exceeded vmem capacity by 43.79M.";
    let options = format!("train --scan_query_chunk_size=2048\n{used}");
    assert_eq!(
        first_change(&options).0,
        "If they size the kernel's blocks: lower `scan_query_chunk_size` from 2048 to 512"
    );
    let helion = format!("helion.Config(block_sizes=[16], pallas_loop_type='unroll')\n{used}");
    assert!(first_change(&helion).0.starts_with("Set `pallas_loop_type` to 'emit_pipeline'"));
    let spills = format!(
        "Traceback (most recent call last):\n  File \"/lib/python3/site-packages/a/b.py\", line 7, in f\n    x = torch.cumsum(y, 0)\n\
         RuntimeError: {used}\n  Largest program allocations in vmem:\n  1. Size: 59.00M\n     XLA label: register allocator spill slots\n\
              Allocation type: scoped\n     ==========================\n"
    );
    assert_eq!(first_change(&spills).0, "Give `cumsum` (b.py:7) less at once, 32 bits, or another form");
}

/// A kernel in a library's file isn't the reader's, and an array that fills the memory isn't a spilled register.
#[test]
fn a_kernel_of_a_library_is_not_the_readers() {
    let of = |path: &str, scratch: &str| {
        format!(
            "Ran out of memory in memory space vmem while allocating on stack for %update.1 = bf16[710080,64,128]{{2,1,0:T(8,128)(2,1)}} \
             custom-call(%a), custom_call_target=\"tpu_custom_call\", metadata={{op_name=\"jit(update)/pallas_call\" source_file=\"{path}\"}}. \
             Scoped allocation with size 64.12M and limit 64.00M exceeded scoped vmem limit by 128.0K. TPU v6e\n\n  Largest program \
             allocations in vmem:\n  1. Size: {scratch}\n     Operator: op_name=\"jit(update)/pallas_call\"\n     Shape: \
             bf16[64,64,64,128]{{3,2,1,0:T(8,128)(2,1)}}\n     Allocation type: scoped\n     ==========================\n  2. Size: 128.0K\n     \
             XLA label: register allocator spill slots\n     Allocation type: scoped\n     ==========================\n"
        )
    };
    let (task, screen) = first_change(&of("/home/me/sgl_jax/srt/kernels/update.py", "64.00M"));
    // The next request to a server may be larger.
    assert_eq!(task, "Raise the limit to 73.00 MiB");
    assert!(screen.contains("Update sglang-jax, whose kernel it is") && !screen.contains("of your own"), "{screen}");
    assert!(!screen.contains("registers"), "{screen}");
    assert!(first_change(&of("/home/me/update.py", "32.00M")).1.contains("registers"));
    let gpu = "  File \".../site-packages/tokamax/_src/ops/attention/vjp.py\", line 431, in _bwd\n    return pl.pallas_call(\n\
               jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 203136, available: 166912";
    assert_eq!(first_change(gpu).0, "Set `implementation` to 'xla_chunked' in the call of tokamax, whose kernel it is");
}

/// Rows of an embedding table that fit aren't what is too large.
#[test]
fn a_sparse_core_with_too_many_samples() {
    let text = |fixed: u64, rows: u64| {
        format!(
            "No viable logical replica count for the embedding table with metadata: max_nz_per_row = 2048, max_unique_nz_per_row = \
             1024, feature_width = 16, sample_count = 131072 (last tried split factor for vector splitting = 1, last tried split factor \
             for sample dimension splitting = 1, fixed_size_allocation_bytes = {fixed}, row_dependent_size_allocation_bytes = {rows}, \
             total_spmem_size_bytes = 524288)"
        )
    };
    assert!(first_change(&text(540_672, 98_304)).0.starts_with("Give each SparseCore fewer samples"));
    assert!(first_change(&text(98_304, 540_672)).0.starts_with("Lower the limits on ids"));
}

/// A piece at any index lies in two tiles: 96 of 256 lanes, rotated by the rest.
#[test]
fn a_piece_that_begins_anywhere_is_loaded_from_two_tiles() {
    for (multiple, load) in
        [(128, "pl.ds(start, 256)], (start + 256 - i) % 256"), (8, "pl.ds(start, 16), :], (start + 16 - i) % 16")]
    {
        let (_, screen) =
            first_change(&format!("cannot statically prove that index in dimension 1 is a multiple of {multiple}"));
        assert!(screen.contains(load), "{screen}");
    }
}
