//! The framework that compiled a program.

use crate::text::{tail, word};
use memchr::memmem;

/// The framework that compiled a program, by names of operations and wordings of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Framework {
    /// JAX and what builds on it: `op_name="jit(step)/…"`.
    Jax,
    /// PyTorch without XLA, by messages of its own allocator or of Triton: `CUDA out of memory. Tried to allocate …`,
    /// `triton.runtime.errors.OutOfResources`.
    Torch,
    /// PyTorch on XLA: `op_type="aten__…"`, `Bad StatusOr access`, `XRTExecute`, `PJRT_DEVICE`.
    TorchXla,
    /// TensorFlow: `TPUCompileOp`, `StatefulPartitionedCall`, `op_type="Conv2D"`.
    TensorFlow,
    /// Reactant, of Julia.
    Reactant,
    /// EXLA, of Elixir.
    Exla,
}

/// Signs, the surest first: PyTorch's kernels are JAX's, and both run on parts of TensorFlow.
const SIGNS: [(&[&str], Framework); 11] = [
    // The class of an error is its client's, whatever else the text names.
    (&["jaxlib.xla_extension.XlaRuntimeError", "jax.errors.JaxRuntimeError"], Framework::Jax),
    (
        &[
            "torch_xla",
            "xla_client/",
            "Bad StatusOr access",
            "XRTExecute",
            "XRTCompile",
            "aten__",
            "PJRT_DEVICE",
            "XRT_TPU_CONFIG",
            "XLA_USE_BF16",
            "SyncTensorsGraph",
            "xm.xla_device",
            "xm.save(",
        ],
        Framework::TorchXla,
    ),
    (
        &[
            "torch.cuda.",
            "torch.OutOfMemoryError",
            "out of memory. Tried to allocate",
            "Error: CUDA out of memory",
            "RuntimeError: CUDA error",
            "AcceleratorError: CUDA error",
            "MPS backend out",
            "when calling `cublas",
            "triton.runtime.",
            "triton/runtime/",
        ],
        Framework::Torch,
    ),
    (&["Reactant", "LoadError:", ".jl:"], Framework::Reactant),
    (
        &[
            "EXLA",
            "Elixir",
            "elixir",
            ".livemd",
            "`iex`",
            "iex(",
            "[error] Execution of",
            "(RuntimeError)",
            "[info] XLA service",
        ],
        Framework::Exla,
    ),
    (
        &[
            "jit(",
            "'jit_",
            "pmap(",
            "jaxlib",
            "jax.errors",
            "/jax/",
            "JaxRuntimeError",
            "XlaRuntimeError",
            "pallas_call",
        ],
        Framework::Jax,
    ),
    // TensorFlow is external to JAX, and PyTorch/XLA has signs of its own.
    (&["external/org_tensorflow/"], Framework::Jax),
    (
        &[
            "StatefulPartitionedCall",
            "TPUCompile",
            "TPUReplicate",
            "tensorflow",
            "/job:worker",
            "{{node ",
            "{{function_node ",
            "OOM when allocating tensor",
            "ResourceExhaustedError",
            "XLA_Args",
        ],
        Framework::TensorFlow,
    ),
    (&["/job:tpu_worker", "/job:localservice", "PyTorch/XLA", "pytorch/xla", "Pytorch/XLA"], Framework::TorchXla),
    // Names beside a message.
    (&["import jax", "jax.", "JAX_", "XLA_PYTHON_CLIENT", "XLA_CLIENT_MEM", "flax", "axtext"], Framework::Jax),
    (
        &[
            "TF_XLA_FLAGS",
            "TensorFlow 2",
            "TensorFlow version",
            "import tensorflow",
            "tf.function",
            "tf.keras",
            "tf.ConfigProto",
            "tf.Session",
            "tf.device(",
            "tf.distribute.",
            "tf.estimator.",
            "tf.train.",
            "tf.variable_scope(",
        ],
        Framework::TensorFlow,
    ),
];

/// Prefixes of lines in logs: TensorFlow's logger, and source files. Of TensorFlow's own files XLA is a part; in JAX
/// both are external.
const PREFIXES: [(&str, Framework); 10] = [
    (" external/local_", Framework::TensorFlow),
    (" external/xla/", Framework::Jax),
    (" external/org_tensorflow/", Framework::Jax),
    (" external/tsl/", Framework::Jax),
    (" tensorflow/core/", Framework::TensorFlow),
    (" tensorflow/compiler/", Framework::TensorFlow),
    (" tensorflow/stream_executor/", Framework::TensorFlow),
    ("INFO:tensorflow:", Framework::TensorFlow),
    ("ERROR:tensorflow:", Framework::TensorFlow),
    ("torch.distributed.", Framework::Torch),
];

impl Framework {
    /// A stable name in snake case, for machines.
    ///
    /// ```
    /// assert_eq!(tilewise_oom::Framework::TorchXla.as_str(), "torch_xla");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jax => "jax",
            Self::Torch => "torch",
            Self::TorchXla => "torch_xla",
            Self::TensorFlow => "tensorflow",
            Self::Reactant => "reactant",
            Self::Exla => "exla",
        }
    }

    /// Like [`of`](Self::of), by the prefixes of a log's lines.
    pub(crate) fn of_log(log: &str) -> Option<Self> {
        let has = |sign: &str| memmem::find(log.as_bytes(), sign.as_bytes()).is_some();
        PREFIXES.iter().find(|(sign, _)| has(sign)).map(|(_, framework)| *framework)
    }

    pub(crate) fn of(text: &str) -> Option<Self> {
        let has = |sign: &&str| memmem::find(text.as_bytes(), sign.as_bytes()).is_some();
        let signed = SIGNS.iter().find(|(signs, _)| signs.iter().any(has)).map(|(_, framework)| *framework);
        // Only TensorFlow names its operations like `Conv2D`.
        let is_tensorflow = || {
            let kinds = memmem::find_iter(text.as_bytes(), b"op_type=\"");
            kinds.filter_map(|at| text.as_bytes().get(at + 9)).any(u8::is_ascii_uppercase)
        };
        signed.or_else(|| is_tensorflow().then_some(Self::TensorFlow)).or_else(|| Self::named(text))
    }

    /// The framework that prose names: of several JAX, which others are compared with.
    fn named(text: &str) -> Option<Self> {
        /// Bytes of the longest post, beside a log's.
        const LONGEST: usize = 64 << 10;
        let text = tail(text, LONGEST);
        let words: Vec<&str> = word::all(text).map(|(start, end)| &text[start..end]).collect();
        let has = |name: &str| words.iter().any(|word| word.eq_ignore_ascii_case(name));
        // Without XLA, PyTorch runs on no TPU.
        let is_on_xla = || ["xla", "tpu", "tpus", "spmd"].iter().any(|name| has(name));
        match () {
            () if has("jax") => Some(Self::Jax),
            () if has("pytorch") || has("torch") => Some(if is_on_xla() { Self::TorchXla } else { Self::Torch }),
            () if has("tensorflow") || has("keras") => Some(Self::TensorFlow),
            () => None,
        }
    }
}
