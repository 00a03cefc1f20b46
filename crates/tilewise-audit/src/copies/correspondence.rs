//! How the elements of an array map to those of another, made of it by bitcasts and copies.

use tilewise::{BitcastAs, Layout, Relation, Shape, tpu};

/// Maximum number of dimensions whose orders are tried one by one.
const MOST_DIMENSIONS: usize = 6;

/// A mapping from an array's elements to another's: a permutation of the dimensions, then a row-major reshape.
#[derive(Clone, Debug)]
pub(crate) struct Correspondence {
    permutation: Vec<usize>,
    is_reshaped: bool,
}

impl Correspondence {
    /// The mapping of an array to itself.
    pub(crate) fn identity(rank: usize) -> Self {
        Self { permutation: (0..rank).collect(), is_reshaped: false }
    }

    /// Appends a bitcast from `from` to `to`. `None` if it exposes padding, or reorders dimensions after a reshape.
    pub(crate) fn bitcast(mut self, from: &Shape, to: &Shape) -> Option<Self> {
        let relation = from.bitcast(to, BitcastAs::Any).ok()?;
        if let Some(permutation) = relation.permutation() {
            if self.is_reshaped {
                return None;
            }
            self.permutation =
                permutation.iter().map(|at| self.permutation.get(*at).copied()).collect::<Option<Vec<usize>>>()?;
        }
        match relation {
            Relation::Identical | Relation::Transpose { .. } => {}
            Relation::Reshape => self.is_reshaped = true,
            Relation::TransposeReshape { then, .. } if then.is_sorted() => self.is_reshaped = true,
            _ => return None,
        }
        Some(self)
    }

    /// The layout of `array` that can be bitcast to `wanted`; its tiles are the default ones of its order, else those
    /// of `wanted`.
    pub(crate) fn layout(&self, array: &Shape, wanted: &Shape, generation: tpu::Generation) -> Option<Shape> {
        let bounds: Vec<u64> = array.bounds()?;
        let wanted_layout = wanted.layout()?;
        let of_type = |shape: &Shape, order: &[usize]| {
            let found = tpu::layout_for_order(shape.element_type()?, &bounds, order, generation).ok()?;
            Some(found)
        };
        let fits = |order: &[usize]| {
            let candidate = of_type(wanted, order)?;
            let seen = self.seen(&candidate)?;
            seen.bitcast(wanted, BitcastAs::Reshape).ok()?.is_bitcast().then_some(())
        };
        if !self.is_reshaped {
            let order: Option<Vec<usize>> =
                wanted_layout.minor_to_major().iter().map(|at| self.permutation.get(*at).copied()).collect();
            let order = order?;
            if fits(&order).is_some() {
                return of_type(array, &order);
            }
            if array.element_type() != wanted.element_type() {
                return None;
            }
            let layout = Layout::new(order).ok()?.with_tiles(wanted_layout.tiles().iter().cloned()).ok()?;
            return array.with_layout(layout).ok();
        }
        if bounds.len() > MOST_DIMENSIONS {
            return None;
        }
        let mut order: Vec<usize> = (0..bounds.len()).rev().collect();
        let first = order.clone();
        loop {
            if fits(&order).is_some() {
                return of_type(array, &order);
            }
            order = previous_permutation(order);
            if order == first {
                return None;
            }
        }
    }

    /// The array with its dimensions permuted; its bytes stay in place.
    fn seen(&self, array: &Shape) -> Option<Shape> {
        let layout = array.layout()?;
        let place = |dimension: &usize| self.permutation.iter().position(|at| at == dimension);
        let order: Vec<usize> = layout.minor_to_major().iter().map(place).collect::<Option<_>>()?;
        let bounds: Vec<u64> = array.bounds()?;
        let bounds: Vec<u64> = self.permutation.iter().map(|at| bounds.get(*at).copied()).collect::<Option<_>>()?;
        let layout = Layout::new(order).ok()?.with_tiles(layout.tiles().iter().cloned()).ok()?;
        Shape::array(array.element_type()?, bounds).ok()?.with_layout(layout).ok()
    }
}

/// The previous permutation in lexicographic order; wraps around to the last.
fn previous_permutation(mut order: Vec<usize>) -> Vec<usize> {
    let falls = |pair: &[usize]| matches!(pair, [first, second] if first > second);
    let Some(at) = order.windows(2).rposition(falls) else {
        order.reverse();
        return order;
    };
    let (head, tail) = order.split_at_mut(at + 1);
    if let Some(pivot) = head.last_mut()
        && let Some(smaller) = tail.iter_mut().rev().find(|value| **value < *pivot)
    {
        std::mem::swap(pivot, smaller);
    }
    tail.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu::Generation;

    fn shape(text: &str) -> Shape {
        text.parse().expect("a shape")
    }

    #[test]
    fn all_orders_come_once() {
        let mut order = vec![3, 2, 1, 0];
        let mut seen = foldhash::HashSet::default();
        while seen.insert(order.clone()) {
            order = previous_permutation(order);
        }
        assert_eq!(seen.len(), 24);
    }

    /// A layout wanted of a view is translated to one of its base array.
    #[test]
    fn orders_go_back_through_bitcasts() {
        let weights = shape("bf16[1024,16,64]{0,2,1:T(8,128)(2,1)}");
        let view = shape("bf16[1024,1024]{0,1:T(8,128)(2,1)}");
        let seen = Correspondence::identity(3).bitcast(&weights, &view).expect("a reshape");
        let found = seen.layout(&weights, &shape("bf16[1024,1024]{0,1:T(8,128)(2,1)S(1)}"), Generation::V5e);
        assert_eq!(found.map(|found| found.to_string()).as_deref(), Some("bf16[1024,16,64]{0,2,1:T(8,128)(2,1)}"));
        // 64 columns of a head would fill half of the lanes.
        let found = seen.layout(&weights, &shape("bf16[1024,1024]{1,0:T(8,128)(2,1)}"), Generation::V5e);
        assert_eq!(found, None);

        let turned = shape("bf16[64,16,1024]{2,0,1:T(8,128)(2,1)}");
        let seen = Correspondence::identity(3).bitcast(&weights, &turned).expect("a transpose");
        let found = seen.layout(&weights, &shape("bf16[64,16,1024]{0,1,2:T(8,128)(2,1)}"), Generation::V5e);
        assert_eq!(found.map(|found| found.to_string()).as_deref(), Some("bf16[1024,16,64]{2,1,0:T(8,128)(2,1)}"));
    }

    #[test]
    fn tiles_that_no_default_has_are_kept() {
        let array = shape("bf16[640,1920]{1,0:T(8,128)(2,1)}");
        let wanted = shape("bf16[640,1920]{0,1:T(16,128)(2,1)S(1)}");
        let found = Correspondence::identity(2).layout(&array, &wanted, Generation::V7x);
        assert_eq!(found.map(|found| found.to_string()).as_deref(), Some("bf16[640,1920]{0,1:T(16,128)(2,1)}"));
    }
}
