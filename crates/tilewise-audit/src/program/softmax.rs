//! Softmaxes of a program: attention scores, and logits.

use super::{bounds, op_name, weights::Weights};
use foldhash::{HashMap, HashSet};
use tilewise::Shape;
use tilewise_hlo::{Instruction, Module, Opcode};

/// Keys for each query, at least `least`, by the number of scores: another order of dimensions doesn't change that. Of
/// three dimensions, queries and keys have to be equal: a softmax over logits has other sizes.
pub(crate) fn scores(module: &Module, least: u64) -> HashMap<u64, u64> {
    attention(module, least).map(|(bounds, keys)| (elements(&bounds), keys)).collect()
}

/// The arrays of a program's attention scores.
pub(crate) struct Scores(HashSet<Vec<u64>>);

impl Scores {
    /// Scores with at least this number of keys, as [`scores`] finds them.
    pub(crate) fn of(module: &Module, least: u64) -> Self {
        let forms = |(bounds, _): (Vec<u64>, u64)| {
            let (inner, outer) = (&bounds[bounds.len() - 2..], &bounds[..bounds.len() - 2]);
            // The batch and the heads may be one dimension.
            let merged = [&[elements(outer)], inner].concat();
            [above_one(&bounds), above_one(&merged)]
        };
        Self(attention(module, least).chain(sums_of_exponentials(module, least)).flat_map(forms).collect())
    }

    /// Whether an array with these bounds, in any order, holds scores.
    pub(crate) fn have(&self, bounds: &[u64]) -> bool {
        self.0.contains(&above_one(bounds))
    }
}

/// Bounds that are larger than 1, sorted.
fn above_one(bounds: &[u64]) -> Vec<u64> {
    sorted(&bounds.iter().copied().filter(|bound| *bound > 1).collect::<Vec<_>>())
}

/// Softmaxes that go over keys, each with the bounds of its operand.
fn attention(module: &Module, least: u64) -> impl Iterator<Item = (Vec<u64>, u64)> {
    let is_of_attention = |bounds: &[u64]| is_square(bounds) || bounds.len() > 3;
    let weights = Weights::of(module);
    softened(module)
        .into_iter()
        .filter(move |(bounds, keys)| *keys >= least && is_of_attention(bounds) && !weights.make(bounds, *keys))
}

/// Bounds of softmaxes' operands, each with the number of elements in a sum: exponentials whose maximum is computed,
/// for gates and decays are exponentials as well; or the operand of the compiler's own softmax kernel.
pub(crate) fn softened(module: &Module) -> Vec<(Vec<u64>, u64)> {
    let exponentials: HashSet<Vec<u64>> =
        bounds_of(module, Opcode::Exponential).map(|bounds| sorted(&bounds)).collect();
    let of_instruction = |at: Instruction<'_>| {
        let given = || bounds(&at.operands().next()?.instruction()?);
        let is_maximum = || {
            let mut called = at.calls().filter_map(|call| call.computation()?.root());
            called.any(|root| root.opcode() == Opcode::Maximum)
        };
        match at.opcode() {
            Opcode::Reduce if is_maximum() => {
                let given = given().filter(|bounds| exponentials.contains(&sorted(bounds)))?;
                let summed = at.shape().ok().map(|shape| elements(&dimensions(&shape)))?;
                let keys = elements(&given).checked_div(summed)?;
                Some((given, keys))
            }
            // A maximum that is broadcast again may be one of windows that reach all keys.
            Opcode::ReduceWindow if is_maximum() => {
                let given = given().filter(|bounds| exponentials.contains(&sorted(bounds)))?;
                let window = at.window()?;
                let mut along = window.iter().zip(&given).filter(|(window, _)| window.size > 1);
                let (window, keys) = along.next().filter(|_| along.next().is_none())?;
                let keys = (window.size >= keys.saturating_mul(2).saturating_sub(1)).then_some(*keys)?;
                Some((given, keys))
            }
            _ if is_softmax(&at) => {
                let given = given()?;
                let keys = *given.last()?;
                Some((given, keys))
            }
            _ => None,
        }
    };
    module.instructions().filter_map(of_instruction).collect()
}

/// Square arrays of exponentials that are summed over their last dimension: the compiler may leave the maximum of a softmax out.
fn sums_of_exponentials(module: &Module, least: u64) -> impl Iterator<Item = (Vec<u64>, u64)> {
    module.instructions().filter(|at| at.opcode() == Opcode::Reduce).filter_map(move |at| {
        let made = at.operands().next()?.instruction().filter(|made| made.opcode() == Opcode::Exponential)?;
        let given = bounds(&made).filter(|bounds| is_square(bounds))?;
        // Over keys alone, an array's last dimension but in an order of the compiler's.
        at.dimensions().filter(|summed| matches!(summed[..], [only] if only + 2 >= given.len()))?;
        let keys = *given.last()?;
        (keys >= least).then_some((given, keys))
    })
}

/// Whether the last two of three or more dimensions are equal.
fn is_square(bounds: &[u64]) -> bool {
    matches!(bounds, [_, .., queries, keys] if queries == keys)
}

/// Whether an instruction is the compiler's own kernel of a softmax and the product after it.
pub(crate) fn is_softmax(at: &Instruction<'_>) -> bool {
    at.opcode() == Opcode::CustomCall && op_name(at).as_deref() == Some("online-softmax")
}

/// The bounds of all results of an opcode.
pub(crate) fn bounds_of(module: &Module, opcode: Opcode) -> impl Iterator<Item = Vec<u64>> {
    let instructions = module.instructions().filter(move |at| at.opcode() == opcode);
    instructions.filter_map(|at| bounds(&at))
}

/// The bounds of an array, or of a tuple's first one.
fn dimensions(shape: &Shape) -> Vec<u64> {
    let first = shape.leaves().next().map(|(_, leaf)| leaf);
    first.iter().flat_map(|leaf| leaf.dimensions().iter().filter_map(|dimension| dimension.bound())).collect()
}

pub(crate) fn elements(bounds: &[u64]) -> u64 {
    bounds.iter().copied().fold(1, u64::saturating_mul)
}

pub(crate) fn sorted(bounds: &[u64]) -> Vec<u64> {
    let mut bounds = bounds.to_vec();
    bounds.sort_unstable();
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TPU's compiler writes the maximum of a softmax over 704 keys so, broadcast to them again.
    #[test]
    fn windows_that_reach_all_keys_are_a_softmax() {
        let of = |size: u64| {
            let pad = size / 2;
            let text = format!(
                "HloModule m

max {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b) }}

ENTRY e {{
  x = f32[8,4,704,704]{{3,2,1,0}} parameter(0)
  low = f32[] constant(-inf)
  most = f32[8,4,704,704]{{3,2,1,0}} reduce-window(x, low), window={{size=1x1x1x{size} pad=0_0x0_0x0_0x{pad}_{pad}}}, to_apply=max
  less = f32[8,4,704,704]{{3,2,1,0}} subtract(x, most)
  ROOT y = f32[8,4,704,704]{{3,2,1,0}} exponential(less)
}}"
            );
            scores(&Module::parse(text).expect("a program"), 128)
        };
        assert_eq!(of(1407).get(&(8 * 4 * 704 * 704)), Some(&704));
        assert!(of(5).is_empty());
    }
}
