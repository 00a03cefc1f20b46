//! Kinds of work of instructions.

use tilewise_hlo::Opcode;

/// The kind of work that takes an instruction's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A matrix multiplication or convolution, with the operations fused with it.
    Matmul,
    /// Operations on one element after another.
    Elementwise,
    /// Sums and the like.
    Reduce,
    /// Elements move, nothing is computed: copies, transposes, reshapes, slices, padding.
    Copy,
    /// A part of an array is read or written at an offset that depends on values.
    SliceUpdate,
    /// Elements are gathered, scattered or sorted.
    GatherScatterSort,
    /// Devices exchange data.
    Collective,
    /// A Pallas kernel.
    Kernel,
    /// Another routine that the compiler brings.
    CustomCall,
    /// Work of the SparseCores.
    SparseCore,
    /// Work of the host, and transfers to or from it.
    Host,
    /// The core waits for a copy.
    DmaWait,
    /// The core waits for other devices.
    CollectiveWait,
    /// The core waits for the SparseCores.
    SparseCoreWait,
    /// The core waits for the host.
    HostWait,
}

impl Kind {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 15] = [
        Self::Matmul,
        Self::Elementwise,
        Self::Reduce,
        Self::Copy,
        Self::SliceUpdate,
        Self::GatherScatterSort,
        Self::Collective,
        Self::Kernel,
        Self::CustomCall,
        Self::SparseCore,
        Self::Host,
        Self::DmaWait,
        Self::CollectiveWait,
        Self::SparseCoreWait,
        Self::HostWait,
    ];

    /// Its name in lower case, as JSON has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Matmul => "matmul",
            Self::Elementwise => "elementwise",
            Self::Reduce => "reduce",
            Self::Copy => "copy",
            Self::SliceUpdate => "slice_update",
            Self::GatherScatterSort => "gather_scatter_sort",
            Self::Collective => "collective",
            Self::Kernel => "kernel",
            Self::CustomCall => "custom_call",
            Self::SparseCore => "sparse_core",
            Self::Host => "host",
            Self::DmaWait => "dma_wait",
            Self::CollectiveWait => "collective_wait",
            Self::SparseCoreWait => "sparse_core_wait",
            Self::HostWait => "host_wait",
        }
    }

    /// The kind of work that a wait waits for; `None` for other kinds.
    #[must_use]
    pub const fn awaited(self) -> Option<Self> {
        match self {
            Self::DmaWait => Some(Self::Copy),
            Self::CollectiveWait => Some(Self::Collective),
            Self::SparseCoreWait => Some(Self::SparseCore),
            Self::HostWait => Some(Self::Host),
            _ => None,
        }
    }

    /// The kind of an instruction other than a fusion.
    pub(crate) fn of(opcode: Opcode, is_kernel: bool) -> Self {
        match opcode {
            Opcode::Convolution | Opcode::Dot => Self::Matmul,
            Opcode::Copy
            | Opcode::Transpose
            | Opcode::Reshape
            | Opcode::Pad
            | Opcode::Slice
            | Opcode::Concatenate
            | Opcode::Reverse
            | Opcode::Broadcast => Self::Copy,
            Opcode::DynamicSlice | Opcode::DynamicUpdateSlice => Self::SliceUpdate,
            Opcode::Gather | Opcode::Scatter | Opcode::Sort => Self::GatherScatterSort,
            Opcode::Reduce | Opcode::ReduceWindow | Opcode::SelectAndScatter => Self::Reduce,
            Opcode::CustomCall if is_kernel => Self::Kernel,
            Opcode::CustomCall => Self::CustomCall,
            opcode if is_collective(opcode) => Self::Collective,
            _ => Self::Elementwise,
        }
    }
}

/// The basis of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Basis {
    /// The compiler's cycles.
    Cycles,
    /// Bytes and operations at full rate: a lower bound.
    Bound,
    /// A lower bound, too, of an instruction that the compiler marks as unknown.
    Unknown,
    /// An asynchronous operation that isn't done when its result is needed.
    Wait,
}

impl Basis {
    /// Its name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Bound => "bound",
            Self::Unknown => "unknown",
            Self::Wait => "wait",
        }
    }
}

/// Whether devices exchange data in an instruction; for asynchronous ones, only in the start.
pub(crate) fn is_collective(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::AllReduce
            | Opcode::AllReduceStart
            | Opcode::AllGather
            | Opcode::AllGatherStart
            | Opcode::ReduceScatter
            | Opcode::AllToAll
            | Opcode::RaggedAllToAll
            | Opcode::CollectivePermute
            | Opcode::CollectivePermuteStart
            | Opcode::CollectiveBroadcast
            | Opcode::CollectiveReduce
            | Opcode::Send
            | Opcode::Recv
    )
}

/// The opcodes in a fusion, as the classes that decide its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opcodes(u16);

impl Opcodes {
    const MATMUL: u16 = 1;
    const GATHER: u16 = 1 << 1;
    const COLLECTIVE: u16 = 1 << 2;
    const WINDOW: u16 = 1 << 3;
    const REDUCE: u16 = 1 << 4;
    const UPDATE: u16 = 1 << 5;
    const SLICE: u16 = 1 << 6;
    /// Elements move.
    const MOVE: u16 = 1 << 7;
    /// The computation of places.
    const INDEX: u16 = 1 << 8;
    const OTHER: u16 = 1 << 9;

    pub(crate) fn of(opcode: Opcode) -> Self {
        Self(match opcode {
            Opcode::Convolution | Opcode::Dot => Self::MATMUL,
            Opcode::Gather | Opcode::Scatter | Opcode::Sort => Self::GATHER,
            Opcode::ReduceWindow | Opcode::SelectAndScatter => Self::WINDOW,
            Opcode::Reduce => Self::REDUCE,
            Opcode::DynamicUpdateSlice => Self::UPDATE,
            Opcode::DynamicSlice => Self::SLICE,
            Opcode::Copy
            | Opcode::Transpose
            | Opcode::Reshape
            | Opcode::Bitcast
            | Opcode::Slice
            | Opcode::Concatenate
            | Opcode::Pad
            | Opcode::Reverse
            | Opcode::Broadcast
            | Opcode::Parameter
            | Opcode::Constant
            | Opcode::Tuple
            | Opcode::GetTupleElement => Self::MOVE,
            Opcode::BitcastConvert
            | Opcode::Convert
            | Opcode::Iota
            | Opcode::Compare
            | Opcode::Select
            | Opcode::And
            | Opcode::Clamp
            | Opcode::Add
            | Opcode::Subtract => Self::INDEX,
            opcode if is_collective(opcode) => Self::COLLECTIVE,
            _ => Self::OTHER,
        })
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn has_collective(self) -> bool {
        self.has(Self::COLLECTIVE)
    }

    pub(crate) fn has_dynamic_slice(self) -> bool {
        self.has(Self::SLICE)
    }

    fn has(self, any: u16) -> bool {
        self.0 & any != 0
    }

    fn is_within(self, all: u16) -> bool {
        self.0 & !all == 0
    }

    /// The kind of a fusion with these opcodes.
    pub(crate) fn kind(self) -> Kind {
        let places = Self::MOVE | Self::INDEX | Self::SLICE | Self::UPDATE;
        if self.has(Self::MATMUL) {
            Kind::Matmul
        } else if self.has(Self::GATHER) {
            Kind::GatherScatterSort
        } else if self.has(Self::COLLECTIVE) {
            Kind::Collective
        } else if self.has(Self::WINDOW) {
            Kind::Reduce
        } else if self.is_within(Self::MOVE) {
            Kind::Copy
        } else if self.has(Self::REDUCE) {
            Kind::Reduce
        } else if self.has(Self::UPDATE | Self::SLICE) && self.is_within(places) {
            Kind::SliceUpdate
        } else {
            Kind::Elementwise
        }
    }
}
