//! Machines without tiles: GPUs, hosts, Tenstorrent's.

use super::{
    Words,
    code::{INDICES_OF_LOGITS, JAX},
    gpu_kernels, holders, host, pool, reason,
    run_time::{drop_old, list_alive},
    smaller, whole_array,
    words::{capitalized, lower_fraction, part, printed},
};
use crate::style::{bytes, file_name};
use tilewise::visible;
use tilewise_audit::{Recommendation, recommendation::finding::ElsewhereFinding};
use tilewise_oom::{
    Derivatives, Form, Framework, ListedProcess, Message, OomVerdict, PrintedSize, Reason, Server, UntiledMachine,
};

/// The cause, where neither the message nor its text shows one.
pub(super) const NOT_TOLD: &str = "The message itself doesn't tell what holds the memory.";

/// The step where a device gathers a state to save it.
const SAVE: &str = "Save each device's own part; adapters alone, where only they are trained; or the state gathered on the host. A second copy on the \
             device, as where a state is gathered or converted from 8 bits, has no room beside the training's";
const SAVE_TASK: &str = "Save each device's own part, adapters alone, or gather on the host";

pub(super) fn words(finding: &ElsewhereFinding, about: &Recommendation) -> Words {
    match finding {
        ElsewhereFinding::OfReason(reason) => reason::step(*reason, about),
        ElsewhereFinding::HostLimit { .. }
        | ElsewhereFinding::HostState(_)
        | ElsewhereFinding::HostWorkers(_)
        | ElsewhereFinding::HostShuffle(_)
        | ElsewhereFinding::HostCollection
        | ElsewhereFinding::HostGrowth(_)
        | ElsewhereFinding::HostProcesses
        | ElsewhereFinding::HostLargest(..)
        | ElsewhereFinding::HostProgram(_)
        | ElsewhereFinding::HostInVain
        | ElsewhereFinding::HostShared
        | ElsewhereFinding::HostCompilation
        | ElsewhereFinding::HostPrograms
        | ElsewhereFinding::HostInputs(_)
        | ElsewhereFinding::HostCopies(_)
        | ElsewhereFinding::HostConversion(_)
        | ElsewhereFinding::HostPerUnit { .. }
        | ElsewhereFinding::HostPool { .. }
        | ElsewhereFinding::OffloadLess
        | ElsewhereFinding::LargePart
        | ElsewhereFinding::Pinned => host::words(finding, about),
        ElsewhereFinding::SetAside | ElsewhereFinding::KeptByPool | ElsewhereFinding::UnifiedMemory { .. } => {
            pool::words(finding, about)
        }
        ElsewhereFinding::OldArrays { percent, has_run } => {
            let own = match percent {
                Some(percent) => format!("this process's own fill {percent} % of its pool"),
                None => "what ran before found room".to_owned(),
            };
            let words = Words::new(format!(
                "List the arrays that are alive, and delete those that are done: {own}. What is needed in whole belongs on more \
                 devices, a part on each, or on the host"
            ))
            .task(drop_old(*has_run, about));
            list_alive(words, about)
        }
        ElsewhereFinding::PoolFraction { name, value, is_raised: false, .. } => Words::new(format!(
            "Lower `{name}` from {value}: NCCL's buffers, handles of libraries and compiled programs lie beside the pool, and found no room \
             there"
        ))
        .task(format!("Lower `{name}` from {value}: others need room beside the pool"))
        .code(None, format!("export {name}={}", lower_fraction(value))),
        ElsewhereFinding::TensorFlowBeside(taken) => {
            let (up_to, it_may) = match taken.map(bytes) {
                Some(taken) => (format!(" for up to {taken}"), format!("it may hold {taken} of it")),
                None => (String::new(), "JAX loses what it takes".to_owned()),
            };
            Words::new(format!(
                "Keep TensorFlow off the GPU: in this process it opens the device{up_to}, and what it takes is lost to JAX, though it may only \
                 read data"
            ))
            .task(format!("Keep TensorFlow off the GPU: {it_may}"))
            .code("import tensorflow as tf", "tf.config.set_visible_devices([], 'GPU')  # right after the import")
        }
        ElsewhereFinding::PoolBeside { gives_nothing_back: true, .. } => Words::new(
            "Run JAX's part in a process of its own that ends: what its allocator once took it keeps for itself until the process ends, though it \
             sets nothing aside, and whatever is deleted. `XLA_PYTHON_CLIENT_ALLOCATOR=platform` gives back each array that is deleted, and is slow",
        )
        .task("Run JAX's part in a process that ends: until then it gives nothing back")
        .code(
            "import multiprocessing\nfrom concurrent.futures import ProcessPoolExecutor",
            "with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as one:\n    \
                 result = one.submit(predict, inputs).result()  # NumPy arrays\n\
             # else: export XLA_PYTHON_CLIENT_ALLOCATOR=platform, and delete the arrays",
        ),
        ElsewhereFinding::PoolBeside { of, .. } => {
            let (of, setting) = match of {
                Framework::TorchXla => ("XLA", "PJRT_ALLOCATOR_PREALLOCATE=false"),
                _ => ("JAX", "XLA_PYTHON_CLIENT_PREALLOCATE=false"),
            };
            let or = if of == "JAX" { "  # or JAX_PLATFORMS=cpu, before Python starts" } else { "  # before Python starts" };
            Words::new(format!(
                "Keep {of} off the GPU, or let it set nothing aside: where a process uses both, {of} takes most of the GPU for a pool as it \
                 starts, which PyTorch sees as memory of others"
            ))
            .task(format!("If {of} is in this process, too: let it set nothing aside"))
            .code(None, format!("export {setting}{or}"))
        }
        ElsewhereFinding::LlamaLayers { is_of_batch: true, .. } => Words::new(
            "Compute fewer tokens at once: the buffers of a batch found no room beside weights and cache, and grow with its tokens and the context. \
             Several copies for a pipeline between GPUs multiply them",
        )
        .task("Compute fewer tokens at once: a batch's buffers found no room")
        .code(
            None,
            "llama-server -m MODEL --ubatch-size 128 --flash-attn on  # -ub, -fa; or a smaller --ctx-size\n\
             # on several GPUs: build with -DGGML_SCHED_MAX_COPIES=1",
        ),
        ElsewhereFinding::LlamaLayers { layers, is_of_context, .. } => {
            let now = layers.map(|layers| format!("; {layers} lie there now")).unwrap_or_default();
            let fewer = layers.map_or(20, |layers| layers - layers.div_ceil(8));
            Words::new(format!(
                "Put fewer layers on the GPU, or serve a shorter context: llama.cpp holds the weights of these layers, their cache of keys and \
                 values, and buffers for a batch{now}. Of several GPUs each takes a part"
            ))
            .task(if *is_of_context {
                "Serve a shorter context: one request is larger than the GPU"
            } else {
                "Put fewer layers on the GPU, or serve a shorter context"
            })
            .code(
                None,
                format!(
                    "llama-server -m MODEL --n-gpu-layers {fewer} --ctx-size 4096  # of two GPUs: --tensor-split 3,1\n\
                     # Ollama: /set parameter num_gpu {fewer}, num_ctx 4096; OLLAMA_SCHED_SPREAD=1 spreads over all GPUs"
                ),
            )
        }
        ElsewhereFinding::PoolFraction { name, value, to: Some(to), .. } => Words::new(format!(
            "Raise `{name}` from {value} to .{to:02}, if the job has the device for itself: what is in use and what is asked for are more than \
             the pool may have, and together fit into that part of the memory"
        ))
        .task(format!("If the device is the job's own: raise the pool's part from {value} to .{to:02}"))
        .code(None, match &**name {
            "XLA_CLIENT_MEM_FRACTION" => format!("export {name}=.{to:02}  # XLA_PYTHON_CLIENT_MEM_FRACTION in older JAX"),
            _ => format!("export {name}=.{to:02}"),
        }),
        ElsewhereFinding::PoolFraction { name, value, .. } => Words::new(format!(
            "Raise `{name}` from {value}, or take it out, if the job has the device for itself: its arrays may have no more than that \
             part of the memory"
        ))
        .task(format!("If the device is the job's own: raise `{name}` from {value}"))
        .code(None, format!("export {name}=.9")),
        ElsewhereFinding::Unpooled(name, value) => Words::new(format!(
            "Take `{name}={value}` out: without a pool each array is an allocation of the driver's, and between these memory falls into \
             pieces"
        ))
        .task(format!("Take `{name}={value}` out: it leaves memory in pieces"))
        .code(None, format!("unset {name}")),
        ElsewhereFinding::Doubles { is_listed } => Words::new(format!(
            "Compute in f32, if its precision suffices: {}, which takes twice as much",
            if *is_listed { "most of what is listed is f64" } else { "`jax_enable_x64` makes f64 of f32" }
        ))
        .task("If its precision suffices: compute in f32 (f64 now)")
        .jax(about, JAX, "jax.config.update('jax_enable_x64', False)"),
        ElsewhereFinding::Holders(found) => holders::words(*found, about),
        ElsewhereFinding::Smaller(largest) => smaller::words(largest, about),
        ElsewhereFinding::TooLarge(times) => Words::new(format!(
            "Ask for less than 1/{times} at once, or divide it between more than {times} devices: one request is for more than the device has, so that \
             nothing else in its memory is the cause. Fewer or smaller samples, rows or tokens make it smaller, as does a narrower type; what it \
             is made of lies beside it"
        ))
        .task(format!("Ask for less than 1/{times} at once, or divide it between more than {times} devices")),
        ElsewhereFinding::NoFailure(Some(error)) => Words::new(format!(
            "Look for the cause in the text's error, which isn't about memory: {error}. What asked for memory tries again with less"
        ))
        .task("Leave memory as it is: the text's error is another")
        .caveat(error.clone()),
        ElsewhereFinding::NoFailure(None) => Words::new(
            "Change nothing, unless the step is slow or an error follows: what asked, such as a convolution for its workspace or a pool \
             that grows, tries again with less memory. Other processes may hold the rest",
        ),
        ElsewhereFinding::TorchCheckpoint => {
            let (fewer, task) = if about.is_batch_ruled_out {
                ("shorter or smaller inputs", "Put checkpoints around the layers, or take shorter inputs")
            } else {
                ("fewer samples at once", "Take fewer samples at once, or put checkpoints around the layers")
            };
            Words::new(format!("Keep less for the backward pass: {fewer}, or checkpoints around the layers"))
                .task(task)
                .code(
                    "import torch",
                    "model.gradient_checkpointing_enable()  # diffusers: enable_gradient_checkpointing(); scripts: --gradient_checkpointing\n\
                     # else y = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False) in place of y = layer(x)",
                )
        }
        ElsewhereFinding::TorchLess { run, is_last_of_many } => {
            let fewer = if about.is_batch_ruled_out { "" } else { "fewer samples, " };
            let less = format!("{fewer}shorter or smaller inputs, or parts of them one after the other");
            let (words, mut code) = if *is_last_of_many {
                let words = Words::new(format!(
                    "See whether each batch leaves memory taken, as where results are kept in a list on the device, and keep those on the \
                     host; if none does, take {less}"
                ));
                let printed = "print(torch.cuda.memory_allocated() >> 20, 'MiB')  # before each batch\n";
                (words.task("See whether batches leave memory taken; if none does, take smaller ones"), printed.to_owned())
            } else {
                let task = if about.is_batch_ruled_out {
                    smaller::PARTS_OF_INPUTS
                } else {
                    "Take fewer samples at once, or shorter or smaller inputs"
                };
                (Words::new(format!("Take less at once: {less}")).task(task), String::new())
            };
            if run.is_none() {
                code += "with torch.inference_mode():  # where nothing is trained\n    y = model(x)";
            }
            if code.is_empty() { words } else { words.code("import torch", code.trim_end()) }
        }
        ElsewhereFinding::Mapped(function) => Words::new(format!(
            "Map `{function}` over a part of the samples at a time: `jax.vmap` computes all samples at once, and in a gradient keeps what each \
             computes. A checkpoint keeps only what it is given"
        ))
        .task(format!("Map `{function}` over parts: `jax.vmap` takes all at once"))
        .code(JAX, format!("ys = jax.lax.map({function}, xs, batch_size=16)  # in place of jax.vmap({function})(xs)\n# of several arguments: lambda args: {function}(*args), and xs = (x, y)\n# in a gradient: jax.checkpoint({function})")),
        ElsewhereFinding::Matrix(derivatives) => {
            let (name, code) = match derivatives {
                Derivatives::Hessian => (
                    "jax.hessian",
                    "product = lambda v: jax.jvp(jax.grad(f), (x,), (v,))[1]  # with a vector, without the matrix\n\
                     columns = jax.lax.map(product, jnp.eye(len(x)), batch_size=16)",
                ),
                Derivatives::Forward => (
                    "jax.jacfwd",
                    "column = lambda v: jax.jvp(f, (x,), (v,))[1]  # a product with a vector, without the matrix\n\
                     columns = jax.lax.map(column, jnp.eye(len(x)), batch_size=16)",
                ),
                _ => (
                    "jax.jacrev",
                    "y, pull = jax.vjp(f, x)  # pull(v): a product with a vector, without the matrix\n\
                     rows = jax.lax.map(lambda v: pull(v)[0], jnp.eye(len(y)), batch_size=16)",
                ),
            };
            Words::new(format!(
                "Compute products with the matrix of derivatives, or some rows at a time: `{name}` computes all rows at once, each with arrays of \
                 its own. A sum of them, or the diagonal, needs no matrix"
            ))
            .task(format!("Compute products or some rows: `{name}` computes all at once"))
            .code("import jax\nimport jax.numpy as jnp", code)
        }
        ElsewhereFinding::TorchCache => Words::new(
            "Give PyTorch's free memory back before NCCL asks for its own: the allocator keeps what is free for itself, and a first collective, \
             as of a save, finds no room beside it. Run one collective before the first step, and NCCL has its buffers from the start",
        )
        .task("Give PyTorch's cached memory back before NCCL needs its own")
        .code("import torch", "torch.cuda.empty_cache()  # right before the save, on each rank"),
        ElsewhereFinding::NoGradients => Words::new(
            "Switch gradients off where the model only runs: the model's parameters ask for gradients, so that each layer keeps its values for a backward \
             pass that never comes. Where a gradient has to go through the model, freeze it, and put checkpoints around its layers",
        )
        .task("Switch gradients off: each layer keeps its values for them")
        .code("import torch", "with torch.inference_mode():  # around the call\n    y = model(x)\n# trained through: model.requires_grad_(False), and checkpoints"),
        ElsewhereFinding::ServerLength(server) => Words::new(format!(
            "Serve shorter requests: the server makes an array for the longest, and one of that size is larger than the device. By default the \
             length is the model's own, which `{}` lowers",
            server.length_flag()
        ))
        .task("Serve shorter requests: an array of the longest exceeds the device")
        .code(None, format!("{} 8192  # as long as your requests", server.length_flag())),
        ElsewhereFinding::Whole(array) => whole_array::words(array, about),
        ElsewhereFinding::TorchCollection => Words::new(
            "Keep less of each batch that is evaluated, such as the loss alone, or the largest logit's index in place of the logits: \
             outputs of all batches are joined on the device, or of Hugging Face's those of `eval_accumulation_steps` batches",
        )
        .task("Keep less of each evaluated batch: outputs of all are joined")
        .code(
            "import torch",
            format!(
                "args = TrainingArguments(…, eval_accumulation_steps=10)  # Hugging Face: outputs go to the host\n\
                 # where the loss is enough: prediction_loss_only=True; else {INDICES_OF_LOGITS}\n\
                 kept.append(logits.argmax(-1).cpu())  # in a loop of your own"
            ),
        ),
        ElsewhereFinding::TorchGrowth => Words::new(
            "Keep nothing of a batch on the device once it is done: memory grows from step to step, as where results are kept in a \
             list, or losses are added up with their graphs. Smaller batches only delay it",
        )
        .task("Keep nothing of past batches on the device: memory grows with each")
        .code("import torch", "kept.append(y.detach().cpu())\ntotal += loss.item()"),
        ElsewhereFinding::TorchRank(rank) => Words::new(format!(
            "Give each process a GPU of its own: rank {rank} asks for memory of GPU 0, where other processes are, as where a checkpoint is \
             loaded to `cuda` before the process has chosen its device"
        ))
        .task(format!("Give each process its own GPU: rank {rank} asks GPU 0"))
        .code(
            "import os\nimport torch",
            "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))  # first of all\n\
             state = torch.load(path, map_location='cpu')  # safetensors: load_file(path, device='cpu')",
        ),
        ElsewhereFinding::TorchSave { is_of_adapters: true, is_fsdp1: false } => Words::new(format!(
            "{SAVE}. A state dictionary has all weights, which a library may convert on the device; the adapters' parameters are a few megabytes"
        ))
        .task("Save the adapters' parameters alone: a state dictionary has all weights")
        .code(
            "import torch",
            "adapters = {name: p.detach().cpu() for name, p in model.named_parameters() if 'lora_' in name}\n\
             torch.save(adapters, 'adapters.pt')  # read again: model.load_state_dict(torch.load('adapters.pt'), strict=False)",
        ),
        ElsewhereFinding::TorchSave { is_fsdp1: true, .. } => Words::new(SAVE).task(SAVE_TASK).code(
            "from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel, StateDictType",
            "config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)  # gathered on the host of rank 0\n\
             with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):\n    \
                 state = model.state_dict()",
        ),
        ElsewhereFinding::TorchSave { .. } => Words::new(SAVE).task(SAVE_TASK).code(
            "from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict",
            "options = StateDictOptions(full_state_dict=True, cpu_offload=True)  # sharded; FSDP1: FullStateDictConfig(True, True)\n\
             state = get_model_state_dict(model, options=options)",
        ),
        ElsewhereFinding::ServerBeside { server, others, percent } => {
            let (flag, held, to) = (server.memory_flag(), bytes(*others), part(*percent));
            let in_python = match server {
                Server::Vllm => format!("  # in Python: LLM(…, gpu_memory_utilization={to})"),
                _ => String::new(),
            };
            Words::new(format!(
                "Lower `{flag}` to {to}, or choose another GPU: it is a part of the whole memory, of which others hold {held}, so that the server \
                 fills more than is left"
            ))
            .task(format!("Lower `{flag}` to {to}: others hold {held}"))
            .code(None, format!("{flag} {to}{in_python}"))
        }
        ElsewhereFinding::ServerPrograms { server, is_capture, percents } => {
            let (memory, tokens, graphs) = (server.memory_flag(), server.tokens_flag(), server.graphs_option());
            let (less, why) = if *is_capture {
                (format!("capture fewer CUDA graphs (`{graphs}`)"), "graphs lie beside weights and cache")
            } else {
                (format!("take fewer tokens at once (`{tokens}`)"), "what a program computes lies beside weights and cache")
            };
            let words = |lower: &str| {
                let lower = capitalized(lower);
                Words::new(format!("{lower}: {why}, which the server sizes first")).task(lower)
            };
            match percents {
                // Of the others, the flag sizes the cache.
                _ if *server == Server::TextGeneration => words(&less),
                None => words(&format!("{less}, or lower `{memory}`")),
                Some([now, percent]) => words(&format!("lower `{memory}` from {}, or {less}", part(*now)))
                    .code(None, format!("{memory} {}", part(*percent))),
            }
        }
        ElsewhereFinding::TorchFragmented => Words::new("Let the allocator join the pieces that it holds free")
            .code(None, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # before PyTorch 2.1: max_split_size_mb:512"),
        ElsewhereFinding::TorchProcesses(Some(ListedProcess { number, size, .. })) => Words::new(format!(
            "End process {number}, or choose another GPU: it holds {} of this one, and may be left from an earlier run",
            printed(size)
        ))
        .task(format!("See what process {number} is: it holds {} of this GPU", printed(size)))
        .code(None, format!("ps -o user,etime,args -p {number}  # on the host; if it is yours, and done: kill {number}")),
        ElsewhereFinding::TorchHidden => Words::new(
            "Choose another GPU, or ask who runs on this one: others hold its memory, and `nvidia-smi` in a container lists no process of other \
             containers. A process that has ended badly may be left on the host, too",
        )
        .task("Choose another GPU: other containers' processes, which aren't listed, hold it")
        .code(None, "nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv\nexport CUDA_VISIBLE_DEVICES=1  # one that is free"),
        ElsewhereFinding::OptimizerState => Words::new(
            "Make the optimizer's state smaller, or divide it: the state is made in the first step, and Adam's takes 8 bytes a parameter beside weights and \
             gradients of 4 or 2 each, whatever the batch. Divided between all GPUs (FSDP's full shard, ZeRO-3) each has a part; 8 bits take a \
             quarter; on the host it takes none; adapters (LoRA) have little. An update of many tensors at once has temporary copies, too",
        )
        .task("Make the optimizer's state smaller, or divide it: no batch changes it")
        .code(
            None,
            match about.framework {
                Some(Framework::TensorFlow) => {
                    "optimizer = tf.keras.optimizers.Adafactor(rate)\n\
                     # or train less, of a language model without the table of its words: model.embeddings.trainable = False"
                }
                Some(Framework::TorchXla) => {
                    "optimizer = transformers.optimization.Adafactor(model.parameters(), lr=lr, relative_step=False, scale_parameter=False)\n\
                     # or FSDP in bfloat16, state included: XlaFullyShardedDataParallel(model.to(torch.bfloat16))"
                }
                _ => {
                    "optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=lr)  # Trainer: optim='adamw_bnb_8bit', or --fsdp full_shard\n\
                     # if little is missing: torch.optim.AdamW(…, foreach=False), which updates one tensor at a time"
                }
            },
        ),
        ElsewhereFinding::TorchProcesses(None) => {
            Words::new("See which processes hold the GPU's memory").code(None, "nvidia-smi")
        }
        ElsewhereFinding::Bank { cause, bytes } => {
            let sentence = match cause {
                Some(OomVerdict::Size) => "Use smaller shards or blocks: one bank can't hold its part",
                Some(OomVerdict::Fragmentation) => {
                    "Allocate what lives long first, and free what lies between: no free block is large enough"
                }
                _ => "Free other buffers of that memory before this one, or use smaller shards: others hold the banks",
            };
            let bank = bytes.map(|[needed, bank]| format!(": each bank would store {needed} of its {bank} bytes"));
            Words::new(format!("{sentence}{}", bank.unwrap_or_default()))
        }
        kernel => gpu_kernels::words(kernel, about),
    }
}

pub(super) fn answer(message: &Message) -> [String; 2] {
    let place = match message.machine() {
        Some(UntiledMachine::Host) => "on the host",
        Some(UntiledMachine::Tenstorrent) => "on a Tenstorrent device",
        Some(UntiledMachine::Unnamed) if message.job.gpu.is_none() => "on a device that the message doesn't name",
        _ => "on a GPU",
    };
    let (reason, tried) = (message.reason(), tried(message));
    let asked = message.used.as_ref().map(|used| format!(": {} asked for{}", printed(used), room(message)));
    let pool = || Some(room(message).trim_start_matches(", ").to_owned()).filter(|room| !room.is_empty());
    let asked = of_bank(message).or(asked).or_else(|| pool().map(|room| format!(": {room}"))).unwrap_or_default();
    let headline = match message.form {
        Form::HostPool => format!("The pool of pinned host memory is full{asked}."),
        Form::GpuRetry => {
            if let Some(code) = message.refusal() {
                format!("The driver of a GPU refused {tried}: `{}`.", visible(code))
            } else if message.facts.get("pinned").is_some() {
                format!("Warning: a host had no pinned memory for {tried}.")
            } else {
                format!("Warning: a GPU had no memory for {tried}; what asked tries again with less.")
            }
        }
        _ if message.facts.text("grows").is_some() => format!("Memory grows {place}, by the text's own words."),
        Form::Told => "The text tells what a job takes of a memory, and has no error.".to_owned(),
        Form::HostWarning => {
            let size = message.used.as_ref().map(|used| format!(" of {}", printed(used))).unwrap_or_default();
            format!("Warning: an array{size} takes more than a tenth of the host's free memory.")
        }
        _ if reason == Reason::Killed => {
            "A process was killed, most often since the host ran out of memory.".to_owned()
        }
        _ if reason == Reason::CodeMappings => "The host refused memory for machine code that XLA compiled.".to_owned(),
        Form::Host if message.used.is_none() => host::killed(message),
        _ if reason == Reason::DamagedSize => format!("A damaged size, which no machine has{asked}."),
        _ if reason == Reason::Mapping => format!("The host's memory could not be mapped{asked}."),
        _ if matches!(reason, Reason::Handle | Reason::Unsupported | Reason::LateError) => {
            "A library of NVIDIA's could not start on a GPU.".to_owned()
        }
        _ if reason == Reason::BrokenContext => {
            let other = [message].into_iter().chain(&message.others).find_map(|other| other.used.as_ref());
            let other = other.map(|used| format!("; another request, of {}, found no memory", printed(used)));
            format!("An earlier operation broke the GPU's context{}.", other.unwrap_or_default())
        }
        Form::GpuArguments => "Warning: on a GPU arguments and results leave no room for the program.".to_owned(),
        _ => format!("Out of memory {place}{asked}{}.", of_program(message)),
    };
    if message.form == Form::HostPool {
        let why = "Arrays in `pinned_host` memory lie in a pool of the host's own memory, which has a limit; the GPU's memory did not \
                   run out.";
        return [headline, why.to_owned()];
    }
    let which = match message.machine() {
        _ if message.form == Form::Told && message.job.pool.is_asked => match message.framework {
            Some(Framework::Jax) => "JAX sets three quarters of a GPU's memory aside as it starts: that isn't a leak.",
            Some(Framework::TensorFlow) => {
                "TensorFlow sets nearly all of a GPU's memory aside as it starts: that isn't a leak."
            }
            _ => "",
        },
        _ if message.form == Form::Told
            && message.job.pool.keeps_freed
            && message.framework == Some(Framework::Jax) =>
        {
            "A deleted array leaves its memory to the process's pool, for the next one: `nvidia-smi` counts the pool."
        }
        _ if message.form == Form::Told => "",
        // TPUs of before their PJRT plugin ran on XLA's stream executor, too.
        Some(UntiledMachine::Unnamed) if message.job.gpu.is_none() => {
            "GPUs, CPUs and old runtimes of TPUs print this: unless it is a TPU, no array is tiled, and padding is not the cause."
        }
        _ if reason == Reason::CodeMappings => {
            "Most often a process's mappings are used up, of which it may have 65530, while the host has memory."
        }
        _ if reason == Reason::Killed => "That is a shell's or launcher's word, which gives no reason.",
        // A CPU may be the device.
        Some(UntiledMachine::Host) => "It is the host's memory, not that of a TPU or GPU.",
        // The headline names the GPU.
        Some(UntiledMachine::Gpu | UntiledMachine::Unnamed) if headline.contains("GPU") => "",
        _ if message.facts.get("pinned").is_some() => {
            "Pinned memory is the host's own, locked for copies to and from a device, whose memory did not run out."
        }
        _ => "This isn't a TPU message.",
    };
    let why = reason::sentence(message);
    let held = message.facts.size("held").filter(|_| message.framework == Some(Framework::Torch) && why.is_empty());
    let held = held.map(|held| format!("This process's own tensors take {}.", printed(held)));
    let requested = message.requested_at.as_ref().and_then(|frame| {
        let place = format!("{}:{}", visible(file_name(&frame.file)), frame.line);
        let code = frame.code.as_deref()?.split("  # ").next()?;
        Some(format!(" The request is made at {place}: {}", visible(code)))
    });
    let held = held.map(|held| held + requested.as_deref().unwrap_or_default());
    let why = held.unwrap_or(why);
    let product = message.product.as_ref().map(|product| match product.names.iter().flatten().next() {
        None if product.is_square() => format!(" It is exactly {}.", whole_array::shape_of(product)),
        _ => format!(" The text's sizes make it up: {}.", whole_array::shape_of(product)),
    });
    let told = format!("{which}{} {why}", product.unwrap_or_default());
    let told = match told.trim() {
        "" if !message.entries.is_empty() => "The message lists the largest arrays.",
        "" if message.pool_and_need().is_some() => {
            "What is in use and what is asked for are more than the pool may have."
        }
        "" => NOT_TOLD,
        told => told,
    };
    [headline, told.to_owned()]
}

/// The requests of an allocator that tries again with less: `a request of 1.00 GiB`, `3 requests, of 0.81 to 1.00 GiB`.
fn tried(message: &Message) -> String {
    let all = [message].into_iter().chain(&message.others).filter(|one| one.form == message.form);
    let sizes: Vec<&PrintedSize> = all.filter_map(|one| one.used.as_ref()).collect();
    let least = sizes.iter().min_by_key(|size| size.bytes());
    match (least, sizes.iter().max_by_key(|size| size.bytes())) {
        (Some(least), Some(most)) if least.bytes() < most.bytes() => {
            format!("{} requests, of {} to {}", sizes.len(), printed(least), printed(most))
        }
        (Some(one), _) => format!("a request of {}", printed(one)),
        _ => "a request".to_owned(),
    }
}

/// The part of a buffer that each bank of a Tenstorrent device has to hold.
fn of_bank(message: &Message) -> Option<String> {
    let fact = |name| message.facts.size(name).map(printed);
    let room = fact("free").map(|free| format!(", {free} free")).unwrap_or_default();
    let of_it = if room.is_empty() { "free" } else { "of it" };
    let piece = fact("largest").map(|piece| format!(", {piece} {of_it} in one piece")).unwrap_or_default();
    Some(format!(": {} asked for in each bank{room}{piece}", fact("needed")?))
}

/// `; the program takes 38.05 GiB in all`, where the request is a part of it.
fn of_program(message: &Message) -> String {
    let asked = message.used.as_ref().map_or(0, PrintedSize::bytes);
    let total = message.usage.as_ref().map(|usage| &usage.total).filter(|total| asked > 0 && total.bytes() / 2 > asked);
    total.map(|total| format!("; the program takes {} in all", printed(total))).unwrap_or_default()
}

/// The free memory and the capacity; or the part of a pool in use.
fn room(message: &Message) -> String {
    let fact = |name| message.facts.size(name).filter(|size| size.bytes() > 0);
    let capacity = message.capacity.as_ref();
    match (fact("pool"), fact("pool_used"), fact("free")) {
        (Some(pool), Some(used), _) if used.bytes() <= pool.bytes() => {
            let over = message.pool_and_need().map(|[needed, limit]| format!(", {} over", bytes(needed - limit)));
            format!(", {} of the pool's {} in use{}", printed(used), printed(pool), over.unwrap_or_default())
        }
        (_, _, Some(free)) => {
            let of = capacity.map(|all| format!(" of {}", printed(all))).unwrap_or_default();
            format!(", {} free{of}", printed(free))
        }
        _ => String::new(),
    }
}
