//! Why a request failed on a machine without tiles, and the step that follows.

use super::{
    Words,
    code::{JAX, PROCESSES},
    words::printed,
};
use crate::style::{bytes, grouped};
use tilewise_audit::Recommendation;
use tilewise_oom::{Framework, Message, OomVerdict, Reason};

/// The step that follows from a reason, where the message shows nothing else to change.
pub(super) fn step(reason: Reason, about: &Recommendation) -> Words {
    match reason {
        Reason::Communicator => smaller_pool(
            "Leave the pool less of the memory, so that NCCL finds room beside it, and give each process a GPU of its own: two on one \
             set the memory aside twice",
            about,
        ),
        Reason::Code => smaller_pool(
            "Leave the pool less of the memory, so that compiled programs find room beside it; and keep constants of a gigabyte out of \
             the program",
            about,
        ),
        Reason::Graph => Words::new(
            "Switch CUDA graphs off: each compiled program has graphs of its own beside the pool, which stay as long as the program is cached. \
             Programs that are compiled anew for each shape add up: pad arrays to a few shapes, and drop programs that are done \
             (`jax.clear_caches()`); or leave the pool less of the memory",
        )
        .task("Switch CUDA graphs off, and compile for fewer shapes: each program has its own")
        .code(
            None,
            "export XLA_FLAGS=\"$XLA_FLAGS --xla_gpu_enable_command_buffer=\"  # before 2024: --xla_gpu_cuda_graph_level=0, then --xla_gpu_graph_level=0",
        ),
        Reason::Library => smaller_pool(
            "Leave the pool less of the memory, so that libraries find room beside it, and give each process a GPU of its own: two on \
             one set the memory aside twice",
            about,
        ),
        Reason::Handle => {
            let setting = match about.framework {
                Some(Framework::Jax) => "XLA_PYTHON_CLIENT_PREALLOCATE=false",
                Some(Framework::TensorFlow) => "TF_FORCE_GPU_ALLOW_GROWTH=true",
                _ => "",
            };
            let words = Words::new(
                "See whether any of the GPU's memory is left, end what else holds it, and let no process set memory aside: a library of NVIDIA's takes \
                 its own beside the pool. Where much is free, its driver or version doesn't fit",
            );
            match setting {
                "" => words.task("See whether any of the GPU's memory is left; end other runs").code(None, PROCESSES),
                _ => words.task("If other processes are there: let none set memory aside, or end them").code(
                    None,
                    format!("nvidia-smi  # of an NVIDIA card: which are there?\nexport {setting}  # for each of them"),
                ),
            }
        }
        Reason::Unsupported => Words::new(
            "Install a newer driver, or the libraries that this one was made for: memory is free, so the library's version is in question",
        )
        .task("Install a newer driver, or libraries that fit this one")
        .code(None, "nvidia-smi  # the driver's version, and the newest CUDA that it runs"),
        Reason::Refused => Words::new(
            "See whether the driver works for this user: as another one (`sudo`, the group `video`), after a restart, and with libraries that were \
             built for its version. It refuses whatever is asked for",
        )
        .task("See whether the driver works: rights, version, a restart")
        .code(None, "nvidia-smi  # the driver's version, and the newest CUDA that it runs\nid -nG; ls -l /dev/nvidia* /dev/nvhost*  # may this user open them?"),
        Reason::BrokenContext => Words::new(
            "Take another implementation or version of the operation that broke the GPU's context, after which every request fails: a kernel of a \
             library for that GPU is the first suspect. The first error of the log names it, or a run in which each operation is waited for",
        )
        .task("Find the operation that broke the GPU's context; take another version of it")
        .code(None, "export CUDA_LAUNCH_BLOCKING=1  # or run it under compute-sanitizer"),
        Reason::LateError => Words::new(
            "See first whether the GPU is full. If it isn't, an operation before this one failed, and its error comes late: most often an \
             index is out of bounds, such as a token that the vocabulary, or a label that the classes don't have",
        )
        .task("If the GPU isn't full: look for an index out of bounds")
        .code(None, "export CUDA_LAUNCH_BLOCKING=1  # names the operation; on the CPU the error names the index"),
        Reason::HostArray => Words::new(
            "Pass the array in parts: one array of the host, most likely a data set, is copied to the device whole, outside of any \
             program",
        )
        .task("Pass the data in batches, not whole")
        .code(
            "import tensorflow as tf",
            "with tf.device('CPU'):\n    batches = tf.data.Dataset.from_tensor_slices(data).batch(32)",
        ),
        Reason::Unopened => Words::new(
            "Take the devices that no other process fills: one is opened before any memory is set aside, so no limit on that helps",
        )
        .task("Take the GPUs that no other process fills")
        .code(None, "nvidia-smi  # lists them\nexport CUDA_VISIBLE_DEVICES=0  # their numbers"),
        Reason::Fragmentation => Words::new("Let CUDA's own allocator find the memory, which joins free pieces")
            .jax(about, None, "export XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"),
        Reason::Group => Words::new(
            "Hold less of the host's memory at once, such as data and weights in parts or fewer processes, or raise the limit of the container or \
             batch job: what it may have ran out, whatever the host has free",
        )
        .task("Hold less of the host's memory at once, or raise the container's or job's limit")
        .code(
            None,
            "cat /sys/fs/cgroup/memory.max; ps aux --sort=-rss | head\n\
             # the limit: Kubernetes, resources.limits.memory; Docker, --memory; Docker Desktop, Settings > Resources",
        ),
        Reason::Workers => Words::new(
            "Run fewer workers at once: each has memory of its own, and Ray ends the newest once a node's memory is nearly full. A higher \
             limit only leaves the choice to Linux",
        )
        .task("Run fewer workers at once: each has memory of its own")
        .code("import ray", "ray.init(num_cpus=8)  # tasks at once; or more of them for each: @ray.remote(num_cpus=4)"),
        Reason::Host => Words::new(
            "Take less of the host's memory at once, or give the job more: fewer processes or rows, arrays of a narrower type, data and weights \
             loaded in parts. The host's own memory ran out, not that of a TPU or GPU",
        )
        .task("Load data and weights in parts, or give the job more")
        .of_framework(about, |framework| match framework {
            Framework::Torch | Framework::TorchXla => Some((
                "import torch",
                "state = torch.load(path, mmap=True, map_location='cpu')  # reads what is used",
            )),
            Framework::Jax => Some((
                "import jax\nimport numpy as np",
                "data = np.load(path, mmap_mode='r')  # reads what is used; of weights, each device's part:\n\
                 x = jax.make_array_from_callback(data.shape, sharding, lambda at: data[at])",
            )),
            _ => None,
        }),
        Reason::Mapping => Words::new(
            "Move less to the device at once: each array in its final sharding, so that its parts are moved, not the whole; and raise \
             the limit of locked memory: the host could not map it for the transfer",
        )
        .task("Move arrays to the device in parts, each in its final sharding")
        .code(None, "ulimit -l unlimited  # of a container: --ulimit memlock=-1"),
        Reason::DamagedSize if about.framework == Some(Framework::Torch) => Words::new(
            "Look for the first error of the log, of any rank: no device has as much memory, so the size is damaged, as after a collective that \
             timed out",
        )
        .task("Look for the first error of the log, of any rank"),
        Reason::DamagedSize => Words::new(
            "Install versions that were released together: no host has as much memory, so the size itself is damaged, not the memory \
             short",
        )
        .task("Install versions that were released together")
        .jax(about, None, "pip install --upgrade 'jax[tpu]'"),
        Reason::SwapSpace => Words::new(
            "Set aside less swap space: the server keeps requests there that are put off, 4 GiB for each GPU by default, and takes no more than \
             70 % of the host's memory for it. 0 is allowed",
        )
        .task("Set aside less swap space on the host, or give it more memory")
        .code(None, "vllm serve MODEL --swap-space 1  # GiB for each GPU; swap_space=1 in Python"),
        Reason::Killed => Words::new(
            "Look in the kernel's log for the reason: most often Linux ends a process because the host's memory ran out, or what a \
             container or batch job may have of it. Then give the job more, or load and convert data and weights in parts",
        )
        .task("See in the kernel's log whether memory was the reason")
        .code(None, "dmesg | grep -i -A3 'out of memory'; cat /sys/fs/cgroup/memory.max  # a Mac: log show --last 1h | grep -i jetsam\n\
             # a container: docker inspect NAME | grep OOMKilled; more: --memory, of Docker Desktop Settings > Resources"),
        Reason::CodeMappings => Words::new(
            "Compile fewer programs, and drop those that are done: each holds machine code in mappings of its own, of which Linux \
             gives a process 65530 unless `vm.max_map_count` says more. Arrays that are padded to a few shapes need fewer programs",
        )
        .jax(about, JAX, "jax.clear_caches()  # drops all compiled programs: those that run again are compiled again"),
        _ => Words::new(""),
    }
}

/// Advice to leave room beside the memory that a process sets aside for its arrays.
fn smaller_pool(sentence: &str, about: &Recommendation) -> Words {
    let words = Words::new(sentence);
    match about.framework {
        Some(Framework::Jax) => words.code(
            None,
            "export XLA_CLIENT_MEM_FRACTION=.6  # of the memory, in place of .75; XLA_PYTHON_CLIENT_MEM_FRACTION in older JAX",
        ),
        Some(Framework::TorchXla) => words.code(None, "export PJRT_ALLOCATOR_FRACTION=0.6  # of the memory, in place of 0.75"),
        Some(Framework::TensorFlow) => words.code(None, "export TF_FORCE_GPU_ALLOW_GROWTH=true"),
        Some(Framework::Reactant) => {
            words.code(None, "export XLA_REACTANT_GPU_MEM_FRACTION=0.6  # of the memory, in place of 0.75")
        }
        Some(Framework::Exla) => {
            words.code(None, "config :exla, :clients, cuda: [platform: :cuda, memory_fraction: 0.6]  # in place of 0.9")
        }
        _ => words,
    }
}

/// The reason as a sentence; empty where the message shows none.
pub(super) fn sentence(message: &Message) -> String {
    match message.reason() {
        Reason::Refused => "That isn't the code of a lack of memory.",
        Reason::BrokenContext => "After an illegal access every request fails.",
        Reason::LateError => {
            "The GPU has no memory for cuBLAS, or an operation before this one failed: CUDA reports errors late."
        }
        Reason::Communicator => {
            "Most likely NCCL's buffers found no memory: they lie beside the pool that the process set aside for its arrays."
        }
        Reason::Unopened => {
            "The device could not be opened: other processes hold its memory. `CUDA_VISIBLE_DEVICES` names those to use."
        }
        Reason::Code => {
            let sentence =
                "The program itself found no memory: it lies beside the pool that the process set aside for its arrays.";
            let is_guessed = message.quote.as_ref().is_some_and(|quote| quote.contains("different GPU"));
            let guess =
                if is_guessed { " That it was compiled for another GPU is only a guess of the message." } else { "" };
            return format!("{sentence}{guess}");
        }
        Reason::Graph => {
            "A CUDA graph of a compiled program found no memory: graphs lie beside the pool that the process set aside for its arrays."
        }
        Reason::Library => {
            "A library's call found no memory: it lies beside the pool that the process set aside for its arrays."
        }
        Reason::Handle => {
            "Most often no memory is left beside the pool that the process set aside for its arrays; a driver that is too old has the \
             same message."
        }
        Reason::Unsupported => {
            let fact = |name| message.facts.size(name).map(printed);
            let free = fact("free").unwrap_or_default();
            let driver = message.facts.text("driver").map(|driver| {
                format!(" The log takes the driver for too old, perhaps: {}.", driver.trim().trim_end_matches('.'))
            });
            return format!("{free} are free: no memory ran out.{}", driver.unwrap_or_default());
        }
        Reason::OwnArrays(percent) => {
            let free = message.facts.size("free").zip(message.used.as_ref());
            let is_split = free.is_some_and(|(free, asked)| free.bytes() > asked.bytes());
            let pieces = if is_split { ", and what is free lies in smaller pieces" } else { "" };
            return format!("This process's own arrays fill {percent} % of its pool{pieces}.");
        }
        Reason::Ungrown => "The pool has not grown to its limit, and finds no memory to: others hold the rest of the GPU's.",
        Reason::Tiny => {
            "Few bytes fail only where nothing at all is left, or where the allocator itself doesn't work: the log's first error tells \
             more."
        }
        Reason::Small => "The request was small; what was there before, of this process or another, holds the memory.",
        Reason::Taken if message.framework == Some(Framework::Jax) => {
            "Nearly all of the GPU's memory is taken: one process of JAX leaves a quarter free, so another one is there."
        }
        Reason::Taken => {
            "The pool got little of the GPU's memory, or nearly all of that is taken: another process, or an earlier run, holds the rest."
        }
        Reason::Workers => "The node's workers fill it together, and Ray ended one of them.",
        Reason::Results => "The results found no room beside what was there before, of this process or another.",
        Reason::Fragmentation | Reason::Bank(Some(OomVerdict::Fragmentation)) => "Enough is free, but not in one piece.",
        Reason::Arguments => "Arguments and results alone exceed the memory that XLA plans with.",
        Reason::Size => return too_large(message),
        Reason::MostlyFree => {
            "Most of the pool is free: the request, which the text lacks, is larger than the largest free piece."
        }
        Reason::Bank(Some(OomVerdict::Size)) => return too_large(message),
        Reason::Bank(Some(_)) => "An empty bank has room for its part: other buffers lie there.",
        _ => "",
    }
    .to_owned()
}

fn too_large(message: &Message) -> String {
    let gpu =
        message.smaller_gpu().map(|gpu| format!(" The {} has {}.", gpu.name, bytes(gpu.bytes))).unwrap_or_default();
    let far = message.times_too_large().map(|times| format!(" It is {} times what there is, or more.", grouped(times)));
    format!("{}{gpu}{}", too_large_by_itself(message), far.unwrap_or_default())
}

fn too_large_by_itself(message: &Message) -> String {
    let row = |name| message.usage.as_ref().and_then(|usage| usage.get(name));
    let asked = row("temporaries").zip(message.used.as_ref()).filter(|(made, asked)| made.bytes() >= asked.bytes() / 2);
    let Some((temporaries, _)) = asked else {
        // The compiler's warning tells of the whole program.
        let warned = message.warned_of_rematerialization();
        let figures = warned.and_then(|warning| warning.used.as_ref().zip(warning.limit.as_ref()));
        let piece = message.used.as_ref().zip(figures).filter(|(asked, (_, limit))| asked.bytes() > limit.bytes());
        if let Some((asked, (_, limit))) = piece {
            return format!(
                "The program is too large: one piece of {} exceeds what its arguments leave, {}, as the compiler's warning says.",
                printed(asked),
                printed(limit)
            );
        }
        return match figures.filter(|(made, limit)| made.bytes() > limit.bytes()) {
            Some((made, limit)) => format!(
                "The program is too large: it makes {} beside its arguments, which leave {}, as the compiler's warning says.",
                printed(made),
                printed(limit)
            ),
            None => "The request itself is too large.".to_owned(),
        };
    };
    let total = message.usage.as_ref().map(|usage| &usage.total);
    let whole = total.filter(|total| total.bytes() > temporaries.bytes() / 4 * 5);
    let whole = whole.map(|total| format!(", {} in all", printed(total))).unwrap_or_default();
    format!("The program is too large{whole}: its temporaries take {}, asked for in one piece.", printed(temporaries))
}
