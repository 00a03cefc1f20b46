//! The sort of device that a text names.

use crate::job::gpu;
use crate::text::word;
use memchr::memmem;
use tilewise::tpu::Generation;

/// The sort of device that a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Tpu,
    Gpu,
    /// Words of both.
    Several,
    /// The text has no word of either.
    Unnamed,
}

/// Words for GPUs: XLA prints statistics of a buffer assignment, and of constants without room, for GPUs only, JAX's
/// variables are of their allocator, TPUs have none of TensorFlow's best-fit allocators, and PyTorch's wordings name its own.
const GPU: [&str; 19] = [
    "GPU",
    "gpu",
    "CUDA",
    "cuda",
    "cuMem",
    "cudnn",
    "CUDNN",
    "cublas",
    "HIP",
    "hip",
    "ROCm",
    "nvidia",
    "NVIDIA",
    "GeForce",
    "BufferAssignment",
    "for new constant",
    "XLA_PYTHON_CLIENT",
    "MPS backend",
    "bfc_allocator.cc",
];

impl Device {
    pub(crate) fn of(text: &str) -> Self {
        let has = |sign: &str| memmem::find(text.as_bytes(), sign.as_bytes()).is_some();
        // Not in `output`.
        let is_tpu = |at: usize| !(text[..at].ends_with("ou") && text[at..].starts_with("tput"));
        // `v3-8`
        let names_tpu =
            has("TPU") || generations(text).next().is_some() || memmem::find_iter(text.as_bytes(), b"tpu").any(is_tpu);
        match (names_tpu, GPU.into_iter().any(has) || gpu::is_named(text)) {
            (true, false) => Self::Tpu,
            (true, true) => Self::Several,
            (false, true) => Self::Gpu,
            (false, false) => Self::Unnamed,
        }
    }
}

/// The one generation of TPUs that a text names: `a v4-8`, `TPU v5e`.
pub(crate) fn generation(text: &str) -> Option<Generation> {
    let mut named = generations(text);
    let first = named.next()?;
    named.all(|other| other == first).then_some(first)
}

/// Whether a text names TPUs, none of which has a SparseCore.
pub(crate) fn lacks_sparse_core(text: &str) -> bool {
    let mut named = generations(text).peekable();
    named.peek().is_some() && named.all(|tpu| matches!(tpu, Generation::V2 | Generation::V3 | Generation::V5e))
}

/// The generations of TPUs that a text names.
fn generations(text: &str) -> impl Iterator<Item = Generation> {
    word::all(text).filter_map(|(start, end)| {
        let (before, behind) = (&text[..start], &text[end..]);
        let generation = text[start..end].parse::<Generation>().ok().filter(|_| !before.ends_with('-'))?;
        let cores =
            behind.strip_prefix('-').map(|rest| rest.trim_start_matches(|letter: char| letter.is_ascii_digit()));
        let is_slice =
            cores.is_some_and(|rest| rest.len() + 1 < behind.len() && !rest.starts_with(char::is_alphanumeric));
        (is_slice || before.ends_with("TPU ")).then_some(generation)
    })
}

#[cfg(test)]
mod tests {
    use super::{Device, Generation, generation, lacks_sparse_core};

    #[test]
    fn generations() {
        assert_eq!(generation("a v4-8 (one chip), TPU v4"), Some(Generation::V4));
        for none in ["v4-8 and v5e-4", "llama-v2-7b", "v4 of the file", "v4-"] {
            assert_eq!(generation(none), None, "{none}");
        }
        assert!(lacks_sparse_core("v5e-1 and v2-8 alike"));
        assert!(!lacks_sparse_core("v5e-1 or v6e-1") && !lacks_sparse_core("a TPU"));
    }

    #[test]
    fn devices() {
        assert_eq!(Device::of("Out of memory while trying to allocate 9 bytes."), Device::Unnamed);
        assert_eq!(Device::of("E0 gpu_helpers.cc:1] Out of memory"), Device::Gpu);
        assert_eq!(Device::of("a TPU VM v2-8"), Device::Tpu);
        assert_eq!(Device::of("torch_tpu and cuda"), Device::Several);
        assert_eq!(Device::of("an error on v3-8 as follows"), Device::Tpu);
        assert_eq!(Device::of("on an H100, llama-v2-7b"), Device::Gpu);
        assert_eq!(Device::of("output = model(x)"), Device::Unnamed);
        assert_eq!(Device::of("the output of libtpu"), Device::Tpu);
    }
}
