//! Messages that are about other things than HBM: shared memory, shardings, operands of kernels, host memory, autotuning.
//! The wordings are those of public issues and of XLA's source, the figures are ours.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use tilewise_oom::{
    Form, Framework, Level, Message, OomVerdict, PrintedSize, Reason, Resource, Server, UntiledMachine,
};

fn parse(text: &str) -> Message {
    Message::parse(text).unwrap()
}

fn bytes(size: Option<&PrintedSize>) -> Option<u64> {
    size.map(PrintedSize::bytes)
}

/// ROCm/rocm-jax#404, triton-lang/triton#8182, jax-ml/jax#3122, #27190 and #17320, JAX's `mosaic/gpu/core.py`, and the
/// device compiler of LLVM for AMD.
#[test]
fn shared_memory_of_a_gpus_kernel() {
    for (text, used, limit) in [
        (
            "RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 73728, available: 65536",
            Some(73728),
            Some(65536),
        ),
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376. \
             Reducing block sizes or `num_stages` may help.",
            Some(131_072),
            Some(101_376),
        ),
        (
            "ptxas error   : Entry function 'fusion_42' uses too much shared data (0xc600 bytes, 0xc000 max)",
            Some(50_688),
            Some(49_152),
        ),
        (
            "ptxas error : Entry function 'scan' uses too much shared data (0x4010 bytes + 0x10 bytes system, 0x4000 max)",
            Some(16_400),
            Some(16_384),
        ),
        (
            "ValueError: Mosaic GPU kernel exceeds available shared memory: smem_bytes=263192 > 232448",
            Some(263_192),
            Some(232_448),
        ),
        ("error: local memory (98304) exceeds limit (65536) in function 'k'", Some(98_304), Some(65_536)),
        ("INTERNAL: Shared memory requested exceeds device resources.; current tracing scope: x", None, None),
        ("Shared memory size limit exceeded.", None, None),
    ] {
        let message = parse(text);
        assert_eq!((message.form, message.machine()), (Form::SharedMemory, Some(UntiledMachine::Gpu)), "{text}");
        assert_eq!((bytes(message.used.as_ref()), bytes(message.limit.as_ref())), (used, limit), "{text}");
        assert_eq!((message.cause(), message.truncated), (Some(OomVerdict::KernelMemory), false), "{text}");
    }
}

/// XLA's warning on the CPU with JAX 0.12 for an array `f32[16,16,16]`, and EnzymeAD/Enzyme-JAX#822's older wording.
#[test]
fn an_array_replicated_between_two_shardings() {
    let text = "W1125 09:49:05.728598 8409 spmd_partitioner.cc:666] [SPMD] Involuntary full rematerialization. The compiler \
                cannot go from sharding {devices=[2,1,4]<=[4,2]T(1,0)} to {devices=[1,8,1]<=[8]} efficiently for HLO \
                operation %add.2 = f32[8,16,4]{2,1,0} add(%param, %param), sharding={devices=[2,1,4]<=[4,2]T(1,0)}, \
                metadata={op_name=\"jit(f)/add\" stack_frame_id=2}. As the last resort, SPMD will replicate the tensor and then \
                partition it to obtain the target sharding, which is inefficient.";
    let message = parse(text);
    assert_eq!((message.form, message.verdict()), (Form::Resharding, OomVerdict::Resharding));
    let found = message.resharding().unwrap();
    // 16 · 16 · 16 elements of 4 bytes.
    assert_eq!((found.device_bytes, found.whole_bytes, found.piece_bytes), (2048, Some(16384), Some(256)));
    assert_eq!(message.facts.text("to"), Some("{devices=[1,8,1]<=[8]}"));
    let text = "[spmd] Involuntary full rematerialization. The compiler was not able to go from sharding {maximal device=0} to \
                {devices=[4,1]<=[4]} without doing a full rematerialization of the tensor for HLO operation: %e = \
                f32[257152,2048]{1,0} copy(%d). You probably want to enrich the sharding annotations to prevent this from \
                happening.";
    let found = parse(text).resharding().unwrap();
    assert_eq!((&*found.instruction, found.whole_bytes), ("e", Some(257_152 * 2048 * 4)));
    assert_eq!(found.to_parts, Some(vec![4, 1]));
    // Before 2024 the operation wasn't printed.
    let text = "[spmd] Involuntary full rematerialization. The compiler was not able to go from sharding \
                {devices=[2,1,4]<=[4,2]T(1,0)} to {devices=[1,8,1]<=[8]} without doing a full rematerialization of the tensor.";
    let message = parse(text);
    assert_eq!((message.verdict(), message.resharding()), (OomVerdict::Resharding, None));
    assert_eq!(message.facts.text("from"), Some("{devices=[2,1,4]<=[4,2]T(1,0)}"));
}

/// pytorch/xla#8732, and the wording with the layouts in front.
#[test]
fn layouts_of_a_kernels_operand() {
    let both = [
        "INVALID_ARGUMENT: Mosaic failed to compile TPU kernel: Failed to verify layout for Mosaic kernel operand 3: XLA layout \
         does not match MLIR layout for an operand of shape f32[16,3072]: expected {1,0:T(128)S(1)}, got {1,0:T(8,128)S(1)}",
        "Failed to verify layout for Mosaic kernel operand 3: XLA layout ({1,0:T(8,128)S(1)}) does not match Mosaic layout \
         ({1,0:T(128)S(1)}) for an operand of shape f32[16,3072].",
    ];
    for text in both {
        let message = parse(text);
        assert_eq!((message.form, message.verdict()), (Form::OperandLayout, OomVerdict::Mosaic), "{text}");
        assert_eq!(message.facts.number("operand"), Some(3));
        assert_eq!(message.facts.text("actual"), Some("{1,0:T(8,128)S(1)}"), "{text}");
        assert_eq!(message.facts.text("expected"), Some("{1,0:T(128)S(1)}"), "{text}");
        assert_eq!(message.facts.shapes("shape")[0].text, "f32[16,3072]");
    }
}

/// The pool's name tells that it is the host's; openxla/xla#20633's wording, and that of the allocator alone.
#[test]
fn pools_and_values_in_host_memory() {
    for text in [
        "RESOURCE_EXHAUSTED: Out of host memory while trying to allocate 15200000000 bytes with allocator xla_gpu_host_bfc on \
         device 0. Please set the environment variable XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB to allocate larger host memory than \
         the default 64 GB.",
        "Allocator (xla_gpu_host_bfc) ran out of memory trying to allocate 14.16GiB (rounded to 15200000000)requested by op",
    ] {
        let message = parse(text);
        assert_eq!((message.form, message.machine()), (Form::HostPool, Some(UntiledMachine::Host)), "{text}");
        assert_eq!(bytes(message.used.as_ref()).unwrap() >> 30, 14, "{text}");
    }
    let text = "W0 host_offloader.cc:298] Found an instruction (\"convert.610\") which does device compute in host memory space. \
                Converting into host compute.";
    let message = parse(text);
    assert_eq!((message.form, message.verdict()), (Form::HostCompute, OomVerdict::HostCompute));
    assert_eq!(message.facts.text("instruction"), Some("convert.610"));
}

/// NovaSky-AI/SkyRL#624 and EnzymeAD/Reactant.jl#2632.
#[test]
fn what_a_gpus_pool_holds() {
    let text = "gpu_cudamallocasync_allocator.cc:361] gpu_async_3 cuMemAllocAsync failed to allocate 1225195446464 bytes: \
                RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\n Reported by CUDA: Free memory/Total memory: \
                22635544576/85095874560\nStats: Limit:                               0\nInUse:                     61982909300\n";
    let message = parse(text);
    let fact = |message: &Message, name| bytes(message.facts.size(name));
    assert_eq!(bytes(message.used.as_ref()), Some(1_225_195_446_464));
    assert_eq!(fact(&message, "free"), Some(22_635_544_576));
    assert_eq!(bytes(message.capacity.as_ref()), Some(85_095_874_560));
    assert_eq!(message.cause(), Some(OomVerdict::Size), "more than the whole GPU has");
    let pool = |asked: &str| {
        parse(&format!(
            "Allocator (GPU_0_bfc) ran out of memory trying to allocate {asked} (rounded to 1)requested by op\nbfc_allocator.cc:1119] \
             Total size in pool: 89.77GiB memory_limit_: 89.77GiB available size: 153B curr_region_allocation_bytes_: \
             179.55GiB\nStats: \nLimit:                        89.77GiB\nInUse:                        81.00GiB\n"
        ))
    };
    assert_eq!(fact(&pool("27.00GiB"), "free").unwrap() >> 20, 8_980);
    assert_eq!(pool("27.00GiB").cause(), None);
    assert_eq!(pool("128.00GiB").cause(), Some(OomVerdict::Size));
    assert_eq!(pool("2.00GiB").cause(), Some(OomVerdict::Fragmentation));
    // Of memory that a pool has not taken yet, as much as the request is held by others; without a free block nothing is free.
    let stats = |available: u64, used: u64, piece: &str| {
        parse(&format!(
            "OOM when allocating tensor with shape[128,1024,1024] and type float by allocator GPU_0_bfc\n\
             total_region_allocated_bytes_: 1148427008 memory_limit_: 1843986432 available bytes: {available}\nStats:\n\
             Limit:                  1843986432\nInUse:                   {used}\n{piece}"
        ))
    };
    assert_eq!(stats(695_559_424, 917_285_632, "").reason(), Reason::Ungrown);
    assert_eq!(stats(204, 917_285_632, "").reason(), Reason::Fragmentation);
    assert_eq!(stats(204, 1_584_798_720, "LargestFreeBlock:                    0\n").reason(), Reason::OwnArrays(85));
}

/// The bytes that arguments leave are all that a program may have, as rematerialization counts it.
#[test]
fn a_request_beyond_rematerializations_target_is_too_large() {
    let warning = "hlo_rematerialization.cc:3021] Can't reduce memory use below 20.00GiB (21474836480 bytes) by rematerialization; \
                   only reduced to 21.00GiB (22548578304 bytes), down from 60.00GiB (64424509440 bytes) originally\n";
    let request =
        |gib: u64| format!("{warning}RESOURCE_EXHAUSTED: Out of memory while trying to allocate {} bytes.", gib << 30);
    assert_eq!(parse(&request(58)).cause(), Some(OomVerdict::Size));
    assert_eq!(parse(&request(9)).cause(), None);
}

/// TensorFlow's and XLA's `cuda_driver.cc`, `cuda_executor.cc` and `device_host_allocator.h` print these while a pool looks for a size
/// that it can grow by.
#[test]
fn a_pool_that_may_not_grow_is_no_failure() {
    for (text, used, pinned) in [
        (
            "failed to allocate 2.00G (2147483648 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            2 << 30,
            None,
        ),
        (
            "E0914 cuda_executor.cc:1182] Failed to allocate device memory of 1.00GiB: RESOURCE_EXHAUSTED: : \
             CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            1 << 30,
            None,
        ),
        ("could not allocate pinned host memory of size: 8589934592", 8 << 30, Some("host")),
        ("failed to alloc 8589934592 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory", 8 << 30, Some("host")),
    ] {
        let message = parse(text);
        assert_eq!((message.form, message.form.level()), (Form::GpuRetry, Level::Warning), "{text}");
        assert_eq!(bytes(message.used.as_ref()), Some(used), "{text}");
        assert_eq!(message.facts.text("pinned"), pinned, "{text}");
        let failed = parse(&format!("{text}\nOOM when allocating tensor with shape[8,128] and type float"));
        assert_eq!((failed.form.level(), failed.others.len()), (Level::Error, 0), "{text}");
    }
}

#[test]
fn the_line_that_raised_stands_before_its_error() {
    let raised = |text: &str| parse(text).raised_at.map(|frame| (frame.line, frame.code));
    let frame =
        |line: u32| format!("Traceback (most recent call last):\n  File \"/home/me/a.py\", line {line}, in f\n");
    let error = "RuntimeError: RESOURCE_EXHAUSTED: Attempting to reserve 2.00G at the bottom of memory. There are 1.00G free.\n";
    let after = [&frame(7), error, &frame(9), "    main()\nRuntimeError: the engine didn't start\n"].concat();
    assert_eq!(raised(&after), Some((7, None)), "what follows a frame without its code is no code");
    assert_eq!(raised(&[error, &frame(9), "    main()\n"].concat()), None);
    let caused = "\nThe above exception was the direct cause of the following exception:\n\n";
    assert_eq!(raised(&[error, caused, &frame(9), "    main()\n"].concat()), Some((9, Some("main()".to_owned()))));
}

/// Julia and Elixir, whose programs no code of Python changes.
#[test]
fn front_ends_in_other_languages() {
    for (text, framework) in [
        (
            "ERROR: LoadError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 93936833408 bytes.",
            Framework::Reactant,
        ),
        ("** (RuntimeError) Out of memory while trying to allocate 117964800 bytes.", Framework::Exla),
    ] {
        assert_eq!(parse(text).framework, Some(framework), "{text}");
    }
}

/// The warning of XLA's `conv_algorithm_picker.cc`.
#[test]
fn autotuning_without_room_for_a_workspace() {
    let text = "UNKNOWN: Failed to determine best cudnn convolution algorithm for:\n%cudnn-conv.1 = (f32[1,64,500,500]{3,2,1,0}, \
                u8[0]{0}) custom-call(%a, %b), custom_call_target=\"__cudnn$convForward\"\n\nOriginal error: \
                RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes.\n\nTo ignore this failure and try \
                to use a fallback algorithm (which may have suboptimal performance), use \
                XLA_FLAGS=--xla_gpu_strict_conv_algorithm_picker=false.";
    let message = parse(text);
    assert_eq!((message.form, bytes(message.used.as_ref())), (Form::Autotuning, Some(4 << 30)));
    assert!(message.facts.text("instruction").unwrap().starts_with("%cudnn-conv.1 = "));
    assert!(message.others.is_empty(), "the allocation is the workspace's");
}

#[test]
fn a_check_of_the_compiler_is_no_lack_of_memory() {
    let text =
        "INTERNAL: RET_CHECK failure (xla/service/layout_normalization.cc:120) s.layout() == operand_shape.layout()";
    let message = parse(text);
    assert_eq!((message.form, message.verdict()), (Form::CompilerCheck, OomVerdict::CompilerCheck));
    assert_eq!(message.facts.text("condition"), Some("s.layout() == operand_shape.layout()"));
    let both = format!("{text}\nRan out of memory in memory space hbm. Used 2.00G of 1.00G hbm.");
    assert_eq!(parse(&both).form, Form::Assignment, "memory that ran out is told first");
}

#[test]
fn what_is_missing_may_be_all_that_is_told() {
    let message = parse("XlaRuntimeError: RESOURCE_EXHAUSTED: ... Exceeded hbm capacity by 2.50G.");
    assert_eq!((message.form, message.memory_space.as_deref()), (Form::Assignment, Some("hbm")));
    assert_eq!(bytes(message.exceeded.as_ref()), Some(5 << 29));
}

/// The lines of tpu-inference and sglang-jax.
#[test]
fn a_server_fills_the_memory_before_it_loads_programs() {
    let text = "INFO [tpu_runner.py:237] Init kv-cache | shape=32 * (3168, 256, 16, 128) | hbm=[(14.97, 15.75), (14.97, \
                15.75)]Gb\nERROR E0101: RuntimeProgramAllocationFailure: Error loading program 'jit_step': Attempting to reserve \
                1.20G at the bottom of memory. That was not possible. There are 804.00M free, 0B reserved, and 804.00M reservable.";
    let message = parse(text);
    assert_eq!((message.form, message.server), (Form::RunTime, Some(Server::Vllm)));
    let cache = message.others.iter().find(|other| other.form == Form::ServerStatistics).unwrap();
    assert_eq!((cache.facts.text("hbm_used"), cache.facts.text("hbm_limit")), (Some("14.97"), Some("15.75")));
    assert_eq!(parse("sglang TPU Memory profiling: available_kv_cache=24.5GB").server, Some(Server::Sglang));
}

/// The warning of TensorFlow's `bfc_allocator.cc` where a caller such as a convolution's workspace goes on with less.
#[test]
fn a_request_that_may_fail_is_a_warning() {
    let text = "2023-11-06 13:58:30.645317: W tensorflow/core/common_runtime/bfc_allocator.cc:271] Allocator (GPU_0_bfc) ran out of \
                memory trying to allocate 2.16GiB with freed_by_count=0. The caller indicates that this is not a failure, but may \
                mean that there could be performance gains if more memory were available.";
    let message = parse(text);
    assert_eq!((message.form, message.form.level()), (Form::GpuRetry, Level::Warning));
    assert_eq!((bytes(message.used.as_ref()).unwrap() >> 20, message.cause()), (2211, None));
    let failed = parse("Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.16GiB with freed_by_count=0.");
    assert_eq!((failed.form, failed.form.level()), (Form::Gpu, Level::Error));
}

/// The first is jax-ml/jax's `tpu.matmul` verifier, the second Pallas's lowering.
#[test]
fn what_a_kernel_lacks_is_named() {
    let message = parse(
        "Mosaic failed to compile TPU kernel: Matmul operand lhs must have a shape divisible by (16, 1), but got: (8, 2048)",
    );
    let bounds = |name| message.facts.bounds(name).unwrap().to_vec();
    assert_eq!(message.facts.text("side"), Some("lhs"));
    assert_eq!((bounds("multiple"), bounds("size")), (vec![Some(16), Some(1)], vec![Some(8), Some(2048)]));
    let message =
        parse("NotImplementedError: Unimplemented primitive in Pallas TPU lowering for KernelType.TC: cumsum.");
    assert_eq!((message.form, message.facts.text("primitive")), (Form::Lowering, Some("cumsum")));
}

/// The wording is TensorFlow's `op_kernel.cc`.
#[test]
fn a_tensor_that_tensorflow_asks_for_is_an_array() {
    let message = parse(
        "ResourceExhaustedError: (0) Resource exhausted: OOM when allocating tensor with shape[1000,12,256,256] and type float on \
         /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n\t [[{{node bert/layer_0/attention/Softmax}}]]",
    );
    assert_eq!(message.framework, Some(Framework::TensorFlow));
    assert_eq!(bytes(message.used.as_ref()), Some(4 * 1000 * 12 * 256 * 256));
    let [entry] = &message.entries[..] else { panic!("{:?}", message.entries) };
    assert_eq!(entry.shape.as_ref().map(|shape| &*shape.text), Some("f32[1000,12,256,256]"));
    assert_eq!(entry.operator.as_ref().and_then(|operator| operator.op_name()), Some("bert/layer_0/attention/Softmax"));
}

/// LLVM's JIT says the first, its code emitter the second.
#[test]
fn machine_code_that_finds_no_memory_is_the_hosts() {
    for text in ["JIT session error: Cannot allocate memory", "LLVM ERROR: Unable to allocate section memory!"] {
        let message = parse(text);
        assert_eq!(message.form, Form::Host, "{text}");
        assert!(message.facts.text("session").is_some(), "{text}");
    }
}

/// Linux's `mm/oom_kill.c` and `mm/memcontrol.c`.
#[test]
fn a_process_that_linux_kills_had_a_limit_or_all_of_the_host() {
    let whole = "Out of memory: Killed process 17 (python) total-vm:87716756kB, anon-rss:16715856kB, file-rss:0kB";
    let group = "memory: usage 16777216kB, limit 16777216kB, failcnt 98\n\
                 oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=37a2,mems_allowed=0,oom_memcg=/docker/37a2\n\
                 Memory cgroup out of memory: Killed process 17 (python) total-vm:87716756kB, anon-rss:16715856kB";
    // As `dmesg` is often quoted, without its first words.
    let quoted = "worker 17: Killed process 17 (python3) total-vm:..., anon-rss:16715856kB";
    for (text, is_of_group, limit) in [(whole, false, None), (quoted, false, None), (group, true, Some(16 << 30))] {
        let message = parse(text);
        assert_eq!(
            (message.form, message.reason() == Reason::Group, message.others.len()),
            (Form::Host, is_of_group, 0),
            "{text}"
        );
        assert_eq!(bytes(message.facts.size("resident")), Some(16_715_856 << 10), "{text}");
        assert_eq!(bytes(message.facts.size("group_limit")), limit, "{text}");
    }
    assert_eq!(parse("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null)").reason(), Reason::Host);
}

/// XLA prints a code, a colon and a text.
#[test]
fn a_code_that_is_talked_of_is_no_message() {
    assert_eq!(parse("XlaRuntimeError: RESOURCE_EXHAUSTED: \n").form, Form::Other);
    assert_eq!(parse("JaxRuntimeError: RESOURCE_EXHAUSTED").form, Form::Other);
    let told = "It surfaces as `INTERNAL` instead of `RESOURCE_EXHAUSTED`, which the text tells students to expect.";
    assert!(Message::parse(told).is_err());
}

/// libtpu names the program from 2024 on; before, the request follows.
#[test]
fn a_program_that_finds_no_room_is_no_array() {
    for text in [
        "Error loading program 'jit_step':\nAttempting to allocate 1.82G. That was not possible. There are 1.54G free.",
        "Error loading program: Attempting to allocate 1.82G. That was not possible. There are 1.54G free.; (0x0x0_HBM0)",
    ] {
        let message = parse(text);
        assert_eq!(message.page(), "E0101", "{text}");
        assert_eq!(message.used.as_ref().map(PrintedSize::text), Some("1.82G"), "{text}");
        assert_eq!(message.limit.as_ref().map(PrintedSize::text), Some("1.54G"), "{text}");
    }
    let array = parse(
        "Error allocating device buffer: Attempting to allocate 8.00M. That was not possible. There are 6.43M free.",
    );
    assert_eq!(array.page(), "E0100");
}

/// Pallas on Mosaic GPU: `f"{smem_bytes=} > {max_smem_bytes=}"`.
#[test]
fn shared_memory_of_mosaic_gpu() {
    let message = parse("Mosaic GPU kernel exceeds available shared memory: smem_bytes=327712 > max_smem_bytes=232448");
    assert_eq!([message.used.as_ref(), message.limit.as_ref()].map(bytes), [Some(327_712), Some(232_448)]);
}

/// TensorFlow's host memory has an allocator, too.
#[test]
fn a_tensor_on_the_host_is_no_gpus() {
    let message = parse(
        "Resource exhausted: OOM when allocating tensor with shape[10000,28,28,32] and type float on \
         /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
    );
    assert_eq!((message.form, message.machine()), (Form::Host, Some(UntiledMachine::Host)));
}

/// The wordings are XLA's `gpu_hlo_schedule.cc` and `hlo_rematerialization.cc`.
#[test]
fn arguments_that_leave_no_room_come_before_an_estimate() {
    let message = parse(
        "gpu_hlo_schedule.cc:815] The byte size of input/output arguments (24696099900024) exceeds the base limit (27028357120). \
         This indicates an error in the calculation!\nhlo_rematerialization.cc:3204] Can't reduce memory use below 22.40GiB by \
         rematerialization; only reduced to 41.70TiB",
    );
    assert_eq!((message.form, message.others[0].form), (Form::GpuArguments, Form::Rematerialization));
}

#[test]
fn a_wording_of_mosaic_is_what_it_can_not_do() {
    for (text, what) in [
        ("unsupported shape cast at beam.py", "unsupported shape cast at beam.py"),
        ("Mosaic failed to compile TPU kernel: Invalid input layout", "Invalid input layout"),
        ("infer-vector-layout: unsupported shape cast", "unsupported shape cast"),
    ] {
        assert_eq!(parse(text).facts.text("what"), Some(what));
    }
}

/// XLA's GPU client logs its error, and raises it.
#[test]
fn a_list_that_is_printed_twice_is_one() {
    let message = "Out of memory while trying to allocate 3072 bytes.\nBufferAssignment OOM Debugging.\nPeak buffers:\n\
        \tBuffer 1:\n\t\tSize: 2.0KiB\n\t\tShape: f32[512]\n\t\t==========\n\n\
        \tBuffer 2:\n\t\tSize: 1.0KiB\n\t\tShape: f32[256]\n\t\t==========\n\n";
    let shapes = |text: &str| -> Vec<String> {
        parse(text).entries.into_iter().map(|entry| entry.shape.unwrap().text).collect()
    };
    assert_eq!(shapes(message), ["f32[512]", "f32[256]"]);
    assert_eq!(shapes(&format!("E0528 Execution failed: {message}ValueError: {message}")), ["f32[512]", "f32[256]"]);
    let other = message.replace("f32[256]", "f32[16,16]");
    assert_eq!(shapes(&format!("{message}{other}")).len(), 4);
}

/// Runtimes of TPUs of before 2022 printed what GPUs print.
#[test]
fn a_device_is_what_the_text_around_the_message_names() {
    let error =
        "Execution of replica 3 failed: Resource exhausted: Failed to allocate request for 32.00MiB (33554432B)";
    let form = |around: &str| parse(&format!("{around}\n{error}")).form;
    assert_eq!(form("a TPU VM v2-8"), Form::RunTime);
    assert_eq!(form("nvidia-smi says that 2 GB are free"), Form::Gpu);
    assert_eq!(form("it worked on a TPU, and fails with CUDA 12"), Form::Gpu);
}

/// XLA's page on memory errors shows both.
#[test]
fn of_two_errors_that_with_a_limit_tells_more() {
    let tpu = "Allocation (size=107374182400) would exceed memory (size=17179869184) :: #allocation7 \
               [shape = 'u8[327680,327680]{1,0:T(8,128)(4,1)}', space=hbm, size = 0xffffffffffffffff]";
    let gpu = "On a GPU: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 214748364800 bytes.";
    for text in [format!("{tpu}\n{gpu}"), format!("{gpu}\n{tpu}")] {
        let message = parse(&text);
        assert_eq!(bytes(message.limit.as_ref()), Some(16 << 30));
        assert_eq!(message.others.len(), 1);
    }
}

/// A program whose arguments and results take 38 GiB, and next to nothing else.
const MOSTLY_STATE: &str = "hlo_rematerialization.cc:2946] Can't reduce memory use below -18.34GiB (-19688159409 bytes) by \
    rematerialization; only reduced to 21.55GiB (23140745816 bytes), down from 21.55GiB (23140745816 bytes) originally\n\
    RESOURCE_EXHAUSTED: Failed to allocate request for 112.00MiB (117440512B) on device ordinal 0\n\
    BufferAssignment OOM Debugging.\nBufferAssignment stats:\n parameter allocation:   16.50GiB\n \
    constant allocation:        22B\n maybe_live_out allocation:   21.55GiB\n preallocated temp allocation:    13.4KiB\n";

#[test]
fn a_target_below_zero_tells_that_arguments_and_results_are_too_large() {
    assert_eq!(parse(MOSTLY_STATE).cause(), Some(OomVerdict::Arguments));
}

#[test]
fn variables_of_a_command_name_the_framework_and_the_dump() {
    let error = "Error loading program: Attempting to reserve 7.04G at the bottom of memory. That was not possible. There are \
                 6.90G free, 0B reserved, and 6.90G reservable.";
    let message = parse(&format!(
        "PJRT_DEVICE=TPU XLA_FLAGS=\"--xla_dump_to=gs://b/hlo --xla_dump_hlo_as_text\" python a.py\n{error}"
    ));
    assert_eq!((message.framework, message.job.dump.as_deref()), (Some(Framework::TorchXla), Some("gs://b/hlo")));
    assert_eq!((parse(error).framework, parse(error).job.dump), (None, None));
    // Names that a shell takes apart, a template's field, another option.
    for folder in ["/tmp/d|halt", "a&halt", "$(halt)", "{folder}", "/tmp/{run}", "<folder>", "", "-rf"] {
        assert_eq!(parse(&format!("XLA_FLAGS=--xla_dump_to={folder}\n{error}")).job.dump, None, "{folder}");
    }
}

/// The totals are rounded to hundredths of a gigabyte.
#[test]
fn padding_is_at_least_that_of_the_list() {
    let text = "Ran out of memory in memory space hbm. Used 14.93G of 8.00G hbm. Exceeded hbm capacity by 6.93G.\n\
                Program hbm requirement 14.41G:\n    \
                HLO temp         14.41G (98.3% utilization: Unpadded (14.16G) Padded (14.40G), 0.0% fragmentation (7.25M))\n\n  \
                Largest program allocations in hbm:\n\n  1. Size: 5.97G\n     Shape: f32[512,100,30000]{2,1,0:T(8,128)}\n     \
                Unpadded size: 5.72G\n     Extra memory due to padding: 250.62M (1.0x expansion)\n     ==========================\n";
    // 512 · (104 · 30080 - 100 · 30000) · 4 bytes, where the totals differ by 0.24 GiB.
    assert_eq!(parse(text).budget().padding_bytes.map(|bytes| bytes >> 20), Some(250));
}

/// PyTorch's own arrays hold the memory where they take most of it, however small the request.
#[test]
fn pytorchs_own_arrays_hold_the_memory() {
    let text = |held: &str, free: &str| {
        format!(
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.64 GiB of \
             which {free} is free. Of the allocated memory {held} is allocated by PyTorch, and 87.98 MiB is reserved by PyTorch but \
             unallocated."
        )
    };
    assert_eq!(parse(&text("22.99 GiB", "12.31 MiB")).cause(), None);
    assert_eq!(parse(&text("600.00 MiB", "12.31 MiB")).cause(), Some(OomVerdict::Reservation));
}

/// The shell's word on a killed process is no message of a compiler, and tells of no memory for certain.
#[test]
fn a_shells_word_is_read_where_nothing_else_is() {
    for text in [
        "Restoring checkpoint.\nKilled\n",
        "run.sh: line 3: 17 Killed                  python train.py",
        "17 Killed                  python train.py",
        "zsh: killed     python train.py",
    ] {
        let message = parse(text);
        assert_eq!((message.form, message.machine()), (Form::Host, Some(UntiledMachine::Host)), "{text}");
        assert_eq!(message.facts.text("shell"), Some("Killed"), "{text}");
    }
    let others = parse("Killed\nOut of memory while trying to allocate 99 bytes.");
    assert_eq!((others.form, others.facts.text("shell")), (Form::Device, None));
    for text in ["Killed process 9", "the job was\nKilled by me", "line 3: Killed"] {
        assert!(Message::parse(text).is_err(), "{text}");
    }
}

/// NCCL's buffers lie beside the pool; LLVM's code on the host.
#[test]
fn what_lies_beside_the_pool_finds_no_memory() {
    let nccl = parse(
        "INTERNAL: x.cc:5: NCCL operation ncclCommInitRank(&comm, n, id, rank) failed: unhandled cuda error. Last NCCL warning(error) \
         log entry (may be unrelated) 'Cuda failure 'out of memory''.",
    );
    assert_eq!((nccl.machine(), nccl.cause()), (Some(UntiledMachine::Gpu), Some(OomVerdict::Reservation)));
    assert!(nccl.facts.text("communicator").is_some());
    assert!(Message::parse("NCCL operation ncclCommInitRank(&comm) failed: unhandled cuda error.").is_err());
    let code = parse("execution_engine.cc:54] LLVM compilation error: Cannot allocate memory");
    assert_eq!((code.machine(), code.facts.text("session")), (Some(UntiledMachine::Host), Some("error")));
}

/// glog's fatal lines: <https://github.com/marin-community/marin/issues/3383>.
#[test]
fn a_check_that_ends_the_process_comes_before_warnings() {
    let warning = "hlo_rematerialization.cc:2946] Can't reduce memory use below 8.93GiB (9587687424 bytes) by \
                   rematerialization; only reduced to 14.12GiB (15161425920 bytes)\n";
    let check = "F0307 09:58:53.545448       1 tpu_raw_buffer.h:108] Check failed: buffer_.IsConcrete() \n*** Check failure \
                 stack trace: ***";
    let message = parse(&[warning, check].concat());
    assert_eq!((message.form, message.facts.text("ended")), (Form::CompilerCheck, Some("buffer_.IsConcrete()")));
    assert_eq!(message.others[0].form, Form::Rematerialization);
    let full = parse(&[check, "\nRan out of memory in memory space hbm. Used 2.00G of 1.00G hbm."].concat());
    assert_eq!(full.form, Form::Assignment, "memory that ran out is told first");
    assert!(Message::parse("Health check failed: the pod was restarted").is_err());
}

/// <https://github.com/secretflow/secretflow/issues/1677>, <https://github.com/pytorch/xla/issues/866>,
/// <https://github.com/jax-ml/jax/issues/21300>.
#[test]
fn limits_of_programs_that_are_no_memory() {
    for text in [
        "jaxlib.xla_extension.XlaRuntimeError: UNKNOWN: Failed to serialize the HloModuleProto.",
        "message_lite.cc:447] xla.LiteralProto exceeded maximum protobuf size of 2GB: 2200000032",
        "Cannot serialize protocol buffer of type tensorflow.GraphDef as the serialized size (2643020353bytes)",
    ] {
        assert_eq!(parse(text).resource(), Some(Resource::Protobuf), "{text}");
    }
    let threads = "F tensorflow/core/platform/default/env.cc:72] Check failed: ret == 0 (11 vs. 0)Thread creation via \
                   pthread_create() failed.";
    assert_eq!(parse(threads).resource(), Some(Resource::Threads));
    let segment = "Error while creating shared memory segment /dev/shm/nccl-kXqNYh (size 9637888), error: No space left on device";
    assert_eq!(parse(segment).resource(), Some(Resource::SharedMemory { is_of_kubernetes: false }));
    let alarm = "E slow_operation_alarm.cc:65] Constant folding an instruction is taking > 1s:\n\n  %reduce.8 = \
                 f64[200000,10]{1,0} reduce(%broadcast.2, %constant.3), dimensions={2}\n";
    let message = parse(alarm);
    assert_eq!((message.form.level(), message.resource()), (Level::Warning, Some(Resource::CompileTime)));
    let killed = parse(&[alarm, "Killed\n"].concat());
    assert_eq!(killed.form, Form::Host, "a process that was killed is told first");
}

/// <https://github.com/jax-ml/jax/issues/37923>, and copies whose host memory can't be mapped.
#[test]
fn handles_and_copies_without_room() {
    let solver = parse(
        "INTERNAL: solver_handle_pool.cc:37: operation gpusolverDnCreate(&handle) failed: cuSolver internal error",
    );
    assert_eq!(solver.reason(), Reason::Handle);
    let copied = parse(
        "INTERNAL: failed to enqueue async memcpy from host to device: CUDA_ERROR_OUT_OF_MEMORY: out of memory; GPU dst: 0x7f; \
         host src: 0x55; size: 17179869184",
    );
    assert_eq!((copied.reason(), bytes(copied.used.as_ref())), (Reason::Mapping, Some(16 << 30)));
    let nccl = parse(
        "INTERNAL: NCCL operation ncclCommInitRank(&comm) failed: unhandled cuda error. Last NCCL warning(error) log entry 'Failed \
         to CUDA calloc async 608 bytes'.",
    );
    assert_eq!(nccl.reason(), Reason::Communicator);
}
