//! What is found in messages that no array explains.

use crate::advice::change::Change;
use tilewise::{Shape, tpu::Generation};
use tilewise_oom::{BlockSize, PrintedSize, Resharding, Server, WindowKind};

/// A program that doesn't fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryFinding {
    /// The program tells more than the message.
    LookInside {
        /// What the message lacks.
        lacks: MessageLacks,
        /// By how much something has to shrink.
        shrink: Option<Shrink>,
    },
    /// The compiler gave up early.
    EarlyAbort,
    /// One array is larger than the memory.
    OneArray {
        /// Bytes it takes.
        bytes: Option<u64>,
        /// Devices that leave room beside it.
        devices: Option<u64>,
    },
    /// The program's values in host memory don't fit there.
    OffHost {
        /// Bytes they take, where the message says that.
        bytes: Option<u64>,
    },
    /// The arguments alone don't fit.
    Arguments {
        /// Bytes they take.
        bytes: u64,
        /// Devices of which each has half of its memory left, or more.
        devices: u64,
        /// What that leaves of each.
        left: Option<u64>,
    },
    /// The results take more than arguments and temporaries together.
    Results {
        /// Bytes they take.
        bytes: u64,
        /// Bytes of arguments that they may replace.
        arguments: u64,
    },
}

/// By how much something has to shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shrink {
    /// Of temporaries, or else of all that is needed.
    pub is_of_temporaries: bool,
    /// Rounded up.
    pub percent: u64,
}

/// What happens while a program runs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunTimeFinding {
    /// Enough is free, but not in one piece.
    Fragmented {
        /// What is needed.
        asked: Option<PrintedSize>,
    },
    /// Others hold the memory.
    OthersHold {
        /// What is needed.
        asked: Option<PrintedSize>,
        /// What is free.
        free: Option<PrintedSize>,
        /// What the program returns, as it is printed.
        returned: Option<String>,
    },
    /// Results are padded between runs.
    PaddedResults {
        /// What they take.
        size: PrintedSize,
        /// How much of that is data.
        percent: f64,
    },
    /// A server filled the memory with its cache before it loaded programs.
    ServerRoom {
        /// Which one.
        server: Server,
        /// Gibibytes that were in use before, and that the device has.
        filled: Option<[f64; 2]>,
        /// Hundredths of the memory that leave enough room, where the figures tell.
        percent: Option<u64>,
    },
    /// The program, or what is asked for, could be smaller.
    AskLess {
        /// Whether a program is loaded.
        is_program: bool,
        /// Whose log it is.
        server: Option<Server>,
    },
    /// A check inside the compiler failed.
    CompilerCheck,
    /// SparseCores hold most of a shared memory.
    SparseCores {
        /// What they need.
        size: Option<PrintedSize>,
    },
    /// The TensorCore holds most of a shared memory.
    TensorCore {
        /// What it needs.
        size: Option<PrintedSize>,
    },
    /// A core stopped.
    CoreHalt(CoreHalt),
    /// An error of this code, or none, which tells nothing of memory.
    Unknown {
        /// XLA's code.
        code: Option<String>,
    },
}

/// Why a core stopped, by the signs that <https://openxla.org/xla/errors/error_0200> lists.
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
    /// Nothing tells.
    Unknown,
}

/// What a kernel holds in its own memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockFinding {
    /// A block is too large.
    Window {
        /// What it is of.
        kind: WindowKind,
        /// The number of the operand.
        operand: Option<u32>,
        /// The block as it is printed.
        block: String,
        /// Its bounds once it is smaller.
        smaller: Option<Vec<u64>>,
        /// How many times smaller.
        parts: u64,
        /// Blocks in memory at once.
        buffers: u32,
        /// Bytes of them.
        bytes: u64,
        /// Windows of the kernel.
        windows: usize,
        /// What its library calls the bound that is divided; of several that are as large, all.
        parameters: Vec<String>,
        /// Where no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// The kernel's own scratch is too large.
    Scratch {
        /// As it is printed.
        shape: String,
        /// Bytes.
        bytes: u64,
        /// Where no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// A kernel that many programs share.
    Library {
        /// Its name; empty where only its blocks are known.
        kernel: String,
        /// The sizes of its blocks, where the message has them.
        sizes: Vec<BlockSize>,
        /// By how much each of them has to be divided, so that it surely fits.
        parts: u64,
        /// Where no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// An operation that the compiler made a kernel of.
    Fusion {
        /// Where no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// A kernel of which nothing is listed.
    Unlisted {
        /// Where no higher limit helps.
        cap: Option<(Generation, u64)>,
    },
    /// An operand lies in SMEM.
    ScalarOperand {
        /// What it is of.
        kind: WindowKind,
        /// The number of the operand.
        operand: Option<u32>,
        /// The array.
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
    /// What a SparseCore takes at once is too large.
    SparseCore {
        /// Whether the message names an embedding table.
        is_table: bool,
    },
    /// Values did not fit into registers.
    Spills {
        /// Bytes of them; 0 where they are not listed.
        bytes: u64,
    },
}

/// A limit that can be raised.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelLimit {
    /// Bytes to allow.
    pub raised: u64,
    /// What is allowed now.
    pub limit: PrintedSize,
    /// The most that a generation honours.
    pub cap: Option<(Generation, u64)>,
    /// Whether it is a kernel of the user's; `None` where nothing tells.
    pub is_kernel: Option<bool>,
    /// Whether the limit is surely a setting.
    pub is_setting: bool,
}

/// A kernel that can't be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MosaicFinding {
    /// A block that is no multiple of the tile.
    Block {
        /// Whose block it is, as in ` of inputs[0]`; empty where nothing tells.
        of: String,
        /// Rows and lanes of the tile.
        tile: [u64; 2],
        /// The nearest block that is allowed, and the array; `None` where the message has neither.
        legal: Option<[Vec<Option<u64>>; 2]>,
        /// Whether the array has one dimension.
        is_flat: bool,
    },
    /// A row at a time by one dimension more: the array and the block.
    OneRow {
        /// The array's bounds with that dimension.
        array: Vec<Option<u64>>,
        /// The block's.
        block: Vec<Option<u64>>,
    },
    /// An index that always is a multiple.
    Multiple {
        /// Which dimension it is in.
        dimension: Option<u64>,
        /// Of what.
        multiple: u64,
    },
    /// An index that is none.
    WholeTile {
        /// Of what.
        multiple: u64,
    },
    /// A slice that does not end where a tile does.
    Slice {
        /// Which dimension it is in.
        dimension: u64,
        /// Of what it has to be a multiple.
        multiple: u64,
        /// Its size, and the next multiple.
        size: Option<[u64; 2]>,
    },
    /// Operands of a type that the matrix unit can't read.
    Cast,
    /// Rows at a stride, of an array with more than 128 numbers in a row.
    StridedLanes {
        /// How many it has.
        lanes: Option<u64>,
    },
    /// Rows at a stride, of elements that have fewer than 32 bits.
    StridedNarrow,
    /// An operand whose layout isn't the kernel's.
    OperandLayout(OperandLayout),
    /// A matrix product with dimensions that fill no tile, or not the multiple that the message names.
    MatmulShape {
        /// Which dimension, its size, and the next size that fills tiles; none where the message doesn't tell.
        short: Vec<ShortDimension>,
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
        /// Its name.
        operation: Option<String>,
        /// Whether it is on predicates, as MLIR's types tell.
        is_of_mask: bool,
    },
    /// A kernel that another version of JAX wrote than the compiler reads.
    Versions,
    /// The message tells of no operation, layout or type that could be another.
    Report,
    /// A kernel in a program that is divided between devices.
    Partitioned,
}

/// An operand whose layout isn't the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperandLayout {
    /// Its number.
    pub operand: Option<u64>,
    /// The array in the kernel's layout and in XLA's; `None` where the message prints neither.
    pub layouts: Option<Box<[Shape; 2]>>,
    /// Whether it has no elements.
    pub is_empty: bool,
}

/// A dimension of a matrix product that fills no tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShortDimension {
    /// Which one.
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

/// What to do about an argument that the program was not compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MismatchFinding {
    /// It lies in another layout.
    OtherLayout,
    /// It has another type than this.
    OtherType(String),
    /// It lies in another memory than this.
    OtherMemory(String),
    /// It has other dimensions, or nothing tells.
    OtherShape,
}

/// What to donate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DonationFinding {
    /// A state that comes back as it was passed.
    State,
    /// Nothing else.
    OnlyState,
}

/// Where a result belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlacementFinding {
    /// On the host.
    Host,
    /// On the device.
    Device,
    /// On the device, before it is computed with.
    BeforeUse,
}

/// An array that is replicated between two shardings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicatedArray {
    /// The array, where the message prints the instruction.
    pub array: Option<Resharding>,
    /// The shardings as they are printed.
    pub from: Option<String>,
    /// The sharding that is wanted.
    pub to: Option<String>,
}

/// A server's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheFinding {
    /// Each device has too few heads.
    PaddedHeads,
    /// Requests are longer than the cache, which has room for so many tokens.
    LongRequests(Option<u64>),
}

/// A machine without tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElsewhereFinding {
    /// Compiled programs find no memory beside the pool.
    Pool,
    /// Other processes hold the GPU's memory.
    Processes {
        /// Whether nothing else is likelier.
        is_likely: bool,
    },
    /// Free pieces are not joined.
    Fragmented,
    /// The program is too large: its largest buffer, if the message lists any.
    Smaller(Option<LargestBuffer>),
    /// Nothing failed: the caller does without the memory.
    NoFailure,
    /// PyTorch keeps much for the backward pass.
    TorchCheckpoint,
    /// PyTorch's allocator holds free pieces.
    TorchFragmented,
    /// Other processes hold the memory that PyTorch asks for.
    TorchProcesses,
    /// The host's own memory ran out.
    Host {
        /// Whether it is what a control group, such as a container, may have of it.
        is_group: bool,
    },
    /// A compiled program's machine code found no memory of the host.
    HostCode,
    /// The pool of pinned host memory is full.
    HostPool {
        /// Gigabytes that it may have, where the message says that.
        gigabytes: Option<u64>,
        /// Bytes asked for.
        asked: Option<u64>,
    },
    /// Less is kept in pinned host memory.
    OffloadLess,
    /// A kernel of a GPU takes too much shared memory.
    SharedMemory {
        /// By how much its blocks have to be divided.
        parts: u64,
        /// The fusion of XLA's own that the message names.
        fusion: Option<String>,
    },
    /// Another implementation of the kernel, or of the fusion, needs less shared memory.
    OtherKernel,
    /// No algorithm of an operation had room for its workspace: another one is taken without trying them.
    AnyAlgorithm,
    /// The operation is computed in tiles, so that a workspace is smaller.
    SmallerWorkspace,
    /// A bank of a Tenstorrent device is full.
    Bank {
        /// Why.
        cause: Option<tilewise_oom::Verdict>,
        /// Bytes that each would store, and that it has.
        bytes: Option<[u64; 2]>,
    },
}

/// What a message lacks, so that it pays to look into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageLacks {
    /// It lists no arrays.
    Arrays,
    /// What it lists tells of no change.
    Change,
    /// All changes that it tells of together free less than is missing.
    Rest,
}

impl MemoryFinding {
    pub(super) fn change(&self) -> Change {
        match self {
            Self::LookInside { .. } | Self::EarlyAbort => Change::Audit,
            Self::Results { .. } => Change::Free,
            Self::OneArray { .. } | Self::Arguments { .. } | Self::OffHost { .. } => Change::Shard,
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
    /// The line or the operation that makes it.
    pub owner: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// Whether its first dimension is 1: it has no samples to divide.
    pub is_one_sample: bool,
    /// The transformation that its operation's name shows.
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
            Self::OtherKernel | Self::AnyAlgorithm | Self::NoFailure => Change::None,
            Self::SmallerWorkspace => Change::Chunk,
            _ => Change::Free,
        }
    }
}
