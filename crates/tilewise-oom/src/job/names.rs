//! Software that a text names beside its framework.

use crate::framework::Framework;
use crate::text::word;

/// Software that a text names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Names {
    /// In a text of PyTorch, the framework whose pool may take most of the GPU: JAX or PyTorch/XLA.
    pub pool: Option<Framework>,
    /// Keras.
    pub keras: bool,
    /// FSDP of PyTorch's first version: `full_shard`, `FullyShardedDataParallel`.
    pub fsdp1: bool,
    /// Adapters (LoRA), of which alone a save needs the weights.
    pub adapters: bool,
    /// Kubernetes.
    pub kubernetes: bool,
    /// PyTorch/XLA's SPMD, whose tensors have shardings.
    pub spmd: bool,
    /// A predictor of structures, whose users run a program of others on long inputs: AlphaFold, ColabFold.
    pub structures: bool,
    /// A factorization of any matrix, whose full factor has a row and a column for each row of a tall one.
    pub factors_tall: bool,
    /// A factorization of a square matrix, which is there whole.
    pub factors_square: bool,
    /// PyMC's or NumPyro's samples that are transformed after they were drawn.
    pub transforms_samples: bool,
}

impl Names {
    /// The names in a text; `lower` is in lower case.
    pub(crate) fn of(text: &str, lower: &str, framework: Option<Framework>) -> Self {
        let has = |names: &[&str]| names.iter().any(|name| text.contains(name));
        Self {
            pool: match framework {
                Some(Framework::Torch) if has_word(text, &["jax", "jaxlib", "flax"]) => Some(Framework::Jax),
                Some(Framework::Torch) if has_word(text, &["xla", "torch_xla"]) => Some(Framework::TorchXla),
                _ => None,
            },
            // Flax's jobs read data sets by it.
            keras: lower.contains("keras") && !lower.contains("flax"),
            fsdp1: has(&["full_shard", "FullyShardedDataParallel", "fully_sharded_data_parallel"]),
            adapters: has_word(lower, &["lora", "qlora", "peft", "loraconfig", "lora_r", "lora_rank", "lora_alpha"]),
            kubernetes: has_word(lower, &["kubernetes", "kubectl", "k8s", "helm"]),
            spmd: has_word(lower, &["spmd", "mark_sharding"]),
            structures: lower.contains("alphafold") || lower.contains("colabfold"),
            factors_tall: has(&["linalg.svd(", "linalg.lstsq", "linalg.pinv(", "linalg.qr(", "torch.svd("]),
            factors_square: has(&["linalg.inv(", "linalg.cholesky", "linalg.eigh", "linalg.solve(", "linalg.slogdet("]),
            transforms_samples: has(&["Transforming variables", "_postprocess_samples"]),
        }
    }
}

/// Whether a text has one of these words.
fn has_word(text: &str, known: &[&str]) -> bool {
    word::all(text).any(|(start, end)| known.iter().any(|name| text[start..end].eq_ignore_ascii_case(name)))
}
