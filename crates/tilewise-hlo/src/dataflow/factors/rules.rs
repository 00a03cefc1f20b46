//! The factors of each opcode.

use crate::{Instruction, Opcode, WindowDimension};

use super::{
    Array, FactorKind, Factors,
    convolution::add_convolution,
    indexed::{add_gather, add_part, add_scatter},
    views::{add_bitcast, add_reshape},
};

/// Custom calls whose results are their operands.
const SAME: &[&str] = &[
    "AssumeGatherIndicesInBound",
    "GatherScatterIndicesBitpacked",
    "MoveToDevice",
    "MoveToHost",
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "X64Combine",
    "X64SplitHigh",
    "X64SplitLow",
];

/// Custom calls on matrices, the last two dimensions, each by itself.
const OF_MATRICES: &[&str] = &[
    "Cholesky",
    "EighTpu",
    "InvertDiagBlocksLowerTriangular",
    "InvertDiagBlocksUpperTriangular",
    "LuRealDecompositionBlock",
    "QrDecompositionBlock",
];

/// Custom calls that rank the elements along the last dimension.
const RANKING: &[&str] = &["ApproxTopK", "PartialReduce", "TopK"];

/// Finds the factors of an operation on these arrays: its operands, then its results. Dimensions that it doesn't relate
/// are mixed.
pub(in super::super) fn add_factors(
    at: &Instruction<'_>,
    opcode: Opcode,
    arrays: &[&Array],
    operands: usize,
    found: &mut Factors,
) {
    found.clear(arrays, operands);
    // An operation that doesn't fit its opcode, or is unknown, relates no dimensions.
    if add(at, opcode, arrays, operands, found).is_none() {
        found.clear(arrays, operands);
    }
    found.finish(arrays);
}

fn add(at: &Instruction<'_>, opcode: Opcode, arrays: &[&Array], operands: usize, found: &mut Factors) -> Option<()> {
    let pass = |_: usize| FactorKind::Pass;
    let first = arrays.first().map_or(&[][..], |array| &array.bounds);
    let result = arrays.get(operands).map_or(&[][..], |array| &array.bounds);
    match opcode {
        // Predicates of a `select` and limits of a `clamp` may be scalars.
        opcode if opcode.is_elementwise() && opcode != Opcode::BitcastConvert => of_like(arrays, result, pass, found),
        Opcode::Map | Opcode::Mulhi => of_like(arrays, result, pass, found),
        Opcode::BitcastConvert => leading(arrays, first.len().min(result.len()), found),
        Opcode::AllReduce
        | Opcode::CollectiveBroadcast
        | Opcode::CollectivePermute
        | Opcode::Domain
        | Opcode::OptimizationBarrier => of_each(arrays, operands, |_| FactorKind::Pass, found),
        Opcode::Reverse => {
            let along = at.dimensions()?;
            of_like(arrays, result, |dimension| mixed(along.contains(&dimension)), found);
        }
        Opcode::Sort => {
            let along = at.dimensions()?;
            of_like(arrays, first, |dimension| mixed(along.contains(&dimension)), found);
        }
        Opcode::Cholesky => {
            let batch = first.len().saturating_sub(2);
            of_like(arrays, first, |dimension| mixed(dimension >= batch), found);
        }
        Opcode::TriangularSolve => triangular_solve(at, arrays, found)?,
        Opcode::Fft => {
            let batch = first.len().checked_sub(at.fft_length()?.len())?;
            for (dimension, (from, to)) in first.iter().zip(result).enumerate().filter(|(_, (from, to))| from == to) {
                found.add(mixed(dimension >= batch && from == to), *from, [(0, dimension), (1, dimension)]);
            }
        }
        Opcode::Transpose => {
            for (to, from) in at.dimensions()?.into_iter().enumerate() {
                found.add(FactorKind::Pass, *first.get(from)?, [(0, from), (1, to)]);
            }
        }
        Opcode::Broadcast => {
            let places = at.dimensions()?;
            for (to, size) in result.iter().enumerate() {
                let from = places.iter().position(|place| *place == to).filter(|from| first.get(*from) == Some(size));
                let kind = if from.is_some() { FactorKind::Pass } else { FactorKind::Repeat };
                found.add(kind, *size, from.map(|from| (0, from)).into_iter().chain([(1, to)]));
            }
        }
        Opcode::Iota => {
            let along = at.iota_dimension()?;
            for (dimension, size) in result.iter().enumerate() {
                let kind = if dimension == along { FactorKind::Mix } else { FactorKind::Repeat };
                found.add(kind, *size, [(0, dimension)]);
            }
        }
        Opcode::Reshape => add_reshape(arrays, found),
        Opcode::Bitcast => add_bitcast(arrays, found),
        Opcode::Reduce => reduce(at, arrays, operands, found)?,
        Opcode::Dot => dot(at, arrays, found)?,
        Opcode::Convolution => add_convolution(at, arrays, found)?,
        Opcode::Slice | Opcode::DynamicSlice | Opcode::DynamicUpdateSlice => add_part(opcode, arrays, found)?,
        Opcode::Gather => add_gather(at, arrays, found)?,
        Opcode::Scatter => add_scatter(at, arrays, found)?,
        Opcode::Concatenate => {
            let along = *at.dimensions()?.first()?;
            except(arrays, &all(arrays), |dimension| dimension == along, found);
        }
        Opcode::Pad => {
            let padding = at.padding()?;
            let is_padded = |dimension: usize| padding.get(dimension).is_none_or(|along| *along != Default::default());
            except(arrays, &[0, operands], is_padded, found);
        }
        Opcode::AllGather | Opcode::ReduceScatter | Opcode::AllToAll | Opcode::RaggedAllToAll => {
            // A collective of several operands has a result for each.
            let along = at.dimensions().unwrap_or_else(|| vec![0]);
            for number in 0..operands.min(arrays.len() - operands) {
                let (from, to) = (arrays[number], arrays[operands + number]);
                for (dimension, size) in from.bounds.iter().enumerate() {
                    if !along.contains(&dimension) && to.bounds.get(dimension) == Some(size) {
                        found.add(FactorKind::Pass, *size, [(number, dimension), (operands + number, dimension)]);
                    }
                }
            }
        }
        Opcode::ReduceWindow => windows(at, arrays, operands, found)?,
        Opcode::SelectAndScatter => {
            let window = at.window()?;
            let is_slid = |dimension: usize| !window.get(dimension).is_some_and(is_one);
            except(arrays, &[0, 1, operands], is_slid, found);
        }
        Opcode::SetDimensionSize => {
            let along = at.dimensions()?;
            of_like(arrays, first, |dimension| mixed(along.contains(&dimension)), found);
        }
        Opcode::BatchNormTraining | Opcode::BatchNormInference | Opcode::BatchNormGrad => {
            let feature: usize = at.attribute("feature_index")?.trim().parse().ok()?;
            let size = *first.get(feature)?;
            let place = |array: &Array| if array.bounds.len() == 1 { 0 } else { feature };
            let places = arrays.iter().enumerate().map(|(number, array)| (number, place(array)));
            let features: Vec<(usize, usize)> = places.collect();
            let is_alike = |array: &&Array| array.bounds == first || array.bounds == [size];
            arrays.iter().all(is_alike).then_some(())?;
            // Normalized by given numbers, each place is independent.
            let kind = mixed(opcode != Opcode::BatchNormInference);
            for (dimension, size) in first.iter().enumerate().filter(|(dimension, _)| *dimension != feature) {
                let like = arrays.iter().enumerate().filter(|(_, array)| array.bounds == first);
                let places: Vec<_> = like.map(|(number, _)| (number, dimension)).collect();
                found.add(kind, *size, places);
            }
            found.add(FactorKind::Pass, size, features);
        }
        Opcode::TopK => except_last(arrays, found),
        Opcode::CustomCall => match at.custom_call_target()? {
            target if SAME.contains(&target) => of_like(arrays, result, pass, found),
            target if RANKING.contains(&target) => except_last(arrays, found),
            target if OF_MATRICES.contains(&target) => leading(arrays, first.len().saturating_sub(2), found),
            _ => return None,
        },
        _ => return None,
    }
    Some(())
}

/// The kind of a factor that is mixed, or passes.
const fn mixed(is_mixed: bool) -> FactorKind {
    if is_mixed { FactorKind::Mix } else { FactorKind::Pass }
}

/// Whether a window takes one element after the other.
fn is_one(along: &WindowDimension) -> bool {
    (along.size, along.stride, along.pad_low, along.pad_high, along.base_dilation) == (1, 1, 0, 0, 1)
}

/// A factor for each dimension of the arrays of these bounds.
fn of_like(arrays: &[&Array], bounds: &[u64], kind: impl Fn(usize) -> FactorKind, found: &mut Factors) {
    for (dimension, size) in bounds.iter().enumerate() {
        let like = arrays.iter().enumerate().filter(|(_, array)| array.bounds == bounds);
        found.add(kind(dimension), *size, like.map(|(number, _)| (number, dimension)));
    }
}

/// A factor for each dimension of an operand and of the result of its number, if they have the same bounds.
fn of_each(arrays: &[&Array], operands: usize, kind: impl Fn(usize) -> FactorKind, found: &mut Factors) {
    for number in 0..operands.min(arrays.len() - operands) {
        let (from, to) = (&arrays[number].bounds, &arrays[operands + number].bounds);
        for (dimension, size) in from.iter().enumerate().filter(|_| from == to) {
            found.add(kind(dimension), *size, [(number, dimension), (operands + number, dimension)]);
        }
    }
}

/// A factor for each of the first dimensions that all arrays have in common.
fn leading(arrays: &[&Array], count: usize, found: &mut Factors) {
    let rank = arrays.iter().map(|array| array.bounds.len()).max().unwrap_or(0);
    let matrices = arrays.iter().enumerate().filter(|(_, array)| array.bounds.len() >= count.max(1));
    let matrices: Vec<_> = matrices.collect();
    for dimension in 0..count.min(rank) {
        let mut sizes = matrices.iter().map(|(_, array)| array.bounds[dimension]);
        let Some(size) = sizes.next().filter(|size| sizes.all(|other| other == *size)) else { return };
        found.add(FactorKind::Pass, size, matrices.iter().map(|(number, _)| (*number, dimension)));
    }
}

/// The numbers of all arrays.
fn all(arrays: &[&Array]) -> Vec<usize> {
    (0..arrays.len()).collect()
}

/// A factor for each dimension, but those left out, that the first of some arrays has in common with others of its
/// rank.
fn except(arrays: &[&Array], of: &[usize], is_left_out: impl Fn(usize) -> bool, found: &mut Factors) {
    let bounds = |number: &usize| arrays.get(*number).map_or(&[][..], |array| &array.bounds);
    let first = of.first().map_or(&[][..], bounds);
    for (dimension, size) in first.iter().enumerate().filter(|(dimension, _)| !is_left_out(*dimension)) {
        let has_it = |bounds: &[u64]| bounds.len() == first.len() && bounds.get(dimension) == Some(size);
        let with_it = of.iter().filter(|number| has_it(bounds(number)));
        found.add(FactorKind::Pass, *size, with_it.map(|number| (*number, dimension)));
    }
}

fn except_last(arrays: &[&Array], found: &mut Factors) {
    let last = arrays.first().map_or(0, |array| array.bounds.len()).saturating_sub(1);
    except(arrays, &all(arrays), |dimension| dimension == last, found);
}

/// Operands are arrays, then their start values; results are one for each array.
fn reduce(at: &Instruction<'_>, arrays: &[&Array], operands: usize, found: &mut Factors) -> Option<()> {
    let (over, count) = (at.dimensions()?, operands / 2);
    let mut to = 0;
    for (dimension, size) in arrays.first()?.bounds.iter().enumerate() {
        let of_operands = (0..count).map(|array| (array, dimension));
        if over.contains(&dimension) {
            found.add(FactorKind::of_reduction(at), *size, of_operands);
        } else {
            let of_results = (operands..arrays.len()).map(|array| (array, to));
            found.add(FactorKind::Pass, *size, of_operands.chain(of_results));
            to += 1;
        }
    }
    Some(())
}

fn dot(at: &Instruction<'_>, arrays: &[&Array], found: &mut Factors) -> Option<()> {
    let [left, right, _] = arrays else { return None };
    let dimensions = at.dot_dimensions()?;
    let mut to = 0..;
    for (of_left, of_right) in dimensions.lhs_batch.iter().zip(&dimensions.rhs_batch) {
        found.add(FactorKind::Pass, *left.bounds.get(*of_left)?, [(0, *of_left), (1, *of_right), (2, to.next()?)]);
    }
    let sides = [
        (left, &dimensions.lhs_batch, &dimensions.lhs_contracting),
        (right, &dimensions.rhs_batch, &dimensions.rhs_contracting),
    ];
    for (number, (array, batch, contracting)) in sides.into_iter().enumerate() {
        for (dimension, size) in array.bounds.iter().enumerate() {
            if !batch.contains(&dimension) && !contracting.contains(&dimension) {
                found.add(FactorKind::Pass, *size, [(number, dimension), (2, to.next()?)]);
            }
        }
    }
    for (of_left, of_right) in dimensions.lhs_contracting.iter().zip(&dimensions.rhs_contracting) {
        found.add(FactorKind::Sum, *left.bounds.get(*of_left)?, [(0, *of_left), (1, *of_right)]);
    }
    Some(())
}

/// A triangle with right sides that are each solved independently: columns if it is on the left, rows if it is on the
/// right.
fn triangular_solve(at: &Instruction<'_>, arrays: &[&Array], found: &mut Factors) -> Option<()> {
    let [triangle, sides, _] = arrays else { return None };
    let batch = triangle.bounds.len().checked_sub(2)?;
    leading(arrays, batch, found);
    let is_left = at.attribute("left_side")? == "true";
    let (solved, apart) = if is_left { (batch, batch + 1) } else { (batch + 1, batch) };
    found.add(FactorKind::Pass, *sides.bounds.get(apart)?, [(1, apart), (2, apart)]);
    found.add(FactorKind::Mix, *sides.bounds.get(solved)?, [(1, solved), (2, solved)]);
    Some(())
}

/// Windows over arrays, with a start value and a result for each.
fn windows(at: &Instruction<'_>, arrays: &[&Array], operands: usize, found: &mut Factors) -> Option<()> {
    let window = at.window()?;
    let (first, result) = (arrays.first()?, arrays.get(operands)?);
    let in_operands = |dimension: usize| (0..operands / 2).map(move |array| (array, dimension));
    for (dimension, (from, to)) in first.bounds.iter().zip(&result.bounds).enumerate() {
        let along = window.get(dimension)?;
        let in_results = (operands..arrays.len()).map(|array| (array, dimension));
        let size = i64::try_from(along.size).ok()?;
        let is_own = (along.pad_low, along.pad_high, along.base_dilation, along.window_dilation) == (0, 0, 1, 1)
            && along.stride == size
            && to.checked_mul(along.size) == Some(*from);
        if is_own {
            found.add(FactorKind::Pass, *to, in_operands(dimension).chain(in_results));
            found.add(FactorKind::of_reduction(at), along.size, in_operands(dimension));
        } else if from == to {
            found.add(FactorKind::Mix, *from, in_operands(dimension).chain(in_results));
        }
    }
    Some(())
}
