//! The dimensions that a reshape leaves unmodified, and those of size 1 that it inserts and deletes.

use crate::{ArrayShape, Error, ErrorKind, Shape, checked};
use alloc::{format, vec, vec::Vec};

/// The dimensions of size 1 by which two arrays differ; made by [`Shape::inserted_or_deleted_1_sized_dimensions`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
#[doc(alias = "ShapeEqualityDescriptor")]
pub struct OneSizedDimensions {
    /// The dimensions of the first array that are deleted.
    pub deleted: Vec<usize>,
    /// The dimensions of the second array that are inserted.
    pub inserted: Vec<usize>,
}

impl Shape {
    /// The dimensions that a reshape to another array does not modify: pairs of a dimension of this array and one of
    /// the other, rising in both, whose indices are the same for every element. Layouts are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], [`ErrorKind::UnboundedDimension`]; [`ErrorKind::BufferLengthMismatch`] for different
    /// numbers of elements.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let (from, to): (Shape, Shape) = ("f32[2,3,5,7,12]".parse()?, "f32[6,5,1,7,3,4]".parse()?);
    /// assert_eq!(from.dimensions_unmodified_by_reshape(&to)?, [(2, 1), (3, 3)]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "DimensionsUnmodifiedByReshape")]
    pub fn dimensions_unmodified_by_reshape(&self, to: &Self) -> Result<Vec<(usize, usize)>, Error> {
        let (from, to) = (bounds(self.array_or_error()?)?, bounds(to.array_or_error()?)?);
        let [own, other] = [&from, &to].map(|bounds| checked::product(bounds.iter().copied()));
        if own != other {
            let message =
                format!("{own:?} elements can't be reshaped to {other:?}").replace("Some(", "").replace(')', "");
            return Err(Error::new(ErrorKind::BufferLengthMismatch, message));
        }
        let factors = common_factors(&from, &to);
        let is_one = |pair: &&[(usize, usize)]| pair[1].0 - pair[0].0 == 1 && pair[1].1 - pair[0].1 == 1;
        Ok(factors.windows(2).filter(is_one).map(|pair| pair[0]).collect())
    }

    /// The other array's dimensions for `dimensions`; `None` unless these are sorted and a reshape modifies none of
    /// them.
    ///
    /// # Errors
    /// As for [`dimensions_unmodified_by_reshape`](Self::dimensions_unmodified_by_reshape).
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let (from, to): (Shape, Shape) = ("f32[2,3,5,7,12]".parse()?, "f32[6,5,1,7,3,4]".parse()?);
    /// assert_eq!(from.reshape_leaves_dimensions_unmodified(&to, &[2, 3])?, Some(vec![1, 3]));
    /// assert_eq!(from.reshape_leaves_dimensions_unmodified(&to, &[4])?, None);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ReshapeLeavesDimensionsUnmodified")]
    pub fn reshape_leaves_dimensions_unmodified(
        &self,
        to: &Self,
        dimensions: &[usize],
    ) -> Result<Option<Vec<usize>>, Error> {
        let unmodified = self.dimensions_unmodified_by_reshape(to)?;
        if !dimensions.is_sorted() {
            return Ok(None);
        }
        let kept = |dimension: &usize| unmodified.iter().find(|(from, _)| from == dimension).map(|&(_, to)| to);
        Ok(dimensions.iter().map(kept).collect())
    }

    /// The dimensions of size 1 that a reshape to the other array deletes and inserts, if it does nothing else.
    ///
    /// # Errors
    /// As for [`dimensions_unmodified_by_reshape`](Self::dimensions_unmodified_by_reshape).
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let from: Shape = "f32[3,1,5]".parse()?;
    /// let found = from.inserted_or_deleted_1_sized_dimensions(&"f32[3,5,1]".parse()?)?.expect("nothing else");
    /// assert_eq!((found.deleted, found.inserted), (vec![1], vec![2]));
    /// assert_eq!(from.inserted_or_deleted_1_sized_dimensions(&"f32[5,3]".parse()?)?, None);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "InsertedOrDeleted1SizedDimensions")]
    pub fn inserted_or_deleted_1_sized_dimensions(&self, to: &Self) -> Result<Option<OneSizedDimensions>, Error> {
        let unmodified = self.dimensions_unmodified_by_reshape(to)?;
        let left = |shape: &Self, kept: Vec<usize>| -> Option<Vec<usize>> {
            let rest: Vec<usize> =
                (0..shape.dimensions().len()).filter(|dimension| !kept.contains(dimension)).collect();
            // As in XLA, a dimension of size 0 is no obstacle.
            let is_small = |&dimension: &usize| shape.dimensions()[dimension].bound().is_some_and(|bound| bound <= 1);
            rest.iter().all(is_small).then_some(rest)
        };
        let deleted = left(self, unmodified.iter().map(|&(from, _)| from).collect());
        let inserted = left(to, unmodified.iter().map(|&(_, to)| to).collect());
        Ok(deleted.zip(inserted).map(|(deleted, inserted)| OneSizedDimensions { deleted, inserted }))
    }
}

fn bounds(array: &ArrayShape) -> Result<Vec<u64>, Error> {
    let bounds: Option<Vec<u64>> = array.bounds();
    bounds.ok_or_else(|| Error::new(ErrorKind::UnboundedDimension, "without a bound there is no number of elements"))
}

/// Cuts of two lists of factors into parts with the same products, XLA's `CommonFactors`: places in both, from the
/// beginning to the end, as many as possible. With a product of 0, the equal factors in front and all the rest.
fn common_factors(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    if a == b {
        return (0..=a.len()).map(|place| (place, place)).collect();
    }
    let equal = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let mut cuts: Vec<(usize, usize)> = (0..equal).map(|place| (place, place)).collect();
    let (mut i, mut j) = (equal, equal);
    let product = |factors: &[u64]| checked::product(factors.iter().copied());
    if product(&a[i..]) != product(&b[j..]) {
        return vec![(0, 0), (a.len(), b.len())];
    }
    if product(&a[i..]) == Some(0) {
        cuts.extend([(i, j), (a.len(), b.len())]);
        return cuts;
    }
    // The products of the factors since the last cut, which divide one that fits.
    let (mut of_a, mut of_b) = (1_u64, 1_u64);
    loop {
        if of_a == of_b && cuts.last() != Some(&(i, j)) {
            cuts.push((i, j));
        }
        let (next_a, next_b) = (a.get(i), b.get(j));
        let takes_a = next_a.is_some_and(|a| of_a < of_b || next_b.is_none_or(|b| of_a == of_b && a <= b));
        let takes_b = next_b.is_some_and(|b| of_b < of_a || next_a.is_none_or(|a| of_a == of_b && b <= a));
        if let Some(&factor) = next_a.filter(|_| takes_a) {
            of_a = of_a.saturating_mul(factor);
            i += 1;
        }
        if let Some(&factor) = next_b.filter(|_| takes_b) {
            of_b = of_b.saturating_mul(factor);
            j += 1;
        }
        if !takes_a && !takes_b {
            return cuts;
        }
    }
}
