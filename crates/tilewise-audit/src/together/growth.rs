//! Sizes of arrays with another number of pages.

use tilewise::{
    ElementType, Shape,
    tpu::{Generation, allocated_bytes, default_layout},
};

/// Tells which arrays grow with a cache.
#[derive(Clone, Debug)]
pub(super) struct Growth {
    /// Number of pages.
    pub(super) count: u64,
    /// Numbers of elements of each page array, and of one layer of it.
    elements: Vec<u64>,
}

impl Growth {
    pub(super) fn of<'a>(arrays: impl Iterator<Item = &'a Shape>, dimension: usize, count: u64) -> Self {
        let elements = |shape: &Shape| {
            let bounds: Vec<u64> = shape.dimensions().iter().filter_map(|it| it.bound()).collect();
            [product(&bounds), product(bounds.get(dimension..).unwrap_or_default())]
        };
        let mut elements: Vec<u64> = arrays.flat_map(elements).collect();
        elements.sort_unstable();
        elements.dedup();
        Self { count, elements }
    }

    /// Bytes of an array that grows with the cache, with `count` pages; `None` for other arrays.
    ///
    /// It grows if it has as many elements as a page array, or as one layer of it, and the size of a dimension is the
    /// number of pages, or a multiple of it.
    pub(super) fn resized(&self, shape: &Shape, count: u64) -> Option<u64> {
        let bounds: Vec<u64> = shape.dimensions().iter().map(|it| it.bound()).collect::<Option<_>>()?;
        self.elements.binary_search(&product(&bounds)).ok()?;
        let exact = bounds.iter().position(|bound| *bound == self.count);
        let at = exact.or_else(|| bounds.iter().position(|bound| bound.is_multiple_of(self.count)))?;
        bytes_with(shape, at, (bounds[at] / self.count).checked_mul(count)?)
    }
}

fn product(bounds: &[u64]) -> u64 {
    bounds.iter().fold(1, |all, bound| all.saturating_mul(*bound))
}

/// Bytes of an array with one dimension resized, in the same layout.
pub(super) fn bytes_with(shape: &Shape, dimension: usize, size: u64) -> Option<u64> {
    if size == 0 {
        return Some(0);
    }
    let (element_type, layout) = (shape.element_type()?, shape.layout()?);
    let resized = Shape::array(element_type, bounds_with(shape, dimension, size)?).ok()?;
    allocated_bytes(resized.with_layout(layout.clone()).ok()?.as_array()?).ok()
}

/// Bytes of the resized array with 8-bit elements in the compiler's layout: with the same dimensions or, if smaller,
/// with the rows that share a word in one dimension, as caches are packed. `None` if its elements have 8 bits or fewer.
pub(super) fn narrow_bytes(shape: &Shape, dimension: usize, size: u64, generation: Generation) -> Option<u64> {
    if size == 0 {
        return Some(0);
    }
    let ratio = u64::from(shape.element_type()?.bits()) / 8;
    let bounds = bounds_with(shape, dimension, size)?;
    let bytes = |bounds: &[u64]| {
        let shape = default_layout(ElementType::S8, bounds, generation).ok()?;
        allocated_bytes(shape.as_array()?).ok()
    };
    let same = (ratio > 1).then(|| bytes(&bounds)).flatten()?;
    let packed = bounds.len().checked_sub(3).filter(|at| *at != dimension && bounds[*at].is_multiple_of(ratio));
    let packed = packed.and_then(|at| {
        let mut packed = bounds.clone();
        packed[at] /= ratio;
        packed[at + 1] = packed[at + 1].checked_mul(ratio)?;
        bytes(&packed)
    });
    Some(packed.map_or(same, |packed| packed.min(same)))
}

fn bounds_with(shape: &Shape, dimension: usize, size: u64) -> Option<Vec<u64>> {
    let mut bounds: Vec<u64> = shape.dimensions().iter().map(|it| it.bound()).collect::<Option<_>>()?;
    *bounds.get_mut(dimension)? = size;
    Some(bounds)
}
