//! The array grown to whole tiles, so that padding has a place in the picture; and which block of each tile a place belongs to.
//!
//! Everything asks [`Tiled`]. Padding a dimension to its first tile by hand changes no offset, and neither does a leading dimension
//! of size 1 for a tile that is longer than the rank: so the grown array's own layout tells the offsets of padding. And after
//! the first k tiles, the elements of one block of tile k lie together: so the layout cut off behind tile k numbers its blocks.

use tilewise::{Layout, Shape, Tile, Tiled};

/// Tiles of one layout whose outlines are told apart.
pub(crate) const LEVELS: usize = 3;

/// Tiles longer than the rank by more than this add no dimensions to the picture.
const MOST_ADDED: usize = 6;

/// Which block of each tile a place belongs to; [`NOWHERE`] for deeper tiles than there are, and for padding inside tiles.
pub(crate) type Blocks = [u64; LEVELS];

/// The block of what is in none.
pub(crate) const NOWHERE: u64 = u64::MAX;

/// An index along axes, each with its bound.
pub(crate) type Axes = Vec<(u64, u64)>;

/// An array with its padding made part of it.
pub(crate) struct Whole {
    tiled: Tiled,
    /// How many dimensions stand in front of the array's own.
    added: usize,
    /// The array's own bounds, behind a 1 for each added dimension.
    bounds: Vec<u64>,
    levels: Vec<Level>,
}

/// The layout as far as one of its tiles.
pub(crate) struct Level {
    tiled: Tiled,
    /// The tile as it is written.
    pub(crate) text: String,
    /// How many axes the tile adds to memory.
    pub(crate) axes: usize,
    /// Elements in one block of the tile.
    pub(crate) elements: u64,
}

impl Whole {
    pub(crate) fn of(tiled: &Tiled) -> Self {
        let longest = tiles(tiled).first().map_or(0, |tile| tile.dimensions().len());
        let added = match longest.saturating_sub(tiled.array().rank()) {
            added @ ..=MOST_ADDED => added,
            _ => 0,
        };
        let mut bounds = vec![1; added];
        bounds.extend(tiled.logical_dimensions());
        // A layout that can't be extended is drawn without its padding.
        let (tiled, added, bounds) = match with_bounds(tiled, added, &bounds) {
            Some(longer) => (grown(&longer, &bounds).unwrap_or(longer), added, bounds),
            None => (tiled.clone(), 0, tiled.logical_dimensions().to_vec()),
        };
        let levels = levels(&tiled);
        Self { tiled, added, bounds, levels }
    }

    /// The bounds with padding, by dimension number, the added ones first.
    pub(crate) fn extents(&self) -> &[u64] {
        self.tiled.logical_dimensions()
    }

    /// The bounds without padding.
    pub(crate) fn bounds(&self) -> &[u64] {
        &self.bounds
    }

    pub(crate) fn added(&self) -> usize {
        self.added
    }

    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Dimension numbers from the fastest-varying to the slowest.
    pub(crate) fn minor_to_major(&self) -> impl Iterator<Item = usize> + '_ {
        self.tiled.array().major_to_minor().rev()
    }

    /// Where an element of the array stands in the grown array.
    pub(crate) fn place(&self, index: &[u64]) -> Vec<u64> {
        let mut place = vec![0; self.added];
        place.extend(index);
        place
    }

    /// The element that stands there, or `None` for padding.
    pub(crate) fn index(&self, place: &[u64]) -> Option<Vec<u64>> {
        let inside = place.iter().zip(&self.bounds).all(|(at, bound)| at < bound);
        inside.then(|| place[self.added..].to_vec())
    }

    pub(crate) fn offset(&self, place: &[u64]) -> Option<u64> {
        self.tiled.offset_of(place).ok()
    }

    /// The place at an offset; `None` inside padding of later tiles, and in the tail.
    pub(crate) fn place_at(&self, offset: u64) -> Option<Vec<u64>> {
        self.tiled.index_of(offset).ok().flatten()
    }

    pub(crate) fn blocks(&self, place: &[u64]) -> Blocks {
        let mut blocks = [NOWHERE; LEVELS];
        for (block, level) in blocks.iter_mut().zip(&self.levels) {
            *block = level.block(place);
        }
        blocks
    }

    /// How far a block of a tile reaches along a dimension from 0, by asking where the block changes.
    pub(crate) fn reach(&self, level: usize, dimension: usize) -> u64 {
        let extent = self.extents()[dimension];
        let Some(level) = self.levels.get(level) else { return extent };
        let mut place = vec![0; self.extents().len()];
        let first = level.block(&place);
        let mut same = |at: u64| {
            place[dimension] = at;
            level.block(&place) == first
        };
        let (mut inside, mut outside) = (0, 1);
        while outside < extent && same(outside) {
            inside = outside;
            outside *= 2;
        }
        outside = outside.min(extent);
        while outside - inside > 1 {
            let middle = inside + (outside - inside) / 2;
            if same(middle) { inside = middle } else { outside = middle }
        }
        outside
    }
}

impl Level {
    fn block(&self, place: &[u64]) -> u64 {
        self.tiled.offset_of(place).map_or(NOWHERE, |offset| offset / self.elements)
    }

    /// Which tile an element is in, and where inside it: the index along the axes of memory after this tile, cut in front of the
    /// tile's own axes; each with the bounds.
    pub(crate) fn index_in_tile(&self, place: &[u64]) -> Option<(Axes, Axes)> {
        let offset = self.tiled.offset_of(place).ok()?;
        let index = self.tiled.physical_index_of(offset).ok()??;
        let mut outer: Vec<_> = index.into_iter().zip(self.tiled.physical_dimensions().iter().copied()).collect();
        let inner = outer.split_off(outer.len().checked_sub(self.axes)?);
        Some((outer, inner))
    }
}

fn tiles(tiled: &Tiled) -> &[Tile] {
    tiled.array().layout().map_or(&[], Layout::tiles)
}

/// The layout of an array with leading dimensions added, and other bounds.
fn with_bounds(tiled: &Tiled, added: usize, bounds: &[u64]) -> Option<Tiled> {
    let layout = tiled.array().layout()?;
    let own = layout.minor_to_major().iter().map(|dimension| dimension + added);
    let order: Vec<usize> = own.chain((0..added).rev()).collect();
    let layout = Layout::new(order).ok()?.with_tiles(layout.tiles().iter().cloned()).ok()?;
    let layout = layout.with_element_size_in_bits(tiled.array().layout()?.element_size_in_bits().unwrap_or(0)).ok()?;
    let shape = Shape::array(tiled.array().element_type(), bounds.iter().copied()).ok()?.with_layout(layout).ok()?;
    Tiled::new(&shape).ok().filter(|new| new.tiled_elements() == tiled.tiled_elements())
}

/// The same with each dimension that the first tile pads as long as its padding.
fn grown(tiled: &Tiled, bounds: &[u64]) -> Option<Tiled> {
    let mut bounds = bounds.to_vec();
    for axis in tiled.padded_axes() {
        if let ([dimension], 0) = (&axis.dimensions[..], axis.level) {
            *bounds.get_mut(*dimension)? = axis.padded;
        }
    }
    with_bounds(tiled, 0, &bounds).filter(|grown| grown.physical_dimensions() == tiled.physical_dimensions())
}

fn levels(tiled: &Tiled) -> Vec<Level> {
    let mut levels = Vec::new();
    let Some(layout) = tiled.array().layout() else { return levels };
    for (last, tile) in layout.tiles().iter().enumerate().take(LEVELS) {
        let tiles = layout.tiles()[..=last].iter().cloned();
        let tiled = layout
            .clone()
            .with_tiles(tiles)
            .ok()
            .and_then(|layout| Tiled::new(&Shape::from(tiled.array().clone()).with_layout(layout).ok()?).ok());
        let sizes = tile.dimensions().iter().filter_map(|dimension| dimension.size());
        let axes = sizes.clone().count();
        let elements = sizes.fold(1, u64::saturating_mul);
        let Some(tiled) = tiled else { break };
        levels.push(Level { tiled, text: tile.to_string(), axes, elements });
    }
    levels
}
