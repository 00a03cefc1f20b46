//! The compiler's own plan of memory: the allocation and the offset of each value.

mod parse;
#[cfg(feature = "proto")]
mod proto;

use std::cmp::Ordering;

use crate::error::{Error, ErrorKind};
use tilewise::visible_lines;

/// A buffer assignment: XLA's plan of memory (`BufferAssignment` in xla/service/buffer_assignment.h).
///
/// A dump has it as text, in `…-buffer-assignment.txt`, and in the `HloProto` of `….after_optimizations.hlo.pb`.
///
/// ```
/// use tilewise_hlo::BufferAssignment;
///
/// let assignment = BufferAssignment::parse("\
/// BufferAssignment:
/// allocation 0: size 4096, page 0, parameter 0, shape |f32[1024]| at ShapeIndex {}:
///  value: <1 x @0> (size=4096,offset=0): f32[1024]{0:T(1024)}
/// allocation 1: size 8192, color 1, page 0, preallocated-temp:
///  value: <2 fusion{0} @1> (size=4096,offset=4096): f32[1024]{0:T(1024)S(1)}
/// ")?;
/// let [argument, temporary] = assignment.allocations() else { unreachable!() };
/// assert_eq!((argument.size, argument.parameter.as_ref().map(|p| p.number)), (4096, Some(0)));
/// assert_eq!((temporary.memory_space, temporary.is_temporary()), (1, true));
/// let value = &temporary.values[0];
/// assert_eq!((value.instruction.as_str(), &value.shape_index[..], value.offset), ("fusion", &[0][..], 4096));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferAssignment {
    allocations: Vec<BufferAllocation>,
    heap_traces: Vec<HeapTrace>,
    is_whole: bool,
}

impl BufferAssignment {
    /// Reads the text of a `…-buffer-assignment.txt`. Text behind the allocations is ignored.
    ///
    /// # Errors
    ///
    /// [`Syntax`](crate::ErrorKind::Syntax) for a line that isn't written as XLA does (`BufferAllocation::ToString` in
    /// xla/service/buffer_assignment.cc), [`Truncated`](crate::ErrorKind::Truncated) for a text without any allocation,
    /// one that lacks an allocation before the last, or whose total differs, and for values that lie beyond their
    /// allocation.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse::parse(&visible_lines(text))?.checked()
    }

    /// Whether a text begins as a buffer assignment does.
    #[must_use]
    pub fn is_text(text: &str) -> bool {
        text.trim_start().starts_with(parse::TITLE)
    }

    /// Reads a `BufferAssignmentProto`; `name_of` gives the name of the instruction of an id.
    #[cfg(feature = "proto")]
    pub(crate) fn decode(bytes: prost::bytes::Bytes, name_of: impl Fn(i64) -> Option<String>) -> Result<Self, Error> {
        proto::decode(bytes, name_of)?.checked()
    }

    /// The assignment, if it is consistent: allocations are numbered 0, 1, 2 … in any order, and each holds its values.
    /// Allocations missing at the end [may go unnoticed](Self::is_whole).
    fn checked(self) -> Result<Self, Error> {
        let damaged = |what: String| {
            let message = format!("the buffer assignment is damaged: {what}; dump or copy it again, whole");
            Err(Error::new(ErrorKind::Truncated, None, message))
        };
        let mut numbers: Vec<u64> = self.allocations.iter().map(|allocation| allocation.index).collect();
        numbers.sort_unstable();
        for (expected, number) in (0..).zip(numbers) {
            match number.cmp(&expected) {
                Ordering::Greater => return damaged(format!("it lacks allocation {expected}")),
                Ordering::Less => return damaged(format!("it has allocation {number} twice")),
                Ordering::Equal => {}
            }
        }
        for BufferAllocation { index, size, values, .. } in &self.allocations {
            let beyond = values.iter().find(|value| value.offset.checked_add(value.size).is_none_or(|end| end > *size));
            if let Some(AssignedBuffer { instruction, offset, size: bytes, .. }) = beyond {
                return damaged(format!(
                    "`{instruction}` takes {bytes} bytes from {offset} on of allocation {index}, which has {size}"
                ));
            }
        }
        Ok(self)
    }

    /// The allocations, in the order of the text.
    #[must_use]
    pub fn allocations(&self) -> &[BufferAllocation] {
        &self.allocations
    }

    /// Whether no allocation can be missing at the end: a proto has its length, and a text with its total has all
    /// allocations. Other texts may lack some.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Marks the assignment as whole: for a text that is known to be complete, such as a file that the compiler has
    /// finished.
    #[must_use]
    pub fn known_whole(self) -> Self {
        Self { is_whole: true, ..self }
    }

    /// The compiler's packing of each heap of the program, event by event. Only protos have it.
    #[must_use]
    pub fn heap_traces(&self) -> &[HeapTrace] {
        &self.heap_traces
    }
}

/// A piece of memory that the program reserves, and the values in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferAllocation {
    /// Its number.
    pub index: u64,
    /// Its size in bytes, padding included.
    pub size: u64,
    /// The number of its memory space (XLA's `color`).
    pub memory_space: u64,
    /// The argument it holds, if it holds one.
    pub parameter: Option<AllocationParameter>,
    /// Whether it holds a constant.
    pub is_constant: bool,
    /// Whether it belongs to a scalar function, such as a reducer, and takes no memory of the program's.
    pub is_thread_local: bool,
    /// Whether it may hold a result.
    pub is_live_out: bool,
    /// The values in it, in the order of the text.
    pub values: Vec<AssignedBuffer>,
}

impl BufferAllocation {
    /// Whether it holds temporaries: neither arguments nor results nor constants (`IsPreallocatedTempBuffer` in
    /// xla/service/buffer_assignment.h).
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        self.parameter.is_none() && !self.is_constant && !self.is_thread_local && !self.is_live_out
    }
}

/// The argument that an allocation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationParameter {
    /// The parameter of the entry computation, from 0.
    pub number: u64,
    /// The path to the array within the parameter's tuples.
    pub shape_index: Vec<usize>,
}

/// A value, and its place in an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignedBuffer {
    /// The value's number, which the [heap traces](BufferAssignment::heap_traces) use.
    pub id: i64,
    /// The instruction that defines it, without `%`.
    pub instruction: String,
    /// The path to it within the instruction's result.
    pub shape_index: Vec<usize>,
    /// Its offset, in bytes from the start of its allocation.
    pub offset: u64,
    /// Its size in bytes, padding included.
    pub size: u64,
}

/// The packing of one heap (`HeapSimulatorTrace` in xla/service/hlo.proto).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapTrace {
    /// The [index](BufferAllocation::index) of the allocation that the heap became.
    pub allocation: u64,
    /// The events, in order.
    pub events: Vec<HeapEvent>,
}

/// One event of a [`HeapTrace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapEvent {
    /// The value of this number got memory.
    Alloc(i64),
    /// The value's memory was given back.
    Free(i64),
    /// The first value lies in the memory of the second, and keeps it alive.
    ShareWith(i64, i64),
}
