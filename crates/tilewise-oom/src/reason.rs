//! The reason of a failure on a machine without tiles.

use crate::form::Form;
use crate::message::Message;
use crate::occasion::{MOVES, Occasion};
use crate::text::size::PrintedSize;
use crate::verdict::{OomVerdict, UntiledMachine};

/// Bytes of a request below a page of memory.
const TINY: u64 = 4096;

/// Why a request failed on a machine without tiles, as far as the message shows it: what happened and the first step
/// follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// An earlier operation broke the GPU's context, after which every request fails.
    BrokenContext,
    /// A library's handle could not be created: the GPU is full, or an operation before it failed, whose error comes late.
    LateError,
    /// An array of the host is copied to the device whole.
    HostArray,
    /// The size itself is damaged: no host has as many bytes.
    DamagedSize,
    /// The host could not map its memory for a transfer.
    Mapping,
    /// Compiled code fills the mappings that a process may have.
    CodeMappings,
    /// A server sets aside too much of the host's memory for requests that are put off.
    SwapSpace,
    /// A shell tells of a killed process, without a reason.
    Killed,
    /// The memory of a control group, such as a container, ran out.
    Group,
    /// A node's workers fill the host's memory together.
    Workers,
    /// The host's own memory ran out.
    Host,
    /// A bank of a Tenstorrent device can't hold its part, by this cause.
    Bank(Option<OomVerdict>),
    /// NCCL's buffers found no room beside the pool of a process.
    Communicator,
    /// A device could not be opened.
    Unopened,
    /// A program's own code or constants found no room beside the pool.
    Code,
    /// A CUDA graph of a compiled program found no room beside the pool.
    Graph,
    /// A library's call or handle found no room beside the pool.
    Library,
    /// A library's handle could not be created: most often for lack of memory beside the pool.
    Handle,
    /// A library's handle could not be created, with memory enough: its driver or version doesn't fit.
    Unsupported,
    /// The driver refused for another reason than a lack of memory.
    Refused,
    /// This percentage of the pool holds arrays of the process itself.
    OwnArrays(u64),
    /// The pool may grow by the request, but finds no memory for it.
    Ungrown,
    /// The request is of a few bytes.
    Tiny,
    /// The request is of the program's results.
    Results,
    /// The request is small.
    Small,
    /// Nearly all of a GPU is taken, by what lies outside of this process's pool.
    Taken,
    /// Enough is free, but not in one piece.
    Fragmentation,
    /// Arguments and results exceed the memory by themselves.
    Arguments,
    /// The request, or the program, is too large.
    Size,
    /// Most of a pool is free, so a request that the text lacks is larger than the largest free piece.
    MostlyFree,
    /// The message doesn't show it.
    Unknown,
}

/// A resource other than memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// The length of a message of gRPC.
    MessageLength,
    /// Files that a process may open.
    Files,
    /// Threads and processes that a user or a container may have.
    Threads,
    /// Room on a disk.
    Disk,
    /// Shared memory of a container.
    SharedMemory {
        /// Whether Kubernetes runs it.
        is_of_kubernetes: bool,
    },
    /// Shared memory, most likely, as a worker of a data loader crashed.
    LoadersMemory,
    /// The arguments that a program of a TPU may have.
    Parameters,
    /// A quota of a cloud.
    Quota,
    /// The bytes that XLA lets a library's call have for its work.
    Scratch,
    /// The elements of a workspace that a library's call counts in 32 bits.
    Workspace,
    /// The time, and the host's memory, that a compilation takes.
    CompileTime,
    /// The bytes of a serialized program or array.
    Protobuf,
    /// The block of thread-local variables that a process has for libraries it loads late.
    StaticTls,
    /// A GPU's registers for a thread.
    Registers,
}

impl Reason {
    /// Whether the host lacks memory, or has the array.
    #[must_use]
    pub fn is_of_host(self) -> bool {
        matches!(
            self,
            Self::HostArray
                | Self::DamagedSize
                | Self::Mapping
                | Self::CodeMappings
                | Self::SwapSpace
                | Self::Killed
                | Self::Group
                | Self::Workers
                | Self::Host
        )
    }
}

impl Message {
    /// The resource other than memory that ran out; `None` of other messages.
    ///
    /// ```
    /// use tilewise_oom::{Message, Resource};
    ///
    /// let message = Message::parse("RESOURCE_EXHAUSTED: Received message larger than max (5242880 vs. 4194304)")?;
    /// assert_eq!(message.resource(), Some(Resource::MessageLength));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn resource(&self) -> Option<Resource> {
        let of_fact = [
            ("files", Resource::Files),
            ("threads", Resource::Threads),
            // A segment of shared memory is a file of a disk that is told as full.
            ("loader", Resource::LoadersMemory),
            ("segment", Resource::SharedMemory { is_of_kubernetes: self.job.names.kubernetes }),
            ("parameters", Resource::Parameters),
            ("disk", Resource::Disk),
            ("quota", Resource::Quota),
            ("tls", Resource::StaticTls),
            ("scratch", Resource::Scratch),
            ("workspace", Resource::Workspace),
            ("hlo", Resource::Protobuf),
            ("proto", Resource::Protobuf),
        ];
        let found = of_fact.into_iter().find_map(|(fact, resource)| self.facts.has(fact).then_some(resource));
        match self.form {
            Form::ConstantFolding => Some(Resource::CompileTime),
            Form::GpuRegisters => Some(Resource::Registers),
            Form::Resource => Some(found.unwrap_or(Resource::MessageLength)),
            _ => None,
        }
    }

    /// The work of the job as the request failed: by the program's name, or by the functions of the traceback.
    ///
    /// ```
    /// use tilewise_oom::{Message, Occasion};
    ///
    /// let text = "Traceback (most recent call last):
    ///   File \"train.py\", line 8, in main
    ///     state = create_train_state(config, key)
    /// RESOURCE_EXHAUSTED: Attempting to allocate 100.00M. That was not possible. There are 30.95M free.";
    /// assert_eq!(Message::parse(text)?.occasion(), Some(Occasion::Weights));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn occasion(&self) -> Option<Occasion> {
        if self.function_of_jax() == Some(MOVES) { Some(Occasion::Move) } else { self.in_function }
    }

    /// The reason of a failure on a machine without tiles; of other messages, [`Reason::Unknown`].
    ///
    /// ```
    /// use tilewise_oom::{Message, Reason};
    ///
    /// let reason = |text| Message::parse(text).map(|message| message.reason());
    /// assert_eq!(reason("failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED")?, Reason::Handle);
    /// assert_eq!(reason("std::bad_alloc")?, Reason::Host);
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn reason(&self) -> Reason {
        let has = |fact| self.facts.has(fact);
        // TensorFlow's operation for an array of NumPy's.
        let is_const = || self.facts.text("node") == Some("_EagerConst");
        // Weights come from the host array by array.
        let is_array = || (is_const() || self.is_of_data_set()) && self.occasion() != Some(Occasion::Load);
        match self.machine() {
            None => Reason::Unknown,
            Some(_) if has("broken") => Reason::BrokenContext,
            Some(_) if has("late") => Reason::LateError,
            Some(_) if self.refusal().is_some() => Reason::Refused,
            Some(_) if is_array() => Reason::HostArray,
            Some(_) if self.has_damaged_size() => Reason::DamagedSize,
            Some(UntiledMachine::Host) if has("pages") => Reason::Mapping,
            Some(UntiledMachine::Host) if has("session") => Reason::CodeMappings,
            Some(UntiledMachine::Host) if has("swap") => Reason::SwapSpace,
            Some(UntiledMachine::Host) if has("shell") => Reason::Killed,
            Some(UntiledMachine::Host) if self.is_of_group() => Reason::Group,
            Some(UntiledMachine::Host) if has("workers") && self.most_of_node().is_none() => Reason::Workers,
            Some(UntiledMachine::Host) => Reason::Host,
            Some(UntiledMachine::Tenstorrent) => Reason::Bank(self.cause()),
            Some(_) => self.reason_on_gpu(),
        }
    }

    /// The driver's code for a refusal, if it isn't that of a lack of memory.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.facts.text("code").filter(|code| code.starts_with("CUDA_ERROR_") && *code != "CUDA_ERROR_OUT_OF_MEMORY")
    }

    /// Whether a server of the text refused its options, by which its weights and cache have too little.
    #[must_use]
    pub fn has_refused_server(&self) -> bool {
        self.others.iter().any(|other| other.form == Form::CacheRoom)
    }

    /// The process that has more than half of what a node's processes take, by its command and its figure in GB.
    #[must_use]
    pub fn most_of_node(&self) -> Option<(&str, &str)> {
        let (command, figure) = self.job.host.largest.as_ref()?;
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let used = self.facts.size("node_used")?.bytes() as f64 / 1e9;
        figure.parse::<f64>().is_ok_and(|figure| figure > used / 2.0).then_some((command, figure))
    }

    /// Whether a call that takes a data set asks for an array with more rows than a batch has.
    fn is_of_data_set(&self) -> bool {
        /// More samples are no batch.
        const BATCH: u64 = 10_000;
        let code = self.raised_at.as_ref().and_then(|frame| frame.code.as_deref());
        let is_call =
            code.is_some_and(|code| [".fit(", ".evaluate(", ".predict("].iter().any(|call| code.contains(call)));
        let bounds = self.facts.bounds("tensor").unwrap_or_default();
        is_call && matches!(bounds, [Some(samples), _, ..] if *samples >= BATCH)
    }

    fn reason_on_gpu(&self) -> Reason {
        let has = |fact| self.facts.has(fact);
        if has("handle") && self.used.is_none() {
            return match self.facts.size("free") {
                Some(_) if self.has_free_gpu() => Reason::Unsupported,
                // By the driver's own figure nothing is left beside the pool.
                Some(_) => Reason::Library,
                None => Reason::Handle,
            };
        }
        if self.is_pool_of_rest() {
            return Reason::Taken;
        }
        match self.cause() {
            Some(OomVerdict::Reservation) if has("communicator") => Reason::Communicator,
            Some(OomVerdict::Reservation) if has("context") => Reason::Unopened,
            Some(OomVerdict::Reservation) if has("graph") => Reason::Graph,
            Some(OomVerdict::Reservation) if has("loaded") => Reason::Code,
            Some(OomVerdict::Reservation) if has("library") => Reason::Library,
            Some(OomVerdict::Reservation) if self.cannot_grow() => Reason::Ungrown,
            Some(OomVerdict::Reservation) => match self.full_percent() {
                Some(percent) => Reason::OwnArrays(percent),
                None if self.is_taken() => Reason::Taken,
                None if self.used.as_ref().is_some_and(|used| used.bytes() < TINY) => Reason::Tiny,
                None if self.asks_little() || !self.asks_for("results") => Reason::Small,
                None => Reason::Results,
            },
            Some(OomVerdict::Fragmentation) => Reason::Fragmentation,
            Some(OomVerdict::Arguments) => Reason::Arguments,
            Some(OomVerdict::Size) => Reason::Size,
            _ if self.is_mostly_free() => Reason::MostlyFree,
            _ => Reason::Unknown,
        }
    }

    /// Whether the pool is no part of a GPU that a setting would give, but what others left of it.
    fn is_pool_of_rest(&self) -> bool {
        /// GPUs have more than ten times as much.
        const LITTLE: u64 = 512 << 20;
        let pool = self.facts.size("pool").map(PrintedSize::bytes);
        self.job.pool.fraction.is_none() && pool.is_some_and(|pool| (1..LITTLE).contains(&pool))
    }

    /// Whether less than half of a pool is in use, where the request is unknown.
    fn is_mostly_free(&self) -> bool {
        let fact = |name| self.facts.size(name).map(PrintedSize::bytes);
        self.used.is_none() && fact("pool").zip(fact("pool_used")).is_some_and(|(pool, used)| used < pool / 2)
    }
}
