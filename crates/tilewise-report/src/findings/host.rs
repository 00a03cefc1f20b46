//! The host's memory: limits of jobs, states that are saved and loaded, data sets, and pinned memory.

use super::{
    Words,
    code::INDICES_OF_LOGITS,
    words::{capitalized, printed},
};
use crate::style::{bytes, grouped};
use tilewise_audit::{Recommendation, recommendation::finding::ElsewhereFinding};
use tilewise_oom::{Framework, InputKind, InputOption, Message, Occasion, PerUnit, PrintedSize, Reason};

/// Converters that hold one tensor at a time.
const CONVERTERS: &str = "# a converter that reads tensors as it writes them; MaxText's to_maxtext: --lazy_load_tensors=true\n\
                          # or safetensors.safe_open(file, framework='np'), which reads one tensor at a time";

/// Lists the lines that make what a process has kept since its start.
const TRACED: &str = "tracemalloc.start()  # before the first step; then, after some:\n\
     print(*tracemalloc.take_snapshot().statistics('lineno')[:10], sep='\\n')";

pub(super) fn words(finding: &ElsewhereFinding, about: &Recommendation) -> Words {
    match finding {
        ElsewhereFinding::HostLimit { option, value, job } => {
            let assign = if option == "-m" { " " } else { "=" };
            let peak = job.map(|job| format!("sacct -j {job} --format=JobID,ReqMem,MaxRSS  # what it took\n"));
            let peak = peak.unwrap_or_default();
            Words::new(format!(
                "Raise `{option}` from {value}, or load and convert data and weights in parts: the job or container may have no more of the host's \
                 memory, whatever the host has free"
            ))
            .task(format!("Raise `{option}` from {value}, or take less of it at once"))
            .code(None, format!("{peak}{option}{assign}{}  # twice as much", doubled(value)))
        }
        ElsewhereFinding::HostState(Occasion::Save) => Words::new(
            "Hold less of the state on the host while it is saved: fewer bytes at once, each host its own part, no copy that lives beside the \
             training's (an asynchronous save has one); or more memory, of which a save may take several times the state's part",
        )
        .task("Hold less of the state on the host at once as it is saved")
        .of_framework(about, |framework| match framework {
            Framework::Jax => {
                Some(("import orbax.checkpoint as ocp", "handler = ocp.PyTreeCheckpointHandler(save_concurrent_gb=8)  # 96 by default"))
            }
            Framework::TorchXla => Some((
                "import torch_xla.utils.serialization as xser",
                "xser.save(state, path)  # one tensor after the other; read by xser.load(path)",
            )),
            _ => None,
        }),
        ElsewhereFinding::HostWorkers(workers) => Words::new(format!(
            "Take fewer workers, or hold the data set in NumPy arrays or a memory-mapped file: each of the{} workers of each process has a copy \
             of its Python objects sooner or later, since reading one writes its count of references",
            workers.map(|workers| format!(" {workers}")).unwrap_or_default()
        ))
        .task(match workers {
            Some(workers) => format!("Take fewer than {workers} workers, or hold the data in arrays"),
            None => "Take fewer workers (`num_workers`), or hold the data in arrays".to_owned(),
        })
        .code(
            "import pickle\nimport numpy as np",
            "rows = [np.frombuffer(pickle.dumps(row), np.uint8) for row in rows]  # in place of a list of dicts\n\
             ends, rows = np.cumsum([len(row) for row in rows]), np.concatenate(rows)",
        ),
        ElsewhereFinding::HostShuffle(elements) => Words::new(format!(
            "Shuffle fewer elements at once: `tf.data` holds {} of them as tensors of the host's, each of which takes some hundred bytes more than \
             its data. Shuffle their indices with NumPy, or the files before they are read, and then a small buffer",
            grouped(*elements)
        ))
        .task(format!("Shuffle fewer than {} elements at once, or their indices", grouped(*elements)))
        .code(
            None,
            "order = np.random.permutation(n).astype(np.int32)  # 4 bytes an element\n\
             ds = ds.shuffle(10_000)  # in place of the whole data",
        ),
        ElsewhereFinding::HostState(_) => Words::new(
            "Load the weights in parts, each straight to where it is needed, and once for a host: each process that loads them whole has a copy \
             of its own in the host's memory, and a load of many arrays at once has all of these",
        )
        .task("Load the weights in parts, and once for a host, not in each process")
        .of_framework(about, |framework| match framework {
            Framework::Torch => Some((
                "import torch",
                "model = Model.from_pretrained(name, torch_dtype=torch.bfloat16, low_cpu_mem_usage=True,\n                              \
                 device_map={'': local_rank})  # each rank to its own GPU",
            )),
            Framework::Jax => Some((
                "import orbax.checkpoint as ocp",
                "handler = ocp.PyTreeCheckpointHandler(restore_concurrent_gb=8)  # 96 by default; with a sharding for each array",
            )),
            _ => None,
        }),
        ElsewhereFinding::LargePart => Words::new(
            "Change nothing, unless the process is killed: TensorFlow warns of each array that takes more than a tenth of the host's free memory, and \
             makes it. `TF_CPP_MIN_LOG_LEVEL=2` hides the line",
        )
        .task("Change nothing, unless the process is killed"),
        ElsewhereFinding::Pinned => {
            let words = Words::new(
                "If an error follows: free the host's memory, pin less at once (fewer batches in flight), or give the pool of pinned \
                 memory another limit",
            )
            .task("If an error follows, free or pin less of the host's memory");
            match about.framework {
                Some(Framework::TensorFlow) => words.code(None, "export TF_GPU_HOST_MEM_LIMIT_IN_MB=16384  # free -m"),
                _ => words.code(None, "free -m"),
            }
        }
        ElsewhereFinding::HostCollection => Words::new(
            "Keep less of each batch that is evaluated, such as the largest logit's index in place of the logits: where the outputs of all batches \
             are joined, each process has them in the host's memory, whatever the batch. Hugging Face's `eval_accumulation_steps` only moves \
             them there",
        )
        .task("Keep less of each evaluated batch: the host may gather all outputs")
        .code(
            None,
            format!("args = TrainingArguments(…, prediction_loss_only=True)  # where the loss is enough\n# else {INDICES_OF_LOGITS}"),
        ),
        ElsewhereFinding::HostGrowth(rise) => {
            let most = rise.as_ref().map(|rise| {
                format!("; most of it comes up to `{}`, from {} to {}", rise.at, rise.from, rise.to)
            });
            let most = most.unwrap_or_default();
            Words::new(format!(
                "Find what the host keeps of each step: its memory grows from step to step{most}, so that more memory only delays the \
                 end. Lists of results, iterators and caches of data sets, states that are still being saved, and programs that are \
                 compiled anew for each shape grow so"
            ))
            .task(match rise {
                Some(rise) => format!("Find what the host keeps up to `{}`: {} → {}", rise.at, rise.from, rise.to),
                None => "Find what the host keeps of each step: its memory grows".to_owned(),
            })
            .code("import tracemalloc", TRACED)
        }
        ElsewhereFinding::HostPrograms => Words::new(
            "Compile for few shapes: each new one is a program of its own, which the process keeps on the host. Pad arrays to a few sizes, such as \
             the next power of two, with a mask for what is padding, and drop programs that are done",
        )
        .task("Pad arrays to a few shapes: each new one is compiled, and kept")
        .code(
            "import jax\nimport jax.numpy as jnp",
            "# export JAX_LOG_COMPILES=1 names each program as it is compiled\n\
             x = jnp.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x)))  # few lengths\n\
             jax.clear_caches()  # drops all programs: those that run again are compiled again",
        ),
        ElsewhereFinding::HostProcesses => Words::new(
            "See which process takes the host's memory, and when: what is full before the first step are weights, data or their copies in several \
             processes, and what grows from step to step is kept (`tracemalloc` names its lines)",
        )
        .task("See which process takes it, and whether it grows")
        .code(None, "free -g; ps aux --sort=-rss | head -5  # as it loads, before the first step, and some minutes later"),
        ElsewhereFinding::HostLargest(command, figure) => Words::new(format!(
            "Find what `{command}` keeps: it alone has {figure} GB, so that fewer workers don't help. Steps that ran needed as much, so that the rest has \
             grown since: copies of weights for a save or a transfer, results in lists, caches"
        ))
        .task(format!("Find what `{command}` keeps: it alone has {figure} GB"))
        .code("import tracemalloc", TRACED),
        ElsewhereFinding::HostProgram(all) => {
            let all = bytes(*all);
            Words::new(format!(
                "Make less at once in the program whose buffers take {all} by the compiler's report: they lie in the host's memory, as those of a program for \
                 CPUs do. Slices one after the other (`jax.lax.scan`, which adds up their gradients), indices as one flat array, or a narrower type; \
                 `tilewise audit` of the dumped program says what its peak is made of"
            ))
            .task(format!("Make less at once, in slices: the program's buffers take {all}"))
        }
        ElsewhereFinding::HostInVain => Words::new(
            "Find what the host holds twice, or for all processes at once: higher limits ended the same, as the text tells, so that more memory doesn't help. \
             A state that is made and one that is loaded into it, copies of what moves to a device, and each process's own buffers count",
        )
        .task("Find what is held twice: higher limits ended the same")
        .code(None, "ps aux --sort=-rss | head  # which processes, and how much each"),
        ElsewhereFinding::HostShared => Words::new(
            "Pin or share less of the host's memory: most of what the process held is counted as shared, which are pinned arrays, as of offloading, \
             and `/dev/shm`, as of loaders' workers. Blocks of pinned memory may be rounded up, PyTorch's to powers of two, and swap doesn't \
             take them",
        )
        .task("Pin or share less: offload fewer layers, or without pinning; fewer workers"),
        ElsewhereFinding::HostCompilation => Words::new(
            "Compile another program: the compiler takes this memory, not the data. Loops (`jax.lax.scan`) in place of layers or steps written out, \
             another size or operation for what doesn't end, fewer programs at once, or a newer compiler; more memory helps where it nearly fits",
        )
        .task("Compile less: a loop for what is written out, another size, or a newer compiler")
        .jax(
            about,
            "import jax\nimport jax.numpy as jnp",
            "weights = jax.tree.map(lambda *of: jnp.stack(of), *layers)\n\
             x, _ = jax.lax.scan(lambda x, p: (layer(p, x), None), x, weights)  # for p in layers: x = layer(p, x)",
        ),
        ElsewhereFinding::HostInputs(options) => inputs(options),
        ElsewhereFinding::HostConversion(model) => {
            let size = model.map(|model| {
                #[expect(clippy::cast_precision_loss, reason = "a number for people")]
                let billions = model.parameters as f64 / 1e9;
                let [half, whole] = [2, 4].map(|each| bytes(model.parameters.saturating_mul(each)));
                format!(": {billions} billion parameters take {half} in 16 bits, {whole} in f32, and a converter may hold both")
            });
            let size = size.unwrap_or_default();
            let words = Words::new(format!(
                "Convert tensor by tensor, with a converter that writes each as it is read, or on a host with more memory{size}"
            ))
            .task("Convert tensor by tensor, or on a host with more memory")
            .code(None, CONVERTERS);
            match size.strip_prefix(": ") {
                Some(size) => words.caveat(size),
                None => words,
            }
        }
        ElsewhereFinding::HostCopies(processes) => {
            let all = processes.map_or_else(|| "all".to_owned(), |processes| format!("all {processes}"));
            Words::new(format!(
                "Hold the model and the data once for {all} processes: make them before the processes are forked, which share what none of them \
                 writes, and move the model to its device in one process after the other; else start fewer processes"
            ))
            .task(format!("Hold the model once for {all} processes, or start fewer"))
        .of_framework(about, |framework| match framework {
            Framework::TorchXla => Some((
                "import torch_xla.distributed.xla_multiprocessing as xmp",
                "model = xmp.MpModelWrapper(Model())  # before xmp.spawn(…, start_method='fork'); in a process: model.to(device)",
            )),
            _ => None,
        })
        }
        ElsewhereFinding::HostPerUnit { per_unit, converts } => {
            let PerUnit { each, count, all, .. } = per_unit;
            let (each, all) = (bytes(*each), bytes(*all));
            let words = Words::new(format!(
                "Write or drop each part before the next is read, or take a host with more than {all}: it keeps {each} of each of {count} parts, as \
                 the figures of the text grow, and less than all of that, swap included, only moves the end"
            ))
            .task(format!("Keep less of each part, or take a host with more than {all}: {count} × {each}"));
            if *converts { words.code(None, CONVERTERS) } else { words }
        }
        ElsewhereFinding::HostPool { gigabytes, asked } => {
            let asked = asked.map_or(0, |asked| asked.div_ceil(1_000_000_000));
            let raised = gigabytes.map(|gigabytes| gigabytes.saturating_add(asked).next_multiple_of(16));
            let of = gigabytes.map(|gigabytes| format!(" of {gigabytes} GB")).unwrap_or_default();
            Words::new(format!(
                "Raise the limit{of} of the pool, if the host has the memory: pages in it are pinned, so that other processes can't use \
                 them"
            ))
            .code(None, format!("export XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB={}", raised.unwrap_or(128)))
        }
        ElsewhereFinding::OffloadLess => {
            Words::new("Offload less: keep fewer arrays in `pinned_host` memory, or divide them between more hosts")
        }
        _ => Words::new(""),
    }
}

/// Options of an input pipeline, each with its change.
fn inputs(options: &[InputOption]) -> Words {
    let each = |option: &InputOption| match (option.kind, option.value.parse::<u64>()) {
        (InputKind::Cache | InputKind::Async, _) => {
            format!("set `{}` to {}", option.name, if option.value == "true" { "false" } else { "False" })
        }
        (InputKind::AtOnce, Ok(bytes)) => format!("lower `{}` from {bytes} to {}", option.name, bytes.div_ceil(2)),
        _ => format!("lower `{}` from {}", option.name, option.value),
    };
    let set = capitalized(&options.iter().map(each).collect::<Vec<_>>().join(", "));
    let holds = |option: &InputOption| match option.kind {
        InputKind::Cache => "a cache keeps all data that was read, until an epoch's end",
        InputKind::Shuffle => "a shuffle keeps as many elements",
        InputKind::Prefetch => "batches made ahead wait there",
        InputKind::Async => "an asynchronous save writes from a copy of the state",
        _ => "each process of a host has as many bytes of the state there at once",
    };
    let held = options.iter().map(holds).collect::<Vec<_>>().join("; ");
    let what =
        if options.iter().any(|option| option.kind.is_of_state()) { "a save or a load" } else { "the input pipeline" };
    Words::new(format!("{set}: {what} holds this in the host's memory, whatever the model. Of these, {held}")).task(set)
}

/// Twice an amount, in its own unit: `400G` of `200G`.
fn doubled(amount: &str) -> String {
    let digits = amount.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = amount.split_at(digits);
    format!("{}{unit}", number.parse::<u64>().unwrap_or_default().saturating_mul(2))
}

/// The sentence on a process that Linux killed.
pub(super) fn killed(message: &Message) -> String {
    let fact = |name| message.facts.size(name).map(printed);
    let place = if message.reason() == Reason::Group {
        "in a control group of the host, such as a container's"
    } else {
        "on the host"
    };
    let size = |name| message.facts.size(name).map_or(0, PrintedSize::bytes);
    let shared = size("shared").saturating_add(size("of_files"));
    let all = size("resident").saturating_add(shared);
    // Pinned arrays and `/dev/shm` are shared memory.
    let held = match fact("resident") {
        Some(_) if shared > all / 2 => {
            format!(": the process that was killed held {}, {} of it shared or pinned", bytes(all), bytes(shared))
        }
        Some(_) if shared > 0 => format!(": the process that was killed held {}", bytes(all)),
        Some(held) => format!(": the process that was killed held {held}"),
        None => String::new(),
    };
    let in_use = fact("node_used").zip(fact("node")).map(|(used, all)| format!(": {used} of the node's {all} in use"));
    let held = in_use.unwrap_or(held);
    let limit = fact("group_limit").map(|limit| format!("; the group may have {limit}")).unwrap_or_default();
    format!("Out of memory {place}{held}{limit}.")
}
