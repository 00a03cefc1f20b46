//! Machines without tiles: GPUs, hosts, Tenstorrent's.

use super::{Words, code::JAX, gpu_kernels, memory::look_inside, run_time, words::printed};
use crate::style::bytes;
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{ElsewhereFinding, Transform},
};
use tilewise_oom::{Form, Framework, Message, PrintedSize, UntiledMachine, Verdict};

pub(super) fn words(finding: &ElsewhereFinding, about: &Recommendation) -> Words {
    match finding {
        ElsewhereFinding::Pool { is_of_nccl } => {
            let words = Words::new(if *is_of_nccl {
                "Leave the pool less of the memory, so that NCCL finds room beside it, and give each process a GPU of its own: \
                 two on one set the memory aside twice"
            } else {
                "Leave the pool less of the memory, so that compiled programs and libraries find room beside it; and keep constants of \
                 a gigabyte out of the program"
            });
            match about.framework {
                Some(Framework::Jax) => words.code(
                    None,
                    "export XLA_CLIENT_MEM_FRACTION=.6  # of the memory, in place of .75; XLA_PYTHON_CLIENT_MEM_FRACTION in older JAX",
                ),
                Some(Framework::TorchXla) => {
                    words.code(None, "export PJRT_ALLOCATOR_FRACTION=0.6  # of the memory, in place of 0.75")
                }
                Some(Framework::TensorFlow) => words.code(None, "export TF_FORCE_GPU_ALLOW_GROWTH=true"),
                _ => words,
            }
        }
        ElsewhereFinding::Broken => Words::new(
            "Find the first error of the log, and run it again with each operation waited for: an earlier operation broke the GPU's \
             context, after which every request fails",
        )
        .task("Find the operation that broke the GPU's context")
        .code(None, "export CUDA_LAUNCH_BLOCKING=1  # or run it under compute-sanitizer"),
        ElsewhereFinding::HostArray => Words::new(
            "Pass the array in parts: one array of the host, most likely a data set, is copied to the device whole, outside of any \
             program",
        )
        .task("Pass the data in batches, not whole")
        .code(
            "import tensorflow as tf",
            "with tf.device('CPU'):\n    batches = tf.data.Dataset.from_tensor_slices(data).batch(32)",
        ),
        ElsewhereFinding::Alive { percent } => {
            let words = Words::new(format!(
                "List the arrays that are alive, and delete those that are done: this process's own fill {percent} % of its pool. What \
                 is needed in whole, such as weights and the optimizer's state, belongs on more devices, a part on each"
            ))
            .task("List the arrays that are alive; drop old ones, divide the others");
            run_time::list_alive(words, about)
        }
        ElsewhereFinding::Context => Words::new(
            "Take the devices that no other process fills: one is opened before any memory is set aside, so no limit on that helps",
        )
        .task("Take the GPUs that no other process fills")
        .code(None, "nvidia-smi  # lists them\nexport CUDA_VISIBLE_DEVICES=0  # their numbers"),
        ElsewhereFinding::Processes { is_likely: true } => {
            let reserved = match about.framework {
                Some(Framework::Jax) => ", where a second process of JAX finds 75 % already reserved",
                _ => "",
            };
            let words = Words::new(format!(
                "See which processes and arrays hold the device's memory (of an NVIDIA card: `nvidia-smi`{reserved})"
            ));
            match about.framework {
                Some(Framework::Jax) => words.code(
                    None,
                    "nvidia-smi  # of an NVIDIA card\n\
                     export XLA_CLIENT_MEM_FRACTION=.4  # where two processes share it; XLA_PYTHON_CLIENT_MEM_FRACTION in older JAX",
                ),
                Some(Framework::TorchXla) => words.code(
                    None,
                    "nvidia-smi  # of an NVIDIA card\nexport PJRT_ALLOCATOR_FRACTION=0.4  # where two processes share it",
                ),
                Some(Framework::TensorFlow) => {
                    words.code(None, "nvidia-smi  # of an NVIDIA card\nexport TF_FORCE_GPU_ALLOW_GROWTH=true  # where several share it")
                }
                _ => words,
            }
        }
        ElsewhereFinding::Processes { .. } => {
            Words::new("If other processes use the device, see how much of its memory they hold (of a GPU: `nvidia-smi`)")
                .task("See which other processes hold the device's memory")
                .code(None, "nvidia-smi  # of an NVIDIA card")
        }
        ElsewhereFinding::Fragmented => {
            Words::new("Let CUDA's own allocator find the memory, which joins free pieces")
                .jax(about, None, "export XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async")
        }
        ElsewhereFinding::Smaller(largest) => {
            let start = largest.as_ref().map(|largest| {
                let owner = largest.owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
                format!(": the largest buffer{owner} takes {}", bytes(largest.bytes))
            });
            if largest.as_ref().is_some_and(|largest| largest.is_one_sample) {
                return Words::new(format!(
                    "Keep less of what is computed (`jax.checkpoint`, if it is differentiated), or compute it for a part of the picture or \
                     sequence at a time{}, and has one sample",
                    start.unwrap_or_default()
                ))
                .jax(about, JAX, "f = jax.checkpoint(f)  # around each layer");
            }
            if largest.as_ref().is_some_and(|largest| largest.is_random) {
                return Words::new(format!(
                    "Make fewer random numbers at once: a layer at a time, on the host, or on each device its part (`out_shardings`)\
                     {}, the bits of random numbers",
                    start.unwrap_or_default()
                ))
                .task("Make fewer random numbers at once, or make them on the host")
                .jax(
                    about,
                    JAX,
                    "with jax.default_device(jax.devices('cpu')[0]):  # around the initialisation\n    params = init(key)",
                );
            }
            let recomputed = match about.framework {
                Some(Framework::Jax) => Some("`jax.checkpoint` around what makes the largest buffers"),
                Some(Framework::TensorFlow) => Some("`tf.recompute_grad` around what makes the largest buffers"),
                _ => None,
            };
            let is_kept = largest.as_ref().is_some_and(|largest| largest.transform == Some(Transform::Gradient));
            let how = match recomputed {
                // Arrays kept for a gradient may have no samples, such as weights of each turn of a loop.
                Some(recomputed) if is_kept => format!("{recomputed}, or fewer samples at once, where those have any"),
                Some(recomputed) => format!("fewer samples at once, or, if a gradient is taken, {recomputed}"),
                None => "fewer samples at once".to_owned(),
            };
            let smaller = format!("{how}{}", start.unwrap_or_default());
            let is_listed = largest.is_some() || about.framework == Some(Framework::TensorFlow);
            match largest.as_ref().and_then(|largest| largest.transform) {
                // Samples and layers are a guess about a program of which nothing is known.
                _ if !is_listed => look_inside("the message lists no arrays", None, about),
                Some(Transform::Map) => Words::new(format!("Make the program smaller: {smaller}"))
                    .code(JAX, "ys = jax.lax.map(f, xs, batch_size=64)  # in place of jax.vmap(f)(xs)"),
                Some(Transform::Gradient) => Words::new(format!("Make the program smaller: {smaller}"))
                    .jax(about, JAX, "layer = jax.checkpoint(layer)  # what is differentiated"),
                _ => Words::new(format!("Make the program smaller: {smaller}")),
            }
        }
        ElsewhereFinding::NoFailure => Words::new(
            "Change nothing, unless the step is slow or an error follows: what asked, such as a convolution for its workspace or a pool \
             that grows, tries again with less memory. Other processes may hold the rest",
        ),
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
        ElsewhereFinding::TorchCheckpoint => Words::new(
            "Keep less for the backward pass: fewer samples at once, or checkpoints around the layers",
        )
        .code("from torch.utils.checkpoint import checkpoint", "y = checkpoint(layer, x, use_reentrant=False)"),
        ElsewhereFinding::TorchFragmented => Words::new("Let the allocator join the pieces that it holds free")
            .code(None, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
        ElsewhereFinding::TorchProcesses => {
            Words::new("See which processes hold the GPU's memory").code(None, "nvidia-smi")
        }
        ElsewhereFinding::Host { is_group: true } => Words::new(
            "Give the container or batch job more memory, or load and convert data and weights in parts: what it may have of the \
             host's memory ran out, whatever the host has free",
        )
        .code(None, "cat /sys/fs/cgroup/memory.max; ps aux --sort=-rss | head"),
        ElsewhereFinding::Host { is_group: false } => Words::new(
            "Give the job more of the host's memory, or load and convert data and weights in parts: the host's own memory ran out, \
             not that of a TPU or GPU",
        )
        .code(None, "free -g; ps aux --sort=-rss | head"),
        ElsewhereFinding::HostMapping => Words::new(
            "Move less to the device at once: each array in its final sharding, so that its parts are moved, not the whole; and raise \
             the limit of locked memory: the host could not map it for the transfer",
        )
        .task("Move arrays to the device in parts, each in its final sharding")
        .code(None, "ulimit -l unlimited  # of a container: --ulimit memlock=-1"),
        ElsewhereFinding::Damaged => Words::new(
            "Install versions that were released together: no host has as much memory, so the size itself is damaged, not the memory \
             short",
        )
        .task("Install versions that were released together")
        .jax(about, None, "pip install --upgrade 'jax[tpu]'"),
        ElsewhereFinding::HostKilled => Words::new(
            "Look in the kernel's log for the reason: most often Linux ends a process because the host's memory ran out, or what a \
             container or batch job may have of it. Then give the job more, or load and convert data and weights in parts",
        )
        .task("Look in the kernel's log whether memory was the reason")
        .code(None, "dmesg | grep -i -A3 'out of memory'; cat /sys/fs/cgroup/memory.max"),
        ElsewhereFinding::HostCode => Words::new(
            "Compile fewer programs, and drop those that are done: each holds machine code in mappings of its own, of which Linux \
             gives a process 65530 unless `vm.max_map_count` says more. Arrays that are padded to a few shapes need fewer programs",
        )
        .jax(about, JAX, "jax.clear_caches()  # drops all compiled programs: those that run again are compiled again"),
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
        ElsewhereFinding::OffloadLess => Words::new(
            "Offload less: keep fewer arrays in `pinned_host` memory, or divide them between more hosts",
        ),
        ElsewhereFinding::Bank { cause, bytes } => {
            let sentence = match cause {
                Some(Verdict::Size) => "Use smaller shards or blocks: one bank can't hold its part",
                Some(Verdict::Fragmentation) => {
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
        Some(UntiledMachine::Unnamed) => "on a device that the message doesn't name",
        _ => "on a GPU",
    };
    let tried = tried(message);
    let asked = message.used.as_ref().map(|used| format!(": {} asked for{}", printed(used), room(message)));
    let pool = || Some(room(message).trim_start_matches(", ").to_owned()).filter(|room| !room.is_empty());
    let asked = of_bank(message).or(asked).or_else(|| pool().map(|room| format!(": {room}"))).unwrap_or_default();
    let headline = match message.form {
        Form::HostPool => format!("The pool of pinned host memory is full{asked}."),
        Form::GpuRetry => {
            if message.facts.get("pinned").is_some() {
                format!("Warning: a host had no pinned memory for {tried}.")
            } else {
                format!("Warning: a GPU had no memory for {tried}; what asked tries again with less.")
            }
        }
        Form::Host if message.facts.get("shell").is_some() => {
            "A process was killed, most often since the host ran out of memory.".to_owned()
        }
        Form::Host if message.used.is_none() => killed(message),
        Form::Host if message.has_damaged_size() => format!("A damaged size, which no host has{asked}."),
        Form::Host if message.facts.get("pages").is_some() => format!("The host's memory could not be mapped{asked}."),
        _ if message.facts.get("broken").is_some() => {
            "An earlier operation broke the GPU's context: no lack of memory is shown.".to_owned()
        }
        Form::GpuArguments => "Warning: on a GPU the arguments leave no room for the program.".to_owned(),
        _ => format!("Out of memory {place}{asked}."),
    };
    let why = match message.cause() {
        Some(Verdict::Size) => too_large(message),
        Some(Verdict::Arguments) => " Arguments and results alone exceed what the scheduler may use.".to_owned(),
        Some(Verdict::Reservation) if message.facts.get("communicator").is_some() => {
            " Most likely NCCL's buffers found no memory: they lie beside the pool that the process set aside for its arrays."
                .to_owned()
        }
        _ if message.facts.get("broken").is_some() => " After an illegal access every request fails.".to_owned(),
        Some(Verdict::Reservation) if message.facts.get("context").is_some() => {
            " The device could not be opened: other processes hold its memory. `CUDA_VISIBLE_DEVICES` names those to use.".to_owned()
        }
        Some(Verdict::Reservation) if message.facts.get("loaded").is_some() => {
            let guess = message.quote.as_ref().is_some_and(|quote| quote.contains("different GPU"));
            let guess =
                if guess { " That it was compiled for another GPU is only a guess of the message." } else { "" };
            format!(
                " The program itself found no memory: it lies beside the pool that the process set aside for its arrays.{guess}"
            )
        }
        Some(Verdict::Reservation) if message.machine() == Some(UntiledMachine::Tenstorrent) => {
            " An empty bank has room for its part: other buffers lie there.".to_owned()
        }
        Some(Verdict::Reservation) if message.full_percent().is_some() => {
            let percent = message.full_percent().unwrap_or_default();
            format!(" This process's own arrays fill {percent} % of its pool.")
        }
        Some(Verdict::Reservation) if message.facts.get("library").is_some() => {
            " A library's call found no memory: it lies beside the pool that the process set aside for its arrays.".to_owned()
        }
        Some(Verdict::Reservation) if message.used.as_ref().is_some_and(|used| used.bytes() < TINY) => {
            " Few bytes fail only where nothing at all is left, or where the allocator itself doesn't work: the log's first error \
             tells more."
                .to_owned()
        }
        Some(Verdict::Reservation) if message.asks_little() || !message.asks_for("results") => {
            " The request was small; what was there before, of this process or another, holds the memory.".to_owned()
        }
        Some(Verdict::Reservation) => {
            " The results found no room beside what was there before, of this process or another.".to_owned()
        }
        Some(Verdict::Fragmentation) => " Enough is free, but not in one piece.".to_owned(),
        None if is_mostly_free(message) => {
            " Most of the pool is free: the request, which the text lacks, is larger than the largest free piece.".to_owned()
        }
        _ => String::new(),
    };
    if message.form == Form::HostPool {
        let why = "Arrays in `pinned_host` memory lie in a pool of the host's own memory, which has a limit; the GPU's memory did not \
                   run out.";
        return [headline, why.to_owned()];
    }
    let which = match message.machine() {
        // TPUs of before their PJRT plugin ran on XLA's stream executor, too.
        Some(UntiledMachine::Unnamed) => {
            "GPUs, CPUs and old runtimes of TPUs print this: unless it is a TPU, no array is tiled, and padding is not the cause."
        }
        Some(UntiledMachine::Host) if message.facts.get("shell").is_some() => {
            "That is the shell's word, which gives no reason."
        }
        // A CPU may be the device.
        Some(UntiledMachine::Host) => "It is the host's memory, not that of a TPU or GPU.",
        _ if message.entries.is_empty() => "This isn't a TPU message.",
        _ => "This isn't a TPU message; those arrays aren't tiled, so padding is not the cause.",
    };
    [headline, format!("{which}{why}")]
}

/// Whether less than half of a pool is in use, where the request is unknown.
fn is_mostly_free(message: &Message) -> bool {
    let fact = |name| message.facts.size(name).map(PrintedSize::bytes);
    message.used.is_none() && fact("pool").zip(fact("pool_used")).is_some_and(|(pool, used)| used < pool / 2)
}

/// Bytes of a request below a page of memory.
const TINY: u64 = 4096;

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

/// The sentence on a process that Linux killed.
fn killed(message: &Message) -> String {
    let fact = |name| message.facts.size(name).map(printed);
    let place =
        if message.is_of_group() { "in a control group of the host, such as a container's" } else { "on the host" };
    let held = fact("resident").map(|held| format!(": the process that was killed held {held}")).unwrap_or_default();
    let limit = fact("group_limit").map(|limit| format!("; the group may have {limit}")).unwrap_or_default();
    format!("Out of memory {place}{held}{limit}.")
}

/// The part of a buffer that each bank of a Tenstorrent device has to hold.
fn of_bank(message: &Message) -> Option<String> {
    let fact = |name| message.facts.size(name).map(printed);
    let room = fact("free").map(|free| format!(", {free} free")).unwrap_or_default();
    let piece = fact("largest").map(|piece| format!(", {piece} of it in one piece")).unwrap_or_default();
    Some(format!(": {} asked for in each bank{room}{piece}", fact("needed")?))
}

/// The free memory and the capacity; or the part of a pool in use.
fn room(message: &Message) -> String {
    let fact = |name| message.facts.size(name).filter(|size| size.bytes() > 0);
    let capacity = message.capacity.as_ref();
    match (fact("pool"), fact("pool_used"), fact("free")) {
        (Some(pool), Some(used), _) if used.bytes() <= pool.bytes() => {
            format!(", {} of the pool's {} in use", printed(used), printed(pool))
        }
        (_, _, Some(free)) => {
            let of = capacity.map(|all| format!(" of {}", printed(all))).unwrap_or_default();
            format!(", {} free{of}", printed(free))
        }
        _ => String::new(),
    }
}

fn too_large(message: &Message) -> String {
    let row = |name| message.usage.as_ref().and_then(|usage| usage.get(name));
    match row("temporaries").zip(message.used.as_ref()) {
        Some((temporaries, _)) => {
            let total = message.usage.as_ref().map(|usage| &usage.total);
            let whole = total.filter(|total| total.bytes() > temporaries.bytes() / 4 * 5);
            let whole = whole.map(|total| format!(", {} in all", printed(total))).unwrap_or_default();
            format!(
                " The program is too large{whole}: its temporaries take {}, asked for in one piece.",
                printed(temporaries)
            )
        }
        None => " It is too large.".to_owned(),
    }
}
