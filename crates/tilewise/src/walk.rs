//! Walks over an array: its elements in logical order, or in the order of dimensions in memory; or every place of
//! memory.

use crate::{ArrayShape, Error, ErrorKind, Tiled, bulk::Block};
use alloc::{format, vec, vec::Vec};
use core::ops::ControlFlow;

impl ArrayShape {
    /// Advances an index, the last dimension counting fastest. Returns `false`, and leaves the index, if it is the last
    /// one.
    ///
    /// # Errors
    /// [`ErrorKind::IndexRankMismatch`], [`ErrorKind::IndexOutOfBounds`]; [`ErrorKind::UnboundedDimension`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[2,3]".parse()?;
    /// let array = shape.as_array().expect("an array");
    /// let mut index = [0, 2];
    /// assert!(array.bump_indices(&mut index)?);
    /// assert_eq!(index, [1, 0]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "BumpIndices")]
    pub fn bump_indices(&self, index: &mut [u64]) -> Result<bool, Error> {
        let bounds = self.known_bounds()?;
        self.check_index(index, &bounds)?;
        let Some(at) = (0..index.len()).rev().find(|&at| index[at] + 1 < bounds[at]) else { return Ok(false) };
        index[at] += 1;
        index[at + 1..].fill(0);
        Ok(true)
    }

    /// Visits every element by its index, in the order of the dimensions in memory, the most minor counting fastest,
    /// until the visitor breaks. Without tiles that is the order of memory; a missing layout counts as the default one,
    /// in logical order.
    ///
    /// [`Tiled::for_each_in_memory`] follows tiles, and passes over padding.
    ///
    /// # Errors
    /// [`ErrorKind::UnboundedDimension`].
    ///
    /// ```
    /// use core::ops::ControlFlow;
    ///
    /// let shape: tilewise::Shape = "f32[2,2]{0,1}".parse()?;
    /// let mut visited = Vec::new();
    /// let _ = shape.as_array().expect("an array").for_each_index(|index| {
    ///     visited.push(index.to_vec());
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(visited, [[0, 0], [1, 0], [0, 1], [1, 1]]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ForEachIndex")]
    #[doc(alias = "ForEachIndexNoStatus")]
    pub fn for_each_index<B>(&self, visit: impl FnMut(&[u64]) -> ControlFlow<B>) -> Result<ControlFlow<B>, Error> {
        let bounds = self.known_bounds()?;
        self.for_each_index_in(&vec![0; bounds.len()], &bounds, &vec![1; bounds.len()], visit)
    }

    /// As [`for_each_index`](Self::for_each_index), for the elements whose index along each dimension is at or above
    /// `base`, below `base + count`, and in steps of `step` from `base`. A count of 0 visits `base` alone, as in XLA;
    /// an array without elements has no visits.
    ///
    /// # Errors
    /// [`ErrorKind::UnboundedDimension`]; [`ErrorKind::IndexRankMismatch`]; [`ErrorKind::IndexOutOfBounds`] where the range leaves the array,
    /// or a step is 0.
    ///
    /// ```
    /// use core::ops::ControlFlow;
    ///
    /// let shape: tilewise::Shape = "f32[2,8]".parse()?;
    /// let mut columns = Vec::new();
    /// let _ = shape.as_array().expect("an array").for_each_index_in(&[1, 2], &[1, 6], &[1, 3], |index| {
    ///     columns.push(index[1]);
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(columns, [2, 5]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "ForEachIndexWithStatus")]
    #[doc(alias = "IndexIterationSpace")]
    pub fn for_each_index_in<B>(
        &self,
        base: &[u64],
        count: &[u64],
        step: &[u64],
        mut visit: impl FnMut(&[u64]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, Error> {
        let bounds = self.known_bounds()?;
        if bounds.contains(&0) {
            return Ok(ControlFlow::Continue(()));
        }
        self.check_index(base, &bounds)?;
        for (name, list) in [("count", count), ("step", step)] {
            if list.len() != bounds.len() {
                let message = format!("the {name} has {} numbers, the array {} dimensions", list.len(), bounds.len());
                return Err(Error::new(ErrorKind::IndexRankMismatch, message));
            }
        }
        for (dimension, &bound) in bounds.iter().enumerate() {
            if count[dimension] > bound - base[dimension] || step[dimension] == 0 {
                let message = format!("from {}, {} in steps of {}", base[dimension], count[dimension], step[dimension]);
                let message = format!("{message} isn't a range of dimension {dimension}, which has bound {bound}");
                return Err(Error::new(ErrorKind::IndexOutOfBounds, message));
            }
        }
        let default: Vec<usize> = (0..bounds.len()).rev().collect();
        let order = self.layout().map_or(&default[..], |layout| layout.minor_to_major());
        let mut index = base.to_vec();
        loop {
            if let ControlFlow::Break(value) = visit(&index) {
                return Ok(ControlFlow::Break(value));
            }
            let next = order.iter().find(|&&dimension| {
                // Neither sum leaves 64 bits: a range is inside its bound, which is below 2^63.
                let end = base[dimension] + count[dimension];
                match index[dimension].checked_add(step[dimension]).filter(|&next| next < end) {
                    Some(next) => index[dimension] = next,
                    None => index[dimension] = base[dimension],
                }
                index[dimension] != base[dimension]
            });
            if next.is_none() {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    /// The stride of a dimension in elements, without tiles: the product of the more minor bounds.
    ///
    /// # Errors
    /// [`ErrorKind::IndexOutOfBounds`], [`ErrorKind::UnboundedDimension`].
    ///
    /// ```
    /// let shape: tilewise::Shape = "f32[5,8,10,4]{3,2,1,0}".parse()?;
    /// assert_eq!(shape.as_array().expect("an array").dimension_stride(1)?, 40);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "GetDimensionStride")]
    pub fn dimension_stride(&self, dimension: usize) -> Result<u64, Error> {
        let bounds = self.known_bounds()?;
        if dimension >= bounds.len() {
            return Err(crate::edit::no_dimension(dimension, bounds.len()));
        }
        let default: Vec<usize> = (0..bounds.len()).rev().collect();
        let order = self.layout().map_or(&default[..], |layout| layout.minor_to_major());
        let minor = order.iter().take_while(|&&other| other != dimension).map(|&other| bounds[other]);
        crate::checked::product(minor).ok_or_else(|| Error::new(ErrorKind::Overflow, "the stride is above 2^63 − 1"))
    }

    fn known_bounds(&self) -> Result<Vec<u64>, Error> {
        let bounds: Option<Vec<u64>> = self.bounds();
        bounds.ok_or_else(|| Error::new(ErrorKind::UnboundedDimension, "a dimension `?` has no last index"))
    }

    fn check_index(&self, index: &[u64], bounds: &[u64]) -> Result<(), Error> {
        if index.len() != bounds.len() {
            let message = format!("the index has {} numbers, the array {} dimensions", index.len(), bounds.len());
            return Err(Error::new(ErrorKind::IndexRankMismatch, message));
        }
        match (0..index.len()).find(|&dimension| index[dimension] >= bounds[dimension]) {
            None => Ok(()),
            Some(at) => {
                let message = format!("index {} is outside dimension {at}, which has bound {}", index[at], bounds[at]);
                Err(Error::new(ErrorKind::IndexOutOfBounds, message))
            }
        }
    }
}

impl Tiled {
    /// Visits every place of memory in order, with the index of the element there, or `None` where it holds padding, until the visitor
    /// breaks. No table is made: memory is followed back through the tiles, a few hundred places at a time.
    ///
    /// ```
    /// use core::ops::ControlFlow;
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let mut padding = 0;
    /// let found = tiled.for_each_in_memory(|offset, index| match index {
    ///     Some([2, 3]) => ControlFlow::Break(offset),
    ///     Some(_) => ControlFlow::Continue(()),
    ///     None => {
    ///         padding += 1;
    ///         ControlFlow::Continue(())
    ///     }
    /// });
    /// assert_eq!((found, padding), (ControlFlow::Break(17), 4));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn for_each_in_memory<B>(
        &self,
        mut visit: impl FnMut(u64, Option<&[u64]>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        /// Places that are followed back together.
        const PLACES: u64 = 512;
        let end = self.physical_elements();
        let places = usize::try_from(end.min(PLACES)).unwrap_or_default();
        let mut block = Block::new(self, places);
        let (mut offsets, mut index) = (Vec::with_capacity(places), vec![0; self.array.rank()]);
        let mut start = 0;
        while start < end {
            offsets.clear();
            offsets.extend(start..end.min(start + PLACES));
            // Every offset is below the end.
            if block.invert(&offsets).is_err() {
                break;
            }
            for (number, &offset) in offsets.iter().enumerate() {
                let is_padding = block.is_padding(number);
                if !is_padding {
                    index.iter_mut().zip(block.index(number)).for_each(|(place, value)| *place = value);
                }
                visit(offset, (!is_padding).then_some(&index[..]))?;
            }
            start += PLACES;
        }
        ControlFlow::Continue(())
    }
}
