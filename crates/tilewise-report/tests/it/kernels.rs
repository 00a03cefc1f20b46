//! Kernels whose blocks are too large: what their names and metadata say of these. Messages of libtpu 0.0.52, shortened.

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
