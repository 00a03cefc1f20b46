//! Findings in messages that no array explains.

use crate::advice::change::Change;
use tilewise::{Shape, tpu::Generation};
use tilewise_oom::{BlockSize, PrintedSize, Resharding, Server, WindowKind};

/// A program that doesn't fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryFinding {
    /// The program shows more than the message.
    LookInside {
        /// The information that the message lacks.
        lacks: MessageLacks,
        /// The required reduction; `None` if unknown.
        shrink: Option<Shrink>,
        /// The folder to which the job's flags already dump its programs.
        dump: Option<String>,
    },
    /// The compiler gave up early.
    EarlyAbort,
    /// One array is larger than the memory.
    OneArray {
        /// Bytes it takes.
        bytes: Option<u64>,
        /// Devices to divide it between, so that each has room beside its part.
        devices: Option<u64>,
    },
    /// One function of JAX's own makes an array, outside of the reader's programs.
    OwnFunction {
        /// Its name, such as `_normal`.
        name: String,
    },
    /// The program's values in host memory don't fit there.
    OffHost {
        /// Bytes they take; `None` if the message has no figure.
        bytes: Option<u64>,
        /// Whether the program makes most of them, rather than takes them as arguments.
        are_made: bool,
    },
    /// The arguments alone don't fit.
    Arguments {
        /// Bytes they take.
        bytes: u64,
        /// Devices to divide them between, so that each has half of its memory left, or more.
        devices: u64,
        /// Bytes that this leaves on each device; `None` if its memory is unknown.
        left: Option<u64>,
        /// The parameters of the Python function that hold them; empty if unknown.
        roots: Vec<String>,
    },
    /// The results take much of arguments, results and temporaries together.
    Results {
        /// Bytes they take.
        bytes: u64,
        /// Bytes of arguments, which they may replace.
        arguments: u64,
        /// Bytes of arguments, results and temporaries.
        all: u64,
    },
}

/// A required reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shrink {
    /// Whether it is of temporaries, rather than of all memory that is needed.
    pub is_of_temporaries: bool,
    /// Percentage, rounded up.
    pub percent: u64,
}

/// A failure at run time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunTimeFinding {
    /// Enough is free, but not in one piece.
    Fragmented {
        /// Whether a program is loaded, not an array allocated.
        is_program: bool,
        /// The size requested.
        asked: Option<PrintedSize>,
    },
    /// Others hold the memory.
    OthersHold {
        /// The size requested.
        asked: Option<PrintedSize>,
        /// The size that is free.
        free: Option<PrintedSize>,
        /// The size of the program's results, as printed.
        returned: Option<String>,
    },
    /// Results kept between runs are padded.
    PaddedResults {
        /// The size they take.
        size: PrintedSize,
        /// The percentage of it that is data.
        percent: f64,
    },
    /// A server filled the memory with its cache before it loaded programs.
    ServerRoom {
        /// The server.
        server: Server,
        /// Gibibytes in use before, and the device's total.
        filled: Option<[f64; 2]>,
        /// The server's percentage of the memory that leaves enough room; `None` without figures.
        percent: Option<u64>,
    },
    /// The program, or the request, could be smaller.
    AskLess {
        /// Whether the request is a program's.
        is_program: bool,
        /// The server whose log it is; `None` for another log.
        server: Option<Server>,
    },
    /// A check inside the compiler failed.
    CompilerCheck,
    /// SparseCores hold most of a shared memory.
    SparseCores {
        /// The size they need.
        size: Option<PrintedSize>,
    },
    /// The TensorCore holds most of a shared memory.
    TensorCore {
        /// The size it needs.
        size: Option<PrintedSize>,
    },
    /// A core stopped.
    CoreHalt(CoreHalt),
    /// An error that isn't about memory, with or without a code.
    Unknown {
        /// XLA's code.
        code: Option<String>,
    },
}

/// The cause of a core's halt, by the signs that <https://openxla.org/xla/errors/error_0200> lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CoreHalt {
    /// A copy went out of its array's bounds.
    Bounds,
    /// A semaphore was left over.
    Semaphore,
    /// The cores run different programs.
    Launch,
    /// The machine failed.
    Machine,
    /// The compiler made an instruction that the core refuses.
    Instruction,
    /// Unknown.
    Unknown,
}

/// A kernel's use of its own memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockFinding {
    /// A block is too large.
    Window {
        /// The kind of window.
        kind: WindowKind,
        /// The number of the operand.
        operand: Option<u32>,
        /// The block, as printed.
        block: String,
        /// The block's bounds after division; `None` if they are unknown.
        smaller: Option<Vec<u64>>,
        /// The divisor of each block.
        parts: u64,
        /// Blocks in memory at once.
        buffers: u32,
        /// Bytes of these.
        bytes: u64,
        /// Number of the kernel's input and output windows.
        windows: usize,
        /// The library's names of the divided bound: all parameters of that size.
        parameters: Vec<String>,
        /// The generation's cap in bytes, if no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// The kernel's own scratch is too large.
    Scratch {
        /// The shape, as printed.
        shape: String,
        /// Bytes it takes.
        bytes: u64,
        /// The generation's cap in bytes, if no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// A kernel of a library.
    Library {
        /// Its name; empty where only its blocks are known.
        kernel: String,
        /// Its block sizes; empty if the message has no sizes.
        sizes: Vec<BlockSize>,
        /// The divisor of each with which it surely fits.
        parts: u64,
        /// The generation's cap in bytes, if no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// A kernel that the compiler generated from an operation.
    Fusion {
        /// The generation's cap in bytes, if no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// A kernel without listed blocks.
    Unlisted {
        /// The generation's cap in bytes, if no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// An operand lies in SMEM.
    ScalarOperand {
        /// The kind of window.
        kind: WindowKind,
        /// The number of the operand.
        operand: Option<u32>,
        /// The array's shape, if known.
        shape: Option<Shape>,
        /// Bytes it takes.
        bytes: u64,
        /// Bytes of SMEM.
        limit: u64,
    },
    /// Tables of pages and lengths lie in SMEM.
    ScalarTables {
        /// The largest array, and its bytes.
        largest: Option<(Shape, u64)>,
        /// Bytes of SMEM.
        limit: u64,
    },
    /// The SparseCore's program is too large for HBM.
    SparseCoreInHbm,
    /// A SparseCore takes too much at once.
    SparseCore {
        /// Whether the message names an embedding table.
        is_table: bool,
    },
    /// Values did not fit into registers.
    Spills {
        /// Spilled bytes; 0 if they aren't listed.
        bytes: u64,
        /// Whether the message names a fusion of the compiler's, and no kernel.
        is_of_fusion: bool,
    },
}

/// A limit that can be raised.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelLimit {
    /// The limit to set, in bytes.
    pub raised: u64,
    /// The present limit.
    pub limit: PrintedSize,
    /// The highest limit in bytes that the generation honours; `None` if it is unknown.
    pub cap: Option<(Generation, u64)>,
    /// Whether it is a kernel's limit, not that of an instruction of the compiler's; `None` if unknown.
    pub is_kernel: Option<bool>,
    /// Whether the limit is surely a setting.
    pub is_setting: bool,
}

/// A kernel that can't be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MosaicFinding {
    /// A block that isn't a multiple of the tile.
    Block {
        /// The block's owner, such as `inputs[0]`; empty if unknown.
        of: String,
        /// Rows and lanes of the tile.
        tile: [u64; 2],
        /// The nearest allowed block, and the array; `None` if the message lacks either.
        legal: Option<[Vec<Option<u64>>; 2]>,
        /// Whether the array has one dimension.
        is_flat: bool,
    },
    /// One row at a time, by one dimension more in the array and in the block.
    OneRow {
        /// The array's bounds with that dimension.
        array: Vec<Option<u64>>,
        /// The block's bounds with that dimension.
        block: Vec<Option<u64>>,
    },
    /// An index that is always a multiple.
    Multiple {
        /// The dimension that it indexes; `None` if unknown.
        dimension: Option<u64>,
        /// The number that it is a multiple of.
        multiple: u64,
    },
    /// An index that isn't always a multiple.
    WholeTile {
        /// The required multiple.
        multiple: u64,
    },
    /// A slice that doesn't end where a tile does.
    Slice {
        /// The sliced dimension.
        dimension: u64,
        /// The required multiple.
        multiple: u64,
        /// Its size, and the next multiple; `None` if unknown.
        size: Option<[u64; 2]>,
    },
    /// Operands of a type that the matrix unit can't read.
    Cast,
    /// Strided rows of an array with more than 128 numbers in a row.
    StridedLanes {
        /// Numbers in a row.
        lanes: Option<u64>,
    },
    /// Strided rows of elements narrower than 32 bits.
    StridedNarrow,
    /// An operand whose layout isn't the kernel's.
    OperandLayout(OperandLayout),
    /// A matrix product whose dimensions don't fill tiles, or aren't the multiples that the message names.
    MatmulShape {
        /// The dimensions to pad; empty if unknown.
        short: Vec<ShortDimension>,
    },
    /// An element type that a kernel's operations don't have on this TPU.
    ElementType {
        /// Its name in MLIR.
        name: String,
    },
    /// More than one element of SMEM at once.
    ScalarLoads,
    /// A primitive of JAX that has no lowering for TPU kernels.
    Primitive {
        /// Its name.
        name: String,
    },
    /// An operation that is not implemented.
    Rewrite {
        /// Its name; `None` if unknown.
        operation: Option<String>,
        /// Whether it is on predicates, by MLIR's types.
        is_of_mask: bool,
        /// Whether an operand or a result has fewer than two dimensions; `None` without MLIR's types.
        is_flat: Option<bool>,
        /// Whether elements have fewer than 32 bits; `None` without MLIR's types.
        is_narrow: Option<bool>,
    },
    /// A kernel that JAX wrote in another version than the compiler reads.
    Versions,
    /// The message names no operation, layout or type to change.
    Report,
    /// A kernel in a program that is divided between devices.
    Partitioned,
}

/// An operand whose layout isn't the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperandLayout {
    /// The operand's number.
    pub operand: Option<u64>,
    /// The array in the kernel's layout and in XLA's; `None` if the message lacks either.
    pub layouts: Option<Box<[Shape; 2]>>,
    /// Whether it has no elements.
    pub is_empty: bool,
}

/// A dimension of a matrix product that fills no tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShortDimension {
    /// The dimension.
    pub dimension: MatmulDimension,
    /// Its size.
    pub size: u64,
    /// The next size that fills tiles.
    pub padded: u64,
}

/// A dimension of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatmulDimension {
    /// The contracted one.
    Contracted,
    /// The rows of the left operand and of the result.
    Rows,
    /// The columns of the right operand and of the result.
    Columns,
}

/// How an argument differs from the one that the program was compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MismatchFinding {
    /// It lies in another layout.
    OtherLayout,
    /// It doesn't have this type.
    OtherType(String),
    /// It isn't in this memory.
    OtherMemory(String),
    /// It has other dimensions, or the difference is unknown.
    OtherShape,
}

/// The arguments to donate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DonationFinding {
    /// A state that is returned as it was passed.
    State,
    /// Only such a state.
    OnlyState,
}

/// The memory where a result or a value belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlacementFinding {
    /// On the host.
    Host,
    /// On the device.
    Device,
    /// On the device, before it is used in a computation.
    BeforeUse,
}

/// An array that is replicated between two shardings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicatedArray {
    /// The array, where the message prints the instruction.
    pub array: Option<Resharding>,
    /// The present sharding, as printed.
    pub from: Option<String>,
    /// The wanted sharding, as printed.
    pub to: Option<String>,
}

/// A server's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheFinding {
    /// Each device has too few heads.
    PaddedHeads,
    /// Requests are longer than the cache, with its capacity in tokens; `None` if unknown.
    LongRequests(Option<u64>),
    /// The running requests fill the cache.
    Full,
}

/// A machine without tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElsewhereFinding {
    /// Memory beside the pool ran out.
    Pool {
        /// Whether it is NCCL's buffers, rather than compiled programs.
        is_of_nccl: bool,
    },
    /// Other processes hold the GPU's memory.
    Processes {
        /// Whether this is the likeliest cause.
        is_likely: bool,
    },
    /// An earlier operation broke the context.
    Broken,
    /// One array of the host is copied whole.
    HostArray,
    /// This process's own arrays fill its pool.
    Alive {
        /// Their part of it.
        percent: u64,
    },
    /// A device could not be opened.
    Context,
    /// Free pieces are not joined.
    Fragmented,
    /// The program is too large: its largest buffer, if the message lists any.
    Smaller(Option<LargestBuffer>),
    /// No failure: the caller does without the memory.
    NoFailure,
    /// The host pins no more memory.
    Pinned,
    /// PyTorch keeps much for the backward pass.
    TorchCheckpoint,
    /// PyTorch's allocator holds free pieces.
    TorchFragmented,
    /// Other processes hold the memory that PyTorch asks for.
    TorchProcesses,
    /// The host's own memory ran out.
    Host {
        /// Whether the limit is that of a control group, such as a container.
        is_group: bool,
    },
    /// A process was killed, by its shell's word alone.
    HostKilled,
    /// The host had no memory for a compiled program's machine code.
    HostCode,
    /// The pool of pinned host memory is full.
    HostPool {
        /// The pool's limit in gigabytes; `None` if the message has no figure.
        gigabytes: Option<u64>,
        /// Bytes asked for.
        asked: Option<u64>,
    },
    /// Less has to be kept in pinned host memory.
    OffloadLess,
    /// A kernel of a GPU takes too much shared memory.
    SharedMemory {
        /// The percentage of its blocks' memory that there is; `None` if the message has no figures.
        percent: Option<u64>,
        /// The fusion of XLA's own that the message names.
        fusion: Option<String>,
        /// Whether the text names Pallas.
        is_of_pallas: bool,
    },
    /// Another implementation of the kernel, or of the fusion, needs less shared memory.
    OtherKernel,
    /// No algorithm of an operation had room for its workspace: one has to be chosen without trying them.
    AnyAlgorithm,
    /// The operation is computed in tiles, so that a workspace is smaller.
    SmallerWorkspace,
    /// A bank of a Tenstorrent device is full.
    Bank {
        /// The cause; `None` if unknown.
        cause: Option<tilewise_oom::Verdict>,
        /// Bytes that each would store, and that it has; `None` if unknown.
        bytes: Option<[u64; 2]>,
    },
}

/// Information that a message lacks, for which to look into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageLacks {
    /// It lists no arrays.
    Arrays,
    /// Its list suggests no change.
    Change,
    /// All changes that it suggests together free less than is missing.
    Rest,
}

impl MemoryFinding {
    pub(super) fn change(&self) -> Change {
        match self {
            Self::LookInside { .. } | Self::EarlyAbort => Change::Audit,
            Self::Results { .. } => Change::Free,
            Self::OneArray { .. } | Self::OwnFunction { .. } | Self::Arguments { .. } | Self::OffHost { .. } => {
                Change::Shard
            }
        }
    }
}

impl RunTimeFinding {
    pub(super) fn change(&self) -> Change {
        match self {
            Self::Fragmented { .. } | Self::OthersHold { .. } => Change::Free,
            Self::ServerRoom { .. } => Change::Limit,
            Self::PaddedResults { .. } => Change::Reshape,
            Self::AskLess { .. } => Change::Chunk,
            Self::SparseCores { .. } | Self::TensorCore { .. } => Change::Shard,
            Self::CoreHalt(_) | Self::CompilerCheck | Self::Unknown { .. } => Change::None,
        }
    }
}

/// The largest buffer that a message lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LargestBuffer {
    /// The line or the operation that makes it; `None` if unknown.
    pub owner: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// Whether its first dimension is 1: it has no samples to divide.
    pub is_one_sample: bool,
    /// Whether it holds random bits, outside of a gradient.
    pub is_random: bool,
    /// The transformation in its operation's name; `None` if there isn't any.
    pub transform: Option<Transform>,
}

/// A transformation of a function, which decides what shrinks a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transform {
    /// `vmap`: parts of the batch can follow each other.
    Map,
    /// A gradient: less can be kept for the backward pass.
    Gradient,
}

impl ElsewhereFinding {
    pub(super) fn change(&self) -> Change {
        match self {
            Self::Smaller(_) | Self::TorchCheckpoint => Change::Checkpoint,
            Self::Bank { .. } | Self::SharedMemory { .. } => Change::Block,
            Self::HostPool { .. } => Change::Limit,
            Self::Broken | Self::OtherKernel | Self::AnyAlgorithm | Self::NoFailure | Self::Pinned => Change::None,
            Self::SmallerWorkspace | Self::HostArray => Change::Chunk,
            _ => Change::Free,
        }
    }
}
