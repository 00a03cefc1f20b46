//! The relation of two layouts: whether the bytes of one array can be read as another.

use crate::{Error, Shape, Tiled, checked, positions::Positions};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec,
    vec::Vec,
};
use core::{cmp::Reverse, fmt};

/// The kind of bitcast that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BitcastAs {
    /// Anything: the first [`Relation`] that holds.
    #[default]
    Any,
    /// A reshape: elements keep their row-major order.
    Reshape,
    /// A transpose: the dimensions in another order.
    Transpose,
}

/// The relation of the layout of one array to that of another.
///
/// Two *cells* are the same if they are the same bits of the buffer. All relations but [`None`](Relation::None) are bitcasts, and need
/// buffers of the same size. Memory spaces, element types of the same width and the spelling of a layout make no difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Relation {
    /// Equal dimensions, and every index has the same cell.
    Identical,
    /// Every row-major position has the same cell. Elements of different widths are compared as bits, the lowest first.
    Reshape,
    /// Every element has the same cell under a transpose.
    Transpose {
        /// Dimension k of the second array is this dimension of the first, as in XLA's `transpose`.
        permutation: Vec<usize>,
    },
    /// Every element has the same cell under a transpose, a reshape and a second transpose. One of the two transposes
    /// is the identity if possible.
    TransposeReshape {
        /// The first transpose, as in XLA's `transpose`; dimensions of size 1 as low as they can be.
        permutation: Vec<usize>,
        /// The bounds of the reshape.
        bounds: Vec<u64>,
        /// The second transpose.
        then: Vec<usize>,
    },
    /// Arrays of different bounds with equal padded bounds, in which every index inside both has the same cell. Also an
    /// array of any type and the bytes of its buffer.
    ExposesPadding {
        /// Elements of the second array that are padding of the first.
        exposed: u64,
        /// Elements of the first array that are padding of the second.
        hidden: u64,
    },
    /// No relation: the bytes have to move.
    None {
        /// The obstacle.
        reason: Mismatch,
        /// The smallest index whose cell differs, as a reshape unless a transpose was asked for; `None` if counts or
        /// widths differ, or only the buffers' sizes do.
        counterexample: Option<Counterexample>,
    },
}

/// The reason why two arrays don't share their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mismatch {
    /// The stored elements differ in width, in bits.
    ElementBits {
        /// The first array's.
        from: u64,
        /// The second array's.
        to: u64,
    },
    /// The numbers of elements differ.
    Elements {
        /// The first array's.
        from: u64,
        /// The second array's.
        to: u64,
    },
    /// No permutation of the dimensions gives the bounds.
    Dimensions,
    /// The buffers differ in size, in bytes.
    PhysicalBytes {
        /// The first array's.
        from: u64,
        /// The second array's.
        to: u64,
    },
    /// Elements lie in different cells.
    Cells,
}

/// An element that two layouts put into different cells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counterexample {
    /// Its index in the first array.
    pub index: Vec<u64>,
    /// Its index in the second.
    pub to_index: Vec<u64>,
    /// Its offset in the first buffer, in elements.
    pub from_offset: u64,
    /// Its offset in the second.
    pub to_offset: u64,
}

impl Relation {
    /// The relation's name in snake case, as the command line's JSON prints it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Reshape => "reshape",
            Self::Transpose { .. } => "transpose",
            Self::TransposeReshape { .. } => "transpose_reshape",
            Self::ExposesPadding { .. } => "exposes_padding",
            Self::None { .. } => "none",
        }
    }

    /// Whether the bytes can be read as the other array.
    #[must_use]
    pub const fn is_bitcast(&self) -> bool {
        !matches!(self, Self::None { .. })
    }

    /// The permutation of a transpose; of two, the first.
    #[must_use]
    pub fn permutation(&self) -> Option<&[usize]> {
        match self {
            Self::Transpose { permutation } | Self::TransposeReshape { permutation, .. } => Some(permutation),
            _ => None,
        }
    }

    /// The element whose cell differs, if there is one.
    #[must_use]
    pub const fn counterexample(&self) -> Option<&Counterexample> {
        match self {
            Self::None { counterexample, .. } => counterexample.as_ref(),
            _ => None,
        }
    }
}

impl fmt::Display for Mismatch {
    /// A clause: `an element takes 32 bits, and 16 in the other array`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ElementBits { from, to } => write!(f, "an element takes {from} bits, and {to} in the other array"),
            Self::Elements { from, to } => write!(f, "there are {from} elements, and {to} in the other array"),
            Self::Dimensions => f.write_str("no order of the dimensions gives the other array's"),
            Self::PhysicalBytes { from, to } => write!(f, "the buffer has {from} bytes, the other {to}"),
            Self::Cells => f.write_str("elements lie elsewhere"),
        }
    }
}

impl Shape {
    /// The relation of the bytes of this array to those of another: [`Tiled::bitcast`] of both.
    ///
    /// # Errors
    /// As for [`Tiled::new`], and [`ErrorKind::Undecided`](crate::ErrorKind::Undecided).
    ///
    /// ```
    /// use tilewise::{BitcastAs, Relation, Shape};
    ///
    /// let heads: Shape = "bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}".parse()?;
    /// let joined: Shape = "bf16[8,512,768]{1,2,0:T(8,128)(2,1)}".parse()?;
    /// assert_eq!(heads.bitcast(&joined, BitcastAs::Any)?, Relation::Reshape);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ReshapeIsBitcast")]
    #[doc(alias = "TransposeIsBitcast")]
    pub fn bitcast(&self, to: &Self, reading: BitcastAs) -> Result<Relation, Error> {
        Tiled::new(self)?.bitcast(&Tiled::new(to)?, reading)
    }

    /// Whether two arrays of the same dimensions put every element into the same bits of buffers of the same size.
    ///
    /// This compares the effect of layouts: `{1,0:T(1,1)}` and `{1,0}` differ as texts and in `==`, and have the same
    /// bytes.
    ///
    /// # Errors
    /// As for [`bitcast`](Self::bitcast).
    ///
    /// ```
    /// # use tilewise::Shape;
    /// let [tiled, plain]: [Shape; 2] = ["f32[3,5]{1,0:T(1,1)}".parse()?, "f32[3,5]{1,0}".parse()?];
    /// assert!(tiled != plain && tiled.same_bytes(&plain)?);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn same_bytes(&self, other: &Self) -> Result<bool, Error> {
        Ok(self.bitcast(other, BitcastAs::Reshape)? == Relation::Identical)
    }
}

impl Tiled {
    /// The relation of the bytes of this array to those of another.
    ///
    /// XLA's `ReshapeIsBitcast` and `TransposeIsBitcast` ignore tiles; this is exact, and its time depends on the
    /// length of the layouts' text, not on the number of elements.
    ///
    /// # Errors
    /// [`ErrorKind::Undecided`](crate::ErrorKind::Undecided) if a tile cuts across dimensions that `*` merged with
    /// padding or not in row-major order, there are more than 2^12 elements, and the first 2^12 agree.
    ///
    /// ```
    /// use tilewise::{BitcastAs, Relation, Tiled};
    ///
    /// let from = Tiled::new(&"f32[1000000,1000000]{1,0:T(8,128)}".parse()?)?;
    /// let to = Tiled::new(&"f32[1000000,1000000]{0,1:T(8,128)}".parse()?)?;
    /// let relation = from.bitcast(&to, BitcastAs::Any)?;
    /// assert_eq!(relation, Relation::Transpose { permutation: vec![1, 0] });
    ///
    /// let relation = from.bitcast(&to, BitcastAs::Reshape)?;
    /// let counterexample = relation.counterexample().expect("another cell");
    /// assert_eq!((&counterexample.index[..], counterexample.to_offset), (&[0, 1][..], 128));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn bitcast(&self, to: &Self, reading: BitcastAs) -> Result<Relation, Error> {
        let pair = Pair { from: self, to };
        match reading {
            BitcastAs::Any => pair.any(),
            BitcastAs::Reshape => pair.reshape(),
            BitcastAs::Transpose => pair.transpose(),
        }
    }

    fn logical_elements(&self) -> u64 {
        checked::product(self.logical_dimensions().iter().copied()).unwrap_or(0)
    }
}

/// Two layouts to compare.
#[derive(Clone, Copy)]
struct Pair<'a> {
    from: &'a Tiled,
    to: &'a Tiled,
}

impl Pair<'_> {
    fn any(self) -> Result<Relation, Error> {
        let reshape = self.reshape()?;
        if reshape.is_bitcast() {
            return Ok(reshape);
        }
        let found = if self.widths_differ().is_some() {
            self.bytes()
        } else {
            match self.transpose_reshape()? {
                Some(found) => Some(found),
                None => self.exposes_padding()?,
            }
        };
        Ok(found.unwrap_or(reshape))
    }

    /// [`Relation::Identical`], [`Relation::Reshape`], or why not.
    fn reshape(self) -> Result<Relation, Error> {
        let [from_bits, to_bits] = [self.from, self.to].map(|tiled| tiled.stored_bits().max(1));
        let common = greatest_common_divisor(from_bits, to_bits);
        let from = Positions::new(self.from).in_parts(from_bits / common);
        let to = Positions::new(self.to).in_parts(to_bits / common);
        if from.count() != to.count() {
            return Ok(none(self.widths_differ().unwrap_or(self.counts()), None));
        }
        let difference = from.first_difference(&to)?;
        if difference.is_none() && self.sizes_differ().is_none() {
            let same = self.from.logical_dimensions() == self.to.logical_dimensions() && from_bits == to_bits;
            return Ok(if same { Relation::Identical } else { Relation::Reshape });
        }
        self.differ(difference, &from, &to)
    }

    /// [`Relation::Identical`], [`Relation::Transpose`], or why not.
    fn transpose(self) -> Result<Relation, Error> {
        if let Some(widths) = self.widths_differ() {
            return Ok(none(widths, None));
        }
        let Some(smallest) = self.smallest_permutation() else { return Ok(none(Mismatch::Dimensions, None)) };
        let orders = self.orders()?.filter(|[_, others]| others.is_sorted());
        let found = orders.and_then(|[own, _]| self.permutation(&own));
        let mut answer = None;
        // The permutation that the cells need, else the smallest that the bounds allow.
        for permutation in found.into_iter().chain([smallest]) {
            let from = Positions::new(self.from);
            let to = Positions::in_order(self.to, inverse(&permutation));
            let difference = from.first_difference(&to)?;
            if difference.is_none() && self.sizes_differ().is_none() {
                return Ok(transposed(permutation));
            }
            answer = Some(self.differ(difference, &from, &to)?);
        }
        Ok(answer.unwrap_or(none(Mismatch::Dimensions, None)))
    }

    /// A relation with the dimensions of the first array in another order, if there is one.
    fn transpose_reshape(self) -> Result<Option<Relation>, Error> {
        if self.sizes_differ().is_some() || self.from.logical_elements() != self.to.logical_elements() {
            return Ok(None);
        }
        let Some([own, others]) = self.orders()? else { return Ok(None) };
        let from = Positions::in_order(self.from, own.iter().copied());
        let to = Positions::in_order(self.to, others.iter().copied());
        if from.first_difference(&to)?.is_some() {
            return Ok(None);
        }
        if let Some(permutation) = self.permutation(&own).filter(|_| others.is_sorted()) {
            return Ok(Some(transposed(permutation)));
        }
        let others = with_units(self.to, &others);
        let bounds = others.iter().map(|&dimension| self.to.logical_dimensions()[dimension]).collect();
        let permutation = with_units(self.from, &own);
        Ok(Some(Relation::TransposeReshape { permutation, bounds, then: inverse(&others) }))
    }

    /// [`Relation::ExposesPadding`] of equal expanded bounds, if it holds.
    fn exposes_padding(self) -> Result<Option<Relation>, Error> {
        let [from, to] = [self.from, self.to].map(Tiled::logical_dimensions);
        let alike = from.len() == to.len() && self.from.physical_dimensions() == self.to.physical_dimensions();
        if !alike || self.sizes_differ().is_some() {
            return Ok(None);
        }
        let common: Vec<u64> = from.iter().zip(to).map(|(from, to)| *from.min(to)).collect();
        let [inner, outer] = [self.from, self.to].map(|tiled| Positions::new(tiled).within(&common));
        if inner.first_difference(&outer)?.is_some() {
            return Ok(None);
        }
        let common = checked::product(common.into_iter()).unwrap_or(0);
        let [hidden, exposed] = [self.from, self.to].map(|tiled| tiled.logical_elements().saturating_sub(common));
        Ok(Some(Relation::ExposesPadding { exposed, hidden }))
    }

    /// [`Relation::ExposesPadding`] of a buffer as its bytes, which the TPU compiler emits to move any array in pieces.
    fn bytes(self) -> Option<Relation> {
        let is_bytes =
            |tiled: &Tiled| tiled.stored_bits() == 8 && tiled.logical_elements() == tiled.physical_elements();
        if self.from.physical_bytes() != self.to.physical_bytes() {
            None
        } else if is_bytes(self.to) {
            Some(Relation::ExposesPadding { exposed: self.from.padding_bytes(), hidden: 0 })
        } else if is_bytes(self.from) {
            Some(Relation::ExposesPadding { exposed: 0, hidden: self.to.padding_bytes() })
        } else {
            None
        }
    }

    /// Orders of the dimensions of both arrays, major → minor, in which each cell can hold the same position of both;
    /// unique but for the order of independent groups. Dimensions of size 1 are left out.
    ///
    /// No two elements share an offset. So a dimension of each array can be the most minor one if their elements at
    /// index 1 have the same offset. Where one dimension ends before the other, the next offset determines the one that
    /// follows, until both end together.
    fn orders(self) -> Result<Option<[Vec<usize>; 2]>, Error> {
        let [own, others] = [steps(self.from)?, steps(self.to)?];
        let mut groups = Vec::new();
        for (step, &dimension) in &others {
            let Some(&first) = own.get(step) else { continue };
            let [mut from, mut to] = [Run::of(self.from, first), Run::of(self.to, dimension)];
            while from.count != to.count {
                let (behind, steps, ahead) =
                    if from.count < to.count { (&mut from, &own, &to) } else { (&mut to, &others, &from) };
                let Some(&next) = steps.get(&ahead.offset(behind.count)?) else { return Ok(None) };
                behind.push(next);
            }
            groups.push([from.dimensions, to.dimensions]);
        }
        let count = |side: usize| groups.iter().map(|group| group[side].len()).sum::<usize>();
        if [count(0), count(1)] != [own.len(), others.len()] {
            return Ok(None);
        }
        // Groups are independent: they are ordered by the dimensions of one array, preferably the second, whose
        // transpose is then the identity.
        let mut orders_by = |side: usize| {
            groups.sort_by_key(|group| Reverse(group[side][0]));
            [0, 1].map(|side| groups.iter().flat_map(|group| &group[side]).rev().copied().collect::<Vec<_>>())
        };
        let orders = orders_by(1);
        Ok(Some(if orders[1].is_sorted() { orders } else { orders_by(0) }))
    }

    /// The transpose that puts the dimensions into that order and those of size 1 where the second array has them;
    /// `None` unless its bounds are the second's.
    fn permutation(self, order: &[usize]) -> Option<Vec<usize>> {
        let bounds = self.from.logical_dimensions();
        let (mut units, mut others) = (units(self.from), order.iter().copied());
        let mut permutation = Vec::with_capacity(bounds.len());
        for &bound in self.to.logical_dimensions() {
            let dimension = if bound == 1 { units.next()? } else { others.next()? };
            if bounds[dimension] != bound {
                return None;
            }
            permutation.push(dimension);
        }
        (permutation.len() == bounds.len()).then_some(permutation)
    }

    /// The first permutation, in dictionary order, that gives the second array's bounds.
    fn smallest_permutation(self) -> Option<Vec<usize>> {
        let numbered = |tiled: &Tiled| -> BTreeSet<(u64, usize)> {
            tiled.logical_dimensions().iter().enumerate().map(|(dimension, &bound)| (bound, dimension)).collect()
        };
        let [from, to] = [self.from, self.to].map(numbered);
        let mut permutation = vec![0; to.len()];
        for ((bound, dimension), (to_bound, place)) in from.iter().zip(&to) {
            if bound != to_bound {
                return None;
            }
            permutation[*place] = *dimension;
        }
        (from.len() == to.len()).then_some(permutation)
    }

    fn widths_differ(self) -> Option<Mismatch> {
        let [from, to] = [self.from, self.to].map(Tiled::stored_bits);
        (from != to).then_some(Mismatch::ElementBits { from, to })
    }

    fn counts(self) -> Mismatch {
        let [from, to] = [self.from, self.to].map(Tiled::logical_elements);
        Mismatch::Elements { from, to }
    }

    fn sizes_differ(self) -> Option<Mismatch> {
        let bits = |tiled: &Tiled| u128::from(tiled.physical_elements()) * u128::from(tiled.stored_bits());
        let [from, to] = [self.from, self.to].map(Tiled::physical_bytes);
        (bits(self.from) != bits(self.to)).then_some(Mismatch::PhysicalBytes { from, to })
    }

    /// No relation: cells differ from a position on, or only sizes do.
    fn differ(self, position: Option<u128>, from: &Positions<'_>, to: &Positions<'_>) -> Result<Relation, Error> {
        let reason = self.sizes_differ().or(self.widths_differ()).unwrap_or(Mismatch::Cells);
        let counterexample = match position {
            Some(position) if self.widths_differ().is_none() => {
                let (index, to_index) = (from.index(position), to.index(position));
                let (from_offset, to_offset) = (self.from.offset_of(&index)?, self.to.offset_of(&to_index)?);
                Some(Counterexample { index, to_index, from_offset, to_offset })
            }
            _ => None,
        };
        Ok(none(reason, counterexample))
    }
}

/// Dimensions of one array, minor → major, as one number.
struct Run<'a> {
    tiled: &'a Tiled,
    dimensions: Vec<usize>,
    /// The product of their bounds.
    count: u64,
}

impl<'a> Run<'a> {
    fn of(tiled: &'a Tiled, dimension: usize) -> Self {
        Self { tiled, dimensions: vec![dimension], count: tiled.logical_dimensions()[dimension] }
    }

    fn push(&mut self, dimension: usize) {
        self.dimensions.push(dimension);
        self.count = self.count.saturating_mul(self.tiled.logical_dimensions()[dimension]);
    }

    /// The offset of the element at that position of the run.
    fn offset(&self, mut number: u64) -> Result<u64, Error> {
        let bounds = self.tiled.logical_dimensions();
        let mut index = vec![0; bounds.len()];
        for &dimension in &self.dimensions {
            index[dimension] = number % bounds[dimension];
            number /= bounds[dimension];
        }
        self.tiled.offset_of(&index)
    }
}

/// Dimensions of bounds above 1, by the offset of their element at index 1; empty for an array without elements.
fn steps(tiled: &Tiled) -> Result<BTreeMap<u64, usize>, Error> {
    if tiled.logical_elements() == 0 {
        return Ok(BTreeMap::new());
    }
    let dimensions = tiled.logical_dimensions().iter().enumerate().filter(|(_, bound)| **bound > 1);
    dimensions.map(|(dimension, _)| Ok((Run::of(tiled, dimension).offset(1)?, dimension))).collect()
}

fn units(tiled: &Tiled) -> impl Iterator<Item = usize> + '_ {
    let bounds = tiled.logical_dimensions().iter().enumerate();
    bounds.filter(|(_, bound)| **bound == 1).map(|(dimension, _)| dimension)
}

/// The order with dimensions of size 1 inserted, the smallest in dictionary order.
fn with_units(tiled: &Tiled, order: &[usize]) -> Vec<usize> {
    let (mut units, mut others) = (units(tiled).peekable(), order.iter().copied().peekable());
    let next = || match (units.peek(), others.peek()) {
        (Some(unit), Some(other)) if unit > other => others.next(),
        (Some(_), _) => units.next(),
        (None, _) => others.next(),
    };
    core::iter::from_fn(next).collect()
}

fn none(reason: Mismatch, counterexample: Option<Counterexample>) -> Relation {
    Relation::None { reason, counterexample }
}

fn transposed(permutation: Vec<usize>) -> Relation {
    if permutation.is_sorted() { Relation::Identical } else { Relation::Transpose { permutation } }
}

pub(crate) fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    permutation.iter().enumerate().for_each(|(place, &dimension)| inverse[dimension] = place);
    inverse
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
