//! Messages on a host's memory and on other machines', and on sizes that a text names.

use super::screen::first_change;

/// Sizes of a request by the names that the text gives them, each where several have the number.
#[test]
fn a_request_is_told_by_names_of_its_sizes() {
    let text = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 25386480000 bytes.\n\
        mmm = fit(data_size=365, n_channels=27, geos=644, number_warmup=1000, number_samples=1000)\n";
    let (task, screen) = first_change(text);
    assert_eq!(task, "Lower `number_warmup` or `number_samples` from 1000, or another of these sizes");
    assert!(screen.contains("(`geos`) × 365 (`data_size`)"), "{screen}");
}

/// All kinds of memory that a killed process held count.
#[test]
fn shared_memory_of_a_killed_process_counts() {
    let text = "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python,pid=9,uid=0\nOut of memory: Killed process 9 (python) \
        total-vm:142316804kB, anon-rss:2911044kB, file-rss:88224kB, shmem-rss:53446260kB, UID:1000\n";
    let (task, screen) = first_change(text);
    assert!(task.starts_with("Pin or share less"), "{task}");
    assert!(screen.contains("held 53.83 GiB, 51.05 GiB of it shared or pinned"), "{screen}");
}

/// A compiler's own memory isn't the data's.
#[test]
fn memory_of_a_compilation_is_the_compilers() {
    let text = "The process sits in .compile() and is gone; compiling other sizes is no problem.\n\
        Out of memory: Killed process 41772 (python) total-vm:101884216kB, anon-rss:62301544kB, file-rss:102400kB, shmem-rss:0kB\n";
    assert!(first_change(text).0.starts_with("Compile less"), "{}", first_change(text).0);
    let (task, _) = first_change(&text.replace(".compile()", "load").replace("compiling", "reading"));
    assert!(task.starts_with("See which process"), "{task}");
}

/// Options of the input pipeline, as the text sets them.
#[test]
fn an_input_pipeline_holds_data() {
    let config = "config.input.cache_raw = True\nconfig.input.shuffle_buffer_size = 250_000\nI0408 train.py:341] step: 150\nKilled\n";
    let (task, screen) = first_change(config);
    assert_eq!(task, "Set `cache_raw` to False, lower `shuffle_buffer_size` from 250_000", "{screen}");
    assert!(!first_change("config.input.cache_raw = False\nstep: 150\nKilled\n").0.contains("cache_raw"));
}

/// A stage and its option come before the limit of a container.
#[test]
fn a_stage_comes_before_a_limit() {
    let save = "It dies while saving the checkpoint.\nstaging_budget_gb: 16\nContainer was OOM killed (exit 137)\n";
    let (task, screen) = first_change(save);
    assert_eq!(task, "Lower `staging_budget_gb` from 16 to 8", "{screen}");
    assert!(!screen.contains("16g"), "{screen}");
    let copies = "xmp.spawn(train, nprocs=8)\nprocess 0 terminated with signal SIGKILL\n";
    assert_eq!(first_change(copies).0, "Hold the model once for all 8 processes, or start fewer");
}

/// A table of growth tells how much all parts take.
#[test]
fn memory_that_grows_with_each_part_is_added_up() {
    let killed = "Out of memory: Killed process 9 (python) total-vm:163718840kB, anon-rss:129871316kB, file-rss:2048kB, shmem-rss:0kB\n";
    let table = "Converting a checkpoint\n| 1 / 64 | 36 GiB |\n| 2 / 64 | 72 GiB |\n| 3 / 64 | 108 GiB |\n";
    let (task, screen) = first_change(&format!("{table}{killed}"));
    assert_eq!(task, "Keep less of each part, or take a host with more than 2.25 TiB: 64 × 36.00 GiB", "{screen}");
    assert!(screen.contains("--lazy_load_tensors"), "{screen}");
    assert!(!first_change(killed).0.contains("each part"));
}

/// A request that an allocator would repeat is no warning if an error ends the program behind it.
#[test]
fn an_error_after_an_optional_request_is_no_warning() {
    let request =
        "E cuda_executor.cc:1309] failed to allocate 7.10GiB (7623566950 bytes) from device: RESOURCE_EXHAUSTED\n";
    assert!(first_change(request).1.starts_with("Warning: "), "{request}");
    for error in
        ["XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization failed.", "RuntimeError: the step failed"]
    {
        let (task, screen) = first_change(&format!("{request}{error}"));
        assert!(!screen.contains("Warning") && !task.starts_with("Change nothing"), "{screen}");
    }
}

/// A batch is lowered to what the program's arguments leave, not to what the device has.
#[test]
fn a_lower_batch_fits_what_the_arguments_leave() {
    let text = "H100 80GB, batch_size=512\nCan't reduce memory use below 30.00GiB (32212254720 bytes) by rematerialization; only \
        reduced to 90.00GiB (96636764160 bytes), down from 95.00GiB (102005473280 bytes) originally\n\
        jax XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 96636764160 bytes.";
    let (task, screen) = first_change(text);
    assert_eq!(task, "Lower `batch_size` from 512 to 128", "{screen}");
    assert!(screen.contains("less than 1/3 at once"), "{screen}");
}

/// The free sum of a Tenstorrent device's bank tells whether it is full or fragmented.
#[test]
fn banks_are_full_or_fragmented() {
    let said = |free: u64| {
        let text = format!(
            "Out of Memory: Not enough space to allocate 1600000000 B DRAM buffer across 8 banks, where each bank needs to store \
             200000000 B, but bank size is 4273390016 B (allocated: 3600000000 B, free: {free} B, largest free block: 150000000 B)"
        );
        first_change(&text).1
    };
    let (full, fragmented) = (said(160_000_000), said(600_000_000));
    assert!(full.contains("other buffers lie") && full.contains("152.59"), "{full}");
    assert!(fragmented.contains("not in one piece"), "{fragmented}");
}

/// Sentences on a memory that a job uses up, and on one that grows.
#[test]
fn a_memory_that_is_used_up_is_told() {
    let (task, screen) = first_change(
        "Compiling jax.lax.top_k exhausts host memory.\nThe following code exhausts my host memory:\nf.lower(x).compile()",
    );
    assert!(task.starts_with("Compile less") && screen.starts_with("Out of memory on the host."), "{screen}");
    let (task, screen) = first_change("The cpu memory grew during the training, until all of it was used up.");
    assert!(task.starts_with("Find what the host keeps"), "{screen}");
    let (task, _) = first_change(
        "Your notebook tried to allocate more memory than is available.\nin start_processes(fn, args)\nexit code SIGKILL\nKilled",
    );
    assert!(task.starts_with("Hold the model once for all processes"), "{task}");
}

/// Limits that aren't of memory, and shared memory that may be full.
#[test]
fn limits_of_loaders_and_of_programs() {
    let (task, screen) = first_change(
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
    );
    assert!(
        task.starts_with("See how full `/dev/shm` is") && screen.contains("most likely since shared memory"),
        "{screen}"
    );
    let (task, screen) = first_change("Computation requires more parameters (3311) than supported (limit 3305).");
    assert!(
        task.starts_with("Give the program fewer arrays") && screen.contains("3311, and the limit is 3305"),
        "{screen}"
    );
}

/// Libraries and the host fail beside a GPU's memory, each in a way of its own.
#[test]
fn no_memory_of_the_gpu_ran_out() {
    for (text, answer, change) in [
        (
            "ptxas warning : Registers are spilled to local memory in function '__cuda_sm20_div_f64_slowpath_v2'",
            "Note: values of a GPU's kernel found no register.",
            "Nothing for memory; if the job is slow, profile it",
        ),
        (
            "JIT session error: Cannot allocate memory",
            "The host refused memory for machine code that XLA compiled.",
            "Compile fewer programs, and drop those that are done",
        ),
        (
            "INTERNAL: RET_CHECK failure (external/xla/xla/service/gpu/gpu_compiler.cc:1618) dnn != nullptr",
            "or of CUDA libraries of another release",
            "Install the framework with the CUDA packages of its own release",
        ),
    ] {
        let (task, screen) = first_change(text);
        assert_eq!(task, change, "{screen}");
        assert!(screen.contains(answer), "{screen}");
    }
}

/// The poster's own variable sets how far a GPU's memory overflows.
#[test]
fn an_overflow_is_set_by_the_variable_that_is_there() {
    let text = "XLA_PYTHON_CLIENT_MEM_FRACTION=.8 on an H100\njax XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to \
        allocate 96636764160 bytes.";
    let (_, screen) = first_change(text);
    assert!(screen.contains("export XLA_PYTHON_CLIENT_MEM_FRACTION=1.4\n"), "{screen}");
}

/// Questions without an error: a pool that is set aside, gradients through loops, matrices of derivatives, compilers and
/// programs on the host.
#[test]
fn questions_without_an_error() {
    for (text, change) in [
        (
            "JAX uses all GPU memory even for a tiny array\n\nOne small jnp.zeros, and nvidia-smi shows 30 of 40 GB. Is this a memory leak?",
            "Let it take what it needs alone, or limit its part of the GPU",
        ),
        (
            "Backprop through long rollouts uses a lot of memory\n\nI unroll 1000 steps with jax.lax.scan and take the gradient. Is there a way to \
             trade compute for memory?",
            "Recompute the loop's step in the backward pass: its values of all steps are kept",
        ),
        (
            "H = jax.hessian(f)(x) runs out of memory on my GPU.",
            "Compute products or some rows: `jax.hessian` computes all at once",
        ),
        (
            "A python loop of jnp operations is jitted; compile takes 40 minutes and memory of the host keeps growing until it is killed.",
            "Compile less: a loop for what is written out, another size, or a newer compiler",
        ),
        (
            "CPU memory leak when I call a jitted JAX function\n\nRSS grows by 5 MB per iteration. Sequences have a different length in each one.",
            "Pad arrays to a few shapes: each new one is compiled, and kept",
        ),
        (
            "GPU memory is not released after del\n\nHow can I free the GPU memory of a JAX process? nvidia-smi still shows it.",
            "If another process needs it: let arrays have memory of their own",
        ),
        (
            "How do I measure the peak memory of a jitted function in JAX?",
            "Ask the compiler: it plans all memory before anything runs",
        ),
        (
            "TPU device 0 uses 12 GB while the others use 1.5 GB, and then my JAX job runs out of memory.",
            "Make the array in its parts: one device holds it whole",
        ),
        (
            "When I close over a 4 GB array in a jitted function, compile uses 5 times the memory of the array.",
            "Pass the array as an argument of the compiled function",
        ),
        (
            "After jax.config.update('jax_enable_x64', True) my simulation runs out of memory on the GPU.",
            "If its precision suffices: compute in f32 (f64 now)",
        ),
    ] {
        let (task, screen) = first_change(text);
        assert_eq!(task, change, "{screen}");
    }
    // Where that is set already, it isn't the cause.
    let set = "XLA_PYTHON_CLIENT_PREALLOCATE=false\nWhy does JAX take all of the GPU memory for a small model?";
    assert_ne!(first_change(set).0, "Let it take what it needs alone, or limit its part of the GPU");
    // Layers that are checkpointed keep less already.
    let kept =
        "I scan 1000 steps with jax.lax.scan(jax.checkpoint(step)) and its gradient runs out of memory on my TPU.";
    assert!(!first_change(kept).0.starts_with("Recompute the loop's step"));
}

/// Codes of the driver but the one of a lack of memory.
#[test]
fn a_driver_refuses_for_another_reason() {
    let text = |code: &str| {
        format!(
            "cuda_driver.cc:967] failed to alloc 1048576 bytes on host: {code}\n\
             pool_allocator.h:195] could not allocate pinned host memory of size: 1048576"
        )
    };
    let (task, screen) = first_change(&text("CUDA_ERROR_UNKNOWN"));
    assert_eq!(task, "See whether the driver works: rights, version, a restart");
    assert!(screen.starts_with("The driver of a GPU refused a request of 1.00 MiB: `CUDA_ERROR_UNKNOWN`."), "{screen}");
    assert_eq!(
        first_change(&text("CUDA_ERROR_OUT_OF_MEMORY")).0,
        "If an error follows, free or pin less of the host's memory"
    );
}
