//! What one operation's result has of the samples, by what its operands have.

use super::{
    bounds::{Leaf, bitcast, reshaped},
    share::{Digit, Join, Share, Start},
};
use crate::program::op_name;
use tilewise::ElementKind;
use tilewise_hlo::{Instruction, Opcode};

/// An operand or a result: one array, and its share.
pub(super) struct Operand<'a> {
    pub(super) share: &'a Share,
    pub(super) leaf: &'a Leaf,
}

/// What becomes of a factor's dimension in a product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Factor {
    /// It is this dimension of the result.
    Kept(usize),
    /// It is summed over, with the other factor's dimension of this number.
    Summed(usize),
    /// Neighbours along it meet.
    Mixed,
}

/// The share of an operation's array; `None` for an operation that isn't known here, or of which the text leaves something out.
pub(super) fn share(
    at: &Instruction<'_>,
    opcode: Opcode,
    operands: &[Operand<'_>],
    to: &Leaf,
    samples: u64,
) -> Option<Result<Share, Join>> {
    let first = operands.first();
    Some(match opcode {
        Opcode::Constant | Opcode::Rng | Opcode::PartitionId | Opcode::ReplicaId => Ok(Share::SAME),
        Opcode::Bitcast => {
            let first = first?;
            moved(first, bitcast(first.share.all_digits(), first.leaf, to))
        }
        Opcode::Reshape => {
            let first = first?;
            moved(first, reshaped(first.share.all_digits(), first.leaf, to))
        }
        Opcode::Transpose => {
            let permutation = at.dimensions()?;
            renumbered(first?, |dimension| permutation.iter().position(|from| *from == dimension))
        }
        Opcode::Broadcast => {
            let places = at.dimensions()?;
            renumbered(first?, |dimension| places.get(dimension).copied())
        }
        Opcode::Reduce => {
            let over = at.dimensions()?;
            let is_over_samples = |all: &Share| all.digits().iter().any(|digit| over.contains(&digit.dimension));
            match together(operands) {
                // Predicates of samples packed into the bits of words are still the samples' own.
                Ok(all) if packs_bits(at) && is_over_samples(&all) => Ok(all.at(Vec::new())),
                _ => summed(operands, &over),
            }
        }
        Opcode::Dot => dot(at, operands)?,
        Opcode::Convolution => convolution(at, operands, to)?,
        Opcode::Slice => {
            let all = at.slice_limits()?;
            each_digit(first?, |digit, bound| {
                let limits = all.get(digit.dimension).ok_or(Join::Unknown)?;
                let start = i64::try_from(limits.start).map_err(|_| Join::Unknown)?;
                if limits.stride != 1 { Err(Join::Neighbours) } else { digit.cut(bound, Some(start), limits.size()) }
            })
        }
        Opcode::DynamicSlice => {
            let sizes = at.dynamic_slice_sizes()?;
            each_digit(first?, |digit, bound| {
                let length = *sizes.get(digit.dimension).ok_or(Join::Unknown)?;
                digit.cut(bound, if length == bound { Some(0) } else { None }, length)
            })
        }
        Opcode::DynamicUpdateSlice => updated(first?, operands.get(1)?),
        Opcode::Concatenate => concatenated(operands, *at.dimensions()?.first()?, samples),
        Opcode::Pad => {
            let ends = at.padding()?;
            let padded = each_digit(first?, |digit, bound| {
                let along = ends.get(digit.dimension).ok_or(Join::Unknown)?;
                let ends = (along.low, along.high, along.interior);
                if is_repeated(&digit, samples, ends) { Ok(digit) } else { pad(digit, bound, ends) }
            });
            padded.and_then(|padded| padded.with(operands.get(1).map_or(&Share::SAME, |value| value.share)))
        }
        Opcode::Sort | Opcode::Reverse => {
            let along = at.dimensions()?;
            match together(operands) {
                Ok(all) if all.digits().iter().any(|digit| along.contains(&digit.dimension)) => {
                    match op_name(at).unwrap_or_default().rsplit('/').next() {
                        // In which order rows are added up doesn't matter.
                        Some("scatter-add") => Ok(Share::All { of_weights: all.of_weights() }),
                        // A compiler reads rows in the order of their numbers, and leaves them where they belong.
                        Some("gather") => Ok(all),
                        // By keys of which the sample's number is the most significant part, each sample's rows stay together.
                        _ if is_by_number(at, operands) => Ok(all),
                        // What is ranked at the end is ranked once all parts are there.
                        _ if at.opcode() == Opcode::Sort => Ok(Share::All { of_weights: true }),
                        _ => Err(Join::Neighbours),
                    }
                }
                all => all,
            }
        }
        Opcode::ReduceWindow | Opcode::SelectAndScatter => {
            let window = at.window()?;
            let is_one = |digit: &Digit| window.get(digit.dimension).is_some_and(|along| along.size == 1);
            if operands.iter().flat_map(|operand| operand.share.digits()).all(is_one) {
                together(operands)
            } else {
                Err(Join::Neighbours)
            }
        }
        Opcode::Fft => {
            let (first, along) = (first?, at.fft_length()?.len());
            let is_along = |digit: &Digit| digit.dimension + along >= first.leaf.bounds.len();
            if first.share.digits().iter().any(is_along) { Err(Join::Neighbours) } else { Ok(first.share.clone()) }
        }
        Opcode::Gather => gather(at, operands, to)?,
        Opcode::Scatter => scatter(at, operands)?,
        Opcode::AllReduce
        | Opcode::CollectivePermute
        | Opcode::OptimizationBarrier
        | Opcode::AddDependency
        | Opcode::Domain
        | Opcode::ReducePrecision => Ok(first?.share.clone()),
        Opcode::Map | Opcode::Mulhi => together(operands),
        opcode if opcode.is_elementwise() => together(operands),
        _ => return None,
    })
}

/// Whether a sort is by numbers of rows that are each sample's own.
fn is_by_number(at: &Instruction<'_>, operands: &[Operand<'_>]) -> bool {
    let key = at.operands().next().and_then(|operand| operand.instruction()?.shape().ok()?.element_type());
    key.is_some_and(|of| matches!(of.kind(), ElementKind::Signed | ElementKind::Unsigned))
        && operands.first().is_some_and(|operand| operand.share.is_numbered())
}

/// The digit of a table's rows of which each sample has as many of its own.
pub(super) fn rows_of_each(numbers: &Share, dimension: usize, rows: u64) -> Option<Digit> {
    let samples = numbers.digits().iter().find(|_| numbers.is_numbered())?.size;
    let is_of_all = samples > 1 && rows > samples && rows.is_multiple_of(samples);
    is_of_all.then(|| Digit::of_rows(dimension, samples))
}

/// What a computation that isn't known has: where its arrays have the samples as some operand does, they stay apart.
pub(super) fn by_size(operands: &[Operand<'_>], to: &Leaf, samples: u64) -> Share {
    let of_weights = operands.iter().any(|operand| operand.share.of_weights());
    let is_of = |is: fn(&Share) -> bool| operands.iter().any(|operand| is(operand.share));
    if is_of(|share| matches!(share, Share::Each { .. })) {
        let whole = to.bounds.iter().position(|bound| *bound == samples);
        let merged = || to.bounds.iter().position(|bound| *bound > samples && bound.is_multiple_of(samples));
        return match whole.or_else(merged) {
            Some(at) => {
                let digit = Digit::new(at, to.bounds[at] / samples, samples);
                Share::each(vec![digit]).marked(of_weights)
            }
            None => Share::All { of_weights },
        };
    }
    let is_of_all = is_of(|share| matches!(share, Share::All { .. }));
    if is_of_all { Share::All { of_weights } } else { Share::SAME.marked(of_weights) }
}

/// Of operands' elements at the same indices.
fn together(operands: &[Operand<'_>]) -> Result<Share, Join> {
    operands.iter().try_fold(Share::SAME, |all, operand| all.with(operand.share))
}

fn moved(of: &Operand<'_>, digits: Result<Vec<Digit>, Join>) -> Result<Share, Join> {
    match (digits, of.share) {
        (Ok(digits), share) => Ok(share.at(digits)),
        // Numbers that count samples are but numbers where they are no longer in order.
        (Err(_), Share::Same { .. }) => Ok(of.share.at(Vec::new())),
        (Err(join), _) => Err(join),
    }
}

fn renumbered(of: &Operand<'_>, place: impl Fn(usize) -> Option<usize>) -> Result<Share, Join> {
    let digits = of.share.all_digits().iter();
    moved(of, digits.map(|digit| place(digit.dimension).map(|at| digit.along(at)).ok_or(Join::Unknown)).collect())
}

fn each_digit(of: &Operand<'_>, change: impl Fn(Digit, u64) -> Result<Digit, Join>) -> Result<Share, Join> {
    let bound = |digit: &Digit| of.leaf.bounds.get(digit.dimension).copied().unwrap_or(0);
    let digits = of.share.all_digits().iter();
    moved(of, digits.map(|digit| change(*digit, bound(digit))).filter(|digit| !is_one(digit)).collect())
}

/// Of one sample nothing is left to count.
fn is_one(digit: &Result<Digit, Join>) -> bool {
    digit.as_ref().is_ok_and(|digit| digit.size == 1 && digit.inner == 1)
}

fn summed(operands: &[Operand<'_>], over: &[usize]) -> Result<Share, Join> {
    let all = together(operands)?;
    if all.digits().iter().any(|digit| over.contains(&digit.dimension)) {
        return Ok(Share::All { of_weights: all.of_weights() });
    }
    let left = all.all_digits().iter().filter(|digit| !over.contains(&digit.dimension));
    let before = |digit: &Digit| over.iter().filter(|at| **at < digit.dimension).count();
    Ok(all.at(left.map(|digit| digit.along(digit.dimension - before(digit))).collect()))
}

/// Whether a reduction is an `or` of predicates, each shifted to its sample's bit.
fn packs_bits(at: &Instruction<'_>) -> bool {
    let mut made = at.operands().next().and_then(|operand| operand.instruction());
    while let Some(convert) = made.filter(|made| made.opcode() == Opcode::Convert) {
        made = convert.operands().next().and_then(|operand| operand.instruction());
    }
    let mut calls = at.calls().filter_map(|call| call.computation()?.root());
    made.is_some_and(|made| made.opcode() == Opcode::ShiftLeft) && calls.any(|root| root.opcode() == Opcode::Or)
}

/// A sum of products of two factors, each dimension of which becomes what `roles` say.
fn product(operands: &[Operand<'_>], roles: [&[Factor]; 2]) -> Result<Share, Join> {
    let [left, right, ..] = operands else { return Err(Join::Unknown) };
    let factors = [left.share, right.share];
    let of_weights = factors.iter().any(|share| share.of_weights());
    let mut kept: [Vec<Digit>; 2] = Default::default();
    let mut sums: [Vec<(usize, u64, u64, Start)>; 2] = Default::default();
    for (number, share) in factors.iter().enumerate() {
        for digit in share.digits() {
            match roles[number].get(digit.dimension) {
                Some(Factor::Kept(at)) => kept[number].push(digit.along(*at)),
                Some(Factor::Summed(with)) => sums[number].push((*with, digit.inner, digit.size, digit.start)),
                Some(Factor::Mixed) => return Err(Join::Neighbours),
                None => return Err(Join::Unknown),
            }
        }
    }
    let is_each = |number: usize| matches!(factors[number], Share::Each { .. });
    // One factor's samples are summed over, and with each of them the other's.
    let is_summed = |number: usize| !sums[number].is_empty();
    if is_summed(0) || is_summed(1) {
        let both = is_each(0) && is_each(1);
        if both && sums[0] != sums[1] || kept.iter().any(|kept| !kept.is_empty()) {
            return Err(if sums[0].len() == sums[1].len() { Join::Neighbours } else { Join::Pairs });
        }
        let other = if is_summed(0) { factors[1] } else { factors[0] };
        if matches!(other, Share::All { of_weights: true }) {
            return Err(Join::Sum);
        }
        return Ok(Share::All { of_weights });
    }
    let [left, right] = kept;
    let at = |share: &Share, digits: Vec<Digit>| {
        if matches!(share, Share::Same { .. }) { Share::SAME } else { share.at(digits) }
    };
    Ok(at(factors[0], left).with(&at(factors[1], right))?.marked(of_weights))
}

fn dot(at: &Instruction<'_>, operands: &[Operand<'_>]) -> Option<Result<Share, Join>> {
    let found = at.dot_dimensions()?;
    let batch = [found.lhs_batch, found.rhs_batch];
    let summed = [found.lhs_contracting, found.rhs_contracting];
    let mut next = batch[0].len();
    let roles = [0, 1].map(|number| {
        let rank = operands.get(number).map_or(0, |operand| operand.leaf.bounds.len());
        let place = |list: &[usize], dimension: usize| list.iter().position(|at| *at == dimension);
        (0..rank)
            .map(|dimension| {
                if let Some(at) = place(&batch[number], dimension) {
                    return Factor::Kept(at);
                }
                place(&summed[number], dimension).map_or_else(
                    || {
                        next += 1;
                        Factor::Kept(next - 1)
                    },
                    Factor::Summed,
                )
            })
            .collect::<Vec<_>>()
    });
    Some(product(operands, [&roles[0], &roles[1]]))
}

/// A TPU's compiler makes convolutions of all products: what a spatial dimension is follows from its sizes.
fn convolution(at: &Instruction<'_>, operands: &[Operand<'_>], to: &Leaf) -> Option<Result<Share, Join>> {
    let found = at.convolution_dimensions()?;
    let (arrays, output) = ([&found.input, &found.kernel], &found.output);
    let spatial = |number: usize, along: usize| {
        let size = |of: usize| operands.get(of)?.leaf.bounds.get(*arrays.get(of)?.spatial.get(along)?).copied();
        let sizes = (size(0)?, size(1)?);
        let place = *output.spatial.get(along)?;
        let (out, kept) = (to.bounds.get(place).copied()?, Some(Factor::Kept(place)));
        match sizes {
            (l, r) if l == r && r == out && out > 1 => kept,
            (l, r) if l == r && out == 1 => Some(Factor::Summed(1 + along)),
            (l, 1) if number == 0 && l == out => kept,
            (1, r) if number == 1 && r == out => kept,
            _ => Some(Factor::Mixed),
        }
    };
    let role = |number: usize, dimension: usize| {
        let array = *arrays.get(number)?;
        match array.spatial.iter().position(|at| *at == dimension) {
            Some(along) => spatial(number, along),
            None if dimension == array.feature => Some(Factor::Summed(0)),
            None if number == 1 => Some(Factor::Kept(output.feature)),
            None if found.batch_groups > 1 => Some(Factor::Mixed),
            None => Some(Factor::Kept(output.batch)),
        }
    };
    let roles = [0, 1].map(|number| {
        let rank = operands.get(number).map_or(0, |operand| operand.leaf.bounds.len());
        (0..rank).map(|dimension| role(number, dimension)).collect::<Option<Vec<_>>>()
    });
    let [Some(left), Some(right)] = roles else { return None };
    Some(product(operands, [&left, &right]))
}

/// An array of which a part is overwritten.
fn updated(whole: &Operand<'_>, part: &Operand<'_>) -> Result<Share, Join> {
    let written = each_digit(part, |digit, bound| {
        let all = *whole.leaf.bounds.get(digit.dimension).ok_or(Join::Unknown)?;
        if all == bound || bound == digit.extent() && digit.start == Start::At(0) && digit.inner == 1 && all > bound {
            return Ok(digit);
        }
        let known = whole.share.digits().iter().find(|known| known.dimension == digit.dimension);
        Ok(known.copied().unwrap_or(Digit { size: all / digit.inner.max(1), start: Start::At(0), ..digit }))
    })?;
    match (whole.share, &written) {
        // A loop's step writes its sample's elements, of which nothing tells where they lie.
        (Share::Each { .. }, Share::Each { digits, .. }) if digits.is_empty() => {
            Ok(whole.share.clone().marked(written.of_weights()))
        }
        (share, _) => share.with(&written),
    }
}

fn concatenated(operands: &[Operand<'_>], along: usize, samples: u64) -> Result<Share, Join> {
    let mut apart = Share::SAME;
    // The first piece's digit with its place, and where the next one's samples start.
    let mut joined: Option<(Digit, Start)> = None;
    let mut before = 0_u64;
    for operand in operands {
        let bound = operand.leaf.bounds.get(along).copied().unwrap_or(0);
        let digits = operand.share.digits();
        let piece = digits.iter().find(|digit| digit.dimension == along && digit.extent() == bound);
        match (piece, &mut joined) {
            (Some(piece), None) => {
                let start = pad(*piece, bound, (i64::try_from(before).unwrap_or(i64::MAX), 0, 0))?;
                joined = Some((start, next(piece)));
            }
            // All samples once more, such as with a text and without.
            (Some(piece), Some((all, _))) if piece == all && is_repeated(all, samples, (0, 0, 0)) => {}
            (Some(piece), Some((all, expected))) => {
                if piece.start != *expected || piece.inner != all.inner {
                    return Err(Join::Neighbours);
                }
                all.size = all.size.saturating_add(piece.size);
                *expected = next(piece);
            }
            (None, Some((all, _))) if bound > 0 => all.size = all.size.saturating_add(bound / all.inner.max(1)),
            _ => {}
        }
        let others: Vec<Digit> = digits.iter().filter(|digit| Some(*digit) != piece).copied().collect();
        apart = match (operand.share, others.is_empty()) {
            (Share::Each { of_weights, .. }, true) => apart.marked(*of_weights),
            (Share::Same { counted, .. }, _) if counted.is_empty() => apart.marked(operand.share.of_weights()),
            (share, _) if piece.is_none() => apart.with(share)?,
            (share, _) => apart.with(&share.at(others))?,
        };
        before = before.saturating_add(bound);
    }
    Ok(match joined {
        Some((digit, _)) => {
            let mut digits = apart.digits().to_vec();
            digits.push(digit);
            digits.sort_by_key(|digit| (digit.dimension, digit.inner));
            Share::each(digits).marked(apart.of_weights())
        }
        None => apart,
    })
}

/// Where the samples after those of a digit start.
fn next(piece: &Digit) -> Start {
    match piece.start {
        Start::At(start) => Start::At(start.saturating_add_unsigned(piece.size)),
        Start::OfStep => Start::OfStep,
    }
}

/// Whether what is added is as many samples more, or several times as many: a TPU's compiler concatenates so what it computes.
fn is_repeated(digit: &Digit, samples: u64, (low, high, between): (i64, i64, i64)) -> bool {
    let is_whole = |added: i64| u64::try_from(added).is_ok_and(|added| added.is_multiple_of(digit.extent()));
    digit.size == samples && digit.start == Start::At(0) && between == 0 && is_whole(low) && is_whole(high)
}

fn pad(digit: Digit, bound: u64, (low, high, between): (i64, i64, i64)) -> Result<Digit, Join> {
    if (low, high, between) == (0, 0, 0) {
        return Ok(digit);
    }
    let signed = |size: u64| i64::try_from(size).unwrap_or(i64::MAX).max(1);
    let (extent, inner) = (signed(digit.extent()), signed(digit.inner));
    if bound > digit.extent() && between == 0 && low % extent == 0 && high % extent == 0 {
        return Ok(digit);
    }
    // What is added at the end may be no whole sample.
    let is_added = high > 0 || high % inner == 0;
    if bound > digit.extent() || between != 0 || low % inner != 0 || !is_added {
        return Err(Join::Neighbours);
    }
    let added = low / inner + high / inner + i64::from(high % inner > 0);
    let size = signed(digit.size).saturating_add(added);
    let start = match digit.start {
        Start::At(start) => Start::At(start.saturating_sub(low / inner)),
        Start::OfStep => Start::OfStep,
    };
    Ok(Digit { size: u64::try_from(size).map_err(|_| Join::Unknown)?, start, ..digit })
}

/// Which dimension each of the indices' dimensions is, where indices are vectors along one of them.
fn batch_dimensions(rank: usize, vector: usize, among: &[usize]) -> Vec<Option<usize>> {
    let mut free = among.iter().copied();
    (0..rank).map(|dimension| if dimension == vector { None } else { free.next() }).collect()
}

fn gather(at: &Instruction<'_>, operands: &[Operand<'_>], to: &Leaf) -> Option<Result<Share, Join>> {
    let [table, indices, ..] = operands else { return None };
    let found = at.gather_dimensions()?;
    let (offsets, vector) = (found.offset, found.index_vector);
    let batch: Vec<usize> = (0..to.bounds.len()).filter(|dimension| !offsets.contains(dimension)).collect();
    let places = batch_dimensions(indices.leaf.bounds.len(), vector, &batch);
    let place = |dimension: usize| places.get(dimension).copied().flatten();
    let (collapsed, batching) = (found.collapsed, found.operand_batch);
    let (of_indices, sizes) = (found.indices_batch, found.slice_sizes);
    let windows: Vec<usize> = (0..table.leaf.bounds.len())
        .filter(|dimension| !collapsed.contains(dimension) && !batching.contains(dimension))
        .collect();
    if let Share::All { of_weights } = indices.share {
        return Some(Ok(Share::All { of_weights: *of_weights || table.share.of_weights() }));
    }
    let picked = renumbered(indices, place);
    // Rows of a sample's own number are the sample's own.
    let counted = indices.share.all_digits().first().and_then(|digit| place(digit.dimension));
    let of_size = |digit: &Digit| {
        let along = batch.iter().copied().find(|at| to.bounds[*at] == digit.extent());
        along.filter(|_| found.indexed.len() > 1)
    };
    let taken = each_digit(table, |digit, bound| {
        if let Some(number) = batching.iter().position(|at| *at == digit.dimension) {
            let along = of_indices.get(number).and_then(|at| place(*at)).ok_or(Join::Unknown)?;
            return Ok(digit.along(along));
        }
        let window = windows.iter().position(|at| *at == digit.dimension);
        if let Some(window) = window.filter(|_| sizes.get(digit.dimension) == Some(&bound)) {
            return Ok(digit.along(*offsets.get(window).ok_or(Join::Unknown)?));
        }
        counted.or_else(|| of_size(&digit)).map(|along| digit.along(along)).ok_or(Join::Neighbours)
    });
    Some(picked.and_then(|picked| {
        let taken = taken?;
        let picked = if matches!(picked, Share::Same { .. }) { Share::SAME } else { picked };
        taken.with(&picked)
    }))
}

fn scatter(at: &Instruction<'_>, operands: &[Operand<'_>]) -> Option<Result<Share, Join>> {
    let [whole, indices, updates] = operands else { return None };
    let found = at.scatter_dimensions()?;
    let (windows, vector) = (found.offset, found.index_vector);
    let (inserted, batching) = (found.collapsed, found.operand_batch);
    let (scattered, of_indices) = (found.indexed, found.indices_batch);
    let kept: Vec<usize> = (0..whole.leaf.bounds.len())
        .filter(|dimension| !inserted.contains(dimension) && !batching.contains(dimension))
        .collect();
    let batch: Vec<usize> = (0..updates.leaf.bounds.len()).filter(|dimension| !windows.contains(dimension)).collect();
    let places = batch_dimensions(indices.leaf.bounds.len(), vector, &batch);
    // Where several numbers tell of a row, one may be the sample's own, be it a constant.
    let counts = scattered.len() > 1 || matches!(indices.share, Share::Same { counted, .. } if !counted.is_empty());
    let numbered = |digit: &Digit| {
        let bounds = &whole.leaf.bounds;
        scattered.iter().copied().find(|at| counts && bounds.get(*at) == Some(&digit.extent()))
    };
    let into = |digit: &Digit| {
        if let Some(window) = windows.iter().position(|at| *at == digit.dimension) {
            return Some(digit.along(*kept.get(window)?));
        }
        let of_batch = of_indices.iter().position(|at| places.get(*at) == Some(&Some(digit.dimension)));
        let along = of_batch.and_then(|number| batching.get(number).copied()).or_else(|| numbered(digit));
        let of_rows = || match &scattered[..] {
            [dimension] => rows_of_each(indices.share, *dimension, *whole.leaf.bounds.get(*dimension)?),
            _ => None,
        };
        along.map(|along| digit.along(along)).or_else(of_rows)
    };
    let of_weights = operands.iter().any(|operand| operand.share.of_weights());
    // The same is written at each sample's index.
    let picked = match renumbered(indices, |dimension| places.get(dimension).copied().flatten()) {
        Ok(picked) => picked,
        Err(join) => return Some(Err(join)),
    };
    let digits = match (updates.share, &picked) {
        (Share::Each { digits, .. }, _) | (Share::Same { .. }, Share::Each { digits, .. }) => Some(digits),
        _ => None,
    };
    let written = match digits {
        Some(digits) => {
            let digits: Option<Vec<Digit>> = digits.iter().map(into).collect();
            digits.map_or(Share::All { of_weights }, |digits| Share::each(digits).marked(of_weights))
        }
        None if matches!(picked, Share::All { .. }) => Share::All { of_weights },
        None => updates.share.at(Vec::new()),
    };
    Some(whole.share.with(&written).map(|share| share.marked(of_weights)))
}
