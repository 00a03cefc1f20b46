//! XLA's messages, as far as the text of a program needs them: xla/service/hlo.proto and xla/xla_data.proto.
//!
//! Messages that repeat stay bytes until they are looked at. Those are slices of the one buffer, so a message that
//! claims a million instructions takes no more memory than its bytes do, and nothing recurses.

use prost::Message;
use prost::bytes::Bytes;

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloSnapshot {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) hlo: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloProto {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) hlo_module: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) buffer_assignment: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloModuleProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) entry_computation_name: String,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub(super) computations: Vec<Bytes>,
    #[prost(message, optional, tag = "4")]
    pub(super) host_program_shape: Option<ProgramShapeProto>,
    #[prost(int64, tag = "6")]
    pub(super) entry_computation_id: i64,
    #[prost(message, optional, tag = "7")]
    pub(super) schedule: Option<HloScheduleProto>,
    #[prost(message, optional, tag = "8")]
    pub(super) input_output_alias: Option<HloInputOutputAliasProto>,
    #[prost(message, optional, tag = "15")]
    pub(super) device_assignment: Option<DeviceAssignmentProto>,
    #[prost(message, optional, tag = "17")]
    pub(super) stack_frame_index: Option<StackFrameIndexProto>,
}

/// Its shapes are read by [`tilewise::Shape::decode_proto`].
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProgramShapeProto {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(super) parameters: Vec<Bytes>,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) result: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloScheduleProto {
    #[prost(btree_map = "int64, bytes", tag = "1")]
    pub(super) sequences: std::collections::BTreeMap<i64, Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InstructionSequence {
    #[prost(int64, repeated, tag = "1")]
    pub(super) instruction_ids: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloInputOutputAliasProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) entries: Vec<AliasEntryProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AliasEntryProto {
    #[prost(int64, repeated, tag = "1")]
    pub(super) output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(super) parameter_number: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(super) parameter_shape_index: Vec<i64>,
    /// 1: may alias, 2: must alias.
    #[prost(int32, tag = "4")]
    pub(super) kind: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeviceAssignmentProto {
    #[prost(int32, tag = "1")]
    pub(super) replica_count: i32,
    #[prost(int32, tag = "2")]
    pub(super) computation_count: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StackFrameIndexProto {
    #[prost(string, repeated, tag = "1")]
    pub(super) file_names: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) function_names: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub(super) file_locations: Vec<FileLocation>,
    #[prost(message, repeated, tag = "4")]
    pub(super) stack_frames: Vec<StackFrame>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FileLocation {
    #[prost(int32, tag = "1")]
    pub(super) file_name_id: i32,
    #[prost(int32, tag = "2")]
    pub(super) function_name_id: i32,
    #[prost(int32, tag = "3")]
    pub(super) line: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StackFrame {
    #[prost(int32, tag = "1")]
    pub(super) file_location_id: i32,
    #[prost(int32, tag = "2")]
    pub(super) parent_frame_id: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloComputationProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(super) instructions: Vec<Bytes>,
    #[prost(int64, tag = "5")]
    pub(super) id: i64,
    #[prost(int64, tag = "6")]
    pub(super) root_id: i64,
    #[prost(string, tag = "8")]
    pub(super) execution_thread: String,
}

/// The fields of an instruction that are needed before others can be printed.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InstructionHead {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) opcode: String,
    #[prost(int64, tag = "35")]
    pub(super) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloInstructionProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) opcode: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) shape: Bytes,
    #[prost(message, optional, tag = "7")]
    pub(super) metadata: Option<OpMetadata>,
    #[prost(message, optional, tag = "8")]
    pub(super) literal: Option<LiteralProto>,
    #[prost(int64, tag = "9")]
    pub(super) parameter_number: i64,
    #[prost(string, tag = "11")]
    pub(super) fusion_kind: String,
    #[prost(int64, tag = "13")]
    pub(super) tuple_index: i64,
    #[prost(int64, repeated, tag = "14")]
    pub(super) dimensions: Vec<i64>,
    /// Bytes until it is asked for, as are all dimension numbers: most instructions have none.
    #[prost(bytes = "bytes", tag = "15")]
    pub(super) window: Bytes,
    #[prost(bytes = "bytes", tag = "16")]
    pub(super) convolution_dimension_numbers: Bytes,
    #[prost(bytes = "bytes", tag = "30")]
    pub(super) dot_dimension_numbers: Bytes,
    #[prost(bytes = "bytes", tag = "33")]
    pub(super) gather_dimension_numbers: Bytes,
    #[prost(int64, repeated, tag = "34")]
    pub(super) gather_slice_sizes: Vec<i64>,
    #[prost(bytes = "bytes", tag = "48")]
    pub(super) scatter_dimension_numbers: Bytes,
    #[prost(bytes = "bytes", tag = "21")]
    pub(super) padding_config: Bytes,
    #[prost(int64, repeated, tag = "32")]
    pub(super) fft_length: Vec<i64>,
    #[prost(int64, tag = "50")]
    pub(super) feature_group_count: i64,
    #[prost(int64, tag = "58")]
    pub(super) batch_group_count: i64,
    #[prost(message, repeated, tag = "17")]
    pub(super) slice_dimensions: Vec<SliceDimensions>,
    #[prost(int64, repeated, tag = "20")]
    pub(super) dynamic_slice_sizes: Vec<i64>,
    #[prost(int64, tag = "26")]
    pub(super) channel_id: i64,
    #[prost(string, tag = "28")]
    pub(super) custom_call_target: String,
    #[prost(int64, tag = "35")]
    pub(super) id: i64,
    #[prost(int64, repeated, tag = "36")]
    pub(super) operand_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "38")]
    pub(super) called_computation_ids: Vec<i64>,
    #[prost(bytes = "bytes", tag = "43")]
    pub(super) backend_config: Bytes,
    #[prost(bool, tag = "47")]
    pub(super) is_host_transfer: bool,
    #[prost(string, tag = "63")]
    pub(super) comparison_direction: String,
    #[prost(message, repeated, tag = "74")]
    pub(super) output_operand_aliasing: Vec<OutputOperandAliasing>,
    #[prost(string, tag = "79")]
    pub(super) async_execution_thread: String,
    #[prost(int32, optional, tag = "80")]
    pub(super) cross_program_prefetch_index: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OpMetadata {
    #[prost(string, tag = "1")]
    pub(super) op_type: String,
    #[prost(string, tag = "2")]
    pub(super) op_name: String,
    #[prost(string, tag = "3")]
    pub(super) source_file: String,
    #[prost(int32, tag = "4")]
    pub(super) source_line: i32,
    #[prost(int32, tag = "15")]
    pub(super) stack_frame_id: i32,
}

/// The numbers of a scalar; larger constants are printed as `{...}`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LiteralProto {
    #[prost(bool, repeated, tag = "2")]
    pub(super) preds: Vec<bool>,
    #[prost(int32, repeated, tag = "4")]
    pub(super) s32s: Vec<i32>,
    #[prost(int64, repeated, tag = "5")]
    pub(super) s64s: Vec<i64>,
    #[prost(uint32, repeated, tag = "6")]
    pub(super) u32s: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub(super) u64s: Vec<u64>,
    #[prost(float, repeated, tag = "8")]
    pub(super) f32s: Vec<f32>,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) u8s: Bytes,
    #[prost(bytes = "bytes", tag = "15")]
    pub(super) s8s: Bytes,
    #[prost(bytes = "bytes", tag = "16")]
    pub(super) u16s: Bytes,
    #[prost(bytes = "bytes", tag = "17")]
    pub(super) s16s: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SliceDimensions {
    #[prost(int64, tag = "1")]
    pub(super) start: i64,
    #[prost(int64, tag = "2")]
    pub(super) limit: i64,
    #[prost(int64, tag = "3")]
    pub(super) stride: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OutputOperandAliasing {
    #[prost(int64, repeated, tag = "1")]
    pub(super) output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(super) operand_index: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(super) operand_shape_index: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Window {
    #[prost(message, repeated, tag = "1")]
    pub(super) dimensions: Vec<WindowDimension>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WindowDimension {
    #[prost(int64, tag = "1")]
    pub(super) size: i64,
    #[prost(int64, tag = "2")]
    pub(super) stride: i64,
    #[prost(int64, tag = "3")]
    pub(super) padding_low: i64,
    #[prost(int64, tag = "4")]
    pub(super) padding_high: i64,
    #[prost(int64, tag = "5")]
    pub(super) window_dilation: i64,
    #[prost(int64, tag = "6")]
    pub(super) base_dilation: i64,
    #[prost(bool, tag = "7")]
    pub(super) window_reversal: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PaddingConfig {
    #[prost(message, repeated, tag = "1")]
    pub(super) dimensions: Vec<PaddingConfigDimension>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PaddingConfigDimension {
    #[prost(int64, tag = "1")]
    pub(super) low: i64,
    #[prost(int64, tag = "2")]
    pub(super) high: i64,
    #[prost(int64, tag = "3")]
    pub(super) interior: i64,
}

/// `GatherDimensionNumbers` and `ScatterDimensionNumbers`, whose fields have the same numbers.
#[derive(Clone, PartialEq, Message)]
pub(super) struct IndexedDimensionNumbers {
    #[prost(int64, repeated, tag = "1")]
    pub(super) offset: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) collapsed: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(super) indexed: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(super) index_vector: i64,
    #[prost(int64, repeated, tag = "5")]
    pub(super) operand_batch: Vec<i64>,
    #[prost(int64, repeated, tag = "6")]
    pub(super) indices_batch: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ConvolutionDimensionNumbers {
    #[prost(int64, tag = "3")]
    pub(super) kernel_input_feature: i64,
    #[prost(int64, tag = "4")]
    pub(super) kernel_output_feature: i64,
    #[prost(int64, repeated, tag = "6")]
    pub(super) kernel_spatial: Vec<i64>,
    #[prost(int64, tag = "7")]
    pub(super) input_batch: i64,
    #[prost(int64, tag = "8")]
    pub(super) input_feature: i64,
    #[prost(int64, tag = "9")]
    pub(super) output_batch: i64,
    #[prost(int64, tag = "10")]
    pub(super) output_feature: i64,
    #[prost(int64, repeated, tag = "11")]
    pub(super) input_spatial: Vec<i64>,
    #[prost(int64, repeated, tag = "12")]
    pub(super) output_spatial: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DotDimensionNumbers {
    #[prost(int64, repeated, tag = "1")]
    pub(super) lhs_contracting: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) rhs_contracting: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(super) lhs_batch: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub(super) rhs_batch: Vec<i64>,
}
