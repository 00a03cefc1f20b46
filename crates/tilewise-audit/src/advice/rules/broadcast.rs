//! What is the same for all samples and repeated along them: a part of it follows from nothing that the other parts have.

use super::in_parts::bounds;
use crate::program::{is_elementwise_opcode, passes_on};
use std::collections::{HashMap, HashSet};
use tilewise_hlo::{Instruction, Opcode};

/// Calls that work out something of each matrix, of as many results.
const OF_MATRICES: &[&str] = &["Cholesky", "InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular"];

/// One of an instruction's arrays, and one of its dimensions.
#[derive(Clone, Copy)]
pub(super) struct Along<'m> {
    pub(super) instruction: Instruction<'m>,
    /// Which of a tuple's arrays it is.
    pub(super) element: usize,
    pub(super) dimension: usize,
}

impl<'m> Along<'m> {
    /// Whether all elements along it come of broadcasts, or count: so far as some instructions tell.
    pub(super) fn is_broadcast(self) -> bool {
        const MOST: usize = 256;
        let (mut waiting, mut seen, mut callers) = (vec![self], HashSet::new(), HashMap::new());
        while let Some(at) = waiting.pop() {
            if !seen.insert((at.instruction.index(), at.element, at.dimension)) {
                continue;
            }
            match at.made_of(&mut callers) {
                Some(operands) if seen.len() < MOST => waiting.extend(operands),
                _ => return false,
            }
        }
        true
    }

    /// The arrays whose elements it consists of, none of a broadcast along it; `None` where that isn't known.
    fn made_of(self, callers: &mut HashMap<usize, Instruction<'m>>) -> Option<Vec<Self>> {
        let at = self.instruction;
        let operand = |number: usize| at.operands().nth(number)?.instruction();
        let along = |instruction: Instruction<'m>, dimension: usize| Self { instruction, element: 0, dimension };
        Some(match at.opcode() {
            Opcode::Broadcast => {
                let place = at.dimensions()?.iter().position(|to| *to == self.dimension);
                place.map(|from| Some(along(operand(0)?, from))).into_iter().collect::<Option<_>>()?
            }
            Opcode::Iota => Vec::new(),
            Opcode::Transpose => {
                vec![along(operand(0)?, *at.dimensions()?.get(self.dimension)?)]
            }
            Opcode::Reduce => {
                let over = at.dimensions()?;
                let array = operand(0)?;
                let mut kept = (0..bounds(&array)?.len()).filter(|dimension| !over.contains(dimension));
                vec![along(array, kept.nth(self.dimension)?)]
            }
            Opcode::Parameter => {
                let caller = callers.get(&at.computation().index())?;
                vec![along(caller.operands().nth(at.parameter_number()?)?.instruction()?, self.dimension)]
            }
            Opcode::Fusion => {
                let computation = at.calls().find_map(|call| call.computation())?;
                callers.insert(computation.index(), at);
                let root = computation.root()?;
                let is_tuple = root.opcode() == Opcode::Tuple;
                let made = if is_tuple { root.operands().nth(self.element)?.instruction()? } else { root };
                vec![along(made, self.dimension)]
            }
            Opcode::GetTupleElement => {
                let element = at.tuple_index()?;
                vec![Self { element, ..along(operand(0)?, self.dimension) }]
            }
            // Each matrix by itself: the dimensions before the result's last two say which.
            Opcode::CustomCall if at.custom_call_target().is_some_and(|target| OF_MATRICES.contains(&target)) => {
                let (made, matrices) = (bounds(&at)?, operand(0)?);
                let outer = made.get(..=self.dimension).filter(|outer| outer.len() + 2 <= made.len())?;
                bounds(&matrices)?.starts_with(outer).then(|| vec![along(matrices, self.dimension)])?
            }
            Opcode::Bitcast | Opcode::Reshape => {
                let array = operand(0)?;
                vec![along(array, with_ones(&bounds(&at)?, &bounds(&array)?, self.dimension)?)]
            }
            Opcode::CopyStart | Opcode::CopyDone => vec![along(operand(0)?, self.dimension)],
            Opcode::Constant | Opcode::Tuple => return None,
            opcode if is_elementwise_opcode(opcode) || passes_on(&at) => {
                let operands: Option<Vec<_>> = at.operands().map(|operand| operand.instruction()).collect();
                let arrays = operands?.into_iter().map(|operand| Some((bounds(&operand)?, operand)));
                let mut arrays = arrays.collect::<Option<Vec<_>>>()?;
                arrays.retain(|(bounds, _)| !bounds.is_empty());
                let own = arrays.first()?.0.clone();
                if bounds(&at)? != own || arrays.iter().any(|(of, _)| *of != own) {
                    return None;
                }
                arrays.into_iter().map(|(_, at)| along(at, self.dimension)).collect()
            }
            _ => return None,
        })
    }
}

/// Which dimension of other bounds it is that differ by dimensions of 1 alone.
fn with_ones(bounds: &[u64], others: &[u64], dimension: usize) -> Option<usize> {
    let long = |bounds: &[u64]| (0..bounds.len()).filter(|at| bounds[*at] != 1).collect::<Vec<_>>();
    let (own, of_others) = (long(bounds), long(others));
    let is_alike = own.iter().map(|at| bounds[*at]).eq(of_others.iter().map(|at| others[*at]));
    let place = own.iter().position(|at| *at == dimension).filter(|_| is_alike)?;
    of_others.get(place).copied()
}
