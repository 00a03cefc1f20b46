//! The server of a language model whose log a text is.

use memchr::memmem;

/// A server that sets most of the memory aside for its cache of keys and values, and loads programs beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Server {
    /// vLLM, with tpu-inference or with torch_xla.
    Vllm,
    /// SGLang, with sglang-jax.
    Sglang,
    /// Hugging Face's Text Generation Inference.
    TextGeneration,
    /// NVIDIA's TensorRT-LLM.
    TensorRt,
    /// llama.cpp, and Ollama on top of it.
    LlamaCpp,
}

/// Signs, the surer first: vLLM's kernels are in SGLang, too.
const SIGNS: [(&[&str], Server); 5] = [
    (&["sglang", "sgl_jax", "mem_fraction_static", "mem-fraction-static"], Server::Sglang),
    (
        &["vllm", "vLLM", "tpu_inference", "tpu_runner", "gpu-memory-utilization", "gpu_memory_utilization"],
        Server::Vllm,
    ),
    (&["text_generation_server", "text_generation_launcher", "text-generation-inference"], Server::TextGeneration),
    (&["TensorRT-LLM", "tensorrt_llm"], Server::TensorRt),
    // Lines of its own log: others name it where they convert models for it.
    (&["ggml_", "llm_load_", "llama_model_load", "llama_context:", "llama_new_context"], Server::LlamaCpp),
];

impl Server {
    /// The server's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::TextGeneration => "TGI",
            Self::TensorRt => "TensorRT-LLM",
            Self::LlamaCpp => "llama.cpp",
        }
    }

    /// The server's flag for the part of the memory that weights and cache may fill.
    ///
    /// ```
    /// assert_eq!(tilewise_oom::Server::Vllm.memory_flag(), "--gpu-memory-utilization");
    /// ```
    #[must_use]
    pub fn memory_flag(self) -> &'static str {
        match self {
            Self::Vllm => "--gpu-memory-utilization",
            Self::Sglang => "--mem-fraction-static",
            Self::TextGeneration => "--cuda-memory-fraction",
            Self::TensorRt => "kv_cache_free_gpu_mem_fraction",
            Self::LlamaCpp => "--n-gpu-layers",
        }
    }

    /// The server's flag for the tokens that one program takes at most.
    #[must_use]
    pub fn tokens_flag(self) -> &'static str {
        match self {
            Self::Vllm => "--max-num-batched-tokens",
            Self::Sglang => "--chunked-prefill-size",
            Self::TextGeneration => "--max-batch-prefill-tokens",
            Self::TensorRt => "max_num_tokens",
            Self::LlamaCpp => "--ubatch-size",
        }
    }

    /// The server's flag for the longest request, in tokens.
    #[must_use]
    pub fn length_flag(self) -> &'static str {
        match self {
            Self::Vllm => "--max-model-len",
            Self::Sglang => "--context-length",
            Self::TextGeneration => "--max-total-tokens",
            Self::TensorRt => "--max_seq_len",
            Self::LlamaCpp => "--ctx-size",
        }
    }

    /// The server's flag for the devices between which it divides the model.
    #[must_use]
    pub fn devices_flag(self) -> &'static str {
        match self {
            Self::Vllm => "--tensor-parallel-size",
            Self::Sglang => "--tp-size",
            Self::TextGeneration => "--num-shard",
            Self::TensorRt => "--tp_size",
            Self::LlamaCpp => "--tensor-split",
        }
    }

    /// The server's flag for the tokens of a page of its cache, if it has one.
    #[must_use]
    pub fn page_flag(self) -> Option<&'static str> {
        match self {
            Self::Vllm => Some("--block-size"),
            Self::Sglang => Some("--page-size"),
            Self::TensorRt => Some("tokens_per_block"),
            Self::TextGeneration | Self::LlamaCpp => None,
        }
    }

    /// The server's flag for the requests that it runs at once.
    #[must_use]
    pub fn requests_flag(self) -> &'static str {
        match self {
            Self::Vllm => "--max-num-seqs",
            Self::Sglang => "--max-running-requests",
            Self::TextGeneration => "--max-concurrent-requests",
            Self::TensorRt => "max_batch_size",
            Self::LlamaCpp => "--parallel",
        }
    }

    /// The server's option that captures fewer CUDA graphs, or none.
    #[must_use]
    pub fn graphs_option(self) -> &'static str {
        match self {
            Self::Vllm => "--enforce-eager",
            Self::Sglang => "--cuda-graph-max-bs 32",
            Self::TextGeneration => "--cuda-graphs 1,2,4",
            Self::TensorRt => "cuda_graph_mode=false",
            Self::LlamaCpp => "GGML_CUDA_DISABLE_GRAPHS=1",
        }
    }

    pub(crate) fn of(text: &str) -> Option<Self> {
        // `Not using vLLM.`
        let is_denied = |at: usize| {
            let before = text.as_bytes()[at.saturating_sub(10)..at].to_ascii_lowercase();
            [&b"not using "[..], b"without ", b"no "].iter().any(|word| before.ends_with(word))
        };
        let has = |sign: &&str| memmem::find_iter(text.as_bytes(), sign.as_bytes()).any(|at| !is_denied(at));
        SIGNS.iter().find(|(signs, _)| signs.iter().any(has)).map(|(_, server)| *server)
    }
}

#[cfg(test)]
mod tests {
    use super::Server;

    #[test]
    fn servers() {
        assert_eq!(Server::of("Not using vLLM."), None);
        assert_eq!(Server::of("vllm serve x, not using vLLM elsewhere"), Some(Server::Vllm));
        assert_eq!(Server::of("in function ggml_cuda_pool_vmm::alloc"), Some(Server::LlamaCpp));
    }
}
