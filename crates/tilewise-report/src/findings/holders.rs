//! A look that tells the possible holders of a device's memory apart, with a step for each.

use super::{
    Words,
    code::{ALIVE, JAX, PROCESSES},
    memory::{NO_ARRAYS, look_inside},
};
use tilewise_audit::{Recommendation, recommendation::finding::Holders};
use tilewise_oom::Framework;

/// A framework's own figures, and a line for each holder that they show.
struct Figures {
    imports: &'static str,
    print: &'static str,
    arrays: &'static str,
    program: &'static str,
    pool: &'static str,
    /// A setting by which two processes share a device.
    shared: &'static str,
}

const OF_JAX: Figures = Figures {
    imports: JAX,
    print: "print(jax.local_devices()[0].memory_stats())  # bytes_in_use, and bytes_limit; None on a CPU",
    arrays: "# much in use: arrays that a list, an old state or a traceback keeps; drop what is done. The largest:\n",
    program: "# little in use: the program. XLA_FLAGS='--xla_dump_to=dump --xla_dump_hlo_as_text', then: tilewise audit dump",
    pool: "# a limit far below the card: raise XLA_CLIENT_MEM_FRACTION, .75 by default (XLA_PYTHON_CLIENT_… in older JAX)",
    shared: "XLA_CLIENT_MEM_FRACTION=.4",
};

const OF_TORCH: Figures = Figures {
    imports: "import torch",
    print: "print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.mem_get_info())",
    arrays: "# much allocated: tensors that a list, a loss with its graph or a traceback keeps; drop what is done",
    program: "# little allocated: the call itself",
    pool: "",
    shared: "",
};

const OF_TENSORFLOW: Figures = Figures {
    imports: "import tensorflow as tf",
    print: "for d in tf.config.list_logical_devices('GPU') or tf.config.list_logical_devices('TPU'):\n    print(d.name, tf.config.experimental.get_memory_info(d.name))",
    arrays: "# much in use: tensors and models that Python keeps; drop what is done: tf.keras.backend.clear_session()",
    program: "# little in use: the step itself; fewer samples at once, or tf.recompute_grad around layers",
    pool: "",
    shared: "TF_FORCE_GPU_ALLOW_GROWTH=true",
};

const OF_TORCH_XLA: Figures = Figures {
    imports: "import torch_xla.core.xla_model as xm",
    print: "print(xm.get_memory_info(xm.xla_device()))",
    arrays: "# much in use: tensors that a list, a loss with its graph or a traceback keeps; drop what is done",
    program: OF_JAX.program,
    pool: "# a total far below the card: raise PJRT_ALLOCATOR_FRACTION, .75 by default",
    shared: "PJRT_ALLOCATOR_FRACTION=0.4",
};

/// EXLA's option against setting a GPU's memory aside, and the call that frees a tensor, behind the list of processes.
const OF_EXLA: &str = "\nconfig :exla, :clients, cuda: [platform: :cuda, preallocate: false]  # takes what is needed alone\n\
                       Nx.backend_deallocate(tensor)  # of what is done";

pub(super) fn words(found: Holders, about: &Recommendation) -> Words {
    let Holders { arrays, program, pool, others, .. } = found;
    let figures = match about.framework {
        Some(Framework::Jax) | None => OF_JAX,
        Some(Framework::Torch) => OF_TORCH,
        Some(Framework::TensorFlow) => OF_TENSORFLOW,
        Some(Framework::TorchXla) => OF_TORCH_XLA,
        Some(Framework::Exla) => {
            return processes(if arrays { "other processes or kept tensors" } else { "other processes" }, OF_EXLA);
        }
        Some(_) if program && !arrays && !others => return look_inside(NO_ARRAYS, None, about),
        Some(_) => return processes(if arrays { "other processes or kept arrays" } else { "other processes" }, ""),
    };
    let of_others = match figures.shared {
        "" => "# the rest: other processes (nvidia-smi); end them".to_owned(),
        shared => format!("# the rest: other processes (nvidia-smi); end them, or set {shared} for both"),
    };
    let all = [
        (arrays, "kept arrays", figures.arrays),
        (program, "the program", figures.program),
        (pool && !figures.pool.is_empty(), "a limit", figures.pool),
        (others, "others", &of_others),
    ];
    let found: Vec<(&str, &str)> =
        all.into_iter().filter(|(may, ..)| *may).map(|(_, name, line)| (name, line)).collect();
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    let list = match names[..] {
        ["the program"] => return look_inside(NO_ARRAYS, None, about),
        ["others"] if figures.shared.is_empty() => return processes("other processes", ""),
        ["others"] => {
            let shared = format!(": end those that are done, or set {} for both", figures.shared);
            return processes("other processes", &shared);
        }
        [.., _] if names.len() > 1 => format!("{} or {}", names[..names.len() - 1].join(", "), names[names.len() - 1]),
        _ => names.concat(),
    };
    let lines =
        found.iter().map(|(_, line)| if line.ends_with('\n') { [line, ALIVE].concat() } else { (*line).to_owned() });
    let lines: Vec<String> = lines.collect();
    Words::new(format!(
        "See right before the failing call what holds the memory, {list}: a size alone doesn't tell, and each needs another step"
    ))
    .task(format!("See what holds it: {list}"))
    .code(figures.imports, format!("# right before the failing call\n{}\n{}", figures.print, lines.join("\n")))
}

/// The look at other processes, where a framework has no figures of its own or these have the rest; with code behind it.
fn processes(holders: &str, behind: &str) -> Words {
    Words::new(format!("See whether {holders} hold the device's memory (of an NVIDIA card: `nvidia-smi`)"))
        .task(format!("See whether {holders} hold the device's memory"))
        .code(None, format!("{PROCESSES}{behind}"))
}
