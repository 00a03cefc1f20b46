//! Sizes of a kernel's blocks, where its library writes them into its name or its metadata.

use crate::kernel_name::words;

/// Start of a kernel's metadata, in HLO and in messages.
const METADATA: &str = "kernel_metadata={";
/// Prefixes of size names.
const LONG: [&str; 4] = ["block", "tile", "num_kv_pages_per_block", "num_queries_per_block"];
/// Short names of sizes in libraries: of blocks (`b`) and tiles (`t`), along queries (`q`), keys and values (`kv`),
/// their pages (`kvp`), and the dimensions of a product.
const SHORT: [&str; 11] = ["bq", "bkv", "bkvp", "bm", "bk", "bn", "bt", "bf", "tm", "tk", "tn"];
/// Kernels whose names end with sizes only, and the names of these sizes in order.
const IN_ORDER: [(&str, [&str; 3]); 1] =
    [("quantized_matmul_kernel_", ["batch_block_size", "out_block_size", "in_block_size"])];

/// Maximum words in a size's name, and most sizes of a kernel: no library writes more.
const MOST_WORDS: usize = 6;
const MOST_SIZES: usize = 32;

/// A size of a kernel's blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// The kernel library's name for it: `block_q`, `bkv`, `tm`.
    pub name: String,
    /// Elements along its dimension.
    pub size: u64,
}

/// The block sizes of the kernel in an instruction or a message.
///
/// They come from the kernel's metadata, as for splash attention, otherwise from the first name with sizes, as
/// `RPAm-p_128-bq_32_32-bkv_512_512`. If several sizes follow one name, the first counts.
///
/// ```
/// let name = "flash_mha_bwd_dq_block_q_major_512_block_k_major_1024_block_k_256.3";
/// let sizes = tilewise_oom::block_sizes(name);
/// let sizes: Vec<_> = sizes.iter().map(|each| (&*each.name, each.size)).collect();
/// assert_eq!(sizes, [("block_q_major", 512), ("block_k_major", 1024), ("block_k", 256)]);
/// ```
#[must_use]
pub fn block_sizes(text: &str) -> Vec<BlockSize> {
    let mut told = in_metadata(text);
    if told.is_empty() {
        told = words(text).map(in_name).find(|sizes| !sizes.is_empty()).unwrap_or_default();
    }
    told
}

/// The sizes in `{"xprof_metadata":"{\"block_q\": 512, …}"}`, or in unwrapped pairs.
fn in_metadata(text: &str) -> Vec<BlockSize> {
    let Some((_, behind)) = text.split_once(METADATA) else { return Vec::new() };
    let metadata = behind.split_once("}}").map_or(behind, |(metadata, _)| metadata);
    let is_mark = |c: char| matches!(c, '"' | '\\' | ' ' | '\n');
    let mut sizes = Vec::new();
    for pair in metadata.split([',', '{', '}']) {
        let Some((key, value)) = pair.rsplit_once(':') else { continue };
        // The name of a nested class's field is a path.
        let name = key.trim_matches(is_mark).rsplit('.').next().unwrap_or_default();
        if is_size(name) {
            add(&mut sizes, name, value.trim_matches(is_mark));
        }
    }
    sizes
}

/// The sizes of a call that makes a kernel's blocks: `BlockSizes(b=256, h=256, v=2048)`.
pub(crate) fn in_call(text: &str) -> Vec<BlockSize> {
    let mut sizes = Vec::new();
    // Of several, which one failed is unknown.
    let Some((_, behind)) = text.split_once("BlockSizes(").filter(|(_, behind)| !behind.contains("BlockSizes(")) else {
        return sizes;
    };
    let arguments = behind.split_once(')').map_or("", |(arguments, _)| arguments);
    for (name, size) in arguments.split(',').filter_map(|argument| argument.split_once('=')) {
        let name = name.trim();
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            add(&mut sizes, name, size.trim());
        }
    }
    sizes
}

fn in_name(name: &str) -> Vec<BlockSize> {
    let mut sizes = Vec::new();
    if let Some((rest, names)) = IN_ORDER.iter().find_map(|(begins, names)| Some((name.strip_prefix(begins)?, names))) {
        names.iter().zip(rest.split('_')).for_each(|(name, size)| add(&mut sizes, name, size));
        return sizes;
    }
    let parts: Vec<&str> = name.split(['_', '-']).collect();
    let mut first = 0;
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| is_number(part)) {
        let name = (first.max(at.saturating_sub(MOST_WORDS))..at)
            .map(|from| parts[from..at].join("_"))
            .find(|name| is_size(name));
        if let Some(name) = name {
            add(&mut sizes, &name, part);
        }
        first = at + 1;
    }
    sizes
}

fn add(sizes: &mut Vec<BlockSize>, name: &str, size: &str) {
    let is_new = sizes.len() < MOST_SIZES && sizes.iter().all(|each| each.name != name);
    if let Some(size) = size.parse().ok().filter(|size| *size > 0 && is_new) {
        sizes.push(BlockSize { name: name.to_owned(), size });
    }
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a name is a size's: not `blocks`, which is a count.
fn is_size(name: &str) -> bool {
    let is_dimensions = name.strip_suffix("_tile").is_some_and(|dimension| dimension.len() == 1);
    let begins = |with: &str| name.strip_prefix(with).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
    is_dimensions || SHORT.contains(&name.trim_end_matches("_sz")) || LONG.into_iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::block_sizes;

    fn told(text: &str) -> Vec<(String, u64)> {
        block_sizes(text).into_iter().map(|each| (each.name, each.size)).collect()
    }

    fn sizes(of: &[(&str, u64)]) -> Vec<(String, u64)> {
        of.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
    }

    /// Metadata of JAX's own splash attention, as printed by JAX 0.12 and libtpu 0.0.52.
    #[test]
    fn metadata_has_sizes() {
        let text = "custom-call(%q), frontend_attributes={kernel_metadata={\n\"xprof_metadata\":\"{\\\"block_q\\\": 2048, \
                    \\\"block_kv\\\": 1024, \\\"block_kv_compute\\\": 512, \\\"block_q_dkv\\\": null, \
                    \\\"use_fused_bwd_kernel\\\": false, \\\"q_layout\\\": 1}\"\n}}, metadata={op_name=\"block_b_3\"}";
        assert_eq!(told(text), sizes(&[("block_q", 2048), ("block_kv", 1024), ("block_kv_compute", 512)]));
        let paths = "kernel_metadata={\"block.bq_sz\":\"64\",\"block.bkv_sz\":512,\"serve.page_size\":128}}";
        assert_eq!(told(paths), sizes(&[("bq_sz", 64), ("bkv_sz", 512)]));
    }

    /// Names of kernels of JAX, tpu-inference and tokamax.
    #[test]
    fn names_have_sizes() {
        assert_eq!(told("RPAm-p_128-bq_32_16-bkv_512_256-sw_64"), sizes(&[("bq", 32), ("bkv", 512)]));
        assert_eq!(told("%MLA-d-bq_1-bkvp_4-p_64-vmem_100.0"), sizes(&[("bq", 1), ("bkvp", 4)]));
        let product = "gmm_v2-g_8-m_128-k_2048-n_4096-tm_128-tk_512-tn_1024.2 = bf16[";
        assert_eq!(told(product), sizes(&[("tm", 128), ("tk", 512), ("tn", 1024)]));
        let transpose = "xpose_pipeline_shape_32x128x512_xpose_1x0x2_n_tile_32_m_tile_64_pa_0_pi_1";
        assert_eq!(told(transpose), sizes(&[("n_tile", 32), ("m_tile", 64)]));
        let quantized = [("batch_block_size", 128), ("out_block_size", 512), ("in_block_size", 1024)];
        assert_eq!(told("%quantized_matmul_kernel_128_512_1024.1"), sizes(&quantized));
    }

    #[test]
    fn calls_have_sizes() {
        let called = super::in_call("BlockSizes(b=256, v = 2048, x=f(1), 3)").into_iter();
        let called: Vec<(String, u64)> = called.map(|each| (each.name, each.size)).collect();
        assert_eq!(called, sizes(&[("b", 256), ("v", 2048)]));
        assert_eq!((super::in_call("BlockSizes("), super::in_call("")), (Vec::new(), Vec::new()));
    }

    #[test]
    fn other_numbers_are_none() {
        for text in [
            "",
            "%my_tile.1 = f32[8]",
            "jit(f)/layer_3/blocks_2",
            "bq_0",
            "kernel_metadata={}}",
            "kernel_metadata={\"block_q\":",
        ] {
            assert_eq!(told(text), [], "{text}");
        }
    }
}
