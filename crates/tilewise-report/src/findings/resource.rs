//! Resources other than memory, of which the same status code tells.

use super::{Words, code::JAX, words::printed};
use tilewise_oom::{Message, Resource};

/// Shared memory of a pod's container that runs the model.
const KUBERNETES: &str = "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]  # of the pod\n\
                          volumeMounts: [{name: shm, mountPath: /dev/shm}]  # of the container that fails";

pub(super) fn words(resource: Resource) -> Words {
    match resource {
        Resource::Files => Words::new("Raise the limit of open files, or close those that are done")
            .code(None, "ulimit -n 65536  # of a container: --ulimit nofile=65536"),
        Resource::Threads => Words::new(
            "Raise the limit of processes and threads, or start fewer: each process of a CPU-bound library starts a thread for each core, and many \
             processes of a node together reach the limit of a user or a container",
        )
        .task("Raise the limit of threads, or start fewer processes")
        .code(None, "ulimit -u; ulimit -u 65536  # of a container: --pids-limit=-1\nexport OMP_NUM_THREADS=4  # threads of each process"),
        Resource::Protobuf => Words::new(
            "Send it in parts: a data set as files that each worker reads, or an array some rows at a time, instead of one array in one message",
        )
        .task("Send it in parts: one message has at most 2 GiB"),
        Resource::Disk => Words::new("Free the disk, or write elsewhere; of a container, `/dev/shm` is one, too")
            .code(None, "df -h; df -h /dev/shm"),
        Resource::SharedMemory { is_of_kubernetes } => Words::new(
            "Allow more shared memory, or write files elsewhere: NCCL and workers of a data loader pass data through `/dev/shm`, of which a container \
             has 64 MiB unless it is told more",
        )
        .task("Allow more shared memory (`/dev/shm`), or write files elsewhere")
        .code(None, if is_of_kubernetes { KUBERNETES } else { "docker run --shm-size=16g …  # or --ipc=host\nmount -o remount,size=16G /dev/shm  # without a container" }),
        Resource::LoadersMemory => Words::new(
            "See how full shared memory is, and take fewer workers or batches ahead, or allow more of it: workers of a data loader pass batches through \
             `/dev/shm`. If it fills from epoch to epoch, loaders of earlier epochs are kept: make one, and keep it",
        )
        .task("See how full `/dev/shm` is; take fewer workers, or allow more")
        .code(
            None,
            "df -h /dev/shm  # while the job runs: full at once, or fuller with each epoch?\n\
             DataLoader(…, num_workers=2, prefetch_factor=2, persistent_workers=True)\n\
             docker run --shm-size=16g …  # of a container",
        ),
        Resource::Parameters => Words::new(
            "Give the program fewer arguments: each array of a tree, and in PyTorch/XLA each tensor that exists as a graph is cut, is one. A graph that \
             grows from step to step wasn't cut after each; weights of all layers can be stacked",
        )
        .task("Give the program fewer arrays, or cut the graph after each step")
        .code(None, "torch_xla.sync()  # after each step of PyTorch/XLA; xm.mark_step() before 2.7\n\
                     layers = jax.tree.map(lambda *each: jnp.stack(each), *layers)  # JAX: one array for all layers, for jax.lax.scan"),
        Resource::StaticTls => Words::new(
            "Load this library before all others: it is linked for thread-local variables in a block that a process sets aside as it \
             starts, and those loaded before it took the block",
        )
        .task("Load this library first: import it before all others")
        .code(None, "export LD_PRELOAD=LIBRARY.so  # the path in the error; or import its package first"),
        Resource::Scratch => Words::new(
            "Call the library for a part at a time, such as some rows of a batch, or with a narrower type; or update jaxlib: XLA lets a library's call \
             have that much for its work, whatever the GPU has, and newer versions may allow more",
        )
        .task("Call the library for a part at a time, some rows each, or update jaxlib")
        .code(JAX, "y = jax.lax.map(f, x)  # f: the call for one row, such as jnp.fft.rfft"),
        Resource::Workspace => Words::new(
            "Update jaxlib: cuSolver refused the size of its workspace, which older interfaces count in 32 bits, and newer versions call those of 64; or \
             compute it on the host, or for a smaller matrix. Neither memory nor a narrower type changes the count",
        )
        .task("Update jaxlib, whose cuSolver calls count in 64 bits; or compute on the host")
        .code(
            JAX,
            "with jax.default_device(jax.devices('cpu')[0]):  # a needs to lie there\n    w, v = jnp.linalg.eigh(jax.device_put(a, jax.devices('cpu')[0]))",
        ),
        Resource::CompileTime => Words::new(
            "Pass the array that it is made of as an argument, or make it before the compiled function: what depends on no argument is computed by the \
             compiler, on the host, and the result lies in the program",
        )
        .task("Pass the array that it is made of as an argument of the compiled function")
        .code(JAX, "table = jnp.ones((500, 500, 500))  # outside of the compiled function\ny = jax.jit(f)(x, table)"),
        Resource::Registers => Words::new(
            "If the job is slow, profile it: what finds no register lies in the GPU's own memory, some bytes for each thread, and is read from \
             there. A division of 64-bit floats is such a function, and 32-bit floats need none",
        )
        .task("Nothing for memory; if the job is slow, profile it"),
        Resource::Quota => Words::new("Ask for a larger quota, or take fewer devices, or those of another zone or type"),
        _ => Words::new(
            "Send less in one message, such as sums in place of all values, parts or files; or raise the limit on both sides",
        )
        .task("Send less in one message, or raise the limit on both sides"),
    }
}

pub(super) fn answer(message: &Message) -> [String; 2] {
    let headline = match message.resource() {
        Some(Resource::Threads) => "The process, or its user, may start no more threads.".to_owned(),
        Some(Resource::Files) => "The process may open no more files.".to_owned(),
        Some(Resource::Disk) => "A disk is full.".to_owned(),
        Some(Resource::SharedMemory { .. }) => "Shared memory, the files in `/dev/shm`, is full.".to_owned(),
        Some(Resource::LoadersMemory) => {
            "A data loader's worker crashed, most likely since shared memory (`/dev/shm`) is full.".to_owned()
        }
        Some(Resource::Parameters) => {
            let figure = |name| message.facts.number(name);
            let figures = figure("count").zip(figure("most"));
            let figures =
                figures.map(|(count, most)| format!(": {count}, and the limit is {most}")).unwrap_or_default();
            format!("A program has more arguments than a TPU's runtime takes{figures}.")
        }
        Some(Resource::Quota) => "A quota is used up.".to_owned(),
        Some(Resource::Scratch) => {
            let size = |name| message.facts.size(name).map(printed).unwrap_or_default();
            format!(
                "A library's call may not have as much for its work: {} asked for, {} allowed.",
                size("asked"),
                size("scratch")
            )
        }
        Some(Resource::Workspace) => "cuSolver refused the size of its workspace.".to_owned(),
        Some(Resource::CompileTime) => {
            "Warning: XLA computes a constant as it compiles, which takes seconds.".to_owned()
        }
        Some(Resource::Protobuf) => {
            "What is to be serialized exceeds 2 GiB, protobuf's limit for one message.".to_owned()
        }
        Some(Resource::Registers) => "Note: values of a GPU's kernel found no register.".to_owned(),
        Some(Resource::StaticTls) => "The block of thread-local variables for libraries is full.".to_owned(),
        _ => {
            let figure = |name| message.facts.number(name);
            let figures = figure("message").zip(figure("most"));
            let figures = figures.map(|(length, most)| format!(": {length} bytes, and its limit is {most}"));
            format!("A message between processes is too long{}.", figures.unwrap_or_default())
        }
    };
    let which = match message.resource() {
        Some(Resource::Scratch) => {
            "The limit is a constant of XLA's: neither the GPU's memory nor the pool's part changes it."
        }
        Some(Resource::CompileTime) => "Nothing failed; a large result takes the host's memory, too.",
        Some(Resource::Registers) => "It costs time, not memory: nothing failed.",
        Some(Resource::Workspace) => "No memory ran out: a count exceeds what the call takes.",
        Some(Resource::SharedMemory { .. } | Resource::LoadersMemory) => {
            "Its files lie in the host's memory, up to a limit: 64 MiB in a container, half of the memory elsewhere."
        }
        _ if message.quote.as_ref().is_some_and(|quote| quote.contains("RESOURCE_EXHAUSTED")) => {
            "No memory ran out; RESOURCE_EXHAUSTED is the status of all limits."
        }
        _ => "No memory ran out.",
    };
    [headline, which.to_owned()]
}
