//! The plan: assigned values, totals, the peak.

use tilewise::Shape;
use tilewise_hlo::dataflow::{Dataflow, NodeId, Position};

use crate::{Machine, Packing, Role};

/// Options of a plan.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PlanOptions {
    /// The machine that the module is compiled for.
    pub machine: Machine,
    /// Bytes of HBM: near this limit the TPU compiler uses the other packing if that takes less. If `None`,
    /// [`packing`](Self::packing) is used.
    pub hbm_limit: Option<u64>,
    /// How the heap is packed.
    pub packing: Packing,
}

impl PlanOptions {
    /// The options of today's compiler for a machine, or a TPU generation, far from the memory limit.
    #[must_use]
    pub fn new(machine: impl Into<Machine>) -> Self {
        let machine = machine.into();
        Self { machine, hbm_limit: None, packing: machine.packing() }
    }

    /// Sets the bytes of HBM.
    #[must_use]
    pub fn with_hbm_limit(self, bytes: u64) -> Self {
        Self { hbm_limit: Some(bytes), ..self }
    }

    /// Sets the packing of the heap.
    #[must_use]
    pub fn with_packing(self, packing: Packing) -> Self {
        Self { packing, ..self }
    }
}

/// The memory plan of a program: its values, with their live ranges and offsets, and totals.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// Bytes of the entry's arguments, tuples' tables included, host memory apart (`argument_size`).
    pub argument_bytes: u64,
    /// Bytes of its results, in the same way (`output_size`).
    pub output_bytes: u64,
    /// Bytes of results that lie in donated arguments (`alias_size`).
    pub alias_bytes: u64,
    /// Bytes of arguments in host memory (`host_argument_size`).
    pub host_argument_bytes: u64,
    /// Bytes of results in host memory (`host_output_size`).
    pub host_output_bytes: u64,
    /// Bytes of results in host memory that lie in donated arguments (`host_alias_size`).
    pub host_alias_bytes: u64,
    /// Bytes of constants in the default memory space, each an allocation of its own, those of reducers and the like
    /// included.
    pub constant_bytes: u64,
    /// Bytes of temporaries on the device, as the compiler reports them.
    pub(crate) temporary_bytes: u64,
    /// The memory spaces that hold anything, the default one first.
    pub spaces: Vec<SpacePlan>,
    /// How the heap of the default memory space is packed.
    pub packing: Packing,
    /// Near the memory limit, the packing that was tried but not chosen, with its
    /// [`temporary_bytes`](Self::temporary_bytes).
    pub other_packing: Option<(Packing, u64)>,
    pub(crate) order: Vec<usize>,
}

/// The plan of one memory space.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SpacePlan {
    /// The memory space's number, 0 for the device's default memory.
    pub memory_space: u8,
    /// Every value that lies there, in the order of definition.
    pub values: Vec<AssignedValue>,
    /// Bytes that are live for the whole run: arguments, and results that don't lie in them.
    pub resident_bytes: u64,
    /// In the default memory space, bytes of temporaries as the compiler reports them (`temp_size`): the packed heap,
    /// tables and work areas, with the gaps of their alignment. In others, the bytes alive at the peak.
    pub temporary_bytes: u64,
    /// Bytes from the start of the temporaries to the end of the last. The compiler reports
    /// [`temporary_bytes`](Self::temporary_bytes) of 0 if none of them needs memory.
    pub layout_bytes: u64,
    /// The most bytes of temporaries that are alive at one time.
    pub peak_temporary_live_bytes: u64,
    /// The time of that peak, and the buffers alive then.
    pub peak: Option<Peak>,
}

impl SpacePlan {
    /// The most bytes that are live at one time: resident ones and temporaries.
    #[must_use]
    pub fn peak_live_bytes(&self) -> u64 {
        self.resident_bytes.saturating_add(self.peak_temporary_live_bytes)
    }

    /// Bytes of the temporaries' memory that nothing uses at the peak: gaps of alignment, and holes.
    #[must_use]
    pub fn fragmentation_bytes(&self) -> u64 {
        self.layout_bytes.min(self.temporary_bytes).saturating_sub(self.peak_temporary_live_bytes)
    }
}

/// The time at which temporaries take the most.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Peak {
    /// The logical time of the peak, as in [`MemoryPlan::order`].
    pub logical_time: usize,
    /// The [index](tilewise_hlo::Instruction::index) of the instruction that runs then.
    pub instruction: usize,
    /// The buffers live then, arguments and results included.
    pub live: Vec<LiveBuffer>,
}

/// A buffer that is live at the peak.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LiveBuffer {
    /// The index in [`SpacePlan::values`] of the value it holds then.
    pub value: usize,
    /// Bytes it takes: those of the largest value that ever lies there.
    pub bytes: u64,
}

/// A value with its place in memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AssignedValue {
    /// The [index](tilewise_hlo::Instruction::index) of the instruction that makes it.
    pub instruction: usize,
    /// Whether the text leaves out the instruction that makes it, as it does the computation of a `slice-start`:
    /// [`instruction`](Self::instruction) is then the start, and the value its element 1.
    pub is_hidden: bool,
    /// The use of its memory.
    pub role: Role,
    /// The number of its buffer: values of one buffer share memory, at different times.
    pub buffer: usize,
    /// Bytes from the start of the temporaries' memory; known in the default memory space and in space 6.
    pub offset: Option<u64>,
    /// Whether it is a temporary in a donated argument or a result not in use then: it takes no memory of its own.
    pub is_in_resident: bool,
    /// Bytes it takes, padding included.
    pub bytes: u64,
    /// The logical time at which it is made, as in [`MemoryPlan::order`].
    pub first: usize,
    /// The logical time at which it is last used.
    pub last: usize,
    /// The position that defines it.
    pub position: Position,
    pub(crate) flow: Dataflow,
}

impl AssignedValue {
    /// The path to it within the tuples of the instruction's shape. Computed on each call: with all paths, a plan of
    /// deeply nested tuples would be larger than its text.
    #[must_use]
    pub fn shape_index(&self) -> Vec<usize> {
        let path = self.flow.shape_index(self.position);
        // The result of an instruction that the text leaves out is element 1 of its start.
        if self.is_hidden { [&[1], &path[..]].concat() } else { path }
    }

    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        self.flow.shape(self.position)
    }

    /// Its node among the module's distinct shapes: values of one node have equal shapes.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.flow.node(self.position)
    }
}

impl MemoryPlan {
    /// The plan of one memory space.
    #[must_use]
    pub fn space(&self, memory_space: u8) -> Option<&SpacePlan> {
        self.spaces.iter().find(|space| space.memory_space == memory_space)
    }

    /// Bytes of temporaries as the compiler reports them (`temp_size`): on a TPU those in its default memory space, on
    /// other machines all but the host's.
    #[must_use]
    pub fn temporary_bytes(&self) -> u64 {
        self.temporary_bytes
    }

    /// Bytes of the device's default memory that the program holds: arguments, results that don't lie in them, constants,
    /// and temporaries. Its code isn't counted.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        let interface = [self.argument_bytes, self.output_bytes];
        total_bytes(interface, self.alias_bytes, [self.constant_bytes, self.temporary_bytes()])
    }

    /// The [index](tilewise_hlo::Instruction::index) of the instruction that runs at each logical time.
    ///
    /// Called computations run once, before their caller. An instruction that the text leaves out has the index of its
    /// start.
    pub fn order(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator {
        self.order.iter().copied()
    }
}

/// The device's default memory that a program holds: arguments and results, less the results that lie in arguments, and
/// constants and temporaries.
pub(crate) fn total_bytes(interface: [u64; 2], aliases: u64, inside: [u64; 2]) -> u64 {
    let sum = |[one, other]: [u64; 2]| one.saturating_add(other);
    sum(interface).saturating_sub(aliases).saturating_add(sum(inside))
}
