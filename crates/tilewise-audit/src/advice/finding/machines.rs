//! Findings in messages of machines without tiles.

use crate::advice::change::Change;
use tilewise_oom::{
    BlockSize, Derivatives, Framework, InputOption, KernelOption, ListedProcess, Model, Names, Occasion, OomVerdict,
    PerUnit, Product, Reason, Rise, Run, Server,
};

/// A machine without tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElsewhereFinding {
    /// The step that follows from the reason of a failure.
    OfReason(Reason),
    /// Arrays that are done may be alive.
    OldArrays {
        /// The percentage of its pool that a process's own arrays fill, if known.
        percent: Option<u64>,
        /// Whether steps ran before.
        has_run: bool,
    },
    /// The pool may have too small a part of the memory, or too large a one for what lies beside it.
    PoolFraction {
        /// The variable that says so.
        name: String,
        /// Its value.
        value: String,
        /// Whether to raise it.
        is_raised: bool,
        /// Hundredths that hold what is in use and asked for, by the message's figures.
        to: Option<u64>,
    },
    /// TensorFlow opened the GPU in a process of JAX's, for as many bytes.
    TensorFlowBeside(Option<u64>),
    /// A framework's pool may hold most of a GPU beside PyTorch.
    PoolBeside {
        /// The framework.
        of: Framework,
        /// Whether it sets nothing aside, and keeps all that it took.
        gives_nothing_back: bool,
    },
    /// The host holds much of a state as it is loaded or saved.
    HostState(Occasion),
    /// Each array is an allocation of the driver's: the variable that says so, and its value.
    Unpooled(String, String),
    /// Nothing tells which of these holds the memory.
    Holders(Holders),
    /// The program is too large, by its largest buffer.
    Smaller(LargestBuffer),
    /// One request is for more than the device has, which is at least this number of times too small.
    TooLarge(u64),
    /// Most listed bytes are of floats of 64 bits.
    Doubles {
        /// Whether most listed bytes are of such floats; or the text tells it alone.
        is_listed: bool,
    },
    /// No failure: the caller does without the memory. The text's error about something else, if it has one.
    NoFailure(Option<String>),
    /// No failure: an array takes a large part of the host's free memory.
    LargePart,
    /// The host pins no more memory.
    Pinned,
    /// PyTorch keeps much for the backward pass.
    TorchCheckpoint,
    /// A job of PyTorch's takes less at once.
    TorchLess {
        /// Whether it trains, if that is known.
        run: Option<Run>,
        /// Whether the request is a small part of what the process holds, of which some may be of earlier batches.
        is_last_of_many: bool,
    },
    /// One array is too large by itself.
    Whole(WholeArray),
    /// Outputs of an evaluation's batches are joined.
    TorchCollection,
    /// Outputs of an evaluation's batches are joined in the host's memory.
    HostCollection,
    /// Each batch leaves something on PyTorch's device.
    TorchGrowth,
    /// This rank of PyTorch's asks for memory of the first GPU, as others do.
    TorchRank(u64),
    /// Each step leaves something in the host's memory, most of it at this rise.
    HostGrowth(Option<Rise>),
    /// Nothing tells what holds the host's memory.
    HostProcesses,
    /// One process has most of what the host's processes take, by its command and its figure.
    HostLargest(String, String),
    /// A program's buffers take as many bytes of the host's, by the compiler's own report.
    HostProgram(u64),
    /// The text tells that the host's memory ran out at several limits.
    HostInVain,
    /// Most of what a process of the host held is shared or pinned.
    HostShared,
    /// The text tells of a compilation, which takes the host's memory itself.
    HostCompilation,
    /// Checkpoints are converted: this model's, if the text names its size.
    HostConversion(Option<Model>),
    /// Processes start from one function, by the text this number, and each has a copy of what it holds.
    HostCopies(Option<u64>),
    /// Options hold data, or a state that is saved or loaded, in the host's memory.
    HostInputs(Vec<InputOption>),
    /// The host keeps as much of each of a number of parts.
    HostPerUnit {
        /// The parts, and what each adds.
        per_unit: PerUnit,
        /// Whether checkpoints are converted.
        converts: bool,
    },
    /// PyTorch gathers a state whole to save it.
    TorchSave {
        /// Whether the text shows FSDP of its first version.
        is_fsdp1: bool,
        /// Whether the text names adapters.
        is_of_adapters: bool,
    },
    /// A server's programs find no room beside its weights and its cache.
    ServerPrograms {
        /// The server.
        server: Server,
        /// Whether CUDA graphs are captured, or take more than is asked for.
        is_capture: bool,
        /// The percentage of the memory that its flag gives weights and cache now, and a lower one; `None` if the text lacks it.
        percents: Option<[u64; 2]>,
    },
    /// A server sizes its cache by the whole memory, of which other processes hold a part.
    ServerBeside {
        /// The server.
        server: Server,
        /// Bytes that others hold.
        others: u64,
        /// The percentage of the memory that they leave.
        percent: u64,
    },
    /// An option of the text limits the host's memory for the job or its container.
    HostLimit {
        /// The option.
        option: String,
        /// Its value.
        value: String,
        /// The number of Slurm's job, whose peak Slurm tells.
        job: Option<u64>,
    },
    /// A process sets most of a GPU's memory aside as it starts, whatever it needs.
    SetAside,
    /// A process keeps a GPU's memory that its arrays have left.
    KeptByPool,
    /// The host's memory grows by programs that are compiled anew for each shape.
    HostPrograms,
    /// A GPU's memory may overflow into the host's.
    UnifiedMemory {
        /// The part of the GPU's memory that is enough, in tenths.
        tenths: u64,
        /// The variable that limits the pool, where the text sets it.
        variable: Option<String>,
    },
    /// An operand of the operation itself found no room, not a workspace.
    SmallerOperand {
        /// The operand's shape.
        shape: String,
    },
    /// PyTorch's allocator holds free pieces.
    TorchFragmented,
    /// Other processes hold the memory that PyTorch asks for; the largest, where the error lists them.
    TorchProcesses(Option<ListedProcess>),
    /// Processes hold it that `nvidia-smi` doesn't list, such as those of other containers.
    TorchHidden,
    /// An optimizer of PyTorch's or Keras's makes its state.
    OptimizerState,
    /// NCCL finds no memory beside PyTorch's cache.
    TorchCache,
    /// Code maps a function over all samples at once, as it is written.
    Mapped(String),
    /// Code makes a matrix of derivatives whole.
    Matrix(Derivatives),
    /// Code of PyTorch's runs a model without switching gradients off.
    NoGradients,
    /// A server makes an array for its longest request that is larger than the device.
    ServerLength(Server),
    /// llama.cpp puts layers of a model, and their cache, on a GPU.
    LlamaLayers {
        /// The number of layers there, if the text has it.
        layers: Option<u64>,
        /// Whether one request is larger than the GPU, as a cache is of a long context.
        is_of_context: bool,
        /// Whether the buffers of a batch found no room.
        is_of_batch: bool,
    },
    /// Processes that load samples each hold the data set in the host's memory, by the text this number.
    HostWorkers(Option<u64>),
    /// A `tf.data` pipeline shuffles this number of elements in the host's memory.
    HostShuffle(u64),
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
        /// The largest of the kernel's block sizes, if the text has them.
        largest: Option<BlockSize>,
        /// Whether the text names Pallas.
        is_of_pallas: bool,
        /// Whether the text has the kernel's code.
        is_own: bool,
    },
    /// Another implementation of the kernel, or of the fusion, needs less shared memory.
    OtherKernel,
    /// An option of the library that has the kernel chooses another implementation.
    Implementation(KernelOption),
    /// No algorithm of an operation had room for its workspace: one has to be chosen without trying them.
    AnyAlgorithm,
    /// XLA's default algorithms, untried: what then fails tells the cause.
    NoAutotuning,
    /// The operation is computed in tiles, so that a workspace is smaller.
    SmallerWorkspace,
    /// A bank of a Tenstorrent device is full.
    Bank {
        /// The cause; `None` if unknown.
        cause: Option<OomVerdict>,
        /// Bytes that each would store, and that it has; `None` if unknown.
        bytes: Option<[u64; 2]>,
    },
}

/// The contents of an array that is made whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WholeArray {
    /// Attention scores, by the name of the line that makes it.
    Scores,
    /// Logits of a vocabulary, by the code of the line that makes them.
    Logits,
    /// All of a model's parameters, by the number that the text has.
    Parameters(u64),
    /// Unknown, but of these sizes.
    Product(Product),
    /// A square matrix that a factorization makes or takes.
    Factored {
        /// Its rows.
        size: u64,
        /// Whether the factorization is one of any matrix, such as a tall one.
        is_tall: bool,
    },
    /// Unknown.
    Unknown,
}

impl WholeArray {
    /// The contents of an array whose sizes are known.
    pub(crate) fn of_sizes(product: &Product, names: Names) -> Self {
        match product.factors[..] {
            // Of both kinds it may be either's.
            [size, _] if product.is_square() && names.factors_tall != names.factors_square => {
                Self::Factored { size, is_tall: names.factors_tall }
            }
            _ => Self::Product(product.clone()),
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
    /// The size of its first dimension, if known.
    pub rows: Option<u64>,
    /// Whether it holds random bits, outside of a gradient.
    pub is_random: bool,
    /// The transformation in its operation's name; `None` if there isn't any.
    pub transform: Option<Transform>,
}

/// The possible holders of a device's memory, without those that the text excludes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holders {
    /// Arrays that the job's own code keeps.
    pub arrays: bool,
    /// The program that asks.
    pub program: bool,
    /// A pool that may have no more than a part of the memory.
    pub pool: bool,
    /// Other processes.
    pub others: bool,
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
            Self::Doubles { .. } => Change::Narrow,
            Self::Bank { .. } | Self::SharedMemory { .. } => Change::Block,
            Self::HostPool { .. }
            | Self::PoolFraction { .. }
            | Self::Unpooled(..)
            | Self::HostLimit { .. }
            | Self::ServerPrograms { .. }
            | Self::ServerBeside { .. }
            | Self::SetAside
            | Self::KeptByPool
            | Self::ServerLength(_)
            | Self::LlamaLayers { .. }
            | Self::UnifiedMemory { .. } => Change::Limit,
            Self::OfReason(Reason::BrokenContext | Reason::DamagedSize | Reason::Refused | Reason::Unsupported)
            | Self::OtherKernel
            | Self::Implementation(_)
            | Self::AnyAlgorithm
            | Self::NoAutotuning
            | Self::NoFailure(_)
            | Self::LargePart
            | Self::Pinned => Change::None,
            Self::SmallerWorkspace
            | Self::SmallerOperand { .. }
            | Self::TooLarge(_)
            | Self::TorchLess { .. }
            | Self::Whole(_)
            | Self::Mapped(_)
            | Self::Matrix(_)
            | Self::HostState(_)
            | Self::HostProgram(_)
            | Self::HostInVain
            | Self::HostShared
            | Self::HostCompilation
            | Self::HostPrograms
            | Self::HostInputs(_)
            | Self::HostCopies(_)
            | Self::HostConversion(_)
            | Self::HostPerUnit { .. }
            | Self::TorchCollection
            | Self::HostCollection
            | Self::HostShuffle(_)
            | Self::OfReason(Reason::HostArray) => Change::Chunk,
            _ => Change::Free,
        }
    }
}
