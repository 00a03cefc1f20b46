//! How many operands instructions take.

use std::ops::RangeInclusive;

use crate::opcode::Opcode;

/// The counts of operands that XLA's parser takes (`HloParserImpl::CreateInstruction` in xla/hlo/parser/hlo_parser.cc, asked
/// of jaxlib 0.12), where its attributes and shapes don't say more.
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

/// Whether so many operands are pairs, as such an instruction needs them: of arrays and of what they begin with.
pub(crate) fn are_pairs(opcode: Opcode, count: usize) -> bool {
    !matches!(opcode, Opcode::Reduce | Opcode::ReduceWindow) || count.is_multiple_of(2)
}
