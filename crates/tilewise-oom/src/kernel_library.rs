//! Libraries that have kernels of their own, and their users' options that reach these.

use crate::job::Setting;

/// An option of a library that reaches its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelOption {
    /// The library.
    pub library: &'static str,
    /// The option's name, as the text has it, or else the library.
    pub name: String,
    /// Its value in the text.
    pub value: Option<u64>,
    /// The change that makes the kernel need less.
    pub change: OptionChange,
}

/// The change of an option with which a kernel needs less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionChange {
    /// To a higher value.
    Raise,
    /// To a lower value.
    Lower,
    /// To this value, which another implementation has.
    Set(&'static str),
}

/// A memory that a kernel lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelMemory {
    Vmem,
    Smem,
    /// A GPU's shared memory.
    Shared,
}

/// Options of a library for a kernel.
struct Library {
    name: &'static str,
    /// Signs of the library in a text.
    signs: &'static [&'static str],
    /// A part of the kernel's name; empty for any.
    kernel: &'static str,
    memories: &'static [KernelMemory],
    options: &'static [(&'static str, OptionChange)],
}

const MAXTEXT: [&str; 2] = ["maxtext", "MaxText"];
const VMEM: [KernelMemory; 1] = [KernelMemory::Vmem];
const LOWER: OptionChange = OptionChange::Lower;
const RAISE: OptionChange = OptionChange::Raise;

/// The libraries; of several rows for a kernel, the first counts.
const LIBRARIES: [Library; 5] = [
    // Its tables have an entry for each pair of blocks.
    Library {
        name: "MaxText",
        signs: &MAXTEXT,
        kernel: "splash",
        memories: &[KernelMemory::Smem],
        options: &[("sa_block_q", RAISE), ("sa_block_kv", RAISE)],
    },
    // Its options have the names of the kernel's own blocks, behind `sa_`.
    Library { name: "MaxText", signs: &MAXTEXT, kernel: "splash", memories: &VMEM, options: &[] },
    // Names of its API; `xla_chunked` has no kernel, and memory as little as a kernel's.
    Library {
        name: "tokamax",
        signs: &["tokamax.dot_product_attention", "tokamax/_src/ops/attention"],
        kernel: "",
        memories: &[KernelMemory::Shared, KernelMemory::Vmem],
        options: &[("implementation", OptionChange::Set("xla_chunked"))],
    },
    // An unrolled loop has each turn's blocks in VMEM.
    Library {
        name: "Helion",
        signs: &["helion.Config(", "helion.kernel(", "helion.exc", "HELION_"],
        kernel: "",
        memories: &VMEM,
        options: &[("pallas_loop_type", OptionChange::Set("emit_pipeline")), ("block_sizes", LOWER)],
    },
    Library {
        name: "tokamax",
        signs: &["tokamax."],
        kernel: "",
        memories: &[KernelMemory::Shared, KernelMemory::Vmem],
        options: &[("implementation", OptionChange::Set("xla"))],
    },
];

/// Settings of the blocks of a kernel that many programs share.
#[derive(Debug)]
#[non_exhaustive]
pub struct KernelBlocks {
    /// A part of the kernel's name.
    sign: &'static str,
    /// The settings that matter for it.
    pub fields: &'static [&'static str],
    /// The class or call that has them; empty if unknown.
    pub owner: &'static str,
    /// The usual name of the class's objects; empty where these have to be made anew, or are none.
    pub object: &'static str,
    /// The import of the class, where the fields are all that it needs.
    pub import: Option<&'static str>,
}

const SPLASH: &str = "from jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel import BlockSizes";
const OF_SPLASH: &str = "splash attention's `BlockSizes`";
const OF_FLASH: &str = "flash attention's `BlockSizes`";
const OF_FORWARD: [&str; 3] = ["block_q", "block_k_major", "block_k"];
const PAGES: [&str; 2] = ["num_kv_pages_per_block", "num_queries_per_block"];
const OF_PHASES: &str = "`d_block_sizes`, `p_block_sizes` and `m_block_sizes`, for queries and for keys and values, of decoding, of \
                         prefill and of both";

/// The kernels; of several for a name, the first counts. Either gradient of flash attention takes all of its fields or none.
static KERNELS: [KernelBlocks; 13] = [
    kernel("splash_mha_dkv", &["block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute"], OF_SPLASH, "block_sizes"),
    kernel("splash_mha_dq", &["block_q_dq", "block_kv_dq"], OF_SPLASH, "block_sizes"),
    KernelBlocks {
        import: Some(SPLASH),
        ..kernel("splash", &["block_q", "block_kv", "block_kv_compute"], OF_SPLASH, "block_sizes")
    },
    kernel("ragged_paged_attention", &PAGES, "", ""),
    kernel("rpa_", &PAGES, "", ""),
    kernel("RPA", &["bq", "bkv"], OF_PHASES, ""),
    kernel("paged_attention", &["pages_per_compute_block"], "", ""),
    kernel("flash_attention", &OF_FORWARD, OF_FLASH, "block_sizes"),
    kernel("flash_mha_bwd_dq", &["block_q_dq", "block_k_major_dq", "block_k_dq"], OF_FLASH, ""),
    kernel(
        "flash_mha_bwd_dkv",
        &["block_q_major_dkv", "block_k_major_dkv", "block_q_dkv", "block_k_dkv"],
        OF_FLASH,
        "",
    ),
    kernel("flash_mha", &OF_FORWARD, OF_FLASH, ""),
    kernel("gmm_v2", &["tile_m", "tile_k", "tile_n"], "its `TileSizes`", "tile_info"),
    kernel("gmm", &["tiling"], "the call: rows, the contracted dimension and columns", ""),
];

const fn kernel(
    sign: &'static str,
    fields: &'static [&'static str],
    owner: &'static str,
    object: &'static str,
) -> KernelBlocks {
    KernelBlocks { sign, fields, owner, object, import: None }
}

impl KernelBlocks {
    /// The settings of the kernel that has this name, if it is known.
    ///
    /// ```
    /// let blocks = tilewise_oom::KernelBlocks::of("splash_mha_dq_no_residuals.1").expect("a known kernel");
    /// assert_eq!(blocks.fields, ["block_q_dq", "block_kv_dq"]);
    /// ```
    #[must_use]
    pub fn of(kernel: &str) -> Option<&'static Self> {
        KERNELS.iter().find(|blocks| kernel.contains(blocks.sign))
    }
}

/// Parts of the paths of files that have kernels of libraries and servers.
const OWNERS: [(&str, &str); 13] = [
    ("sgl_jax/", "sglang-jax"),
    ("tpu_inference/", "tpu-inference"),
    ("vllm/", "vLLM"),
    ("maxtext/", "MaxText"),
    ("MaxText/", "MaxText"),
    ("tokamax/", "tokamax"),
    ("easydel/", "EasyDeL"),
    ("ejkernel/", "ejkernel"),
    ("alphafold3/", "AlphaFold 3"),
    ("levanter/", "Levanter"),
    ("transformer_engine/", "Transformer Engine"),
    ("jax/experimental/pallas/ops/", "JAX"),
    ("torch_xla/experimental/", "PyTorch/XLA"),
];

impl KernelOption {
    /// The options of the library whose kernel lacks this memory.
    pub(crate) fn all(text: &str, kernel: Option<&str>, memory: KernelMemory) -> Vec<Self> {
        let is_of = |library: &&Library| {
            library.memories.contains(&memory)
                && kernel.unwrap_or_default().contains(library.kernel)
                && library.signs.iter().any(|sign| text.contains(sign))
        };
        let Some(library) = LIBRARIES.iter().find(is_of) else { return Vec::new() };
        let named = |name: &str| Setting::of_option(text, name);
        let own = library.options.iter().map(|(name, change)| ((*name).to_owned(), *change));
        let blocks = kernel.filter(|_| library.options.is_empty()).and_then(KernelBlocks::of);
        let of_blocks =
            blocks.into_iter().flat_map(|blocks| blocks.fields).map(|field| (["sa_", field].concat(), LOWER));
        let options = own.chain(of_blocks).map(|(name, change)| {
            let set = named(&name);
            let value = set.as_ref().map(|setting| setting.value);
            Self { library: library.name, name: set.map_or(name, |set| set.name), value, change }
        });
        // An implementation that the text has already isn't offered.
        let is_set = |option: &Self| match option.change {
            OptionChange::Set(to) => {
                ["='", "=\""].iter().any(|sign| text.contains(&[&option.name, *sign, to].concat()))
            }
            _ => false,
        };
        options.filter(|option| !is_set(option)).collect()
    }
}

/// The library whose file has the kernel, by the source of its operation, or else by the frame that calls `pallas_call`.
pub(crate) fn owner(text: &str) -> Option<&'static str> {
    const SOURCE: &str = "source_file=\"";
    let source = text.match_indices(SOURCE).map(|(at, sign)| &text[at + sign.len()..]);
    let of_operations = source.filter_map(|path| path.split('"').next()).filter_map(owner_of);
    let mut frames = text.lines().zip(text.lines().skip(1)).filter(|(_, code)| code.contains("pallas_call("));
    let of_frames = || frames.find_map(|(frame, _)| owner_of(frame.split_once("File \"")?.1.split('"').next()?));
    of_operations.last().or_else(of_frames)
}

fn owner_of(path: &str) -> Option<&'static str> {
    OWNERS.iter().find(|(part, _)| path.contains(part)).map(|(_, library)| *library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_libraries() {
        let of = |text: &str, kernel: &str, memory| {
            let all = KernelOption::all(text, Some(kernel), memory).into_iter();
            all.map(|option| (option.name, option.value, option.change)).collect::<Vec<_>>()
        };
        let text = "python -m maxtext.train sa_block_q=1024 sa_block_q_dq=512";
        assert_eq!(
            of(text, "splash_mha_fwd", KernelMemory::Smem),
            [("sa_block_q".to_owned(), Some(1024), RAISE), ("sa_block_kv".to_owned(), None, RAISE)]
        );
        assert_eq!(
            of(text, "splash_mha_dq_residuals", KernelMemory::Vmem)[0],
            ("sa_block_q_dq".to_owned(), Some(512), LOWER)
        );
        let code = "tokamax.dot_product_attention(q, k, v, implementation='triton')";
        let change = OptionChange::Set("xla_chunked");
        assert_eq!(of(code, "", KernelMemory::Shared), [("implementation".to_owned(), None, change)]);
        assert_eq!(of("tokamax.ragged_dot(a, b)", "", KernelMemory::Shared)[0].2, OptionChange::Set("xla"));
        for none in [
            of("train.py", "splash", KernelMemory::Smem),
            of(text, "gmm", KernelMemory::Vmem),
            of("", "", KernelMemory::Shared),
        ] {
            assert_eq!(none, []);
        }
        let chunked = "tokamax.dot_product_attention(q, k, v, implementation=\"xla_chunked\")";
        assert_eq!(of(chunked, "", KernelMemory::Shared), []);
    }

    #[test]
    fn files_of_libraries() {
        assert_eq!(
            owner("source_file=\"/home/me/sglang-jax/python/sgl_jax/srt/kernels/update.py\""),
            Some("sglang-jax")
        );
        let frame = "  File \".../site-packages/tokamax/_src/vjp.py\", line 431, in _bwd\n    return pl.pallas_call(\n";
        assert_eq!(owner(frame), Some("tokamax"));
        assert_eq!(
            (owner("source_file=\"/home/me/attention.py\""), owner("File \"sgl_jax/x.py\"\nf(x)"), owner("é")),
            (None, None, None)
        );
    }
}
