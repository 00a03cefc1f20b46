//! The relation between the dimensions of an operation's operands and of its results.
//!
//! The model is that of Shardy's *op sharding rules* (`OpShardingRuleAttr`, shardy/dialect/sdy/ir/attrs.td): an
//! operation has *factors*, each of a size, and each dimension of an array is a product of some of them. The rules of
//! each opcode are those of `op_sharding_rule_registry.cc`, but for two kinds: an operation that differs from place to
//! place is [`Mix`](FactorKind::Mix) here, even if a partitioner could correct indices, and sums are distinct from
//! other reductions.

mod applied;
mod convolution;
mod indexed;
mod rules;
mod views;

use std::fmt;

use tilewise::Shape;

use crate::Instruction;

pub(super) use rules::add_factors;

/// The kind of an operation along a factor.
///
/// Along a factor that passes, the operation may be done in parts and their results concatenated; along a sum, the
/// parts' results are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FactorKind {
    /// Each place of the result is made of the same place of each operand that has the factor, and of whatever operands
    /// lack it, in the same way at each place.
    Pass,
    /// All places are added up: the contracting dimensions of a `dot`, a `reduce` or a `scatter` that adds.
    Sum,
    /// All places are reduced to one in another way: a maximum, a product.
    Reduce,
    /// Places meet, move, or are each treated differently: sorted, sliced, padded or indexed dimensions, and unknown
    /// ones.
    Mix,
    /// All places of the result are equal: dimensions that a `broadcast` adds.
    Repeat,
}

/// A factor of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Factor {
    /// The number of its places, at least 2.
    pub size: u64,
    /// The kind of the operation along it.
    pub kind: FactorKind,
}

/// A factor in a dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Place {
    /// The operand's number; from [`Factors::operand_count`] on, that of the result's array.
    pub array: usize,
    /// The dimension.
    pub dimension: usize,
    /// The factor's number.
    pub factor: usize,
}

/// The factors of an operation on arrays.
///
/// They print as Shardy's rules do, but with the kinds `sum`, `reduce`, `mix` and `repeat`:
///
/// ```
/// use tilewise_hlo::{Module, dataflow::Factors};
///
/// let factors = |line: &str| {
///     let module = Module::parse(line)?;
///     Ok::<_, tilewise_hlo::Error>(Factors::of(&module.instructions().next().unwrap()).unwrap().to_string())
/// };
/// assert_eq!(
///     factors("d = f32[8,16] dot(f32[8,32] a, f32[32,16] b), lhs_contracting_dims={1}, rhs_contracting_dims={0}")?,
///     "([i, j], [j, k])->([i, k]) {i=8, j=32, k=16} sum={j}",
/// );
/// // A dimension is a product of factors.
/// assert_eq!(factors("r = f32[8,4,32] reshape(f32[32,32] a)")?, "([ij, k])->([i, j, k]) {i=8, j=4, k=32}");
/// assert_eq!(factors("s = f32[4,32] slice(f32[8,32] a), slice={[0:4], [0:32]}")?, "([i, j])->([k, j]) {i=8, j=32, k=4} mix={i, k}");
/// assert_eq!(factors("b = f32[8,32] broadcast(f32[32] a), dimensions={1}")?, "([i])->([j, i]) {i=32, j=8} repeat={j}");
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Factors {
    factors: Vec<Factor>,
    places: Vec<Place>,
    operands: usize,
    ranks: Vec<usize>,
}

impl Factors {
    /// The factors of an operation on arrays, operands and results alike; `None` if a shape is unknown, or an operand
    /// is a tuple.
    #[must_use]
    pub fn of(instruction: &Instruction<'_>) -> Option<Self> {
        let mut arrays: Vec<Array> = Vec::new();
        for operand in instruction.operands() {
            let shape = match operand.shape_text() {
                Some(text) => Shape::parse_as_written(text).ok()?,
                None => operand.instruction()?.shape().ok()?,
            };
            shape.as_array()?;
            arrays.push(Array::of(&shape));
        }
        let operands = arrays.len();
        arrays.extend(instruction.shape().ok()?.leaves().map(|(_, leaf)| Array::of(&leaf)));
        let arrays: Vec<&Array> = arrays.iter().collect();
        let mut found = Self::default();
        add_factors(instruction, instruction.opcode(), &arrays, operands, &mut found);
        Some(found)
    }

    /// The factors, numbered as they first appear.
    #[must_use]
    pub fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// The places of factors: by array, then by dimension, then from the major to the minor one. A dimension of size 0
    /// or 1 has none; those of any other multiply to its size.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The number of operands: the arrays of the result are numbered from there on.
    #[must_use]
    pub fn operand_count(&self) -> usize {
        self.operands
    }

    /// The factors of one dimension, from the major to the minor one.
    pub fn of_dimension(&self, array: usize, dimension: usize) -> impl Iterator<Item = usize> + '_ {
        let first = self.places.partition_point(|place| (place.array, place.dimension) < (array, dimension));
        let is_it = move |place: &&Place| (place.array, place.dimension) == (array, dimension);
        self.places[first..].iter().take_while(is_it).map(|place| place.factor)
    }

    /// Clears the factors, and keeps their allocations.
    fn clear(&mut self, arrays: &[&Array], operands: usize) {
        self.factors.clear();
        self.places.clear();
        self.ranks.clear();
        self.ranks.extend(arrays.iter().map(|array| array.bounds.len()));
        self.operands = operands;
    }

    /// Adds a factor in these dimensions, the minor one of those that they have so far.
    fn add(&mut self, kind: FactorKind, size: u64, places: impl IntoIterator<Item = (usize, usize)>) -> usize {
        let factor = self.factors.len();
        self.factors.push(Factor { size, kind });
        if size > 1 {
            self.places.extend(places.into_iter().map(|(array, dimension)| Place { array, dimension, factor }));
        }
        factor
    }

    /// Gives each dimension that has no factor, or whose factors don't multiply to its size, one of its own that is mixed.
    fn finish(&mut self, arrays: &[&Array]) {
        self.places.sort_by_key(|place| (place.array, place.dimension));
        let mut at = 0;
        for (array, bounds) in arrays.iter().map(|array| &array.bounds).enumerate() {
            for (dimension, bound) in bounds.iter().enumerate() {
                let start = at;
                let mut product = 1_u64;
                while let Some(place) = self.places.get(at).filter(|at| (at.array, at.dimension) == (array, dimension))
                {
                    product = product.saturating_mul(self.factors[place.factor].size);
                    at += 1;
                }
                if product != *bound && (*bound > 1 || product > 1) {
                    let factor = self.factors.len();
                    let own = (*bound > 1).then_some(Place { array, dimension, factor });
                    self.factors.extend(own.map(|_| Factor { size: *bound, kind: FactorKind::Mix }));
                    self.places.splice(start..at, own);
                    at = start + usize::from(own.is_some());
                }
            }
        }
        self.renumber();
    }

    /// Numbers factors as they first appear, and drops those without a place.
    fn renumber(&mut self) {
        let is_in_order = {
            let mut next = 0;
            self.places.iter().all(|place| {
                next = next.max(if place.factor == next { next + 1 } else { next });
                place.factor < next
            }) && next == self.factors.len()
        };
        if is_in_order {
            return;
        }
        let mut numbers = vec![None; self.factors.len()];
        let mut factors = Vec::with_capacity(self.factors.len());
        for place in &mut self.places {
            place.factor = *numbers[place.factor].get_or_insert_with(|| {
                factors.push(self.factors[place.factor]);
                factors.len() - 1
            });
        }
        self.factors = factors;
    }
}

/// A factor's letter, as Shardy writes it: `i` to `z`, then `z_1`.
fn letter(f: &mut fmt::Formatter<'_>, factor: usize) -> fmt::Result {
    match (b'i'..=b'z').nth(factor) {
        Some(letter) => write!(f, "{}", char::from(letter)),
        None => write!(f, "z_{}", factor - usize::from(b'z' - b'i')),
    }
}

impl fmt::Display for Factors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for array in 0..self.ranks.len() {
            f.write_str(match array {
                0 if self.operands == 0 => "()->([",
                0 => "([",
                at if at == self.operands => ")->([",
                _ => ", [",
            })?;
            for dimension in 0..self.ranks[array] {
                f.write_str(if dimension > 0 { ", " } else { "" })?;
                let mut factors = self.of_dimension(array, dimension).peekable();
                if factors.peek().is_none() {
                    f.write_str("1")?;
                }
                factors.try_for_each(|factor| letter(f, factor))?;
            }
            f.write_str("]")?;
        }
        f.write_str(")")?;
        for (number, factor) in self.factors.iter().enumerate() {
            f.write_str(if number == 0 { " {" } else { ", " })?;
            letter(f, number)?;
            write!(f, "={}", factor.size)?;
        }
        f.write_str(if self.factors.is_empty() { "" } else { "}" })?;
        for (kind, name) in [
            (FactorKind::Sum, "sum"),
            (FactorKind::Reduce, "reduce"),
            (FactorKind::Mix, "mix"),
            (FactorKind::Repeat, "repeat"),
        ] {
            let mut of_kind = (0..self.factors.len()).filter(|at| self.factors[*at].kind == kind).peekable();
            if of_kind.peek().is_none() {
                continue;
            }
            write!(f, " {name}={{")?;
            for (count, factor) in of_kind.enumerate() {
                f.write_str(if count > 0 { ", " } else { "" })?;
                letter(f, factor)?;
            }
            f.write_str("}")?;
        }
        Ok(())
    }
}

/// An array's bounds and shape.
#[derive(Clone, Debug)]
pub(super) struct Array {
    /// 0 for an unknown bound.
    pub(super) bounds: Vec<u64>,
    pub(super) shape: Shape,
}

impl Array {
    pub(super) fn of(shape: &Shape) -> Self {
        let bounds = shape.dimensions().iter().map(|dimension| dimension.bound().unwrap_or(0)).collect();
        Self { bounds, shape: shape.clone() }
    }
}
