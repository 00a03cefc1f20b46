//! Findings in messages that no array explains.

use crate::advice::change::Change;
use tilewise::ElementType;
use tilewise_oom::{
    Budget, Form, Kept, Message, Model, Occasion, Optimizers, PrintedSize, Resharding, Resource, Server, Setting,
    SoftwareOption, Switch, SwitchKind, Told, UntiledMachine, Worked,
};

/// A program that doesn't fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryFinding {
    /// A training recomputes nothing, for all that the text shows.
    Recompute {
        /// Whether it is one of Keras's.
        is_of_keras: bool,
        /// The required reduction; `None` if unknown.
        shrink: Option<Shrink>,
    },
    /// The program shows more than the message.
    LookInside {
        /// The information that the message lacks.
        lacks: MessageLacks,
        /// The required reduction; `None` if unknown.
        shrink: Option<Shrink>,
        /// The folder to which the job's flags already dump its programs.
        dump: Option<String>,
        /// Whether the program is compiled on another machine.
        is_elsewhere: bool,
    },
    /// Nothing tells what of a program to make smaller, but its inputs.
    LessAtOnce {
        /// The required reduction; `None` if unknown.
        shrink: Option<Shrink>,
    },
    /// The text names the batch of the job, or the length of its samples.
    Settings {
        /// These, batches first.
        settings: Vec<Lowered>,
        /// The required reduction of temporaries; `None` if unknown.
        shrink: Option<Shrink>,
        /// Whether the job trains, so that gradients of several batches can be added up.
        is_trained: bool,
        /// Whether it is evaluated as it fails, which has a batch of its own.
        is_evaluated: bool,
        /// The option that adds them up, if the text sets one.
        accumulation: Option<Setting>,
    },
    /// The job's own command has options off that would make its program smaller.
    Switches(Vec<Switch>),
    /// An option of the software that the text names.
    Software(SoftwareOption),
    /// Sizes of the largest listed array that may be those of inputs.
    SmallerInputs(Vec<u64>),
    /// Whole attention scores are made, though the text shows a blockwise kernel.
    ScoresBesideKernel,
    /// An array of one device has all samples of a batch that the text calls global.
    GlobalBatch(Setting),
    /// The text names fewer elements of samples than would outweigh weights and their state.
    FewSamples {
        /// Tokens or other elements.
        elements: u64,
    },
    /// The text names a model that explains most of the needed memory, if each device holds it whole.
    WholeModel(Model),
    /// The weights of a server's model take half of each device or more.
    ServedModel {
        /// The model.
        model: Model,
        /// The devices between which it is divided; `None` if the text doesn't say it.
        devices: Option<u64>,
        /// Bytes on each, or of the model whole.
        part: u64,
        /// Bytes of memory that each device has.
        room: u64,
    },
    /// Steps of a lazy framework's loop run as one program, since nothing cuts its graph.
    UncutGraph,
    /// The compiler gave up early.
    EarlyAbort,
    /// The need is a hundred times what there is or more, this many times.
    OutOfReach(u64),
    /// One array is larger than the memory.
    OneArray {
        /// Bytes it takes.
        bytes: Option<u64>,
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
        /// The percentage by which they have to shrink, if known.
        percent: Option<u64>,
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
        /// The type of most of their bytes; `None` if unknown.
        element: Option<ElementType>,
    },
    /// Weights and the optimizer's state are whole on each of several devices.
    Replicated {
        /// Bytes they take on each.
        bytes: u64,
        /// The devices.
        devices: u64,
        /// The parameters of the Python function that hold them; empty if unknown.
        roots: Vec<String>,
        /// The mesh's axis along which the devices lie; `None` if unknown.
        mesh_axis: Option<String>,
        /// The dimension to divide of the only array, and its size; `None` for several.
        dimension: Option<(usize, u64)>,
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

/// A setting, and a lower value for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lowered {
    /// The setting.
    pub setting: Setting,
    /// The lower value; `None` if none is known to be enough.
    pub to: Option<u64>,
}

/// A required reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shrink {
    /// Whether it is of temporaries, rather than of all memory that is needed.
    pub is_of_temporaries: bool,
    /// Percentage, rounded up.
    pub percent: u64,
    /// Whether other arrays, whose size isn't known, lie beside it.
    pub is_least: bool,
}

impl Shrink {
    /// The percentage by which temporaries, or else all used bytes, must shrink, rounded up.
    pub(crate) fn of(budget: &Budget, form: Form) -> Option<Self> {
        let missing = budget.missing_bytes?;
        let temporaries = budget.temporary_bytes.filter(|bytes| *bytes > missing);
        let of = temporaries.or(budget.used_bytes)?;
        let percent = u64::try_from((u128::from(missing) * 100).div_ceil(u128::from(of.max(1)))).ok()?;
        (missing > 0 && percent < 100).then_some(Self {
            is_of_temporaries: temporaries.is_some() || form == Form::Bound,
            percent,
            // These give figures of temporaries alone, or of one array: others lie beside them.
            is_least: matches!(form, Form::Bound | Form::Allocation),
        })
    }
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
    /// The results of a program of the job take more than is asked for, or are padded.
    Returns {
        /// The size of the results.
        size: PrintedSize,
        /// Whether they take more than is asked for.
        are_more: bool,
        /// The percentage of it that is data, if the rest is padding.
        percent: Option<f64>,
    },
    /// Others hold the memory.
    OthersHold {
        /// The size requested.
        asked: Option<PrintedSize>,
        /// The size that is free.
        free: Option<PrintedSize>,
        /// Whether programs may hold some of the memory: the message doesn't say that none is reserved.
        programs: bool,
        /// Whether steps ran before.
        has_run: bool,
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
        /// The origin of the request.
        asker: Asker,
        /// The reduction that is enough, if the message tells how much is free.
        shrink: Option<Shrink>,
    },
    /// An array of the state is whole on each device, as this line of the text shows.
    WholeState(String),
    /// An array is put into another sharding, or gathered whole.
    Move {
        /// Whether it is gathered from all processes.
        gathers: bool,
    },
    /// The text's code keeps arrays on the device.
    Kept(Kept),
    /// The error itself tells to change a setting.
    Told {
        /// The setting.
        told: Told,
        /// A value that is enough, if the message's figures tell one.
        to: Option<String>,
    },
    /// The job ran with this version of a package, or with this option.
    Worked {
        /// It.
        worked: Worked,
        /// The machine of the job, if it isn't a TPU.
        machine: Option<UntiledMachine>,
    },
    /// An optimizer with less state runs.
    OptimizerState {
        /// Both.
        optimizers: Optimizers,
        /// Whether weights are divided between devices.
        is_divided: bool,
        /// Whether it is one of Keras's.
        is_of_keras: bool,
    },
    /// Earlier attempts in the same process may hold memory.
    Repeated,
    /// A job fits when it is fresh, and fails once it goes on from a checkpoint.
    Resumed {
        /// Whether the host's memory ran out.
        is_of_host: bool,
    },
    /// Samples of all chains are transformed at once, after they were drawn.
    TransformedSamples,
    /// A compiled function closes over an array, which is a constant of its program.
    ClosedOver,
    /// An input has more tokens than the model was trained for.
    LongInput {
        /// Its tokens.
        tokens: u64,
        /// The most that the model was trained for.
        most: u64,
    },
    /// Another resource than memory ran out.
    OtherResource(Resource),
    /// The compiler knows what a program takes before it runs.
    AskCompiler,
    /// A gradient goes through a loop of JAX's, each of whose steps keeps values for it.
    StepsOfALoop,
    /// A check inside the compiler failed.
    CompilerCheck {
        /// Whether it is the compiler's part for GPUs.
        is_of_gpu: bool,
    },
    /// A check ended the process, in a library or the runtime.
    FatalCheck,
    /// SparseCores hold most of a shared memory.
    SparseCores {
        /// The size they need.
        size: Option<PrintedSize>,
    },
    /// The TensorCore holds most of a shared memory.
    TensorCore {
        /// The size it needs.
        size: Option<PrintedSize>,
        /// Bytes by which both together exceed the memory, if each alone would fit.
        over: Option<u64>,
    },
    /// A core stopped.
    CoreHalt(CoreHalt),
    /// An error that isn't about memory, with or without a code.
    Unknown {
        /// XLA's code.
        code: Option<String>,
    },
}

/// The origin of a request for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asker {
    /// A server, by its log.
    Server {
        /// The server.
        server: Server,
        /// Whether other advice lowers the part of the memory that it takes.
        is_lowered: bool,
        /// Hundredths of the memory that it takes, if the text sets them.
        percent: Option<u64>,
    },
    /// Functions that make weights or a state.
    Weights,
    /// A script that converts weights, on a device.
    Conversion,
    /// A line that makes an array whole and divides it.
    Division,
    /// Functions that load weights or a state.
    Load {
        /// Whether the reader's line restores a checkpoint.
        is_restored: bool,
        /// Whether Keras loads them.
        is_of_keras: bool,
        /// Whether a TPU's memory ran out: most have several devices.
        is_on_tpu: bool,
    },
    /// A server that loads weights, before it has a cache.
    ServedWeights {
        /// The server.
        server: Server,
        /// The number of its devices, if the text sets it.
        devices: Option<u64>,
        /// Whether these are all that there are.
        are_all: bool,
        /// More devices of those that there are, over which the weights fit, or of a model of unknown size all.
        to: Option<u64>,
        /// The bytes of a device's part of the weights, if all parts surely fit.
        part: Option<u64>,
    },
    /// A program that is loaded.
    Program,
    /// An array, or something unknown.
    Array,
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

/// How an argument differs from the one that the program was compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MismatchFinding {
    /// It lies in another layout.
    OtherLayout,
    /// It doesn't have this type.
    OtherType {
        /// The type that it was compiled for.
        wanted: String,
        /// Whether `jax_enable_x64` makes one type the other.
        is_of_x64: bool,
    },
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
    /// The cache stays while the weights are replaced, and no request runs.
    Idle,
    /// A larger part of the memory leaves no room for programs, a smaller one none for the cache.
    NoPart {
        /// The server.
        server: Server,
        /// The number of its devices, if the text sets it.
        devices: Option<u64>,
    },
    /// The warm-up failed, which the server takes for a lack of memory; whether the text has another exception as its cause.
    WarmUp(bool),
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
            Self::Recompute { .. } => Change::Checkpoint,
            Self::Switches(switches) => match switches.first().map(|switch| switch.kind) {
                Some(SwitchKind::Narrow) => Change::Narrow,
                _ => Change::Checkpoint,
            },
            Self::Settings { .. }
            | Self::SmallerInputs(_)
            | Self::LessAtOnce { .. }
            | Self::Software(_)
            | Self::OutOfReach(_)
            | Self::UncutGraph
            | Self::ScoresBesideKernel => Change::Chunk,
            Self::GlobalBatch(_) | Self::FewSamples { .. } | Self::WholeModel(_) | Self::ServedModel { .. } => {
                Change::Shard
            }
            Self::Results { .. } => Change::Free,
            Self::OneArray { .. }
            | Self::OwnFunction { .. }
            | Self::Arguments { .. }
            | Self::Replicated { .. }
            | Self::OffHost { .. } => Change::Shard,
        }
    }
}

impl Asker {
    /// The origin of a request while weights are made or loaded.
    pub(crate) fn of_weights(message: &Message) -> Option<Self> {
        if message.job.host.is_converter && !message.job.has_run && message.server.is_none() {
            return Some(Self::Conversion);
        }
        match (message.occasion()?, message.server) {
            (Occasion::Load | Occasion::Weights, Some(server)) => {
                let devices = message.job.serving.devices;
                let are_all = devices.zip(message.job.devices.count).is_some_and(|(used, all)| used > all / 2);
                let room = message.device_bytes().map(|bytes| bytes / 4 * 3);
                // A server may quantize only what it has loaded.
                let weights = message.job.model.map(|model| model.parameters.saturating_mul(2));
                let part = weights.zip(devices).map(|(weights, devices)| weights / devices.max(1));
                let least = weights.zip(room).map(|(weights, room)| weights.div_ceil(room.max(1)).next_power_of_two());
                let all = message.job.devices.count;
                let to = match least {
                    Some(least) => Some(least).filter(|least| all.is_some_and(|all| *least <= all)),
                    None => all,
                };
                let to = to.filter(|to| *to > devices.unwrap_or(1));
                // On a GPU others may hold the rest.
                let part = part
                    .filter(|_| message.machine().is_none())
                    .zip(room)
                    .filter(|(part, room)| part < room)
                    .map(|(part, _)| part);
                Some(Self::ServedWeights { server, devices, are_all, to, part })
            }
            (Occasion::Load, None) => {
                let code = message.raised_at.as_ref().and_then(|frame| frame.code.as_deref());
                let is_restored = code.is_some_and(|code| code.contains("restore("));
                let is_on_tpu = message.machine().is_none();
                Some(Self::Load { is_restored, is_of_keras: message.job.names.keras, is_on_tpu })
            }
            (Occasion::Weights, None) => Some(Self::Weights),
            (Occasion::Division, None) => Some(Self::Division),
            _ => None,
        }
    }
}

impl RunTimeFinding {
    pub(super) fn change(&self) -> Change {
        match self {
            Self::Fragmented { .. } | Self::Returns { .. } | Self::OthersHold { .. } | Self::Kept(_) => Change::Free,
            Self::ServerRoom { .. } | Self::Told { .. } => Change::Limit,
            Self::Worked { .. } => Change::None,
            Self::StepsOfALoop => Change::Checkpoint,
            Self::Repeated | Self::Resumed { .. } => Change::Free,
            Self::TransformedSamples => Change::Chunk,
            Self::ClosedOver => Change::Free,
            Self::LongInput { .. } => Change::Chunk,
            Self::AskLess { .. } => Change::Chunk,
            Self::SparseCores { .. } | Self::TensorCore { .. } | Self::Move { .. } | Self::WholeState(_) => {
                Change::Shard
            }
            Self::OptimizerState { .. } => Change::Shard,
            Self::OtherResource(_)
            | Self::CoreHalt(_)
            | Self::CompilerCheck { .. }
            | Self::FatalCheck
            | Self::AskCompiler
            | Self::Unknown { .. } => Change::None,
        }
    }
}
