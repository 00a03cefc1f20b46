//! The correspondence between the elements of two arrays, by transposes and reshapes.

use crate::{Relation, equivalence::inverse};
use alloc::{vec, vec::Vec};

/// Maximum number of dimensions whose orders are tried one by one.
const MOST_DIMENSIONS: usize = 7;

/// A chain of transposes and reshapes, in any order, from one array to another: the dimensions of both are products of the
/// same factors.
///
/// ```
/// use tilewise::Rearrangement;
///
/// // x.reshape(4, 6, 8).transpose(1, 0, 2)
/// let heads = Rearrangement::identity(&[4, 48]).reshape(&[4, 6, 8]).unwrap().transpose(&[1, 0, 2]).unwrap();
/// assert_eq!(heads.bounds(), [6, 4, 8]);
/// // 48 = 6 · 8, so another reshape can't take five of them.
/// assert!(heads.reshape(&[6, 5]).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rearrangement {
    /// The size of each factor.
    sizes: Vec<u64>,
    /// The factors of each dimension of the first array, major → minor; empty for a dimension of size 1.
    from: Vec<Vec<usize>>,
    /// The factors of each dimension of the second array.
    to: Vec<Vec<usize>>,
}

impl Rearrangement {
    /// The identity of an array with these bounds.
    #[must_use]
    pub fn identity(bounds: &[u64]) -> Self {
        let mut sizes = Vec::new();
        let factors = |bound: &u64| {
            if *bound == 1 {
                return Vec::new();
            }
            sizes.push(*bound);
            vec![sizes.len() - 1]
        };
        let from: Vec<Vec<usize>> = bounds.iter().map(factors).collect();
        Self { sizes, to: from.clone(), from }
    }

    /// The likeliest rearrangement between two arrays, if only their bounds are known: the one that swaps the fewest
    /// pairs of dimensions, if no dimension of one array straddles two of the other; else the reshape. `None` without
    /// such a reshape, as between different numbers of elements.
    ///
    /// ```
    /// use tilewise::Rearrangement;
    ///
    /// let [queries, by_head] = [[2048, 32, 128].as_slice(), &[8, 2048, 4, 128]];
    /// let expected = Rearrangement::identity(queries).reshape(&[2048, 8, 4, 128]).unwrap().transpose(&[1, 0, 2, 3]);
    /// assert_eq!(Rearrangement::likeliest(queries, by_head), expected);
    /// ```
    #[must_use]
    pub fn likeliest(from: &[u64], to: &[u64]) -> Option<Self> {
        let reshape = Self::identity(from).reshape(to);
        let turned = |order: &[usize]| {
            let bounds: Vec<u64> = order.iter().filter_map(|at| to.get(*at).copied()).collect();
            let found = Self::identity(from).reshape(&bounds).filter(Self::is_aligned)?;
            found.transpose(&inverse(order))
        };
        let orders = if to.len() <= MOST_DIMENSIONS { orders(to.len()) } else { Vec::new() };
        orders.iter().find_map(|order| turned(order)).or(reshape)
    }

    /// Whether each dimension of the second array is within one of the first, or a product of whole ones.
    fn is_aligned(&self) -> bool {
        let whole = |one: &Vec<usize>, others: &[Vec<usize>]| {
            others.iter().any(|other| one.iter().all(|factor| other.contains(factor)))
                || one.iter().all(|factor| {
                    let other = others.iter().find(|other| other.contains(factor));
                    other.is_some_and(|other| other.iter().all(|factor| one.contains(factor)))
                })
        };
        self.to.iter().all(|dimension| whole(dimension, &self.from))
    }

    /// The rearrangement from the second array to the first.
    #[must_use]
    pub fn inverse(self) -> Self {
        let Self { sizes, from, to } = self;
        Self { sizes, from: to, to: from }
    }

    /// The bounds of the second array.
    #[must_use]
    pub fn bounds(&self) -> Vec<u64> {
        self.to.iter().map(|factors| self.product(factors)).collect()
    }

    /// Adds a transpose: dimension k is dimension `permutation[k]` of the second array before. `None` if that isn't a
    /// permutation.
    #[must_use]
    pub fn transpose(mut self, permutation: &[usize]) -> Option<Self> {
        let mut known = permutation.to_vec();
        known.sort_unstable();
        if !known.iter().copied().eq(0..self.to.len()) {
            return None;
        }
        self.to = permutation.iter().filter_map(|at| self.to.get(*at).cloned()).collect();
        Some(self)
    }

    /// Adds a row-major reshape; `None` if the new bounds aren't products of factors: 4 × 6 as 8 × 3 after a transpose.
    #[must_use]
    pub fn reshape(mut self, bounds: &[u64]) -> Option<Self> {
        let mut left: Vec<usize> = self.to.iter().flatten().copied().rev().collect();
        let mut to = Vec::with_capacity(bounds.len());
        for &bound in bounds {
            let (mut factors, mut missing) = (Vec::new(), bound);
            while missing > 1 {
                let factor = left.pop()?;
                let size = *self.sizes.get(factor)?;
                if missing % size == 0 {
                    missing /= size;
                } else if size % missing == 0 {
                    left.push(self.split(factor, size / missing));
                    missing = 1;
                } else {
                    return None;
                }
                factors.push(factor);
            }
            to.push(factors);
        }
        (left.is_empty() && !bounds.contains(&0)).then_some(Self { to, ..self })
    }

    /// Adds a bitcast of the second array. `None` if it exposes padding, or isn't a bitcast.
    #[must_use]
    pub fn bitcast(self, relation: &Relation, bounds: &[u64]) -> Option<Self> {
        match relation {
            Relation::Identical | Relation::Reshape => self.reshape(bounds),
            Relation::Transpose { permutation } => self.transpose(permutation),
            Relation::TransposeReshape { permutation, bounds, then } => {
                self.transpose(permutation)?.reshape(bounds)?.transpose(then)
            }
            _ => None,
        }
    }

    /// Splits a factor: it becomes the major part, and the new one, which is returned, the minor part.
    fn split(&mut self, factor: usize, minor: u64) -> usize {
        let new = self.sizes.len();
        self.sizes.push(minor);
        if let Some(size) = self.sizes.get_mut(factor) {
            *size /= minor;
        }
        for factors in self.from.iter_mut().chain(&mut self.to) {
            if let Some(at) = factors.iter().position(|other| *other == factor) {
                factors.insert(at + 1, new);
            }
        }
        new
    }

    fn product(&self, factors: &[usize]) -> u64 {
        factors.iter().map(|factor| self.size(*factor)).fold(1, u64::saturating_mul)
    }

    /// The first array's factors, in this order of its dimensions: numbers for [`Self::size`] and [`Self::place`].
    #[must_use]
    pub fn factors_in(&self, order: &[usize]) -> Vec<usize> {
        order.iter().filter_map(|at| self.from.get(*at)).flatten().copied().collect()
    }

    /// The second array's factors, major → minor.
    #[must_use]
    pub fn operand_factors(&self) -> Vec<usize> {
        self.to.iter().flatten().copied().collect()
    }

    /// The size of a factor.
    #[must_use]
    pub fn size(&self, factor: usize) -> u64 {
        self.sizes.get(factor).copied().unwrap_or(1)
    }

    /// The dimension of the second array that has a factor, and the product of the factors below it in that dimension.
    #[must_use]
    pub fn place(&self, factor: usize) -> Option<(usize, u64)> {
        self.to.iter().enumerate().find_map(|(dimension, factors)| {
            let at = factors.iter().position(|other| *other == factor)?;
            Some((dimension, self.product(factors.get(at + 1..)?)))
        })
    }
}

/// All orders of `rank` dimensions, those with the fewest swapped pairs first.
fn orders(rank: usize) -> Vec<Vec<usize>> {
    let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..rank {
        let longer = |order: &Vec<usize>| {
            let others = (0..rank).filter(|at| !order.contains(at)).collect::<Vec<_>>();
            let order = order.clone();
            others.into_iter().map(move |at| [&order[..], &[at]].concat())
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    let turned = |order: &Vec<usize>| {
        let pairs = order.iter().enumerate();
        pairs.map(|(at, one)| order.iter().skip(at + 1).filter(|other| *other < one).count()).sum::<usize>()
    };
    orders.sort_by_cached_key(turned);
    orders
}
