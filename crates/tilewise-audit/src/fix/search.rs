//! The alternatives, and their prices.

use super::{
    change::{BATCH, Candidate, Change, LANES},
    fixes::NewArray,
    ranking,
    target::Target,
};
use std::ops::Range;
use tilewise::{Dimension, ElementType, Shape, tpu};

/// The most arrays one is split into.
const MAX_PARTS: u64 = 16;
/// Arrays with more data than one register fill tiles of their own, and are not batched.
const REGISTER_BYTES: u64 = 4096;
/// The most reshapes tried of one sort: all of them up to rank 8.
const MAX_RESHAPES: usize = 32;
/// Above this rank only the two reshapes without a choice are tried. No program is known to come near.
const MAX_RANK: usize = 16;
/// Dimensions below this mean something of their own (axes, colours, offsets), and are not resized.
const LEAST_RESIZED: u64 = 32;

impl Target<'_> {
    /// The best change of each kind.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        if self.is_stored_wide() {
            // The array's compiler is not the one whose rule is known; only what the wide elements cost can be told.
            if self.array.element_type() == ElementType::Pred {
                self.consider(Change::Byte, &mut found);
            }
            return found;
        }
        self.orders(&mut found);
        if !self.is_dynamic() {
            self.reshapes(&mut found);
            // Beside a simpler change that frees as much, neither would be shown.
            let tight = found.iter().any(|c| {
                c.after <= self.baseline.sizes.logical_bytes.saturating_add(self.baseline.sizes.logical_bytes / 50)
            });
            if !(tight && self.baseline.has_default_order) {
                self.splits(&mut found);
            }
            if !tight && self.baseline.sizes.logical_bytes <= REGISTER_BYTES {
                self.consider(Change::Batch, &mut found);
            }
            self.resizes(&mut found);
        }
        if let Some(to) = narrower(self.array.element_type()) {
            self.consider(Change::Narrow { to }, &mut found);
        }
        found
    }

    fn orders(&self, found: &mut Vec<Candidate>) {
        let Some(default) = self.default_layout.layout().filter(|_| !self.baseline.has_default_order) else { return };
        self.consider(Change::Order, found);
        let permutation: Vec<usize> = default.minor_to_major().iter().rev().copied().collect();
        // Otherwise nothing moves: the default is row-major.
        if !permutation.is_sorted() {
            self.consider(Change::Transpose { permutation }, found);
        }
    }

    /// The simplest first, since of near equals the first is kept.
    fn reshapes(&self, found: &mut Vec<Candidate>) {
        let rank = self.bounds.len();
        let wide = self.bounds.iter().filter(|&&bound| bound != 1).count();
        if rank < 2 || wide == 0 {
            return;
        }
        if wide < rank {
            self.consider(Change::Squeeze, found);
        }
        // Neighbours from the last on, then runs of three, but never all.
        let longest = if rank > MAX_RANK { 0 } else { rank - 1 };
        let runs = |shortest: usize| {
            (shortest..=longest).flat_map(move |length| (0..=rank - length).rev().map(move |at| at..at + length))
        };
        // Merging with a dimension of size 1 is squeezing it.
        let merges = |run: &Range<usize>| self.bounds[run.clone()].iter().filter(|&&bound| bound != 1).count() > 1;
        for run in runs(2).filter(merges).take(MAX_RESHAPES) {
            self.consider(Change::Merge { run }, found);
        }
        for run in runs(1).filter(|run| run.start > 0).take(MAX_RESHAPES) {
            if let Some(rows) = self.rows_to_fold(&run) {
                self.consider(Change::Fold { run, rows }, found);
            }
        }
        if wide > 1 {
            self.consider(Change::Merge { run: 0..rank }, found);
        }
    }

    /// How many indices of the dimension before the run make its size a multiple of the lanes.
    fn rows_to_fold(&self, run: &Range<usize>) -> Option<u64> {
        let size = self.bounds[run.clone()].iter().try_fold(1u64, |product, &bound| product.checked_mul(bound))?;
        let rows = LANES >> size.trailing_zeros().min(LANES.trailing_zeros());
        let before = self.bounds[run.start - 1];
        (rows > 1 && before > rows && before.is_multiple_of(rows)).then_some(rows)
    }

    fn splits(&self, found: &mut Vec<Candidate>) {
        if self.bounds.len() < 2 {
            return;
        }
        for (dimension, &bound) in self.bounds.iter().enumerate().rev() {
            // Where tiles of the lanes, of bytes, of words and of fewer rows end.
            for at in [LANES, 32, 8, 4].map(|tile| bound - bound % tile) {
                if 0 < at && at < bound {
                    self.consider(Change::Cut { dimension, at }, found);
                }
            }
        }
        for (dimension, &bound) in self.bounds.iter().enumerate().rev() {
            if (2..=MAX_PARTS).contains(&bound) {
                self.consider(Change::Unstack { dimension }, found);
            }
        }
    }

    fn resizes(&self, found: &mut Vec<Candidate>) {
        for (dimension, &bound) in self.bounds.iter().enumerate().rev() {
            // The least change first.
            for to in [8, 16, 32, LANES].map(|tile| bound - bound % tile) {
                if bound >= LEAST_RESIZED && to < bound && bound - to <= bound / 8 {
                    self.consider(Change::Resize { dimension, to }, found);
                }
            }
        }
    }

    /// Prices a change, and keeps it unless another of its kind is near.
    fn consider(&self, change: Change, found: &mut Vec<Candidate>) {
        let Some(candidate) = self.price(change) else { return };
        if !ranking::is_worthwhile(&candidate, self.baseline) {
            return;
        }
        match found.iter_mut().find(|known| known.kind() == candidate.kind()) {
            None => found.push(candidate),
            Some(known) if known.after <= candidate.after => {}
            Some(known) if self.baseline.is_as_tight(known.after, candidate.after) => {}
            Some(known) => *known = candidate,
        }
    }

    /// `None` where there is nothing to predict, as beyond 2^63 − 1 bytes.
    fn price(&self, change: Change) -> Option<Candidate> {
        let arrays = self.arrays(&change)?;
        let (mut after, mut logical) = (0u64, 0u64);
        for NewArray { shape, count } in &arrays {
            let sizes = shape.as_array()?.sizes().ok()?;
            after = after.checked_add(sizes.physical_bytes.checked_mul(*count)?)?;
            logical = logical.checked_add(sizes.logical_bytes.checked_mul(*count)?)?;
        }
        if matches!(change, Change::Batch) {
            (after, logical) = (after.div_ceil(BATCH), self.baseline.sizes.logical_bytes);
        }
        Some(Candidate { change, arrays, after, logical })
    }

    /// What takes the array's place.
    fn arrays(&self, change: &Change) -> Option<Vec<NewArray>> {
        let one = |shape| Some(vec![NewArray { shape, count: 1 }]);
        let with = |dimension: usize, bound| {
            let mut bounds = self.bounds.to_vec();
            bounds[dimension] = bound;
            bounds
        };
        let same_order = |bounds: &[u64]| self.same_order(self.array.element_type(), bounds, self.order());
        match *change {
            Change::Order => one(self.with_dimensions(self.default_layout.clone(), self.array.dimensions())?),
            Change::Transpose { ref permutation } => {
                let dimensions: Vec<_> = permutation.iter().map(|&d| self.array.dimensions()[d]).collect();
                let bounds: Vec<u64> = permutation.iter().map(|&d| self.bounds[d]).collect();
                one(self.with_dimensions(self.laid_out(&bounds)?, &dimensions)?)
            }
            Change::Squeeze => {
                one(self.laid_out(&self.bounds.iter().copied().filter(|&b| b != 1).collect::<Vec<_>>())?)
            }
            Change::Merge { ref run } => one(self.laid_out(&self.merged(run, 1)?)?),
            Change::Fold { ref run, rows } => one(self.laid_out(&self.merged(run, rows)?)?),
            Change::Unstack { dimension } => {
                let mut bounds = self.bounds.to_vec();
                let count = bounds.remove(dimension);
                let order = self.order().iter().filter(|&&d| d != dimension).map(|&d| d - usize::from(d > dimension));
                let order: Vec<usize> = order.collect();
                Some(vec![NewArray { shape: self.same_order(self.array.element_type(), &bounds, &order)?, count }])
            }
            Change::Cut { dimension, at } => [at, self.bounds[dimension] - at]
                .map(|bound| Some(NewArray { shape: same_order(&with(dimension, bound))?, count: 1 }))
                .into_iter()
                .collect(),
            Change::Batch => one(self.laid_out(&[self.bounds, &[BATCH]].concat())?),
            Change::Resize { dimension, to } => one(same_order(&with(dimension, to))?),
            Change::Narrow { to } => {
                one(self.with_dimensions(self.same_order(to, self.bounds, self.order())?, self.array.dimensions())?)
            }
            Change::Byte => {
                let shape = tpu::default_layout(ElementType::S8, self.bounds, self.generation).ok()?;
                one(self.with_dimensions(shape, self.array.dimensions())?)
            }
        }
    }

    /// The bounds with a run of dimensions as one, which takes `rows` of the dimension before it.
    fn merged(&self, run: &Range<usize>, rows: u64) -> Option<Vec<u64>> {
        let mut bounds = self.bounds.to_vec();
        let merged = bounds.drain(run.clone()).try_fold(rows, u64::checked_mul)?;
        bounds.insert(run.start, merged);
        if rows > 1 {
            bounds[run.start - 1] /= rows;
        }
        Some(bounds)
    }

    /// The shape with dynamic dimensions where the array has them.
    fn with_dimensions(&self, shape: Shape, dimensions: &[Dimension]) -> Option<Shape> {
        if !self.is_dynamic() {
            return Some(shape);
        }
        let dynamic = Shape::dynamic_array(shape.element_type()?, dimensions.iter().copied()).ok()?;
        dynamic.with_layout(shape.layout()?.clone()).ok()
    }

    /// An array of these bounds as the compiler lays it out.
    fn laid_out(&self, bounds: &[u64]) -> Option<Shape> {
        tpu::default_layout(self.array.element_type(), bounds, self.generation).ok()
    }

    /// In the array's own order, so that nothing but the change itself makes the price; by default where it has the
    /// default order.
    fn same_order(&self, element_type: ElementType, bounds: &[u64], minor_to_major: &[usize]) -> Option<Shape> {
        if self.baseline.has_default_order {
            return tpu::default_layout(element_type, bounds, self.generation).ok();
        }
        tpu::layout_for_order(element_type, bounds, minor_to_major, self.generation).ok()
    }

    fn order(&self) -> &[usize] {
        self.array.layout().map_or(&[], |layout| layout.minor_to_major())
    }

    fn is_dynamic(&self) -> bool {
        self.array.dimensions().iter().any(|dimension| dimension.is_dynamic())
    }

    /// Whether elements take more bits than the type has.
    fn is_stored_wide(&self) -> bool {
        self.array.stored_bits() > u64::from(self.array.element_type().natural_bits())
    }
}

/// The type half the size that takes the place of this one; none below 16 bits, nor for f16 and bf16.
fn narrower(element_type: ElementType) -> Option<ElementType> {
    Some(match element_type {
        ElementType::C128 => ElementType::C64,
        ElementType::F64 => ElementType::F32,
        ElementType::F32 => ElementType::Bf16,
        ElementType::S64 => ElementType::S32,
        ElementType::S32 => ElementType::S16,
        ElementType::S16 => ElementType::S8,
        ElementType::U64 => ElementType::U32,
        ElementType::U32 => ElementType::U16,
        ElementType::U16 => ElementType::U8,
        _ => return None,
    })
}
