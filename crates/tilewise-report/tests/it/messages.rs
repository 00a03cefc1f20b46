//! First changes of messages: each needs evidence in the text.

use crate::screen::first_change;
use tilewise_oom::{Form, Message};

/// One shape alone doesn't tell which of its dimensions is the batch; an argument that begins with it does.
#[test]
fn a_batch_needs_a_second_shape() {
    let listed = |others: &str| {
        format!(
            "Ran out of memory in memory space hbm. Used 8.83G of 8.00G hbm. Exceeded hbm capacity by 848.88M.\n  Largest program \
             allocations in hbm:\n  1. Size: 4.00G\n     Operator: op_name=\"jit(f)/dot_general\"\n     Shape: \
             bf16[256,2048,4096]{{2,1,0}}\n     Unpadded size: 4.00G\n     ==========================\n{others}"
        )
    };
    let (task, screen) = first_change(&listed(""));
    assert!(task.starts_with("Dump the program") && !screen.contains("batch"), "{screen}");
    let argument = "  Largest program arguments and outputs in hbm:\n  2. Size: 1.00M\n     Operator: op_name=\"x\"\n     Shape: \
                    bf16[256,2048]{1,0}\n     XLA label: Argument 0 index {}\n     ==========================\n";
    let (task, screen) = first_change(&listed(argument));
    assert_eq!(task, "Process the 256 in 8 parts, if that is your batch", "{screen}");
    // Other batches ended the same: the 256 may be steps.
    let tried = format!("{}\nThe entries stay the same with batch_size=512 and 64", listed(argument));
    let (task, screen) = first_change(&tried);
    assert_eq!(task, "Process the 256 in 8 parts, if these are independent", "{screen}");
}

/// The allocator of a GPU's pool lists its chunks in use by size before the message.
#[test]
fn chunks_of_a_pool_are_told() {
    let (_, screen) = first_change(
        "I bfc_allocator.cc:641] 2 Chunks of size 8388608 totalling 16.00MiB\n\
         I bfc_allocator.cc:641] 6 Chunks of size 411041792 totalling 2.30GiB\n\
         I bfc_allocator.cc:641] 7 Chunks of size 1644167168 totalling 10.72GiB\n\
         I bfc_allocator.cc:645] Sum Total of in-use chunks: 13.89GiB\n\
         OOM when allocating tensor with shape[512,64,56,56] and type float on /job:localhost/device:GPU:0 by allocator GPU_0_bfc\n",
    );
    assert!(screen.contains("77 %   10.72 GiB  7 arrays of 1.53 GiB each"), "{screen}");
    assert!(screen.contains("6 arrays of 392.00 MiB each, as large as the one asked for"), "{screen}");
}

/// Arrays that TensorFlow passes have one name, whatever the log before them says.
#[test]
fn arguments_of_tensorflow_tell_of_it() {
    let (_, screen) = first_change(
        "Ran out of memory in memory space hbm. Used 8.83G of 8.00G hbm. Exceeded hbm capacity by 848.88M.\n  Largest program \
         allocations in hbm:\n  1. Size: 4.00G\n     Operator: op_name=\"XLA_Args\"\n     Shape: bf16[256,2048,4096]{2,1,0}\n",
    );
    assert!(!screen.contains("jax") && !screen.contains("xla_dump_to"), "{screen}");
}

#[test]
fn results_that_take_a_third_are_told() {
    let (task, screen) = first_change(
        "Out of memory while trying to allocate 15724724752 bytes.\nBufferAssignment stats:\n  parameter allocation: 959.50MiB\n  \
         maybe_live_out allocation: 12.84GiB\n  preallocated temp allocation: 14.64GiB\n  total allocation: 28.56GiB\n",
    );
    assert_eq!(task, "Return less at once: results take 12.84 GiB, 45.2 % of the program", "{screen}");
}

/// A host prints these words, too, and has no other processes to look for on a card.
#[test]
fn a_device_without_a_name_is_no_shared_card() {
    assert!(!first_change("RESOURCE_EXHAUSTED: Out of memory allocating 124867611608 bytes.").1.contains("nvidia"));
}

#[test]
fn spilled_registers_of_a_librarys_kernel_name_its_blocks() {
    let (task, screen) = first_change(
        "Size: 50.23M\n     XLA label: register allocator spill slots call depth 2\n     Allocation type: scoped\n     \
         ==========================\n\nSize: 1.00M\n     Operator: op_name=\"jit(f)/jit(ragged_paged_attention)/RPA-bq_32-bkvp_16-p_128/\
         pallas_call\"\n     Shape: bf16[2,32,32,1,2,128]{5,4,3,2,1,0:T(2,128)(2,1)}\n",
    );
    assert_eq!(task, "Choose smaller blocks for `ragged_paged_attention`", "{screen}");
}

/// The message of SGLang's scheduler is about its own pages.
#[test]
fn a_pool_of_pages_is_not_the_devices_memory() {
    let (task, screen) = first_change(
        "Decode out of memory. Try to lower your batch size.\nTry to allocate 363 tokens.\nAvailable tokens: 8064 \
         (available_size=8064 + evictable_size=0)",
    );
    assert!(screen.starts_with("The server's pool of the KV cache is full: 363 tokens wanted, 8064 free."), "{screen}");
    assert!(task.contains("--max-running-requests") && screen.contains("did not run out"), "{screen}");
}

#[test]
fn elements_are_picked_in_the_readers_framework() {
    let list = |begin: &str| {
        format!(
            "{begin}Ran out of memory in memory space hbm. Used 17.60G of 16.00G hbm. Exceeded hbm capacity by 1.60G.\n  Largest program \
             allocations in hbm:\n  1. Size: 2.00G\n     Operator: op_type=\"OneHot\" op_name=\"one_hot\"\n     Shape: \
             f32[4194304,18]{{1,0:T(8,128)}}\n     Unpadded size: 288.00M\n     Extra memory due to padding: 1.72G (7.1x expansion)\n"
        )
    };
    let (task, screen) = first_change(&list("INFO:tensorflow:"));
    assert!(task.contains("tf.gather") && !screen.contains("jnp"), "{screen}");
}

#[test]
fn a_sentence_about_a_refusal_is_no_part_of_it() {
    let (_, screen) = first_change(
        "XLA compilation fails with `failed to legalize operation 'tpu.reshape'` when compiling a large model. It is size-dependent.",
    );
    assert!(
        !screen.contains("large model") && screen.contains("failed to legalize operation `tpu.reshape`."),
        "{screen}"
    );
}

/// An allocator asks for less and less.
#[test]
fn a_pool_that_grows_has_not_failed() {
    let line = |size: &str| {
        format!(
            "cuda_executor.cc:533] failed to allocate {size} from device: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
        )
    };
    let (_, screen) = first_change(&(line("555.84MiB (582843136 bytes)") + &line("500.26MiB (524558848 bytes)")));
    assert!(screen.starts_with("Warning: a GPU had no memory for 2 requests, of 500.26 MiB to 555.84 MiB"), "{screen}");
}

/// An autotuner tries algorithms, and goes on without those whose workspace has no room.
#[test]
fn what_an_autotuner_asks_for_has_not_failed() {
    let line = |file: &str| {
        format!(
            "2019-05-29 23:55:55.581962: E tensorflow/compiler/xla/service/gpu/{file}:525] Resource exhausted: Failed to allocate \
             request for 528.00MiB (553648128B) on device ordinal 0\n"
        )
    };
    assert!(first_change(&line("cudnn_conv_algorithm_picker.cc")).1.starts_with("Warning: a GPU had no memory"));
    assert!(first_change(&line("gpu_executable.cc")).1.starts_with("Out of memory on a GPU"));
}

/// The bar of XLA's allocator tells whether arrays of before, or the request, fill the pool.
#[test]
fn a_full_pool_is_its_own_process() {
    let screen = |filled: usize| {
        let bar = "*".repeat(filled) + &"_".repeat(100 - filled);
        first_change(&format!(
            "W external/tsl/tsl/framework/bfc_allocator.cc:497] {bar}\n\
             E external/xla/xla/pjrt/pjrt_stream_executor_client.cc:2732] Execution of replica 0 failed: RESOURCE_EXHAUSTED: Out of \
             memory while trying to allocate 14745600080 bytes. CUDA"
        ))
    };
    let (task, full) = screen(79);
    assert!(task.starts_with("Dump the program") && full.contains("fill 79 % of its pool"), "{full}");
    assert!(full.contains("If earlier steps ran: list the arrays alive"), "{full}");
    assert!(!full.contains("nvidia-smi"), "{full}");
    let (_, empty) = screen(1);
    assert!(empty.contains("The request itself is too large"), "{empty}");
}

#[test]
fn a_broken_context_is_no_lack_of_memory() {
    let (task, screen) = first_change(
        "cuda_driver.cc:1101] failed to allocate 40.33GiB (43309858816 bytes) from device: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory \
         access was encountered\nAllocator (GPU_0_bfc) ran out of memory trying to allocate 10.37GiB (rounded to 11135050240)requested \
         by op MatMul",
    );
    assert!(screen.starts_with("An earlier operation broke the GPU's context"), "{screen}");
    assert_eq!(task, "Find the operation that broke the GPU's context; take another version of it");
}

/// Drivers and allocators of the host have words of their own.
#[test]
fn what_a_host_refuses_is_no_lack_of_a_devices_memory() {
    let (task, screen) =
        first_change("tcmalloc: large alloc 377396076847104 bytes == (nil) @  0x7fefdec9d680 0x7fefdecbe824");
    assert!(screen.starts_with("A damaged size") && task == "Install versions that were released together", "{screen}");
    let (task, screen) =
        first_change("RESOURCE_EXHAUSTED: ioctl failed\n... for 4294967808 bytes\n(requested 1048577 pages)");
    assert!(
        screen.starts_with("The host's memory could not be mapped: 4.00 GiB") && task.contains("in parts"),
        "{screen}"
    );
    let (_, screen) = first_change("XlaRuntimeError: INTERNAL: No reference output found!");
    assert!(screen.contains("autotuning found no algorithm for an operation"), "{screen}");
    let (task, screen) = first_change(
        "INTERNAL: Slice sizes along tiled dimensions must be aligned to tiles.\nFailed to verify that the size at dimension 1 is \
         divisible by the tile dimension 128.",
    );
    assert!(screen.starts_with("Compile failed, no memory ran out") && task == "Pad dimension 1", "{screen}");
}

#[test]
fn libraries_find_room_beside_the_pool() {
    let retry = "W bfc_allocator.cc:272] Allocator (GPU_0_bfc) ran out of memory trying to allocate 16.00MiB with freed_by_count=0. \
                 The caller indicates that this is not a failure";
    let (task, screen) = first_change(&format!("{retry}\nCUDNN_STATUS_ALLOC_FAILED\n"));
    assert_eq!(task, "Leave the pool less of the memory", "{screen}");
    assert!(screen.contains("A library's call found no memory"), "{screen}");
    let handle = "E cuda_blas.cc:238] failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED";
    let (task, screen) = first_change(&format!("{retry}\n{handle}\n"));
    assert_eq!(task, "If other processes are there: let none set memory aside, or end them", "{screen}");
    assert!(!screen.contains("Out of memory"), "{screen}");
    let free = "Memory usage: 42069065728 bytes free, 42505273344 bytes total.\nPossibly insufficient driver version: 470.182.3";
    let (task, screen) = first_change(&format!("{handle}\n{free}\n"));
    assert_eq!(task, "Install a newer driver, or libraries that fit this one");
    assert!(screen.contains("39.18 GiB are free: no memory ran out"), "{screen}");
}

/// Temporaries of that wording lie beside the arguments, and a kernel's advice needs a kernel in the text.
#[test]
fn what_a_text_does_not_show_is_not_said() {
    let bound = "Ran out of memory on HBM, the total memory required for HLO temporaries (16.23G) exceeds available HBM (15.75G).";
    let (_, screen) = first_change(bound);
    assert!(
        screen.contains("16.23 GiB needed for temporaries")
            && screen.contains("shrink by 3 % at least, and by what lies beside"),
        "{screen}"
    );
    let of_tensorflow =
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Ran out of memory in memory space vmem.";
    assert_eq!(first_change(of_tensorflow).0, "Update libtpu, or report it: the operation is the compiler's own");
    let near = "Ran out of memory in memory space smem. Used 1.01M of 1.00M smem.";
    assert!(!first_change(near).1.contains(" over"), "{}", first_change(near).1);
}

/// 334 MiB are a small part of any GPU.
#[test]
fn a_small_program_is_not_too_large() {
    let table = "GPU 0:\nOut of memory while trying to allocate 250000256 bytes.\nBufferAssignment stats:\n  parameter allocation: \
                 78.1KiB\n  maybe_live_out allocation: 95.37MiB\n  preallocated temp allocation: 238.42MiB\n  total allocation: \
                 333.86MiB\n";
    let (task, screen) = first_change(table);
    assert!(task.starts_with("See what holds it") && !screen.contains("too large"), "{screen}");
}

#[test]
fn a_data_set_is_copied_in_batches() {
    let line = |op: &str| {
        format!(
            "W tensorflow/core/common_runtime/bfc_allocator.cc:457] Allocator (GPU_0_bfc) ran out of memory trying to allocate 40.73GiB \
             (rounded to 43731715328)requested by op {op}"
        )
    };
    assert_eq!(first_change(&line("_EagerConst")).0, "Pass the data in batches, not whole");
    assert!(!first_change(&line("MatMul")).0.contains("batches"));
}

/// The job's own settings come before a dump, where the text names them and arrays have them.
#[test]
fn settings_of_the_text_are_lowered() {
    let refused = "Ran out of memory in memory space hbm. Used 19.22G of 15.75G hbm. Exceeded hbm capacity by 3.47G.";
    let (task, screen) = first_change(&format!("python train.py --batch_size=8 --seq_len=1024\n{refused}"));
    assert_eq!(task, "Lower `batch_size` from 8 to 4 or `seq_len` from 1024 to 512");
    assert_eq!(screen.matches("has to shrink by 19 %").count(), 1, "{screen}");
    let list = "\n  Largest program allocations in hbm:\n  1. Size: 8.00G\n     Shape: bf16[1024,1024,4096]{2,1,0:T(8,128)(2,1)}\n     \
                Unpadded size: 8.00G\n     XLA label: fusion.1\n     Allocation type: HLO temp\n     ==========================\n";
    let of_list = |settings: &str| first_change(&format!("train({settings})\n{refused}{list}")).0;
    assert_eq!(of_list("batch_size=1024"), "Lower `batch_size` from 1024 to 824");
    assert!(!of_list("batch_size=512").contains("Lower"), "{}", of_list("batch_size=512"));
    assert!(!first_change(refused).0.contains("Lower"));
}

/// Of a server's log, weights alone don't tell how much its cache took.
#[test]
fn a_flag_has_a_value_where_the_cache_is_known() {
    let refused = "vllm\nRESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure: Error loading program 'jit_run_model': Attempting to \
                   allocate 1.15G. That was not possible. There are 1.13G free.";
    let code = |log: &str| first_change(&format!("{log}{refused}")).1;
    let weights = "Init model | hbm=[(7.17, 15.75)]Gb\n";
    assert!(code(weights).contains("0.05 to 0.1 less than now"));
    assert!(
        code(&format!("{weights}Init kv-cache | hbm=[(14.17, 15.75)]Gb\n")).contains("--gpu-memory-utilization 0.88")
    );
}

/// Weights that are loaded are needed: they have to be divided.
#[test]
fn weights_that_are_loaded_are_divided() {
    let refused = "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 196.00M. That was not possible. There \
                   are 60.94M free.; (0x0x0_HBM0)";
    let raised = "Traceback (most recent call last):\n  File \"chat.py\", line 8, in <module>\n";
    let task = |code: &str| first_change(&format!("{raised}    {code}\n{refused}")).0;
    let load = "model = GemmaCausalLM.from_preset(\"gemma2_9b\")";
    assert_eq!(task(load), "Load the weights on the host, then give each device its part");
    let less = "Load less on a device: a part, no optimizer's state, a narrower type";
    assert_eq!(task("params = checkpointer.restore(path)"), less);
    assert_eq!(task("state = create_train_state(key)"), "Divide weights and state between devices as they are made");
    assert!(task("state = step(state, batch)").starts_with("If no step ran: ask for less"));
    let gpu = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 9.00GiB\njax.errors.JaxRuntimeError: x";
    let less = "Load less on a device: a part of the weights, or a narrower type";
    assert_eq!(first_change(&format!("{raised}    {load}\n{gpu}")).0, less);
    // A server has no cache yet.
    assert_eq!(task("self.load_model()  # vllm"), "Load a checkpoint of fewer bits, or over more devices");
}

/// Values of the text's own come before what is usual.
#[test]
fn what_a_text_shows_is_told() {
    let torch = |line: &str, code: &str, asked: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"fit.py\", line 9, in main\n    trainer.train()\n  File \
             \"/lib/python3.12/site-packages/x/loop.py\", line 7, in {line}\n    add(y)\n  File \
             \"/lib/python3.12/site-packages/x/a.py\", line 3, in f\n    {code}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to \
             allocate {asked}. GPU 0 has a total capacty of 39.39 GiB of which 5.03 GiB is free. Of the allocated memory 33.60 GiB is \
             allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."
        )
    };
    // Outputs of an evaluation, joined; one array, in an old spelling of the card's size; an evaluation takes no gradient.
    let (task, screen) = first_change(&torch("evaluation_loop", "return torch.cat((a, b), dim=0)", "6.00 GiB"));
    assert_eq!(task, "Keep less of each evaluated batch: outputs of all are joined");
    assert!(screen.contains("The request is made at a.py:3: return torch.cat((a, b), dim=0)"), "{screen}");
    assert!(
        first_change(&torch("training_step", "return a @ b", "24.81 GiB")).0.starts_with("Never make the array whole")
    );
    assert!(
        first_change(&torch("training_step", "return a @ b", "1.00 GiB"))
            .0
            .starts_with("Take fewer samples at once, or put")
    );
    assert!(first_change(&torch("evaluate", "return a @ b", "1.00 GiB")).0.starts_with("See whether batches"));
    let of_one = format!("{}\nI went down to batch 1, same", torch("training_step", "return a @ b", "1.00 GiB"));
    assert_eq!(first_change(&of_one).0, "Put checkpoints around the layers, or take shorter inputs");
    let attention = "y = torch.nn.functional.scaled_dot_product_attention(q, k, v)";
    let scores = first_change(&torch("training_step", attention, "12.00 GiB")).0;
    assert_eq!(scores, "Let attention keep no scores: take a fused kernel");
    let model = format!("GPT of 6.66B parameters\n{}", torch("training_step", "return a @ b", "24.81 GiB"));
    assert_eq!(first_change(&model).0, "Gather the parameters a layer at a time, not the whole model");
    // A warning of the line that fails.
    let warned = torch("training_step", "return a @ b", "1.00 GiB");
    let warned =
        format!("/lib/python3.12/site-packages/x/a.py:3: UserWarning: slow. Enable it with FAST_ONE=1.\n{warned}");
    assert!(first_change(&warned).1.contains("export FAST_ONE=1"));
    // NCCL beside a pool of 98 %, TensorFlow beside JAX.
    let nccl = "export XLA_PYTHON_CLIENT_MEM_FRACTION=.98\njax.errors.JaxRuntimeError: INTERNAL: NCCL operation \
                ncclCommInitRank failed: unhandled cuda error. Last NCCL warning(error) log entry 'Cuda failure 'out of memory''";
    assert!(first_change(nccl).1.contains("export XLA_PYTHON_CLIENT_MEM_FRACTION=.83"), "{}", first_change(nccl).1);
    let opened = "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 21736 MB memory:  -> device: 0\n\
                  jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1610612736 bytes.";
    assert!(first_change(opened).0.starts_with("Keep TensorFlow off the GPU"));
    // A block of thread-local variables is no memory; a batch for all devices.
    let tls = "OSError: /lib/libgomp.so.1: cannot allocate memory in static TLS block";
    assert_eq!(first_change(tls).0, "Load this library first: import it before all others");
    let refused = "Ran out of memory in memory space hbm. Used 58.41G of 15.48G hbm. Exceeded hbm capacity by 42.93G.";
    let list = "\n  Largest program allocations in hbm:\n  1. Size: 6.12G\n     Shape: f32[2048,112,112,64]{0,3,2,1:T(8,128)}\n     \
                Unpadded size: 6.12G\n     XLA label: fusion.1\n     Allocation type: HLO temp\n     ==========================\n";
    let global = format!("GLOBAL_BATCH = 2048\n{refused}{list}");
    assert_eq!(first_change(&global).0, "If devices share `GLOBAL_BATCH` (2048): give each its part");
}

/// One failure has one answer, though the text tells of it in two wordings; what a comment warns of did not happen.
#[test]
fn one_failure_is_told_once() {
    let text = "Ran out of memory in memory space vmem while allocating on stack for %fwd.1. Scoped allocation with size 36.25M and \
                limit 32.00M exceeded scoped vmem limit by 4.25M.\n\
                RESOURCE_EXHAUSTED: Attempting to allocate 36.25M. That was not possible. There are 32.00M free.";
    let explained = tilewise_audit::explain(Message::parse(text).expect("a message"), None);
    assert_eq!((explained.message.memory_space.as_deref(), explained.message.others.len()), (Some("vmem"), 0));
    let commented = "x = f(y)  # otherwise: UserWarning: Some donated buffers were not usable: f32[8,128].\nKilled";
    assert_eq!(Message::parse(commented).expect("a message").form, Form::Host);
}

/// A warning about donation names no device, and so no tiles.
#[test]
fn donated_arrays_without_a_device_have_no_tiles() {
    let (_, screen) = first_change(
        "UserWarning: Some donated buffers were not usable: ShapedArray(float32[185,16,16,3]), ShapedArray(int32[185])",
    );
    assert!(screen.contains("together 555.72 KiB") && !screen.contains("T(8,128)"), "{screen}");
}

/// Masks and indices that are converted are made inside: no argument has to be another one.
#[test]
fn whole_numbers_that_are_converted_are_no_weights() {
    let listed = |shape: &str| {
        format!(
            "Ran out of memory in memory space hbm. Used 33.00G of 30.75G hbm. Exceeded hbm capacity by 2.25G.\n  Largest program \
             allocations in hbm:\n  1. Size: 32.00G\n     Operator: op_name=\"jit(f)/vmap(jit(g))/convert_element_type\"\n     \
             Shape: {shape}\n     Unpadded size: 32.00G\n     XLA label: x = convert(y)\n     ==========================\n"
        )
    };
    assert!(!first_change(&listed("s32[8,128,128,256,256]{4,3,2,1,0:T(8,128)}")).1.contains("weights"));
    assert!(first_change(&listed("bf16[8,128,128,256,512]{4,3,2,1,0:T(8,128)(2,1)}")).1.contains("weights"));
}

#[test]
fn spilled_registers_of_a_fusion_are_no_kernels() {
    let (task, screen) = first_change(
        "Ran out of memory in memory space vmem.\n\nLargest program allocations in vmem:\n\nXLA label: register allocator spill slots\n\
         Allocation type: scoped\n\nXLA label: %fusion.11963 = f32[4,192,1024]{2,0,1:T(4,128)} fusion(f32[4,1,1024]{2,0,1:T(4,128)} \
         %a), kind=kLoop, calls=%fused_computation\nAllocation type: scoped\n",
    );
    assert_eq!(task, "Find the operation that unrolls, and give it less at once", "{screen}");
    assert!(!screen.contains("kernel of your own"), "{screen}");
}

#[test]
fn what_a_gpu_lacks_before_any_program_is_held_by_others() {
    let opened = "unable to create StreamExecutor for CUDA:0: failed initializing StreamExecutor for CUDA device ordinal 0: INTERNAL: \
                  failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory; total memory reported: 34089730048";
    let (task, screen) = first_change(opened);
    assert!(task.starts_with("Take the GPUs that no other process fills"), "{screen}");
    assert!(screen.contains("CUDA_VISIBLE_DEVICES") && !screen.contains("MEM_FRACTION"), "{screen}");
    let (task, screen) =
        first_change("Execution of replica 0 failed: INTERNAL: Failed to allocate 50331648 bytes for new constant");
    assert!(task.starts_with("See what holds it"), "{screen}");
}

/// A dimension of size 1 is the only row of each tile: 1 of 8 holds data.
#[test]
fn a_row_of_one_is_left_out() {
    let (task, screen) = first_change(
        "Ran out of memory in memory space hbm. Used 17.00G of 15.75G hbm. Exceeded hbm capacity by 1.25G.\n\
         Total hbm usage >= 17.00G:\n    program 17.00G\n  Largest program allocations in hbm:\n  1. Size: 8.00G\n     \
         Shape: f32[2048,1,1024,128]{0,1,3,2:T(8,128)}\n     Unpadded size: 1.00G\n     Extra memory due to padding: 7.00G (8.0x \
         expansion)\n     XLA label: broadcast.7 = broadcast(bitcast.2), dimensions={2,3}\n     Allocation type: HLO temp\n",
    );
    assert_eq!(task, "Leave the dimension of size 1 out, or merge it with another");
    assert!(screen.contains("frees up to 7.00 GiB") || screen.contains("frees 7.00 GiB"), "{screen}");
}

/// Results that are larger than a request fill the memory before it.
#[test]
fn results_of_a_step_come_before_a_small_request() {
    let (task, _) = first_change(
        "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 96.00M. That was not possible. There are 34.00M \
         free.; (1x0x0_HBM0)\nPost Compilation Analysis: Graph output size: 20.500000 GB\n",
    );
    assert_eq!(task, "Return less from a step: results of a program take 20.500000 GB");
}

/// Words of launchers, without a number's `code`.
#[test]
fn a_container_is_killed() {
    for (words, headline) in [
        // These have seen the limit of the container.
        ("Container was OOM killed by the kernel", "Out of memory in a control group of the host"),
        ("OOMKilled (exit 137)", "Out of memory in a control group of the host"),
        ("the pod ended (exit 137)", "A process was killed"),
    ] {
        let (_, screen) = first_change(words);
        assert!(screen.starts_with(headline), "{screen}");
    }
}

/// XLA allocates the operands of an operation that it autotunes.
#[test]
fn an_operand_is_no_workspace() {
    let (task, screen) = first_change(
        "Failed to determine best cudnn convolution algorithm for:\n%cudnn-conv.1 = (f32[1,64,1200,1200]{3,2,1,0}, u8[0]{0}) \
         custom-call(f32[1,1024,1200,1200]{3,2,1,0} %a, f32[64,1024,1,1]{3,2,1,0} %b), custom_call_target=\"__cudnn$convForward\"\n\n\
         Original error: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5898240000 bytes.",
    );
    assert_eq!(task, "Compute the convolution in tiles of the picture", "{screen}");
    assert!(screen.contains("its operand f32[1,1024,1200,1200]") && !screen.contains("picker"), "{screen}");
}

#[test]
fn a_loop_that_nothing_cuts_is_one_program() {
    let log = |code: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"/home/a/train.py\", line 63, in <module>\n    {code}\nRuntimeError: Bad StatusOr \
             access: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 62.87G of 31.25G hbm. Exceeded hbm capacity by \
             31.62G.\n  Largest program allocations in hbm:\n  1. Size: 502.00M\n     Operator: op_type=\"aten__mm\" \
             op_name=\"aten__mm.1\"\n     Shape: f32[4096,32128]{{1,0:T(8,128)}}\n"
        )
    };
    assert!(first_change(&log("print(loss.item())")).0.starts_with("Cut the graph after each batch"));
    assert!(!first_change(&log("xm.mark_step()")).1.contains("Cut the graph"));
}

/// Ray's own monitor ends workers before Linux does; a container's shared memory is neither the host's nor a GPU's.
#[test]
fn limits_of_a_node_and_of_a_container() {
    let (task, screen) = first_change(
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node (IP: 1.2.3.4, ID: 5c) \
         where the task (task ID: 9f, name=f, pid=12, memory used=3.11GB) was running was 59.80GB / 62.70GB (0.95), which exceeds the memory \
         usage threshold of 0.95.",
    );
    assert!(
        task.starts_with("Run fewer workers at once") && screen.contains("59.80GB of the node's 62.70GB"),
        "{screen}"
    );
    let (task, screen) =
        first_change("Last error:\nError while creating shared memory segment /dev/shm/nccl-Qe8ZtW (size 7340384)");
    assert!(task.starts_with("Allow more shared memory") && !screen.contains("RESOURCE_EXHAUSTED"), "{screen}");
}

/// One process of JAX leaves a quarter of a GPU free.
#[test]
fn a_gpu_that_is_taken_has_another_process() {
    let (task, screen) = first_change(
        "jax\nTraceback (most recent call last):\n  File \"/a/train.py\", line 6, in init\n    params = model.init(key)\nAllocator (GPU_0_bfc) ran out of \
         memory trying to allocate 8.79GiB\nMemory usage: 31064064 bytes free, 51033931776 bytes total.\njaxlib.xla_extension.XlaRuntimeError: \
         FAILED_PRECONDITION: DNN library initialization failed.",
    );
    assert!(
        task.starts_with("See whether other processes hold") && screen.contains("another one is there"),
        "{screen}"
    );
}

/// Of a program whose results fill it, the temporaries aren't what is asked for.
#[test]
fn the_sentence_on_a_request_names_what_it_is_for() {
    let (_, screen) = first_change(
        "Out of memory while trying to allocate 10080517240 bytes.\nBufferAssignment stats:\n  parameter allocation: 480.0KiB\n  \
         maybe_live_out allocation: 9.39GiB\n  preallocated temp allocation: 22.31MiB\n  total allocation: 9.41GiB\n",
    );
    assert!(!screen.contains("temporaries take"), "{screen}");
}

/// Warnings of what was made all the same ask for nothing.
#[test]
fn a_large_part_of_the_host_is_a_warning() {
    let (task, screen) =
        first_change("W cpu_allocator_impl.cc:83] Allocation of 414988800 exceeds 10% of free system memory.");
    assert_eq!(task, "Change nothing, unless the process is killed");
    assert!(screen.starts_with("Warning: an array of 395.76 MiB takes more than a tenth"), "{screen}");
}

/// An array that one device makes whole is held beside its part; weights are made where a line assigns what initializes.
#[test]
fn arrays_that_are_made_whole() {
    let of = |code: &str| {
        first_change(&format!(
            "Traceback (most recent call last):\n  File \"/home/a/shard.py\", line 31, in <module>\n    {code}\nXlaRuntimeError: \
             RESOURCE_EXHAUSTED: Attempting to reserve 4.10G at the bottom of memory. That was not possible. There are 3.38G free, 0B \
             reserved, and 3.38G reservable."
        ))
    };
    assert_eq!(
        of("a = jax.device_put(jnp.zeros([n]), sharding)").0,
        "Make the array in its parts: one device holds it whole"
    );
    assert_eq!(
        of("self.state = self.init_xmap(key, x)").0,
        "Divide weights and state between devices as they are made"
    );
}

/// The host's memory overflows a GPU's only where that is known, and large enough.
#[test]
fn random_bits_on_a_gpu() {
    let buffer = "Size: 16.00GiB\n\t\tOperator: op_name=\"jit(init)/jit(_uniform)/threefry2x32\"\n\t\tXLA Label: custom-call\n\t\tShape: u32[2,2147483648]\n\t\t==========================\n";
    let (task, screen) = first_change(&format!(
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 103079216656 bytes.\nBufferAssignment OOM Debugging.\nPeak \
         buffers:\n\tBuffer 1:\n\t\t{buffer}\n\tBuffer 2:\n\t\tSize: 16.00GiB\n\t\t...\n"
    ));
    assert_eq!(task, "Make fewer random numbers at once, or make them on the host");
    assert!(!screen.contains("TF_FORCE_UNIFIED_MEMORY"), "{screen}");
}

/// A function that initializes a sampler's state makes its buffers; words without a sign are random bits, of no one's own.
#[test]
fn arrays_that_are_no_weights() {
    let log = "  File \"/home/a/sampler.py\", line 246, in init_sample_state\n    logits_buffer = jnp.zeros(\nXlaRuntimeError: \
               RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 15.65G. That was not possible. There are 11.08G free.";
    let (task, screen) = first_change(&format!("Traceback (most recent call last):\n{log}"));
    assert!(task.starts_with("If no step ran: ask for less") && !screen.contains("optimizer"), "{screen}");
    let (task, _) = first_change(
        "Ran out of memory in memory space hbm. Used 21.93G of 16.00G hbm. Exceeded hbm capacity by 5.93G.\n  Largest program allocations \
         in hbm:\n  1. Size: 6.00G\n     Shape: u32[12582912,1]{1,0:T(8,128)}\n     Unpadded size: 48.00M\n     Extra memory due to \
         padding: 5.95G (128.0x expansion)\n     XLA label: %fusion.1 = u32[12582912,1]{1,0:T(8,128)} fusion(%add.1)\n",
    );
    assert_eq!(task, "Turn off the dropout of attention's scores, or take fewer samples");
}
