//! Layouts that make a reshape or a transpose free, or the obstacles to them.

use crate::{
    Dimension, Error, ErrorKind, Layout, Shape, Tile, Tiled, checked,
    inline::InlineVec,
    layout::{first_not_in_permutation, not_a_permutation},
    positions::Positions,
    tiled::Step,
    tpu::LANES,
};
use alloc::{format, string::ToString, vec, vec::Vec};
use core::fmt;

/// Maximum number of orders tried for one choice of tiles.
const MAX_ORDERS: usize = 10_000;

/// Rows of the tallest tile that a TPU packs: 8 sublanes of four one-byte elements each.
const MOST_ROWS: u64 = 32;

/// Maximum number of dimensions under a tile whose orders are tried.
const MAX_COVERED: usize = 8;

/// The layouts that make a reshape free, or the obstacles if there aren't any. Made by [`Shape::free_reshape`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FreeReshape {
    /// The reshaped array in each layout that needs no bytes to move, those with the array's own tiles first. Dimensions of size 1
    /// may also stand elsewhere.
    pub layouts: Vec<Shape>,
    /// The splits and merges that are not free by themselves; empty if there are [`layouts`](Self::layouts).
    pub obstacles: Vec<ReshapeObstacle>,
}

/// The reason that splitting a dimension, or merging two, moves bytes. `Display` gives a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReshapeObstacle {
    /// The minor part is no multiple of the tile.
    Cut {
        /// The dimension to split.
        dimension: usize,
        /// The size of the parts more minor than the cut.
        size: u64,
        /// The tile along the dimension.
        tile: u64,
    },
    /// Tiles of another dimension lie between the parts.
    Between {
        /// The dimension to split.
        dimension: usize,
        /// The size of the parts more minor than the cut.
        size: u64,
    },
    /// The two dimensions are not adjacent in memory.
    Apart {
        /// The major dimension to merge.
        major: usize,
        /// The minor one.
        minor: usize,
    },
    /// Padding follows each row of the minor dimension.
    Padded {
        /// The major dimension to merge.
        major: usize,
        /// The minor one.
        minor: usize,
        /// The minor one's bound.
        bound: u64,
        /// The minor one's bound with its padding.
        padded: u64,
    },
    /// A tile takes several rows of the major dimension.
    Rows {
        /// The major dimension to merge.
        major: usize,
        /// The minor one.
        minor: usize,
        /// The rows of the major dimension that a tile takes.
        tile: u64,
    },
    /// A `*` or a later tile mixes dimensions in another way.
    Mixed {
        /// The first dimension concerned.
        dimension: usize,
    },
}

impl fmt::Display for ReshapeObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { dimension, size, tile } => {
                write!(f, "splitting dimension {dimension} by {size} cuts a tile of {tile}")
            }
            Self::Between { dimension, size } => {
                write!(f, "splitting dimension {dimension} by {size}: tiles of another dimension lie between the parts")
            }
            Self::Apart { major, minor } => {
                write!(f, "merging dimensions {major} and {minor}: they are not adjacent in memory")
            }
            Self::Padded { major, minor, bound, padded } => write!(
                f,
                "merging dimensions {major} and {minor}: dimension {minor} (size {bound}) is padded to {padded}, between rows"
            ),
            Self::Rows { major, minor, tile } => write!(
                f,
                "merging dimensions {major} and {minor}: a tile takes {tile} rows of dimension {major} before the rest of a row"
            ),
            Self::Mixed { dimension } => write!(f, "the tiles mix dimension {dimension} with others"),
        }
    }
}

impl Shape {
    /// The layout that makes a transpose free: the array with dimension k being this one's dimension `permutation[k]`, every element
    /// where it is.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnArray`], [`ErrorKind::MissingLayout`], [`ErrorKind::NotAPermutation`].
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let shape: Shape = "bf16[16,300,500]{2,1,0:T(8,128)(2,1)}".parse()?;
    /// assert_eq!(shape.free_transpose(&[1, 2, 0])?.to_string(), "bf16[300,500,16]{1,0,2:T(8,128)(2,1)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn free_transpose(&self, permutation: &[usize]) -> Result<Self, Error> {
        let array = self.array_or_error()?;
        let layout = array.layout().ok_or_else(missing_layout)?;
        let rank = array.rank();
        if let Some(at) = first_not_in_permutation(permutation) {
            let number = permutation[at];
            return Err(not_a_permutation(&format!("{number}"), number < permutation.len(), rank));
        }
        if permutation.len() != rank {
            let message = format!("{} dimensions are named, the array has {rank}", permutation.len());
            return Err(Error::new(ErrorKind::NotAPermutation, message));
        }
        let mut place = vec![0; rank];
        permutation.iter().enumerate().for_each(|(at, &dimension)| place[dimension] = at);
        let mut layout = layout.clone();
        layout.minor_to_major = layout.minor_to_major.iter().map(|&dimension| place[dimension]).collect();
        let dimensions = permutation.iter().map(|&dimension| array.dimensions()[dimension]);
        Self::dynamic_array(array.element_type(), dimensions)?.with_layout(layout)
    }

    /// The layouts that make a reshape to these bounds free: any order of the dimensions, with the array's own tiles,
    /// these with another number of rows, a tile of one dimension, or no tiles.
    ///
    /// # Errors
    /// As for [`Tiled::new`]; [`ErrorKind::BufferLengthMismatch`] for bounds of another number of elements; [`ErrorKind::Undecided`]
    /// where a tile covers more than 8 dimensions, or there are more than 10,000 orders to try.
    ///
    /// ```
    /// use tilewise::Shape;
    ///
    /// let shape: Shape = "bf16[8,512,768]{1,2,0:T(8,128)(2,1)}".parse()?;
    /// let heads = shape.free_reshape(&[8, 512, 12, 64])?;
    /// assert_eq!(heads.layouts[0].to_string(), "bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}");
    ///
    /// let halves = shape.free_reshape(&[8, 512, 192, 4])?;
    /// assert_eq!(halves.obstacles[0].to_string(), "splitting dimension 2 by 4 cuts a tile of 8");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn free_reshape(&self, bounds: &[u64]) -> Result<FreeReshape, Error> {
        let from = Tiled::new(self)?;
        let count = |bounds: &[u64]| checked::product(bounds.iter().copied());
        let [own, wanted] = [from.logical_dimensions(), bounds].map(count);
        if own != wanted {
            let [own, wanted] = [own, wanted]
                .map(|count| count.map_or_else(|| "more than 2^64".to_string(), |count| count.to_string()));
            let message = format!("{own} elements can't be reshaped to {wanted}");
            return Err(Error::new(ErrorKind::BufferLengthMismatch, message));
        }
        let mut layouts: Vec<Self> = Vec::new();
        for tiles in from.tile_choices(bounds.len()) {
            let Some(covered) = from.covered(bounds.len(), &tiles) else { continue };
            for order in from.orders(bounds, covered)? {
                let candidate = from.relaid(bounds, &tiles, &order)?;
                if !layouts.contains(&candidate) && from.is_reshape_of(&candidate)? {
                    layouts.push(candidate);
                }
            }
        }
        let obstacles = if layouts.is_empty() { from.obstacles(bounds) } else { Vec::new() };
        Ok(FreeReshape { layouts, obstacles })
    }
}

impl Tiled {
    /// The tiles to try: the array's own; these with other rows; as a tile of one dimension, or such a tile as rows;
    /// none.
    fn tile_choices(&self, rank: usize) -> Vec<InlineVec<Tile, 3>> {
        let Some(layout) = self.array().layout() else { return Vec::new() };
        let own = &layout.tiles;
        let mut choices = vec![own.clone()];
        let mut offer = |tiles: &[&[u64]], packed: &[Tile]| {
            let tiles = tiles.iter().filter_map(|sizes| Tile::new(sizes.iter().copied()).ok());
            let choice: InlineVec<Tile, 3> = tiles.chain(packed.iter().cloned()).collect();
            if !choices.contains(&choice) {
                choices.push(choice);
            }
        };
        let sizes =
            |tile: &Tile| tile.dimensions().iter().map(|dimension| dimension.size()).collect::<Option<Vec<u64>>>();
        // A TPU packs a tile of one dimension within rows of lanes, `T(1024)(128)(2,1)`, and tiles of rows at once, `T(8,128)(2,1)`.
        let all: Option<Vec<Vec<u64>>> = own.iter().map(sizes).collect();
        let (size, columns, packed) = match all.as_deref() {
            Some([first, ..]) if first.len() == 2 => (first[0].saturating_mul(first[1]), first[1], &own[1..]),
            Some([first, second, ..]) if first.len() == 1 && second.len() == 1 => (first[0], second[0], &own[2..]),
            Some([first]) if first.len() == 1 => (first[0], LANES.min(first[0]), &[][..]),
            _ => (0, 1, &[][..]),
        };
        let own_rows = size.checked_div(columns).unwrap_or(0);
        let most = own_rows.max(MOST_ROWS);
        let powers =
            || core::iter::successors(Some(1_u64), |rows| rows.checked_mul(2)).take_while(|&rows| rows <= most);
        let rows: Vec<u64> = if size == 0 { Vec::new() } else { powers().collect() };
        // Nearest to the array's own first: fewer rows, then more.
        let (mut fewer, more): (Vec<u64>, Vec<u64>) = rows.into_iter().partition(|&rows| rows <= own_rows);
        fewer.reverse();
        for rows in fewer.into_iter().chain(more) {
            let row = rows.saturating_mul(columns);
            match rank {
                0 => {}
                1 if packed.is_empty() => offer(&[&[row]], packed),
                1 => offer(&[&[row], &[columns]], packed),
                _ => offer(&[&[rows, columns]], packed),
            }
            if (rank, rows) == (1, 1) {
                offer(&[&[1, columns]], packed);
            }
        }
        if !own.is_empty() {
            offer(&[], &[]);
        }
        choices
    }

    /// Orders of the dimensions of the reshaped array, minor → major: every order of the few that a tile covers, the
    /// others by their strides in this array.
    fn orders(&self, bounds: &[u64], covered: usize) -> Result<Vec<Vec<usize>>, Error> {
        let mut strides = vec![(u128::MAX, 0); bounds.len()];
        let (positions, mut weight) = (Positions::new(self), 1_u128);
        for (dimension, &bound) in bounds.iter().enumerate().rev() {
            let stride = if bound > 1 && weight < positions.count() { positions.offset(weight)? } else { u128::MAX };
            strides[dimension] = (stride, bounds.len() - dimension);
            weight = weight.saturating_mul(u128::from(bound.max(1)));
        }
        if covered > MAX_COVERED {
            return Err(too_many_orders());
        }
        let mut by_stride: Vec<usize> = (0..bounds.len()).collect();
        by_stride.sort_by_key(|&dimension| strides[dimension]);
        let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
        for _ in 0..covered {
            let mut longer = Vec::new();
            for order in &orders {
                // One dimension of size 1 stands for all: the last that is left.
                let left = by_stride.iter().filter(|dimension| !order.contains(dimension));
                let unit = left.clone().filter(|&&dimension| bounds[dimension] == 1).max();
                for &dimension in left.filter(|&&dimension| bounds[dimension] != 1).chain(unit) {
                    longer.push(order.iter().copied().chain([dimension]).collect());
                }
                if longer.len() > MAX_ORDERS {
                    return Err(too_many_orders());
                }
            }
            orders = longer;
        }
        for order in &mut orders {
            let rest: Vec<usize> = by_stride.iter().filter(|dimension| !order.contains(dimension)).copied().collect();
            order.extend(rest);
        }
        Ok(orders)
    }

    /// The array with other bounds, tiles and order, and without splits.
    fn relaid(&self, bounds: &[u64], tiles: &InlineVec<Tile, 3>, order: &[usize]) -> Result<Shape, Error> {
        let mut layout = self.array().layout().cloned().unwrap_or_else(|| Layout::row_major(0));
        layout.minor_to_major = order.iter().copied().collect();
        layout.tiles = tiles.clone();
        layout.split_configs = Vec::new();
        let dimensions: Result<Vec<Dimension>, Error> = bounds.iter().map(|&bound| Dimension::fixed(bound)).collect();
        Shape::dynamic_array(self.array().element_type(), dimensions?)?.with_layout(layout)
    }

    /// The number of the most minor of `rank` dimensions that the tiles change, whatever the bounds; `None` if even a
    /// single element would take more than any buffer.
    fn covered(&self, rank: usize, tiles: &InlineVec<Tile, 3>) -> Option<usize> {
        let order: Vec<usize> = (0..rank).rev().collect();
        let one = self.relaid(&vec![1; rank], tiles, &order).ok()?;
        Some(rank - Self::new(&one).ok()?.untiled_dimensions())
    }

    fn is_reshape_of(&self, other: &Shape) -> Result<bool, Error> {
        // Tiles can make an array too large for any buffer; then it is not this one.
        let Ok(other) = Self::new(other) else { return Ok(false) };
        Ok(self.physical_elements() == other.physical_elements()
            && Positions::new(self).first_difference(&Positions::new(&other))?.is_none())
    }

    /// The obstacle to each split and merge.
    fn obstacles(&self, bounds: &[u64]) -> Vec<ReshapeObstacle> {
        let mut obstacles = Vec::new();
        for (own, wanted) in common_factors(self.logical_dimensions(), bounds) {
            let (Some(&first), true) = (own.first(), own.len() + wanted.len() > 2) else { continue };
            let before = obstacles.len();
            for pair in own.windows(2) {
                obstacles.extend(self.merge_obstacle(pair[0], pair[1]));
            }
            if own.len() == 1 {
                let mut size = 1_u64;
                for &dimension in wanted.iter().skip(1).rev() {
                    size = size.saturating_mul(bounds[dimension]);
                    let tile = self.tile_along(first);
                    obstacles.push(match size.checked_rem(tile) {
                        Some(0) => ReshapeObstacle::Between { dimension: first, size },
                        _ => ReshapeObstacle::Cut { dimension: first, size, tile },
                    });
                }
                // If a split cuts a tile, the splits that don't are no obstacles of their own.
                let cuts = |obstacle: &ReshapeObstacle| matches!(obstacle, ReshapeObstacle::Cut { .. });
                if obstacles[before..].iter().any(cuts) {
                    let own = obstacles.split_off(before);
                    obstacles.extend(own.into_iter().filter(cuts));
                }
            }
            if obstacles.len() == before {
                obstacles.push(ReshapeObstacle::Mixed { dimension: first });
            }
        }
        obstacles
    }

    fn merge_obstacle(&self, major: usize, minor: usize) -> Option<ReshapeObstacle> {
        let bounds = self.logical_dimensions();
        let place = |wanted: usize| {
            let mut order = self.array().major_to_minor().filter(|&dimension| bounds[dimension] > 1);
            order.position(|dimension| dimension == wanted)
        };
        let (bound, tile, rows) = (bounds[minor], self.tile_along(minor), self.tile_along(major));
        let padded = checked::round_up(bound, tile).unwrap_or(bound);
        if place(major)? + 1 != place(minor)? {
            Some(ReshapeObstacle::Apart { major, minor })
        } else if padded != bound {
            Some(ReshapeObstacle::Padded { major, minor, bound, padded })
        } else {
            (rows > 1).then_some(ReshapeObstacle::Rows { major, minor, tile: rows })
        }
    }

    /// The size of the first tile that cuts a dimension by itself; 1 without one.
    fn tile_along(&self, dimension: usize) -> u64 {
        let cuts = self.steps.iter().filter_map(|step| match step {
            Step::Split { axis, tile, .. } if *axis == dimension => Some(*tile),
            _ => None,
        });
        cuts.into_iter().next().unwrap_or(1)
    }
}

/// Groups the dimensions of two lists of bounds into the smallest groups of equal products. Dimensions of size 1 are
/// left out.
fn common_factors(own: &[u64], wanted: &[u64]) -> Vec<(Vec<usize>, Vec<usize>)> {
    let significant = |bounds: &[u64]| -> Vec<(usize, u64)> {
        bounds.iter().copied().enumerate().filter(|(_, bound)| *bound > 1).collect()
    };
    let (own, wanted) = (significant(own), significant(wanted));
    let (mut own, mut wanted) = (own.into_iter(), wanted.into_iter());
    let mut groups = Vec::new();
    while let (Some((first, mut product)), Some((second, mut other))) = (own.next(), wanted.next()) {
        let mut group = (vec![first], vec![second]);
        while product != other {
            let (side, numbers, reached) = if product < other {
                (&mut own, &mut group.0, &mut product)
            } else {
                (&mut wanted, &mut group.1, &mut other)
            };
            let Some((dimension, bound)) = side.next() else { return groups };
            numbers.push(dimension);
            *reached = reached.saturating_mul(bound);
        }
        groups.push(group);
    }
    groups
}

fn too_many_orders() -> Error {
    Error::new(ErrorKind::Undecided, "a tile covers too many dimensions to try all their orders")
}

fn missing_layout() -> Error {
    Error::new(ErrorKind::MissingLayout, "the shape was written without a layout, so where it lies is not known")
}
