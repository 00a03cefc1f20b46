//! The factors of `gather` and `scatter`, and of slices at indices that are computed.

use crate::{IndexedDimensions, Instruction, Opcode};

use super::{Array, FactorKind, Factors};

/// A gather's slices are like a scatter's updates.
pub(super) fn add_gather(at: &Instruction<'_>, arrays: &[&Array], found: &mut Factors) -> Option<()> {
    let [operand, _, result] = arrays else { return None };
    let dimensions = at.gather_dimensions()?;
    for (kept, offset) in dimensions.kept(operand.bounds.len()).into_iter().zip(&dimensions.offset) {
        let size = *operand.bounds.get(kept)?;
        if dimensions.slice_sizes.get(kept) == Some(&size) {
            found.add(FactorKind::Pass, size, [(0, kept), (2, *offset)]);
        }
    }
    for (of_result, of_indices) in dimensions.batch(result.bounds.len()) {
        let of_operand = of_operand(&dimensions, of_indices).map(|of_operand| (0, of_operand));
        let places = of_operand.into_iter().chain([(1, of_indices), (2, of_result)]);
        found.add(FactorKind::Pass, *result.bounds.get(of_result)?, places);
    }
    Some(())
}

/// Arrays are the operands, then indices, then an update for each operand, then a result for each.
pub(super) fn add_scatter(at: &Instruction<'_>, arrays: &[&Array], found: &mut Factors) -> Option<()> {
    let count = arrays.len().checked_sub(1)? / 3;
    let (operand, updates) = (arrays.first()?, arrays.get(count + 1)?);
    let dimensions = at.scatter_dimensions()?;
    let of_each = |first: usize, dimension: usize| (first..first + count).map(move |array| (array, dimension));
    let in_both = move |dimension: usize| of_each(0, dimension).chain(of_each(2 * count + 1, dimension));
    let mut is_known = vec![false; operand.bounds.len()];
    for (kept, offset) in dimensions.kept(operand.bounds.len()).into_iter().zip(&dimensions.offset) {
        let size = *operand.bounds.get(kept)?;
        if updates.bounds.get(*offset) == Some(&size) && !dimensions.indexed.contains(&kept) {
            *is_known.get_mut(kept)? = true;
            found.add(FactorKind::Pass, size, in_both(kept).chain(of_each(count + 1, *offset)));
        }
    }
    let kind = FactorKind::of_reduction(at);
    for (of_updates, of_indices) in dimensions.batch(updates.bounds.len()) {
        let size = *updates.bounds.get(of_updates)?;
        let indices = (count, of_indices);
        let updates = of_each(count + 1, of_updates);
        match of_operand(&dimensions, of_indices) {
            Some(of_operand) => {
                *is_known.get_mut(of_operand)? = true;
                found.add(FactorKind::Pass, size, in_both(of_operand).chain([indices]).chain(updates));
            }
            None => {
                found.add(kind, size, [indices].into_iter().chain(updates));
            }
        }
    }
    // Updated elements stay in place, by their indices, so these dimensions are mixed.
    for (dimension, size) in operand.bounds.iter().enumerate().filter(|(at, _)| !is_known[*at]) {
        found.add(FactorKind::Mix, *size, in_both(dimension));
    }
    Some(())
}

/// The dimension of the operand that is batched with one of the indices.
fn of_operand(dimensions: &IndexedDimensions, of_indices: usize) -> Option<usize> {
    let number = dimensions.indices_batch.iter().position(|at| *at == of_indices)?;
    dimensions.operand_batch.get(number).copied()
}

/// The factors of a part of an array, or of an array with a part overwritten: `slice`, `dynamic-slice`,
/// `dynamic-update-slice`.
pub(super) fn add_part(opcode: Opcode, arrays: &[&Array], found: &mut Factors) -> Option<()> {
    let result = arrays.len().checked_sub(1)?;
    let whole = &arrays.first()?.bounds;
    let updated = (opcode == Opcode::DynamicUpdateSlice).then_some(1);
    let part = &arrays.get(updated.unwrap_or(result))?.bounds;
    for (dimension, (size, taken)) in whole.iter().zip(part).enumerate() {
        let both = [(0, dimension), (result, dimension)];
        if size == taken {
            found.add(FactorKind::Pass, *size, both.into_iter().chain(updated.map(|update| (update, dimension))));
        } else if updated.is_some() {
            found.add(FactorKind::Mix, *size, both);
        }
    }
    Some(())
}
