//! Logical index → offset, offset → logical index or padding, one by one.

use crate::{Digit, Error, ErrorKind, Tiled, bulk::Block};
use alloc::{format, vec, vec::Vec};

impl Tiled {
    /// The offset of a logical index, in elements from the start of the buffer.
    ///
    /// # Errors
    /// [`ErrorKind::IndexRankMismatch`], [`ErrorKind::IndexOutOfBounds`].
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}".parse()?)?;
    /// assert_eq!(tiled.offset_of(&[1, 2, 3, 4, 5])?, 8307);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "LinearIndex")]
    #[doc(alias = "MultidimensionalIndexToLinearIndex")]
    pub fn offset_of(&self, index: &[u64]) -> Result<u64, Error> {
        let bounds = self.logical_dimensions();
        if index.len() != bounds.len() {
            return Err(rank_mismatch(index.len(), bounds.len()));
        }
        self.check(index)?;
        let mut nested = Vec::with_capacity(self.nested_axes().len());
        for axis in self.nested_axes() {
            nested.push(axis.value(index, &nested));
        }
        Ok(Digit::sum(self.digits(), index, &nested))
    }

    /// Checks that an index of the right rank is inside the bounds.
    pub(crate) fn check(&self, index: &[u64]) -> Result<(), Error> {
        let bounds = self.logical_dimensions();
        match (0..index.len()).find(|&d| index[d] >= bounds[d]) {
            None => Ok(()),
            Some(dimension) => Err(out_of_bounds(dimension, index[dimension], bounds[dimension])),
        }
    }

    /// The logical index of the element at an offset, or `None` where the offset holds padding, of any tile or of the tail.
    ///
    /// # Errors
    /// [`ErrorKind::OffsetOutOfRange`] at or past [`physical_elements`](Tiled::physical_elements).
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// assert_eq!(tiled.index_of(8)?, Some(vec![0, 4]));
    /// assert_eq!(tiled.index_of(9)?, None);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "LinearIndexToMultidimensionalIndex")]
    pub fn index_of(&self, offset: u64) -> Result<Option<Vec<u64>>, Error> {
        let mut block = Block::new(self, 1);
        block.invert(&[offset])?;
        Ok((!block.is_padding(0)).then(|| block.index(0).collect()))
    }

    /// The index along each of [`physical_dimensions`](Tiled::physical_dimensions) at an offset; `None` in the tail padding.
    ///
    /// # Errors
    /// As for [`index_of`](Tiled::index_of).
    pub fn physical_index_of(&self, offset: u64) -> Result<Option<Vec<u64>>, Error> {
        self.check_offset(offset)?;
        if offset >= self.tiled_elements() {
            return Ok(None);
        }
        let mut rest = offset;
        let mut index = vec![0; self.physical_dimensions().len()];
        for (value, &bound) in index.iter_mut().zip(self.physical_dimensions()).rev() {
            *value = rest % bound;
            rest /= bound;
        }
        Ok(Some(index))
    }

    /// The offset of an index along each of [`physical_dimensions`](Tiled::physical_dimensions), an element's or padding's.
    ///
    /// # Errors
    /// [`ErrorKind::IndexRankMismatch`] and [`ErrorKind::IndexOutOfBounds`].
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// assert_eq!(tiled.offset_of_physical(&[1, 1, 0, 1])?, 17);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn offset_of_physical(&self, index: &[u64]) -> Result<u64, Error> {
        let bounds = self.physical_dimensions();
        if index.len() != bounds.len() {
            let (given, rank) = (counted(index.len(), "component"), counted(bounds.len(), "dimension"));
            let message = format!("the index in memory has {given}, memory {rank}");
            return Err(Error::new(ErrorKind::IndexRankMismatch, message));
        }
        index.iter().zip(bounds).enumerate().try_fold(0, |offset, (position, (&at, &bound))| {
            if at < bound {
                return Ok(offset * bound + at);
            }
            let message = format!("index {at} is outside dimension {position} of memory, which has bound {bound}");
            Err(Error::new(ErrorKind::IndexOutOfBounds, message))
        })
    }

    /// Checks that an offset is inside the buffer.
    pub(crate) fn check_offset(&self, offset: u64) -> Result<(), Error> {
        if offset < self.physical_elements() {
            return Ok(());
        }
        let message = format!("offset {offset} is past the buffer's {} elements", self.physical_elements());
        Err(Error::new(ErrorKind::OffsetOutOfRange, message))
    }
}

fn rank_mismatch(given: usize, rank: usize) -> Error {
    let message = format!("the index has {}, the array {}", counted(given, "component"), counted(rank, "dimension"));
    Error::new(ErrorKind::IndexRankMismatch, message)
}

/// `1 component`, `2 components`.
fn counted(count: usize, what: &str) -> alloc::string::String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

fn out_of_bounds(dimension: usize, index: u64, bound: u64) -> Error {
    Error::new(
        ErrorKind::IndexOutOfBounds,
        format!("index {index} is outside dimension {dimension}, which has bound {bound}"),
    )
}
