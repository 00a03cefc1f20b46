//! The axes that each tile of a layout covers: those that number the blocks of the tile before, and those inside the
//! blocks.
//!
//! A tile no longer than the one before it cuts that one's blocks again. A longer one reaches the axes that number them, and so joins
//! neighbouring blocks: `(2,1,1,1)` behind `(8,128)` takes two tiles, one below the other, and puts their elements side by side.

use crate::{
    Error, Tiled,
    tiled::{Axis, Step},
};
use alloc::{collections::BTreeSet, vec, vec::Vec};

/// The cut that one size of a tile makes: of an axis, or of several that `*` merges.
pub(crate) struct Cut {
    pub(crate) size: u64,
    /// Major → minor.
    pub(crate) axes: Vec<CoveredAxis>,
}

/// An axis at the time a tile cuts it.
#[derive(Clone, Copy)]
pub(crate) struct CoveredAxis {
    pub(crate) origin: Origin,
    pub(crate) bound: u64,
    /// Whether the axis numbers the blocks of the tile before; else it lies inside them.
    pub(crate) is_across: bool,
}

/// The logical dimensions that an axis is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// None: the tile is longer than the rank.
    Added,
    Dimension(usize),
    /// Several, which `*` merged.
    Merged,
}

impl Cut {
    /// The bound of all axes together.
    pub(crate) fn bound(&self) -> u64 {
        product(self.axes.iter().map(|axis| axis.bound))
    }

    /// The number of neighbouring blocks of the tile before that the cut joins; `None` if it ends inside one.
    pub(crate) fn joins(&self) -> Option<u64> {
        let inside = product(self.axes.iter().filter(|axis| !axis.is_across).map(|axis| axis.bound)).max(1);
        match self.axes.first() {
            Some(first) if first.is_across && self.size % inside == 0 => Some(self.size / inside),
            Some(first) if first.is_across && inside % self.size != 0 => None,
            _ => Some(1),
        }
    }
}

fn product(bounds: impl Iterator<Item = u64>) -> u64 {
    bounds.fold(1, u64::saturating_mul)
}

impl Tiled {
    /// The cuts of each tile, one for each size.
    pub(crate) fn coverings(&self) -> Vec<Vec<Cut>> {
        let mut origins = vec![Origin::Merged; self.bounds.len()];
        (0..self.array.rank()).for_each(|dimension| origins[dimension] = Origin::Dimension(dimension));
        // The tile inside whose blocks each axis lies.
        let mut inside: Vec<Option<usize>> = vec![None; self.bounds.len()];
        let mut coverings = Vec::with_capacity(self.tile_ends.len());
        let mut start = 0;
        for (level, &end) in self.tile_ends.iter().enumerate() {
            let mut cuts = Vec::new();
            let mut merging: &[Axis] = &[];
            for step in &self.steps[start..end] {
                match step {
                    Step::Prepend { axis } => origins[*axis] = Origin::Added,
                    Step::Merge { parts, merged } => {
                        merging = parts;
                        let mut different = parts.iter().map(|&part| origins[part]).filter(|&o| o != Origin::Added);
                        let first = different.next().unwrap_or(Origin::Added);
                        origins[*merged] = if different.all(|other| other == first) { first } else { Origin::Merged };
                    }
                    &Step::Split { axis, tile: size, outer, inner } => {
                        let covered = |&axis: &Axis| CoveredAxis {
                            origin: origins[axis],
                            bound: self.bounds[axis],
                            is_across: level > 0 && inside[axis] != Some(level - 1),
                        };
                        let parts = if merging.is_empty() { core::slice::from_ref(&axis) } else { merging };
                        cuts.push(Cut { size, axes: parts.iter().map(covered).collect() });
                        merging = &[];
                        (origins[outer], origins[inner]) = (origins[axis], origins[axis]);
                        inside[inner] = Some(level);
                    }
                }
            }
            coverings.push(cuts);
            start = end;
        }
        coverings
    }

    /// The tiles of the first level that later tiles join; `None` if no tile joins any, or one ends inside a tile.
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[4,8]{1,0:T(2,4)(2,2,1)}".parse()?)?;
    /// let joined = tiled.joined_tiles().expect("two tiles side by side");
    /// assert_eq!((joined.count(), joined.dimensions(), joined.elements_of_each()), (2, &[1][..], 2));
    /// assert_eq!((joined.number_of(&[0, 0])?, joined.number_of(&[1, 7])?, joined.number_of(&[2, 0])?), (0, 0, 1));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn joined_tiles(&self) -> Option<JoinedTiles> {
        let mut joining = Joining {
            numbers: vec![Some(1); self.bounds.len()],
            count: 1,
            dimensions: Vec::new(),
            levels: Vec::new(),
            elements: 1,
        };
        let coverings = self.coverings();
        let mut start = 0;
        for (level, (&end, cuts)) in self.tile_ends.iter().zip(&coverings).enumerate() {
            joining.tile(level, &self.steps[start..end], cuts, &self.bounds)?;
            start = end;
        }
        if joining.levels.is_empty() {
            return None;
        }
        let numbering =
            self.physical_axes.iter().enumerate().filter_map(|(at, &axis)| Some((at, joining.numbers[axis]?)));
        let dimensions: BTreeSet<usize> = joining.dimensions.into_iter().collect();
        Some(JoinedTiles {
            numbering: numbering.collect(),
            tiled: self.clone(),
            count: joining.count,
            dimensions: dimensions.into_iter().collect(),
            levels: joining.levels,
            elements_of_each: joining.elements,
        })
    }
}

/// Tiles of the first level that a later tile joins: its blocks have elements of each.
///
/// Made by [`Tiled::joined_tiles`].
#[derive(Clone, Debug)]
pub struct JoinedTiles {
    tiled: Tiled,
    /// Axes of memory that number the joined tiles, each with the number of positions inside a tile that it counts.
    numbering: Vec<(usize, u64)>,
    count: u64,
    dimensions: Vec<usize>,
    levels: Vec<usize>,
    elements_of_each: u64,
}

impl JoinedTiles {
    /// The number of first-level tiles that are joined.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The logical dimensions along which the tiles are neighbours; empty if `*` merged them.
    #[must_use]
    pub fn dimensions(&self) -> &[usize] {
        &self.dimensions
    }

    /// The tiles of the layout that join them, by number: 1 is the second.
    #[must_use]
    pub fn levels(&self) -> &[usize] {
        &self.levels
    }

    /// The elements of each joined tile in one block of the last joining tile, padding included.
    #[must_use]
    pub fn elements_of_each(&self) -> u64 {
        self.elements_of_each
    }

    /// The number of the group of joined tiles that an element is in, counted along memory.
    ///
    /// # Errors
    /// As for [`Tiled::offset_of`].
    pub fn number_of(&self, index: &[u64]) -> Result<u64, Error> {
        self.number_at(self.tiled.offset_of(index)?)
    }

    /// The number of the group of joined tiles that an offset is in, padding included.
    ///
    /// # Errors
    /// As for [`Tiled::physical_index_of`].
    pub fn number_at(&self, offset: u64) -> Result<u64, Error> {
        let place = self.tiled.physical_index_of(offset)?.unwrap_or_default();
        let bounds = self.tiled.physical_dimensions();
        Ok(self.numbering.iter().fold(0, |number, &(axis, places)| {
            number * bounds[axis].div_ceil(places) + place.get(axis).map_or(0, |at| at / places)
        }))
    }
}

/// Tiles joined so far.
struct Joining {
    /// For each axis that numbers tiles of the first level, the number of positions inside a tile that it counts before
    /// the next one; `None` for axes inside.
    numbers: Vec<Option<u64>>,
    count: u64,
    dimensions: Vec<usize>,
    levels: Vec<usize>,
    elements: u64,
}

impl Joining {
    /// Applies one tile; `None` if it ends inside a tile of the first level.
    fn tile(&mut self, level: usize, steps: &[Step], cuts: &[Cut], bounds: &[u64]) -> Option<()> {
        let mut cuts = cuts.iter();
        let (mut joins, mut elements) = (false, 1_u64);
        let mut merging: &[Axis] = &[];
        for step in steps {
            match step {
                Step::Prepend { .. } => {}
                Step::Merge { parts, merged } => {
                    merging = parts;
                    self.numbers[*merged] = self.merged(parts, bounds)?;
                }
                &Step::Split { axis, tile, outer, inner } => {
                    let cut = cuts.next()?;
                    let parts = if merging.is_empty() { core::slice::from_ref(&axis) } else { merging };
                    merging = &[];
                    self.numbers[inner] = None;
                    if level == 0 {
                        continue;
                    }
                    match self.numbers[axis] {
                        None => {
                            self.numbers[outer] = None;
                            elements = elements.saturating_mul(tile);
                        }
                        Some(places) if tile % places == 0 => {
                            self.numbers[outer] = Some(1);
                            elements = elements.saturating_mul(places);
                            if tile > places && bounds[axis] > places {
                                joins = true;
                                self.join(tile / places, parts, cut);
                            }
                        }
                        Some(places) if places % tile == 0 => {
                            self.numbers[outer] = Some(places / tile);
                            elements = elements.saturating_mul(tile);
                        }
                        Some(_) => return None,
                    }
                }
            }
        }
        if joins {
            self.levels.push(level);
            self.elements = elements;
        }
        Some(())
    }

    /// Joins `count` tiles: neighbours along the most minor dimension that numbers them and, beyond its bound, along
    /// the next.
    fn join(&mut self, mut count: u64, parts: &[Axis], cut: &Cut) {
        self.count = self.count.saturating_mul(count);
        let numbers =
            parts.iter().zip(&cut.axes).filter(|(part, axis)| self.numbers[**part].is_some() && axis.bound > 1);
        for (_, axis) in numbers.rev() {
            if count > 1 {
                self.dimensions.extend(axis.origin.dimension());
            }
            count = count.div_ceil(axis.bound);
        }
    }

    /// The numbering of the axes that `*` merges; `None` if an axis that numbers tiles is more minor than one inside.
    fn merged(&self, parts: &[Axis], bounds: &[u64]) -> Option<Option<u64>> {
        let mut merged = None;
        for &part in parts.iter().filter(|&&part| bounds[part] > 1) {
            merged = Some(match (merged, self.numbers[part]) {
                (None, own) | (Some(Some(1)), own @ Some(_)) => own,
                (Some(places), None) => places.map(|places: u64| places.saturating_mul(bounds[part])),
                (Some(_), Some(_)) => return None,
            });
        }
        Some(merged.flatten())
    }
}

impl Origin {
    pub(crate) fn dimension(self) -> Option<usize> {
        match self {
            Self::Dimension(dimension) => Some(dimension),
            Self::Added | Self::Merged => None,
        }
    }
}
