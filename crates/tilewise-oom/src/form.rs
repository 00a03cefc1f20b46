//! The forms of messages.

/// The form of a message, which decides its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// Even the lower bound of the program's memory exceeds HBM (E1000): two figures, no lists.
    Bound,
    /// The final assignment of a memory space does not fit (E1000 for HBM): all tables and lists.
    Assignment,
    /// One instruction needs more scoped VMEM than its limit (E1001): the instruction, three figures.
    Scoped,
    /// One allocation is larger than its memory: one line, sizes in bytes.
    Allocation,
    /// The compiler gave up early: two figures.
    EarlyAbort,
    /// The program compiled, but at run time there was no memory for a buffer or for the program (E0100, E0101).
    RunTime,
    /// The TensorCore and the SparseCores together need more than HBM (E1000, E1002): three figures, no lists.
    Cores,
    /// A SparseCore's memory can't hold what its program allocates (E3000, E3001).
    SparseCore,
    /// Tables or lists without the headline that names the exceeded memory.
    Excerpt,
    /// A server has no room for the requested cache of keys and values.
    CacheRoom,
    /// A server's pages of keys and values take more than it counted, because the kernel pads them.
    CachePage,
    /// `Decode out of memory. Try to lower your batch size. Try to allocate 363 tokens.`: a server's pool of pages is full.
    CacheFull,
    /// Rematerialization stopped above its target: a warning, on TPUs and GPUs.
    Rematerialization,
    /// Donated arrays couldn't be reused for outputs: a warning.
    Donation,
    /// A result ends in host memory, but the program's signature has device memory (E1200).
    HostPlacement,
    /// An argument has another size, type, layout or memory than it was compiled for (E0102).
    InputMismatch,
    /// A kernel multiplies matrices of types that this TPU's matrix unit can't read (E2001).
    MatmulType,
    /// A kernel's block does not fit the tiles of its array (E2002, and JAX's check before it).
    Block,
    /// A kernel's index can't be proved to be a multiple of a tile (E2003).
    Index,
    /// A kernel's slice cuts through a tile.
    Slice,
    /// A kernel takes an operand in another layout than XLA gives it.
    OperandLayout,
    /// A kernel has an operation or a layout that can't be compiled.
    Lowering,
    /// An array is replicated on its way from one sharding to another: a warning.
    Resharding,
    /// A value in host memory is computed with on the host: a warning.
    HostCompute,
    /// The compiler's log of a program's memory: nothing failed.
    Usage,
    /// Statistics of an allocator at run time.
    AllocatorStatistics,
    /// A server's log of its memory.
    ServerStatistics,
    /// A dump of XLA's buffer assignment.
    BufferAssignment,
    /// A GPU ran out of memory.
    Gpu,
    /// A device that the message doesn't name ran out of memory.
    Device,
    /// A kernel of a GPU needs more shared memory than a block may have.
    SharedMemory,
    /// XLA tried the algorithms of an operation on a GPU, and none had room for its workspace.
    Autotuning,
    /// A GPU's allocator had no memory for an optional request: a warning.
    GpuRetry,
    /// A GPU's scheduler reports that the arguments leave no room: a warning.
    GpuArguments,
    /// The host ran out of memory.
    Host,
    /// An array takes much of the host's free memory: a warning of TensorFlow's.
    HostWarning,
    /// The pool of pinned host memory is full.
    HostPool,
    /// A Tenstorrent device ran out of memory.
    Tenstorrent,
    /// A core stopped (E0200).
    CoreHalt,
    /// A check inside the compiler failed: a defect of the compiler.
    CompilerCheck,
    /// XLA computes a constant as it compiles, and takes seconds: a warning.
    ConstantFolding,
    /// A GPU's kernel keeps values in memory for which there are no registers: a warning.
    GpuRegisters,
    /// Another resource than memory is exhausted: a message's length, open files, a disk, a quota.
    Resource,
    /// A person tells of what a job takes, without an error.
    Told,
    /// Resources were exhausted; the message doesn't mention memory.
    Other,
}
