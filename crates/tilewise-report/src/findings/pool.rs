//! Settings of the memory that a process takes of a GPU.

use super::Words;
use tilewise_audit::{Recommendation, recommendation::finding::ElsewhereFinding};
use tilewise_oom::Framework;

pub(super) fn words(finding: &ElsewhereFinding, about: &Recommendation) -> Words {
    match finding {
        ElsewhereFinding::SetAside => {
            let words = Words::new(
                "Let the process take what it needs, or limit its part: it sets most of a GPU's memory aside as it starts, and keeps it until it \
                 ends. What arrays take of it is told by the framework, not by `nvidia-smi`",
            )
            .task("Let it take what it needs alone, or limit its part of the GPU");
            if about.framework == Some(Framework::TensorFlow) {
                return words.code(None, "export TF_FORCE_GPU_ALLOW_GROWTH=true  # or tf.config.experimental.set_memory_growth(gpu, True)");
            }
            words.code(
                None,
                "export XLA_PYTHON_CLIENT_PREALLOCATE=false  # grows as needed; slower, and pieces that don't fit are likelier\n\
                 export XLA_CLIENT_MEM_FRACTION=.3  # or a part; XLA_PYTHON_CLIENT_MEM_FRACTION in older JAX\n\
                 # in use by arrays: jax.local_devices()[0].memory_stats()['bytes_in_use']",
            )
        }
        ElsewhereFinding::KeptByPool => Words::new(
            "Leave the memory to the process's pool, which gives it to the next arrays: `nvidia-smi` counts it until the process ends. If another \
             process needs it, let each array have memory of its own, or do the work in a process that ends",
        )
        .task("If another process needs it: let arrays have memory of their own")
        .code(
            None,
            "export XLA_PYTHON_CLIENT_ALLOCATOR=platform  # deleted arrays give their memory back; each allocation takes longer\n\
             # in use by arrays: jax.local_devices()[0].memory_stats()['bytes_in_use']",
        ),
        ElsewhereFinding::UnifiedMemory { tenths, variable } => {
            let part = format!("{}.{}", tenths / 10, tenths % 10);
            let fraction = match variable {
                Some(name) => format!("{name}={part}"),
                None => format!("XLA_CLIENT_MEM_FRACTION={part}  # XLA_PYTHON_CLIENT_MEM_FRACTION in older JAX"),
            };
            Words::new(
                "Let the GPU's memory overflow into the host's, if the job may be much slower and the host has as much: pages move \
                 between them as they are read",
            )
            .task("If it may be much slower: let it overflow into the host's memory")
            .code(
                None,
                format!("export XLA_PYTHON_CLIENT_PREALLOCATE=false TF_FORCE_UNIFIED_MEMORY=1\nexport {fraction}"),
            )
        }
        _ => Words::new(""),
    }
}
