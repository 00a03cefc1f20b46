//! The message of a buffer assignment (`BufferAssignmentProto` in xla/service/hlo.proto).

use foldhash::HashMap;

use prost::Message;
use prost::bytes::Bytes;

use super::{AllocationParameter, AssignedBuffer, BufferAllocation, BufferAssignment, HeapEvent, HeapTrace};
use crate::error::{Error, ErrorKind};

#[derive(Clone, PartialEq, Message)]
struct BufferAssignmentProto {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    logical_buffers: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    buffer_allocations: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "4")]
    heap_simulator_traces: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct LogicalBufferProto {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(message, optional, tag = "3")]
    defined_at: Option<Location>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    /// Deprecated: newer compilers leave it out.
    #[prost(string, tag = "2")]
    instruction_name: String,
    #[prost(int64, repeated, tag = "3")]
    shape_index: Vec<i64>,
    #[prost(int64, tag = "4")]
    instruction_id: i64,
}

#[derive(Clone, PartialEq, Message)]
struct BufferAllocationProto {
    #[prost(int64, tag = "1")]
    index: i64,
    #[prost(int64, tag = "2")]
    size: i64,
    #[prost(bool, tag = "3")]
    is_thread_local: bool,
    #[prost(bool, tag = "5")]
    is_entry_computation_parameter: bool,
    #[prost(int64, tag = "6")]
    parameter_number: i64,
    #[prost(bool, tag = "7")]
    maybe_live_out: bool,
    #[prost(int64, tag = "8")]
    color: i64,
    #[prost(bytes = "bytes", repeated, tag = "9")]
    assigned: Vec<Bytes>,
    #[prost(int64, repeated, tag = "10")]
    parameter_shape_index: Vec<i64>,
    #[prost(bool, tag = "12")]
    is_constant: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Assigned {
    #[prost(int64, tag = "1")]
    logical_buffer_id: i64,
    #[prost(int64, tag = "2")]
    offset: i64,
    #[prost(int64, tag = "3")]
    size: i64,
}

#[derive(Clone, PartialEq, Message)]
struct HeapSimulatorTrace {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    events: Vec<Bytes>,
    #[prost(int64, tag = "3")]
    buffer_allocation_index: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(int64, tag = "2")]
    buffer_id: i64,
    #[prost(int64, tag = "5")]
    share_with_canonical_id: i64,
}

pub(super) fn decode(bytes: Bytes, name_of: impl Fn(i64) -> Option<String>) -> Result<BufferAssignment, Error> {
    let proto: BufferAssignmentProto = message(bytes)?;
    let mut values =
        HashMap::with_capacity_and_hasher(proto.logical_buffers.len(), foldhash::fast::RandomState::default());
    for bytes in proto.logical_buffers {
        let buffer: LogicalBufferProto = message(bytes)?;
        values.insert(buffer.id, buffer.defined_at.unwrap_or_default());
    }
    let value = |bytes: Bytes| {
        let assigned: Assigned = message(bytes)?;
        let location = values.get(&assigned.logical_buffer_id).ok_or_else(|| invalid("names a value it lacks"))?;
        let name = Some(&location.instruction_name).filter(|name| !name.is_empty()).cloned();
        let name = name.or_else(|| name_of(location.instruction_id));
        Ok(AssignedBuffer {
            id: assigned.logical_buffer_id,
            instruction: name.ok_or_else(|| invalid("names an instruction that the module lacks"))?,
            shape_index: index(&location.shape_index)?,
            offset: number(assigned.offset)?,
            size: number(assigned.size)?,
        })
    };
    let allocation = |bytes: Bytes| {
        let proto: BufferAllocationProto = message(bytes)?;
        let parameter = AllocationParameter {
            number: number(proto.parameter_number)?,
            shape_index: index(&proto.parameter_shape_index)?,
        };
        Ok(BufferAllocation {
            index: number(proto.index)?,
            size: number(proto.size)?,
            memory_space: number(proto.color)?,
            parameter: proto.is_entry_computation_parameter.then_some(parameter),
            is_constant: proto.is_constant,
            is_thread_local: proto.is_thread_local,
            is_live_out: proto.maybe_live_out,
            values: proto.assigned.into_iter().map(value).collect::<Result<_, Error>>()?,
        })
    };
    let allocations = proto.buffer_allocations.into_iter().map(allocation).collect::<Result<_, Error>>()?;
    let heap_traces = proto.heap_simulator_traces.into_iter().map(trace).collect::<Result<_, _>>()?;
    Ok(BufferAssignment { allocations, heap_traces, is_whole: true })
}

fn trace(bytes: Bytes) -> Result<HeapTrace, Error> {
    let trace: HeapSimulatorTrace = message(bytes)?;
    let event = |bytes| {
        let Event { kind, buffer_id, share_with_canonical_id } = message(bytes)?;
        match kind {
            0 => Ok(HeapEvent::Alloc(buffer_id)),
            1 => Ok(HeapEvent::Free(buffer_id)),
            2 => Ok(HeapEvent::ShareWith(buffer_id, share_with_canonical_id)),
            _ => Err(invalid("has a heap event of unknown kind")),
        }
    };
    let events = trace.events.into_iter().map(event).collect::<Result<_, _>>()?;
    Ok(HeapTrace { allocation: number(trace.buffer_allocation_index)?, events })
}

fn message<M: Message + Default>(bytes: Bytes) -> Result<M, Error> {
    M::decode(bytes).map_err(|error| invalid(&format!("can't be decoded: {error}")))
}

fn number(number: i64) -> Result<u64, Error> {
    u64::try_from(number).map_err(|_| invalid("has a negative number"))
}

fn index(index: &[i64]) -> Result<Vec<usize>, Error> {
    index.iter().map(|&number| usize::try_from(number).map_err(|_| invalid("has a negative index"))).collect()
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidProto, None, format!("the proto's buffer assignment {what}"))
}
