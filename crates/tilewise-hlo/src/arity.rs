//! The numbers of operands of instructions.

use std::ops::RangeInclusive;

use crate::opcode::Opcode;

/// The counts of operands that XLA's parser accepts (`HloParserImpl::CreateInstruction` in
/// xla/hlo/parser/hlo_parser.cc, tested with jaxlib 0.12), apart from limits by attributes and shapes.
pub(crate) fn operand_counts(opcode: Opcode) -> RangeInclusive<usize> {
    use Opcode::*;
    match opcode {
        Constant | Iota | Parameter | PartitionId | ReplicaId | RngGetAndUpdateState => 0..=0,
        Add | AddDependency | And | Atan2 | Compare | Complex | Divide | Gather | Maximum | Minimum | Mulhi
        | Multiply | Or | Outfeed | Pad | Power | Remainder | Send | SetDimensionSize | ShiftLeft
        | ShiftRightArithmetic | ShiftRightLogical | StochasticConvert | Subtract | TriangularSolve | Xor => 2..=2,
        BatchNormTraining | Clamp | RaggedDot | Select | SelectAndScatter => 3..=3,
        ScaledDot => 4..=4,
        BatchNormGrad | BatchNormInference => 5..=5,
        AsyncDone | AsyncUpdate | Conditional | DynamicReshape | DynamicSlice => 1..=usize::MAX,
        Convolution | Dot | DynamicUpdateSlice | Reduce | ReduceWindow => 2..=usize::MAX,
        Scatter => 3..=usize::MAX,
        AfterAll
        | AllGather
        | AllGatherStart
        | AllReduce
        | AllReduceStart
        | AllToAll
        | AsyncStart
        | Call
        | CollectiveBroadcast
        | CollectivePermute
        | CollectivePermuteStart
        | CollectiveReduce
        | Concatenate
        | CustomCall
        | Fusion
        | Map
        | RaggedAllToAll
        | ReduceScatter
        | Rng
        | Scan
        | Sort
        | Tuple
        | Unknown => 0..=usize::MAX,
        _ => 1..=1,
    }
}

/// Whether `count` operands can be pairs of an array and its start value, as a `reduce` or `reduce-window` needs; else
/// true.
pub(crate) fn are_pairs(opcode: Opcode, count: usize) -> bool {
    !matches!(opcode, Opcode::Reduce | Opcode::ReduceWindow) || count.is_multiple_of(2)
}
