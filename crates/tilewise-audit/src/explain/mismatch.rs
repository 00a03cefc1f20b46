//! An argument that is not what the program was compiled for (E0102).

use crate::advice::{
    Recommendation, Target,
    finding::{Finding, MismatchFinding},
};
use tilewise::{
    ElementType, Shape,
    tpu::{self, Generation},
};
use tilewise_oom::{Framework, Message, PrintedSize};

/// The difference between the argument passed and the one that the program was compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The array that the program was compiled for; a layout that isn't printed is inferred from its size.
    pub expected: Option<Shape>,
    /// The array that was passed.
    pub actual: Option<Shape>,
    /// How they differ.
    pub cause: MismatchCause,
}

/// How the two sides of a [`Mismatch`] differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MismatchCause {
    /// Only the layouts differ.
    Layout,
    /// Only the types differ; whether one is the other's type of 64 bits.
    Type(bool),
    /// The dimensions differ.
    Dimensions,
    /// The types named in the message differ; whether one is the other's type of 64 bits.
    NamedType(bool),
    /// The memories named in the message differ.
    Memory,
    /// One takes twice the bytes of the other.
    Twice,
    /// The passed array is a fraction of the expected one: numerator and denominator.
    Part(u64, u64),
    /// The sizes differ; nothing more is known.
    Size,
    /// Unknown.
    Unknown,
}

pub(super) fn mismatch(message: &Message) -> Mismatch {
    let facts = &message.facts;
    let shape = |name| facts.shapes(name).first()?.parsed.as_ref().ok().filter(|shape| shape.as_array().is_some());
    // If only one is printed, the other has its dimensions, in a layout inferred from its size.
    let either = shape("expected_shape").or_else(|| shape("actual_shape"));
    let side = |name, size| {
        with_layout_of_size(shape(name).or(either)?, facts.size(size).map(PrintedSize::bytes), shape(name).is_some())
    };
    let (expected, actual) = (side("expected_shape", "expected"), side("actual_shape", "actual"));
    let both = |expected, actual| facts.text(expected).is_some() && facts.text(actual).is_some();
    let cause = match (expected.as_ref().and_then(Shape::as_array), actual.as_ref().and_then(Shape::as_array)) {
        (Some(expected), Some(actual)) => {
            let same_bounds = expected.dimensions() == actual.dimensions();
            let (wanted, given) = (expected.element_type(), actual.element_type());
            if same_bounds && wanted == given && expected.layout() != actual.layout() {
                MismatchCause::Layout
            } else if same_bounds && wanted != given {
                MismatchCause::Type(are_of_x64(wanted, given))
            } else {
                MismatchCause::Dimensions
            }
        }
        _ if both("expected_type", "actual_type") => {
            // `F64`, `float64`: of two types one has 64 bits.
            let is_wide = |name| facts.text(name).is_some_and(|name| name.ends_with("64"));
            MismatchCause::NamedType(is_wide("expected_type") != is_wide("actual_type"))
        }
        _ if both("expected_space", "actual_space") => MismatchCause::Memory,
        _ => by_sizes(message),
    };
    Mismatch { expected, actual, cause }
}

impl Mismatch {
    /// Advice on it.
    pub(super) fn advice(&self, message: &Message) -> Recommendation {
        let facts = &message.facts;
        let finding = match self.cause {
            MismatchCause::Layout => MismatchFinding::OtherLayout,
            MismatchCause::Type(is_of_x64) => {
                let wanted = self.expected.as_ref().and_then(Shape::element_type);
                let wanted = wanted.map(|wanted| wanted.to_string()).unwrap_or_default();
                MismatchFinding::OtherType { wanted, is_of_x64 }
            }
            MismatchCause::NamedType(is_of_x64) => {
                let wanted = facts.text("expected_type").unwrap_or_default().to_lowercase();
                MismatchFinding::OtherType { wanted, is_of_x64 }
            }
            MismatchCause::Memory => {
                MismatchFinding::OtherMemory(facts.text("expected_space").unwrap_or_default().to_owned())
            }
            _ => MismatchFinding::OtherShape,
        };
        Recommendation::new(Finding::Mismatch(finding), Target::Argument, Some(Framework::Jax))
    }
}

/// Whether `jax_enable_x64` makes one type the other.
fn are_of_x64(one: ElementType, other: ElementType) -> bool {
    let (wide, narrow) = (one.bits().max(other.bits()), one.bits().min(other.bits()));
    one.kind() == other.kind() && wide >= 64 && wide == 2 * narrow
}

/// The cause if only sizes are known.
fn by_sizes(message: &Message) -> MismatchCause {
    let bytes = |name| message.facts.size(name).map(PrintedSize::bytes).filter(|bytes| *bytes > 0);
    let Some((wanted, given)) = bytes("expected").zip(bytes("actual")) else { return MismatchCause::Unknown };
    if wanted == given.saturating_mul(2) || given == wanted.saturating_mul(2) {
        return MismatchCause::Twice;
    }
    let divisor = gcd(wanted, given);
    let (part, whole) = (given / divisor, wanted / divisor);
    if given < wanted && whole <= 4096 { MismatchCause::Part(part, whole) } else { MismatchCause::Size }
}

/// The shape with the layout that takes `bytes`, if it has no tiles. If sizes don't determine the dimension on the
/// lanes: the shape as it is if it was `printed`, else `None`.
fn with_layout_of_size(shape: &Shape, bytes: Option<u64>, printed: bool) -> Option<Shape> {
    let as_printed = || printed.then(|| shape.clone());
    let array = shape.as_array()?;
    let is_tiled = array.layout().is_some_and(|layout| !layout.tiles().is_empty());
    let bounds: Option<Vec<u64>> = array.bounds();
    let (Some(bytes), Some(bounds), false) = (bytes, bounds, is_tiled) else { return as_printed() };
    if bounds.len() > MOST_DIMENSIONS {
        return as_printed();
    }
    let tiled = orders(bounds.len()).into_iter().filter_map(|order| {
        let shape = tpu::layout_for_order(array.element_type(), &bounds, &order, Generation::V5e).ok()?;
        (shape.as_array()?.sizes().ok()?.physical_bytes == bytes).then_some(shape)
    });
    let minor = |shape: &Shape| shape.layout().and_then(|layout| layout.minor_to_major().first().copied());
    let tiled: Vec<Shape> = tiled.collect();
    let Some(first) = tiled.first() else { return as_printed() };
    // A size determines the dimension on the lanes; for the others, the default order is as good as any.
    tiled.iter().all(|other| minor(other) == minor(first)).then(|| first.clone()).or_else(as_printed)
}

/// Maximum number of dimensions whose orders are all tried.
const MOST_DIMENSIONS: usize = 4;

/// All orders of `rank` dimensions, row-major first.
fn orders(rank: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for _ in 0..rank {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<usize>| {
                let rest = (0..rank).rev().filter(|dimension| !order.contains(dimension));
                rest.map(|dimension| order.iter().copied().chain([dimension]).collect())
            })
            .collect();
    }
    orders
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_three() {
        assert_eq!(orders(2), [[1, 0], [0, 1]]);
        assert_eq!((orders(3).len(), &orders(3)[0][..], orders(0).len()), (6, &[2, 1, 0][..], 1));
    }
}
