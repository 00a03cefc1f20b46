//! The job beside a message: trials, phases, a model's size, memory that others hold.

use crate::screen::first_change;

/// The stacks of an inference's loop are a cache, and a length that the text names is no vocabulary.
#[test]
fn a_cache_is_kept_for_no_gradient() {
    let array = |number: u64, size: &str, name: &str, shape: &str| {
        format!(
            "  {number}. Size: {size}\n     Operator: op_name=\"pjit(generate)/jit(main)/while/body/{name}\" source_file=\"llama.py\" \
             source_line=514\n     Shape: {shape}\n     Unpadded size: {size}\n     ==========================\n"
        )
    };
    let cache = array(1, "16.00G", "dynamic_update_slice", "f32[32,2,131072,4,128]{4,2,3,1,0:T(8,128)}");
    let scores = array(2, "2.62G", "dot_general", "f32[1,4,1344,131072]{3,2,1,0:T(8,128)}");
    let refused = "Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm. Exceeded hbm capacity by 6.47G.\n\n  Largest program \
                   allocations in hbm:\n";
    let (task, screen) = first_change(&format!("max_sequence_length=131072\n{refused}{cache}{scores}"));
    assert_eq!(task, "Lower `max_sequence_length` from 131072 to 83840", "{screen}");
    assert!(!screen.contains("vocabulary"), "{screen}");
    let trained = format!("python train.py\n{refused}{cache}");
    assert!(first_change(&trained).0.starts_with("Recompute"));
}

/// A small request tells little of what a model takes that the text counts.
#[test]
fn the_whole_model_is_told_of() {
    let asked = |words: &str| {
        format!(
            "TPU v2-8, training\n  Total params: 573,228,546\n{words}Failed to allocate request for 64.00MiB (67108864B) on device ordinal 0"
        )
    };
    let (task, screen) = first_change(&asked("batch size 8 -> 2, nothing helps\n"));
    assert_eq!(task, "If each device holds the whole model: divide it, or train a part of it (LoRA)");
    assert!(screen.contains("0.6 billion parameters take 8.54 GiB") && !screen.contains("truncated"), "{screen}");
    assert_ne!(first_change(&asked("with LoRA\n")).0, task);
}

/// Two refusals of servers before anything is allocated.
#[test]
fn servers_refuse_what_they_would_set_aside() {
    let sglang = "sglang: mem_fraction_static=0.88\nRuntimeError: Not enough memory. Please try to increase --mem-fraction-static.";
    assert_eq!(first_change(sglang).0, "Raise `--mem-fraction-static` (0.88 now), as the error says");
    // A training program beside it: the server has no more to give, and its hint isn't about that program.
    let both = format!(
        "RESOURCE_EXHAUSTED: Error loading program 'jit_training_step': Attempting to reserve 7.82G. That was not \
         possible. There are 5.68G free.\n{sglang}"
    );
    let (task, screen) = first_change(&both);
    assert!(!screen.contains("--mem-fraction-static") && screen.contains("7.82 GiB asked for"), "{task}: {screen}");
    let swap = "ValueError: Too large swap space. 4.00 GiB out of the 4.30 GiB total CPU memory is allocated for the swap space.";
    assert!(first_change(swap).1.contains("--swap-space 1"));
}

/// A server whose weights find no room has no cache yet, and a part of the memory that failed isn't told again.
#[test]
fn phases_and_trials_of_servers() {
    let load = "vllm serve M\n  File \"/workspace/vllm/linear.py\", line 190, in create_weights\n    weight = Parameter(torch.empty(n))\n\
                RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 896.00M. That \
                was not possible. There are 295.08M free.";
    assert_eq!(first_change(load).0, "Load a checkpoint of fewer bits, or over more devices");
    let serve = |more: &str| {
        format!(
            "vllm serve M --gpu-memory-utilization 0.98\nInit model | hbm=[(7.42, 94.75)]GiB\nInit kv-cache | hbm=[(92.86, 94.75)]GiB\n\
             RESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure: Error loading program 'jit__f': Attempting to allocate 1.13G. That \
             was not possible. There are 528.72M free.\n\n{more}"
        )
    };
    assert!(first_change(&serve("")).1.contains("--gpu-memory-utilization 0.97"));
    let failed = serve("With --gpu-memory-utilization 0.95 it died with the same message.");
    assert!(first_change(&failed).1.contains("--gpu-memory-utilization 0.90"));
}

/// A pool of a few MiB is what others left of a GPU; a kernel's own limit is set where it is called.
#[test]
fn what_others_left_and_what_a_kernel_sets() {
    let pool = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 6.00MiB\nLimit:                        49283072\nInUse:        \
                                45907968\njaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to \
                allocate 6291456 bytes.";
    assert!(first_change(pool).0.starts_with("See whether other processes"), "{}", first_change(pool).1);
    let kernel = "torch_xla v6e pltpu vmem_limit_bytes=x\nRan out of memory in memory space vmem while allocating on stack for %k.1 = \
                  bf16[1024,4096]{1,0} custom-call(bf16[1024,8192]{1,0} %x), custom_call_target=\"tpu_custom_call\", \
                  metadata={op_name=\"jit(k)/jit(main)/pallas_call\"}. Scoped allocation with size 54.61M and limit 46.01M exceeded scoped \
                  vmem limit by 8.60M.";
    let screen = first_change(kernel).1;
    assert!(screen.contains("CompilerParams(vmem_limit_bytes=57671680)") && !screen.contains("in `main`"), "{screen}");
}

/// The options that a job has off come before a lower value, which its devices divide.
#[test]
fn switches_come_before_lower_values() {
    let refused =
        "Ran out of memory in memory space hbm. Used 65.08G of 30.75G hbm. Exceeded hbm capacity by 34.33G.\n";
    let array = |element: &str| {
        format!(
            "  Largest program allocations in hbm:\n  1. Size: 1.34G\n     Operator: op_name=\"jit(step)/jvp(M)/dot_general\"\n     \
             Shape: {element}[16,2048,11008]{{2,1,0:T(8,128)}}\n     Unpadded size: 1.34G\n     Allocation type: HLO temp\n     \
             ==========================\n"
        )
    };
    let command = "train.py --mesh_dim='1,-1,1' --dtype='fp32' --remat_block='' --accumulate_gradient_steps=1 --batch_size=2048\n";
    let (task, screen) = first_change(&format!("on a v4-256: {command}{refused}{}", array("f32")));
    assert_eq!(task, "Set `remat_block` from '' to nothing_saveable, `dtype` from fp32 to bf16");
    // 16 samples of each of 128 devices, of which 7 would fit: 6, as such sizes are set.
    assert!(screen.contains("Lower `batch_size` from 2048 to 768"), "{screen}");
    // A type that the list shows already isn't offered, nor a recomputation where nothing is trained.
    let narrow = first_change(&format!("on a v4-256: {command}{refused}{}", array("bf16"))).0;
    assert_eq!(narrow, "Set `remat_block` from '' to nothing_saveable");
    let run = first_change(&format!("serve --dtype='fp32' --remat_block='' --max_length=8192\n{refused}")).0;
    assert_eq!(run, "Set `dtype` from fp32 to bf16");
    let saved = first_change(&format!("train.py gradient_checkpointing=X.NOTHING_SAVEABLE, batch_size=8\n{refused}"));
    assert!(!saved.1.contains("ecompute layers"), "{}", saved.1);
}

/// Without a list, weights may be a part of what is needed; a batch isn't lowered below a sample for each device.
#[test]
fn lower_values_are_allowed_and_reach() {
    let refused = |used: &str, over: &str| {
        format!("Ran out of memory in memory space hbm. Used {used} of 15.48G hbm. Exceeded hbm capacity by {over}.\n")
    };
    let task = |text: &str| first_change(text).0;
    let most = refused("21.95G", "6.47G");
    assert_eq!(task(&format!("max_length=131072\n{most}")), "Lower `max_length` from 131072 to 65536");
    let little = refused("15.86G", "382.92M");
    assert_eq!(
        task(&format!("batch_size=8, max_length=8192\n{little}")),
        "Lower `batch_size` from 8 to 6 or `max_length` from 8192 to 7168"
    );
    let of_all = format!("jax on a v3-8: batch_size=8\n{little}");
    assert!(!first_change(&of_all).1.contains("batch_size"));
    assert_eq!(
        task(&format!("jax on a v3-8, axis_dims=(1, 1, 1, -1): batch_size=8\n{little}")),
        "Lower `batch_size` from 8 to 6"
    );
    assert_eq!(
        task(&format!("jax on a v3-8: per_device_batch_size=8\n{little}")),
        "Lower `per_device_batch_size` from 8 to 6"
    );
}

/// A setting that counts passes takes no memory, and one that counts environments does.
#[test]
fn passes_over_the_same_data_are_not_lowered() {
    let asked = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5798205904 bytes.\n";
    let warned = "Can't reduce memory use below 2.12GiB (2278089352 bytes) by rematerialization; only reduced to 5.65GiB (6063398400 bytes), \
                  down from 5.70GiB (6125699228 bytes) originally\n";
    let (task, screen) = first_change(&format!(
        "{warned}{asked}train(num_updates_per_batch=8, num_minibatches=24, num_envs=3072, batch_size=512)"
    ));
    assert_eq!(task, "Lower `num_envs` from 3072 to 768", "{screen}");
    assert!(!screen.contains("accumulation"), "{screen}");
}

/// A change of what a fresh run has alike is no cure, and an evaluation keeps no layers for a backward pass.
#[test]
fn what_runs_beside_what_fails() {
    let asked = "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 30.94GiB.\n";
    let resumed = "Resumed runs OOM on the first step, fresh runs of the same batch never do.\n";
    let (task, screen) = first_change(&format!("{resumed}batch_size=64\n{asked}"));
    assert!(task.starts_with("Give the step a restored state") && !screen.contains("batch_size"), "{screen}");
    assert!(!first_change(&format!("I resume it and it fails with OOM.\n{asked}")).0.starts_with("Give the step"));
    let (task, _) = first_change(&format!("Reverting `ea119f9` resolves the issue.\n{asked}"));
    assert_eq!(task, "Take commit ea119f9 back, without which the text says it works");
    assert!(!first_change(&format!("Reverting to ea119f9 helps.\n{asked}")).0.contains("ea119f9"));
    let refused = "Ran out of memory in memory space hbm. Used 24.31G of 15.48G hbm. Exceeded hbm capacity by 8.83G.";
    let called = "  File \"train.py\", line 492, in run\n    trainer.compile_eval({\n";
    let (task, screen) = first_change(&format!("BATCH_SIZE = 128\n{called}{refused}"));
    assert_eq!(task, "Lower `BATCH_SIZE` from 128 to 64", "{screen}");
    assert!(screen.contains("The evaluation fails") && !screen.contains("Recompute"), "{screen}");
    let (task, screen) = first_change(&format!("python train.py\n{refused}"));
    assert_eq!(task, "Recompute layers in the backward pass (a checkpoint around each)", "{screen}");
}

/// A matrix that a factorization makes isn't taken in parts.
#[test]
fn factorizations_have_steps_of_their_own() {
    let asked = "RuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 40000000000000000 bytes.";
    let task = |code: &str| first_change(&format!("{code}\n{asked}")).0;
    assert!(task("x = np.arange(100_000_000)\njnp.linalg.svd(x)").starts_with("Make no factor"));
    assert!(task("x = np.arange(100_000_000)\njnp.linalg.cholesky(k)").starts_with("Solve by products"));
    assert!(task("x = np.arange(100_000_000)").starts_with("Find what makes a value for each pair"));
}

/// A library's handle and a killed process tell of memory, too.
#[test]
fn stages_and_handles_that_no_line_calls_memory() {
    let (task, screen) =
        first_change("jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: cuSolver has not been initialized");
    assert!(task.starts_with("If other processes") && screen.contains("PREALLOCATE=false"), "{screen}");
    let (task, _) = first_change("Transforming variables...\nzsh: killed     python fit.py\n");
    assert_eq!(task, "Transform the samples one after the other, not all at once");
}
