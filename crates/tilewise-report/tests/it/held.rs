//! First screens on what holds a device's memory, and what a text's own sentences and code tell of it.

use crate::screen::first_change;

const GPU: &str = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5368709120 bytes.";

/// The first change and the screen of a text on a GPU with one size.
fn beside(text: &str) -> (String, String) {
    first_change(&format!("My GPU is an A100-SXM4-40GB, CUDA 12.\n{text}\n{GPU}"))
}

#[test]
fn a_size_alone_gets_a_look_at_the_holders_that_the_text_leaves() {
    let (task, screen) = beside("");
    assert_eq!(task, "See what holds it: kept arrays, the program, a limit or others");
    assert!(screen.contains("the size of one request alone") && screen.contains("bytes_in_use"), "{screen}");
    assert!(!screen.contains("smaller inputs"), "{screen}");
    assert_eq!(beside("The card is empty.").0, "See what holds it: kept arrays, the program or a limit");
    let set = "export XLA_PYTHON_CLIENT_MEM_FRACTION=.95\nNothing else runs on the card.";
    assert_eq!(beside(set).0, "See what holds it: kept arrays or the program");
    let closed = "@jax.jit\ndef big():\n    return jnp.ones(1 << 30).sum()\n";
    assert_eq!(beside(closed).0, "See what holds it: the program, a limit or others");
    assert_eq!(beside(&format!("{closed}\n{set}")).0, "Dump the program, and see what owns its peak");
    let (task, screen) = first_change("RuntimeError: CUDA out of memory. import torch");
    assert!(task == "See what holds it: kept arrays or others" && screen.contains("memory_reserved()"), "{screen}");
    assert!(screen.contains("The text doesn't tell what holds the memory"), "{screen}");
    let alone =
        "vllm serve x, torch on CUDA. Nothing else runs on the card.\ntorch.OutOfMemoryError: CUDA out of memory.";
    assert!(!first_change(alone).1.contains("See what holds it"), "{}", first_change(alone).1);
}

#[test]
fn arrays_that_a_function_is_not_given_are_constants() {
    let (task, screen) = beside("weights = jax.jit(lambda: weights, out_shardings=shardings)()");
    assert!(task.starts_with("Pass the array as an argument") && screen.contains("device_put"), "{screen}");
    assert!(screen.contains("Most likely an array that a compiled function closes over"), "{screen}");
    let folded = "It runs out of memory in constant folding.";
    assert!(beside(folded).0.starts_with("Pass the array as an argument"));
    assert!(!beside("cc:133] Constant folding an instruction is taking > 4s:").0.starts_with("Pass"));
    assert!(!beside("weights = jax.jit(lambda: init(key))()").0.starts_with("Pass"));
}

#[test]
fn errors_keep_the_arrays_of_what_failed() {
    let (task, screen) = beside("Each time the cell raises an exception, the GPU memory is not freed.");
    assert!(task.starts_with("Drop the traceback") && screen.contains("sys.last_traceback = "), "{screen}");
    assert!(!beside("After each epoch memory is not freed, and I get an error.").0.starts_with("Drop"));
}

#[test]
fn jax_beside_pytorch_keeps_what_it_took() {
    let text = "I set XLA_PYTHON_CLIENT_PREALLOCATE=false. The part of jax is done, torch is next:\ntorch.cuda.OutOfMemoryError: CUDA out of memory.";
    let (task, screen) = first_change(text);
    assert!(
        task.starts_with("Run JAX's part in a process that ends") && screen.contains("ALLOCATOR=platform"),
        "{screen}"
    );
}

#[test]
fn limits_of_libraries_are_no_memory() {
    let (task, screen) = first_change(
        "cuda_fft.cc:439] failed to initialize batched cufft plan: Allocating 6000000080 bytes exceeds the memory limit of 4294967296 bytes.",
    );
    assert!(
        task.starts_with("Call the library for a part") && screen.contains("5.59 GiB asked for, 4.00 GiB"),
        "{screen}"
    );
    let (task, screen) = first_change(
        "RuntimeError: operation cusolverDnSsyevd_bufferSize(handle.get(), n, &lwork) failed: cuSolver invalid value error",
    );
    assert!(task.starts_with("Update jaxlib") && screen.contains("No memory ran out"), "{screen}");
}

/// Of a table of processes one may have most, and a condition of the text names its cause.
#[test]
fn figures_and_sentences_choose_the_step() {
    let ray = |first: &str| {
        first_change(&format!(
            "It dies at step 80.\n1 Workers (tasks / actors) killed due to memory pressure (OOM)\nMemory on the node was 200.10GB / 207.00GB \
             (0.967)\nPID MEM(GB) COMMAND\n811 {first} ray::Learner.step\n"
        ))
    };
    assert_eq!(ray("181.50").0, "Find what `ray::Learner.step` keeps: it alone has 181.50 GB");
    assert!(ray("20.50").0.starts_with("Run fewer workers"));
    let host = |text: &str| {
        first_change(&format!(
            "{text}\nINVALID_ARGUMENT: Tensor which is moved to host (starting from tuple.3) is returned from the entry computation but the layout \
             for this output is not set to host memory."
        ))
    };
    assert!(host("None of it should remain on the host.").0.starts_with("Bring it back to the device"));
    assert!(host("").0.starts_with("If the result belongs on the host"));
    let shared =
        "ptxas error   : Entry function 'loop_add_fusion' uses too much shared data (0xc180 bytes, 0xc000 max)";
    assert!(
        first_change(&format!("It only happens when `debug_nans` is set.\n{shared}"))
            .0
            .starts_with("Take `debug_nans` out")
    );
    assert!(first_change(shared).0.starts_with("Keep the operations of XLA's fusion apart"));
    let list = "We append each output to a list; it dies at about batch 900.\nRESOURCE_EXHAUSTED: Attempting to allocate 2.25G. That was not possible. \
                There are 2.06G free.";
    assert!(first_change(list).0.starts_with("Keep on the host what the list collects"));
}

#[test]
fn an_array_of_all_processes_is_made_of_their_parts() {
    let (task, screen) = first_change(
        "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (32.55G) exceeds available HBM (31.25G).\n\n  \
         File \"/a/load.py\", line 9, in load\n    x = jax.device_put(x, sharding)\n  File \"/b/multihost_utils.py\", line 179, in assert_equal\n    \
         out = process_allgather(in_tree, tiled=True)\n",
    );
    assert!(task.starts_with("Make the array of each process's own part"), "{screen}");
    assert!(screen.contains("once for every process") && screen.contains("make_array_from_callback"), "{screen}");
}

#[test]
fn sentences_without_an_error_are_answered() {
    let grows = "GPU memory keeps increasing with each epoch, until the process dies.\nfor batch in loader:\n    state, loss = \
                 train_step(state, batch)\n    losses.append(loss)";
    let (task, screen) = first_change(grows);
    assert_eq!(task, "Keep on the host what `losses` collects in a loop");
    assert!(screen.starts_with("Memory grows on a GPU, by the text's own words."), "{screen}");
    let (task, screen) = first_change("Why does my JAX program use so much memory on a TPU v3-8?");
    assert!(task.starts_with("See what holds it") && screen.contains("has no error"), "{screen}");
    let (_, screen) = first_change("With a longer sequence my training on TPU v4-8 runs out of memory.");
    assert!(screen.starts_with("Out of memory on a TPU.") && !screen.contains("compiled"), "{screen}");
    let bare = "Systems of more than 5000 residues fail on 8 GPUs with JAX:\nRESOURCE_EXHAUSTED: Out of memory\n";
    let (task, screen) = first_change(bare);
    assert!(task.starts_with("See what holds it") && screen.starts_with("Out of memory on a GPU."), "{screen}");
    let compiled = "Compiling with XLA:CPU causes OOM with unrolled for loop";
    assert!(first_change(compiled).0.starts_with("Compile less"));
    let changed = "--grid-x 768 --grid-z 64 works, --grid-x 3072 --grid-z 64:\nRan out of memory in memory space hbm. Used 215.17G of 31.25G hbm.";
    assert!(!first_change(changed).0.contains("grid"), "{}", first_change(changed).0);
    let far = "Can't reduce memory use below 2.93GiB (3146063872 bytes) by rematerialization; only reduced to 14.12GiB \
               (15161425920 bytes)";
    assert!(first_change(far).1.contains("4 times the target"));
}

/// Free pieces above the place of programs, and a memory without room.
#[test]
fn free_memory_that_does_not_help_is_placed() {
    let text = "Attempting to reserve 5.88G at the bottom of memory. That was not possible. There are 14.74G free, 0B reserved, and 4.62G reservable.";
    let screen = first_change(text).1;
    assert!(
        screen.contains("not at the bottom of memory, where programs are put") && !screen.contains("in one piece"),
        "{screen}"
    );
    let text = "Attempting to allocate 31.06M. That was not possible. There are 58.64M free. Due to fragmentation, the largest contiguous region of \
                free memory is 30.56M.";
    assert!(first_change(text).1.contains("The memory is nearly full: 58.64 MiB are left"), "{}", first_change(text).1);
}

/// A language without Python's code has its own.
#[test]
fn a_front_end_has_its_own_words() {
    let exla = "[info] Sum Total of in-use chunks: 13.06GiB\nfine_tuning.livemd of Elixir";
    let screen = first_change(exla).1;
    assert!(screen.contains("Nx.backend_deallocate") && !screen.contains("jax."), "{screen}");
}
