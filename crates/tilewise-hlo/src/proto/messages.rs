//! The messages of `hlo.proto`, with the fields that a program's text is made of.
//!
//! Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto. Shapes stay bytes, which the core reads.

use prost::Message;
use std::collections::HashMap;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloSnapshot {
    #[prost(message, optional, tag = "1")]
    pub(crate) hlo: Option<HloProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) hlo_module: Option<HloModuleProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloModuleProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) computations: Vec<HloComputationProto>,
    #[prost(message, optional, tag = "4")]
    pub(crate) host_program_shape: Option<ProgramShapeProto>,
    #[prost(int64, tag = "6")]
    pub(crate) entry_computation_id: i64,
    #[prost(message, optional, tag = "7")]
    pub(crate) schedule: Option<HloScheduleProto>,
    #[prost(message, optional, tag = "8")]
    pub(crate) input_output_alias: Option<HloInputOutputAliasProto>,
    #[prost(message, optional, tag = "15")]
    pub(crate) device_assignment: Option<DeviceAssignmentProto>,
    #[prost(message, optional, tag = "17")]
    pub(crate) stack_frame_index: Option<StackFrameIndexProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProgramShapeProto {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) parameters: Vec<Vec<u8>>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) result: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloScheduleProto {
    #[prost(map = "int64, message", tag = "1")]
    pub(crate) sequences: HashMap<i64, InstructionSequence>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InstructionSequence {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) instruction_ids: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloInputOutputAliasProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) entries: Vec<AliasEntryProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AliasEntryProto {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(crate) parameter_number: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) parameter_shape_index: Vec<i64>,
    #[prost(int32, tag = "4")]
    pub(crate) kind: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeviceAssignmentProto {
    #[prost(int32, tag = "1")]
    pub(crate) replica_count: i32,
    #[prost(int32, tag = "2")]
    pub(crate) computation_count: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StackFrameIndexProto {
    #[prost(string, repeated, tag = "1")]
    pub(crate) file_names: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) function_names: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) file_locations: Vec<FileLocation>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) stack_frames: Vec<StackFrame>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FileLocation {
    #[prost(int32, tag = "1")]
    pub(crate) file_name_id: i32,
    #[prost(int32, tag = "2")]
    pub(crate) function_name_id: i32,
    #[prost(int32, tag = "3")]
    pub(crate) line: i32,
    #[prost(int32, tag = "4")]
    pub(crate) column: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StackFrame {
    #[prost(int32, tag = "1")]
    pub(crate) file_location_id: i32,
    #[prost(int32, tag = "2")]
    pub(crate) parent_frame_id: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloComputationProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) instructions: Vec<HloInstructionProto>,
    #[prost(int64, tag = "5")]
    pub(crate) id: i64,
    #[prost(int64, tag = "6")]
    pub(crate) root_id: i64,
    #[prost(string, tag = "8")]
    pub(crate) execution_thread: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloInstructionProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) opcode: String,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) shape: Vec<u8>,
    #[prost(message, optional, tag = "7")]
    pub(crate) metadata: Option<OpMetadata>,
    #[prost(message, optional, tag = "8")]
    pub(crate) literal: Option<LiteralProto>,
    #[prost(int64, tag = "9")]
    pub(crate) parameter_number: i64,
    #[prost(string, tag = "11")]
    pub(crate) fusion_kind: String,
    #[prost(int64, tag = "13")]
    pub(crate) tuple_index: i64,
    #[prost(int64, repeated, tag = "14")]
    pub(crate) dimensions: Vec<i64>,
    #[prost(int64, tag = "26")]
    pub(crate) channel_id: i64,
    #[prost(string, tag = "28")]
    pub(crate) custom_call_target: String,
    #[prost(int64, tag = "35")]
    pub(crate) id: i64,
    #[prost(int64, repeated, tag = "36")]
    pub(crate) operand_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "38")]
    pub(crate) called_computation_ids: Vec<i64>,
    #[prost(bytes = "vec", tag = "43")]
    pub(crate) backend_config: Vec<u8>,
    #[prost(string, tag = "63")]
    pub(crate) comparison_direction: String,
    #[prost(message, repeated, tag = "74")]
    pub(crate) output_operand_aliasing: Vec<OutputOperandAliasing>,
    #[prost(string, tag = "79")]
    pub(crate) async_execution_thread: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpMetadata {
    #[prost(string, tag = "2")]
    pub(crate) op_name: String,
    #[prost(string, tag = "3")]
    pub(crate) source_file: String,
    #[prost(int32, tag = "4")]
    pub(crate) source_line: i32,
    #[prost(int32, tag = "15")]
    pub(crate) stack_frame_id: i32,
}

/// Scalars, for the counters of loops.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LiteralProto {
    #[prost(bool, repeated, tag = "2")]
    pub(crate) preds: Vec<bool>,
    #[prost(int32, repeated, tag = "4")]
    pub(crate) s32s: Vec<i32>,
    #[prost(int64, repeated, tag = "5")]
    pub(crate) s64s: Vec<i64>,
    #[prost(uint32, repeated, tag = "6")]
    pub(crate) u32s: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub(crate) u64s: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OutputOperandAliasing {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(crate) operand_index: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) operand_shape_index: Vec<i64>,
}
