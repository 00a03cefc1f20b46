//! The two dimensions of an array that are drawn, and the indices of the others.

use crate::{Error, ErrorKind, Options, padded::PaddedArray};
use tilewise::Tiled;

/// The plane of an array that a picture shows, in the dimension numbers of a [`PaddedArray`].
pub(crate) struct Plane {
    /// The dimension drawn downwards.
    pub(crate) row: Option<usize>,
    /// The dimension drawn to the right.
    pub(crate) column: Option<usize>,
    /// The place of the plane's first cell.
    pub(crate) at: Vec<u64>,
    /// The highlighted place, if it lies in the plane.
    pub(crate) focus: Option<Vec<u64>>,
}

impl Plane {
    /// The two fastest-varying dimensions that aren't sliced; of an array without tiles, preferably those
    /// longer than 1.
    pub(crate) fn of(tiled: &Tiled, padded: &PaddedArray, options: &Options) -> Result<Self, Error> {
        let slices = slices(tiled, options)?;
        if let Some(index) = &options.highlight {
            tiled.offset_of(index)?;
        }
        let own = |dimension: usize| dimension.checked_sub(padded.added());
        let free = |&dimension: &usize| own(dimension).is_none_or(|own| slices.iter().all(|&(d, _)| d != own));
        let mut drawn: Vec<usize> = padded.minor_to_major().filter(free).collect();
        if padded.levels().is_empty() {
            drawn.sort_by_key(|&dimension| padded.extents()[dimension] == 1);
        }
        drawn.truncate(2);
        drawn.sort_unstable();
        let column = drawn.pop();
        let row = drawn.pop();

        let highlight = options.highlight.as_ref().map(|index| padded.place(index));
        let mut at = highlight.clone().unwrap_or_else(|| vec![0; padded.extents().len()]);
        for (dimension, index) in slices {
            at[dimension + padded.added()] = index;
        }
        for dimension in [row, column].into_iter().flatten() {
            at[dimension] = 0;
        }
        let mut plane = Self { row, column, at, focus: None };
        plane.focus = highlight.filter(|place| plane.holds(place));
        Ok(plane)
    }

    /// The place of a cell.
    pub(crate) fn place(&self, row: u64, column: u64) -> Vec<u64> {
        let mut place = self.at.clone();
        for (dimension, at) in [(self.row, row), (self.column, column)] {
            if let Some(dimension) = dimension {
                place[dimension] = at;
            }
        }
        place
    }

    pub(crate) fn holds(&self, place: &[u64]) -> bool {
        let drawn = |dimension: usize| self.row == Some(dimension) || self.column == Some(dimension);
        place.iter().zip(&self.at).enumerate().all(|(dimension, (a, b))| a == b || drawn(dimension))
    }
}

/// The slices with dimension numbers that are checked and not negative.
fn slices(tiled: &Tiled, options: &Options) -> Result<Vec<(usize, u64)>, Error> {
    let bounds = tiled.logical_dimensions();
    let rank = bounds.len();
    let mut slices: Vec<(usize, u64)> = Vec::new();
    for &(number, index) in &options.slices {
        let distance = usize::try_from(number.unsigned_abs()).ok();
        let dimension = if number < 0 { distance.and_then(|n| rank.checked_sub(n)) } else { distance };
        let Some(dimension) = dimension.filter(|&dimension| dimension < rank) else {
            let message = format!("there is no dimension {number} in an array of rank {rank}");
            return Err(Error::new(ErrorKind::IndexOutOfBounds, message));
        };
        if index >= bounds[dimension] {
            let bound = bounds[dimension];
            let message = format!("index {index} is outside dimension {dimension}, which has bound {bound}");
            return Err(Error::new(ErrorKind::IndexOutOfBounds, message));
        }
        match slices.iter().find(|(d, _)| *d == dimension) {
            None => slices.push((dimension, index)),
            Some(&(_, other)) if other == index => {}
            Some((_, other)) => {
                let message = format!("dimension {dimension} can't be drawn at {other} and at {index}; give one slice");
                return Err(Error::new(ErrorKind::InvalidSlice, message));
            }
        }
    }
    Ok(slices)
}
