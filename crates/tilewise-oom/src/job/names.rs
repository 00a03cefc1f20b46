//! Software that a text names beside its framework.

use crate::framework::Framework;
use crate::text::word;

/// Software that a text names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Names {
    /// JAX in a text of PyTorch, or a library on top of it.
    pub jax: bool,
    /// Keras.
    pub keras: bool,
    /// FSDP of PyTorch's first version: `full_shard`, `FullyShardedDataParallel`.
    pub fsdp1: bool,
    /// Adapters (LoRA), of which alone a save needs the weights.
    pub adapters: bool,
    /// Kubernetes.
    pub kubernetes: bool,
}

impl Names {
    /// The names in a text; `lower` is in lower case.
    pub(crate) fn of(text: &str, lower: &str, framework: Option<Framework>) -> Self {
        let has = |names: &[&str]| names.iter().any(|name| text.contains(name));
        Self {
            jax: framework == Some(Framework::Torch) && names_jax(text),
            keras: lower.contains("keras"),
            fsdp1: has(&["full_shard", "FullyShardedDataParallel", "fully_sharded_data_parallel"]),
            adapters: ["lora", "peft"].iter().any(|name| lower.contains(name)),
            kubernetes: ["kubernetes", "kubectl", "k8s", "helm "].iter().any(|name| lower.contains(name)),
        }
    }
}

fn names_jax(text: &str) -> bool {
    const NAMES: [&str; 3] = ["jax", "jaxlib", "flax"];
    word::all(text).any(|(start, end)| NAMES.iter().any(|name| text[start..end].eq_ignore_ascii_case(name)))
}
