//! Pages about messages.

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        name: "E0100",
        title: "E0100: no room for a buffer at run time",
        paragraphs: [
            "The program compiled. While it ran, or when an array was put on the device, there was no room in HBM for one more buffer. XLA's name for it is `RuntimeBufferAllocationFailure`.",
            "Other arrays hold the memory: the run time has already retried, moved buffers together and dropped loaded programs. Look at `jax.live_arrays()`, drop old states and results, and donate arguments. If more is free than was asked for, it is free in pieces.",
        ],
    },
    Page {
        name: "E0101",
        title: "E0101: no room to load a program",
        paragraphs: [
            "The program compiled, but when it was loaded there was no room in HBM for its temporaries and its code, which it needs in one piece. XLA's name for it is `RuntimeProgramAllocationFailure`.",
            "What was asked for must be at most what is reservable. Free arrays before the program is loaded, or make its temporaries smaller; a server leaves room by planning with less of the memory (in vLLM a lower `--gpu-memory-utilization`).",
        ],
    },
    Page {
        name: "E0102",
        title: "E0102: an argument is not what the program was compiled for",
        paragraphs: [
            "A compiled program was called with a buffer of another size, shape, element type, layout or memory. XLA's name for it is `RuntimeProgramInputMismatch`. No memory ran out.",
            "The same shape can have two sizes: which dimension lies on the 128 lanes decides how much is padded. Put the arguments in the layouts that the program wants (`compiled.input_formats`), or compile it again for those that they have. A type that is twice as wide means that `jax_enable_x64` changed.",
        ],
    },
    Page {
        name: "E0200",
        title: "E0200: a core stopped",
        paragraphs: [
            "A core of the TPU stopped while it ran a program. XLA's name for it is `RuntimeUnexpectedCoreHalt`. This is not about how much memory the program takes, and tilewise can't say more than the text does.",
            "Look in the log for `BoundsCheck` (a kernel's index is out of bounds), `Semaphore` (a kernel did not wait for a copy), `launch group` (hosts run different programs) or `observed errors are` (the machine, or the compiler).",
        ],
    },
    Page {
        name: "E1000",
        title: "E1000: the program needs more HBM than there is",
        paragraphs: [
            "The compiler knows what the program takes before it runs: arguments, results, temporaries, code. Together they exceed the memory. XLA's name for it is `CompileTimeHbmOom`.",
            "What helps depends on what fills it. Padding: another shape or layout at the interface. Arguments: divide them between devices. One array of half of the memory: it is replicated where a sharding annotation is missing, or it is the logits or the scores of attention. Many equal arrays below `jvp(`: `jax.checkpoint`.",
        ],
    },
    Page {
        name: "E1001",
        title: "E1001: one kernel needs more VMEM or SMEM than it may have",
        paragraphs: [
            "One kernel or fusion needs more on-chip memory for itself than its limit. XLA's name for it is `CompileTimeScopedVmemOom`; older texts say `Scoped allocation with size … exceeded scoped vmem limit`. What the program holds in HBM does not count here.",
            "The limit is a setting, not the chip's memory: for a kernel of yours raise it with `pltpu.CompilerParams(vmem_limit_bytes=…)`, for an instruction of the compiler's with `--xla_tpu_scoped_vmem_limit_kib`. Otherwise make the blocks smaller: each counts twice because copies overlap with work, after padding to tiles.",
        ],
    },
    Page {
        name: "E1200",
        title: "E1200: a result ends in host memory",
        paragraphs: [
            "A value is moved to the host's memory and returned, but the program's signature says that this result is in the device's memory. XLA's name for it is `CompileTimeHostOffloadOutputLocationMismatch`. No memory ran out.",
            "Decide where the result belongs: on the host, `out_shardings=sharding.with_memory_kind(\"pinned_host\")`; on the device, `jax.device_put(x, sharding.with_memory_kind(\"device\"))` before it is returned.",
        ],
    },
    Page {
        name: "E2001",
        title: "E2001: a kernel multiplies types that the matrix unit does not read",
        paragraphs: [
            "A Pallas kernel multiplies matrices of an element type that this generation's matrix unit can't read. XLA's name for it is `CompileTimeMosaicUnsupportedRhsType`. No memory ran out.",
            "Cast both operands to bf16 or f32 in the kernel, right before the product. Don't set `--xla_mosaic_compat_mode=false`, and leave `Precision.HIGHEST` out with bf16 operands.",
        ],
    },
    Page {
        name: "E2002",
        title: "E2002: a block does not fit its array's tiles",
        paragraphs: [
            "A Pallas kernel reads or writes an array by blocks that end within a tile. XLA's name for it is `CompileTimeMosaicMisalignedBlockAndTiling`; JAX refuses most such blocks before the compiler sees them, in its own words. No memory ran out.",
            "Each of the last two dimensions of the block must be a multiple of the tile, such as 8 and 128, or the whole dimension of the array.",
        ],
    },
    Page {
        name: "E2003",
        title: "E2003: an index that can't be proved to be aligned",
        paragraphs: [
            "A Pallas kernel loads or stores from an index that must be a multiple of the tile, and the compiler can't prove that it is. XLA's name for it is `CompileTimeMosaicUnprovenMemoryAccessAlignment`. No memory ran out.",
            "If it always is a multiple, say so with `pl.multiple_of(i, n)`; a false promise gives wrong results. If it is not, load the whole tile and rotate it (`pltpu.roll`), or store the array so that each piece begins at a multiple.",
        ],
    },
    Page {
        name: "E3000",
        title: "E3000: a SparseCore's program needs too much of its memory",
        paragraphs: [
            "The program of a SparseCore allocates more than one of its memories holds. XLA's name for it is `CompileTimeSparseCoreAllocationFailure`. Figures are in words of four bytes.",
            "The number of the memory space says which: 0 SMEM, 201 and 202 its scratchpads, 203 HBM, 204 synchronization flags. In HBM, divide the tables and lower `max_ids_per_partition`. In the others, make `scratch_shapes` smaller, or switch off the offload of the collective.",
        ],
    },
    Page {
        name: "E3001",
        title: "E3001: an embedding table can't be divided far enough",
        paragraphs: [
            "However a SparseCore's work on an embedding table is divided, the parts do not fit into its scratchpad. XLA's name for it is `CompileTimeSparseCoreInvalidReplicaCount`.",
            "What grows with the rows is computed from `max_nz_per_row` and `max_unique_nz_per_row`: lower these to what the data has. A smaller batch lowers `sample_count`.",
        ],
    },
    Page {
        name: "mosaic",
        title: "Mosaic can't compile a kernel",
        paragraphs: [
            "Messages without a code that begin with `Mosaic failed to compile TPU kernel`: an operation, a layout or a type of a Pallas kernel is not implemented for this TPU. No memory ran out.",
            "The line below `The MLIR operation involved` names the operation. Keep arrays at two dimensions or more, make masks in 32 bits in their final shape, pad slices to whole tiles, and cast narrow types to 32 bits before a change of shape.",
        ],
    },
    Page {
        name: "donation",
        title: "Donated arrays that were not used",
        paragraphs: [
            "`Some donated buffers were not usable` is a warning: the program runs. An argument that you donated found no result of the same shape, element type, sharding and memory to live in, so both are held.",
            "Return the state as it came, in the same dtype and sharding, and donate nothing else: token ids and lengths can't be used again.",
        ],
    },
    Page {
        name: "rematerialization",
        title: "Rematerialization stopped above its target",
        paragraphs: [
            "`Can't reduce memory use below … by rematerialization` is a warning: the compiler recomputed what it could and still estimates more than its target. The program may run; only an error after it says that it does not fit.",
            "The target is the memory less arguments and results. If it is negative, these alone exceed the memory: divide them between devices. If next to nothing was saved, recomputing has nothing left: `jax.checkpoint` around layers, or parts of the batch.",
        ],
    },
    Page {
        name: "kv_cache",
        title: "A server's cache of keys and values",
        paragraphs: [
            "Two messages of vLLM on TPUs: a page of the cache takes more than the server counted, because the kernel pads it; or the cache has no room for one request of full length.",
            "Pages: a device's KV heads are padded to what one word packs (2 of bf16, 4 of an 8-bit type), and each head to 128 lanes. Give each device more heads, with fewer devices in tensor parallelism. Room: `--max-model-len` with the length that the message estimates.",
        ],
    },
    Page {
        name: "statistics",
        title: "Logs and statistics of memory",
        paragraphs: [
            "A text that reports memory, and in which nothing failed: the compiler's log of a program that fits, an allocator's statistics, a server's plan of its cache, XLA's buffer assignment.",
            "Nothing is to be done. The next program needs its temporaries within what is left, in one piece. Only a list `Largest program allocations` or an error makes such a text a failure.",
        ],
    },
    Page {
        name: "gpu",
        title: "Messages of other machines",
        paragraphs: [
            "A GPU, the host or a Tenstorrent device ran out of memory. Nothing there is tiled as on a TPU, so padding is not the cause. The verdict is `not_tpu`; `message_machine` and `cause` say more.",
            "On a GPU: if the temporaries are what was asked for, the program is too large; if little was asked for, other arrays or processes hold the memory (`nvidia-smi`, `XLA_PYTHON_CLIENT_PREALLOCATE=false`); if the program itself could not be loaded, lower `XLA_CLIENT_MEM_FRACTION`.",
        ],
    },
];
